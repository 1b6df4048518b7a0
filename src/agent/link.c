// SPDX-License-Identifier: MIT
#include "agent/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/server.h"

#define SECOND 1000000000ull

uint64_t gp_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

int gp_link_open(struct gp_link *link, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	uint32_t uid;
	int fd, r = 0;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	link->socket = gp_held_take(fd);
	fd = link->socket.fd;
	if (fd < 0)
		return -EBADF;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		r = -errno;
	if (r == 0)
		r = gp_server_check(fd, path, GP_WIRE_SOCKET, &uid);
	if (r < 0)
		gp_link_close(link);
	return r;
}

void gp_link_close(struct gp_link *link)
{
	gp_held_drop(&link->socket);
}

static int wait_for_room(int fd, uint64_t end_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	uint64_t now = gp_now_ns();
	struct timespec t;

	if (now >= end_ns)
		return -ETIMEDOUT;
	t = (struct timespec){ .tv_sec = (time_t)((end_ns - now) / SECOND),
			       .tv_nsec = (long)((end_ns - now) % SECOND) };
	/* The signal with which a program changes its ids comes through. */
	return ppoll(&p, 1, &t, NULL) < 0 && errno != EINTR ? -errno : 0;
}

int gp_link_send(struct gp_link *link, const struct gp_msg *msg, uint64_t end_ns)
{
	int size = gp_wire_encode(msg, link->features, link->packet, sizeof(link->packet)), r;
	ssize_t sent;

	if (size < 0)
		return size;
	for (;;) {
		if (!gp_held_is_ours(&link->socket))
			return -EBADF;
		sent = send(link->socket.fd, link->packet, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent == size)
			return 0;
		if (sent >= 0)
			return -EIO; /* no packet is sent in parts */
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_for_room(link->socket.fd, end_ns);
		if (r < 0)
			return r;
	}
}

int gp_link_receive(struct gp_link *link, struct gp_msg *ret)
{
	ssize_t size;

	if (!gp_held_is_ours(&link->socket))
		return -EBADF;
	size = recv(link->socket.fd, link->packet, sizeof(link->packet), MSG_DONTWAIT | MSG_TRUNC);
	if (size < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (size == 0)
		return -ECONNRESET;
	if ((size_t)size > sizeof(link->packet))
		return -EBADMSG;
	return gp_wire_decode(link->packet, (size_t)size, ret);
}
