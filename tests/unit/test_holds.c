// SPDX-License-Identifier: MIT
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "daemon/holds.h"
#include "wire/wire.h"

#define SECOND 1000000000ull
#define ANNA 1
#define BERT 2
#define CLIENT 900

static struct gp_holds *holds;

static int begin(void **state)
{
	(void)state;
	return gp_holds_new(&holds);
}

static int end(void **state)
{
	(void)state;
	gp_holds_free(holds);
	return 0;
}

static int hold(uint64_t holder, uint64_t queue, uint64_t until_ns, uint32_t flags)
{
	const struct gp_hold one = { holder, queue, CLIENT, until_ns, flags };

	return gp_holds_add(holds, &one);
}

/* The queues that changed, one bit for each: they are under 64 here. */
static uint64_t changed(void)
{
	uint64_t queue, bits = 0;

	while (gp_holds_changed(holds, &queue)) {
		assert_false(bits & 1ull << queue);
		bits |= 1ull << queue;
	}
	return bits;
}

static void nothing_is_held_at_first_and_nothing_ends(void **state)
{
	(void)state;
	assert_false(gp_holds_held(holds, 5));
	assert_int_equal(gp_holds_next(holds), UINT64_MAX);
	gp_holds_expire(holds, UINT64_MAX);
	gp_holds_close(holds, ANNA);
	gp_holds_forget(holds, 5);
	gp_holds_release(holds, 5, CLIENT, GP_ALL_HOLDERS);
	assert_int_equal(changed(), 0);
}

static void a_hold_without_a_lease_ends_with_its_connection_and_not_by_time(void **state)
{
	(void)state;
	assert_int_equal(hold(ANNA, 5, GP_NO_LEASE, 0), 0);
	assert_int_equal(changed(), 1 << 5);
	gp_holds_expire(holds, UINT64_MAX - 1);
	assert_true(gp_holds_held(holds, 5));
	gp_holds_close(holds, BERT);
	assert_true(gp_holds_held(holds, 5));
	assert_int_equal(changed(), 0);
	gp_holds_close(holds, ANNA);
	assert_false(gp_holds_held(holds, 5));
	assert_int_equal(changed(), 1 << 5);
}

static void a_hold_with_a_lease_ends_with_it_and_not_with_its_connection(void **state)
{
	(void)state;
	hold(ANNA, 5, 3 * SECOND, 0);
	changed();
	gp_holds_close(holds, ANNA);
	assert_true(gp_holds_held(holds, 5));
	assert_int_equal(gp_holds_next(holds), 3 * SECOND);
	gp_holds_expire(holds, 3 * SECOND - 1);
	assert_true(gp_holds_held(holds, 5));
	gp_holds_expire(holds, 3 * SECOND);
	assert_false(gp_holds_held(holds, 5));
	assert_int_equal(changed(), 1 << 5);
	assert_int_equal(gp_holds_next(holds), UINT64_MAX);
}

static void a_second_hold_by_the_same_renews_the_lease_and_changes_nothing(void **state)
{
	(void)state;
	hold(ANNA, 5, 3 * SECOND, 0);
	changed();
	hold(ANNA, 5, 9 * SECOND, 0);
	assert_int_equal(changed(), 0);
	gp_holds_expire(holds, 8 * SECOND);
	assert_true(gp_holds_held(holds, 5));
	/* From now on it ends with the connection instead. */
	hold(ANNA, 5, GP_NO_LEASE, 0);
	gp_holds_expire(holds, 99 * SECOND);
	assert_true(gp_holds_held(holds, 5));
	gp_holds_close(holds, ANNA);
	assert_false(gp_holds_held(holds, 5));
}

static void a_queue_of_two_holders_is_free_when_the_last_lets_go(void **state)
{
	(void)state;
	hold(ANNA, 5, GP_NO_LEASE, 0);
	assert_int_equal(changed(), 1 << 5);
	hold(BERT, 5, GP_NO_LEASE, 0);
	assert_int_equal(changed(), 0);
	assert_true(gp_holds_held_by(holds, 5, ANNA) && gp_holds_held_by(holds, 5, BERT));
	gp_holds_release(holds, 5, CLIENT, ANNA);
	assert_false(gp_holds_held_by(holds, 5, ANNA));
	assert_true(gp_holds_held(holds, 5));
	assert_int_equal(changed(), 0);
	gp_holds_release(holds, 5, CLIENT, ANNA);
	assert_true(gp_holds_held(holds, 5));
	gp_holds_release(holds, 5, CLIENT, BERT);
	assert_int_equal(changed(), 1 << 5);
	assert_false(gp_holds_held(holds, 5));
}

static void releasing_for_all_ends_leases_and_connections_alike(void **state)
{
	(void)state;
	hold(ANNA, 5, GP_NO_LEASE, 0);
	hold(BERT, 5, 3 * SECOND, 0);
	hold(BERT, 6, 3 * SECOND, 0);
	changed();
	gp_holds_release(holds, 5, CLIENT, GP_ALL_HOLDERS);
	assert_false(gp_holds_held(holds, 5));
	assert_true(gp_holds_held(holds, 6));
	assert_int_equal(changed(), 1 << 5);
}

static void what_was_held_and_released_before_anybody_asked_is_told_once(void **state)
{
	(void)state;
	hold(ANNA, 5, GP_NO_LEASE, 0);
	gp_holds_close(holds, ANNA);
	hold(ANNA, 5, GP_NO_LEASE, 0);
	gp_holds_close(holds, ANNA);
	assert_int_equal(changed(), 1 << 5);
	assert_false(gp_holds_held(holds, 5));
}

static void a_new_queue_is_held_by_all_who_hold_its_clients_new_queues(void **state)
{
	(void)state;
	hold(ANNA, 5, GP_NO_LEASE, GP_HOLD_NEW_QUEUES);
	hold(BERT, 5, 4 * SECOND, GP_HOLD_NEW_QUEUES);
	hold(3, 5, GP_NO_LEASE, 0);
	changed();
	assert_int_equal(gp_holds_adopt(holds, 6, CLIENT), 0);
	assert_int_equal(changed(), 1 << 6);
	assert_true(gp_holds_held_by(holds, 6, ANNA) && gp_holds_held_by(holds, 6, BERT));
	assert_false(gp_holds_held_by(holds, 6, 3));
	gp_holds_close(holds, ANNA);
	assert_true(gp_holds_held(holds, 6));
	gp_holds_expire(holds, 4 * SECOND);
	assert_false(gp_holds_held(holds, 6));
	assert_false(gp_holds_client_held(holds, CLIENT));
}

static void new_queues_of_other_clients_and_of_plain_holds_run(void **state)
{
	(void)state;
	hold(ANNA, 5, GP_NO_LEASE, GP_HOLD_NEW_QUEUES);
	gp_holds_adopt(holds, 6, CLIENT + 1);
	assert_false(gp_holds_held(holds, 6));
	gp_holds_close(holds, ANNA);
	hold(ANNA, 5, GP_NO_LEASE, 0);
	gp_holds_adopt(holds, 7, CLIENT);
	assert_false(gp_holds_held(holds, 7));
}

static void a_released_queue_ends_the_hold_on_what_its_client_creates(void **state)
{
	(void)state;
	hold(ANNA, 5, GP_NO_LEASE, GP_HOLD_NEW_QUEUES);
	hold(ANNA, 6, GP_NO_LEASE, GP_HOLD_NEW_QUEUES);
	gp_holds_release(holds, 5, CLIENT, ANNA);
	assert_true(gp_holds_held(holds, 6));
	gp_holds_adopt(holds, 7, CLIENT);
	assert_false(gp_holds_held(holds, 7));
}

static void a_queue_that_is_gone_leaves_the_hold_on_its_client(void **state)
{
	(void)state;
	hold(ANNA, 5, GP_NO_LEASE, GP_HOLD_NEW_QUEUES);
	gp_holds_forget(holds, 5);
	assert_false(gp_holds_held(holds, 5));
	gp_holds_adopt(holds, 6, CLIENT);
	assert_true(gp_holds_held(holds, 6));
	gp_holds_forget_client(holds, CLIENT);
	gp_holds_adopt(holds, 7, CLIENT);
	assert_false(gp_holds_held(holds, 7));
}

#define QUEUES 40
#define HOLDERS 6

/* The same, as plainly as it can be said: until when each holds each; 0: not. */
static uint64_t plain[QUEUES][HOLDERS];

static int plainly_held(size_t queue)
{
	for (size_t i = 0; i < HOLDERS; i++)
		if (plain[queue][i])
			return 1;
	return 0;
}

static void plain_release(size_t queue, uint64_t holder)
{
	for (size_t i = 0; i < HOLDERS; i++)
		if (holder == GP_ALL_HOLDERS || holder == i + 1)
			plain[queue][i] = 0;
}

static void plain_end(uint64_t now_ns, uint64_t closed)
{
	for (size_t q = 0; q < QUEUES; q++)
		for (size_t i = 0; i < HOLDERS; i++)
			if (plain[q][i] <= now_ns || (plain[q][i] == GP_NO_LEASE && closed == i + 1))
				plain[q][i] = 0;
}

static void twenty_thousand_random_steps_agree_with_a_plain_table(void **state)
{
	struct gp_random r;
	uint64_t now = 1;

	(void)state;
	memset(plain, 0, sizeof(plain));
	gp_random_init(&r, 7, 0);
	for (int step = 0; step < 20000; step++, now++) {
		uint64_t queue = gp_random_between(&r, 0, QUEUES - 1);
		uint64_t holder = gp_random_between(&r, 1, HOLDERS), told;
		uint64_t until =
			gp_random_between(&r, 0, 1) ? GP_NO_LEASE : now + gp_random_between(&r, 1, 500);

		switch (gp_random_between(&r, 0, 9)) {
		case 0:
			gp_holds_close(holds, holder);
			plain_end(0, holder);
			break;
		case 1:
			gp_holds_release(holds, queue, CLIENT, GP_ALL_HOLDERS);
			plain_release(queue, GP_ALL_HOLDERS);
			break;
		case 2:
		case 3:
			gp_holds_release(holds, queue, CLIENT, holder);
			plain_release(queue, holder);
			break;
		default:
			assert_int_equal(hold(holder, queue, until, 0), 0);
			plain[queue][holder - 1] = until;
		}
		gp_holds_expire(holds, now);
		plain_end(now, 0);
		for (size_t q = 0; q < QUEUES; q++)
			assert_int_equal(gp_holds_held(holds, q), plainly_held(q));
		assert_true(gp_holds_next(holds) > now);
		while (gp_random_between(&r, 0, 3) && gp_holds_changed(holds, &told))
			assert_true(told < QUEUES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_held_at_first_and_nothing_ends, begin, end),
		cmocka_unit_test_setup_teardown(
			a_hold_without_a_lease_ends_with_its_connection_and_not_by_time, begin, end),
		cmocka_unit_test_setup_teardown(a_hold_with_a_lease_ends_with_it_and_not_with_its_connection,
						begin, end),
		cmocka_unit_test_setup_teardown(
			a_second_hold_by_the_same_renews_the_lease_and_changes_nothing, begin, end),
		cmocka_unit_test_setup_teardown(a_queue_of_two_holders_is_free_when_the_last_lets_go, begin,
						end),
		cmocka_unit_test_setup_teardown(releasing_for_all_ends_leases_and_connections_alike, begin,
						end),
		cmocka_unit_test_setup_teardown(what_was_held_and_released_before_anybody_asked_is_told_once,
						begin, end),
		cmocka_unit_test_setup_teardown(a_new_queue_is_held_by_all_who_hold_its_clients_new_queues,
						begin, end),
		cmocka_unit_test_setup_teardown(new_queues_of_other_clients_and_of_plain_holds_run, begin,
						end),
		cmocka_unit_test_setup_teardown(a_released_queue_ends_the_hold_on_what_its_client_creates,
						begin, end),
		cmocka_unit_test_setup_teardown(a_queue_that_is_gone_leaves_the_hold_on_its_client, begin,
						end),
		cmocka_unit_test_setup_teardown(twenty_thousand_random_steps_agree_with_a_plain_table, begin,
						end),
	};

	return cmocka_run_group_tests_name("holds", tests, NULL, NULL);
}
