// SPDX-License-Identifier: MIT
#include "simgpu/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simgpu/proto.h"

#define SECOND 1000000000ull
#define FIRST_PAUSE (SECOND / 5)
#define LAST_PAUSE (5 * SECOND)

void gp_simconn_init(struct gp_simconn *c, const char *named)
{
	const char *run = secure_getenv("XDG_RUNTIME_DIR");

	if (!named)
		named = secure_getenv("GPREEMPT_SOCKET");
	c->fd = -1;
	c->pause_ns = FIRST_PAUSE;
	(void)snprintf(c->paths[0], sizeof(c->paths[0]), "%s", named ? named : GP_WIRE_SOCKET);
	if (!named && run && *run)
		(void)snprintf(c->paths[1], sizeof(c->paths[1]), "%s/" GP_WIRE_USER_SOCKET, run);
}

int gp_simconn_is_due(const struct gp_simconn *c, uint64_t now_ns)
{
	return c->fd < 0 && c->paths[0][0] && now_ns >= c->retry_ns;
}

int gp_simconn_open(struct gp_simconn *c, uint64_t now_ns)
{
	int fd = -ENOENT;

	for (size_t i = 0; fd < 0 && i < 2 && c->paths[i][0]; i++)
		fd = gp_simgpu_connect(c->paths[i], GP_WIRE_SOCKET);
	if (fd < 0) {
		gp_simconn_lose(c, 0, now_ns);
		return fd;
	}
	c->fd = fd;
	return 0;
}

void gp_simconn_lose(struct gp_simconn *c, int was_well, uint64_t now_ns)
{
	if (was_well)
		c->pause_ns = FIRST_PAUSE;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->features = 0;
	c->retry_ns = now_ns + c->pause_ns;
	c->pause_ns = c->pause_ns < LAST_PAUSE / 2 ? c->pause_ns * 2 : LAST_PAUSE;
}

struct gp_msg *gp_simconn_begin(struct gp_simconn *c, uint32_t type, uint32_t serial)
{
	memset(&c->msg, 0, offsetof(struct gp_msg, item));
	c->msg.type = type;
	c->msg.serial = serial;
	return &c->msg;
}

int gp_simconn_send(struct gp_simconn *c)
{
	int size = gp_wire_encode(&c->msg, c->features, c->packet, sizeof(c->packet));

	if (size < 0)
		return size;
	return send(c->fd, c->packet, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) == size ? 0 : -ECONNRESET;
}

int gp_simconn_receive(struct gp_simconn *c)
{
	ssize_t n = recv(c->fd, c->packet, sizeof(c->packet), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return -ECONNRESET;
	return n > (ssize_t)sizeof(c->packet) ? -EBADMSG : gp_wire_decode(c->packet, (size_t)n, &c->msg);
}
