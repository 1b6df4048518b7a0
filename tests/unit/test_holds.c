// SPDX-License-Identifier: MIT
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "core/holds.h"

#define SECOND 1000000000ull
#define ANNA 1
#define BERT 2
#define CLIENT 900
#define OWNER(holder) (5000 + (holder) % 2) /* two users, each with several connections */
#define MOST 100000

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

static int hold(uint64_t holder, uint64_t queue, uint64_t until_ns, uint32_t new_queues)
{
	const struct gp_hold one = { .holder = holder,
				     .owner = OWNER(holder),
				     .queue = queue,
				     .client = CLIENT,
				     .until_ns = until_ns,
				     .new_queues = new_queues,
				     .most = MOST };

	return gp_holds_add(holds, &one);
}

static void release(uint64_t queue, uint64_t holder)
{
	gp_holds_release(holds, queue, CLIENT, (struct gp_whose){ .holder = holder });
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
	gp_holds_release(holds, 5, CLIENT, GP_EVERYBODYS);
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
	assert_int_equal(gp_holds_whose(holds, 5).holder, ANNA);
	assert_int_equal(gp_holds_whose(holds, 6).holder, 0);
	release(5, ANNA);
	assert_false(gp_holds_held_by(holds, 5, ANNA));
	assert_int_equal(gp_holds_whose(holds, 5).owner, OWNER(BERT));
	assert_true(gp_holds_held(holds, 5));
	assert_int_equal(changed(), 0);
	release(5, ANNA);
	assert_true(gp_holds_held(holds, 5));
	release(5, BERT);
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
	gp_holds_release(holds, 5, CLIENT, GP_EVERYBODYS);
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
	hold(ANNA, 5, GP_NO_LEASE, 1);
	hold(BERT, 5, 4 * SECOND, 1);
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
	gp_holds_adopt(holds, 7, CLIENT);
	assert_false(gp_holds_held(holds, 7));
}

static void new_queues_of_other_clients_and_of_plain_holds_run(void **state)
{
	(void)state;
	hold(ANNA, 5, GP_NO_LEASE, 1);
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
	hold(ANNA, 5, GP_NO_LEASE, 1);
	hold(ANNA, 6, GP_NO_LEASE, 1);
	release(5, ANNA);
	assert_true(gp_holds_held(holds, 6));
	gp_holds_adopt(holds, 7, CLIENT);
	assert_false(gp_holds_held(holds, 7));
}

static void a_queue_that_is_gone_leaves_the_hold_on_its_client(void **state)
{
	(void)state;
	hold(ANNA, 5, GP_NO_LEASE, 1);
	gp_holds_forget(holds, 5);
	assert_false(gp_holds_held(holds, 5));
	gp_holds_adopt(holds, 6, CLIENT);
	assert_true(gp_holds_held(holds, 6));
	gp_holds_forget_client(holds, CLIENT);
	gp_holds_adopt(holds, 7, CLIENT);
	assert_false(gp_holds_held(holds, 7));
}

static void leases_that_outlive_their_connections_are_one_of_their_owners_until_the_last_of_them(void **state)
{
	(void)state;
	for (uint64_t holder = 1; holder < 2000; holder += 2) {
		hold(holder, 5, (holder == 7 ? 9 : 3) * SECOND, 0);
		gp_holds_close(holds, holder);
		assert_int_equal(gp_holds_of(holds, OWNER(1)), 1);
	}
	changed();
	gp_holds_expire(holds, 3 * SECOND);
	assert_true(gp_holds_held(holds, 5));
	assert_int_equal(changed(), 0);
	gp_holds_expire(holds, 9 * SECOND);
	assert_false(gp_holds_held(holds, 5));
	assert_int_equal(gp_holds_of(holds, OWNER(1)), 0);
	assert_int_equal(changed(), 1 << 5);
}

static void an_owner_lets_go_of_all_its_holds_and_of_nobody_elses(void **state)
{
	const struct gp_whose mine = { .owner = OWNER(ANNA) };

	(void)state;
	hold(ANNA, 5, GP_NO_LEASE, 1);
	hold(ANNA + 2, 5, 3 * SECOND, 0);
	hold(ANNA + 4, 5, 3 * SECOND, 0);
	gp_holds_close(holds, ANNA + 4);
	hold(BERT, 5, GP_NO_LEASE, 0);
	changed();
	gp_holds_release(holds, 5, CLIENT, mine);
	assert_int_equal(gp_holds_of(holds, OWNER(ANNA)), 0);
	assert_true(gp_holds_held_by(holds, 5, BERT));
	assert_int_equal(changed(), 0);
	gp_holds_adopt(holds, 6, CLIENT);
	assert_false(gp_holds_held(holds, 6));
}

static void an_owner_holds_no_more_than_it_may_and_another_is_not_kept_from_it(void **state)
{
	struct gp_hold one = { .holder = ANNA,
			       .owner = OWNER(ANNA),
			       .client = CLIENT,
			       .until_ns = GP_NO_LEASE,
			       .new_queues = 1,
			       .most = 3 };

	(void)state;
	one.queue = 1; /* and the client */
	assert_int_equal(gp_holds_add(holds, &one), 0);
	one.holder = ANNA + 2;
	one.queue = 2; /* and the client, which is one too many */
	assert_int_equal(gp_holds_add(holds, &one), -ENOSPC);
	assert_false(gp_holds_held(holds, 2));
	one.new_queues = 0;
	assert_int_equal(gp_holds_add(holds, &one), 0);
	assert_int_equal(gp_holds_of(holds, OWNER(ANNA)), 3);
	one.queue = 3;
	assert_int_equal(gp_holds_add(holds, &one), -ENOSPC);
	one.queue = 2; /* has it already, and keeps it though there is no room for the client */
	assert_int_equal(gp_holds_add(holds, &one), 0);
	one.new_queues = 1;
	assert_int_equal(gp_holds_add(holds, &one), -ENOSPC);
	assert_true(gp_holds_held_by(holds, 2, ANNA + 2));
	one.new_queues = 0;
	assert_int_equal(gp_holds_adopt(holds, 4, CLIENT), -ENOSPC);
	assert_false(gp_holds_held(holds, 4));
	one.holder = BERT;
	one.owner = OWNER(BERT);
	one.queue = 3;
	assert_int_equal(gp_holds_add(holds, &one), 0);
	gp_holds_close(holds, ANNA);
	assert_int_equal(gp_holds_of(holds, OWNER(ANNA)), 1);
}

#define QUEUES 40
#define HOLDERS 6
#define COLUMNS (HOLDERS + 2) /* the owners' own are the last two */

/* The same, as plainly as it can be said: until when each holds each; 0: not. */
static uint64_t plain[QUEUES][COLUMNS];

static size_t owner_column(size_t column)
{
	return column < HOLDERS ? HOLDERS + (column + 1) % 2 : column;
}

static int plainly_held(size_t queue)
{
	for (size_t i = 0; i < COLUMNS; i++)
		if (plain[queue][i])
			return 1;
	return 0;
}

static void plain_release(size_t queue, struct gp_whose whose)
{
	for (size_t i = 0; i < COLUMNS; i++)
		if ((!whose.holder || whose.holder == i + 1) &&
		    (!whose.owner || whose.owner == 5000 + owner_column(i) - HOLDERS))
			plain[queue][i] = 0;
}

static void plain_close(size_t column)
{
	for (size_t q = 0; q < QUEUES; q++) {
		uint64_t *mine = &plain[q][column], *left = &plain[q][owner_column(column)];

		if (*mine != GP_NO_LEASE && *mine > *left)
			*left = *mine;
		*mine = 0;
	}
}

static void plain_expire(uint64_t now_ns)
{
	for (size_t q = 0; q < QUEUES; q++)
		for (size_t i = 0; i < COLUMNS; i++)
			if (plain[q][i] <= now_ns)
				plain[q][i] = 0;
}

static size_t plain_count(size_t owner)
{
	size_t n = 0;

	for (size_t q = 0; q < QUEUES; q++)
		for (size_t i = 0; i < COLUMNS; i++)
			n += plain[q][i] && owner_column(i) == owner;
	return n;
}

static void do_something(struct gp_random *r, uint64_t now)
{
	uint64_t queue = gp_random_between(r, 0, QUEUES - 1), holder = gp_random_between(r, 1, HOLDERS);
	uint64_t until = gp_random_between(r, 0, 1) ? GP_NO_LEASE : now + gp_random_between(r, 1, 500);
	const struct gp_whose whose[] = { { 0, 0 }, { holder, 0 }, { holder, 0 }, { 0, OWNER(holder) } };
	uint64_t what = gp_random_between(r, 0, 9);

	if (what == 0) {
		gp_holds_close(holds, holder);
		plain_close(holder - 1);
	} else if (what <= 4) {
		gp_holds_release(holds, queue, CLIENT, whose[what - 1]);
		plain_release(queue, whose[what - 1]);
	} else {
		assert_int_equal(hold(holder, queue, until, 0), 0);
		plain[queue][holder - 1] = until;
	}
}

static void twenty_thousand_random_steps_agree_with_a_plain_table(void **state)
{
	struct gp_random r;
	uint64_t told;

	(void)state;
	memset(plain, 0, sizeof(plain));
	gp_random_init(&r, 7, 0);
	for (uint64_t now = 1; now <= 20000; now++) {
		do_something(&r, now);
		gp_holds_expire(holds, now);
		plain_expire(now);
		for (size_t q = 0; q < QUEUES; q++)
			assert_int_equal(gp_holds_held(holds, q), plainly_held(q));
		assert_int_equal(gp_holds_of(holds, 5000), plain_count(HOLDERS));
		assert_int_equal(gp_holds_of(holds, 5001), plain_count(HOLDERS + 1));
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
		cmocka_unit_test_setup_teardown(
			leases_that_outlive_their_connections_are_one_of_their_owners_until_the_last_of_them,
			begin, end),
		cmocka_unit_test_setup_teardown(an_owner_lets_go_of_all_its_holds_and_of_nobody_elses, begin,
						end),
		cmocka_unit_test_setup_teardown(
			an_owner_holds_no_more_than_it_may_and_another_is_not_kept_from_it, begin, end),
		cmocka_unit_test_setup_teardown(twenty_thousand_random_steps_agree_with_a_plain_table, begin,
						end),
	};

	return cmocka_run_group_tests_name("holds", tests, NULL, NULL);
}
