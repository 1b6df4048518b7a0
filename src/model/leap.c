// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A request is hundreds of kernels that are alike, and while nobody comes or goes its queues soon do the same
 * again and again.  When all that decides what happens next stands, relative to now, as it stood before, what
 * happened between will happen again: whole rounds are left out, and the counts and times are set to what
 * they would have come to.  The result is the same to the bit; only what it costs is less.
 */
#include "internal.h"

/* How the kernels of a queue go on. */
static void see_kernels(struct gpm_seen *s, struct gpm_queue *q)
{
	s->queue = q;
	s->kernel = q->kernel;
	s->kernels = q->kernels;
	s->done_wave_ns = q->ctx.done_wave_ns;
}

static int can_repeat(const struct gpm_queue *q)
{
	return q->shim == GPM_SHIM_NONE && q->first && !q->first->interval_ns;
}

static gpm_u64 relative(gpm_u64 at, gpm_u64 now)
{
	return at - now; /* what is past wraps around, and compares all the same */
}

static void see_running(struct gpm_seen *s, const struct gpm_ctx *c, gpm_u64 now)
{
	gpm_u32 i;

	s->pending = c->pending;
	s->ncohorts = c->ncohorts;
	for (i = 0; i < c->ncohorts; i++) {
		s->cohorts[i] = c->cohorts[i];
		if (!c->cohorts[i].running)
			continue;
		s->cohorts[i].begin_ns = relative(c->cohorts[i].begin_ns, now);
		s->cohorts[i].end_ns = relative(c->cohorts[i].end_ns, now);
	}
}

/* Remembers how things stand; 0 if they cannot repeat, or are too many. */
static int look(struct gpm_gpu *g, gpm_u64 now)
{
	struct gpm_leap *l = &g->leap;
	struct gpm_ctx *c = g->exec.ring;
	struct gpm_queue *q;
	gpm_u32 i, n = 0;

	if (g->exec.nring > GPM_LEAP_QUEUES)
		return 0;
	for (i = 0; i < g->exec.nring; i++, c = c->next) {
		if (!can_repeat((struct gpm_queue *)c))
			return 0;
		see_kernels(&l->seen[n], (struct gpm_queue *)c);
		see_running(&l->seen[n++], c, now);
	}
	l->nring = n;
	for (q = g->starting; q; q = q->next_start) {
		if (n == GPM_LEAP_QUEUES || !can_repeat(q))
			return 0;
		see_kernels(&l->seen[n], q);
		l->seen[n++].start_ns = relative(q->start_ns, now);
	}
	l->n = n;
	l->now = now;
	l->phase = g->phase;
	l->free = g->exec.free;
	l->exec_events = g->exec.events;
	l->events = g->count.events;
	l->anchor = g->starting;
	l->anchor_kernels = g->starting->kernels;
	return 1;
}

/* Its next kernels are as long as those that followed then. */
static int same_kernels(const struct gpm_seen *s, const struct gpm_queue *q)
{
	const struct gpm_cmd *cmd = q->first;

	if (s->queue != q)
		return 0;
	return !cmd->every || !cmd->every_wave_ns || (q->kernel - s->kernel) % cmd->every == 0;
}

static int same_running(const struct gpm_seen *s, const struct gpm_ctx *c, gpm_u64 now)
{
	gpm_u32 i;

	if (s->pending != c->pending || s->ncohorts != c->ncohorts)
		return 0;
	for (i = 0; i < c->ncohorts; i++) {
		const struct gpm_cohort *k = &c->cohorts[i], *then = &s->cohorts[i];
		gpm_u64 base = k->running ? now : 0;

		if (k->waves != then->waves || k->running != then->running ||
		    relative(k->end_ns, base) != then->end_ns ||
		    relative(k->begin_ns, base) != then->begin_ns)
			return 0;
	}
	return 1;
}

/* Each kernel began and ended once. Anything more was another queue's, or the device's, and may not come
 * again. */
static int nothing_else_happened(const struct gpm_gpu *g)
{
	const struct gpm_leap *l = &g->leap;
	gpm_u64 kernels = 0;
	gpm_u32 i;

	for (i = 0; i < l->n; i++)
		kernels += l->seen[i].queue->kernels - l->seen[i].kernels;
	return g->count.events - l->events == 2 * kernels;
}

static int same(const struct gpm_gpu *g, gpm_u64 now)
{
	const struct gpm_leap *l = &g->leap;
	const struct gpm_ctx *c = g->exec.ring;
	const struct gpm_queue *q = g->starting;
	gpm_u32 i;

	/* A phase that ended put queues on the device that were off it then: they ran later than they will
	 * now. */
	if (g->phase != l->phase || g->exec.nring != l->nring || g->exec.free != l->free)
		return 0;
	for (i = 0; i < l->nring; i++, c = c->next)
		if (!same_kernels(&l->seen[i], (const struct gpm_queue *)c) ||
		    !same_running(&l->seen[i], c, now))
			return 0;
	for (; i < l->n && q; i++, q = q->next_start)
		if (!same_kernels(&l->seen[i], q) || relative(q->start_ns, now) != l->seen[i].start_ns)
			return 0;
	return i == l->n && !q && nothing_else_happened(g);
}

/* As many rounds as end before the limit, and before any command's last kernel does. */
static gpm_u64 count_rounds(const struct gpm_gpu *g, gpm_u64 now, gpm_u64 limit)
{
	const struct gpm_leap *l = &g->leap;
	gpm_u64 n = limit > now ? (limit - 1 - now) / (now - l->now) : 0;
	gpm_u32 i;

	for (i = 0; i < l->n; i++) {
		const struct gpm_queue *q = l->seen[i].queue;
		gpm_u64 each = q->kernels - l->seen[i].kernels;

		if (each)
			n = gpm_min(n, (q->first->count - 1 - q->kernel) / each);
	}
	return n;
}

static void move_times(struct gpm_queue *q, gpm_u64 by)
{
	struct gpm_ctx *c = &q->ctx;
	gpm_u32 i;

	for (i = 0; i < c->ncohorts; i++) {
		if (!c->cohorts[i].running)
			continue;
		c->cohorts[i].begin_ns += by;
		c->cohorts[i].end_ns += by;
	}
	if (c->linked && c->next_end_ns != GPM_NEVER)
		c->next_end_ns += by;
	if (q->starting)
		q->start_ns += by;
}

static void move_queue(const struct gpm_seen *s, gpm_u64 rounds, gpm_u64 by)
{
	struct gpm_queue *q = s->queue;
	gpm_u64 kernels = rounds * (q->kernels - s->kernels);

	move_times(q, by);
	q->ctx.done_wave_ns += rounds * (q->ctx.done_wave_ns - s->done_wave_ns);
	if (!kernels)
		return;
	q->kernel += kernels;
	q->kernels += kernels;
	q->waiting -= kernels;
	q->ctx.ended_ns += by;
	if (q->ctx.first_ns != GPM_NEVER)
		q->ctx.first_ns += by;
}

static void leap(struct gpm_gpu *g, gpm_u64 now, gpm_u64 limit)
{
	struct gpm_leap *l = &g->leap;
	gpm_u64 n = count_rounds(g, now, limit), by = n * (now - l->now);
	gpm_u32 i;

	for (i = 0; n && i < l->n; i++)
		move_queue(&l->seen[i], n, by);
	g->exec.events += n * (g->exec.events - l->exec_events);
	g->count.events += n * (g->count.events - l->events);
	if (n && g->exec.next_ns != GPM_NEVER)
		g->exec.next_ns += by;
}

/* The device itself does nothing before that, unless something is asked of it or a queue runs empty. */
static gpm_u64 device_acts(const struct gpm_gpu *g)
{
	return g->phase == GPM_IDLE ? gpm_min(g->notice_ns, g->turn_ns) : g->phase_end_ns;
}

/*
 * Looks whether things stand as they stood when they were last remembered: at that moment's kernel ends of
 * one queue, as rarely as twice as far apart each time, so that rounds of any length are found (Brent's way).
 */
static void try_leap(struct gpm_gpu *g, gpm_u64 now, gpm_u64 limit)
{
	struct gpm_leap *l = &g->leap;

	if (!g->starting)
		return;
	if (l->anchor) {
		if (l->anchor->kernels == l->anchor_kernels || !l->anchor->starting)
			return;
		l->anchor_kernels = l->anchor->kernels;
		if (same(g, now)) {
			l->anchor = NULL;
			leap(g, now, gpm_min(limit, device_acts(g)));
			return;
		}
		if (++l->tries < l->span)
			return;
		l->span *= 2;
	}
	l->tries = 0;
	if (!look(g, now))
		l->anchor = NULL;
}

/*
 * Waves that begin and end inside a dispatch concern nobody else: only the engines are stepped.  Returns the
 * time of the step that is due for the whole device.
 */
static gpm_u64 pass_waves(struct gpm_gpu *g, gpm_u64 limit)
{
	gpm_u64 others = gpm_min(device_acts(g), gpm_next_start(g)), now;

	while (g->exec.next_ns < gpm_min(others, limit)) {
		now = g->exec.next_ns;
		(void)gpm_exec_step(&g->exec, now);
		if (g->exec.ended)
			return now;
	}
	return gpm_min(g->exec.next_ns, others);
}

gpm_u64 gpm_gpu_run(struct gpm_gpu *g, gpm_u64 next, gpm_u64 limit)
{
	gpm_u64 now;

	g->leap.anchor = NULL;
	g->leap.span = 1;
	while (next < limit) {
		now = next;
		(void)gpm_gpu_step(g, now);
		if (g->finished || g->changed)
			return now;
		if (g->dev->sharing == GPM_CONCURRENT)
			try_leap(g, now, limit);
		next = pass_waves(g, limit);
	}
	return next;
}
