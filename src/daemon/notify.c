// SPDX-License-Identifier: MIT
#include "daemon/notify.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/log.h"

#define FIRST_LENT 3 /* SD_LISTEN_FDS_START */
#define MOST_LENT 64 /* more than anybody writes into a unit */

void gp_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0'; /* of the abstract namespace */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

/* A variable that names a pid is that process's alone: children inherit it. */
static bool is_meant(const char *pid)
{
	return strtoul(pid, NULL, 10) == (unsigned long)getpid();
}

uint64_t gp_notify_watchdog(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && !is_meant(pid)))
		return 0;
	return strtoull(usec, NULL, 10) * 1000 / 2;
}

/* Sockets */

static int count_lent(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	long n = pid && count && is_meant(pid) ? strtol(count, NULL, 10) : 0;

	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return n < MOST_LENT ? (int)n : MOST_LENT;
}

/* Whoever starts us may be wrong about how many there are: what is no such socket may be a descriptor of our
 * own. */
static bool is_lent(int fd)
{
	int is_listening = 0;
	socklen_t size = sizeof(is_listening);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 && is_listening;
}

static void name_of(int fd, char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1])
{
	struct sockaddr_un at = { .sun_family = AF_UNSPEC };
	socklen_t size = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &size) < 0 || at.sun_family != AF_UNIX)
		at.sun_path[0] = '\0';
	snprintf(name, sizeof(at.sun_path) + 1, "%.*s", (int)sizeof(at.sun_path), at.sun_path);
}

static void turn_away(int fd, const char *name)
{
	gp_log("systemd listens on %s, and gpreemptd does not: mask gpreemptd.socket, or have both say the same",
	       *name ? name : "what is no unix socket");
	(void)shutdown(fd, SHUT_RDWR);
	close(fd);
}

int gp_notify_socket(const char *path)
{
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	int end = FIRST_LENT + count_lent(), found = -1;

	for (int fd = FIRST_LENT; fd < end; fd++) {
		if (!is_lent(fd))
			continue;
		name_of(fd, name);
		if (strcmp(name, path) != 0)
			turn_away(fd, name);
		else if (found < 0)
			found = fd;
		else
			close(fd); /* the same once more */
	}
	return found;
}
