// SPDX-License-Identifier: MIT
#include "machine/load.h"

#define MS 1000000ull

/* Rates are per 1000 s. */
static uint64_t mean_gap(uint64_t rate_milli)
{
	return 1000ull * 1000 * MS / rate_milli;
}

void gp_load_init(struct gp_load *l, const struct gp_group *group, uint64_t client, uint64_t seed,
		  uint64_t stream)
{
	*l = (struct gp_load){ .group = group, .client = client, .rate_milli = group->rate_milli };
	gp_random_init(&l->random, seed, stream);
	if (group->arrival == GP_ARRIVAL_PERIODIC)
		l->next_ns = gp_random_between(&l->random, 0, mean_gap(l->rate_milli) - 1);
}

static uint64_t next_periodic(struct gp_load *l)
{
	uint64_t at = l->next_ns;

	l->next_ns += mean_gap(l->rate_milli);
	return at;
}

static uint64_t next_poisson(struct gp_load *l)
{
	l->next_ns += gp_random_exponential(&l->random, mean_gap(l->rate_milli));
	return l->next_ns;
}

/* By thinning: arrivals at the curve's peak, of which each stays with the part of it that its time has. */
static uint64_t next_curved(struct gp_load *l)
{
	const struct gp_curve *curve = l->group->curve;
	uint64_t peak = gp_curve_peak(curve), rate = l->rate_milli * peak / 1000;

	do {
		l->next_ns += gp_random_exponential(&l->random, mean_gap(rate ? rate : 1));
	} while (gp_random_between(&l->random, 1, peak) > gp_curve_at(curve, l->next_ns));
	return l->next_ns;
}

/* 3 times the mean with probability 2/7, else 0.2 times: the mean stays what it is. */
static void next_period(struct gp_load *l)
{
	int high = gp_random_between(&l->random, 1, 7) <= 2;

	l->next_ns = l->period_end_ns;
	l->period_end_ns += gp_random_between(&l->random, 50 * MS, 500 * MS);
	l->rate_milli = high ? l->group->rate_milli * 3 : l->group->rate_milli / 5;
	if (!l->rate_milli)
		l->rate_milli = 1;
}

static uint64_t next_burst(struct gp_load *l)
{
	/* A Poisson process has no memory: at a change of rate the gap is drawn anew. */
	for (;;) {
		if (l->next_ns >= l->period_end_ns)
			next_period(l);
		if (next_poisson(l) < l->period_end_ns)
			return l->next_ns;
	}
}

static uint64_t next_traced(struct gp_load *l)
{
	while (l->trace_next < l->group->trace_len) {
		uint64_t i = l->trace_next++;

		if (l->group->trace_client[i] == l->client)
			return l->group->trace_ns[i];
	}
	return UINT64_MAX;
}

uint64_t gp_load_next(struct gp_load *l)
{
	switch (l->group->arrival) {
	case GP_ARRIVAL_PERIODIC:
		return next_periodic(l);
	case GP_ARRIVAL_POISSON:
		return l->group->curve ? next_curved(l) : next_poisson(l);
	case GP_ARRIVAL_BURST:
		return next_burst(l);
	case GP_ARRIVAL_TRACE:
		return next_traced(l);
	default:
		return UINT64_MAX;
	}
}

uint64_t gp_load_think(struct gp_load *l)
{
	return gp_random_exponential(&l->random, l->group->think_ns);
}
