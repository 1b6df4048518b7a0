/* SPDX-License-Identifier: MIT */
/* Busy and idle: how often to look, and what changed. */
#ifndef GP_AGENT_SAMPLE_H
#define GP_AGENT_SAMPLE_H

#include "backend/own.h"

struct gp_sampler {
	uint64_t next_ns, period_ns; /* next_ns: UINT64_MAX while there is nothing to look at */
	uint64_t begun_ns;           /* of the thread's time */
	uint32_t n, has_moved;
	uint64_t queues[GP_OWN_MOST];
	struct gp_activity last[GP_OWN_MOST]; /* activity: as the daemon knows it */
	struct gp_activity seen[GP_OWN_MOST];
};

void gp_sampler_reset(struct gp_sampler *s); /* nothing is known to the daemon; the queues stay */
void gp_sampler_add(struct gp_sampler *s, uint64_t queue, uint64_t now_ns);
void gp_sampler_remove(struct gp_sampler *s, uint64_t queue);
/* Looks at all queues. The places in queues of those whose activity changed: as many as are returned. */
uint32_t gp_sampler_look(struct gp_sampler *s, const struct gp_own_ops *ops, struct gp_own *own,
			 uint16_t ret_changed[GP_OWN_MOST]);
/* Then, when the changes are told: sets next_ns so that all this takes less than a hundredth of a core. */
void gp_sampler_plan(struct gp_sampler *s);

#endif
