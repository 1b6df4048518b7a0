// SPDX-License-Identifier: MIT OR GPL-2.0
#include "internal.h"

void gpm_gpu_init(struct gpm_gpu *g, const struct gpm_device *dev)
{
	*g = (struct gpm_gpu){ .dev = dev,
			       .offline_limit = ~(gpm_u32)0,
			       .phase_end_ns = GPM_NEVER,
			       .notice_ns = GPM_NEVER,
			       .turn_ns = GPM_NEVER };
	gpm_exec_init(&g->exec, dev);
}

void gpm_gpu_add(struct gpm_gpu *g, struct gpm_queue *q)
{
	if (!g->ring) {
		g->ring = q->next = q->prev = q;
	} else {
		q->next = g->ring;
		q->prev = g->ring->prev;
		q->prev->next = q;
		q->next->prev = q;
	}
	g->nqueues++;
	/* Creating a queue maps it, by a cycle of its own; on a time-sliced device it waits for work. */
	g->added = g->dev->sharing == GPM_CONCURRENT;
}

int gpm_gpu_remove(struct gpm_gpu *g, struct gpm_queue *q)
{
	if (q->want != GPM_STOP || q->ctx.mapped || q->call || q->listed)
		return -1;
	gpm_cancel_start(g, q);
	if (g->resident == q)
		g->resident = NULL;
	if (g->current == q) { /* on its way to the device */
		g->current = NULL;
		g->phase = GPM_IDLE;
		g->phase_end_ns = GPM_NEVER;
	}
	if (g->ring == q)
		g->ring = q->next == q ? NULL : q->next;
	q->next->prev = q->prev;
	q->prev->next = q->next;
	g->nqueues--;
	return 0;
}

void gpm_uncount(struct gpm_gpu *g, const struct gpm_queue *q)
{
	int works = gpm_queue_has_work(q);

	g->foreground -= works && q->want == GPM_RUN;
	g->eligible -= works && q->want != GPM_STOP;
	g->background -= q->want == GPM_BACKGROUND;
}

/* Does the device have to change its mind about the background queues? Then it notices after a while. */
static void watch_background(struct gpm_gpu *g, gpm_u64 now)
{
	gpm_u32 hold = g->foreground && g->background;

	if (hold == g->held_back)
		g->notice_ns = GPM_NEVER;
	else if (g->notice_ns == GPM_NEVER)
		g->notice_ns = now + (hold ? g->dev->yield_notice_ns : g->dev->yield_linger_ns);
}

void gpm_recount(struct gpm_gpu *g, const struct gpm_queue *q, gpm_u64 now)
{
	int works = gpm_queue_has_work(q);

	g->foreground += works && q->want == GPM_RUN;
	g->eligible += works && q->want != GPM_STOP;
	g->background += q->want == GPM_BACKGROUND;
	if (g->dev->sharing == GPM_CONCURRENT)
		watch_background(g, now);
}

gpm_u32 gpm_new_call(struct gpm_gpu *g)
{
	if (++g->next_call_id == 0)
		g->next_call_id = 1;
	return g->next_call_id;
}

int gpm_gpu_call(struct gpm_gpu *g, struct gpm_queue **queues, const gpm_u32 *wants, gpm_u32 n, gpm_u64 now)
{
	gpm_u32 i, id = gpm_new_call(g);

	for (i = 0; i < n && !queues[i]->call; i++)
		queues[i]->call = id;
	if (i < n) {
		while (i--)
			queues[i]->call = 0;
		return -1;
	}
	for (i = 0; i < n; i++) {
		struct gpm_queue *q = queues[i];

		q->target = wants[i];
		q->called_ns = now;
		q->next_call = NULL;
		if (g->calls)
			g->last_call->next_call = q;
		else
			g->calls = q;
		g->last_call = q;
	}
	return 0;
}

void gpm_call_done(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 now)
{
	q->call = 0;
	q->ended_ns = now;
	g->count.events++;
	if (q->listed)
		return;
	q->listed = 1;
	q->next_changed = NULL;
	if (g->changed)
		g->last_changed->next_changed = q;
	else
		g->changed = q;
	g->last_changed = q;
}

struct gpm_queue *gpm_gpu_changed(struct gpm_gpu *g)
{
	struct gpm_queue *q = g->changed;

	if (q) {
		g->changed = q->next_changed;
		q->listed = 0;
	}
	return q;
}

void gpm_gpu_limit_offline(struct gpm_gpu *g, gpm_u32 n)
{
	g->offline_limit = n;
	if (g->dev->sharing == GPM_CONCURRENT && g->nqueues)
		g->turn_ns = 0; /* a turn puts it into effect */
}

gpm_u64 gpm_gpu_step(struct gpm_gpu *g, gpm_u64 now)
{
	struct gpm_ctx *c;
	gpm_u64 next;

	do {
		next = gpm_exec_step(&g->exec, now);
		while ((c = gpm_exec_ended(&g->exec))) {
			g->count.events++;
			gpm_queue_kernel_ended(g, (struct gpm_queue *)c, now);
		}
		gpm_start_due(g, now);
		next = g->dev->sharing == GPM_CONCURRENT ? gpm_runlist_step(g, now) : gpm_slice_step(g, now);
		next = gpm_min(next, gpm_min(g->exec.next_ns, gpm_next_start(g)));
	} while (next <= now);
	return next;
}
