// SPDX-License-Identifier: MIT
/* The daemon's loop: what is due in order, what is removed never, and nobody crowded out. */
#include "unit.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/loop.h"

#define CROWD 300
#define EACH_TURN 10 /* steps: eight turns of their own, one of the others together, one outside */

struct ready {
	struct gp_watch watch;
	struct gp_watch *removes; /* when it is called */
	struct gp_loop *loop;
	uint32_t calls;
};

static void called(void *arg, uint32_t events)
{
	struct ready *r = arg;

	assert_int_equal(events, EPOLLIN);
	r->calls++;
	if (r->removes)
		gp_loop_remove(r->loop, r->removes);
}

/* It stays ready: nobody reads it. */
static void make_ready(struct gp_loop *l, struct ready *r)
{
	*r = (struct ready){ .watch = { .fd = eventfd(1, EFD_CLOEXEC), .fn = called, .arg = r }, .loop = l };
	assert_true(r->watch.fd >= 0);
}

static void forget(struct gp_loop *l, struct ready *r)
{
	gp_loop_remove(l, &r->watch);
	close(r->watch.fd);
}

static void step(struct gp_loop *l, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(gp_loop_step(l), 0);
}

/* Alarms */

struct rung {
	struct gp_alarm alarm;
	struct gp_loop *loop;
	struct rung *cancels; /* when it rings */
	uint32_t *count, place;
};

static void ring(void *arg)
{
	struct rung *a = arg;

	a->place = ++*a->count;
	if (a->cancels)
		gp_alarm_cancel(a->loop, &a->cancels->alarm);
}

static void set_alarms(struct gp_loop *l, struct rung *a, uint32_t n, uint32_t *count)
{
	for (uint32_t i = 0; i < n; i++) {
		a[i] = (struct rung){ .loop = l, .count = count };
		assert_int_equal(gp_alarm_init(l, &a[i].alarm, ring, &a[i]), 0);
	}
}

static void free_alarms(struct gp_loop *l, struct rung *a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		gp_alarm_free(l, &a[i].alarm);
}

static void alarms_ring_in_the_order_of_their_times_and_then_of_being_set(void **state)
{
	static const uint64_t at_ms[] = { 3, 1, 2, 1 };
	static const uint32_t places[] = { 4, 1, 3, 2 };
	struct gp_loop l;
	struct rung a[4];
	uint32_t count = 0;

	(void)state;
	assert_int_equal(gp_loop_open(&l), 0);
	set_alarms(&l, a, 4, &count);
	for (int i = 0; i < 4; i++)
		gp_alarm_in(&l, &a[i].alarm, at_ms[i] * GP_MS);
	while (count < 4)
		step(&l, 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(a[i].place, places[i]);
	free_alarms(&l, a, 4);
	gp_loop_close(&l);
}

static void an_alarm_that_another_one_cancels_does_not_ring_though_both_are_due(void **state)
{
	struct gp_loop l;
	struct rung a[3];
	uint32_t count = 0;

	(void)state;
	assert_int_equal(gp_loop_open(&l), 0);
	set_alarms(&l, a, 3, &count);
	a[0].cancels = &a[1];
	for (int i = 0; i < 3; i++)
		gp_alarm_in(&l, &a[i].alarm, 0);
	step(&l, 1);
	assert_int_equal(a[0].place, 1);
	assert_int_equal(a[1].place, 0);
	assert_int_equal(a[2].place, 2);
	assert_false(gp_alarm_is_set(&a[1].alarm));
	free_alarms(&l, a, 3);
	gp_loop_close(&l);
}

/* Watches */

static void a_watch_that_is_removed_in_anothers_call_is_not_called_though_it_is_ready(void **state)
{
	struct gp_loop l;
	struct ready a, b;

	(void)state;
	assert_int_equal(gp_loop_open(&l), 0);
	make_ready(&l, &a);
	make_ready(&l, &b);
	a.removes = &b.watch;
	b.removes = &a.watch;
	assert_int_equal(gp_loop_add(&l, &a.watch, EPOLLIN), 0);
	assert_int_equal(gp_loop_add(&l, &b.watch, EPOLLIN), 0);
	step(&l, 5);
	assert_int_equal(a.calls + b.calls, 5);
	assert_true(!a.calls || !b.calls);
	forget(&l, &a);
	forget(&l, &b);
	gp_loop_close(&l);
}

/* Turns */

struct crowd {
	struct gp_loop loop;
	struct gp_turns turns;
	struct ready of[CROWD], outside;
};

static void gather(struct crowd *c)
{
	assert_int_equal(gp_loop_open(&c->loop), 0);
	assert_int_equal(gp_turns_open(&c->loop, &c->turns), 0);
	for (int i = 0; i < CROWD; i++) {
		make_ready(&c->loop, &c->of[i]);
		assert_int_equal(gp_turns_add(&c->turns, &c->of[i].watch, EPOLLIN), 0);
	}
	make_ready(&c->loop, &c->outside);
	assert_int_equal(gp_loop_add(&c->loop, &c->outside.watch, EPOLLIN), 0);
}

static void disperse(struct crowd *c)
{
	for (int i = 0; i < CROWD; i++)
		forget(&c->loop, &c->of[i]);
	forget(&c->loop, &c->outside);
	gp_turns_close(&c->loop, &c->turns);
	gp_loop_close(&c->loop);
}

static void beside_hundreds_that_have_turns_together_another_one_is_served_every_few_steps(void **state)
{
	static struct crowd c;

	(void)state;
	gather(&c);
	for (uint32_t turn = 1; turn <= 50; turn++) {
		step(&c.loop, EACH_TURN);
		assert_true(c.outside.calls >= turn);
	}
	disperse(&c);
}

static void of_those_that_have_turns_together_everybody_is_served(void **state)
{
	static struct crowd c;

	(void)state;
	gather(&c);
	step(&c.loop, EACH_TURN * CROWD);
	for (int i = 0; i < CROWD; i++)
		assert_true(c.of[i].calls > 0);
	disperse(&c);
}

static void who_had_a_turn_of_its_own_leaves_it_to_the_next_one(void **state)
{
	static struct crowd c;

	(void)state;
	gather(&c);
	forget(&c.loop, &c.of[0]);
	make_ready(&c.loop, &c.of[0]);
	assert_int_equal(gp_turns_add(&c.turns, &c.of[0].watch, EPOLLIN), 0);
	step(&c.loop, 10 * EACH_TURN);
	assert_true(c.of[0].calls >= 9);
	disperse(&c);
}

static void who_had_none_of_its_own_leaves_none(void **state)
{
	static struct crowd c;

	(void)state;
	gather(&c);
	for (int i = CROWD / 2; i < CROWD; i++) {
		forget(&c.loop, &c.of[i]);
		make_ready(&c.loop, &c.of[i]);
		assert_int_equal(gp_turns_add(&c.turns, &c.of[i].watch, EPOLLIN), 0);
	}
	step(&c.loop, EACH_TURN);
	assert_int_equal(c.outside.calls, 1);
	disperse(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alarms_ring_in_the_order_of_their_times_and_then_of_being_set),
		cmocka_unit_test(an_alarm_that_another_one_cancels_does_not_ring_though_both_are_due),
		cmocka_unit_test(a_watch_that_is_removed_in_anothers_call_is_not_called_though_it_is_ready),
		cmocka_unit_test(
			beside_hundreds_that_have_turns_together_another_one_is_served_every_few_steps),
		cmocka_unit_test(of_those_that_have_turns_together_everybody_is_served),
		cmocka_unit_test(who_had_a_turn_of_its_own_leaves_it_to_the_next_one),
		cmocka_unit_test(who_had_none_of_its_own_leaves_none),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
