// SPDX-License-Identifier: MIT
#include "ini/diag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* A longer file name would push the message out of the line. */
#define FILE_SHOWN 96

static size_t print_place(const struct gp_place *at, char *text, size_t size)
{
	size_t len = at->file ? strlen(at->file) : 0;
	const char *cut = len > FILE_SHOWN ? "..." : "";
	const char *file = len > FILE_SHOWN ? at->file + len - FILE_SHOWN : at->file;

	if (!file)
		return 0;
	if (at->line)
		return (size_t)snprintf(text, size, "%s%s:%u: ", cut, file, at->line);
	return (size_t)snprintf(text, size, "%s%s: ", cut, file);
}

int gp_complain(const struct gp_place *at, const char *fmt, ...)
{
	char *text = at->diag->text;
	size_t used;
	va_list args;

	if (text[0])
		return -EINVAL;
	used = print_place(at, text, sizeof(at->diag->text));
	va_start(args, fmt);
	(void)vsnprintf(text + used, sizeof(at->diag->text) - used, fmt, args);
	va_end(args);
	gp_text_clean(text);
	return -EINVAL;
}
