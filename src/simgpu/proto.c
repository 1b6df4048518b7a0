// SPDX-License-Identifier: MIT
#include "simgpu/proto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/server.h"

uint64_t gp_simgpu_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int gp_simgpu_path(char *path, size_t size)
{
	const char *run = secure_getenv("XDG_RUNTIME_DIR");
	int n;

	if (run && *run)
		n = snprintf(path, size, "%s/gpreempt/sim-gpu.sock", run);
	else if (geteuid() == 0)
		n = snprintf(path, size, "%s", GP_SIMGPU_SOCKET);
	else
		return -ENOENT;
	return n < (int)size ? 0 : -ENAMETOOLONG;
}

int gp_simgpu_connect(const char *path, const char *roots_path)
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
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		r = -errno;
	if (r == 0)
		r = gp_server_check(fd, path, roots_path, &uid);
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

int gp_simgpu_send(int fd, const struct gp_simgpu_msg *msg)
{
	struct gp_simgpu_msg packet = *msg;
	ssize_t n;

	packet.version = GP_SIMGPU_VERSION;
	do {
		n = send(fd, &packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EPIPE ? -ECONNRESET : -errno;
	return n == sizeof(packet) ? 0 : -EIO;
}

int gp_simgpu_receive(int fd, struct gp_simgpu_msg *ret)
{
	struct gp_simgpu_msg packet;
	ssize_t n;

	do {
		n = recv(fd, &packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ECONNRESET;
	if (n != sizeof(packet) || packet.version != GP_SIMGPU_VERSION)
		return -EPROTO;
	*ret = packet;
	return 0;
}
