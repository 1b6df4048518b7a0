/* SPDX-License-Identifier: MIT */
/* Random numbers from a seed, in integers: the same on every machine. */
#ifndef GP_BASE_RANDOM_H
#define GP_BASE_RANDOM_H

#include <stdint.h>

struct gp_random {
	uint64_t state;
};

/* Streams of one seed are independent of each other. */
void gp_random_init(struct gp_random *r, uint64_t seed, uint64_t stream);
uint64_t gp_random_next(struct gp_random *r);
uint64_t gp_random_between(struct gp_random *r, uint64_t low, uint64_t high); /* both included */
uint64_t gp_random_exponential(struct gp_random *r, uint64_t mean);

#endif
