// SPDX-License-Identifier: MIT
#include "daemon/closer.h"

#include <dirent.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif

#define MOST_CLOSERS 32
#define MOST_PACKETS 4096 /* far more than a socket has room for */

static pid_t closers[MOST_CLOSERS];

/* There is room for the sender's name and for nothing else, and the kernel says that something was left out.
 */
bool gp_brings_descriptors(int socket)
{
	char byte;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec room = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &room, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};

	return recvmsg(socket, &msg, MSG_DONTWAIT | MSG_PEEK) >= 0 && msg.msg_flags & MSG_CTRUNC;
}

bool gp_keeps_descriptors(int socket)
{
	char byte;

	(void)shutdown(socket, SHUT_RDWR);
	for (int i = 0; i < MOST_PACKETS; i++) {
		if (gp_brings_descriptors(socket))
			return true;
		if (recv(socket, &byte, 1, MSG_DONTWAIT) <= 0)
			return false;
	}
	return true;
}

/* In the child: others' connections must not last because of it. */
static void close_others(int socket)
{
	DIR *dir;
	const struct dirent *entry;

	if (syscall(SYS_close_range, socket + 1, ~0u, 0) == 0) {
		(void)syscall(SYS_close_range, 0, socket - 1, 0);
		return;
	}
	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (fd != socket && fd != dirfd(dir))
			close(fd);
	}
}

bool gp_closer_start(int socket)
{
	size_t i = 0;

	while (i < MOST_CLOSERS && closers[i])
		i++;
	if (i == MOST_CLOSERS)
		return false;
	closers[i] = fork();
	if (closers[i] == 0) {
		close_others(socket);
		close(socket);
		_exit(0);
	}
	if (closers[i] > 0)
		return true;
	closers[i] = 0;
	return false;
}

void gp_closer_ended(pid_t pid)
{
	for (size_t i = 0; i < MOST_CLOSERS; i++)
		if (closers[i] == pid)
			closers[i] = 0;
}
