// SPDX-License-Identifier: MIT
/*
 * A context with a simulated machine of its own.  Its time follows the real clock, but
 * only while somebody calls: each call first lets it catch up, by a second at most.
 */
#include "backend/sim/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/sim/presets.h"
#include "lib/ctx.h"
#include "machine/machine.h"
#include "policy/registry.h"
#include "wire/wire.h"

#define MS 1000000ull
#define SECOND 1000000000ull
/* A stop that takes longer than this has failed. */
#define TIMEOUT_NS SECOND
/* Whoever has the context is the only one who holds anything. */
enum { HOLDER = 1, OWNER };

struct sim {
	struct gp_machine *machine;
	uint64_t real_ns;                         /* when it last caught up */
	uint32_t online_percent, offline_percent; /* as reserved */
};

static struct sim *sim_of(const struct gp_ctx *ctx)
{
	return ctx->data;
}

static struct gp_machine *machine_of(const struct gp_ctx *ctx)
{
	return sim_of(ctx)->machine;
}

static struct gp_core *core_of(const struct gp_ctx *ctx)
{
	return gp_machine_core(machine_of(ctx));
}

static uint64_t now_in(const struct gp_ctx *ctx)
{
	return gp_machine_now(machine_of(ctx));
}

static uint64_t real_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* As it is by now. */
static struct gp_machine *caught_up(struct gp_ctx *ctx)
{
	struct sim *sim = sim_of(ctx);
	uint64_t now = real_now(), passed = now - sim->real_ns;

	sim->real_ns = now;
	if (passed > SECOND)
		passed = SECOND;
	gp_machine_run_until(sim->machine, now_in(ctx) + passed);
	return sim->machine;
}

/* Who lives on the simulated machine: one that serves, two that train. */
static void populate(struct gp_scenario *sc)
{
	struct gp_group *serve = &sc->groups[0], *train = &sc->groups[1];

	sc->ngroups = 2;
	*serve = (struct gp_group){ .name = "serve",
				    .client_class = GP_CLASS_ONLINE,
				    .arrival = GP_ARRIVAL_POISSON,
				    .clients = 1,
				    .queues = 1,
				    .priority = 11,
				    .weight = 100,
				    .rate_milli = 20000,
				    .prepare_ns = MS / 4 };
	*train = (struct gp_group){ .name = "train",
				    .client_class = GP_CLASS_OFFLINE,
				    .arrival = GP_ARRIVAL_ALWAYS,
				    .clients = 2,
				    .queues = 2,
				    .priority = 7,
				    .weight = 100 };
	(void)gp_work_by_name("infer-10ms", &serve->work);
	(void)gp_work_by_name("train", &train->work);
}

static int start_machine(const char *device, struct gp_machine **ret)
{
	const struct gp_config config = { .kind = GP_CONFIG_AUTO };
	const struct gp_preset *preset = gp_preset_find(device);
	struct gp_scenario *sc;
	int r;

	if (!preset)
		return -ENOENT;
	sc = calloc(1, sizeof(*sc));
	if (!sc)
		return -ENOMEM;
	(void)snprintf(sc->name, sizeof(sc->name), "library");
	(void)snprintf(sc->device_name, sizeof(sc->device_name), "%s", device);
	(void)snprintf(sc->policy, sizeof(sc->policy), "priority");
	sc->device = preset->device;
	sc->devices = 1;
	sc->seed = 1;
	sc->rotate = 1;
	populate(sc);
	r = gp_machine_new(sc, &config, NULL, ret);
	free(sc);
	return r;
}

static int sim_open(struct gp_ctx *ctx, const struct gp_open_opts *opts)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	int r;

	if (!sim)
		return -ENOMEM;
	r = start_machine(opts->device ? opts->device : "mi308x", &sim->machine);
	if (r < 0) {
		free(sim);
		return r == -ENOENT ? gp_ctx_fail(ctx, r,
						  "there is no simulated device \"%s\"; there are mi308x, "
						  "mi300x and h200",
						  opts->device)
				    : r;
	}
	sim->real_ns = real_now();
	gp_machine_run_until(sim->machine, MS); /* the queues are mapped */
	ctx->data = sim;
	return 0;
}

static void sim_close(struct gp_ctx *ctx)
{
	gp_machine_free(machine_of(ctx));
	free(ctx->data);
}

static int sim_devices(struct gp_ctx *ctx, struct gp_device_info **ret)
{
	struct gp_device_info *info = calloc(1, sizeof(*info)); /* the machine has one */
	struct gp_machine *m = caught_up(ctx);
	struct gp_core_status status;
	int r;

	if (!info)
		return -ENOMEM;
	r = gp_machine_ops(m)->devices(gp_machine_backend(m), info, 1);
	if (r < 0) {
		free(info);
		return r;
	}
	if (gp_core_device_status(gp_machine_core(m), 0, &status) == 0)
		(void)snprintf(info->policy, sizeof(info->policy), "%s", status.policy);
	info->online_percent = sim_of(ctx)->online_percent;
	info->offline_percent = sim_of(ctx)->offline_percent;
	*ret = info;
	return r;
}

/* The scheduler knows more of a queue's state than the device does. */
static void add_scheduling(struct gp_ctx *ctx, struct gp_queue_info *info)
{
	struct gp_core_queue_status status;

	if (gp_core_queue_status(core_of(ctx), info->queue, &status) < 0)
		return;
	info->state = status.state;
	info->client_class = status.client_class;
	info->held = status.held;
}

static int sim_queues(struct gp_ctx *ctx, struct gp_queue_info **ret)
{
	struct gp_machine *m = caught_up(ctx);
	struct gp_backend *be = gp_machine_backend(m);
	const struct gp_backend_ops *ops = gp_machine_ops(m);
	struct gp_queue_info *all;
	int count = ops->queues(be, NULL, 0);

	if (count < 0)
		return count;
	all = calloc((size_t)count + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	count = ops->queues(be, all, (size_t)count);
	for (int i = 0; i < count; i++) {
		add_scheduling(ctx, &all[i]);
		all[i].known |= GP_KNOWN_PRIORITY | GP_KNOWN_ACTIVE;
		all[i].active = all[i].state != GP_QUEUE_SUSPENDED;
		strcpy(all[i].way, "auto");
	}
	if (count < 0)
		free(all);
	else
		*ret = all;
	return count;
}

static void begin_client(struct gp_ctx *ctx, const struct gp_queue_info *q, struct gp_client_info *ret)
{
	struct gp_core_client client = { 0 };

	(void)gp_core_client_get(core_of(ctx), q->client, &client); /* it has a queue, so it is there */
	*ret = (struct gp_client_info){ .client = q->client,
					.device = q->device,
					.client_class = q->client_class,
					.weight = client.weight,
					.slo_ns = client.slo_ns };
	memcpy(ret->name, q->client_name, sizeof(ret->name));
}

/* One that runs says more than one that is stopped, and one that is held more than one that waits. */
static void count_queue(const struct gp_queue_info *q, struct gp_client_info *to)
{
	static const uint32_t rank[] = {
		[GP_CLIENT_IDLE] = 0, [GP_CLIENT_WAITING] = 1, [GP_CLIENT_HELD] = 2, [GP_CLIENT_RUNNING] = 3
	};
	int stopped = q->state != GP_QUEUE_RUNNING;
	uint32_t state = q->held                           ? GP_CLIENT_HELD
			 : stopped                         ? GP_CLIENT_WAITING
			 : q->activity == GP_ACTIVITY_IDLE ? GP_CLIENT_IDLE
							   : GP_CLIENT_RUNNING;

	to->queues++;
	to->stopped += (uint32_t)stopped;
	to->resuming += q->state == GP_QUEUE_RESUMING;
	if (rank[state] > rank[to->state])
		to->state = state;
}

/* Who has queues; how many have passed in all is not kept for each. */
static int sim_clients(struct gp_ctx *ctx, struct gp_client_info **ret)
{
	struct gp_queue_info *queues;
	struct gp_client_info *all;
	int count = sim_queues(ctx, &queues), n = 0, at;

	if (count < 0)
		return count;
	all = calloc((size_t)count + 1, sizeof(*all));
	for (int i = 0; all && i < count; i++) {
		for (at = 0; at < n; at++)
			if (all[at].client == queues[i].client && all[at].device == queues[i].device)
				break;
		if (at == n)
			begin_client(ctx, &queues[i], &all[n++]);
		count_queue(&queues[i], &all[at]);
	}
	free(queues);
	if (!all)
		return -ENOMEM;
	*ret = all;
	return n;
}

static int is_in(struct gp_ctx *ctx, uint64_t queue, uint32_t first, uint32_t second)
{
	struct gp_core_queue_status status;

	if (gp_core_queue_status(core_of(ctx), queue, &status) < 0)
		return 0; /* there is no such queue, so it is in no state */
	return status.state == first || status.state == second;
}

/* Lets the machine go on until the queue has left both states, or for too long. */
static int wait_while(struct gp_ctx *ctx, uint64_t queue, uint32_t first, uint32_t second)
{
	uint64_t deadline = now_in(ctx) + TIMEOUT_NS;

	gp_machine_settle(machine_of(ctx));
	while (is_in(ctx, queue, first, second)) {
		uint64_t next = gp_machine_next(machine_of(ctx));

		if (next > deadline)
			return -ETIMEDOUT;
		gp_machine_step(machine_of(ctx), next);
	}
	return 0;
}

static int hold_one(struct gp_ctx *ctx, uint64_t queue, uint64_t lease_ns)
{
	uint64_t now = now_in(ctx);
	const struct gp_hold hold = { .holder = HOLDER,
				      .owner = OWNER,
				      .queue = queue,
				      .until_ns = lease_ns ? now + lease_ns : GP_NO_LEASE,
				      .most = UINT32_MAX };

	return gp_core_hold(core_of(ctx), &hold, now);
}

static int release_one(struct gp_ctx *ctx, uint64_t queue)
{
	return gp_core_release(core_of(ctx), queue, GP_EVERYBODYS, now_in(ctx));
}

static void set_status(int32_t *status, size_t i, int r)
{
	if (status)
		status[i] = r;
}

static int first_error(struct gp_ctx *ctx, int so_far, int r, uint64_t queue, const char *what)
{
	if (so_far < 0 || r >= 0)
		return so_far;
	return gp_ctx_fail(ctx, r, "queue %" PRIu64 " cannot be %s: %s", queue, what, gp_strerror(r));
}

/* No queue is created on this machine: GP_SUSPEND_NEW_QUEUES has nothing to add. */
static int check_way(struct gp_ctx *ctx, const struct gp_suspend_opts *opts)
{
	if (opts->way && strcmp(opts->way, "auto"))
		return gp_ctx_fail(ctx, -ENOTSUP, "the simulated machine has no way \"%s\": leave it to auto",
				   opts->way);
	if (opts->type != GP_PREEMPT_SAVE)
		return gp_ctx_fail(ctx, -ENOTSUP,
				   "the simulated machine saves running waves, it does not drain");
	return 0;
}

/* All are asked to stop before the first is waited for: one device cycle for all of them. */
static int sim_suspend(struct gp_ctx *ctx, const uint64_t *queues, size_t n,
		       const struct gp_suspend_opts *opts, int32_t *status)
{
	int one, r = check_way(ctx, opts);

	if (r < 0)
		return r;
	(void)caught_up(ctx);
	for (size_t i = 0; i < n; i++) {
		one = hold_one(ctx, queues[i], opts->lease_ns);
		set_status(status, i, one);
		r = first_error(ctx, r, one, queues[i], "suspended");
	}
	for (size_t i = 0; i < n; i++) {
		one = wait_while(ctx, queues[i], GP_QUEUE_RUNNING, GP_QUEUE_SUSPENDING);
		if (one == 0)
			continue;
		(void)release_one(ctx, queues[i]); /* one says why */
		set_status(status, i, one);
		r = first_error(ctx, r, one, queues[i], "suspended in time");
	}
	return r;
}

/* Whether it runs at once is the scheduler's decision: online work may be active. */
static int sim_resume(struct gp_ctx *ctx, const uint64_t *queues, size_t n, int32_t *status)
{
	int r = 0;

	(void)caught_up(ctx);
	for (size_t i = 0; i < n; i++) {
		int one = release_one(ctx, queues[i]);

		set_status(status, i, one);
		r = first_error(ctx, r, one, queues[i], "resumed");
	}
	for (size_t i = 0; i < n; i++)
		(void)wait_while(ctx, queues[i], GP_QUEUE_RESUMING, GP_QUEUE_RESUMING);
	return r;
}

static int sim_reserve(struct gp_ctx *ctx, uint32_t device, uint32_t online_percent, uint32_t offline_percent)
{
	struct gp_machine *m = caught_up(ctx);
	int r = gp_machine_ops(m)->reserve(gp_machine_backend(m), device, online_percent, offline_percent);

	if (r == -EINVAL)
		return gp_ctx_fail(ctx, r, "online and offline are percentages, together at most 100");
	if (r == -ENOTSUP)
		return gp_ctx_fail(ctx, r, "device %" PRIu32 " has no queue slots to reserve", device);
	if (r < 0)
		return gp_ctx_fail(ctx, r, "device %" PRIu32 ": %s", device, gp_strerror(r));
	sim_of(ctx)->online_percent = online_percent;
	sim_of(ctx)->offline_percent = offline_percent;
	return 0;
}

/* Its machine is the caller's own. */
static int sim_rights(struct gp_ctx *ctx, uint32_t *ret)
{
	(void)ctx;
	*ret = GP_RIGHT_OTHERS;
	return 0;
}

/* Whatever there is to say, a call says. */
static void sim_look(struct gp_ctx *ctx)
{
	(void)ctx;
}

static int sim_set_policy(struct gp_ctx *ctx, uint32_t device, const char *name)
{
	const struct gp_policy_ops *ops = gp_policy_find(name);
	struct gp_machine *m = caught_up(ctx);
	char names[128];
	int r;

	if (!ops) {
		gp_policy_names(names, sizeof(names));
		return gp_ctx_fail(ctx, -ENOENT, "there is no policy \"%s\"; there are: %s", name, names);
	}
	r = gp_core_set_policy(gp_machine_core(m), device == GP_ALL_DEVICES ? 0 : device, ops, now_in(ctx));
	gp_machine_settle(m);
	return r == -ENOENT ? gp_ctx_fail(ctx, r, "there is no device %" PRIu32, device) : r;
}

/* No memory: nothing is. */
static void count_now(struct gp_ctx *ctx, struct gp_stats *to)
{
	struct gp_queue_info *all = NULL;
	int n = sim_queues(ctx, &all);

	for (int i = 0; i < n; i++) {
		struct gp_core_queue_status status = { 0 };

		if (all[i].device != to->device ||
		    gp_core_queue_status(core_of(ctx), all[i].queue, &status) < 0)
			continue;
		to->stopped += status.state == GP_QUEUE_SUSPENDED || status.state == GP_QUEUE_RESUMING;
		to->yielding += status.state == GP_QUEUE_RUNNING && status.wanted == GP_BACKGROUND;
	}
	free(all);
}

static int sim_stats(struct gp_ctx *ctx, uint32_t device, struct gp_stats *ret)
{
	struct gp_machine *m = caught_up(ctx);
	int r = gp_core_device_stats(gp_machine_core(m), device, ret, now_in(ctx));

	if (r < 0)
		return gp_ctx_fail(ctx, r, "there is no device %" PRIu32, device);
	ret->cycles = gp_machine_cycles(m);
	/* What holds now comes first: an ejection until the next choice, a back-off that is over is history.
	 */
	if (ret->ejection[0] && !ret->backoff_until_ns)
		memcpy(ret->reason, ret->ejection, sizeof(ret->reason));
	count_now(ctx, ret);
	return 0;
}

static int hint_result(struct gp_ctx *ctx, uint64_t client, int r)
{
	gp_machine_settle(machine_of(ctx));
	if (r == -ENOENT)
		return gp_ctx_fail(ctx, r, "there is no client %" PRIu64, client);
	if (r == -EPERM)
		return gp_ctx_fail(ctx, r, "client %" PRIu64 " is not online: only online clients give hints",
				   client);
	if (r == -EALREADY)
		return gp_ctx_fail(ctx, r, "client %" PRIu64 " has no open hint", client);
	return r < 0 ? gp_ctx_fail(ctx, r, "client %" PRIu64 ": %s", client, gp_strerror(r)) : 0;
}

static int sim_hint(struct gp_ctx *ctx, const struct gp_hint *hint, uint32_t what)
{
	const struct gp_core_hint h = { .client = hint->client,
					.number = hint->number,
					.expiry_ns = hint->expiry_ns,
					.device = hint->device };
	struct gp_core *core = gp_machine_core(caught_up(ctx));
	int r;

	if (!hint->client)
		return gp_ctx_fail(ctx, -ENOENT, "the simulated machine has no client of this process");
	r = what == GP_HINT_BEGIN ? gp_core_hint_begin(core, &h, now_in(ctx))
				  : gp_core_hint_end(core, &h, now_in(ctx));
	return hint_result(ctx, hint->client, r);
}

static int sim_event_open(struct gp_ctx *ctx, const struct gp_event_opts *opts)
{
	(void)opts;
	return gp_ctx_fail(ctx, -ENOTSUP, "the simulated machine keeps no events: gpreemptd does");
}

static int sim_event_next(struct gp_ctx *ctx, uint64_t timeout_ns, struct gp_event *ret)
{
	(void)timeout_ns;
	(void)ret;
	return sim_event_open(ctx, NULL);
}

static int sim_set_class(struct gp_ctx *ctx, uint64_t client, uint32_t client_class)
{
	struct gp_machine *m = caught_up(ctx);
	struct gp_core_client change;
	int r = gp_core_client_get(gp_machine_core(m), client, &change);

	if (r < 0)
		return gp_ctx_fail(ctx, r, "there is no client %" PRIu64, client);
	change.client_class = client_class;
	r = gp_core_client_change(gp_machine_core(m), &change, now_in(ctx));
	if (r < 0)
		return r; /* -ENOMEM */
	gp_sim_set_class(gp_machine_backend(m), client, client_class);
	gp_machine_settle(m);
	return 0;
}

static int sim_attach(struct gp_ctx *ctx, uint32_t pid, uint64_t start, uint32_t client_class)
{
	(void)pid;
	(void)start;
	(void)client_class;
	return gp_ctx_fail(ctx, -ENOTSUP, "a simulated machine has no containers");
}

static int sim_declare(struct gp_ctx *ctx, const struct gp_job *job)
{
	(void)job;
	return gp_ctx_fail(ctx, -ENOTSUP, "a simulated machine has no jobs");
}

static int sim_jobs(struct gp_ctx *ctx, struct gp_job_info **ret)
{
	(void)ret;
	return sim_declare(ctx, NULL);
}

const struct gp_lib_ops gp_lib_sim = {
	.name = "sim",
	.open = sim_open,
	.close = sim_close,
	.rights = sim_rights,
	.look = sim_look,
	.devices = sim_devices,
	.queues = sim_queues,
	.clients = sim_clients,
	.suspend = sim_suspend,
	.resume = sim_resume,
	.reserve = sim_reserve,
	.stats = sim_stats,
	.set_policy = sim_set_policy,
	.hint = sim_hint,
	.event_open = sim_event_open,
	.event_next = sim_event_next,
	.attach = sim_attach,
	.declare = sim_declare,
	.jobs = sim_jobs,
	.set_class = sim_set_class,
};
