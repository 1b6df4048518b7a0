/* SPDX-License-Identifier: MIT */
/* The agent's thread in this process, on a driver that takes everything, with a daemon that wants to know
 * busy from idle. */
#ifndef GP_BENCH_AGENT_HOST_H
#define GP_BENCH_AGENT_HOST_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "backend/kfd/own.h"
#include "backend/kfd/uapi.h"
#include "wire/wire.h"

#define SECOND 1000000000ull
#define QUEUES 1000
#define PACKETS 64 /* of a ring */

static uint64_t pointers[QUEUES][2];       /* read and written */
static uint64_t rings[QUEUES][PACKETS][8]; /* of AQL packets */
static int64_t signals[QUEUES][2];         /* a signal's kind and value */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static int take_all(int fd, unsigned long request, void *args)
{
	static uint32_t next_id;

	(void)fd;
	if (request == KFD_IOC_CREATE_QUEUE)
		((struct kfd_create_queue_args *)args)->queue_id = next_id++;
	if (_IOC_NR(request) < 0x80)
		return 0;
	errno = ENOTTY;
	return -1;
}

/* The agent's connection, welcomed. */
static int serve(const char *path)
{
	static struct gp_msg msg;
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), peer, size;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 1) < 0)
		return -1;
	peer = accept(listener, NULL, NULL);
	size = peer < 0 ? -1 : (int)recv(peer, packet, sizeof(packet), 0); /* HELLO: it has seen who we are */
	unlink(path);
	if (size <= 0)
		return -1;
	msg.type = GP_MSG_WELCOME;
	msg.welcome = (struct gp_msg_welcome){ .lease_ns = 60 * SECOND, .sample = 1 };
	size = gp_wire_encode(&msg, 0, packet, sizeof(packet));
	return send(peer, packet, (size_t)size, MSG_NOSIGNAL) == size ? peer : -1;
}

static struct gp_own *create_queues(uint32_t n)
{
	int fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	struct gp_own *own;

	if (fd < 0 || gp_kfd_own.make(take_all, gp_agent_wake, NULL, &own) < 0)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		struct kfd_create_queue_args args = { .ring = (uintptr_t)rings[i],
						      .ring_size = sizeof(rings[i]),
						      .type = KFD_TYPE_AQL,
						      .percent = 100,
						      .rptr = (uintptr_t)&pointers[i][0],
						      .wptr = (uintptr_t)&pointers[i][1] };

		for (uint32_t at = 0; at < PACKETS; at++)
			rings[i][at][7] = (uintptr_t)signals[i];
		(void)gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, -1);
	}
	return own;
}

/* The daemon's end, or -1. */
static int start_agent(uint32_t n, uint32_t client_class)
{
	char folder[] = "/tmp/gpreempt-bench-XXXXXX", path[64];
	const struct gp_claim who = { .seen = client_class };
	struct gp_own *own;
	int peer;

	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/sock", folder);
	setenv("GPREEMPT_SOCKET", path, 1);
	setenv("GPREEMPT_KFD", "/dev/full", 1);
	gp_agent_configure();
	own = create_queues(n);
	if (own)
		gp_agent_created(&gp_kfd_own, own, &who);
	peer = own ? serve(path) : -1;
	rmdir(folder);
	return peer;
}

#endif
