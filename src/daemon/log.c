// SPDX-License-Identifier: MIT
#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

__attribute__((format(printf, 1, 0))) static void write_line(const char *fmt, va_list args)
{
	char line[512] = "gpreemptd: ";
	size_t start = 11, n;

	if (vsnprintf(line + start, sizeof(line) - start - 1, fmt, args) < 0)
		return;
	gp_text_clean(line); /* names come from others */
	n = strlen(line);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* nobody to tell */
}

void gp_log(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line(fmt, args);
	va_end(args);
}

int gp_die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line(fmt, args);
	va_end(args);
	return 1;
}
