// SPDX-License-Identifier: MIT
#include "daemon/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "daemon/journal.h"

#define PREFIX "gpreemptd: " /* on stderr, which others may share */

static char journal[108]; /* its socket; empty: lines go to stderr */

void gp_log_open(const char *root)
{
	size_t len = strlen(root);

	if (!gp_journal_is_stderr() ||
	    snprintf(journal, sizeof(journal), "%s%s" GP_JOURNAL_SOCKET, root,
		     len && root[len - 1] == '/' ? "" : "/") >= (int)sizeof(journal))
		journal[0] = '\0';
}

bool gp_log_has_fields(void)
{
	return journal[0] != '\0';
}

/* Whoever reads it may have stopped: a line is lost then, and nobody waits for it. What is ready takes a
 * line. */
bool gp_log_is_read(void)
{
	struct pollfd to = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&to, 1, 0) == 1 && to.revents & POLLOUT;
}

/* What the journal does not take at once goes by stderr, where it arrives without its fields. */
__attribute__((format(printf, 3, 0))) static void write_line(enum gp_priority priority,
							     const struct gp_about *about, const char *fmt,
							     va_list args)
{
	char line[512] = PREFIX;
	size_t start = sizeof(PREFIX) - 1, n;

	if (vsnprintf(line + start, sizeof(line) - start - 1, fmt, args) < 0)
		return;
	gp_text_clean(line); /* names come from others */
	if (journal[0] && gp_journal_send(journal, priority, line + start, about) == 0)
		return;
	n = strlen(line);
	line[n++] = '\n';
	if (gp_log_is_read() && write(STDERR_FILENO, line, n) < 0)
		return; /* nobody to tell */
}

void gp_log(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line(GP_PRIORITY_INFO, NULL, fmt, args);
	va_end(args);
}

void gp_log_about(const struct gp_about *about, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line(about && about->is_warning ? GP_PRIORITY_WARNING : GP_PRIORITY_INFO, about, fmt, args);
	va_end(args);
}

int gp_die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line(GP_PRIORITY_ERROR, NULL, fmt, args);
	va_end(args);
	return 1;
}
