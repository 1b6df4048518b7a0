/* SPDX-License-Identifier: MIT */
/* What the files of the agent's thread share: all of it is the thread's own, but for what says otherwise. */
#ifndef GP_AGENT_INTERNAL_H
#define GP_AGENT_INTERNAL_H

#include "agent/agent.h"
#include "agent/held.h"
#include "agent/link.h"
#include "agent/sample.h"
#include "backend/guard.h"

/* A queue that is to be stopped when its work has ended. */
struct gp_draining {
	uint64_t start_ns, end_ns;
	uint32_t serial, way; /* of the message that wants it */
};

struct gp_drain {
	uint32_t is_on; /* 0: none is left, whatever n says */
	uint32_t n;
	uint64_t queues[GP_OWN_MOST];
	struct gp_draining how[GP_OWN_MOST];
	struct gp_activity seen[GP_OWN_MOST];
	struct gp_msg msg; /* the answers */
};

struct gp_agent {
	const struct gp_own_ops *ops;
	struct gp_own *own;

	/* Under guard: the application's threads use them too. */
	uint32_t guard;
	struct gp_held wake_in;
	struct gp_claim who;
	uint32_t changes; /* of who */

	struct gp_held wake_out, driver;
	struct gp_link link;
	uint32_t is_welcome;
	uint32_t told_changes; /* what changes was in the HELLO */
	uint32_t told_seen;    /* and the class */
	uint32_t samples;      /* the daemon asked for it */
	uint32_t is_punctual;  /* the thread has no timer slack */
	uint64_t lease_ns, heard_ns;
	uint64_t retry_ns, pause_ns;     /* when to look for the daemon next, and how long to wait then */
	uint64_t owed_ns, owed_pause_ns; /* the same for resumes that failed; owed_ns 0: none did */
	uint64_t send_end_ns;            /* until when a full socket is waited for */
	uint64_t watch_ns;               /* when to look next whether the program is still there */
	uint32_t is_over;                /* the thread ends */

	/* Of doors in this process, which ring when a queue gets work; with atomics, by any thread. */
	uint32_t has_door;
	uint32_t is_resting; /* no queue had work when that was last looked at: a ring is waited for */
	gp_signals mask;     /* of the thread that created the first queue */
	struct gp_drain drain;
	struct gp_sampler sampler;
	struct gp_msg msg;
	struct gp_own_queue queues[GP_OWN_MOST];
	uint16_t changed[GP_OWN_MOST];
};

/* -1 if it cannot be had. */
int gp_agent_driver(struct gp_agent *a);
int gp_agent_send(struct gp_agent *a, const struct gp_msg *msg);

/* wants.c. Both: 0, or the connection is lost. */
int gp_agent_do_wants(struct gp_agent *a, struct gp_msg *msg);
int gp_agent_go_on_draining(struct gp_agent *a);

/* end.c */
int gp_agent_is_alone(void);
void gp_agent_hand_over(gp_signals mask);

#define GP_DRAIN_LOOK_NS 500000ull /* between two looks at queues that drain */

#endif
