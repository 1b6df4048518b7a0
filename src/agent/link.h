/* SPDX-License-Identifier: MIT */
/* The connection to gpreemptd. Any error but -EAGAIN and -ENOMSG: it is lost; close it. */
#ifndef GP_AGENT_LINK_H
#define GP_AGENT_LINK_H

#include "agent/held.h"
#include "wire/wire.h"

struct gp_link {
	struct gp_held socket;
	uint32_t features; /* GP_FEATURE_*: as the last WELCOME says */
	unsigned char packet[GP_WIRE_MOST_BYTES];
};

/* path: of the socket, behind which there must be root or this user. Does not wait. */
int gp_link_open(struct gp_link *link, const char *path);
void gp_link_close(struct gp_link *link);
/* Waits until end_ns (CLOCK_MONOTONIC) if the socket is full. */
int gp_link_send(struct gp_link *link, const struct gp_msg *msg, uint64_t end_ns);
/* -EAGAIN: nothing there; -ENOMSG: something that we do not know. */
int gp_link_receive(struct gp_link *link, struct gp_msg *ret);

uint64_t gp_now_ns(void);

#endif
