/* SPDX-License-Identifier: MIT */
/* A connection to gpreemptd, which may come and go. Nothing here waits. */
#ifndef GP_SIMGPU_CONN_H
#define GP_SIMGPU_CONN_H

#include "wire/wire.h"

#define GP_SIMCONN_GREETING_NS 5000000000ull /* how long a daemon may take to say WELCOME */
#define GP_SIMCONN_AT_ONCE 64                /* messages that are heard before something else is done */

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
int gp_simconn_open(struct gp_simconn *c, uint64_t now_ns);
/* Ends it; it is due again later, and sooner if all was well until now. */
void gp_simconn_lose(struct gp_simconn *c, int was_well, uint64_t now_ns);
/* A fresh msg of this type, all its fields zero; what is in item[] is left, and n says how many count. */
struct gp_msg *gp_simconn_begin(struct gp_simconn *c, uint32_t type, uint32_t serial);
/* What is in msg. A socket that is full is one nobody reads: that is an error too. */
int gp_simconn_send(struct gp_simconn *c);
/* The next, in msg. -EAGAIN: there is none; -ENOMSG: one that this version does not know; else it is lost. */
int gp_simconn_receive(struct gp_simconn *c);

#endif
