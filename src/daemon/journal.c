// SPDX-License-Identifier: MIT
#include "daemon/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

bool gp_journal_is_stderr(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat s;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &s) == 0 &&
	       s.st_dev == device && s.st_ino == inode;
}

/* A line of an entry: "NAME=value", without a line's end in the value. */
struct entry {
	size_t used;
	char bytes[2048];
};

__attribute__((format(printf, 3, 4))) static void add(struct entry *e, const char *name, const char *format,
						      ...)
{
	char value[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	if (len < 0)
		return;
	gp_text_clean(value); /* names come from others */
	len = snprintf(e->bytes + e->used, sizeof(e->bytes) - e->used, "%s=%s\n", name, value);
	if (len > 0 && (size_t)len < sizeof(e->bytes) - e->used)
		e->used += (size_t)len; /* else it is left out */
}

static void add_about(struct entry *e, const struct gp_about *about)
{
	if (about->event)
		add(e, "GPREEMPT_EVENT", "%s", about->event);
	if (about->number)
		add(e, "GPREEMPT_EVENT_NUMBER", "%" PRIu64, about->number);
	if (about->has_device)
		add(e, "GPREEMPT_DEVICE", "%" PRIu32, about->device);
	if (about->pid)
		add(e, "GPREEMPT_PID", "%" PRIu32, about->pid);
	if (about->name && *about->name)
		add(e, "GPREEMPT_CLIENT", "%s", about->name);
	if (about->queue)
		add(e, "GPREEMPT_QUEUE", "%" PRIu64, about->queue);
	if (about->way && *about->way)
		add(e, "GPREEMPT_WAY", "%s", about->way);
	if (about->tried)
		add(e, "GPREEMPT_TRIED", "%s", about->tried);
	if (about->latency_ns)
		add(e, "GPREEMPT_LATENCY_NS", "%" PRIu64, about->latency_ns);
	if (about->status < 0)
		add(e, "ERRNO", "%d", -about->status);
}

static int send_to(const char *path, const struct entry *e)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd, r = 0;

	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	strcpy(to.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, e->bytes, e->used, MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof(to)) < 0)
		r = -errno;
	close(fd);
	return r;
}

int gp_journal_send(const char *path, enum gp_priority priority, const char *message,
		    const struct gp_about *about)
{
	struct entry e = { 0 };

	add(&e, "MESSAGE", "%s", message);
	add(&e, "PRIORITY", "%d", (int)priority);
	add(&e, "SYSLOG_IDENTIFIER", "gpreemptd");
	if (about)
		add_about(&e, about);
	return send_to(path, &e);
}
