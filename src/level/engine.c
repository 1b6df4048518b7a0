// SPDX-License-Identifier: MIT
#include "level/internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "level/gates.h"

/* Nothing ends for so long: what is in flight may wait for what we keep, or be lost. */
#define STUCK_NS GP_S
#define NEVER UINT64_MAX

struct gp_engine gp_engine = { .lock = PTHREAD_MUTEX_INITIALIZER,
			       .queues = { &gp_engine.queues, &gp_engine.queues },
			       .wait_ns = GP_LEVEL_WAIT_NS };

/* Time, the lock and the bell */

uint64_t gp_level_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * GP_S + (uint64_t)t.tv_nsec;
}

void gp_engine_lock(void)
{
	(void)pthread_mutex_lock(&gp_engine.lock);
}

void gp_engine_unlock(void)
{
	(void)pthread_mutex_unlock(&gp_engine.lock);
}

void gp_engine_changed(void)
{
	__atomic_add_fetch(&gp_engine.changes, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, &gp_engine.changes, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void gp_engine_sleep(uint32_t changes, uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / GP_S), .tv_nsec = (long)(ns % GP_S) };

	(void)syscall(SYS_futex, &gp_engine.changes, FUTEX_WAIT_PRIVATE, changes, &t, NULL, 0);
}

/* Queues */

static int is_low(const struct gp_level_queue *q)
{
	return q->client_class == GP_CLASS_OFFLINE && q->level != GP_LEVEL_NONE;
}

/* Whoever may be held, of whatever class. */
static int is_guarded(const struct gp_level_queue *q)
{
	return is_low(q) || (q->was_held && q->level != GP_LEVEL_NONE);
}

static int is_high(const struct gp_level_queue *q)
{
	return q->client_class == GP_CLASS_ONLINE && !q->is_manual;
}

/* An online queue is counted only where it has somebody to hold. */
static int has_rival(const struct gp_level_queue *q)
{
	gp_list_each(at, &gp_engine.queues) {
		const struct gp_level_queue *other = gp_container(at, struct gp_level_queue, link);

		if (other->is.device == q->is.device && is_low(other) && !other->is_manual)
			return 1;
	}
	return 0;
}

static void set_adds(struct gp_level_queue *q)
{
	uint32_t adds = 0;

	if (is_guarded(q))
		adds = GP_ADD_COUNT | (q->level == GP_LEVEL_GATE ? GP_ADD_GATE : 0) |
		       (q->level == GP_LEVEL_THROTTLE && q->ops->release && gp_arbiter_start() == 0
				? GP_ADD_WAIT
				: 0);
	else if (q->is_counted || (is_high(q) && has_rival(q)))
		adds = GP_ADD_COUNT;
	__atomic_store_n(&q->adds, adds, __ATOMIC_RELEASE);
}

/* What was changed of one may change what is added to others. */
static void set_all_adds(void)
{
	gp_list_each(at, &gp_engine.queues)
		set_adds(gp_container(at, struct gp_level_queue, link));
}

/* In a child after fork() nothing of a runtime may be touched: its memory is the parent's. */
static int is_gone(const struct gp_level_queue *q)
{
	return q->is_gone || gp_engine.is_foreign;
}

static void settle(struct gp_level_queue *q)
{
	if (q->ops->gate && !gp_engine.is_foreign)
		q->ops->gate(q->door, q->held && q->level == GP_LEVEL_GATE);
}

static uint32_t highest(uint32_t levels)
{
	uint32_t level = GP_LEVEL_GATE;

	while (level && !(levels & 1u << level))
		level--;
	return level;
}

/* Which queue this thread launched to last: its serial, as the queue may have gone. */
static __thread uint64_t last_serial;

struct gp_level_queue *gp_level_add(const struct gp_door_ops *ops, void *door, const struct gp_door_queue *is)
{
	struct gp_level_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->ops = ops;
	q->door = door;
	q->is = *is;
	q->users = 1;
	q->client_class = is->client_class;
	q->levels = ops->levels;
	q->wanted = GP_LEVEL_GATE;
	q->level = highest(q->levels);
	gp_engine_lock();
	q->serial = ++gp_engine.serials;
	gp_list_append(&gp_engine.queues, &q->link);
	set_all_adds();
	gp_gates_add(q);
	gp_engine_unlock();
	if (is->gpu_id)
		gp_gates_tell();
	return q;
}

void gp_engine_put(struct gp_level_queue *q)
{
	if (!--q->users)
		free(q);
}

void gp_level_put(struct gp_level_queue *q)
{
	gp_engine_lock();
	gp_engine_put(q);
	gp_engine_unlock();
}

/* A runtime's calls are made without the lock. Whoever makes them is counted, and the queue stays until then.
 */
int gp_engine_enter(struct gp_level_queue *q)
{
	if (is_gone(q))
		return -ENODEV;
	q->users++;
	q->calls++;
	return 0;
}

void gp_engine_leave(struct gp_level_queue *q)
{
	int is_awaited;

	gp_engine_lock();
	q->calls--;
	is_awaited = q->is_gone && !q->calls;
	gp_engine_put(q);
	gp_engine_unlock();
	if (is_awaited)
		gp_engine_changed();
}

void gp_level_remove(struct gp_level_queue *q)
{
	uint32_t changes;

	gp_engine_lock();
	q->held = 0;
	settle(q);
	q->is_gone = 1;
	__atomic_store_n(&q->adds, 0, __ATOMIC_RELEASE); /* for a launch that waits here */
	gp_list_remove(&q->link);
	set_all_adds();
	while (q->calls && !gp_engine.is_foreign) { /* there those who call are not */
		changes = __atomic_load_n(&gp_engine.changes, __ATOMIC_SEQ_CST);
		gp_engine_unlock();
		gp_engine_sleep(changes, GP_LEVEL_CHUNK_NS);
		gp_engine_lock();
	}
	gp_arbiter_look(gp_level_now());
	gp_engine_put(q);
	gp_engine_unlock();
	gp_engine_changed();
}

void gp_level_let_all_go(uint32_t holder)
{
	gp_engine_lock();
	gp_list_each(at, &gp_engine.queues)
		gp_engine_mark(gp_container(at, struct gp_level_queue, link), holder, 0);
	gp_engine_unlock();
}

struct gp_level_queue *gp_level_find(const void *stream, uint64_t ring)
{
	struct gp_level_queue *found = NULL;

	gp_engine_lock();
	gp_list_each(at, &gp_engine.queues) {
		struct gp_level_queue *q = gp_container(at, struct gp_level_queue, link);

		if ((stream && q->is.stream == stream) || (ring && q->is.ring == ring))
			found = q;
	}
	if (found)
		found->users++;
	gp_engine_unlock();
	return found;
}

struct gp_level_queue *gp_level_find_last(void)
{
	struct gp_level_queue *found = NULL;

	gp_engine_lock();
	gp_list_each(at, &gp_engine.queues) {
		struct gp_level_queue *q = gp_container(at, struct gp_level_queue, link);

		if (q->serial == last_serial)
			found = q;
	}
	if (found)
		found->users++;
	gp_engine_unlock();
	return found;
}

/* Launches */

static uint32_t bound_of(const struct gp_level_queue *q)
{
	if (q->level == GP_LEVEL_GATE && q->ops->deep)
		return q->ops->deep;
	if (q->most || q->ops->most)
		return q->most ? q->most : q->ops->most;
	return gp_depth_bound(&q->depth, __atomic_load_n(&gp_engine.wait_ns, __ATOMIC_RELAXED));
}

int gp_engine_has_ended(const struct gp_level_queue *q)
{
	return q->ops->ended(q->door) >= __atomic_load_n(&q->begun, __ATOMIC_SEQ_CST);
}

/* An online queue that was held is at the throttle for that alone. */
static int is_bounded(const struct gp_level_queue *q)
{
	return q->level == GP_LEVEL_THROTTLE && q->client_class != GP_CLASS_ONLINE;
}

/* At the throttle, or so that it does not fill the runtime's own queue. */
static int has_bound(const struct gp_level_queue *q)
{
	return is_bounded(q) || (q->level == GP_LEVEL_GATE && q->ops->deep);
}

/* Whether a launch has to wait, and for how many to end. What waits at a gate has no length. */
static int must_wait(struct gp_level_queue *q, uint32_t n, uint64_t *ret_ended)
{
	uint64_t ended = q->ops->ended(q->door), bound = bound_of(q);

	if (q->level == GP_LEVEL_THROTTLE)
		gp_depth_note(&q->depth, q->begun, ended, gp_level_now());
	*ret_ended =
		q->begun + n > bound ? q->begun + n - bound : 0; /* more at once than may be: when all have */
	if (*ret_ended > q->begun)
		*ret_ended = q->begun;
	return ended < *ret_ended;
}

static void wait_to_be_let_go(const struct gp_level_queue *q)
{
	uint32_t changes = __atomic_load_n(&gp_engine.changes, __ATOMIC_SEQ_CST);

	if (__atomic_load_n(&q->held, __ATOMIC_SEQ_CST))
		gp_engine_sleep(changes, GP_LEVEL_CHUNK_NS);
}

int gp_engine_is_stuck(uint64_t *stuck, uint64_t progress, uint64_t since_ns)
{
	if (*stuck == progress + 1)
		return 1;
	*stuck = gp_level_now() - since_ns > STUCK_NS ? progress + 1 : 0;
	return *stuck != 0;
}

/* Whether it may be that a launch waits in its own thread. */
static int keeps_threads(const struct gp_level_queue *q)
{
	return !q->ops->release && (has_bound(q) || (q->level == GP_LEVEL_THROTTLE && q->held));
}

static void wait_while_there(struct gp_level_queue *q, uint32_t n)
{
	uint64_t since = gp_level_now(), seen = UINT64_MAX, target, ended;
	int is_held, is_full;

	for (;;) {
		gp_engine_lock();
		is_held = q->held && q->level == GP_LEVEL_THROTTLE;
		is_full = !is_held && !q->is_gone && has_bound(q) && must_wait(q, n, &target);
		is_held |= is_full && q->held; /* at a closed gate nothing ends */
		gp_engine_unlock();
		ended = q->ops->ended(q->door);
		if (is_held || ended != seen)
			since = gp_level_now();
		seen = ended;
		if (is_held)
			wait_to_be_let_go(q);
		else if (is_full && !gp_engine_is_stuck(&q->stuck, ended, since))
			q->ops->wait(q->door, target, GP_LEVEL_CHUNK_NS);
		else
			return;
	}
}

/* Whether the queue is still there; else nothing of it may be looked at any more. */
static int wait_for_room(struct gp_level_queue *q, uint32_t n)
{
	int r, before, is_there;

	gp_engine_lock();
	r = gp_engine_enter(q);
	gp_engine_unlock();
	if (r < 0)
		return 0;
	/* The queue's end waits for us. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	wait_while_there(q, n);
	gp_engine_lock();
	is_there = !is_gone(q);
	gp_engine_unlock();
	gp_engine_leave(q);
	(void)pthread_setcancelstate(before, &before);
	return is_there;
}

static void become_busy(struct gp_level_queue *q)
{
	if (__atomic_exchange_n(&q->is_busy, 1, __ATOMIC_SEQ_CST))
		return;
	if (q->ops->active)
		q->ops->active(q->door);
	gp_engine_lock();
	if (is_high(q))
		gp_arbiter_look(gp_level_now());
	gp_engine_unlock();
	gp_engine_changed();
}

uint32_t gp_level_launch(struct gp_level_queue *q, uint32_t n)
{
	uint32_t adds;

	if (gp_engine.is_foreign)
		return 0;
	last_serial = q->serial;
	if (__atomic_load_n(&q->adds, __ATOMIC_ACQUIRE) & GP_ADD_COUNT && keeps_threads(q) &&
	    !wait_for_room(q, n))
		return 0;
	adds = __atomic_load_n(&q->adds, __ATOMIC_ACQUIRE); /* while it waited all may have changed */
	if (adds & GP_ADD_COUNT)
		__atomic_add_fetch(&q->begun, n, __ATOMIC_SEQ_CST);
	if (q->client_class == GP_CLASS_ONLINE && adds & GP_ADD_COUNT)
		become_busy(q);
	if (adds & GP_ADD_WAIT && __atomic_load_n(&q->held, __ATOMIC_SEQ_CST))
		adds |= GP_ADD_HELD;
	return adds;
}

/* How many of its launches may begin, of a runtime that waits itself. */
static uint64_t may_begin(struct gp_level_queue *q, uint64_t now_ns)
{
	uint64_t ended = q->ops->ended(q->door);

	gp_depth_note(&q->depth, q->begun, ended, now_ns);
	if (!(q->adds & GP_ADD_WAIT))
		return q->begun;
	if (q->held) {
		q->depth.at_ns = 0; /* this time is no launch's */
		return 0;
	}
	if (!is_bounded(q) || (q->depth.at_ns && now_ns - q->depth.at_ns > STUCK_NS))
		return q->begun;
	return ended + bound_of(q);
}

void gp_engine_release(struct gp_level_queue *q)
{
	uint64_t launches;
	int r;

	if (!q->ops->release)
		return;
	gp_engine_lock();
	r = gp_engine_enter(q);
	if (r < 0) {
		gp_engine_unlock();
		return;
	}
	launches = may_begin(q, gp_level_now());
	gp_engine_unlock();
	q->ops->release(q->door, launches);
	gp_engine_leave(q);
}

void gp_level_ended(struct gp_level_queue *q)
{
	gp_engine_release(q);
}

/* Holds */

void gp_engine_mark(struct gp_level_queue *q, uint32_t holder, int is_held)
{
	uint32_t held = is_held ? q->held | 1u << holder : q->held & ~(1u << holder);

	if (held == q->held)
		return;
	__atomic_store_n(&q->held, held, __ATOMIC_SEQ_CST);
	settle(q);
	gp_engine_changed();
}

int gp_engine_hold(struct gp_level_queue *q, uint32_t holder, uint64_t end_ns)
{
	if (is_gone(q))
		return -ENODEV;
	if (q->level == GP_LEVEL_NONE)
		return -ENOTSUP;
	if (!q->was_held) { /* it is counted and gated from now on */
		q->was_held = 1;
		set_adds(q);
	}
	q->lease_end_ns[holder] = end_ns;
	gp_engine_mark(q, holder, 1);
	return 0;
}

int gp_level_hold(struct gp_level_queue *q, uint32_t holder, uint64_t lease_ns)
{
	int r;

	gp_engine_lock();
	if (is_gone(q))
		r = -ENODEV;
	else
		r = lease_ns ? gp_arbiter_start() : 0;
	if (r == 0)
		r = gp_engine_hold(q, holder, lease_ns ? gp_time_add(gp_level_now(), lease_ns) : NEVER);
	gp_engine_unlock();
	gp_engine_changed(); /* a lease may end sooner now */
	return r;
}

int gp_level_let_go(struct gp_level_queue *q, uint32_t holder)
{
	int r = 0;

	gp_engine_lock();
	if (is_gone(q))
		r = -ENODEV;
	else
		gp_engine_mark(q, holder, 0);
	gp_engine_unlock();
	if (r == 0)
		gp_engine_release(q);
	return r;
}

/* Settings */

static void choose(struct gp_level_queue *q)
{
	q->level = highest(q->levels & ((2u << q->wanted) - 1));
}

static void adopt(struct gp_level_queue *q)
{
	settle(q);
	set_all_adds();
	gp_arbiter_look(gp_level_now());
}

int gp_level_set(struct gp_level_queue *q, uint32_t level)
{
	int r = 0;

	gp_engine_lock();
	if (is_gone(q))
		r = -ENODEV;
	else if (level != GP_LEVEL_NONE && !(q->ops->levels & 1u << level))
		r = -ENOTSUP;
	if (r == 0) {
		q->wanted = level;
		choose(q);
		adopt(q);
	}
	gp_engine_unlock();
	gp_engine_changed();
	if (r == 0)
		gp_engine_release(q);
	return r;
}

void gp_level_limit(struct gp_level_queue *q, uint32_t levels)
{
	gp_engine_lock();
	q->levels = q->ops->levels & levels;
	choose(q);
	adopt(q);
	gp_engine_unlock();
	gp_engine_changed();
}

int gp_level_set_depth(struct gp_level_queue *q, uint32_t most)
{
	int r = 0;

	gp_engine_lock();
	if (is_gone(q))
		r = -ENODEV;
	else
		q->most = most;
	gp_engine_unlock();
	gp_engine_changed();
	if (r == 0)
		gp_engine_release(q);
	return r;
}

int gp_level_set_role(struct gp_level_queue *q, uint32_t client_class, uint32_t is_manual)
{
	int r = 0;

	gp_engine_lock();
	if (is_gone(q)) {
		r = -ENODEV;
	} else {
		q->client_class = client_class;
		q->is_manual = is_manual;
		q->is_counted = client_class != GP_CLASS_UNKNOWN;
		q->was_held = q->held != 0;
		adopt(q);
	}
	gp_engine_unlock();
	gp_engine_changed();
	return r;
}

void gp_level_set_class(struct gp_level_queue *q, uint32_t client_class)
{
	gp_engine_lock();
	q->is.client_class = q->client_class = client_class;
	adopt(q);
	gp_engine_unlock();
	gp_engine_changed();
}

int gp_level_sync(struct gp_level_queue *q, uint64_t timeout_ns)
{
	uint64_t end = gp_time_add(gp_level_now(), timeout_ns), begun;
	int r;

	gp_engine_lock();
	r = gp_engine_enter(q);
	gp_engine_unlock();
	if (r < 0)
		return r;
	begun = __atomic_load_n(&q->begun, __ATOMIC_SEQ_CST);
	while (r == 0 && q->ops->ended(q->door) < begun) {
		if (gp_level_now() >= end)
			r = -ETIMEDOUT;
		else if (__atomic_load_n(&q->is_gone, __ATOMIC_SEQ_CST))
			r = -ENODEV;
		else
			q->ops->wait(q->door, begun, GP_LEVEL_CHUNK_NS);
	}
	gp_engine_leave(q);
	return r;
}

int gp_level_state(struct gp_level_queue *q, struct gp_level_state *ret)
{
	int r = 0;

	gp_engine_lock();
	if (is_gone(q))
		r = -ENODEV;
	else
		*ret = (struct gp_level_state){ .door = q->ops->name,
						.levels = q->levels,
						.door_levels = q->ops->levels,
						.client_class = q->is.client_class,
						.ring = q->is.ring,
						.level = q->level,
						.wanted = q->wanted,
						.held = q->held,
						.depth = bound_of(q),
						.begun = q->begun,
						.ended = q->ops->ended(q->door),
						.length_ns = q->depth.length_ns };
	gp_engine_unlock();
	return r;
}
