/* SPDX-License-Identifier: MIT */
/*
 * What a simulated GPU in a process of its own and the programs that use it say to each other, one message
 * in each packet of a SOCK_SEQPACKET socket.  Both are this program on this machine, so a packet is the
 * struct; one of another size or version is none.
 */
#ifndef GP_SIMGPU_PROTO_H
#define GP_SIMGPU_PROTO_H

#include <gpreempt/backend.h>

#include "machine/scenario.h"

#define GP_SIMGPU_VERSION 1u
#define GP_SIMGPU_SOCKET "/run/gpreempt/sim-gpu.sock"
#define GP_SIMGPU_MOST_QUEUES 32u /* of one client */
#define GP_SIMGPU_MOST_OPEN 256u  /* commands in one queue */

enum gp_simgpu_type {
	GP_SIMGPU_HELLO = 1, /* first, from the client: who it is, and how many queues it wants */
	GP_SIMGPU_DEVICE,    /* its answer; a status below 0: and the connection ends */
	GP_SIMGPU_SUBMIT,    /* work for a queue */
	GP_SIMGPU_FINISHED,  /* and when it was done; of each queue in the order of submission */
	GP_SIMGPU_APPLY,     /* wants; a second one for a queue ends the first, with -ECANCELED */
	GP_SIMGPU_APPLIED,   /* how one of them ended */
};

struct gp_simgpu_hello {
	uint32_t device, client_class, queues, reserved;
	char name[GP_NAME_LEN];
};

struct gp_simgpu_device {
	uint64_t epoch_ns;          /* CLOCK_MONOTONIC at the device's 0 */
	struct gp_device_info info; /* with a number of its own on this machine */
	uint64_t key[2];            /* by which gpreemptd knows that a program is on this very device */
};

struct gp_simgpu_submit {
	uint64_t tag;
	struct gp_work work;
};

struct gp_simgpu_finished {
	uint64_t tag;
	uint64_t done_ns; /* the device's time */
};

struct gp_simgpu_want {
	uint32_t queue, want;
};

struct gp_simgpu_apply {
	uint32_t serial, n;
	struct gp_simgpu_want wants[GP_SIMGPU_MOST_QUEUES];
};

struct gp_simgpu_applied {
	uint32_t serial, want;
	uint64_t latency_ns; /* from the call to the last wave off, or on */
};

struct gp_simgpu_msg {
	uint32_t version, type;
	uint32_t queue; /* of the client's, from 0 */
	int32_t status;
	union {
		struct gp_simgpu_hello hello;
		struct gp_simgpu_device device;
		struct gp_simgpu_submit submit;
		struct gp_simgpu_finished finished;
		struct gp_simgpu_apply apply;
		struct gp_simgpu_applied applied;
	};
};

/* Where the socket is if nobody says; -ENOENT: this user has no place for it. */
int gp_simgpu_path(char *path, size_t size);
/* A connected socket, behind which there is root or this user. roots_path: as gp_server_check() has it. */
int gp_simgpu_connect(const char *path, const char *roots_path);
/* Does not wait: -EAGAIN. Any other error: the connection is lost. */
int gp_simgpu_send(int fd, const struct gp_simgpu_msg *msg);
int gp_simgpu_receive(int fd, struct gp_simgpu_msg *ret);

uint64_t gp_simgpu_now_ns(void); /* CLOCK_MONOTONIC */

#endif
