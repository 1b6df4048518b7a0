// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Time-sliced devices: one queue at a time.  Its slice matters only while another
 * queue has work; a queue that has none gives the device up at once.
 */
#include "internal.h"

static int is_eligible(const struct gpm_queue *q)
{
	return gpm_queue_has_work(q) && q->want != GPM_STOP;
}

static gpm_u64 slice_of(const struct gpm_gpu *g, const struct gpm_queue *q)
{
	if (q->want == GPM_BACKGROUND)
		return q->slice_ns ? q->slice_ns : g->dev->yield_slice_ns;
	return g->dev->slice_ns;
}

/* Round robin, from the one after q; q itself comes last. */
static struct gpm_queue *next_eligible(const struct gpm_gpu *g, struct gpm_queue *q)
{
	gpm_u32 i;

	for (i = 0; i < g->nqueues; i++) {
		q = q->next;
		if (is_eligible(q))
			return q;
	}
	return NULL;
}

static void take_off(struct gpm_gpu *g, gpm_u64 now)
{
	struct gpm_queue *q = g->current;

	g->current = NULL;
	g->turn_ns = GPM_NEVER;
	if (!q->ctx.mapped)
		return;
	g->count.waves_saved += gpm_exec_stop(&g->exec, &q->ctx, now);
	gpm_exec_release(&g->exec, &q->ctx, now);
}

static void put_on(struct gpm_gpu *g, gpm_u64 now)
{
	g->phase = GPM_IDLE;
	g->phase_end_ns = GPM_NEVER;
	g->resident = g->current;
	g->slice_begin_ns = now;
	g->turn_ns = GPM_NEVER;
	gpm_exec_map(&g->exec, &g->current->ctx, now, now);
}

static void switch_to(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 now)
{
	g->current = q;
	g->ring = q;
	g->count.events++;
	if (q == g->resident) {
		put_on(g, now);
		return;
	}
	g->count.switches++;
	g->phase = GPM_SWITCH;
	g->phase_end_ns = now + g->dev->switch_ns;
}

/* Slices run on from when the queue came on; one that nobody waited for has no effect. */
static gpm_u64 slice_end(const struct gpm_gpu *g, gpm_u64 now)
{
	gpm_u64 slice = slice_of(g, g->current);

	return g->slice_begin_ns + ((now - g->slice_begin_ns) / slice + 1) * slice;
}

static void watch_slice(struct gpm_gpu *g, gpm_u64 now)
{
	if (!g->current || g->phase == GPM_SWITCH)
		return;
	if (g->eligible < 2)
		g->turn_ns = GPM_NEVER;
	else if (g->turn_ns == GPM_NEVER)
		g->turn_ns = slice_end(g, now);
}

/* Calls act at once: the time they take is the host's. */
static void do_calls(struct gpm_gpu *g, gpm_u64 now)
{
	struct gpm_queue *q;

	while ((q = g->calls)) {
		g->calls = q->next_call;
		if (q->want != q->target)
			g->count.cycles++;
		gpm_uncount(g, q);
		q->want = q->target;
		gpm_recount(g, q, now);
		if (q == g->current) {
			/* A shorter slice holds from now on. */
			g->turn_ns = GPM_NEVER;
			if (g->phase == GPM_IDLE && q->want == GPM_STOP)
				take_off(g, now);
		}
		gpm_call_done(g, q, now);
	}
}

static void end_turn(struct gpm_gpu *g, gpm_u64 now)
{
	struct gpm_queue *next = next_eligible(g, g->current);

	if (!next || next == g->current) {
		g->turn_ns = GPM_NEVER;
		return;
	}
	if (g->current->want == GPM_BACKGROUND)
		g->count.yields++;
	take_off(g, now);
	switch_to(g, next, now);
}

static void end_switch(struct gpm_gpu *g, gpm_u64 now)
{
	if (is_eligible(g->current)) {
		put_on(g, now);
		return;
	}
	/* It was stopped on its way. */
	g->phase = GPM_IDLE;
	g->phase_end_ns = GPM_NEVER;
	g->resident = g->current;
	g->current = NULL;
}

gpm_u64 gpm_slice_step(struct gpm_gpu *g, gpm_u64 now)
{
	struct gpm_queue *next;

	do_calls(g, now);
	if (g->phase == GPM_SWITCH && g->phase_end_ns <= now)
		end_switch(g, now);
	if (g->phase == GPM_IDLE && g->current && !is_eligible(g->current))
		take_off(g, now);
	if (g->phase == GPM_IDLE && g->current && g->turn_ns <= now)
		end_turn(g, now);
	if (g->phase == GPM_IDLE && !g->current && g->eligible) {
		next = next_eligible(g, g->ring);
		if (next)
			switch_to(g, next, now);
	}
	watch_slice(g, now);
	return gpm_min(g->phase_end_ns, g->turn_ns);
}
