/* SPDX-License-Identifier: MIT */
/*
 * Timers in a binary heap; the timer lives in its owner.  Equal times fire in the
 * order in which they were set, so that a run can be repeated to the byte.
 */
#ifndef GP_BASE_TIMERS_H
#define GP_BASE_TIMERS_H

#include <stddef.h>
#include <stdint.h>

struct gp_timer {
	uint64_t at_ns;
	uint64_t order;
	size_t place; /* 1 + index in the heap; 0: not set */
};

struct gp_timers {
	struct gp_timer **heap;
	size_t count;
	size_t capacity;
	size_t reserved;
	uint64_t next_order;
};

/* Room for n more timers: so many can then be set at a time and never fail. */
int gp_timers_reserve(struct gp_timers *t, size_t n); /* -ENOMEM */
void gp_timers_release(struct gp_timers *t, size_t n);
int gp_timer_set(struct gp_timers *t, struct gp_timer *timer, uint64_t at_ns); /* -ENOMEM */
void gp_timer_cancel(struct gp_timers *t, struct gp_timer *timer);
struct gp_timer *gp_timers_first(const struct gp_timers *t); /* NULL: none is set */
uint64_t gp_timers_next(const struct gp_timers *t);          /* UINT64_MAX: none is set */
void gp_timers_free(struct gp_timers *t);

#endif
