// SPDX-License-Identifier: MIT
#include "daemon/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_CLOSERS 32
#define MOST_PACKETS 4096 /* far more than a socket has room for */

static pid_t closers[MOST_CLOSERS];

/* There is room for the sender's name and for nothing else, and the kernel says that something was left out.
 */
int gp_brings_descriptors(int socket)
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

	if (recvmsg(socket, &msg, MSG_DONTWAIT | MSG_PEEK) < 0)
		return -errno;
	return (msg.msg_flags & MSG_CTRUNC) != 0;
}

bool gp_keeps_descriptors(int socket)
{
	char byte;

	(void)shutdown(socket, SHUT_RDWR);
	for (int i = 0; i < MOST_PACKETS; i++) {
		if (gp_brings_descriptors(socket) > 0)
			return true;
		if (recv(socket, &byte, 1, MSG_DONTWAIT) <= 0)
			return false;
	}
	return true;
}

/*
 * In the child: others' connections must not last because of it.  Nothing but system calls, for a scan's
 * thread may have had any lock: so one by one, rather than by /proc/self/fd.
 */
static void close_others(int socket, int pipe)
{
	struct rlimit files = { 0 };

	(void)getrlimit(RLIMIT_NOFILE, &files); /* cannot fail */
	for (int fd = 0; (rlim_t)fd < files.rlim_cur; fd++)
		if (fd != socket && fd != pipe)
			close(fd);
}

/* In the child: once nobody has the other end of the pipe, nobody else has the socket. */
static void close_last(int socket, int pipe)
{
	char byte;

	close_others(socket, pipe);
	(void)!read(pipe, &byte, 1);
	close(socket);
	_exit(0);
}

static pid_t *free_place(void)
{
	for (size_t i = 0; i < MOST_CLOSERS; i++)
		if (!closers[i])
			return &closers[i];
	return NULL;
}

bool gp_close_elsewhere(int socket)
{
	pid_t *place = free_place(), child;
	int ends[2];

	if (!place || pipe2(ends, O_CLOEXEC) < 0)
		return false;
	child = fork();
	if (child == 0)
		close_last(socket, ends[0]);
	if (child > 0) {
		*place = child;
		close(socket);
	}
	close(ends[0]);
	close(ends[1]);
	return child > 0;
}

void gp_closer_ended(pid_t pid)
{
	for (size_t i = 0; i < MOST_CLOSERS; i++)
		if (closers[i] == pid)
			closers[i] = 0;
}
