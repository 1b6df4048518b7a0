// SPDX-License-Identifier: MIT
#include "core/internal.h"

#include <errno.h>
#include <stdlib.h>

#define MS 1000000ull
#define DEFAULT(field, value) (field) = (field) ? (field) : (value)

static void fill_defaults(struct gp_core_opts *o)
{
	DEFAULT(o->hint_expiry_ns, 1000 * MS);
	DEFAULT(o->max_starve_ns, 1000 * MS);
	DEFAULT(o->starve_slice_ns, 10 * MS);
	DEFAULT(o->quantum_ns, 250 * MS);
	DEFAULT(o->stall_ns, 250 * MS);
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
	return core;
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
 * giving back took costs offline no more than doing both for nothing.
 */
uint64_t gp_core_linger(const struct device *d)
{
	uint64_t cycle = 2 * d->estimate[gp_act_mechanism(d)].cost_ns;

	if (d->core->opts.linger_ns)
		return d->core->opts.linger_ns;
	return cycle > MS ? cycle : MS;
}

static void device_free(struct device *d)
{
	gp_host_free(d);
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
	gp_list_init(&d->waiting);
	gp_list_init(&d->pending);
	gp_list_init(&d->payers);
	gp_list_append(&core->devices, &d->node);
	init_timers(d);
	r = gp_host_attach(d, &gp_policy_priority, 0);
	if (r < 0)
		device_free(d);
	return r;
}

static void client_free(struct gp_core *core, struct client *c)
{
	gp_timer_cancel(&core->timers, &c->hint_timer.timer);
	gp_timers_release(&core->timers, CLIENT_TIMERS);
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

	if (!is_class(client->client_class))
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c || gp_timers_reserve(&core->timers, CLIENT_TIMERS) < 0) {
		free(c);
		return -ENOMEM;
	}
	c->id = client->id;
	c->slo_ns = client->slo_ns;
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
	*ret = (struct gp_core_client){
		.id = c->id, .slo_ns = c->slo_ns, .client_class = c->client_class, .weight = c->weight
	};
	return 0;
}

/* Every seat leaves the policy with the old values and comes back with the new ones. */
int gp_core_client_change(struct gp_core *core, const struct gp_core_client *client, uint64_t now)
{
	struct client *c = gp_map_get(&core->clients, client->id);

	if (!c)
		return -ENOENT;
	if (!is_class(client->client_class))
		return -EINVAL;
	gp_list_each(pos, &c->seats)
		gp_seat_withdraw(gp_container(pos, struct seat, in_client), now);
	c->slo_ns = client->slo_ns;
	c->client_class = client->client_class;
	c->weight = client->weight ? client->weight : 100;
	if (c->client_class != GP_CLASS_ONLINE) {
		c->hints = 0;
		gp_core_arm(core, &c->hint_timer, GP_NEVER);
	}
	gp_list_each(pos, &c->seats)
		gp_seat_present(gp_container(pos, struct seat, in_client), now);
	return 0;
}

static void queue_free(struct gp_core *core, struct queue *q)
{
	gp_map_remove(&core->queues, q->handle);
	gp_act_settled(q); /* whatever is under way, nobody waits for it */
	gp_timer_cancel(&core->timers, &q->hold_timer.timer);
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
	return 0;
}

static struct seat *seat_of(struct gp_core *core, uint64_t client, uint32_t device, int *ret_error)
{
	struct client *c = gp_map_get(&core->clients, client);
	struct device *d = gp_core_find_device(core, device);
	struct seat *s;

	*ret_error = -ENOENT;
	if (!c || !d)
		return NULL;
	s = gp_seat_get(c, d);
	*ret_error = -ENOMEM;
	return s ? s : gp_seat_new(c, d);
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

int gp_core_queue_add(struct gp_core *core, uint64_t handle, uint64_t client, uint32_t device, uint64_t now)
{
	struct queue *q;
	struct seat *s;
	int r;

	if (gp_map_get(&core->queues, handle))
		return -EEXIST;
	s = seat_of(core, client, device, &r);
	if (!s)
		return r;
	q = queue_new(core, handle);
	if (!q) {
		if (!s->nqueues)
			gp_seat_free(s, now);
		return -ENOMEM;
	}
	q->seat = s;
	q->hold_timer = (struct timer){ .kind = TIMER_HOLD, .owner = q };
	q->retry_timer = (struct timer){ .kind = TIMER_RETRY, .owner = q };
	gp_list_init(&q->in_pending);
	gp_list_append(&s->queues, &q->in_seat);
	s->nqueues++;
	s->nunknown++;
	gp_seat_update(s, now);
	gp_act_queue(q, now); /* a queue of a stopped client is born stopped */
	return 0;
}

/* A held queue cannot use the device: its work must not keep others from it. */
static void count_activity(struct queue *q, int sign)
{
	struct seat *s = q->seat;

	if (q->held)
		return;
	if (q->activity == GP_ACTIVITY_BUSY)
		s->nbusy += (uint32_t)sign;
	else if (q->activity == GP_ACTIVITY_UNKNOWN)
		s->nunknown += (uint32_t)sign;
}

int gp_core_queue_remove(struct gp_core *core, uint64_t handle, uint64_t now)
{
	struct queue *q = gp_map_get(&core->queues, handle);
	struct seat *s;

	if (!q)
		return -ENOENT;
	s = q->seat;
	count_activity(q, -1);
	queue_free(core, q);
	if (--s->nqueues)
		gp_seat_update(s, now);
	else
		gp_seat_free(s, now);
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
	count_activity(q, -1);
	q->activity = activity;
	count_activity(q, 1);
	gp_seat_update(q->seat, now);
	return 0;
}

int gp_core_hold(struct gp_core *core, uint64_t queue, uint64_t until_ns, uint64_t now)
{
	struct queue *q = gp_map_get(&core->queues, queue);

	if (!q)
		return -ENOENT;
	if (!gp_act_can_stop(q->seat->device))
		return -ENOTSUP;
	count_activity(q, -1);
	q->held = 1;
	gp_core_arm(core, &q->hold_timer, until_ns);
	gp_seat_update(q->seat, now);
	gp_act_queue(q, now);
	return 0;
}

int gp_core_release(struct gp_core *core, uint64_t queue, uint64_t now)
{
	struct queue *q = gp_map_get(&core->queues, queue);

	if (!q)
		return -ENOENT;
	if (!q->held)
		return 0;
	q->held = 0;
	count_activity(q, 1);
	gp_core_arm(core, &q->hold_timer, GP_NEVER);
	gp_seat_update(q->seat, now);
	gp_act_queue(q, now);
	return 0;
}

int gp_core_set_policy(struct gp_core *core, uint32_t device, const struct gp_policy_ops *ops, uint64_t now)
{
	struct device *d = gp_core_find_device(core, device);

	return d ? gp_host_attach(d, ops, now) : -ENOENT;
}

static void fire(struct gp_core *core, struct timer *t, uint64_t now)
{
	struct queue *q = t->owner;
	struct device *d = t->owner;

	switch (t->kind) {
	case TIMER_LINGER:
	case TIMER_GUARD_END:
		gp_seat_fire(t->owner, t->kind, now);
		break;
	case TIMER_HINT:
		gp_client_hint_expired(core, t->owner, now);
		break;
	case TIMER_HOLD:
		(void)gp_core_release(core, q->handle, now);
		break;
	case TIMER_RETRY:
		gp_act_queue(q, now);
		break;
	case TIMER_STALL:
		gp_host_stalled(d, now);
		break;
	case TIMER_STARVE:
		gp_seat_starved(d, now);
		break;
	case TIMER_LIMIT:
		gp_act_pay_all(d, now);
		break;
	case TIMER_BACKOFF:
		gp_act_pay(t->owner, now);
		break;
	case TIMER_POLICY:
		d->dirty = 1;
		break;
	case TIMER_PATIENCE:
		break; /* whoever waits in line is handed out by the gp_core_take() that follows */
	}
}

uint64_t gp_core_run(struct gp_core *core, uint64_t now)
{
	struct gp_timer *t;

	while ((t = gp_timers_first(&core->timers)) && t->at_ns <= now) {
		gp_timer_cancel(&core->timers, t);
		fire(core, (struct timer *)t, now);
	}
	gp_list_each(pos, &core->devices) {
		struct device *d = gp_container(pos, struct device, node);

		if (!d->dirty)
			continue;
		gp_host_decide(d, now);
		gp_act_reconcile(d, now);
		d->dirty = 0; /* what deciding made dirty was just reconciled */
	}
	return gp_timers_next(&core->timers);
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

		gp_host_free(d); /* the policy goes first: it may look at its clients */
		free_seats(core, d);
		device_free(d);
	}
	for (size_t i = 0; i < core->clients.size; i++)
		if (core->clients.slots[i].value)
			client_free(core, core->clients.slots[i].value);
	gp_map_free(&core->queues);
	gp_map_free(&core->clients);
	gp_timers_free(&core->timers);
	free(core);
	return NULL;
}
