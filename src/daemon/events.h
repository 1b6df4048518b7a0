/* SPDX-License-Identifier: MIT */
/* What happened, for those who asked: the last few hundred, and what comes. Who reads slowly misses some. */
#ifndef GP_DAEMON_EVENTS_H
#define GP_DAEMON_EVENTS_H

#include <gpreempt/gpreempt.h>

#include <stdbool.h>

#include "base/list.h"

#define GP_EVENTS_KEPT 256

struct gp_msg;
struct gp_peer;

struct gp_events {
	struct gp_event kept[GP_EVENTS_KEPT]; /* by number */
	uint64_t last;                        /* number; 0: there was none */
	struct gp_list behind, told;          /* followers, who has waited longest first */
};

/* A tool's. */
struct gp_event_reader {
	struct gp_list in_line; /* or in none: it has not read what it was told last */
	uint64_t next;          /* number it has not been told */
	uint32_t serial, kinds;
	int is_on, follows;
};

void gp_events_init(struct gp_events *e);
void gp_events_add(struct gp_events *e, const struct gp_event *event); /* number and time are set here */
void gp_events_ask(struct gp_events *e, struct gp_peer *p, const struct gp_msg *msg);
void gp_events_more(struct gp_events *e, struct gp_peer *p); /* it has read what was sent */
void gp_events_leave(struct gp_peer *p);
/* Followers n messages of what they have not been told. true: there is more, when others had their turn. */
bool gp_events_tell(struct gp_events *e, int n);

#endif
