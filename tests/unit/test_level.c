// SPDX-License-Identifier: MIT
/* The engine of the levels, on a door of the test's own: launches end when the test says so. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "level/api.h"
#include "level/internal.h"

#define BOTH (1u << GP_LEVEL_THROTTLE | 1u << GP_LEVEL_GATE)
#define DEVICE 7

struct door {
	uint64_t ended, released, taken;
	uint64_t awaited; /* the most that was */
	int is_closed;
};

static void gate(void *door, int is_closed)
{
	__atomic_store_n(&((struct door *)door)->is_closed, is_closed, __ATOMIC_SEQ_CST);
}

static uint64_t ended(void *door)
{
	return __atomic_load_n(&((struct door *)door)->ended, __ATOMIC_SEQ_CST);
}

static uint64_t taken(void *door)
{
	return __atomic_load_n(&((struct door *)door)->taken, __ATOMIC_SEQ_CST);
}

static void rest(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / GP_S), .tv_nsec = (long)(ns % GP_S) };

	nanosleep(&t, NULL);
}

static void wait_for(void *door, uint64_t n, uint64_t timeout_ns)
{
	uint64_t end = gp_level_now() + timeout_ns;
	struct door *d = door;

	d->awaited = n > d->awaited ? n : d->awaited;
	while (ended(door) < n && gp_level_now() < end)
		rest(100 * GP_US);
}

static void release(void *door, uint64_t launches)
{
	struct door *d = door;

	if (launches > d->released)
		__atomic_store_n(&d->released, launches, __ATOMIC_SEQ_CST);
}

static const struct gp_door_ops gates = {
	.name = "test", .levels = BOTH, .gate = gate, .ended = ended, .wait = wait_for
};
static const struct gp_door_ops shallow = {
	.name = "test", .levels = BOTH, .deep = 4, .gate = gate, .ended = ended, .wait = wait_for
};
static const struct gp_door_ops takes = {
	.name = "test", .levels = BOTH, .gate = gate, .ended = ended, .taken = taken, .wait = wait_for
};
static const struct gp_door_ops releases = { .name = "test",
					     .levels = 1u << GP_LEVEL_THROTTLE,
					     .ended = ended,
					     .wait = wait_for,
					     .release = release };

static void end_launches(struct door *d, uint64_t n)
{
	__atomic_add_fetch(&d->ended, n, __ATOMIC_SEQ_CST);
}

static struct gp_level_queue *add(const struct gp_door_ops *ops, struct door *d, uint32_t client_class)
{
	const struct gp_door_queue is = {
		.stream = d, .device = DEVICE, .ring = (uintptr_t)d, .client_class = client_class
	};
	struct gp_level_queue *q = gp_level_add(ops, d, &is);

	assert_non_null(q);
	return q;
}

/* Until it holds; only a fault lets the time pass. */
#define EVENTUALLY(condition) \
	do { \
		uint64_t end_ns = gp_level_now() + 30 * GP_S; \
		while (!(condition) && gp_level_now() < end_ns) \
			rest(GP_MS); \
		assert_true(condition); \
	} while (0)

static int is_closed(struct door *d)
{
	return __atomic_load_n(&d->is_closed, __ATOMIC_SEQ_CST);
}

static void a_queue_that_nobody_classed_is_left_alone(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_UNKNOWN);

	(void)state;
	assert_int_equal(gp_level_launch(q, 1), 0);
	gp_level_remove(q);
}

static void an_offline_queue_is_gated_and_counted(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);

	(void)state;
	for (int i = 0; i < 1000; i++) /* deep: the gate keeps no launch */
		assert_int_equal(gp_level_launch(q, 1), GP_ADD_GATE | GP_ADD_COUNT);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	assert_true(is_closed(&d));
	assert_int_equal(gp_level_let_go(q, GP_HOLDER_PROGRAM), 0);
	assert_false(is_closed(&d));
	gp_level_remove(q);
}

static void a_queue_goes_on_when_the_last_has_let_go(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);

	(void)state;
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_DAEMON, 0), 0);
	assert_int_equal(gp_level_let_go(q, GP_HOLDER_PROGRAM), 0);
	assert_true(is_closed(&d));
	gp_level_let_all_go(GP_HOLDER_DAEMON);
	assert_false(is_closed(&d));
	gp_level_remove(q);
}

static void a_lease_that_nobody_renews_opens_the_gate(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);
	uint64_t start = gp_level_now();
	uint32_t changes;

	(void)state;
	gp_engine.is_awake = 0; /* as before there is a thread: one that has a lease needs it */
	assert_int_equal(gp_level_hold(q, GP_HOLDER_DAEMON, 3600 * GP_S), 0);
	assert_int_equal(gp_engine.is_awake, 1);
	changes = gp_engine.changes;
	assert_int_equal(gp_level_hold(q, GP_HOLDER_DAEMON, GP_S), 0);
	assert_true(gp_engine.changes != changes); /* sooner than what the thread sleeps for */
	assert_true(is_closed(&d));
	EVENTUALLY(!is_closed(&d));
	assert_true(gp_level_now() - start >= GP_S);
	gp_level_remove(q);
}

static void online_work_closes_the_gates_of_its_device_until_it_has_ended(void **state)
{
	struct door low = { 0 }, high = { 0 }, far = { 0 };
	const struct gp_door_queue elsewhere = { .stream = &far,
						 .device = DEVICE + 1,
						 .client_class = GP_CLASS_OFFLINE };
	struct gp_level_queue *q = add(&gates, &low, GP_CLASS_OFFLINE),
			      *online = add(&gates, &high, GP_CLASS_ONLINE);
	struct gp_level_queue *other = gp_level_add(&gates, &far, &elsewhere);

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(gp_level_launch(online, 2), GP_ADD_COUNT);
		assert_true(is_closed(&low)); /* at once */
		assert_false(is_closed(&far));
		end_launches(&high, 1);
		rest(2 * GP_MS);
		assert_true(is_closed(&low)); /* one is left */
		end_launches(&high, 1);
		EVENTUALLY(!is_closed(&low));
	}
	gp_level_remove(other);
	gp_level_remove(online);
	gp_level_remove(q);
}

static void offline_queues_stay_held_for_a_little_after_online_work(void **state)
{
	struct door low = { 0 }, high = { 0 };
	struct gp_level_queue *q = add(&gates, &low, GP_CLASS_OFFLINE),
			      *online = add(&gates, &high, GP_CLASS_ONLINE);
	uint64_t end, start;

	(void)state;
	for (int i = 0; i < 20; i++) {
		gp_level_launch(online, 1);
		EVENTUALLY(is_closed(&low)); /* later, if it starved on a busy host: it has a slice then */
		start = gp_level_now();
		end = start + 30 * GP_S;
		end_launches(&high, 1);
		while (is_closed(&low) && gp_level_now() < end)
			rest(10 * GP_US);
		assert_true(gp_level_now() - start >= 200 * GP_US);
	}
	gp_level_remove(online);
	gp_level_remove(q);
}

static void a_queue_without_a_level_is_left_alone(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);

	(void)state;
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	assert_int_equal(gp_level_set(q, GP_LEVEL_NONE), 0);
	assert_false(is_closed(&d));
	assert_int_equal(gp_level_launch(q, 1), 0);
	assert_int_equal(gp_level_let_go(q, GP_HOLDER_PROGRAM), 0);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), -ENOTSUP);
	assert_int_equal(gp_level_set(q, GP_LEVEL_INTERRUPT), -ENOTSUP); /* not done here */
	gp_level_remove(q);
}

static void an_online_queue_is_not_counted_where_there_is_nobody_to_hold(void **state)
{
	struct door low = { 0 }, high = { 0 };
	const struct gp_door_queue elsewhere = { .stream = &low,
						 .device = DEVICE + 1,
						 .client_class = GP_CLASS_OFFLINE };
	struct gp_level_queue *online = add(&gates, &high, GP_CLASS_ONLINE), *q;

	(void)state;
	assert_int_equal(gp_level_launch(online, 1), 0);
	q = add(&gates, &low, GP_CLASS_OFFLINE);
	assert_int_equal(gp_level_launch(online, 1), GP_ADD_COUNT);
	assert_int_equal(gp_level_set_role(q, GP_CLASS_OFFLINE, 1), 0); /* which is held for nobody */
	assert_int_equal(gp_level_launch(online, 1), 0);
	gp_level_remove(q);
	assert_int_equal(gp_level_launch(online, 1), 0);
	q = gp_level_add(&gates, &low, &elsewhere); /* on another device */
	assert_int_equal(gp_level_launch(online, 1), 0);
	gp_level_remove(q);
	gp_level_remove(online);
}

static void whoever_is_held_for_long_gets_a_slice(void **state)
{
	struct door low = { 0 }, high = { 0 };
	struct gp_level_queue *q = add(&gates, &low, GP_CLASS_OFFLINE),
			      *online = add(&gates, &high, GP_CLASS_ONLINE);

	(void)state;
	gp_level_launch(online, 1); /* and never ends */
	assert_true(is_closed(&low));
	EVENTUALLY(!is_closed(&low));
	EVENTUALLY(is_closed(&low));
	gp_level_remove(online);
	assert_false(is_closed(&low)); /* it went, and what it had with it */
	gp_level_remove(q);
}

static int stays_open_for_longer_than_a_slice(struct door *d)
{
	uint64_t end = gp_level_now() + 100 * GP_MS;

	while (!is_closed(d) && gp_level_now() < end)
		rest(GP_MS);
	return !is_closed(d);
}

/* It may wait for what is held: else each second brings a slice, and what waits there is deep. */
static void whoever_launches_what_the_runtime_does_not_take_holds_nobody_until_it_does(void **state)
{
	struct door low = { 0 }, high = { 0 };
	struct gp_level_queue *q = add(&gates, &low, GP_CLASS_OFFLINE),
			      *online = add(&takes, &high, GP_CLASS_ONLINE);

	(void)state;
	gp_level_launch(online, 1);
	assert_true(is_closed(&low));
	EVENTUALLY(stays_open_for_longer_than_a_slice(&low));
	__atomic_store_n(&high.taken, 1, __ATOMIC_SEQ_CST);
	EVENTUALLY(is_closed(&low));
	end_launches(&high, 1);
	EVENTUALLY(!is_closed(&low));
	gp_level_remove(online);
	gp_level_remove(q);
}

static void a_manual_queue_is_held_for_nobody(void **state)
{
	struct door low = { 0 }, high = { 0 };
	struct gp_level_queue *q = add(&gates, &low, GP_CLASS_OFFLINE),
			      *online = add(&gates, &high, GP_CLASS_ONLINE);

	(void)state;
	assert_int_equal(gp_level_set_role(q, GP_CLASS_OFFLINE, 1), 0);
	gp_level_launch(online, 1);
	assert_false(is_closed(&low));
	gp_level_remove(online);
	gp_level_remove(q);
}

static void what_a_manual_queue_had_holds_nobody_for_ever(void **state)
{
	struct door low = { 0 }, high = { 0 };
	struct gp_level_queue *q = add(&gates, &low, GP_CLASS_OFFLINE),
			      *online = add(&gates, &high, GP_CLASS_ONLINE);

	(void)state;
	assert_int_equal(gp_level_set_role(online, GP_CLASS_ONLINE, 1), 0);
	gp_level_launch(online, 1);
	end_launches(&high, 1);
	assert_int_equal(gp_level_set_role(online, GP_CLASS_ONLINE, 0), 0);
	EVENTUALLY(!is_closed(&low));
	assert_int_equal(gp_engine.is_awake, 1);
	gp_level_remove(online);
	gp_level_remove(q);
}

static void an_online_queue_stays_one_when_it_was_held(void **state)
{
	struct door low = { 0 }, high = { 0 }, other = { 0 };
	struct gp_level_queue *q = add(&gates, &low, GP_CLASS_OFFLINE),
			      *online = add(&gates, &high, GP_CLASS_ONLINE),
			      *second = add(&gates, &other, GP_CLASS_ONLINE);

	(void)state;
	assert_int_equal(gp_level_hold(online, GP_HOLDER_PROGRAM, 0), 0);
	assert_true(is_closed(&high));
	assert_int_equal(gp_level_launch(online, 1), GP_ADD_COUNT | GP_ADD_GATE);
	assert_false(is_closed(&low)); /* nobody waits for what waits */
	assert_int_equal(gp_level_let_go(online, GP_HOLDER_PROGRAM), 0);
	gp_level_launch(second, 1);
	assert_false(is_closed(&high)); /* for another of its kind it is not held */
	assert_true(is_closed(&low));
	end_launches(&other, 1);
	EVENTUALLY(!second->is_busy);
	gp_level_launch(online, 1);
	assert_true(is_closed(&low));
	gp_level_remove(second);
	gp_level_remove(online);
	gp_level_remove(q);
}

static void at_the_throttle_an_online_queue_waits_while_it_is_held_and_not_for_room(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_ONLINE);
	uint64_t start;

	(void)state;
	assert_int_equal(gp_level_set(q, GP_LEVEL_THROTTLE), 0);
	assert_int_equal(gp_level_set_depth(q, 1), 0);
	start = gp_level_now();
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 30 * GP_MS), 0);
	gp_level_launch(q, 1);
	assert_true(gp_level_now() - start >= 30 * GP_MS);
	start = gp_level_now();
	for (int i = 0; i < 10; i++)
		gp_level_launch(q, 1);
	assert_true(gp_level_now() - start < 5 * GP_S); /* nothing ends: whoever waits does so for a second */
	gp_level_remove(q);
}

static int calls(struct gp_level_queue *q)
{
	int n;

	gp_engine_lock();
	n = (int)q->calls;
	gp_engine_unlock();
	return n;
}

/* A program that launches, in its thread. */
struct launcher {
	struct gp_level_queue *q;
	uint64_t n, done;
	uint32_t adds; /* of the last */
};

static void *launch(void *arg)
{
	struct launcher *l = arg;

	for (uint64_t i = 0; i < l->n; i++) {
		l->adds = gp_level_launch(l->q, 1);
		__atomic_add_fetch(&l->done, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static uint64_t done(struct launcher *l)
{
	return __atomic_load_n(&l->done, __ATOMIC_SEQ_CST);
}

static void a_throttled_queue_has_so_many_in_flight_and_no_more(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);
	struct launcher l = { .q = q, .n = 100 };
	uint64_t before;
	pthread_t thread;

	(void)state;
	assert_int_equal(gp_level_set(q, GP_LEVEL_THROTTLE), 0);
	assert_int_equal(gp_level_set_depth(q, 4), 0);
	pthread_create(&thread, NULL, launch, &l);
	for (uint64_t i = 0; i < 96; i++) {
		EVENTUALLY(done(&l) >= i + 4);
		before = ended(&d);
		assert_true(done(&l) <= before + 5); /* the one that is let go is not counted yet, or is */
		end_launches(&d, 1);
	}
	pthread_join(thread, NULL);
	assert_int_equal(q->begun, 100);
	gp_level_remove(q);
}

static void more_launches_at_once_than_may_be_wait_for_all_before_them(void **state)
{
	struct door d = { .ended = 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);

	(void)state;
	assert_int_equal(gp_level_set(q, GP_LEVEL_THROTTLE), 0);
	assert_int_equal(gp_level_set_depth(q, 2), 0);
	gp_level_launch(q, 2);
	gp_level_launch(q, 10); /* nothing ends: it goes through after a second */
	assert_int_equal(d.awaited, 2);
	assert_int_equal(q->begun, 12);
	gp_level_remove(q);
}

static void a_held_queue_at_the_throttle_launches_nothing(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);
	struct launcher l = { .q = q, .n = 1 };
	pthread_t thread;

	(void)state;
	assert_int_equal(gp_level_set(q, GP_LEVEL_THROTTLE), 0);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	assert_false(is_closed(&d)); /* it has no gate */
	pthread_create(&thread, NULL, launch, &l);
	rest(50 * GP_MS);
	assert_int_equal(done(&l), 0);
	assert_int_equal(gp_level_let_go(q, GP_HOLDER_PROGRAM), 0);
	pthread_join(thread, NULL);
	gp_level_remove(q);
}

static void a_launch_that_waits_finds_what_was_changed_meanwhile(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);
	struct launcher l = { .q = q, .n = 1 };
	pthread_t thread;

	(void)state;
	assert_int_equal(gp_level_set(q, GP_LEVEL_THROTTLE), 0);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	pthread_create(&thread, NULL, launch, &l);
	EVENTUALLY(calls(q) == 1);
	assert_int_equal(gp_level_set(q, GP_LEVEL_GATE), 0);
	pthread_join(thread, NULL);
	assert_int_equal(l.adds, GP_ADD_COUNT | GP_ADD_GATE); /* or it would pass a closed gate */
	gp_level_remove(q);
}

static void a_launch_that_waits_goes_on_when_its_queue_goes(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE), *mine = gp_level_find(&d, 0);
	struct launcher l = { .q = q, .n = 3 };
	pthread_t thread;

	(void)state;
	assert_int_equal(gp_level_set(q, GP_LEVEL_THROTTLE), 0);
	assert_int_equal(gp_level_set_depth(q, 1), 0);
	pthread_create(&thread, NULL, launch, &l); /* the second finds it full */
	EVENTUALLY(done(&l) == 1 && calls(q) == 1);
	gp_level_remove(q);
	assert_int_equal(calls(mine), 0); /* nobody asks any more */
	pthread_join(thread, NULL);
	assert_int_equal(l.adds, 0);
	assert_int_equal(mine->begun, 1);
	gp_level_put(mine);
}

/* valgrind and ASan see it: nobody else keeps the queue. */
static void a_launch_that_waits_looks_at_nothing_of_a_queue_that_went(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);
	struct launcher l = { .q = q, .n = 2 };
	pthread_t thread;

	(void)state;
	assert_int_equal(gp_level_set(q, GP_LEVEL_THROTTLE), 0);
	assert_int_equal(gp_level_set_depth(q, 1), 0);
	pthread_create(&thread, NULL, launch, &l);
	EVENTUALLY(done(&l) == 1 && calls(q) == 1);
	gp_level_remove(q);
	pthread_join(thread, NULL);
	assert_int_equal(l.adds, 0);
}

static void a_thread_that_is_cancelled_at_the_throttle_ends_when_it_may_go_on(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);
	struct launcher l = { .q = q, .n = 2 };
	pthread_t thread;

	(void)state;
	assert_int_equal(gp_level_set(q, GP_LEVEL_THROTTLE), 0);
	assert_int_equal(gp_level_set_depth(q, 1), 0);
	pthread_create(&thread, NULL, launch, &l);
	EVENTUALLY(done(&l) == 1 && calls(q) == 1);
	pthread_cancel(thread); /* the door's wait would end there */
	rest(20 * GP_MS);
	end_launches(&d, 1);
	pthread_join(thread, NULL);
	assert_int_equal(done(&l), 2);
	assert_int_equal(calls(q), 0); /* else its end would wait for ever */
	gp_level_remove(q);
}

static void at_a_gate_too_a_runtimes_own_queue_is_never_filled(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&shallow, &d, GP_CLASS_OFFLINE);
	struct launcher l = { .q = q, .n = 6 };
	pthread_t thread;

	(void)state;
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	pthread_create(&thread, NULL, launch, &l);
	EVENTUALLY(done(&l) == 4);
	rest(1200 * GP_MS); /* longer than what counts as stuck: it is held, and nothing can end */
	assert_int_equal(done(&l), 4);
	assert_int_equal(gp_level_let_go(q, GP_HOLDER_PROGRAM), 0);
	end_launches(&d, 2);
	pthread_join(thread, NULL);
	assert_int_equal(q->begun, 6);
	gp_level_remove(q);
}

static void a_launch_goes_through_where_nothing_ends(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);

	(void)state;
	assert_int_equal(gp_level_set(q, GP_LEVEL_THROTTLE), 0);
	assert_int_equal(gp_level_set_depth(q, 1), 0);
	for (int i = 0; i < 1000; i++) /* the first of them waits, the others know */
		gp_level_launch(q, 1);
	assert_int_equal(q->begun, 1000);
	gp_level_remove(q);
}

static void a_runtime_that_waits_itself_is_told_how_far(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&releases, &d, GP_CLASS_OFFLINE);

	(void)state;
	assert_int_equal(gp_level_set_depth(q, 2), 0);
	gp_level_launch(q, 10); /* waits for nobody */
	gp_level_ended(q);
	assert_int_equal(d.released, 2);
	end_launches(&d, 3);
	gp_level_ended(q);
	assert_int_equal(d.released, 5);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	end_launches(&d, 2);
	gp_level_ended(q);
	assert_int_equal(d.released, 5);
	assert_int_equal(gp_level_let_go(q, GP_HOLDER_PROGRAM), 0);
	assert_int_equal(d.released, 7);
	assert_int_equal(gp_level_set_depth(q, 4), 0);
	assert_int_equal(d.released, 9);
	assert_int_equal(gp_level_set(q, GP_LEVEL_GATE), -ENOTSUP);
	gp_level_remove(q);
}

static uint64_t released(struct door *d)
{
	return __atomic_load_n(&d->released, __ATOMIC_SEQ_CST);
}

static void such_a_runtime_goes_on_too_where_nothing_ends(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&releases, &d, GP_CLASS_OFFLINE);
	uint64_t start;

	(void)state;
	assert_int_equal(gp_level_set_depth(q, 2), 0);
	gp_level_launch(q, 3);
	end_launches(&d, 3);
	gp_level_ended(q);
	rest(1200 * GP_MS); /* without work: nothing is stuck for that */
	start = gp_level_now();
	gp_level_launch(q, 10);
	gp_level_ended(q);
	assert_int_equal(released(&d), 5);
	EVENTUALLY(released(&d) == 13); /* its launches were lost, or wait for one that is kept */
	assert_true(gp_level_now() - start > GP_S);
	gp_level_remove(q);
}

static void what_is_held_does_not_count_as_stuck_or_long(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&releases, &d, GP_CLASS_OFFLINE);

	(void)state;
	assert_int_equal(gp_level_set_depth(q, 2), 0);
	gp_level_launch(q, 10);
	gp_level_ended(q);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	rest(1200 * GP_MS);
	assert_int_equal(gp_level_let_go(q, GP_HOLDER_PROGRAM), 0);
	assert_int_equal(released(&d), 2);
	end_launches(&d, 1);
	gp_level_ended(q);
	assert_true(q->depth.length_ns < GP_S);
	gp_level_remove(q);
}

static void every_queue_of_such_a_runtime_goes_on_after_online_work(void **state)
{
	static struct door low[100];
	struct gp_level_queue *q[100];
	struct door high = { 0 };
	struct gp_level_queue *online = add(&gates, &high, GP_CLASS_ONLINE);

	(void)state;
	for (int i = 0; i < 100; i++)
		q[i] = add(&releases, &low[i], GP_CLASS_OFFLINE);
	gp_level_launch(online, 1);
	for (int i = 0; i < 100; i++) {
		EVENTUALLY(calls(q[i]) == 0); /* what was decided before it was held has been told */
		__atomic_store_n(&low[i].released, 0, __ATOMIC_SEQ_CST);
		assert_true(gp_level_launch(q[i], 1) & GP_ADD_HELD);
		gp_level_ended(q[i]);
		assert_int_equal(released(&low[i]), 0);
	}
	end_launches(&high, 1);
	for (int i = 0; i < 100; i++)
		EVENTUALLY(released(&low[i]) > 0); /* its program need not call again */
	for (int i = 0; i < 100; i++)
		gp_level_remove(q[i]);
	gp_level_remove(online);
}

static void a_sync_ends_with_the_last_launch_or_in_time(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE);

	(void)state;
	gp_level_launch(q, 3);
	end_launches(&d, 2);
	assert_int_equal(gp_level_sync(q, 20 * GP_MS), -ETIMEDOUT);
	end_launches(&d, 1);
	assert_int_equal(gp_level_sync(q, 30 * GP_S), 0);
	gp_level_remove(q);
}

static void who_has_a_queue_that_went_is_told_so(void **state)
{
	struct door d = { 0 };
	struct gp_level_queue *q = add(&gates, &d, GP_CLASS_OFFLINE), *mine = gp_level_find(&d, 0), *again;
	struct gp_level_state s;

	(void)state;
	assert_ptr_equal(mine, q);
	again = gp_level_find(NULL, (uintptr_t)&d);
	assert_ptr_equal(again, q);
	gp_level_put(again);
	gp_level_remove(q);
	assert_null(gp_level_find(&d, 0));
	assert_int_equal(gp_level_hold(mine, GP_HOLDER_PROGRAM, 0), -ENODEV);
	assert_int_equal(gp_level_let_go(mine, GP_HOLDER_PROGRAM), -ENODEV);
	assert_int_equal(gp_level_state(mine, &s), -ENODEV);
	assert_int_equal(gp_level_sync(mine, 0), -ENODEV);
	gp_level_put(mine);
}

extern const struct gp_level_api gpreempt_level; /* with it comes what is done at fork() */

struct syncer {
	struct gp_level_queue *q;
	int r;
};

static void *sync_all(void *arg)
{
	struct syncer *s = arg;

	s->r = gp_level_sync(s->q, 30 * GP_S);
	return NULL;
}

/* What a child may do with the parent's queue. 0: it was told that it is gone. */
static int do_all_with(struct gp_level_queue *q)
{
	struct gp_level_state s;
	int r = 0;

	r += gp_level_launch(q, 1) != 0;
	r += gp_level_let_go(q, GP_HOLDER_PROGRAM) != -ENODEV;
	r += gp_level_hold(q, GP_HOLDER_DAEMON, 0) != -ENODEV;
	r += gp_level_set(q, GP_LEVEL_THROTTLE) != -ENODEV;
	r += gp_level_set_depth(q, 1) != -ENODEV;
	r += gp_level_set_role(q, GP_CLASS_OFFLINE, 0) != -ENODEV;
	r += gp_level_state(q, &s) != -ENODEV;
	r += gp_level_sync(q, GP_S) != -ENODEV;
	gp_level_let_all_go(GP_HOLDER_PROGRAM);
	gp_level_remove(q);
	return r;
}

static void a_child_after_fork_touches_nothing_of_its_parents(void **state)
{
	struct door *d = mmap(NULL, sizeof(*d), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct gp_level_queue *q = add(&gates, d, GP_CLASS_OFFLINE);
	struct syncer waits = { .q = q, .r = 1 };
	pthread_t thread;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(gpreempt_level.abi, GP_LEVEL_ABI);
	gp_level_launch(q, 1);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	pthread_create(&thread, NULL, sync_all, &waits);
	EVENTUALLY(calls(q) == 1); /* in the child nobody ends that call */
	pid = fork();
	if (!pid) {
		alarm(300);
		_exit(do_all_with(q));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(is_closed(d)); /* memory of the runtime's may be shared */
	end_launches(d, 1);
	pthread_join(thread, NULL);
	assert_int_equal(waits.r, 0);
	gp_level_remove(q);
	munmap(d, sizeof(*d));
}

static void the_bound_follows_the_length_of_a_launch(void **state)
{
	struct gp_depth d = { 0 };
	uint64_t now = GP_S;

	(void)state;
	assert_int_equal(gp_depth_bound(&d, GP_MS), 8);
	for (uint64_t i = 0; i < 100; i++, now += 100 * GP_US) /* one ends each time, two are in flight */
		gp_depth_note(&d, i + 2, i, now);
	assert_int_equal(d.length_ns, 100 * GP_US);
	assert_int_equal(gp_depth_bound(&d, GP_MS), 10);
	for (uint64_t i = 100; i < 200; i++, now += 2 * GP_MS)
		gp_depth_note(&d, i + 2, i, now);
	assert_int_equal(gp_depth_bound(&d, GP_MS),
			 2); /* each takes longer than that: the device stays at work */
	for (uint64_t i = 200; i < 400; i++, now += GP_US)
		gp_depth_note(&d, i + 2, i, now);
	assert_int_equal(gp_depth_bound(&d, GP_MS), 64);
}

static void time_without_work_is_no_launchs_length(void **state)
{
	struct gp_depth d = { 0 };
	uint64_t now = GP_S;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		gp_depth_note(&d, 2 * i, 2 * i, now);     /* idle */
		gp_depth_note(&d, 2 * i + 1, 2 * i, now); /* at work, */
		now += 50 * GP_US;
		gp_depth_note(&d, 2 * i + 2, 2 * i + 1, now);
		now += GP_S;
	}
	assert_int_equal(d.length_ns, 50 * GP_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			what_a_manual_queue_had_holds_nobody_for_ever), /* before there is a thread */
		cmocka_unit_test(a_queue_that_nobody_classed_is_left_alone),
		cmocka_unit_test(an_offline_queue_is_gated_and_counted),
		cmocka_unit_test(a_queue_goes_on_when_the_last_has_let_go),
		cmocka_unit_test(a_lease_that_nobody_renews_opens_the_gate),
		cmocka_unit_test(online_work_closes_the_gates_of_its_device_until_it_has_ended),
		cmocka_unit_test(offline_queues_stay_held_for_a_little_after_online_work),
		cmocka_unit_test(a_queue_without_a_level_is_left_alone),
		cmocka_unit_test(an_online_queue_is_not_counted_where_there_is_nobody_to_hold),
		cmocka_unit_test(whoever_is_held_for_long_gets_a_slice),
		cmocka_unit_test(whoever_launches_what_the_runtime_does_not_take_holds_nobody_until_it_does),
		cmocka_unit_test(a_manual_queue_is_held_for_nobody),
		cmocka_unit_test(an_online_queue_stays_one_when_it_was_held),
		cmocka_unit_test(at_the_throttle_an_online_queue_waits_while_it_is_held_and_not_for_room),
		cmocka_unit_test(a_throttled_queue_has_so_many_in_flight_and_no_more),
		cmocka_unit_test(more_launches_at_once_than_may_be_wait_for_all_before_them),
		cmocka_unit_test(a_held_queue_at_the_throttle_launches_nothing),
		cmocka_unit_test(a_launch_that_waits_finds_what_was_changed_meanwhile),
		cmocka_unit_test(a_launch_that_waits_goes_on_when_its_queue_goes),
		cmocka_unit_test(a_launch_that_waits_looks_at_nothing_of_a_queue_that_went),
		cmocka_unit_test(a_thread_that_is_cancelled_at_the_throttle_ends_when_it_may_go_on),
		cmocka_unit_test(at_a_gate_too_a_runtimes_own_queue_is_never_filled),
		cmocka_unit_test(a_launch_goes_through_where_nothing_ends),
		cmocka_unit_test(a_runtime_that_waits_itself_is_told_how_far),
		cmocka_unit_test(such_a_runtime_goes_on_too_where_nothing_ends),
		cmocka_unit_test(what_is_held_does_not_count_as_stuck_or_long),
		cmocka_unit_test(every_queue_of_such_a_runtime_goes_on_after_online_work),
		cmocka_unit_test(a_sync_ends_with_the_last_launch_or_in_time),
		cmocka_unit_test(who_has_a_queue_that_went_is_told_so),
		cmocka_unit_test(a_child_after_fork_touches_nothing_of_its_parents),
		cmocka_unit_test(the_bound_follows_the_length_of_a_launch),
		cmocka_unit_test(time_without_work_is_no_launchs_length),
	};

	return cmocka_run_group_tests_name("level", tests, NULL, NULL);
}
