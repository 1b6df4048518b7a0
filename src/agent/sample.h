/* SPDX-License-Identifier: MIT */
/*
 * Busy and idle: how often to look, and what changed.
 *
 * A queue is idle if it is empty and its last work has ended.  Where the queue cannot tell whether that has,
 * it counts as busy until it has been empty, with the pointers where they were, for two looks.
 *
 * All that a look takes of a core, waking up for it and telling of it too, is a hundredth at most, unless one
 * takes nearly a millisecond: the period is 120 times what one has taken of late, between 250 us and
 * 100 ms, and later where looks have taken more than that for a while.  A process that is watched closely is
 * looked at in every period.  Of any other the time doubles from a millisecond to 100 while nothing moves.
 */
#ifndef GP_AGENT_SAMPLE_H
#define GP_AGENT_SAMPLE_H

#include "backend/own.h"

struct gp_sampler {
	uint64_t next_ns, period_ns; /* next_ns: UINT64_MAX while there is nothing to look at */
	uint64_t begun_ns;           /* of the thread's time */
	uint64_t cost_ns;            /* of a look, smoothed */
	uint32_t nlooks;             /* that are in it */
	int64_t credit_ns;           /* what looks may take at once; below 0 they wait */
	uint64_t planned_ns;         /* when that was counted */
	uint32_t is_close;
	uint32_t is_deferred;
	uint32_t n, nempty, has_moved;
	uint64_t queues[GP_OWN_MOST];
	struct gp_activity last[GP_OWN_MOST]; /* activity: as the daemon knows it */
	struct gp_activity seen[GP_OWN_MOST];

	/* The queues that have become empty, and their places in the arrays above. */
	uint64_t empty[GP_OWN_MOST];
	uint16_t place[GP_OWN_MOST];
	struct gp_activity ended[GP_OWN_MOST];
};

/* Nothing is known to the daemon; the queues stay. */
void gp_sampler_reset(struct gp_sampler *s, uint32_t is_close);
void gp_sampler_add(struct gp_sampler *s, uint64_t queue, uint64_t now_ns);
void gp_sampler_remove(struct gp_sampler *s, uint64_t queue);
/* Before the thread goes to sleep until next_ns, if it did anything else. */
void gp_sampler_rest(struct gp_sampler *s);
/* Looks at all queues. The places in queues of those whose activity changed: as many as are returned. */
uint32_t gp_sampler_look(struct gp_sampler *s, const struct gp_own_ops *ops, struct gp_own *own,
			 uint16_t ret_changed[GP_OWN_MOST]);
/* Then, when the changes are told: sets next_ns. */
void gp_sampler_plan(struct gp_sampler *s, uint64_t now_ns);

/* All are known to have no work. */
int gp_sampler_is_idle(const struct gp_sampler *s);
/* The next look is as far off as looks can be; and at once, if it was. */
void gp_sampler_defer(struct gp_sampler *s, uint64_t now_ns);
void gp_sampler_hurry(struct gp_sampler *s);

#endif
