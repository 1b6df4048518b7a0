// SPDX-License-Identifier: MIT
#include "agent/sample.h"

#include <time.h>

#include "agent/link.h"

#define US 1000ull
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define CLOSEST (250 * US)
#define SHORTEST (1 * MS) /* of processes that are not watched closely */
#define LONGEST (100 * MS)
#define SHARE \
	120 /* looks take one part in so many of a core; the rest of a hundredth is for what else we do */
/* A look's cost counts for one part in so many, when there have been as many. One look that takes 20 times as
 * long as another, as one in a hundred does, must not move the period. */
#define SMOOTH 256
/*
 * What looks may take before the period has learned that they cost more, as when every queue begins to flap:
 * the part of half a second.  They earn more than they take, so that a few slow ones do not make them wait.
 */
#define EARNED 110 /* one part in so many of the time */
#define CREDIT ((int64_t)(SECOND / 2 / EARNED))

/* The shortest that the cost allows. */
static uint64_t close_period(const struct gp_sampler *s)
{
	uint64_t ns = s->cost_ns * SHARE;

	if (ns < CLOSEST)
		return CLOSEST;
	return ns < LONGEST ? ns : LONGEST;
}

/* When nothing has been seen yet, or something has moved. */
static uint64_t first_period(const struct gp_sampler *s)
{
	uint64_t ns = close_period(s);

	return s->is_close || ns > SHORTEST ? ns : SHORTEST;
}

void gp_sampler_reset(struct gp_sampler *s, uint32_t is_close)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->last[i] = (struct gp_activity){ 0 };
	s->is_close = is_close;
	s->period_ns = first_period(s);
	s->next_ns = s->n ? 0 : UINT64_MAX;
}

void gp_sampler_add(struct gp_sampler *s, uint64_t queue, uint64_t now_ns)
{
	uint32_t i = 0;

	while (i < s->n && s->queues[i] != queue)
		i++;
	if (i == GP_OWN_MOST)
		return;
	if (i == s->n) {
		s->queues[s->n] = queue;
		s->last[s->n++] = (struct gp_activity){ 0 };
	}
	s->period_ns = first_period(s);
	if (s->next_ns > now_ns + s->period_ns)
		s->next_ns = now_ns + s->period_ns;
}

void gp_sampler_remove(struct gp_sampler *s, uint64_t queue)
{
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->queues[i] != queue)
			continue;
		s->queues[i] = s->queues[--s->n];
		s->last[i] = s->last[s->n];
	}
	if (!s->n)
		s->next_ns = UINT64_MAX;
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

void gp_sampler_rest(struct gp_sampler *s)
{
	s->begun_ns = thread_ns();
}

static int has_moved(const struct gp_sampler *s, uint32_t i)
{
	return s->seen[i].rptr != s->last[i].rptr || s->seen[i].wptr != s->last[i].wptr;
}

/* Of a queue that has just become empty nobody knows yet whether its last work has ended. */
static void find_empty(struct gp_sampler *s)
{
	s->nempty = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->seen[i].activity != GP_ACTIVITY_IDLE ||
		    (s->last[i].activity == GP_ACTIVITY_IDLE && !has_moved(s, i)))
			continue;
		s->empty[s->nempty] = s->queues[i];
		s->place[s->nempty] = (uint16_t)i;
		s->ended[s->nempty++] = s->seen[i];
	}
}

/* What an empty queue is; ended: what finished() says of it. */
static uint32_t judge(const struct gp_sampler *s, uint32_t i, uint32_t ended)
{
	int is_new = s->last[i].activity == GP_ACTIVITY_UNKNOWN && !s->last[i].wptr;

	if (ended != GP_ACTIVITY_UNKNOWN)
		return ended;
	if (!has_moved(s, i))
		return GP_ACTIVITY_IDLE;
	return is_new ? GP_ACTIVITY_UNKNOWN : GP_ACTIVITY_BUSY;
}

static void look(struct gp_sampler *s, const struct gp_own_ops *ops, struct gp_own *own)
{
	/* In both, unknown is an answer too. */
	(void)ops->activity(own, s->queues, s->n, s->seen);
	find_empty(s);
	if (s->nempty)
		(void)ops->finished(own, s->empty, s->nempty, s->ended);
	for (uint32_t i = 0; i < s->nempty; i++)
		s->seen[s->place[i]].activity = judge(s, s->place[i], s->ended[i].activity);
}

uint32_t gp_sampler_look(struct gp_sampler *s, const struct gp_own_ops *ops, struct gp_own *own,
			 uint16_t ret_changed[GP_OWN_MOST])
{
	uint32_t changed = 0;

	look(s, ops, own);
	s->has_moved = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		int is_other = s->seen[i].activity != s->last[i].activity;

		s->has_moved |= is_other || has_moved(s, i);
		if (is_other)
			ret_changed[changed++] = (uint16_t)i;
		s->last[i] = s->seen[i];
	}
	return changed;
}

static void note_cost(struct gp_sampler *s, uint64_t now_ns)
{
	uint64_t end = thread_ns(), cost = end - s->begun_ns;
	uint64_t earned = s->planned_ns ? (now_ns - s->planned_ns) / EARNED : CREDIT / 2;

	if (s->nlooks < SMOOTH)
		s->nlooks++;
	s->cost_ns = (s->cost_ns * (s->nlooks - 1) + cost) / s->nlooks;
	s->begun_ns = end;
	s->credit_ns = earned < (uint64_t)(CREDIT - s->credit_ns) ? s->credit_ns + (int64_t)earned : CREDIT;
	s->credit_ns -= (int64_t)cost;
	if (s->credit_ns < -CREDIT)
		s->credit_ns = -CREDIT; /* the rest of a look that took so long is forgiven */
	s->planned_ns = now_ns;
}

/* How long until looks have earned what they took. */
static uint64_t debt_period(const struct gp_sampler *s)
{
	uint64_t ns = s->credit_ns < 0 ? (uint64_t)-s->credit_ns * EARNED : 0;

	return ns < LONGEST ? ns : LONGEST;
}

void gp_sampler_plan(struct gp_sampler *s, uint64_t now_ns)
{
	note_cost(s, now_ns);
	if (s->is_close || s->has_moved || s->period_ns * 2 < first_period(s))
		s->period_ns = first_period(s);
	else
		s->period_ns = s->period_ns * 2 < LONGEST ? s->period_ns * 2 : LONGEST;
	/* From when this look was due: waking up late does not make the next one late. */
	s->next_ns += s->period_ns;
	if (s->next_ns <= now_ns || s->next_ns > now_ns + s->period_ns)
		s->next_ns = now_ns + s->period_ns;
	if (s->next_ns < now_ns + debt_period(s))
		s->next_ns = now_ns + debt_period(s);
}

int gp_sampler_is_idle(const struct gp_sampler *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->last[i].activity != GP_ACTIVITY_IDLE)
			return 0;
	return s->n > 0;
}

void gp_sampler_defer(struct gp_sampler *s, uint64_t now_ns)
{
	s->next_ns = now_ns + LONGEST;
	s->is_deferred = 1;
}

void gp_sampler_hurry(struct gp_sampler *s)
{
	if (s->is_deferred)
		s->next_ns = 0;
	s->is_deferred = 0;
}
