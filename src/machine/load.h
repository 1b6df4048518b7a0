/* SPDX-License-Identifier: MIT */
/* When requests come: by a clock, whether or not the last one is done. */
#ifndef GP_MACHINE_LOAD_H
#define GP_MACHINE_LOAD_H

#include "base/random.h"
#include "machine/scenario.h"

struct gp_load {
	const struct gp_group *group;
	struct gp_random random;
	uint64_t client;        /* its number in the group */
	uint64_t next_ns;       /* of the periodic and Poisson kinds */
	uint64_t period_end_ns; /* of a burst's current rate */
	uint64_t rate_milli;
	uint64_t trace_next;
};

void gp_load_init(struct gp_load *l, const struct gp_group *group, uint64_t client, uint64_t seed,
		  uint64_t stream);
/* The next arrival; UINT64_MAX: no more (or, closed loop: after the next completion). */
uint64_t gp_load_next(struct gp_load *l);
/* Closed loop: how long the client thinks before its next request. */
uint64_t gp_load_think(struct gp_load *l);

#endif
