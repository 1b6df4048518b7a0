// SPDX-License-Identifier: MIT
/*
 * On a device whose slices make offline yield, one request after another pays for each gap between them: the
 * device goes over to offline, and has to come back.  So offline is parked while requests queue: when so many
 * are open, until none is, and not for longer than offline may starve, however short the pauses are; for
 * clients that gain by it (learn.c), and from the first request on for those that gain by that.
 */
#include "base/time.h"
#include "core/internal.h"

int gp_park_may(const struct device *d)
{
	return d->background && (d->caps & GP_CAP_TAKES_TURNS) && d->core->opts.park_hints &&
	       gp_act_can_stop(d);
}

static int is_to_park(const struct device *d)
{
	if (!gp_park_may(d) || d->park_spent || !d->open_hints)
		return 0;
	return d->parks || d->park_votes[REQUEST_FIRST] ||
	       (d->park_votes[REQUEST_QUEUED] && d->open_hints >= d->core->opts.park_hints);
}

static void vote(const struct seat *s, uint32_t sign)
{
	for (uint32_t i = 0; i < REQUEST_KINDS; i++)
		s->device->park_votes[i] += sign * s->requests.picked[i];
}

/* In pauses that come to a slice: in a short one it has hardly begun to run. */
static int has_run(const struct device *d, uint64_t now)
{
	return d->ran_ns + (now - d->unparked_ns) >= d->core->opts.starve_slice_ns;
}

static void begin(struct device *d, uint64_t now)
{
	if (has_run(d, now)) {
		d->starves_since_ns = now;
		d->ran_ns = 0;
	} else {
		d->ran_ns += now - d->unparked_ns;
	}
	gp_core_arm(d->core, &d->park_timer, gp_time_add(d->starves_since_ns, d->core->opts.max_starve_ns));
}

static void end(struct device *d, uint64_t now)
{
	d->unparked_ns = now;
	gp_core_arm(d->core, &d->park_timer, GP_NEVER);
}

/* What it was parked for is over, and it ran meanwhile. */
static void look_at_pause(struct device *d, uint64_t now)
{
	if (d->park_spent && !d->open_hints && has_run(d, now))
		d->park_spent = 0;
}

void gp_park_update(struct device *d, uint64_t now)
{
	uint32_t parks;

	look_at_pause(d, now);
	parks = (uint32_t)is_to_park(d);
	if (parks == d->parks)
		return;
	d->parks = parks;
	d->park_changes++;
	(parks ? begin : end)(d, now);
	gp_seat_all_dirty(d);
}

void gp_park_count(struct seat *s, uint64_t now)
{
	uint32_t open = gp_hint_count(s->client, s->device), was = s->open_hints;

	look_at_pause(s->device, now); /* the request that comes ends it */
	s->device->open_hints += open - was;
	s->open_hints = open;
	if (open && !was) {
		gp_learn_beside(s);
		gp_learn_busy(s);
		vote(s, 1);
	} else if (was && !open) {
		vote(s, -1u);
	}
	gp_park_update(s->device, now);
	if (open && (!was || open < was))
		gp_learn_begin(s, was ? REQUEST_QUEUED : REQUEST_FIRST, now);
}

void gp_park_forget(struct seat *s, uint64_t now)
{
	s->device->open_hints -= s->open_hints;
	if (s->open_hints)
		vote(s, -1u);
	s->open_hints = 0;
	gp_park_update(s->device, now);
}

void gp_park_over(struct device *d, uint64_t now)
{
	d->park_spent = 1;
	d->ran_ns = 0;
	gp_park_update(d, now);
}
