/* SPDX-License-Identifier: MIT */
/* A connection to gpreemptd, which may come and go. Nothing here waits. */
#ifndef GP_SIMGPU_CONN_H
#define GP_SIMGPU_CONN_H

#include "wire/wire.h"

struct gp_simconn {
	char paths[2][108]; /* in the order in which they are tried; empty: none */
	int fd;             /* -1: not connected */
	uint32_t features;  /* as WELCOME says; 0 before */
	uint64_t retry_ns, pause_ns;
	struct gp_msg msg; /* what is to be sent, or was heard */
	unsigned char packet[GP_WIRE_MOST_BYTES];
};

/* named: NULL: the environment's, or the usual ones; "": none. */
void gp_simconn_init(struct gp_simconn *c, const char *named);
/* Whether it is time to look for one. */
int gp_simconn_is_due(const struct gp_simconn *c, uint64_t now_ns);
/* 0, or -errno: it is due again later. */
int gp_simconn_open(struct gp_simconn *c);
/* Ends it; it is due again later, and sooner if all was well until now. */
void gp_simconn_lose(struct gp_simconn *c, int was_well);
/* A fresh msg of this type, all its fields zero. */
struct gp_msg *gp_simconn_begin(struct gp_simconn *c, uint32_t type, uint32_t serial);
/* What is in msg. A socket that is full is one nobody reads: that is an error too. */
int gp_simconn_send(struct gp_simconn *c);
/* The next, in msg. -EAGAIN: there is none; -ENOMSG: one that this version does not know; else it is lost. */
int gp_simconn_receive(struct gp_simconn *c);

#endif
