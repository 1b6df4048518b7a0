/* SPDX-License-Identifier: MIT */
/*
 * What happened, for those who asked: what is kept, and what comes.  Who reads slowly misses some.  What is
 * frequent does not drive out what is rare: each sort is kept in a ring of its own.
 */
#ifndef GP_DAEMON_EVENTS_H
#define GP_DAEMON_EVENTS_H

#include <gpreempt/gpreempt.h>

#include <stdbool.h>

#include "base/list.h"

#define GP_CHANGES_KEPT 2048 /* queues that were stopped or given back, with nothing to say of it */
#define GP_CLIENTS_KEPT 512  /* that came or went */
#define GP_OTHERS_KEPT 128   /* of each other sort, with what there is to say */
#define GP_OTHER_RINGS 7
#define GP_EVENT_RINGS (2 + GP_OTHER_RINGS)
#define GP_EVENT_TEXT 192
#define GP_EVENT_KINDS (GP_EVENT_CLASS + 1)

struct gp_msg;
struct gp_peer;

/* What gp_events_add() is told. */
struct gp_happened {
	uint32_t kind, device; /* kind: enum gp_event_kind */
	uint64_t client, queue, latency_ns;
	uint32_t pid, way; /* 0: none */
	uint32_t tried;    /* as struct gp_event has it */
	int32_t status;
	const char *name, *text; /* the client's; NULL: none */
};

struct gp_kept_event {
	uint64_t number, at_ns, client, queue, latency_ns;
	uint32_t device, pid;
	int32_t status;
	uint16_t kind;
	uint8_t way, tried;
	char name[GP_NAME_LEN];
};

struct gp_event_ring {
	struct gp_kept_event *kept;
	char (*texts)[GP_EVENT_TEXT]; /* NULL: nothing is said in this one */
	uint64_t room, added;
	/* By kind, those that are not kept any more: how many, and the last of them. */
	struct {
		uint64_t n, number, at_ns;
	} dropped[GP_EVENT_KINDS];
};

struct gp_events {
	uint64_t last;               /* number; 0: there was none */
	struct gp_list behind, told; /* followers, who has waited longest first */
	struct gp_event_ring rings[GP_EVENT_RINGS];
	struct gp_events_room *room;
};

/* Half a MB: in memory is what was used of it. */
struct gp_events_room {
	struct gp_kept_event changes[GP_CHANGES_KEPT], clients[GP_CLIENTS_KEPT];
	struct gp_kept_event others[GP_OTHER_RINGS][GP_OTHERS_KEPT];
	char texts[GP_OTHER_RINGS][GP_OTHERS_KEPT][GP_EVENT_TEXT];
};

/* A tool's, from EVENTS to END or the tool's own end. */
struct gp_event_reader {
	struct gp_list in_line; /* or in none: it has not read what it was told last */
	struct gp_peer *peer;
	uint32_t serial, kinds;
	int follows;
	/* In each ring: the next that it has not been told, and how many of each kind were before that. */
	struct gp_event_place {
		uint64_t next, passed[GP_EVENT_KINDS];
	} at[GP_EVENT_RINGS];
};

int gp_events_open(struct gp_events *e); /* -ENOMEM */
void gp_events_close(struct gp_events *e);
void gp_events_add(struct gp_events *e, const struct gp_happened *happened);
void gp_events_ask(struct gp_events *e, struct gp_peer *p, const struct gp_msg *msg);
void gp_events_more(struct gp_events *e, struct gp_peer *p); /* it has read what was sent */
void gp_events_leave(struct gp_peer *p);
/* Followers n messages of what they have not been told. true: there is more, when others had their turn. */
bool gp_events_tell(struct gp_events *e, int n);

#endif
