// SPDX-License-Identifier: MIT
#include "daemon/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* Linux 5.11 */
#endif

#define MOST_WAIT_NS (60 * GP_S)
#define MOST_OWN_TURNS 8 /* of a user: four connections, and the ends of their processes */

static bool whole_ms;

void gp_loop_in_whole_ms(void)
{
	whole_ms = true;
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t); /* cannot fail for these clocks */
	return (uint64_t)t.tv_sec * GP_S + (uint64_t)t.tv_nsec;
}

uint64_t gp_clock_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t gp_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int gp_loop_open(struct gp_loop *l)
{
	*l = (struct gp_loop){ .epoll = epoll_create1(EPOLL_CLOEXEC), .now_ns = gp_clock_ns() };
	return l->epoll < 0 ? -errno : 0;
}

void gp_loop_close(struct gp_loop *l)
{
	gp_timers_free(&l->timers);
	if (l->epoll >= 0)
		close(l->epoll);
	l->epoll = -1;
}

static uint64_t wait_ns(struct gp_loop *l)
{
	uint64_t next = gp_timers_next(&l->timers);

	if (next <= l->now_ns)
		return 0;
	return next - l->now_ns < MOST_WAIT_NS ? next - l->now_ns : MOST_WAIT_NS;
}

/* Where the kernel can, to less than a ms: online work may last no longer. */
static int wait_for(struct gp_loop *l, struct epoll_event *event)
{
	uint64_t ns = wait_ns(l);
	const int64_t timeout[2] = { (int64_t)(ns / GP_S), (int64_t)(ns % GP_S) };
	int n = whole_ms ? -1 : (int)syscall(SYS_epoll_pwait2, l->epoll, event, 1, timeout, NULL, 0);

	whole_ms = whole_ms || (n < 0 && errno != EINTR);
	return whole_ms ? epoll_wait(l->epoll, event, 1, (int)((ns + GP_MS - 1) / GP_MS)) : n;
}

static void run_alarms(struct gp_loop *l)
{
	struct gp_timer *first;

	while ((first = gp_timers_first(&l->timers)) && first->at_ns <= l->now_ns) {
		struct gp_alarm *a = gp_container(first, struct gp_alarm, timer);

		gp_timer_cancel(&l->timers, &a->timer);
		a->fn(a->arg);
	}
}

int gp_loop_step(struct gp_loop *l)
{
	struct epoll_event event;
	int n;

	l->now_ns = gp_clock_ns();
	/* One only: the call for it may close what a second one belongs to. */
	n = wait_for(l, &event);
	if (n < 0 && errno != EINTR)
		return -errno;
	l->now_ns = gp_clock_ns();
	l->is_idle = n != 1;
	if (n == 1) {
		struct gp_watch *w = event.data.ptr;

		w->fn(w->arg, event.events);
	}
	run_alarms(l);
	return 0;
}

static int control(int epoll, int op, struct gp_watch *w, uint32_t events)
{
	struct epoll_event event = { .events = events, .data = { .ptr = w } };

	return epoll_ctl(epoll, op, w->fd, &event) < 0 ? -errno : 0;
}

static int add(int epoll, struct gp_watch *w, uint32_t events)
{
	w->epoll = epoll;
	return control(epoll, EPOLL_CTL_ADD, w, events);
}

int gp_loop_add(struct gp_loop *l, struct gp_watch *w, uint32_t events)
{
	return add(l->epoll, w, events);
}

int gp_loop_change(struct gp_loop *l, struct gp_watch *w, uint32_t events)
{
	(void)l;
	return control(w->epoll, EPOLL_CTL_MOD, w, events);
}

void gp_loop_remove(struct gp_loop *l, struct gp_watch *w)
{
	(void)l;
	(void)control(w->epoll, EPOLL_CTL_DEL, w, 0);
	if (w->turns)
		w->turns->nown--;
	w->turns = NULL;
}

/* One only, here as there. */
static void one_of_them(void *arg, uint32_t events)
{
	struct gp_turns *t = arg;
	struct epoll_event event;

	(void)events;
	if (epoll_wait(t->watch.fd, &event, 1, 0) == 1) {
		struct gp_watch *w = event.data.ptr;

		w->fn(w->arg, event.events);
	}
}

int gp_turns_open(struct gp_loop *l, struct gp_turns *t)
{
	int r;

	*t = (struct gp_turns){
		.loop = l, .watch = { .fd = epoll_create1(EPOLL_CLOEXEC), .fn = one_of_them, .arg = t }
	};
	if (t->watch.fd < 0)
		return -errno;
	r = gp_loop_add(l, &t->watch, EPOLLIN);
	if (r < 0)
		gp_turns_close(l, t);
	return r;
}

void gp_turns_close(struct gp_loop *l, struct gp_turns *t)
{
	gp_loop_remove(l, &t->watch);
	close(t->watch.fd);
	t->watch.fd = -1;
}

int gp_turns_add(struct gp_turns *t, struct gp_watch *w, uint32_t events)
{
	int has_own = t->nown < MOST_OWN_TURNS;
	int r = add(has_own ? t->loop->epoll : t->watch.fd, w, events);

	w->turns = r == 0 && has_own ? t : NULL;
	t->nown += w->turns != NULL;
	return r;
}

int gp_alarm_init(struct gp_loop *l, struct gp_alarm *a, void (*fn)(void *arg), void *arg)
{
	int r = gp_timers_reserve(&l->timers, 1);

	*a = (struct gp_alarm){ .fn = r < 0 ? NULL : fn, .arg = arg };
	return r;
}

void gp_alarm_free(struct gp_loop *l, struct gp_alarm *a)
{
	if (!a->fn)
		return;
	gp_timer_cancel(&l->timers, &a->timer);
	gp_timers_release(&l->timers, 1);
	a->fn = NULL;
}

void gp_alarm_at(struct gp_loop *l, struct gp_alarm *a, uint64_t at_ns)
{
	if (at_ns == UINT64_MAX)
		gp_timer_cancel(&l->timers, &a->timer);
	else
		(void)gp_timer_set(&l->timers, &a->timer, at_ns); /* there is room: gp_alarm_init() */
}

void gp_alarm_in(struct gp_loop *l, struct gp_alarm *a, uint64_t ns)
{
	gp_alarm_at(l, a, l->now_ns + ns);
}

void gp_alarm_cancel(struct gp_loop *l, struct gp_alarm *a)
{
	gp_timer_cancel(&l->timers, &a->timer);
}

int gp_alarm_is_set(const struct gp_alarm *a)
{
	return a->timer.place != 0;
}
