// SPDX-License-Identifier: MIT
#include "daemon/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "daemon/journal.h"

#define PREFIX "gpreemptd: " /* on stderr, which others may share */

static char journal[108]; /* its socket; empty: lines go to stderr */
static bool is_timed;     /* nobody else says when a line was written */

void gp_log_open(const char *root)
{
	size_t len = strlen(root);

	is_timed = !gp_journal_is_stderr();
	if (is_timed || snprintf(journal, sizeof(journal), "%s%s" GP_JOURNAL_SOCKET, root,
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

/* By the clock that gpreempt events goes by. */
static size_t put_time(char *line, size_t size)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
	n = strftime(line, size, "%F %T", localtime_r(&now.tv_sec, &tm));
	return n + (size_t)snprintf(line + n, size - n, ".%03ld ", now.tv_nsec / 1000000);
}

/* What the journal does not take at once goes by stderr, where it arrives without its fields. */
__attribute__((format(printf, 3, 0))) static void write_line(enum gp_priority priority,
							     const struct gp_about *about, const char *fmt,
							     va_list args)
{
	char line[512];
	size_t start = is_timed ? put_time(line, sizeof(line)) : 0, n;

	strcpy(line + start, PREFIX);
	start += sizeof(PREFIX) - 1;
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
