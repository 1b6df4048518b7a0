// SPDX-License-Identifier: MIT
#include "core/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/registry.h"

#define MS 1000000ull
#define MOST_LINGER_NS (20 * MS)
#define DEFAULT(field, value) (field) = (field) ? (field) : (value)

static void fill_defaults(struct gp_core_opts *o)
{
	DEFAULT(o->hint_expiry_ns, 1000 * MS);
	DEFAULT(o->max_starve_ns, 1000 * MS);
	DEFAULT(o->starve_slice_ns, 10 * MS);
	DEFAULT(o->quantum_ns, 250 * MS);
	DEFAULT(o->stall_ns, 250 * MS);
	DEFAULT(o->late_ns, 20 * MS);
	DEFAULT(o->lease_ns, 3000 * MS);
	DEFAULT(o->max_stops_per_s, 2000);
}

struct gp_core *gp_core_new(const struct gp_core_opts *opts)
{
	struct gp_core *core = calloc(1, sizeof(*core));

	if (!core)
		return NULL;
	if (opts)
		core->opts = *opts;
	fill_defaults(&core->opts);
	gp_list_init(&core->devices);
	if (gp_holds_new(&core->holds) < 0) {
		free(core);
		return NULL;
	}
	return core;
}

void gp_core_note(const struct device *d, const struct gp_core_note *note)
{
	struct gp_core_note full = *note;

	full.device = d->id;
	if (d->core->opts.note)
		d->core->opts.note(d->core->opts.note_arg, &full);
}

static void note_held(const struct queue *q)
{
	gp_core_note(q->seat->device,
		     &(struct gp_core_note){ .kind = q->held ? GP_NOTE_HELD : GP_NOTE_HOLD_ENDED,
					     .client = q->seat->client->id,
					     .queue = q->handle,
					     .unasked = q->seat->device->core->leases_end });
}

struct device *gp_core_find_device(struct gp_core *core, uint32_t id)
{
	gp_list_each(pos, &core->devices) {
		struct device *d = gp_container(pos, struct device, node);

		if (d->id == id)
			return d;
	}
	return NULL;
}

/* Setting cannot fail: whoever has a timer reserved room for it. */
void gp_core_arm(struct gp_core *core, struct timer *t, uint64_t at_ns)
{
	if (at_ns == GP_NEVER)
		gp_timer_cancel(&core->timers, &t->timer);
	else if (!t->timer.place || t->timer.at_ns != at_ns)
		(void)gp_timer_set(&core->timers, &t->timer, at_ns);
}

/*
 * Two requests in a row should cost one preemption: waiting for as long as stopping and
 * giving back took costs offline no more than doing both for nothing.  One that is slow to
 * stop does not keep the others waiting for long.
 */
uint64_t gp_core_linger(const struct device *d)
{
	uint64_t cycle = 2 * d->estimate[gp_act_mechanism(d)].cost_ns;

	if (d->core->opts.linger_ns)
		return d->core->opts.linger_ns;
	if (cycle > MOST_LINGER_NS)
		return MOST_LINGER_NS;
	return cycle > MS ? cycle : MS;
}

static void device_free(struct device *d)
{
	gp_runset_free(d);
	gp_timers_release(&d->core->timers, DEVICE_TIMERS);
	gp_list_remove(&d->node);
	free(d->wants);
	free(d);
}

static void init_timers(struct device *d)
{
	d->policy_timer = (struct timer){ .kind = TIMER_POLICY, .owner = d };
	d->stall_timer = (struct timer){ .kind = TIMER_STALL, .owner = d };
	d->limit_timer = (struct timer){ .kind = TIMER_LIMIT, .owner = d };
	d->starve_timer = (struct timer){ .kind = TIMER_STARVE, .owner = d };
	d->patience_timer = (struct timer){ .kind = TIMER_PATIENCE, .owner = d };
	d->park_timer = (struct timer){ .kind = TIMER_PARK, .owner = d };
}

int gp_core_device_add(struct gp_core *core, uint32_t id, uint32_t caps)
{
	struct device *d;
	int r;

	if (gp_core_find_device(core, id))
		return -EEXIST;
	d = calloc(1, sizeof(*d));
	if (!d || gp_timers_reserve(&core->timers, DEVICE_TIMERS) < 0) {
		free(d);
		return -ENOMEM;
	}
	d->core = core;
	d->id = id;
	d->caps = caps;
	d->credit = gp_act_full_credit(d);
	gp_list_init(&d->seats);
	gp_list_init(&d->dirty_seats);
	gp_list_init(&d->gang);
	gp_list_init(&d->waiting);
	gp_list_init(&d->pending);
	gp_list_init(&d->payers);
	gp_list_append(&core->devices, &d->node);
	init_timers(d);
	r = gp_runset_attach(d, &gp_policy_priority, 0);
	if (r < 0)
		device_free(d);
	return r;
}

int gp_core_device_caps(struct gp_core *core, uint32_t id, uint32_t caps)
{
	struct device *d = gp_core_find_device(core, id);

	if (!d)
		return -ENOENT;
	d->caps = caps;
	gp_seat_update_background(d);
	return 0;
}

int gp_core_device_remove(struct gp_core *core, uint32_t id, uint64_t now)
{
	struct device *d = gp_core_find_device(core, id);

	if (!d)
		return -ENOENT;
	gp_list_each(pos, &d->seats)
		if (gp_container(pos, struct seat, in_device)->nqueues)
			return -EBUSY;
	gp_list_each_safe(pos, &d->seats)
		gp_seat_free(gp_container(pos, struct seat, in_device), now); /* hints of no work keep it */
	device_free(d);
	return 0;
}

void gp_core_change_opts(struct gp_core *core, const struct gp_core_opts *opts)
{
	struct gp_core_opts changed = *opts;

	changed.note = core->opts.note;
	changed.name = core->opts.name;
	changed.note_arg = core->opts.note_arg;
	changed.cpu_ns = core->opts.cpu_ns;
	fill_defaults(&changed);
	core->opts = changed;
	gp_list_each(pos, &core->devices)
		gp_container(pos, struct device, node)->dirty = 1;
}

static void client_free(struct gp_core *core, struct client *c)
{
	gp_hint_drop_all(core, c);
	gp_timers_release(&core->timers, CLIENT_TIMERS);
	free(c->hints);
	free(c);
}

static int is_class(uint32_t client_class)
{
	return client_class <= GP_CLASS_ONLINE;
}

int gp_core_client_add(struct gp_core *core, const struct gp_core_client *client)
{
	struct client *c;
	int r;

	if (!is_class(client->client_class) || client->id >> 63)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c || gp_timers_reserve(&core->timers, CLIENT_TIMERS) < 0) {
		free(c);
		return -ENOMEM;
	}
	c->id = client->id;
	c->slo_ns = client->slo_ns;
	c->user = client->user;
	c->client_class = client->client_class;
	c->weight = client->weight ? client->weight : 100;
	c->hint_timer = (struct timer){ .kind = TIMER_HINT, .owner = c };
	gp_list_init(&c->seats);
	r = gp_map_put(&core->clients, c->id, c);
	if (r < 0)
		client_free(core, c);
	return r;
}

int gp_core_client_get(struct gp_core *core, uint64_t client, struct gp_core_client *ret)
{
	const struct client *c = gp_map_get(&core->clients, client);

	if (!c)
		return -ENOENT;
	*ret = (struct gp_core_client){ .id = c->id,
					.slo_ns = c->slo_ns,
					.user = c->user,
					.client_class = c->client_class,
					.weight = c->weight };
	return 0;
}

static void queue_free(struct gp_core *core, struct queue *q)
{
	gp_map_remove(&core->queues, q->handle);
	gp_holds_forget(core->holds, q->handle);
	gp_act_settled(q); /* whatever is under way, nobody waits for it */
	gp_timer_cancel(&core->timers, &q->retry_timer.timer);
	gp_timers_release(&core->timers, QUEUE_TIMERS);
	gp_list_remove(&q->in_seat);
	gp_list_remove(&q->in_pending);
	free(q);
}

int gp_core_client_remove(struct gp_core *core, uint64_t client, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, client);

	if (!c)
		return -ENOENT;
	gp_list_each_safe(pos, &c->seats) {
		struct seat *s = gp_container(pos, struct seat, in_client);

		gp_seat_withdraw(s, now); /* the policy lets go of it while it is whole */
		gp_list_each_safe(qpos, &s->queues)
			queue_free(core, gp_container(qpos, struct queue, in_seat));
		gp_seat_release(s);
	}
	gp_map_remove(&core->clients, client); /* last: a policy names it while it lets go */
	client_free(core, c);
	gp_core_follow_holds(core, now);
	return 0;
}

/* NULL: no memory. */
static struct seat *seat_for(struct client *c, struct device *d, uint32_t own_class)
{
	uint32_t client_class = own_class ? own_class : c->client_class;
	struct seat *s = gp_seat_get(c, d, client_class);

	return s ? s : gp_seat_new(c, d, client_class);
}

static struct queue *queue_new(struct gp_core *core, uint64_t handle)
{
	struct queue *q = calloc(1, sizeof(*q));

	if (!q || gp_timers_reserve(&core->timers, QUEUE_TIMERS) < 0) {
		free(q);
		return NULL;
	}
	if (gp_map_put(&core->queues, handle, q) < 0) {
		gp_timers_release(&core->timers, QUEUE_TIMERS);
		free(q);
		return NULL;
	}
	q->handle = handle;
	return q;
}

/* A queue of a stopped client is born stopped. */
static void enter(struct queue *q, struct seat *s, uint64_t now)
{
	q->seat = s;
	gp_list_append(&s->queues, &q->in_seat);
	s->nqueues++;
	s->nunknown++;
	gp_seat_update(s, now);
	gp_act_queue(q, now);
}

int gp_core_queue_add(struct gp_core *core, const struct gp_core_queue *queue, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, queue->client);
	struct device *d = gp_core_find_device(core, queue->device);
	struct queue *q;
	struct seat *s;

	if (gp_map_get(&core->queues, queue->queue))
		return -EEXIST;
	if (!c || !d)
		return -ENOENT;
	if (!is_class(queue->client_class))
		return -EINVAL;
	s = seat_for(c, d, queue->client_class);
	q = s ? queue_new(core, queue->queue) : NULL;
	if (!q) {
		if (s)
			gp_seat_tidy(s, now);
		return -ENOMEM;
	}
	q->own_class = queue->client_class;
	q->retry_timer = (struct timer){ .kind = TIMER_RETRY, .owner = q };
	gp_list_init(&q->in_pending);
	enter(q, s, now);
	return 0;
}

int gp_core_queue_remove(struct gp_core *core, uint64_t handle, uint64_t now)
{
	struct queue *q = gp_map_get(&core->queues, handle);
	struct seat *s;

	if (!q)
		return -ENOENT;
	s = q->seat;
	gp_seat_count(q, -1);
	queue_free(core, q);
	gp_core_follow_holds(core, now);
	s->nqueues--;
	gp_seat_tidy(s, now);
	return 0;
}

/* With all that is counted of it. Both seats are to be looked at then. */
static void move(struct queue *q, struct seat *to)
{
	gp_seat_count(q, -1);
	q->seat->nqueues--;
	gp_list_remove(&q->in_pending); /* its old seat's turn to pay is not the new one's */
	gp_list_remove(&q->in_seat);
	gp_list_append(&to->queues, &q->in_seat);
	to->nqueues++;
	q->seat = to;
	gp_seat_count(q, 1);
}

int gp_core_queue_class(struct gp_core *core, uint64_t queue, uint32_t client_class, uint64_t now)
{
	struct queue *q = gp_map_get(&core->queues, queue);
	struct seat *from, *to;

	if (!q)
		return -ENOENT;
	if (!is_class(client_class))
		return -EINVAL;
	from = q->seat;
	to = seat_for(from->client, from->device, client_class);
	if (!to)
		return -ENOMEM;
	q->own_class = client_class;
	if (to == from)
		return 0;
	move(q, to);
	gp_seat_update(to, now);
	gp_act_queue(q, now);
	gp_seat_tidy(from, now);
	return 0;
}

static int is_all_its_clients(const struct seat *s)
{
	gp_list_each(pos, &s->queues)
		if (gp_container(pos, struct queue, in_seat)->own_class)
			return 0;
	return 1;
}

static int has_its_clients(const struct seat *s)
{
	gp_list_each(pos, &s->queues)
		if (!gp_container(pos, struct queue, in_seat)->own_class)
			return 1;
	return 0;
}

/* The queues without a class of their own become this; the seats are the policy's no more. */
static int change_class(struct client *c, uint32_t client_class, uint64_t now)
{
	gp_list_each_safe(pos, &c->seats) {
		struct seat *s = gp_container(pos, struct seat, in_client);
		struct seat *to = gp_seat_get(c, s->device, client_class);

		if (to == s || (!to && is_all_its_clients(s))) {
			s->view.client_class = client_class;
			continue;
		}
		if (!to && !has_its_clients(s))
			continue;
		if (!to) {
			to = gp_seat_new(c, s->device, client_class);
			if (!to)
				return -ENOMEM;
			gp_seat_withdraw(to, now); /* as the others are, while this goes on */
		}
		gp_list_each_safe(qpos, &s->queues)
			if (!gp_container(qpos, struct queue, in_seat)->own_class)
				move(gp_container(qpos, struct queue, in_seat), to);
	}
	return 0;
}

static void present_all(struct client *c, uint64_t now)
{
	gp_list_each_safe(pos, &c->seats) {
		struct seat *s = gp_container(pos, struct seat, in_client);

		gp_seat_present(s, now);
		gp_list_each(qpos, &s->queues)
			gp_act_queue(gp_container(qpos, struct queue, in_seat), now);
		gp_seat_tidy(s, now);
	}
}

/* Every seat leaves the policy with the old values and comes back with the new ones. */
int gp_core_client_change(struct gp_core *core, const struct gp_core_client *client, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, client->id);
	int r = 0;

	if (!c)
		return -ENOENT;
	if (!is_class(client->client_class))
		return -EINVAL;
	gp_list_each(pos, &c->seats)
		gp_seat_withdraw(gp_container(pos, struct seat, in_client), now);
	c->slo_ns = client->slo_ns;
	c->user = client->user;
	c->weight = client->weight ? client->weight : 100;
	if (c->client_class != client->client_class)
		r = change_class(c, client->client_class, now);
	c->client_class = client->client_class;
	if (!gp_hint_may(c))
		gp_hint_drop_all(core, c);
	present_all(c, now);
	return r;
}

int gp_core_queue_reach(struct gp_core *core, uint64_t queue, enum gp_reach reach, uint64_t now)
{
	struct queue *q = gp_map_get(&core->queues, queue);

	if (!q)
		return -ENOENT;
	q->reach = reach;
	gp_act_queue(q, now);
	return 0;
}

int gp_core_activity(struct gp_core *core, uint64_t queue, uint32_t activity, uint64_t now)
{
	struct queue *q = gp_map_get(&core->queues, queue);

	if (!q)
		return -ENOENT;
	if (activity > GP_ACTIVITY_BUSY)
		return -EINVAL;
	if (activity == q->activity)
		return 0;
	gp_seat_count(q, -1);
	q->activity = activity;
	gp_seat_count(q, 1);
	gp_seat_update(q->seat, now);
	return 0;
}

void gp_core_follow_holds(struct gp_core *core, uint64_t now)
{
	uint64_t handle;

	while (gp_holds_changed(core->holds, &handle)) {
		struct queue *q = gp_map_get(&core->queues, handle);
		uint32_t held = (uint32_t)gp_holds_held(core->holds, handle);

		if (!q || q->held == held)
			continue;
		gp_seat_count(q, -1);
		q->held = held;
		gp_seat_count(q, 1);
		note_held(q);
		gp_seat_update(q->seat, now);
		gp_act_queue(q, now);
	}
}

int gp_core_hold(struct gp_core *core, const struct gp_hold *hold, uint64_t now)
{
	struct queue *q = gp_map_get(&core->queues, hold->queue);
	int r;

	if (!q)
		return -ENOENT;
	if (q->reach == GP_REACH_NONE || !gp_act_can_stop(q->seat->device))
		return -ENOTSUP;
	r = gp_holds_add(core->holds, hold);
	if (r < 0)
		return r;
	gp_seat_count(q, -1);
	q->gentle = hold->gentle && (q->gentle || !q->held);
	gp_seat_count(q, 1);
	gp_core_follow_holds(core, now);
	return 0;
}

int gp_core_release(struct gp_core *core, uint64_t queue, struct gp_whose whose, uint64_t now)
{
	const struct queue *q = gp_map_get(&core->queues, queue);

	if (!q)
		return -ENOENT;
	gp_holds_release(core->holds, queue, q->seat->client->id, whose);
	gp_core_follow_holds(core, now);
	return 0;
}

int gp_core_adopt(struct gp_core *core, uint64_t queue, uint64_t now)
{
	const struct queue *q = gp_map_get(&core->queues, queue);
	int r;

	if (!q)
		return -ENOENT;
	r = gp_holds_adopt(core->holds, queue, q->seat->client->id);
	gp_core_follow_holds(core, now);
	return r;
}

void gp_core_holder_gone(struct gp_core *core, uint64_t holder, uint64_t now)
{
	gp_holds_close(core->holds, holder);
	gp_core_follow_holds(core, now);
}

void gp_core_free_client(struct gp_core *core, uint64_t client, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, client);

	gp_holds_forget_client(core->holds, client);
	if (!c)
		return;
	gp_list_each(pos, &c->seats)
		gp_list_each(qpos, &gp_container(pos, struct seat, in_client)->queues)
			gp_holds_forget(core->holds, gp_container(qpos, struct queue, in_seat)->handle);
	gp_core_follow_holds(core, now);
}

const struct gp_holds *gp_core_holds(const struct gp_core *core)
{
	return core->holds;
}

int gp_core_set_policy(struct gp_core *core, uint32_t device, const struct gp_policy_ops *ops, uint64_t now)
{
	struct device *d = gp_core_find_device(core, device);

	return d ? gp_runset_attach(d, ops, now) : -ENOENT;
}

static void fire(struct gp_core *core, struct timer *t, uint64_t now)
{
	struct device *d = t->owner;

	switch (t->kind) {
	case TIMER_LINGER:
	case TIMER_GUARD_END:
		gp_seat_fire(t->owner, t->kind, now);
		break;
	case TIMER_HINT:
		gp_hint_expired(core, t->owner, now);
		break;
	case TIMER_RETRY:
		gp_act_queue(t->owner, now);
		break;
	case TIMER_STALL:
		gp_runset_stalled(d, now);
		break;
	case TIMER_STARVE:
		gp_seat_starved(d, now);
		break;
	case TIMER_LIMIT:
		gp_act_pay_all(d, now);
		break;
	case TIMER_BACKOFF:
		gp_act_backed_off(t->owner, now);
		break;
	case TIMER_POLICY:
		d->dirty = 1;
		break;
	case TIMER_PARK:
		gp_park_over(d, now);
		break;
	case TIMER_PATIENCE:
		break; /* whoever waits in line is handed out by the gp_core_take() that follows */
	}
}

uint64_t gp_core_run(struct gp_core *core, uint64_t now)
{
	uint64_t lease_end;
	struct gp_timer *t;

	gp_holds_expire(core->holds, now);
	core->leases_end = 1;
	gp_core_follow_holds(core, now);
	core->leases_end = 0;
	while ((t = gp_timers_first(&core->timers)) && t->at_ns <= now) {
		gp_timer_cancel(&core->timers, t);
		fire(core, (struct timer *)t, now);
	}
	gp_list_each(pos, &core->devices) {
		struct device *d = gp_container(pos, struct device, node);

		if (d->dirty) {
			gp_park_update(d, now); /* what allows it may have changed */
			gp_runset_decide(d, now);
		}
		d->dirty = 0;
	}
	/* Then all of them: a gang on one device follows what was decided on another. */
	gp_list_each(pos, &core->devices) {
		struct device *d = gp_container(pos, struct device, node);

		gp_act_reconcile(d, now);
		d->dirty = 0; /* what deciding made dirty was just reconciled */
	}
	lease_end = gp_holds_next(core->holds);
	return lease_end < gp_timers_next(&core->timers) ? lease_end : gp_timers_next(&core->timers);
}

static void free_seats(struct gp_core *core, struct device *d)
{
	gp_list_each_safe(pos, &d->seats) {
		struct seat *s = gp_container(pos, struct seat, in_device);

		gp_list_each_safe(qpos, &s->queues)
			queue_free(core, gp_container(qpos, struct queue, in_seat));
		gp_seat_release(s);
	}
}

struct gp_core *gp_core_free(struct gp_core *core)
{
	if (!core)
		return NULL;
	gp_list_each_safe(pos, &core->devices) {
		struct device *d = gp_container(pos, struct device, node);

		gp_runset_free(d); /* the policy goes first: it may look at its clients */
		free_seats(core, d);
		device_free(d);
	}
	for (size_t i = 0; i < core->clients.size; i++)
		if (core->clients.slots[i].value)
			client_free(core, core->clients.slots[i].value);
	gp_holds_free(core->holds);
	gp_map_free(&core->queues);
	gp_map_free(&core->clients);
	gp_timers_free(&core->timers);
	free(core);
	return NULL;
}
