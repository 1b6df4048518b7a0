// SPDX-License-Identifier: MIT
/* When a client wants a device: activity, hints, linger, and the guard against starving. */
#include "core/internal.h"

#include "base/time.h"

#include <errno.h>
#include <stdlib.h>

/* Of a client's second seat on a device, to the policy. */
#define SECOND (1ull << 63)

static int is_online(const struct seat *s)
{
	return s->view.client_class == GP_CLASS_ONLINE;
}

struct seat *gp_seat_get(struct client *c, struct device *d, uint32_t client_class)
{
	gp_list_each(pos, &c->seats) {
		struct seat *s = gp_container(pos, struct seat, in_client);

		if (s->device == d && is_online(s) == (client_class == GP_CLASS_ONLINE))
			return s;
	}
	return NULL;
}

struct seat *gp_seat_by_id(struct device *d, uint64_t id)
{
	struct client *c = gp_map_get(&d->core->clients, id & ~SECOND);

	if (!c)
		return NULL;
	gp_list_each(pos, &c->seats) {
		struct seat *s = gp_container(pos, struct seat, in_client);

		if (s->device == d && s->view.id == id)
			return s;
	}
	return NULL;
}

static void describe(struct seat *s)
{
	struct gp_policy_client *v = &s->view;

	v->slo_ns = s->client->slo_ns;
	v->user = s->client->user;
	v->weight = s->client->weight;
	v->service_ns = s->client->service_ns;
}

void gp_seat_cannot_yield(struct seat *s, uint32_t cannot)
{
	s->device->unyielding += cannot - s->cannot_yield;
	s->cannot_yield = cannot;
	gp_seat_dirty(s);
}

void gp_seat_cannot_stop(struct seat *s, uint32_t cannot)
{
	struct device *d = s->device;
	uint32_t were_several = d->unstoppable > 1;

	d->unstoppable += cannot - s->cannot_stop;
	s->cannot_stop = cannot;
	gp_seat_dirty(s);
	if (were_several != (d->unstoppable > 1))
		gp_seat_all_dirty(d); /* another is not the only one any more, or is it now */
}

/* The next time the driver may have learnt it, or be another. Whoever calls has all looked at again. */
static void forget_refusals(struct device *d)
{
	gp_list_each(pos, &d->seats) {
		struct seat *s = gp_container(pos, struct seat, in_device);

		s->cannot_yield = s->cannot_stop = 0;
	}
	d->unyielding = d->unstoppable = 0;
}

void gp_seat_update_background(struct device *d)
{
	int demand = !d->core->opts.yield_on_demand || d->online_active;
	uint32_t background = (d->caps & GP_CAP_BACKGROUND) && d->online && demand;

	d->dirty = 1;
	gp_list_each(pos, &d->gang)
		gp_seat_dirty(gp_container(pos, struct seat, in_gang));
	if (d->unyielding || background != d->background)
		gp_seat_all_dirty(d);
	if (!background && d->background)
		forget_refusals(d);
	d->background = background;
}

static int can_join_gang(const struct seat *s)
{
	return !is_online(s) && !(s->device->caps & GP_CORE_APART);
}

/* Its seats on several devices, if there are several. */
static void form_gang(struct client *c)
{
	uint32_t n = 0;

	gp_list_each(pos, &c->seats)
		n += can_join_gang(gp_container(pos, struct seat, in_client));
	gp_list_each(pos, &c->seats) {
		struct seat *s = gp_container(pos, struct seat, in_client);

		gp_list_remove(&s->in_gang);
		if (n > 1 && can_join_gang(s))
			gp_list_append(&s->device->gang, &s->in_gang);
	}
}

static void join(struct seat *s)
{
	describe(s);
	form_gang(s->client);
	s->device->online += (uint32_t)is_online(s);
	gp_seat_update_background(s->device);
	gp_seat_dirty(s);
}

static void leave(struct seat *s)
{
	s->device->online -= (uint32_t)is_online(s);
	gp_seat_update_background(s->device);
}

/* Its policy knows a client with queues of both kinds as two clients. */
static uint64_t free_id(const struct client *c, struct device *d)
{
	return gp_seat_by_id(d, c->id) ? c->id | SECOND : c->id;
}

struct seat *gp_seat_new(struct client *c, struct device *d, uint32_t client_class)
{
	struct seat *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->client = c;
	s->device = d;
	s->view.id = free_id(c, d);
	s->view.client_class = client_class;
	s->view.deadline_ns = GP_NEVER;
	if (gp_runset_seat_init(s) < 0 || gp_timers_reserve(&d->core->timers, SEAT_TIMERS) < 0) {
		free(s->view.priv);
		free(s);
		return NULL;
	}
	s->linger_timer = (struct timer){ .kind = TIMER_LINGER, .owner = s };
	s->guard_timer = (struct timer){ .kind = TIMER_GUARD_END, .owner = s };
	s->backoff_timer = (struct timer){ .kind = TIMER_BACKOFF, .owner = s };
	gp_list_init(&s->queues);
	gp_list_init(&s->unpaid);
	gp_list_init(&s->in_gang);
	gp_list_init(&s->in_dirty);
	gp_list_init(&s->in_waiting);
	gp_list_init(&s->in_payers);
	gp_list_append(&c->seats, &s->in_client);
	gp_list_append(&d->seats, &s->in_device);
	join(s);
	return s;
}

/* Frees it and nothing else: for when the whole core goes. */
void gp_seat_release(struct seat *s)
{
	gp_timer_cancel(&s->device->core->timers, &s->linger_timer.timer);
	gp_timer_cancel(&s->device->core->timers, &s->guard_timer.timer);
	gp_timer_cancel(&s->device->core->timers, &s->backoff_timer.timer);
	gp_timers_release(&s->device->core->timers, SEAT_TIMERS);
	s->device->unyielding -= s->cannot_yield;
	s->device->unstoppable -= s->cannot_stop;
	gp_list_remove(&s->in_client);
	gp_list_remove(&s->in_device);
	gp_list_remove(&s->in_gang);
	gp_list_remove(&s->in_dirty);
	gp_list_remove(&s->in_waiting);
	gp_list_remove(&s->in_payers);
	form_gang(s->client);
	free(s->view.priv);
	free(s);
}

static void look_again(struct seat *s)
{
	gp_list_remove(&s->in_dirty);
	gp_list_append(&s->device->dirty_seats, &s->in_dirty);
}

/* And so is the rest of its gang, which no policy need decide about for that. */
void gp_seat_dirty(struct seat *s)
{
	s->device->dirty = 1;
	look_again(s);
	if (gp_list_empty(&s->in_gang))
		return;
	gp_list_each(pos, &s->client->seats)
		look_again(gp_container(pos, struct seat, in_client));
}

static void count_until(struct seat *s, uint64_t now)
{
	struct gp_core_usage *u = &s->client->usage;

	if (s->now_is == SEAT_RUNS)
		u->ran_ns += now - s->is_since_ns;
	else if (s->now_is == SEAT_WAITS)
		u->waited_ns += now - s->is_since_ns;
	s->is_since_ns = now;
}

void gp_seat_use(struct seat *s, uint64_t now)
{
	uint32_t is = !s->active ? SEAT_IDLE : s->target == GP_STOP ? SEAT_WAITS : SEAT_RUNS;

	gp_usage_set(&s->usage, is == SEAT_RUNS, now);
	gp_stats_use(s, now);
	count_until(s, now);
	s->client->usage.waits += is == SEAT_WAITS && s->now_is != SEAT_WAITS;
	s->now_is = is;
}

void gp_seat_all_dirty(struct device *d)
{
	gp_list_each(pos, &d->seats)
		gp_seat_dirty(gp_container(pos, struct seat, in_device));
}

static void count_begin(struct seat *s)
{
	if (!is_online(s))
		return;
	if (gp_hint_open_for(s->client, s->device)) {
		s->hinted++;
		s->device->hinted++;
	} else {
		s->sampled++;
		s->device->sampled++;
	}
}

static void activate(struct seat *s, uint64_t now)
{
	s->active = 1;
	s->active_since_ns = now;
	s->device->online_active += (uint32_t)is_online(s);
	count_begin(s);
	gp_seat_use(s, now);
	gp_seat_update_background(s->device);
	gp_client_deadline(s->client, now);
	gp_runset_enqueue(s, now);
	gp_seat_dirty(s);
}

static void deactivate(struct seat *s, uint64_t now)
{
	s->active = 0;
	gp_seat_use(s, now);
	s->guarded = 0;
	gp_core_arm(s->device->core, &s->linger_timer, GP_NEVER);
	gp_core_arm(s->device->core, &s->guard_timer, GP_NEVER);
	s->device->online_active -= (uint32_t)is_online(s);
	gp_seat_update_background(s->device);
	gp_runset_dequeue(s, now);
	gp_seat_dirty(s);
}

void gp_seat_withdraw(struct seat *s, uint64_t now)
{
	if (s->active)
		deactivate(s, now);
	if (s->cannot_stop)
		gp_seat_cannot_stop(s, 0);
	leave(s);
	gp_park_forget(s, now);
}

void gp_seat_present(struct seat *s, uint64_t now)
{
	join(s);
	gp_seat_update(s, now);
}

void gp_seat_free(struct seat *s, uint64_t now)
{
	gp_seat_withdraw(s, now);
	gp_seat_release(s);
}

/* A held queue cannot use the device: its work must not keep others from it. One that is let run empty can.
 */
void gp_seat_count(struct queue *q, int sign)
{
	struct seat *s = q->seat;

	if (q->held && (q->have == GP_STOP || !q->gentle))
		return;
	if (q->activity == GP_ACTIVITY_BUSY)
		s->nbusy += (uint32_t)sign;
	else if (q->activity == GP_ACTIVITY_UNKNOWN)
		s->nunknown += (uint32_t)sign;
}

static int wants_device(const struct seat *s)
{
	if (is_online(s))
		return gp_hint_open_for(s->client, s->device) || s->nbusy;
	return s->nbusy || s->nunknown;
}

/* Online work that ended may be followed by more: wait for it before giving the device back. */
void gp_seat_update(struct seat *s, uint64_t now)
{
	struct gp_core *core = s->device->core;

	if (is_online(s))
		gp_park_count(s, now);
	if (wants_device(s)) {
		if (s->linger_timer.timer.place) {
			gp_core_arm(core, &s->linger_timer, GP_NEVER);
			s->active_since_ns = now;
			gp_client_deadline(s->client, now);
		}
		if (!s->active)
			activate(s, now);
		return;
	}
	if (!s->active)
		return;
	if (!is_online(s))
		deactivate(s, now);
	else if (!s->linger_timer.timer.place)
		gp_core_arm(core, &s->linger_timer, now + gp_core_linger(s->device));
}

/* Without queues it is there for its client's hints, which only an online client gives. */
void gp_seat_tidy(struct seat *s, uint64_t now)
{
	if (s->nqueues || (s->client->client_class == GP_CLASS_ONLINE && is_online(s) &&
			   gp_hint_open_for(s->client, s->device)))
		gp_seat_update(s, now);
	else
		gp_seat_free(s, now);
}

static void give_slice(struct seat *s, uint64_t now)
{
	struct gp_core *core = s->device->core;

	if (!s->active || s->guarded)
		return;
	gp_list_remove(&s->in_waiting);
	s->guarded = 1;
	gp_core_arm(core, &s->guard_timer, now + core->opts.starve_slice_ns);
	gp_seat_dirty(s);
}

/* To the rest of its gang. */
static void give_slice_elsewhere(struct seat *s, uint64_t now)
{
	gp_list_each(pos, &s->client->seats) {
		struct seat *other = gp_container(pos, struct seat, in_client);

		if (other->device != s->device && !gp_list_empty(&other->in_gang))
			give_slice(other, now);
	}
}

static void starve(struct seat *s, uint64_t now)
{
	s->device->starved++;
	gp_core_note(s->device, &(struct gp_core_note){ .kind = GP_NOTE_STARVED, .client = s->client->id });
	give_slice(s, now);
	if (!gp_list_empty(&s->in_gang))
		give_slice_elsewhere(s, now);
}

/*
 * Who cannot yield is stopped though it is in the run set: nobody else sees it wait.  Nor a gang, which may
 * wait for one device and then for another.  Nor those that cannot be stopped: where there are several, their
 * slices are so short that switching between them is all that is done.
 */
static int starves_unseen(const struct seat *s)
{
	if (s->target == GP_STOP && (s->cannot_yield || !gp_list_empty(&s->in_gang)))
		return 1;
	return s->cannot_stop && s->active && s->device->background && s->device->unstoppable > 1;
}

void gp_seat_watch(struct seat *s, uint64_t now)
{
	const struct gp_core_opts *o = &s->device->core->opts;

	if (s->guarded)
		return;
	if (!starves_unseen(s))
		gp_core_arm(s->device->core, &s->guard_timer, GP_NEVER);
	else if (!s->guard_timer.timer.place)
		gp_core_arm(s->device->core, &s->guard_timer, gp_time_add(now, o->max_starve_ns));
}

/* And all others of which nobody sees it that waited half as long, as gp_seat_starved() does. */
static void starve_unseen(struct seat *s, uint64_t now)
{
	uint64_t soon = gp_time_add(now, s->device->core->opts.max_starve_ns / 2);

	starve(s, now);
	gp_list_each(pos, &s->device->seats) {
		struct seat *other = gp_container(pos, struct seat, in_device);
		const struct gp_timer *t = &other->guard_timer.timer;

		if (!other->guarded && t->place && t->at_ns <= soon)
			starve(other, now);
	}
}

void gp_seat_fire(struct seat *s, uint32_t kind, uint64_t now)
{
	if (kind == TIMER_LINGER) {
		deactivate(s, now);
		gp_seat_tidy(s, now);
		return;
	}
	if (!s->guarded) {
		starve_unseen(s, now);
		return;
	}
	/* The guard's slice is over: back to waiting, at the end. */
	s->guarded = 0;
	gp_seat_dirty(s);
	gp_runset_waits(s, now);
}

/*
 * The one that waited longest, and all that waited half as long, get a slice, with the rest of their gangs:
 * together, so that online work is disturbed as often by a hundred clients as by one.
 */
void gp_seat_starved(struct device *d, uint64_t now)
{
	uint64_t limit = d->core->opts.max_starve_ns;

	gp_list_each_safe(pos, &d->waiting) {
		struct seat *s = gp_container(pos, struct seat, in_waiting);

		if (now - s->view.since_ns < limit - limit / 2)
			break;
		starve(s, now);
	}
}

/* Open requests: the oldest one's deadline is the client's. */
void gp_client_deadline(struct client *c, uint64_t now)
{
	gp_list_each(pos, &c->seats) {
		struct seat *s = gp_container(pos, struct seat, in_client);
		uint64_t oldest = gp_hint_oldest(c, s->device);
		uint64_t since = oldest != GP_NEVER ? oldest : s->active_since_ns;
		uint64_t deadline = c->slo_ns && s->active ? gp_time_add(since, c->slo_ns) : GP_NEVER;

		s->view.service_ns = c->service_ns;
		if (deadline == s->view.deadline_ns)
			continue;
		s->view.deadline_ns = deadline;
		gp_runset_changed(s, now);
	}
}

static void count_queues(const struct seat *s, struct gp_core_seat *ret, uint32_t *ret_held)
{
	*ret_held = 0;
	gp_list_each(pos, &s->queues) {
		const struct queue *q = gp_container(pos, struct queue, in_seat);

		ret->stopped += q->have == GP_STOP;
		ret->resuming += q->have == GP_STOP && q->target != GP_STOP;
		*ret_held += q->held;
	}
}

static uint32_t state_of(const struct seat *s, uint32_t held)
{
	if (held && held == s->nqueues)
		return GP_CLIENT_HELD;
	if (!s->active)
		return GP_CLIENT_IDLE;
	return s->target == GP_STOP ? GP_CLIENT_WAITING : GP_CLIENT_RUNNING;
}

static void fill(struct seat *s, struct gp_core_seat *ret, uint64_t now)
{
	uint32_t held;

	*ret = (struct gp_core_seat){ .client = s->client->id,
				      .slo_ns = s->client->slo_ns,
				      .hinted = s->hinted,
				      .sampled = s->sampled,
				      .device = s->device->id,
				      .client_class = s->view.client_class,
				      .weight = s->client->weight,
				      .queues = s->nqueues,
				      .hints = is_online(s) ? gp_hint_count(s->client, s->device) : 0,
				      .share_permille = gp_usage_permille(&s->usage, now) };
	count_queues(s, ret, &held);
	ret->state = state_of(s, held);
}

int gp_core_seats(struct gp_core *core, uint64_t client, struct gp_core_seat *ret, size_t n, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, client);
	size_t i = 0;

	if (!c)
		return -ENOENT;
	gp_list_each(pos, &c->seats) {
		if (i < n)
			fill(gp_container(pos, struct seat, in_client), &ret[i], now);
		i++;
	}
	return (int)i;
}

int gp_core_client_usage(struct gp_core *core, uint64_t client, struct gp_core_usage *ret, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, client);

	if (!c)
		return -ENOENT;
	gp_list_each(pos, &c->seats)
		count_until(gp_container(pos, struct seat, in_client), now);
	*ret = c->usage;
	return 0;
}
