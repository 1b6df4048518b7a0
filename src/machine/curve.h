/* SPDX-License-Identifier: MIT */
/* How a rate changes over the day, and bursts on top of that. */
#ifndef GP_MACHINE_CURVE_H
#define GP_MACHINE_CURVE_H

#include <stddef.h>
#include <stdint.h>

#define GP_CURVE_POINTS 96

struct gp_burst {
	uint64_t begin_ns;
	uint64_t end_ns;
};

/* Of all that follow one curve: they see the same bursts, as the replicas of one service do. */
struct gp_curve {
	uint64_t permille[GP_CURVE_POINTS]; /* of the rate, at even distances over a day; linear between them
					     */
	uint64_t npoints;                   /* 0: always the whole rate */
	uint64_t day_ns;
	uint64_t begin_ns;                                        /* what of the day is over at time 0 */
	uint64_t burst_every_ns, burst_length_ns, burst_permille; /* means, and the factor; 0: no bursts */
	struct gp_burst *bursts;                                  /* in order, none into the next; owned */
	size_t nbursts;
};

/* Draws the bursts up to end_ns. -ENOMEM. */
int gp_curve_start(struct gp_curve *c, uint64_t seed, uint64_t stream, uint64_t end_ns);
void gp_curve_free(struct gp_curve *c);
/* Of the rate, at that time; never more than the peak. */
uint64_t gp_curve_at(const struct gp_curve *c, uint64_t now_ns);
uint64_t gp_curve_peak(const struct gp_curve *c);

#endif
