// SPDX-License-Identifier: MIT
#include "base/timers.h"

#include <errno.h>
#include <stdlib.h>

static int earlier(const struct gp_timer *a, const struct gp_timer *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void put(struct gp_timers *t, size_t i, struct gp_timer *timer)
{
	t->heap[i] = timer;
	timer->place = i + 1;
}

static void sift_up(struct gp_timers *t, size_t i)
{
	struct gp_timer *timer = t->heap[i];

	while (i && earlier(timer, t->heap[(i - 1) / 2])) {
		put(t, i, t->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	put(t, i, timer);
}

static void sift_down(struct gp_timers *t, size_t i)
{
	struct gp_timer *timer = t->heap[i];
	size_t child;

	while ((child = 2 * i + 1) < t->count) {
		if (child + 1 < t->count && earlier(t->heap[child + 1], t->heap[child]))
			child++;
		if (!earlier(t->heap[child], timer))
			break;
		put(t, i, t->heap[child]);
		i = child;
	}
	put(t, i, timer);
}

static int grow(struct gp_timers *t, size_t least)
{
	size_t capacity = t->capacity ? t->capacity : 16;
	struct gp_timer **heap;

	while (capacity < least)
		capacity *= 2;
	if (capacity == t->capacity)
		return 0;
	heap = realloc(t->heap, capacity * sizeof(struct gp_timer *));
	if (!heap)
		return -ENOMEM;
	t->heap = heap;
	t->capacity = capacity;
	return 0;
}

int gp_timers_reserve(struct gp_timers *t, size_t n)
{
	int r = grow(t, t->reserved + n);

	if (r == 0)
		t->reserved += n;
	return r;
}

void gp_timers_release(struct gp_timers *t, size_t n)
{
	t->reserved -= n;
}

int gp_timer_set(struct gp_timers *t, struct gp_timer *timer, uint64_t at_ns)
{
	int r;

	gp_timer_cancel(t, timer);
	r = grow(t, t->count + 1);
	if (r < 0)
		return r;
	timer->at_ns = at_ns;
	timer->order = t->next_order++;
	put(t, t->count++, timer);
	sift_up(t, t->count - 1);
	return 0;
}

void gp_timer_cancel(struct gp_timers *t, struct gp_timer *timer)
{
	size_t i = timer->place;
	struct gp_timer *last;

	if (!i--)
		return;
	timer->place = 0;
	last = t->heap[--t->count];
	if (last == timer)
		return;
	put(t, i, last);
	sift_up(t, i);
	sift_down(t, last->place - 1);
}

struct gp_timer *gp_timers_first(const struct gp_timers *t)
{
	return t->count ? t->heap[0] : NULL;
}

uint64_t gp_timers_next(const struct gp_timers *t)
{
	return t->count ? t->heap[0]->at_ns : UINT64_MAX;
}

void gp_timers_free(struct gp_timers *t)
{
	free(t->heap);
	*t = (struct gp_timers){ 0 };
}
