// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Concurrent devices: which queues are mapped, and the device cycle that changes it.
 *
 *	IDLE --> UNMAP --> SAVE --> MAP --> IDLE
 *	  |                 |                ^
 *	  +- none mapped ---|----------------+
 *	                    +- none to map --> IDLE
 *
 * A cycle serves one driver call, or the device itself: background queues that must
 * give way or may come back, and the turn of an over-subscribed run list.  What a
 * call stops is off when SAVE ends; what it resumes is on when MAP ends.
 */
#include "cost.h"
#include "internal.h"

/* Would it be in the run list? Being in it is not yet having a slot. */
static int is_active_as(const struct gpm_gpu *g, const struct gpm_queue *q, gpm_u32 want)
{
	if (q->offline && !g->offline_limit)
		return 0;
	return want == GPM_RUN || (want == GPM_BACKGROUND && !g->held_back);
}

static int is_active(const struct gpm_gpu *g, const struct gpm_queue *q)
{
	return is_active_as(g, q, q->want);
}

/* A cycle takes every queue off, unless the device can pick; a turn always does. */
static int must_leave(const struct gpm_gpu *g, const struct gpm_queue *q)
{
	if (!q->ctx.mapped)
		return 0;
	return !g->dev->selective || g->turn_due || !is_active(g, q);
}

static gpm_u32 count_leaving(const struct gpm_gpu *g)
{
	const struct gpm_queue *q;
	gpm_u32 i, n = 0;

	gpm_each_queue(q, g, i) n += (gpm_u32)must_leave(g, q);
	return n;
}

/* Does the run list hold someone who is not mapped? Only those with work are worth a turn. */
static int someone_waits(const struct gpm_gpu *g, int with_work)
{
	const struct gpm_queue *q;
	gpm_u32 i;

	gpm_each_queue(q, g, i)
	{
		if (is_active(g, q) && !q->ctx.mapped && (!with_work || gpm_queue_has_work(q)))
			return 1;
	}
	return 0;
}

static void enter(struct gpm_gpu *g, gpm_u32 phase, gpm_u64 end)
{
	g->phase = phase;
	g->phase_end_ns = end;
	g->count.events++;
}

/* Answers what the call asked of the queues: stops when they are off, the others when they are on. */
static void answer_call(struct gpm_gpu *g, int stops, gpm_u64 now)
{
	struct gpm_queue *q;
	gpm_u32 i;

	if (!g->serving)
		return;
	gpm_each_queue(q, g, i)
	{
		if (q->call == g->serving && (q->want == GPM_STOP) == stops)
			gpm_call_done(g, q, now);
	}
}

static void end_cycle(struct gpm_gpu *g)
{
	g->phase = GPM_IDLE;
	g->phase_end_ns = GPM_NEVER;
	g->serving = 0;
	g->turn_due = 0;
}

/* Whom the slots go to now: from the ring's start, as many as there are slots. */
static int has_slot(const struct gpm_gpu *g, const struct gpm_queue *q, gpm_u32 mapped, gpm_u32 offline)
{
	if (!is_active(g, q) || q->ctx.mapped || mapped >= g->dev->queue_slots)
		return 0;
	return !q->offline || offline < g->offline_limit;
}

static void count_mapped(const struct gpm_gpu *g, gpm_u32 *ret_all, gpm_u32 *ret_offline)
{
	const struct gpm_queue *q;
	gpm_u32 i;

	*ret_all = *ret_offline = 0;
	gpm_each_queue(q, g, i)
	{
		*ret_all += q->ctx.mapped;
		*ret_offline += q->ctx.mapped && q->offline;
	}
}

/* Maps what has a slot; 0 if that was only counted (n, waves). */
static void map_queues(struct gpm_gpu *g, int do_it, gpm_u64 now, gpm_u32 *ret_n, gpm_u64 *ret_waves)
{
	gpm_u64 restored = now + gpm_restore_ns(g->dev, *ret_waves);
	gpm_u32 i, all, offline;
	struct gpm_queue *q;

	*ret_n = 0;
	*ret_waves = 0;
	count_mapped(g, &all, &offline);
	gpm_each_queue(q, g, i)
	{
		if (!has_slot(g, q, all, offline))
			continue;
		all++;
		offline += q->offline;
		*ret_n += 1;
		*ret_waves += q->ctx.saved;
		if (do_it)
			gpm_exec_map(&g->exec, &q->ctx, now, restored);
	}
}

/* The next turn begins with the first that found no slot. */
static void plan_turn(struct gpm_gpu *g, gpm_u64 now)
{
	struct gpm_queue *q;
	gpm_u32 i;

	/* Who was left on the device has not had its quantum yet: the turn comes when it was to come. */
	if (g->dev->selective && !g->turn_due && g->turn_ns != GPM_NEVER)
		return;
	g->turn_ns = GPM_NEVER;
	gpm_each_queue(q, g, i)
	{
		if (is_active(g, q) && !q->ctx.mapped) {
			g->ring = q;
			g->turn_ns = now + g->dev->quantum_ns;
			return;
		}
	}
}

static void begin_map(struct gpm_gpu *g, gpm_u64 now)
{
	gpm_u64 waves = 0;
	gpm_u32 n;

	g->added = 0; /* this cycle maps them */
	map_queues(g, 0, now, &n, &waves);
	if (!n) {
		answer_call(g, 0, now);
		plan_turn(g, now);
		end_cycle(g);
		return;
	}
	enter(g, GPM_MAP, now + g->dev->map_fixed_ns + n * g->dev->map_queue_ns);
}

static void end_map(struct gpm_gpu *g, gpm_u64 now)
{
	gpm_u64 waves = 0;
	gpm_u32 n;

	map_queues(g, 0, now, &n, &waves);
	map_queues(g, 1, now, &n, &waves);
	answer_call(g, 0, now);
	plan_turn(g, now);
	end_cycle(g);
}

/* The call's wants hold from the moment its packets take effect. */
static void apply_call(struct gpm_gpu *g, gpm_u64 now)
{
	struct gpm_queue *q;
	gpm_u32 i;

	if (!g->serving)
		return;
	gpm_each_queue(q, g, i)
	{
		if (q->call != g->serving)
			continue;
		gpm_uncount(g, q);
		q->want = q->target;
		gpm_recount(g, q, now);
	}
}

static void end_unmap(struct gpm_gpu *g, gpm_u64 now)
{
	struct gpm_queue *q;
	gpm_u64 waves = 0;
	gpm_u32 i;

	apply_call(g, now);
	gpm_each_queue(q, g, i)
	{
		if (must_leave(g, q))
			waves += gpm_exec_stop(&g->exec, &q->ctx, now);
	}
	g->count.waves_saved += waves;
	g->count.bytes_saved += gpm_save_bytes(g->dev, waves);
	enter(g, GPM_SAVE, now + gpm_save_ns(g->dev, waves) + g->dev->fence_ns);
}

static void end_save(struct gpm_gpu *g, gpm_u64 now)
{
	struct gpm_queue *q;
	gpm_u32 i;

	gpm_each_queue(q, g, i)
	{
		if (!q->ctx.mapped)
			gpm_exec_release(&g->exec, &q->ctx, now);
	}
	answer_call(g, 1, now);
	begin_map(g, now);
}

static int changes_run_list(const struct gpm_gpu *g, gpm_u32 call)
{
	const struct gpm_queue *q;
	gpm_u32 i;

	gpm_each_queue(q, g, i)
	{
		if (q->call == call && is_active(g, q) != is_active_as(g, q, q->target))
			return 1;
	}
	return 0;
}

/* One packet takes everyone off; a selective device takes one for each. */
static gpm_u64 unmap_ns(const struct gpm_gpu *g, gpm_u32 leaving)
{
	return g->dev->unmap_ns * (g->dev->selective ? leaving : 1);
}

static void begin_cycle(struct gpm_gpu *g, gpm_u64 now)
{
	gpm_u32 leaving = count_leaving(g);

	if (g->dev->selective && g->serving) {
		const struct gpm_queue *q;
		gpm_u32 i;

		/* The wants are not applied yet: count whom the call will take off. */
		gpm_each_queue(q, g, i) leaving += q->ctx.mapped && q->call == g->serving &&
						   is_active(g, q) && !is_active_as(g, q, q->target);
	}
	if (leaving) {
		enter(g, GPM_UNMAP, now + unmap_ns(g, leaving));
		return;
	}
	apply_call(g, now);
	answer_call(g, 1, now);
	begin_map(g, now);
}

static void begin_call(struct gpm_gpu *g, gpm_u64 now)
{
	gpm_u32 call = g->calls->call;

	while (g->calls && g->calls->call == call)
		g->calls = g->calls->next_call;
	g->serving = call;
	if (!changes_run_list(g, call)) {
		apply_call(g, now);
		answer_call(g, 1, now);
		answer_call(g, 0, now);
		end_cycle(g);
		return;
	}
	g->count.cycles++;
	begin_cycle(g, now);
}

/* Is a background queue on that must give way, or off that may come back? */
static int background_moves(const struct gpm_gpu *g)
{
	const struct gpm_queue *q;
	gpm_u32 i;

	gpm_each_queue(q, g, i)
	{
		if (q->want == GPM_BACKGROUND && is_active(g, q) != (int)q->ctx.mapped)
			return 1;
	}
	return 0;
}

static void begin_yield(struct gpm_gpu *g, gpm_u64 now)
{
	g->notice_ns = GPM_NEVER;
	g->held_back = g->foreground && g->background;
	if (!background_moves(g))
		return;
	g->count.yields++;
	begin_cycle(g, now);
}

/* The limit was lowered: some have a slot that they must give up. */
static int over_limit(const struct gpm_gpu *g)
{
	gpm_u32 all, offline;

	count_mapped(g, &all, &offline);
	return offline > g->offline_limit;
}

static void begin_turn(struct gpm_gpu *g, gpm_u64 now)
{
	g->turn_ns = GPM_NEVER;
	if (!someone_waits(g, 1) && !over_limit(g)) {
		if (someone_waits(g, 0))
			g->turn_ns = now + g->dev->quantum_ns;
		return;
	}
	g->turn_due = 1;
	g->count.quanta++;
	begin_cycle(g, now);
}

static void end_phase(struct gpm_gpu *g, gpm_u64 now)
{
	if (g->phase == GPM_UNMAP)
		end_unmap(g, now);
	else if (g->phase == GPM_SAVE)
		end_save(g, now);
	else
		end_map(g, now);
}

/* Calls come before what the device does for itself: a stop is somebody waiting. */
static gpm_u64 change(struct gpm_gpu *g, gpm_u64 now)
{
	for (;;) {
		if (g->phase != GPM_IDLE) {
			if (g->phase_end_ns > now)
				return g->phase_end_ns;
			end_phase(g, now);
		} else if (g->calls) {
			begin_call(g, now);
		} else if (g->added) {
			g->added = 0;
			begin_cycle(g, now);
		} else if (g->notice_ns <= now) {
			begin_yield(g, now);
		} else if (g->turn_ns <= now) {
			begin_turn(g, now);
		} else {
			return gpm_min(g->notice_ns, g->turn_ns);
		}
	}
}

gpm_u64 gpm_runlist_step(struct gpm_gpu *g, gpm_u64 now)
{
	if (g->phase == GPM_IDLE && !g->calls && !g->added && gpm_min(g->notice_ns, g->turn_ns) > now)
		return gpm_min(g->notice_ns, g->turn_ns); /* as at nearly every step */
	return change(g, now);
}
