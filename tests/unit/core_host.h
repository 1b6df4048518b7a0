/* SPDX-License-Identifier: MIT */
/*
 * A host for the core, in virtual time: it takes the actions, answers each want after a
 * given latency or with a given error, and keeps what the device does.  What holds for
 * every action is checked here: one want per queue under way, one device per list.
 */
#ifndef GP_TESTS_CORE_HOST_H
#define GP_TESTS_CORE_HOST_H

#include "unit.h"

#include <errno.h>
#include <string.h>

#include "core/core.h"
#include "policy/registry.h"

#define US 1000ull
#define MS 1000000ull
#define SEC 1000000000ull

#define HOST_QUEUES 1100
#define HOST_DEVICES 3

#define CAPS_STOP (GP_CAP_INTERRUPT | GP_CAP_BATCH)
#define CAPS_YIELD (CAPS_STOP | GP_CAP_BACKGROUND)
#define CAPS_TURNS (CAPS_YIELD | GP_CAP_TAKES_TURNS)

struct host_queue {
	uint64_t handle; /* 0: free */
	uint32_t have;   /* what the device does: enum gp_want_kind */
	uint32_t asked;
	uint32_t under_way;
	uint32_t doubtful; /* the core does not know what it has */
	int32_t status;    /* what the answer will be */
	uint64_t began_ns, due_ns;
	uint64_t run_ns; /* time not stopped, up to since_ns */
	uint64_t since_ns;
};

struct host_count {
	uint32_t actions, stops, runs, backgrounds;
	uint32_t wants; /* of the last action */
	uint32_t mechanism;
	uint64_t lease_ns;
	uint64_t at_ns; /* of the last action */
};

struct host {
	struct gp_core *core;
	uint64_t now;
	uint64_t next_ns; /* when the core wants to be called */
	uint64_t stop_ns[GP_MECH_COUNT];
	uint64_t resume_ns;
	int32_t stop_error[GP_MECH_COUNT]; /* 0: it works */
	int32_t resume_error;
	uint64_t only_queue; /* errors are for this one alone; 0: for all */
	uint32_t claims_no_time;
	uint32_t overtakes[HOST_DEVICES];
	int used; /* places at most */
	struct host_queue queues[HOST_QUEUES];
	struct host_count count[HOST_DEVICES];
};

static inline void host_init(struct host *h, const struct gp_core_opts *opts)
{
	*h = (struct host){ .now = SEC, .resume_ns = 50 * US };
	for (int i = 0; i < GP_MECH_COUNT; i++)
		h->stop_ns[i] = 100 * US;
	h->core = gp_core_new(opts);
	assert_non_null(h->core);
}

static inline void host_free(struct host *h)
{
	assert_null(gp_core_free(h->core));
}

static inline struct host_queue *host_find(struct host *h, uint64_t handle)
{
	for (int i = 0; i < h->used; i++)
		if (h->queues[i].handle == handle)
			return &h->queues[i];
	return NULL;
}

static inline struct host_queue *host_place(struct host *h)
{
	struct host_queue *q = host_find(h, 0);

	if (!q && h->used < HOST_QUEUES)
		q = &h->queues[h->used++];
	return q;
}

static inline void device(struct host *h, uint32_t id, uint32_t caps)
{
	h->overtakes[id] = !!(caps & GP_CORE_OVERTAKES);
	assert_int_equal(gp_core_device_add(h->core, id, caps), 0);
}

static inline void client_with(struct host *h, uint64_t id, uint32_t class, uint64_t slo_ns, uint32_t weight)
{
	struct gp_core_client c = { .id = id, .client_class = class, .slo_ns = slo_ns, .weight = weight };

	assert_int_equal(gp_core_client_add(h->core, &c), 0);
}

static inline int core_queue_add(struct gp_core *core, uint64_t handle, uint64_t client, uint32_t dev,
				 uint64_t now)
{
	const struct gp_core_queue q = { .queue = handle, .client = client, .device = dev };

	return gp_core_queue_add(core, &q, now);
}

static inline int core_hint_begin(struct gp_core *core, uint64_t client, uint64_t now)
{
	const struct gp_core_hint hint = { .client = client, .device = GP_ALL_DEVICES };

	return gp_core_hint_begin(core, &hint, now);
}

static inline int core_hint_end(struct gp_core *core, uint64_t client, uint64_t now)
{
	const struct gp_core_hint hint = { .client = client, .device = GP_ALL_DEVICES };

	return gp_core_hint_end(core, &hint, now);
}

/* One tool holds it. */
static inline int core_hold(struct gp_core *core, uint64_t handle, uint64_t until_ns, uint64_t now)
{
	const struct gp_hold hold = {
		.holder = 1, .owner = 2, .queue = handle, .until_ns = until_ns, .most = UINT32_MAX
	};

	return gp_core_hold(core, &hold, now);
}

static inline int core_release(struct gp_core *core, uint64_t handle, uint64_t now)
{
	return gp_core_release(core, handle, GP_EVERYBODYS, now);
}

static inline void queue(struct host *h, uint64_t handle, uint64_t client, uint32_t dev)
{
	struct host_queue *q = host_place(h);

	assert_non_null(q);
	*q = (struct host_queue){ .handle = handle, .since_ns = h->now };
	assert_int_equal(core_queue_add(h->core, handle, client, dev, h->now), 0);
}

static inline void forget_queue(struct host *h, uint64_t handle)
{
	*host_find(h, handle) = (struct host_queue){ 0 };
}

static inline void remove_queue(struct host *h, uint64_t handle)
{
	assert_int_equal(gp_core_queue_remove(h->core, handle, h->now), 0);
	forget_queue(h, handle);
}

/* One client with one queue on device 0; the queue's handle is ten times the client's. */
static inline void online(struct host *h, uint64_t id)
{
	client_with(h, id, GP_CLASS_ONLINE, 0, 0);
	queue(h, 10 * id, id, 0);
}

static inline void offline(struct host *h, uint64_t id)
{
	client_with(h, id, GP_CLASS_OFFLINE, 0, 0);
	queue(h, 10 * id, id, 0);
}

static inline void busy(struct host *h, uint64_t handle)
{
	assert_int_equal(gp_core_activity(h->core, handle, GP_ACTIVITY_BUSY, h->now), 0);
}

static inline void idle(struct host *h, uint64_t handle)
{
	assert_int_equal(gp_core_activity(h->core, handle, GP_ACTIVITY_IDLE, h->now), 0);
}

static inline void hint(struct host *h, uint64_t client)
{
	assert_int_equal(core_hint_begin(h->core, client, h->now), 0);
}

static inline void hint_over(struct host *h, uint64_t client)
{
	assert_int_equal(core_hint_end(h->core, client, h->now), 0);
}

static inline struct gp_core_status status_of(struct host *h, uint32_t dev)
{
	struct gp_core_status s;

	assert_int_equal(gp_core_device_status(h->core, dev, &s), 0);
	return s;
}

static inline struct gp_core_queue_status queue_status(struct host *h, uint64_t handle)
{
	struct gp_core_queue_status s;

	assert_int_equal(gp_core_queue_status(h->core, handle, &s), 0);
	return s;
}

static inline uint32_t state_of(struct host *h, uint64_t handle)
{
	return queue_status(h, handle).state;
}

static inline uint32_t have(struct host *h, uint64_t handle)
{
	return host_find(h, handle)->have;
}

static inline void host_accept_want(struct host *h, const struct gp_action *a, const struct gp_want *w)
{
	struct host_queue *q = host_find(h, w->queue);
	int stop = w->want == GP_STOP;
	int32_t error = stop ? h->stop_error[a->opts.mechanism] : h->resume_error;

	assert_non_null(q);
	assert_true(!q->under_way || (q->asked == GP_STOP && h->overtakes[a->device]));
	assert_true(q->under_way || q->doubtful || w->want != q->have);
	q->doubtful |= q->under_way; /* whether it had stopped, nobody knows */
	assert_int_equal(queue_status(h, w->queue).device, a->device);
	q->under_way = 1;
	q->asked = w->want;
	q->status = h->only_queue && h->only_queue != w->queue ? 0 : error;
	q->began_ns = h->now;
	q->due_ns = h->now + (stop ? h->stop_ns[a->opts.mechanism] : h->resume_ns);
}

static inline void host_accept(struct host *h, const struct gp_action *a)
{
	struct host_count *c = &h->count[a->device];
	uint32_t stops = 0;

	assert_true(a->nwants > 0);
	assert_int_equal(a->opts.size, sizeof(a->opts));
	for (size_t i = 0; i < a->nwants; i++) {
		host_accept_want(h, a, &a->wants[i]);
		stops += a->wants[i].want == GP_STOP;
		c->runs += a->wants[i].want == GP_RUN;
		c->backgrounds += a->wants[i].want == GP_BACKGROUND;
	}
	assert_int_equal(a->stops, stops);
	assert_int_equal(a->opts.mechanism != GP_MECH_NONE, stops != 0);
	c->stops += stops;
	c->actions++;
	c->wants = (uint32_t)a->nwants;
	c->lease_ns = a->opts.lease_ns;
	c->at_ns = h->now;
	if (stops)
		c->mechanism = a->opts.mechanism;
}

/* One step of the core, at the time it is. */
static inline void settle(struct host *h)
{
	struct gp_action action;

	h->next_ns = gp_core_run(h->core, h->now);
	while (gp_core_take(h->core, &action, h->now))
		host_accept(h, &action);
}

/* The device is, from now on, something else. */
static inline void host_change(struct host *h, struct host_queue *q, uint32_t want)
{
	if (q->have != GP_STOP)
		q->run_ns += h->now - q->since_ns;
	q->since_ns = h->now;
	q->have = want;
}

static inline uint64_t run_time(struct host *h, uint64_t handle)
{
	const struct host_queue *q = host_find(h, handle);

	return q->run_ns + (q->have != GP_STOP ? h->now - q->since_ns : 0);
}

static inline void host_answer(struct host *h, struct host_queue *q)
{
	struct gp_done done = { .want = { .queue = q->handle, .want = q->asked, .status = q->status },
				.latency_ns = h->claims_no_time ? 0 : h->now - q->began_ns,
				.doubtful = q->status == -ETIMEDOUT };

	q->under_way = 0;
	if (q->asked == GP_STOP)
		q->doubtful = q->status == -ETIMEDOUT;
	else if (!q->status)
		q->doubtful = 0;
	if (!q->status)
		host_change(h, q, q->asked);
	assert_int_equal(gp_core_done(h->core, &done, h->now), 0);
}

/* What nobody asked for: a lease ended. */
static inline void host_unasked(struct host *h, uint64_t handle, uint32_t want)
{
	struct gp_done done = { .want = { .queue = handle, .want = want } };

	host_change(h, host_find(h, handle), want);
	assert_int_equal(gp_core_done(h->core, &done, h->now), 0);
}

static inline uint64_t host_next(const struct host *h)
{
	uint64_t next = h->next_ns;

	for (int i = 0; i < h->used; i++)
		if (h->queues[i].under_way && h->queues[i].due_ns < next)
			next = h->queues[i].due_ns;
	return next;
}

static inline void host_answer_due(struct host *h)
{
	for (int i = 0; i < h->used; i++)
		if (h->queues[i].under_way && h->queues[i].due_ns <= h->now)
			host_answer(h, &h->queues[i]);
}

/* Step after step, to that time. */
static inline void until(struct host *h, uint64_t time_ns)
{
	settle(h);
	while (host_next(h) <= time_ns) {
		h->now = host_next(h) > h->now ? host_next(h) : h->now;
		host_answer_due(h);
		settle(h);
	}
	h->now = time_ns;
}

static inline void pass(struct host *h, uint64_t ns)
{
	until(h, h->now + ns);
}

/* Everyone runs, for the device and in the core's eyes, and nothing is under way. */
static inline void assert_all_run(struct host *h)
{
	for (int i = 0; i < h->used; i++) {
		if (!h->queues[i].handle)
			continue;
		assert_false(h->queues[i].under_way);
		assert_int_not_equal(h->queues[i].have, GP_STOP);
		assert_int_equal(state_of(h, h->queues[i].handle), GP_QUEUE_RUNNING);
	}
}

static inline void set_policy(struct host *h, uint32_t dev, const struct gp_policy_ops *ops)
{
	assert_int_equal(gp_core_set_policy(h->core, dev, ops, h->now), 0);
}

#endif
