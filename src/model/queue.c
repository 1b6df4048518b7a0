// SPDX-License-Identifier: MIT OR GPL-2.0
/* Command queues: kernels start in order, one at a time, each when the last has ended. */
#include "internal.h"

static gpm_u64 kernel_ns(const struct gpm_cmd *cmd, gpm_u64 i)
{
	if (cmd->every && cmd->every_wave_ns && (i + 1) % cmd->every == 0)
		return cmd->every_wave_ns;
	return cmd->kernel.wave_ns;
}

static void add_start(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 at)
{
	q->start_ns = at;
	q->starting = 1;
	q->next_start = g->starting;
	g->starting = q;
}

void gpm_cancel_start(struct gpm_gpu *g, struct gpm_queue *q)
{
	struct gpm_queue **link = &g->starting;

	if (!q->starting)
		return;
	while (*link != q)
		link = &(*link)->next_start;
	*link = q->next_start;
	q->starting = 0;
}

/* When kernel i after the current one is in the hardware queue. */
static gpm_u64 launched_ns(const struct gpm_gpu *g, const struct gpm_queue *q, gpm_u64 i)
{
	const struct gpm_cmd *cmd = q->first;
	gpm_u64 at = gpm_max(q->open_ns, cmd->submitted_ns + (q->kernel + i) * cmd->interval_ns);

	/* A throttle waits for the kernel that is depth before it. */
	if (q->shim == GPM_SHIM_THROTTLE && q->kernels + i >= q->depth)
		at = gpm_max(at, q->ends[(q->kernels + i) % q->depth] + g->dev->launch_ns);
	return at;
}

/* When the next kernel can start at the earliest. */
static gpm_u64 earliest_start(const struct gpm_gpu *g, const struct gpm_queue *q, gpm_u64 now)
{
	gpm_u64 at = gpm_max(now, launched_ns(g, q, 0));

	if (q->shim == GPM_SHIM_GATE || q->shim == GPM_SHIM_FLUSH)
		at += g->dev->gate_ns;
	return at + g->dev->dispatch_ns;
}

static int is_running(const struct gpm_queue *q)
{
	return q->ctx.busy || q->starting;
}

/* Closed and empty: the suspension by the shim is done, after a flush when all are turned away. */
static void drained(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 now)
{
	gpm_u64 n = gpm_min(q->waiting, GPM_RING_DEPTH);

	gpm_uncount(g, q);
	q->draining = 0;
	if (q->shim == GPM_SHIM_FLUSH && n) {
		q->replayed += n;
		add_start(g, q, now + n * g->dev->turn_away_ns);
	} else {
		gpm_call_done(g, q, now);
	}
	gpm_recount(g, q, now);
}

static void start_next(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 now)
{
	if (is_running(q))
		return;
	if (q->closed && !q->credit) {
		if (q->draining)
			drained(g, q, now);
		return;
	}
	if (!q->first)
		return;
	if (q->closed)
		q->credit--;
	add_start(g, q, earliest_start(g, q, now));
}

static int fits(const struct gpm_gpu *g, const struct gpm_cmd *cmd)
{
	const struct gpm_dispatch *k = &cmd->kernel;

	return cmd->count && k->workgroups && k->waves_per_wg && k->wave_ns &&
	       k->waves_per_wg <= gpm_wave_slots(g->dev);
}

int gpm_gpu_submit(struct gpm_gpu *g, struct gpm_queue *q, struct gpm_cmd *cmd, gpm_u64 now)
{
	if (!fits(g, cmd))
		return -1;
	cmd->next = NULL;
	cmd->submitted_ns = now;
	cmd->first_ns = GPM_NEVER;
	cmd->done_ns = GPM_NEVER;
	if (q->first)
		q->last->next = cmd;
	else
		q->first = cmd;
	q->last = cmd;
	gpm_uncount(g, q);
	q->waiting += cmd->count;
	gpm_recount(g, q, now);
	start_next(g, q, now);
	return 0;
}

static void finish(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 now)
{
	struct gpm_cmd *cmd = q->first;

	q->first = cmd->next;
	q->kernel = 0;
	cmd->next = NULL;
	cmd->done_ns = now;
	if (g->finished)
		g->last_finished->next = cmd;
	else
		g->finished = cmd;
	g->last_finished = cmd;
}

struct gpm_cmd *gpm_gpu_finished(struct gpm_gpu *g)
{
	struct gpm_cmd *cmd = g->finished;

	if (cmd)
		g->finished = cmd->next;
	return cmd;
}

void gpm_queue_kernel_ended(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 now)
{
	if (!q->kernel)
		q->first->first_ns = q->ctx.first_ns;
	if (q->depth)
		q->ends[q->kernels % q->depth] = now;
	q->kernels++;
	if (q->waiting > 1) {
		q->waiting--; /* it has work before and after: nobody counts anew */
	} else {
		gpm_uncount(g, q);
		q->waiting--;
		gpm_recount(g, q, now);
	}
	if (++q->kernel == q->first->count)
		finish(g, q, now);
	start_next(g, q, now);
}

static void start_one(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 now)
{
	struct gpm_dispatch d;

	if (q->closed) {
		gpm_uncount(g, q);
		gpm_cancel_start(g, q);
		gpm_recount(g, q, now);
	} else {
		gpm_cancel_start(g, q);
	}
	g->count.events++;
	if (q->closed && q->shim == GPM_SHIM_FLUSH) {
		gpm_call_done(g, q, now);
		return;
	}
	d = q->first->kernel;
	d.wave_ns = kernel_ns(q->first, q->kernel);
	(void)gpm_exec_dispatch(&g->exec, &q->ctx, &d, now); /* submit checked that it fits */
}

gpm_u64 gpm_next_start(const struct gpm_gpu *g)
{
	const struct gpm_queue *q;
	gpm_u64 next = GPM_NEVER;

	for (q = g->starting; q; q = q->next_start)
		next = gpm_min(next, q->start_ns);
	return next;
}

void gpm_start_due(struct gpm_gpu *g, gpm_u64 now)
{
	struct gpm_queue *q, *next;

	for (q = g->starting; q; q = next) {
		next = q->next_start;
		if (q->start_ns <= now)
			start_one(g, q, now);
	}
}

/* What the throttle let into the hardware queue cannot be called back: so many, the running one aside. */
static gpm_u32 count_launched(const struct gpm_gpu *g, const struct gpm_queue *q, gpm_u64 now)
{
	gpm_u64 first = q->ctx.busy ? 1 : 0, n = gpm_min(q->depth, q->waiting), i = first;

	while (i < n && launched_ns(g, q, i) <= now)
		i++;
	return (gpm_u32)(i - first);
}

static void close_queue(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 now)
{
	q->closed = 1;
	q->draining = 1;
	gpm_cancel_start(g, q); /* it is counted below, or will find the gate closed */
	if (q->shim == GPM_SHIM_THROTTLE)
		q->credit = count_launched(g, q, now);
	start_next(g, q, now);
}

static void open_queue(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 now)
{
	gpm_uncount(g, q);
	q->closed = 0;
	q->credit = 0;
	gpm_recount(g, q, now);
	if (q->shim != GPM_SHIM_GATE)
		q->open_ns = now + g->dev->launch_ns; /* the hardware queue is empty: launch again */
	gpm_call_done(g, q, now);
	start_next(g, q, now);
}

int gpm_gpu_close_shim(struct gpm_gpu *g, struct gpm_queue *q, gpm_u32 closed, gpm_u64 now)
{
	if (q->call || q->shim == GPM_SHIM_NONE)
		return -1;
	if (q->want == GPM_STOP && q->ctx.busy)
		return -1; /* it could never drain */
	q->call = gpm_new_call(g);
	q->called_ns = now;
	if (closed == q->closed)
		gpm_call_done(g, q, now);
	else if (closed)
		close_queue(g, q, now);
	else
		open_queue(g, q, now);
	return 0;
}
