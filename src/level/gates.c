// SPDX-License-Identifier: MIT
#include "level/gates.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent.h"
#include "backend/guard.h"
#include "level/doors.h"
#include "level/internal.h"

#define MOST_GPUS 64u

/* Under the engine's lock. A GPU's number is its place and 1 more. */
struct gp_own {
	uint32_t n;
	struct gate {
		uint32_t gpu_id;
		uint32_t is_closed;
		uint32_t is_told; /* events() said so */
	} gates[MOST_GPUS];
};

static struct gp_own all;

/* The table for the agent's thread */

static int gates_make(gp_ioctl_fn next, void (*wake)(void *arg), void *arg, struct gp_own **ret)
{
	(void)next;
	(void)wake;
	(void)arg;
	*ret = &all;
	return 0;
}

static uint32_t gates_wants(unsigned long request)
{
	(void)request;
	return GP_OWN_NOTHING;
}

/* Nobody's ioctl() comes here. */
static int gates_call(struct gp_own *own, int fd, unsigned long request, void *args, int priority)
{
	(void)own;
	(void)fd;
	(void)request;
	(void)args;
	(void)priority;
	errno = ENOTTY;
	return -1;
}

static struct gp_own_queue describe(const struct gp_own *own, uint32_t i)
{
	return (struct gp_own_queue){ .queue = i + 1,
				      .queue_id = i,
				      .gpu_id = own->gates[i].gpu_id,
				      .kind = GP_KIND_COMPUTE,
				      .percent = 100,
				      .stopped = own->gates[i].is_closed,
				      .way = GP_NVRM_WAY_PARK };
}

static int gates_events(struct gp_own *own, struct gp_own_event *events, size_t n)
{
	size_t count = 0;

	gp_engine_lock();
	for (uint32_t i = 0; i < own->n && count < n; i++) {
		if (own->gates[i].is_told)
			continue;
		own->gates[i].is_told = 1;
		events[count++] = (struct gp_own_event){ .kind = GP_OWN_ADDED, .queue = describe(own, i) };
	}
	gp_engine_unlock();
	return (int)count;
}

static int gates_queues(struct gp_own *own, struct gp_own_queue *queues, size_t n)
{
	uint32_t count;

	gp_engine_lock();
	count = own->n;
	for (uint32_t i = 0; i < count && i < n; i++)
		queues[i] = describe(own, i);
	gp_engine_unlock();
	return (int)count;
}

static int gates_stopped(struct gp_own *own)
{
	int n = 0;

	gp_engine_lock();
	for (uint32_t i = 0; i < own->n; i++)
		n += own->gates[i].is_closed != 0;
	gp_engine_unlock();
	return n;
}

/* Nothing is called by it. */
static int gates_open(struct gp_own *own)
{
	int fd = open("/", O_PATH | O_CLOEXEC);

	(void)own;
	return fd < 0 ? -errno : fd;
}

/* With the lock held. */
static void set(struct gate *g, uint32_t is_closed)
{
	g->is_closed = is_closed;
	gp_list_each(at, &gp_engine.queues) {
		struct gp_level_queue *q = gp_container(at, struct gp_level_queue, link);

		if (q->is.gpu_id != g->gpu_id)
			continue;
		if (is_closed)
			(void)gp_engine_hold(q, GP_HOLDER_DAEMON, UINT64_MAX); /* or it is left alone */
		else
			gp_engine_mark(q, GP_HOLDER_DAEMON, 0);
	}
}

/* A gate has no background: whoever may not run waits. */
static int apply_one(struct gp_own *own, const struct gp_want *want)
{
	if (!want->queue || want->queue > own->n)
		return -ENOENT;
	if (want->want == GP_BACKGROUND)
		return -ENOTSUP;
	set(&own->gates[want->queue - 1], want->want == GP_STOP);
	return 0;
}

static int gates_apply(struct gp_own *own, int fd, struct gp_want *wants, size_t n,
		       const struct gp_apply_opts *opts)
{
	int first = 0;

	(void)fd;
	(void)opts;
	gp_engine_lock();
	for (size_t i = 0; i < n; i++) {
		wants[i].status = apply_one(own, &wants[i]);
		if (!first)
			first = wants[i].status;
	}
	gp_engine_unlock();
	return first;
}

static int gates_resume_all(struct gp_own *own, int fd)
{
	(void)fd;
	gp_engine_lock();
	for (uint32_t i = 0; i < own->n; i++)
		set(&own->gates[i], 0);
	gp_engine_unlock();
	return 0;
}

static void gates_free(struct gp_own *own)
{
	if (own)
		(void)gates_resume_all(own, -1);
}

static void gates_forget(struct gp_own *own)
{
	own->n = 0;
}

/* A queue of ours is many streams, of which some may not be counted. */
static int gates_activity(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret)
{
	int r = 0;

	gp_engine_lock();
	for (size_t i = 0; i < n; i++) {
		ret[i] = (struct gp_activity){ .activity = GP_ACTIVITY_UNKNOWN };
		if (!queues[i] || queues[i] > own->n)
			r = -ENOENT;
	}
	gp_engine_unlock();
	return r;
}

static const struct gp_own_ops ops = {
	.name = "gates",
	.usual_way = GP_NVRM_WAY_PARK,
	.ways = GP_NVRM_WAY_PARK,
	.batches = 1,
	.make = gates_make,
	.free = gates_free,
	.forget = gates_forget,
	.wants = gates_wants,
	.call = gates_call,
	.events = gates_events,
	.queues = gates_queues,
	.stopped = gates_stopped,
	.open = gates_open,
	.apply = gates_apply,
	.resume_all = gates_resume_all,
	.activity = gates_activity,
	.finished = gates_activity,
};

/* For the engine */

static struct gate *get_gate(uint32_t gpu_id)
{
	for (uint32_t i = 0; i < all.n; i++)
		if (all.gates[i].gpu_id == gpu_id)
			return &all.gates[i];
	if (all.n == MOST_GPUS)
		return NULL;
	all.gates[all.n] = (struct gate){ .gpu_id = gpu_id };
	return &all.gates[all.n++];
}

void gp_gates_add(struct gp_level_queue *q)
{
	struct gate *g = q->is.gpu_id ? get_gate(q->is.gpu_id) : NULL;

	if (g && g->is_closed)
		(void)gp_engine_hold(q, GP_HOLDER_DAEMON, UINT64_MAX);
}

void gp_gates_tell(void)
{
	struct gp_claim who;
	gp_signals blocked;

	if (gp_doors_agent_has_queues())
		return;
	gp_environment_claim(getenv, &who);
	gp_agent_created(&ops, &all, &who);
	blocked = gp_guard_block();
	gp_agent_wake(NULL);
	gp_guard_unblock(blocked);
}

void gp_gates_forget(void)
{
	gates_forget(&all);
	gp_agent_forget();
}
