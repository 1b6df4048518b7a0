/* SPDX-License-Identifier: MIT */
/* Descriptors and alarms, one at a time, in one thread. */
#ifndef GP_DAEMON_LOOP_H
#define GP_DAEMON_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "base/timers.h"

/* Live in their owners. */
struct gp_watch {
	int fd;
	void (*fn)(void *arg, uint32_t events); /* EPOLL* */
	void *arg;
	int epoll;              /* it is added to */
	struct gp_turns *turns; /* in which it has a turn of its own */
};

/*
 * Watches that have few turns together: when more of them are ready, others outside have theirs in
 * between.  So one user's thousand connections wait for each other, and hardly anybody else for
 * them.  The first few have a turn of their own each, and cost no second look for who is ready.
 */
struct gp_turns {
	struct gp_loop *loop;
	struct gp_watch watch; /* of those that share one */
	uint32_t nown;
};

struct gp_alarm {
	struct gp_timer timer;
	void (*fn)(void *arg);
	void *arg;
};

struct gp_loop {
	int epoll;
	struct gp_timers timers;
	uint64_t now_ns; /* CLOCK_MONOTONIC, as of this step */
	bool is_idle;    /* no descriptor was ready in this step */
};

void gp_loop_in_whole_ms(void); /* as before Linux 5.11 */
int gp_loop_open(struct gp_loop *l);
void gp_loop_close(struct gp_loop *l);
/* Waits, then calls for one descriptor that is ready and for every alarm that is due. -errno. */
int gp_loop_step(struct gp_loop *l);

/* What was added by either call is changed and removed by these. */
int gp_loop_add(struct gp_loop *l, struct gp_watch *w, uint32_t events);
int gp_loop_change(struct gp_loop *l, struct gp_watch *w, uint32_t events);
void gp_loop_remove(struct gp_loop *l, struct gp_watch *w);
int gp_turns_open(struct gp_loop *l, struct gp_turns *t);
void gp_turns_close(struct gp_loop *l, struct gp_turns *t);
int gp_turns_add(struct gp_turns *t, struct gp_watch *w, uint32_t events);

/* Room for it, so that setting it never fails; and what is set is cancelled. */
int gp_alarm_init(struct gp_loop *l, struct gp_alarm *a, void (*fn)(void *arg), void *arg);
void gp_alarm_free(struct gp_loop *l, struct gp_alarm *a);
void gp_alarm_in(struct gp_loop *l, struct gp_alarm *a, uint64_t ns); /* from now */
void gp_alarm_at(struct gp_loop *l, struct gp_alarm *a, uint64_t at_ns);
void gp_alarm_cancel(struct gp_loop *l, struct gp_alarm *a);
int gp_alarm_is_set(const struct gp_alarm *a);

uint64_t gp_clock_ns(void);
uint64_t gp_cpu_ns(void); /* that we have used */

#endif
