// SPDX-License-Identifier: MIT
#include "agent/sample.h"

#include <time.h>

#include "agent/link.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define SHORTEST (1 * MS)
#define LONGEST (100 * MS)
#define SHARE 200 /* a look may take one part in so many of a core; waking up for it takes the rest */

void gp_sampler_reset(struct gp_sampler *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->last[i] = (struct gp_activity){ 0 };
	s->period_ns = SHORTEST;
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
	s->period_ns = SHORTEST;
	if (s->next_ns > now_ns + SHORTEST)
		s->next_ns = now_ns + SHORTEST;
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

uint32_t gp_sampler_look(struct gp_sampler *s, const struct gp_own_ops *ops, struct gp_own *own,
			 uint16_t ret_changed[GP_OWN_MOST])
{
	uint32_t changed = 0;

	s->begun_ns = thread_ns();
	s->has_moved = 0;
	(void)ops->activity(own, s->queues, s->n, s->seen); /* unknown is an answer too */
	for (uint32_t i = 0; i < s->n; i++) {
		s->has_moved |= s->seen[i].rptr != s->last[i].rptr || s->seen[i].wptr != s->last[i].wptr ||
				s->seen[i].activity != s->last[i].activity;
		if (s->seen[i].activity != s->last[i].activity)
			ret_changed[changed++] = (uint16_t)i;
		s->last[i] = s->seen[i];
	}
	return changed;
}

void gp_sampler_plan(struct gp_sampler *s)
{
	uint64_t least = (thread_ns() - s->begun_ns) * SHARE;

	s->period_ns = s->has_moved ? SHORTEST : s->period_ns * 2;
	if (s->period_ns > LONGEST)
		s->period_ns = LONGEST;
	s->next_ns = gp_now_ns() + (least > s->period_ns ? least : s->period_ns);
}
