// SPDX-License-Identifier: MIT
/*
 * Whether parking pays, client by client.  A server that has sent its next request before the last one ends
 * leaves no gap that parking would close; one whose request is thousands of small kernels has gaps in its
 * very first.  So for both kinds, a request that came to an idle client and one that queued, the service is
 * measured with offline parked and without, and offline is parked only where that is clearly shorter: it pays
 * for it.
 *
 * Service is from the client's last end, or the request's begin where that is later, to its end.  That says
 * something only of one request at a time, in order, with nobody else's beside it, and if nothing was parked
 * or resumed meanwhile.  Nor of one that queued while the call was under way: it feels the call, and offline
 * too, so that what it takes is anything between, and would drown what is to be told apart.
 */
#include "core/internal.h"

#define ODD 2          /* of the first ones, so many are left out on either side */
#define MOST_TRIES 256 /* to get LEAST_SERVICES: some say nothing */
#define MOST 32        /* that a mean remembers */
#define TRY_AGAIN 256  /* the other way, once in so many times */
#define GAIN 16        /* to begin parking, the part of the service that it saves; half of that to go on */
#define SHIFT 16       /* by such a part the service has to change for the other way to be tried anew */
#define ROUNDS 4       /* from the first ones to their mean */
#define UNORDERED 64   /* busy periods without learning after requests have ended out of order */

/* Nothing so short stands out. */
#define SHORT_NS 100000

static int is_tried(const struct comparison *c, uint32_t way)
{
	return c->n[way] >= LEAST_SERVICES || c->tries[way] >= MOST_TRIES;
}

static uint32_t pick(struct comparison *c)
{
	uint32_t way = c->parks;

	if (is_tried(c, way) && (!is_tried(c, !way) || ++c->since >= TRY_AGAIN)) {
		way = !way;
		c->since = 0;
	}
	c->tries[way] += c->tries[way] < MOST_TRIES;
	return way;
}

/* Where nobody is to be parked there is nothing to be learnt. */
static int can_learn(const struct seat *s)
{
	const struct device *d = s->device;

	return gp_park_may(d) && d->owned > d->online_active && !s->requests.unordered;
}

static void forget(struct seat *s)
{
	uint32_t hints = s->device->core->opts.park_hints;

	s->requests.preset = hints;
	s->requests.of[REQUEST_FIRST] = (struct comparison){ .parks = hints == 1 };
	s->requests.of[REQUEST_QUEUED] = (struct comparison){ .parks = hints > 0 };
}

void gp_learn_busy(struct seat *s)
{
	struct requests *r = &s->requests;
	int learns;

	if (r->preset != s->device->core->opts.park_hints)
		forget(s);
	r->unordered -= r->unordered > 0;
	r->is_spoilt = 0;
	learns = can_learn(s);
	for (uint32_t i = 0; i < REQUEST_KINDS; i++)
		r->picked[i] = learns ? pick(&r->of[i]) : r->of[i].parks;
}

void gp_learn_beside(const struct seat *s)
{
	s->device->besides += s->device->open_hints != s->open_hints;
}

void gp_learn_begin(struct seat *s, uint32_t kind, uint64_t now)
{
	s->requests.kind = kind;
	s->requests.begin_ns = now;
	s->requests.is_parked = s->device->parks;
	s->requests.changes = s->device->park_changes;
	s->requests.besides = s->device->besides;
	s->requests.is_between = kind == REQUEST_QUEUED && gp_act_is_stopping(s->device);
	s->requests.is_alone = s->device->open_hints == s->open_hints;
}

static void compare(struct comparison *c)
{
	uint64_t gain = c->mean_ns[0] / (c->parks ? 2 * GAIN : GAIN);
	uint32_t parks = c->mean_ns[1] + gain < c->mean_ns[0];

	if (!c->then_ns || parks != c->parks)
		c->then_ns = c->mean_ns[parks];
	c->parks = parks;
}

/* Offline may have come, gone or changed: what the other way took then says nothing now. */
static int has_shifted(const struct comparison *c)
{
	uint64_t now = c->mean_ns[c->parks];

	return now > c->then_ns + c->then_ns / SHIFT || now + c->then_ns / SHIFT < c->then_ns;
}

/* One that stands out says more of itself than of parking. */
static uint64_t limited(uint64_t mean_ns, uint64_t took_ns)
{
	uint64_t most = 2 * mean_ns + SHORT_NS;

	return took_ns > most ? most : took_ns;
}

/*
 * Of the first ones nobody knows which stands out before all are there: that of a cold cache, or one without
 * work.  From the one in the middle to what later ones, limited as they are, would leave the mean at.
 */
static uint64_t mean_of_first(const uint64_t *sorted_ns)
{
	uint64_t mean = sorted_ns[LEAST_SERVICES / 2];

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t sum = 0;

		for (uint32_t i = ODD; i < LEAST_SERVICES - ODD; i++)
			sum += limited(mean, sorted_ns[i]);
		mean = sum / (LEAST_SERVICES - 2 * ODD);
	}
	return mean;
}

static void add_first(struct comparison *c, uint32_t way, uint64_t took_ns)
{
	uint64_t *sorted_ns = c->first_ns[way];
	uint32_t i = c->n[way]++;

	for (; i && sorted_ns[i - 1] > took_ns; i--)
		sorted_ns[i] = sorted_ns[i - 1];
	sorted_ns[i] = took_ns;
	if (c->n[way] == LEAST_SERVICES)
		c->mean_ns[way] = mean_of_first(sorted_ns);
}

static void add_later(struct comparison *c, uint32_t way, uint64_t took_ns)
{
	uint64_t *mean = &c->mean_ns[way];

	c->n[way] += c->n[way] < MOST;
	*mean = *mean - *mean / c->n[way] + limited(*mean, took_ns) / c->n[way];
}

static void add(struct comparison *c, uint32_t way, uint64_t took_ns)
{
	if (c->n[way] < LEAST_SERVICES)
		add_first(c, way, took_ns);
	else
		add_later(c, way, took_ns);
	if (c->n[0] < LEAST_SERVICES || c->n[1] < LEAST_SERVICES)
		return;
	compare(c);
	if (has_shifted(c)) {
		c->n[!c->parks] = c->tries[!c->parks] = 0;
		c->then_ns = 0;
	}
}

/* One that takes no time by the host's clock had no work. */
void gp_learn_end(struct seat *s, int is_in_order, uint64_t now)
{
	const struct device *d = s->device;
	struct requests *r = &s->requests;
	uint64_t took_ns = now - r->begin_ns;

	if (!is_in_order) {
		forget(s);
		r->unordered = UNORDERED;
		r->is_spoilt = 1;
	}
	if (took_ns && !r->is_spoilt && !r->is_between && r->is_alone && d->open_hints == s->open_hints &&
	    r->besides == d->besides && r->changes == d->park_changes && can_learn(s))
		add(&r->of[r->kind], r->is_parked, took_ns);
}
