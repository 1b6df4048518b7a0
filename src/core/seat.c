// SPDX-License-Identifier: MIT
/* When a client wants a device: activity, hints, linger, and the guard against starving. */
#include "core/internal.h"

#include <errno.h>
#include <stdlib.h>

struct seat *gp_seat_get(struct client *c, struct device *d)
{
	gp_list_each(pos, &c->seats) {
		struct seat *s = gp_container(pos, struct seat, in_client);

		if (s->device == d)
			return s;
	}
	return NULL;
}

static int is_online(const struct seat *s)
{
	return s->client->client_class == GP_CLASS_ONLINE;
}

static void describe(struct seat *s)
{
	struct gp_policy_client *v = &s->view;

	v->id = s->client->id;
	v->slo_ns = s->client->slo_ns;
	v->client_class = s->client->client_class;
	v->weight = s->client->weight;
	v->service_ns = s->client->service_ns;
}

/* Whether offline runs in the background depends on who else is registered and active. */
static void update_background(struct device *d)
{
	int demand = !d->core->opts.yield_on_demand || d->online_active;
	uint32_t background = (d->caps & GP_CAP_BACKGROUND) && d->online && demand;

	d->dirty = 1;
	if (background == d->background)
		return;
	d->background = background;
	gp_seat_all_dirty(d);
}

static void join(struct seat *s)
{
	describe(s);
	s->device->online += (uint32_t)is_online(s);
	update_background(s->device);
	gp_seat_dirty(s);
}

static void leave(struct seat *s)
{
	s->device->online -= (uint32_t)is_online(s);
	update_background(s->device);
}

struct seat *gp_seat_new(struct client *c, struct device *d)
{
	struct seat *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->client = c;
	s->device = d;
	s->view.deadline_ns = GP_NEVER;
	if (gp_host_seat_init(s) < 0 || gp_timers_reserve(&d->core->timers, SEAT_TIMERS) < 0) {
		free(s->view.priv);
		free(s);
		return NULL;
	}
	s->linger_timer = (struct timer){ .kind = TIMER_LINGER, .owner = s };
	s->guard_timer = (struct timer){ .kind = TIMER_GUARD_END, .owner = s };
	s->backoff_timer = (struct timer){ .kind = TIMER_BACKOFF, .owner = s };
	gp_list_init(&s->queues);
	gp_list_init(&s->unpaid);
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
	gp_list_remove(&s->in_client);
	gp_list_remove(&s->in_device);
	gp_list_remove(&s->in_dirty);
	gp_list_remove(&s->in_waiting);
	gp_list_remove(&s->in_payers);
	free(s->view.priv);
	free(s);
}

void gp_seat_dirty(struct seat *s)
{
	s->device->dirty = 1;
	gp_list_remove(&s->in_dirty);
	gp_list_append(&s->device->dirty_seats, &s->in_dirty);
}

void gp_seat_all_dirty(struct device *d)
{
	gp_list_each(pos, &d->seats)
		gp_seat_dirty(gp_container(pos, struct seat, in_device));
}

static void activate(struct seat *s, uint64_t now)
{
	s->active = 1;
	s->active_since_ns = now;
	s->device->online_active += (uint32_t)is_online(s);
	update_background(s->device);
	gp_client_deadline(s->client, now);
	gp_host_enqueue(s, now);
	gp_seat_dirty(s);
}

static void deactivate(struct seat *s, uint64_t now)
{
	s->active = 0;
	s->guarded = 0;
	gp_core_arm(s->device->core, &s->linger_timer, GP_NEVER);
	gp_core_arm(s->device->core, &s->guard_timer, GP_NEVER);
	s->device->online_active -= (uint32_t)is_online(s);
	update_background(s->device);
	gp_host_dequeue(s, now);
	gp_seat_dirty(s);
}

void gp_seat_withdraw(struct seat *s, uint64_t now)
{
	if (s->active)
		deactivate(s, now);
	leave(s);
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

static int wants_device(const struct seat *s)
{
	if (is_online(s))
		return s->client->hints || s->nbusy;
	return s->nbusy || s->nunknown;
}

/* Online work that ended may be followed by more: wait for it before giving the device back. */
void gp_seat_update(struct seat *s, uint64_t now)
{
	struct gp_core *core = s->device->core;

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

void gp_seat_fire(struct seat *s, uint32_t kind, uint64_t now)
{
	if (kind == TIMER_LINGER) {
		deactivate(s, now);
		return;
	}
	/* The guard's slice is over: back to waiting, at the end. */
	s->guarded = 0;
	gp_seat_dirty(s);
	gp_host_waits(s, now);
}

/* The one that waited longest, and all that waited as long, get a slice. */
void gp_seat_starved(struct device *d, uint64_t now)
{
	struct gp_core *core = d->core;

	gp_list_each_safe(pos, &d->waiting) {
		struct seat *s = gp_container(pos, struct seat, in_waiting);

		if (now - s->view.since_ns < core->opts.max_starve_ns)
			break;
		gp_list_remove(&s->in_waiting);
		s->guarded = 1;
		gp_core_arm(core, &s->guard_timer, now + core->opts.starve_slice_ns);
		gp_seat_dirty(s);
	}
}

/* Open requests: the oldest one's deadline is the client's. */
void gp_client_deadline(struct client *c, uint64_t now)
{
	gp_list_each(pos, &c->seats) {
		struct seat *s = gp_container(pos, struct seat, in_client);
		uint64_t since = c->hints ? c->hint_ns[c->first_hint] : s->active_since_ns;
		uint64_t deadline = c->slo_ns && s->active ? since + c->slo_ns : GP_NEVER;

		s->view.service_ns = c->service_ns;
		if (deadline == s->view.deadline_ns)
			continue;
		s->view.deadline_ns = deadline;
		gp_host_changed(s, now);
	}
}

static void update_hints(struct gp_core *core, struct client *c, uint64_t now)
{
	uint64_t oldest = c->hint_ns[c->first_hint];

	gp_core_arm(core, &c->hint_timer, c->hints ? oldest + core->opts.hint_expiry_ns : GP_NEVER);
	gp_list_each(pos, &c->seats)
		gp_seat_update(gp_container(pos, struct seat, in_client), now);
	gp_client_deadline(c, now);
}

int gp_core_hint_begin(struct gp_core *core, uint64_t client, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, client);

	if (!c)
		return -ENOENT;
	if (c->client_class != GP_CLASS_ONLINE)
		return -EPERM;
	if (c->hints == MAX_OPEN_HINTS)
		return -EBUSY;
	c->hint_ns[(c->first_hint + c->hints++) % MAX_OPEN_HINTS] = now;
	update_hints(core, c, now);
	return 0;
}

/* The oldest hint is the one that ends: requests of a client are taken to finish in order. */
static uint64_t pop_hint(struct client *c)
{
	uint64_t begin = c->hint_ns[c->first_hint];

	c->first_hint = (c->first_hint + 1) % MAX_OPEN_HINTS;
	c->hints--;
	return begin;
}

int gp_core_hint_end(struct gp_core *core, uint64_t client, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, client);
	uint64_t took;

	if (!c)
		return -ENOENT;
	if (!c->hints)
		return -EALREADY;
	took = now - pop_hint(c);
	c->service_ns = c->service_ns ? (7 * c->service_ns + took) / 8 : took;
	update_hints(core, c, now);
	return 0;
}

void gp_client_hint_expired(struct gp_core *core, struct client *c, uint64_t now)
{
	(void)pop_hint(c);
	update_hints(core, c, now);
}
