// SPDX-License-Identifier: MIT OR GPL-2.0
#include "exec.h"

void gpm_exec_init(struct gpm_exec *e, const struct gpm_device *dev)
{
	gpm_u32 slots = (gpm_u32)gpm_wave_slots(dev);

	*e = (struct gpm_exec){ .dev = dev, .free = slots, .slots = slots, .next_ns = GPM_NEVER };
}

static void link_ctx(struct gpm_exec *e, struct gpm_ctx *c)
{
	if (c->linked)
		return;
	c->linked = 1;
	e->nring++;
	if (!e->ring) {
		e->ring = c->next = c->prev = c;
		return;
	}
	c->next = e->ring;
	c->prev = e->ring->prev;
	c->prev->next = c;
	c->next->prev = c;
}

static void unlink_ctx(struct gpm_exec *e, struct gpm_ctx *c)
{
	if (!c->linked)
		return;
	c->linked = 0;
	e->nring--;
	if (e->ring == c)
		e->ring = c->next == c ? NULL : c->next;
	c->prev->next = c->next;
	c->next->prev = c->prev;
}

static const struct gpm_cohort *first_saved(const struct gpm_ctx *c)
{
	const struct gpm_cohort *k = c->cohorts;

	while (k->running)
		k++;
	return k;
}

/* Free slots that it may take. Only their number counts: two with the same mask do not crowd each other. */
static gpm_u32 usable(const struct gpm_exec *e, const struct gpm_ctx *c)
{
	gpm_u64 others = (gpm_u64)c->held + c->denied;

	return others < e->slots ? (gpm_u32)gpm_min(e->free, e->slots - others) : 0;
}

/* How many free slots it would use now. A saved cohort that must be split needs room for the rest of it. */
static gpm_u32 wanted_slots(const struct gpm_exec *e, const struct gpm_ctx *c)
{
	int room = c->ncohorts < GPM_COHORTS;
	gpm_u32 slots;

	if (!c->saved && (!c->pending || !room))
		return 0;
	slots = usable(e, c);
	if (slots < c->dispatch.waves_per_wg)
		return 0;
	return !c->saved || room || first_saved(c)->waves <= slots ? slots : 0;
}

/*
 * Highest priority first; the ring starts with whose turn it is, so the first of equals wins.  Nobody's is
 * above highest.
 */
static struct gpm_ctx *pick(const struct gpm_exec *e, gpm_u32 highest, gpm_u32 *ret_slots)
{
	struct gpm_ctx *best = NULL, *c = e->ring;
	gpm_u32 slots;

	if (!c)
		return NULL;
	do {
		if ((!best || c->priority > best->priority) && (slots = wanted_slots(e, c))) {
			best = c;
			*ret_slots = slots;
			if (c->priority >= highest)
				break;
		}
		c = c->next;
	} while (c != e->ring);
	return best;
}

static void start(struct gpm_exec *e, struct gpm_ctx *c, struct gpm_cohort *k, gpm_u64 begin, gpm_u64 length)
{
	k->running = 1;
	k->begin_ns = begin;
	k->end_ns = begin + length;
	e->free -= k->waves;
	c->held += k->waves;
	c->next_end_ns = gpm_min(c->next_end_ns, k->end_ns);
	e->next_ns = gpm_min(e->next_ns, k->end_ns);
	if (c->first_ns == GPM_NEVER)
		c->first_ns = begin;
	e->events++;
}

/* Shifted where it can be: most workgroups are 2^n waves, and a division is dear where a step is little else.
 */
static gpm_u32 whole_groups(gpm_u32 slots, gpm_u32 waves_per_wg)
{
	if (waves_per_wg & (waves_per_wg - 1))
		return slots / waves_per_wg;
	return slots >> __builtin_ctz(waves_per_wg);
}

static void restore_one(struct gpm_exec *e, struct gpm_ctx *c, gpm_u32 slots, gpm_u64 now)
{
	struct gpm_cohort *k = &c->cohorts[first_saved(c) - c->cohorts];
	gpm_u32 per_wg = c->dispatch.waves_per_wg, waves = k->waves;

	if (waves > slots) {
		waves = whole_groups(slots, per_wg) * per_wg;
		c->cohorts[c->ncohorts] = *k;
		c->cohorts[c->ncohorts++].waves -= waves;
		k->waves = waves;
	}
	c->saved -= waves;
	start(e, c, k, gpm_max(now, c->restored_ns), k->end_ns);
}

static void begin_fresh(struct gpm_exec *e, struct gpm_ctx *c, gpm_u32 slots, gpm_u64 now)
{
	const struct gpm_dispatch *d = &c->dispatch;
	struct gpm_cohort *k = &c->cohorts[c->ncohorts++];
	gpm_u32 groups = (gpm_u32)gpm_min(c->pending, whole_groups(slots, d->waves_per_wg));

	k->waves = groups * d->waves_per_wg;
	c->pending -= groups;
	start(e, c, k, now, d->wave_ns);
}

/* The next step gives slots out, if there are any: all who ask at one instant must be known before the first
 * gets one. */
static void fill_due(struct gpm_exec *e, gpm_u64 now)
{
	if (e->free)
		e->next_ns = gpm_min(e->next_ns, now);
}

/* Gives the free slots out. What was saved comes before what never ran. */
static void fill(struct gpm_exec *e, gpm_u32 highest, gpm_u64 now)
{
	struct gpm_ctx *c;
	gpm_u32 slots;

	while (e->free && (c = pick(e, highest, &slots))) {
		if (c->saved)
			restore_one(e, c, slots, now);
		else
			begin_fresh(e, c, slots, now);
		e->ring = c->next;
	}
}

static int is_possible(const struct gpm_exec *e, const struct gpm_dispatch *d)
{
	return d->workgroups && d->waves_per_wg && d->wave_ns && d->waves_per_wg <= e->slots;
}

int gpm_exec_dispatch(struct gpm_exec *e, struct gpm_ctx *c, const struct gpm_dispatch *d, gpm_u64 now)
{
	if (c->busy || !is_possible(e, d))
		return -1;
	c->busy = 1;
	c->dispatch = *d;
	c->pending = d->workgroups;
	c->next_end_ns = GPM_NEVER;
	c->first_ns = GPM_NEVER;
	if (c->mapped) {
		link_ctx(e, c);
		fill_due(e, now);
	}
	return 0;
}

void gpm_exec_map(struct gpm_exec *e, struct gpm_ctx *c, gpm_u64 now, gpm_u64 restored_ns)
{
	if (c->mapped)
		return;
	c->mapped = 1;
	c->restored_ns = restored_ns;
	if (c->busy) {
		link_ctx(e, c);
		fill_due(e, now);
	}
}

static void update_next(struct gpm_exec *e)
{
	struct gpm_ctx *c = e->ring;

	e->next_ns = GPM_NEVER;
	if (!c)
		return;
	do {
		e->next_ns = gpm_min(e->next_ns, c->next_end_ns);
		c = c->next;
	} while (c != e->ring);
}

static void save_cohort(struct gpm_ctx *c, struct gpm_cohort *k, gpm_u64 now)
{
	gpm_u64 ran = now > k->begin_ns ? now - k->begin_ns : 0;

	c->done_wave_ns += ran * k->waves;
	c->saved += k->waves;
	k->end_ns = k->end_ns - k->begin_ns - ran;
	k->begin_ns = 0;
	k->running = 0;
}

gpm_u64 gpm_exec_stop(struct gpm_exec *e, struct gpm_ctx *c, gpm_u64 now)
{
	gpm_u64 due = e->next_ns;
	gpm_u32 i;

	c->mapped = 0;
	if (!c->linked)
		return 0;
	unlink_ctx(e, c);
	for (i = 0; i < c->ncohorts; i++)
		if (c->cohorts[i].running)
			save_cohort(c, &c->cohorts[i], now);
	c->next_end_ns = GPM_NEVER;
	update_next(e);
	if (due <= now)
		e->next_ns = gpm_min(e->next_ns, now);
	return c->held;
}

static int fits_dispatch(const struct gpm_dispatch *d, gpm_u32 pending, const struct gpm_cohort *k, gpm_u32 n)
{
	gpm_u64 waves = (gpm_u64)pending * d->waves_per_wg;
	gpm_u32 i;

	if (n > GPM_COHORTS || pending > d->workgroups)
		return 0;
	for (i = 0; i < n; i++) {
		if (!k[i].waves || k[i].waves % d->waves_per_wg || !k[i].end_ns || k[i].end_ns > d->wave_ns)
			return 0;
		waves += k[i].waves;
	}
	return waves && waves <= (gpm_u64)d->workgroups * d->waves_per_wg;
}

int gpm_exec_load(struct gpm_exec *e, struct gpm_ctx *c, const struct gpm_dispatch *d, gpm_u32 pending,
		  const struct gpm_cohort *cohorts, gpm_u32 n)
{
	gpm_u32 i;

	if (c->busy || c->mapped || !is_possible(e, d) || !fits_dispatch(d, pending, cohorts, n))
		return -1;
	c->busy = 1;
	c->dispatch = *d;
	c->pending = pending;
	c->ncohorts = n;
	c->saved = 0;
	c->next_end_ns = GPM_NEVER;
	c->first_ns = 0;
	for (i = 0; i < n; i++) {
		c->cohorts[i] = (struct gpm_cohort){ .end_ns = cohorts[i].end_ns, .waves = cohorts[i].waves };
		c->saved += cohorts[i].waves;
	}
	return 0;
}

void gpm_exec_release(struct gpm_exec *e, struct gpm_ctx *c, gpm_u64 now)
{
	if (!c->held)
		return;
	e->free += c->held;
	c->held = 0;
	fill_due(e, now);
}

/* Drops the cohorts that end at now, and finds when the next one does. */
static void retire(struct gpm_exec *e, struct gpm_ctx *c, gpm_u64 now)
{
	gpm_u32 i = 0;

	c->next_end_ns = GPM_NEVER;
	while (i < c->ncohorts) {
		struct gpm_cohort *k = &c->cohorts[i];

		if (!k->running || k->end_ns > now) {
			if (k->running)
				c->next_end_ns = gpm_min(c->next_end_ns, k->end_ns);
			i++;
			continue;
		}
		c->done_wave_ns += (k->end_ns - k->begin_ns) * k->waves;
		c->held -= k->waves;
		e->free += k->waves;
		e->events++;
		if (i != --c->ncohorts)
			*k = c->cohorts[c->ncohorts];
	}
}

static void end_dispatch(struct gpm_exec *e, struct gpm_ctx *c, gpm_u64 now)
{
	struct gpm_ctx **last = &e->ended;

	c->busy = 0;
	c->ended_ns = now;
	c->next_ended = NULL;
	unlink_ctx(e, c);
	while (*last)
		last = &(*last)->next_ended;
	*last = c;
}

gpm_u64 gpm_exec_step(struct gpm_exec *e, gpm_u64 now)
{
	struct gpm_ctx *c, *next;
	gpm_u32 n = e->nring, highest = 0, i;
	gpm_u64 next_ns = GPM_NEVER;

	if (e->next_ns > now)
		return e->next_ns;
	/* Free all slots of this instant before giving any out, so that the order of linking does not decide.
	 */
	for (i = 0, c = e->ring; i < n; i++, c = next) {
		next = c->next;
		if (c->priority > highest)
			highest = c->priority;
		if (c->next_end_ns <= now) {
			retire(e, c, now);
			if (!c->ncohorts && !c->pending)
				end_dispatch(e, c, now);
		}
		next_ns = gpm_min(next_ns, c->next_end_ns);
	}
	e->next_ns = next_ns;
	fill(e, highest, now);
	return e->next_ns;
}

struct gpm_ctx *gpm_exec_ended(struct gpm_exec *e)
{
	struct gpm_ctx *c = e->ended;

	if (c)
		e->ended = c->next_ended;
	return c;
}

gpm_u64 gpm_exec_work(const struct gpm_ctx *c, gpm_u64 now)
{
	gpm_u64 work = c->done_wave_ns;
	gpm_u32 i;

	for (i = 0; i < c->ncohorts; i++) {
		const struct gpm_cohort *k = &c->cohorts[i];

		if (k->running && now > k->begin_ns)
			work += (gpm_min(now, k->end_ns) - k->begin_ns) * k->waves;
	}
	return work;
}

gpm_u64 gpm_exec_left(const struct gpm_ctx *c, gpm_u64 now)
{
	const struct gpm_dispatch *d = &c->dispatch;
	gpm_u64 left = (gpm_u64)c->pending * d->waves_per_wg * d->wave_ns;
	gpm_u32 i;

	for (i = 0; i < c->ncohorts; i++) {
		const struct gpm_cohort *k = &c->cohorts[i];

		/* A saved cohort's end is what is left; one that runs may not have begun. */
		if (!k->running)
			left += k->end_ns * k->waves;
		else if (k->end_ns > now)
			left += (k->end_ns - gpm_max(now, k->begin_ns)) * k->waves;
	}
	return left;
}
