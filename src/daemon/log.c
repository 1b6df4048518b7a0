// SPDX-License-Identifier: MIT
#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((format(printf, 1, 0))) static void write_line(const char *fmt, va_list args)
{
	char line[512] = "gpreemptd: ";
	size_t start = 11, n;
	int wrote = vsnprintf(line + start, sizeof(line) - start - 1, fmt, args);

	if (wrote < 0)
		return;
	n = start + ((size_t)wrote < sizeof(line) - start - 1 ? (size_t)wrote : sizeof(line) - start - 2);
	/* Names come from others. */
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
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
