/* SPDX-License-Identifier: MIT */
/*
 * What is put among a program's packets (HSA Platform System Architecture 1.2, 2.9): before a launch a
 * barrier-AND packet on the gate's signal, with the launch's own barrier bit, so that it opens when the
 * launch could begin and not before; and a signal of ours that counts its end.  A launch that has a signal of
 * its own keeps it, and a barrier packet behind it counts.
 */
#ifndef GP_LEVEL_AQL_H
#define GP_LEVEL_AQL_H

#include <stdint.h>

#define GP_AQL_PACKET 64u /* bytes */

struct gp_aql_signals {
	uint64_t gate, count; /* handles */
};

/* How many of n packets are launches. */
uint32_t gp_aql_launches(const void *packets, uint64_t n);
/* adds: GP_ADD_*. ret: room for three times as many. How many it wrote. */
uint64_t gp_aql_rewrite(const void *packets, uint64_t n, uint32_t adds, const struct gp_aql_signals *signals,
			void *ret);
/* In place, with room for one more: the signal says when the last of them has been taken from the queue. How
 * many they are then. */
uint64_t gp_aql_mark(void *packets, uint64_t n, uint64_t signal);

#endif
