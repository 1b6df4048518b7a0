// SPDX-License-Identifier: MIT
#include "machine/curve.h"

#include <errno.h>
#include <stdlib.h>

#include "base/random.h"

#define WHOLE 1000 /* permille */

static uint64_t day_at(const struct gp_curve *c, uint64_t now_ns)
{
	uint64_t of_day = (c->begin_ns + now_ns) % c->day_ns;
	unsigned __int128 place = (unsigned __int128)of_day * c->npoints;
	uint64_t i = (uint64_t)(place / c->day_ns), part = (uint64_t)(place % c->day_ns);
	uint64_t from = c->permille[i], to = c->permille[(i + 1) % c->npoints];
	unsigned __int128 way = (unsigned __int128)(to > from ? to - from : from - to) * part / c->day_ns;

	return to > from ? from + (uint64_t)way : from - (uint64_t)way;
}

/* The last burst that began is the only one that may not be over. */
static int is_burst(const struct gp_curve *c, uint64_t now_ns)
{
	size_t low = 0, high = c->nbursts;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->bursts[mid].begin_ns <= now_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low && now_ns < c->bursts[low - 1].end_ns;
}

uint64_t gp_curve_at(const struct gp_curve *c, uint64_t now_ns)
{
	uint64_t permille = c->npoints ? day_at(c, now_ns) : WHOLE;

	return is_burst(c, now_ns) ? permille * c->burst_permille / WHOLE : permille;
}

uint64_t gp_curve_peak(const struct gp_curve *c)
{
	uint64_t peak = c->npoints ? 0 : WHOLE;

	for (uint64_t i = 0; i < c->npoints; i++)
		peak = c->permille[i] > peak ? c->permille[i] : peak;
	return c->nbursts && c->burst_permille > WHOLE ? peak * c->burst_permille / WHOLE : peak;
}

int gp_curve_start(struct gp_curve *c, uint64_t seed, uint64_t stream, uint64_t end_ns)
{
	struct gp_random random;
	uint64_t at = 0;

	gp_random_init(&random, seed, stream);
	while (c->burst_every_ns) {
		struct gp_burst burst, *more;

		burst.begin_ns = at + gp_random_exponential(&random, c->burst_every_ns) + 1;
		burst.end_ns = burst.begin_ns + gp_random_exponential(&random, c->burst_length_ns) + 1;
		if (burst.begin_ns >= end_ns)
			break;
		more = realloc(c->bursts, (c->nbursts + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		c->bursts = more;
		c->bursts[c->nbursts++] = burst;
		at = burst.end_ns;
	}
	return 0;
}

void gp_curve_free(struct gp_curve *c)
{
	free(c->bursts);
	c->bursts = NULL;
	c->nbursts = 0;
}
