// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/sim/sim.h"
#include "base/sized.h"
#include "lib/ctx.h"

/* A stop that takes longer than this has failed. */
#define TIMEOUT_NS 1000000000ull

static int is_in(struct gp_ctx *ctx, uint64_t queue, uint32_t first, uint32_t second)
{
	struct gp_core_queue_status status;

	if (gp_core_queue_status(gp_machine_core(ctx->machine), queue, &status) < 0)
		return 0; /* there is no such queue, so it is in no state */
	return status.state == first || status.state == second;
}

/* Lets the machine go on until the queue has left both states, or for too long. */
static int wait_while(struct gp_ctx *ctx, uint64_t queue, uint32_t first, uint32_t second)
{
	uint64_t deadline = gp_machine_now(ctx->machine) + TIMEOUT_NS;

	gp_machine_settle(ctx->machine);
	while (is_in(ctx, queue, first, second)) {
		uint64_t next = gp_machine_next(ctx->machine);

		if (next > deadline)
			return -ETIMEDOUT;
		gp_machine_step(ctx->machine, next);
	}
	return 0;
}

static int hold_one(struct gp_ctx *ctx, uint64_t queue, uint64_t lease_ns)
{
	uint64_t now = gp_machine_now(ctx->machine), until = lease_ns ? now + lease_ns : GP_NEVER;

	return gp_core_hold(gp_machine_core(ctx->machine), queue, until, now);
}

static int release_one(struct gp_ctx *ctx, uint64_t queue)
{
	return gp_core_release(gp_machine_core(ctx->machine), queue, gp_machine_now(ctx->machine));
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

/* All are asked to stop before the first is waited for: one device cycle for all of them. */
int gp_queue_suspend(struct gp_ctx *ctx, const uint64_t *queues, size_t n, const struct gp_suspend_opts *opts,
		     int32_t *ret_status)
{
	struct gp_suspend_opts o = { .size = sizeof(o) };
	int one, r = opts ? gp_sized_copy(&o, sizeof(o), opts, opts->size) : 0;

	if (!ctx || (n && !queues) || o.flags)
		return -EINVAL;
	if (r < 0)
		return gp_ctx_fail(ctx, r, "options of another size than this library knows");
	gp_ctx_catch_up(ctx);
	for (size_t i = 0; i < n; i++) {
		one = hold_one(ctx, queues[i], o.lease_ns);
		set_status(ret_status, i, one);
		r = first_error(ctx, r, one, queues[i], "suspended");
	}
	for (size_t i = 0; i < n; i++) {
		one = wait_while(ctx, queues[i], GP_QUEUE_RUNNING, GP_QUEUE_SUSPENDING);
		if (one == 0)
			continue;
		(void)release_one(ctx, queues[i]); /* one says why */
		set_status(ret_status, i, one);
		r = first_error(ctx, r, one, queues[i], "suspended in time");
	}
	return r;
}

/* Whether it runs at once is the scheduler's decision: online work may be active. */
int gp_queue_resume(struct gp_ctx *ctx, const uint64_t *queues, size_t n, int32_t *ret_status)
{
	int r = 0;

	if (!ctx || (n && !queues))
		return -EINVAL;
	gp_ctx_catch_up(ctx);
	for (size_t i = 0; i < n; i++) {
		int one = release_one(ctx, queues[i]);

		set_status(ret_status, i, one);
		r = first_error(ctx, r, one, queues[i], "resumed");
	}
	gp_machine_settle(ctx->machine);
	for (size_t i = 0; i < n; i++)
		(void)wait_while(ctx, queues[i], GP_QUEUE_RESUMING, GP_QUEUE_RESUMING);
	return r;
}

int gp_device_reserve(struct gp_ctx *ctx, uint32_t device, uint32_t online_percent, uint32_t offline_percent)
{
	int r;

	if (!ctx)
		return -EINVAL;
	gp_ctx_catch_up(ctx);
	r = gp_machine_ops(ctx->machine)
		    ->reserve(gp_machine_backend(ctx->machine), device, online_percent, offline_percent);
	if (r == -EINVAL)
		return gp_ctx_fail(ctx, r, "online and offline are percentages, together at most 100");
	if (r == -ENOTSUP)
		return gp_ctx_fail(ctx, r, "device %" PRIu32 " has no queue slots to reserve", device);
	return r < 0 ? gp_ctx_fail(ctx, r, "device %" PRIu32 ": %s", device, gp_strerror(r)) : 0;
}

int gp_device_stats(struct gp_ctx *ctx, uint32_t device, struct gp_stats *ret_stats)
{
	struct gp_core_status s;
	struct gp_stats stats;
	size_t size;
	int r;

	if (!ctx || !ret_stats || ret_stats->size < sizeof(size_t))
		return -EINVAL;
	gp_ctx_catch_up(ctx);
	r = gp_core_device_status(gp_machine_core(ctx->machine), device, &s);
	if (r < 0)
		return gp_ctx_fail(ctx, r, "there is no device %" PRIu32, device);
	stats = (struct gp_stats){ .preemptions = s.preemptions,
				   .cycles = gp_machine_cycles(ctx->machine),
				   .suspends = s.suspends,
				   .resumes = s.resumes,
				   .failures = s.failures,
				   .suspend_p50_ns = gp_hist_quantile(s.suspend, 5000),
				   .suspend_p99_ns = gp_hist_quantile(s.suspend, 9900),
				   .suspend_max_ns = s.suspend->max,
				   .policy_ejected = s.ejected };
	if (s.backoff_until_ns > gp_machine_now(ctx->machine))
		stats.backoff_until_ns = s.backoff_until_ns;
	/* What holds now comes first: an ejection is for good, a back-off that is over is history. */
	memcpy(stats.reason, stats.backoff_until_ns || !s.ejected ? s.reason : s.ejection,
	       sizeof(stats.reason));
	size = ret_stats->size;
	gp_sized_fill(ret_stats, size, &stats, sizeof(stats));
	ret_stats->size = size;
	return 0;
}

static int hint_result(struct gp_ctx *ctx, uint64_t client, int r)
{
	gp_machine_settle(ctx->machine);
	if (r == -ENOENT)
		return gp_ctx_fail(ctx, r, "there is no client %" PRIu64, client);
	if (r == -EPERM)
		return gp_ctx_fail(ctx, r, "client %" PRIu64 " is not online: only online clients give hints",
				   client);
	if (r == -EALREADY)
		return gp_ctx_fail(ctx, r, "client %" PRIu64 " has no open hint", client);
	return r < 0 ? gp_ctx_fail(ctx, r, "client %" PRIu64 ": %s", client, gp_strerror(r)) : 0;
}

int gp_hint_begin(struct gp_ctx *ctx, uint64_t client)
{
	if (!ctx)
		return -EINVAL;
	gp_ctx_catch_up(ctx);
	return hint_result(
		ctx, client,
		gp_core_hint_begin(gp_machine_core(ctx->machine), client, gp_machine_now(ctx->machine)));
}

int gp_hint_end(struct gp_ctx *ctx, uint64_t client)
{
	if (!ctx)
		return -EINVAL;
	gp_ctx_catch_up(ctx);
	return hint_result(
		ctx, client,
		gp_core_hint_end(gp_machine_core(ctx->machine), client, gp_machine_now(ctx->machine)));
}

int gp_client_set_class(struct gp_ctx *ctx, uint64_t client, uint32_t client_class)
{
	struct gp_core_client change;
	struct gp_core *core;
	int r;

	if (!ctx || client_class == GP_CLASS_UNKNOWN || client_class > GP_CLASS_ONLINE)
		return -EINVAL;
	gp_ctx_catch_up(ctx);
	core = gp_machine_core(ctx->machine);
	r = gp_core_client_get(core, client, &change);
	if (r < 0)
		return gp_ctx_fail(ctx, r, "there is no client %" PRIu64, client);
	change.client_class = client_class;
	r = gp_core_client_change(core, &change, gp_machine_now(ctx->machine));
	if (r < 0)
		return gp_ctx_fail(ctx, r, "client %" PRIu64 ": %s", client, gp_strerror(r));
	gp_sim_set_class(gp_machine_backend(ctx->machine), client, client_class);
	gp_machine_settle(ctx->machine);
	return 0;
}
