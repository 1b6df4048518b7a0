// SPDX-License-Identifier: MIT
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/decisions.h"

#define UPDATE GP_KFD_WAY_UPDATE
#define DBG GP_KFD_WAY_DBG
#define PRIVATE GP_KFD_WAY_PRIVATE
#define ALL (UPDATE | DBG | PRIVATE)

static struct gp_ways ways(const char *list)
{
	struct gp_ways w;
	char error[128] = "";

	assert_int_equal(gp_ways_parse(list, &w, error, sizeof(error)), 0);
	assert_string_equal(error, "");
	return w;
}

static void a_list_of_ways_is_taken_in_its_order(void **state)
{
	struct gp_ways w = ways("dbg,update,private");

	(void)state;
	assert_int_equal(w.n, 3);
	assert_int_equal(gp_ways_next(&w, ALL, GP_KFD_WAY_AUTO, 0), DBG);
	assert_int_equal(gp_ways_next(&w, ALL, GP_KFD_WAY_AUTO, DBG), UPDATE);
	assert_int_equal(gp_ways_next(&w, ALL, GP_KFD_WAY_AUTO, DBG | UPDATE), PRIVATE);
	assert_int_equal(gp_ways_next(&w, ALL, GP_KFD_WAY_AUTO, ALL), 0);
}

static void what_the_client_does_not_have_is_passed_over(void **state)
{
	struct gp_ways w = ways("dbg,update");

	(void)state;
	assert_int_equal(gp_ways_next(&w, UPDATE, GP_KFD_WAY_AUTO, 0), UPDATE);
	assert_int_equal(gp_ways_next(&w, PRIVATE, GP_KFD_WAY_AUTO, 0), 0);
	assert_int_equal(gp_ways_next(&w, 0, GP_KFD_WAY_AUTO, 0), 0);
}

static void a_way_that_is_asked_for_comes_first_and_the_others_after_it(void **state)
{
	struct gp_ways w = ways("update,private");

	(void)state;
	assert_int_equal(gp_ways_next(&w, ALL, PRIVATE, 0), PRIVATE);
	assert_int_equal(gp_ways_next(&w, ALL, PRIVATE, PRIVATE), UPDATE);
	assert_int_equal(gp_ways_next(&w, ALL, PRIVATE, PRIVATE | UPDATE), 0);
	/* Asked for, and not permitted. */
	assert_int_equal(gp_ways_next(&w, ALL, DBG, 0), UPDATE);
}

static void a_way_with_a_question_mark_is_gone_only_if_it_is_asked_for(void **state)
{
	struct gp_ways w = ways("update,dbg?");

	(void)state;
	assert_int_equal(gp_ways_next(&w, ALL, GP_KFD_WAY_AUTO, 0), UPDATE);
	assert_int_equal(gp_ways_next(&w, ALL, GP_KFD_WAY_AUTO, UPDATE), 0);
	assert_int_equal(gp_ways_next(&w, ALL, DBG, 0), DBG);
	assert_int_equal(gp_ways_next(&w, DBG, GP_KFD_WAY_AUTO, 0), 0);
	assert_true(gp_ways_permit(&w, DBG));
	assert_false(gp_ways_permit(&w, PRIVATE));
}

static void a_list_that_is_none_is_refused_and_says_why(void **state)
{
	static const struct {
		const char *list, *word;
	} bad[] = { { "", "known are" },
		    { "updat", "updat" },
		    { "auto", "auto" },
		    { "update,", "known are" },
		    { "update,update?", "twice" },
		    { "?", "known are" },
		    { "update,dbg,private,update", "twice" },
		    { "an-extremely-long-name-of-a-way", "known are" } };
	struct gp_ways w = { .n = 77 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char error[160] = "";

		assert_int_equal(gp_ways_parse(bad[i].list, &w, error, sizeof(error)), -EINVAL);
		assert_non_null(strstr(error, bad[i].word));
		assert_int_equal(w.n, 77);
	}
}

static void only_what_is_still_there_is_tried_in_another_way(void **state)
{
	(void)state;
	assert_true(gp_ways_may_fall_back(-EPERM));
	assert_true(gp_ways_may_fall_back(-EIO));
	assert_true(gp_ways_may_fall_back(-ETIMEDOUT));
	assert_false(gp_ways_may_fall_back(-ENOENT));
	assert_false(gp_ways_may_fall_back(-ESRCH));
	assert_false(gp_ways_may_fall_back(0));
}

static void a_reservation_is_a_number_of_queues_rounded_down(void **state)
{
	struct gp_reserve r = { 0 };

	(void)state;
	assert_false(gp_reserve_is_set(&r));
	assert_int_equal(gp_reserve_set(&r, 24, 80, 20), 0);
	assert_int_equal(r.limit, 4); /* 4.8 */
	assert_int_equal(gp_reserve_set(&r, 24, 0, 100), 0);
	assert_int_equal(r.limit, 24);
	assert_int_equal(gp_reserve_set(&r, 24, 97, 3), 0);
	assert_int_equal(r.limit, 0); /* 0.72 */
	assert_int_equal(gp_reserve_set(&r, 24, 75, 0), 0);
	assert_int_equal(r.limit, 0); /* not what online leaves */
	assert_true(gp_reserve_is_set(&r));
	assert_int_equal(gp_reserve_set(&r, 24, 0, 0), 0);
	assert_false(gp_reserve_is_set(&r));
}

static void a_reservation_that_cannot_be_changes_nothing(void **state)
{
	struct gp_reserve r = { 0 };

	(void)state;
	gp_reserve_set(&r, 24, 50, 50);
	assert_int_equal(gp_reserve_set(&r, 24, 51, 50), -EINVAL);
	assert_int_equal(gp_reserve_set(&r, 24, UINT32_MAX, 2), -EINVAL);
	assert_int_equal(gp_reserve_set(&r, 0, 50, 40), -EOPNOTSUPP);
	assert_int_equal(r.limit, 12);
	assert_int_equal(r.offline_percent, 50);
}

/* So many seats, numbered 10, 20, ...; those of the mask cannot be stopped. */
static void fill(struct gp_candidate *seats, size_t n, uint32_t unstoppable)
{
	for (size_t i = 0; i < n; i++)
		seats[i] =
			(struct gp_candidate){ .queue = 10 * (i + 1), .stoppable = !(unstoppable >> i & 1) };
}

/* One bit for each, whatever their order is by now. */
static uint32_t running(const struct gp_candidate *seats, size_t n)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < n; i++)
		bits |= (uint32_t)!seats[i].parked << (seats[i].queue / 10 - 1);
	return bits;
}

static uint32_t choose(struct gp_reserve *r, struct gp_candidate *seats, size_t n)
{
	assert_int_equal(gp_reserve_choose(r, seats, n, 0), 0);
	return running(seats, n);
}

static uint32_t turn(struct gp_reserve *r, struct gp_candidate *seats, size_t n)
{
	assert_int_equal(gp_reserve_choose(r, seats, n, 1), 0);
	return running(seats, n);
}

static void as_many_run_as_may_and_without_a_reservation_all_do(void **state)
{
	struct gp_reserve r = { 0 };
	struct gp_candidate seats[6];

	(void)state;
	fill(seats, 6, 0);
	assert_int_equal(choose(&r, seats, 6), 0x3f);
	gp_reserve_set(&r, 24, 80, 17); /* 4.08 */
	assert_int_equal(choose(&r, seats, 6), 0x0f);
	fill(seats, 3, 0);
	assert_int_equal(choose(&r, seats, 3), 0x07);
	assert_int_equal(choose(&r, seats, 0), 0);
}

static void who_runs_goes_on_running_until_the_turn_is_over(void **state)
{
	struct gp_reserve r = { 0 };
	struct gp_candidate seats[4];

	(void)state;
	gp_reserve_set(&r, 10, 50, 20); /* 2 */
	fill(seats, 4, 0);
	assert_int_equal(choose(&r, seats, 4), 0x3);
	assert_int_equal(turn(&r, seats, 4), 0xc);
	for (int i = 0; i < 5; i++)
		assert_int_equal(choose(&r, seats, 4), 0xc);
	assert_int_equal(turn(&r, seats, 4), 0x3);
}

static void in_turns_everybody_runs_equally_often(void **state)
{
	unsigned ran[5] = { 0 };
	struct gp_reserve r = { 0 };
	struct gp_candidate seats[5];

	(void)state;
	gp_reserve_set(&r, 10, 50, 20); /* 2 */
	fill(seats, 5, 0);
	for (int i = 0; i < 5; i++) {
		uint32_t now = turn(&r, seats, 5);

		for (int q = 0; q < 5; q++)
			ran[q] += now >> q & 1;
		assert_int_equal(__builtin_popcount(now), 2);
	}
	/* 5 turns of 2 among 5 */
	for (int i = 0; i < 5; i++)
		assert_int_equal(ran[i], 2);
}

static void nobody_changes_places_if_all_have_one_or_nobody_may_run(void **state)
{
	struct gp_reserve r = { 0 };
	struct gp_candidate seats[3];

	(void)state;
	gp_reserve_set(&r, 10, 50, 30);
	fill(seats, 3, 0);
	assert_int_equal(turn(&r, seats, 3), 0x7);
	gp_reserve_set(&r, 10, 100, 0);
	assert_int_equal(choose(&r, seats, 3), 0);
	assert_int_equal(turn(&r, seats, 3), 0);
}

static void what_cannot_be_stopped_runs_and_takes_a_place(void **state)
{
	struct gp_reserve r = { 0 };
	struct gp_candidate seats[5];

	(void)state;
	gp_reserve_set(&r, 10, 50, 30); /* 3 */
	fill(seats, 5, 0x14);           /* the third and the fifth */
	assert_int_equal(choose(&r, seats, 5), 0x15);
	assert_int_equal(turn(&r, seats, 5), 0x16);
	/* More of them than places: no other runs. */
	fill(seats, 5, 0x17);
	assert_int_equal(choose(&r, seats, 5), 0x17);
}

static void what_one_user_has_that_cannot_be_stopped_takes_no_place_of_anothers(void **state)
{
	struct gp_reserve r = { 0 };
	struct gp_candidate seats[8];

	(void)state;
	gp_reserve_set(&r, 24, 75, 25); /* 6 */
	fill(seats, 8, 0x3f);
	seats[6].user = seats[7].user = 1;
	assert_int_equal(choose(&r, seats, 8), 0xff);
	/* Of the other's own there are no more than its share. */
	fill(seats, 8, 0x0f);
	for (int i = 4; i < 8; i++)
		seats[i].user = 1;
	assert_int_equal(choose(&r, seats, 8), 0x7f);
}

static void places_are_shared_evenly_and_what_one_user_leaves_the_others_have(void **state)
{
	struct gp_reserve r = { 0 };
	struct gp_candidate seats[10];

	(void)state;
	gp_reserve_set(&r, 10, 50, 50); /* 5 */
	fill(seats, 10, 0);
	seats[9].user = 1;
	assert_int_equal(choose(&r, seats, 10), 0x20f);
	for (int i = 0; i < 10; i++)
		seats[i].user = seats[i].queue > 50;
	choose(&r, seats, 10);
	assert_int_equal(__builtin_popcount(running(seats, 10)), 5);
	assert_in_range(__builtin_popcount(running(seats, 10) & 0x1f), 2, 3);
}

static void a_users_queues_are_in_one_line_in_whatever_order_they_came(void **state)
{
	struct gp_reserve r = { 0 };
	struct gp_candidate seats[4];

	(void)state;
	gp_reserve_set(&r, 10, 50, 30); /* 3 */
	fill(seats, 4, 0);
	seats[2].user = 1;
	assert_int_equal(choose(&r, seats, 4), 0x7);
}

static void a_place_that_cannot_be_divided_goes_round(void **state)
{
	struct gp_reserve r = { 0 };
	struct gp_candidate seats[2];
	uint32_t seen = 0;

	(void)state;
	gp_reserve_set(&r, 10, 50, 10); /* 1 */
	fill(seats, 2, 0);
	seats[1].user = 1;
	for (int i = 0; i < 2; i++) {
		uint32_t now = turn(&r, seats, 2);

		assert_int_equal(__builtin_popcount(now), 1);
		seen |= now;
	}
	assert_int_equal(seen, 3);
}

static void turns_go_on_where_they_were_when_queues_come_and_go(void **state)
{
	struct gp_reserve r = { 0 };
	struct gp_candidate seats[4];

	(void)state;
	gp_reserve_set(&r, 10, 50, 10); /* 1 */
	fill(seats, 4, 0);
	choose(&r, seats, 4);
	assert_int_equal(turn(&r, seats, 4), 0x2);
	/* That one goes, and one comes: who waited longest is next, not the first, who ran. */
	assert_int_equal(seats[0].queue, 20);
	memmove(&seats[0], &seats[1], 3 * sizeof(seats[0]));
	seats[3] = (struct gp_candidate){ .queue = 50, .stoppable = 1 };
	assert_int_equal(turn(&r, seats, 4), 0x4);
	assert_int_equal(turn(&r, seats, 4), 0x8);
	assert_int_equal(turn(&r, seats, 4), 0x1);
	assert_int_equal(turn(&r, seats, 4), 0x10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_of_ways_is_taken_in_its_order),
		cmocka_unit_test(what_the_client_does_not_have_is_passed_over),
		cmocka_unit_test(a_way_that_is_asked_for_comes_first_and_the_others_after_it),
		cmocka_unit_test(a_way_with_a_question_mark_is_gone_only_if_it_is_asked_for),
		cmocka_unit_test(a_list_that_is_none_is_refused_and_says_why),
		cmocka_unit_test(only_what_is_still_there_is_tried_in_another_way),
		cmocka_unit_test(a_reservation_is_a_number_of_queues_rounded_down),
		cmocka_unit_test(a_reservation_that_cannot_be_changes_nothing),
		cmocka_unit_test(as_many_run_as_may_and_without_a_reservation_all_do),
		cmocka_unit_test(in_turns_everybody_runs_equally_often),
		cmocka_unit_test(nobody_changes_places_if_all_have_one_or_nobody_may_run),
		cmocka_unit_test(what_cannot_be_stopped_runs_and_takes_a_place),
		cmocka_unit_test(what_one_user_has_that_cannot_be_stopped_takes_no_place_of_anothers),
		cmocka_unit_test(places_are_shared_evenly_and_what_one_user_leaves_the_others_have),
		cmocka_unit_test(a_users_queues_are_in_one_line_in_whatever_order_they_came),
		cmocka_unit_test(a_place_that_cannot_be_divided_goes_round),
		cmocka_unit_test(who_runs_goes_on_running_until_the_turn_is_over),
		cmocka_unit_test(turns_go_on_where_they_were_when_queues_come_and_go),
	};

	return cmocka_run_group_tests_name("decisions", tests, NULL, NULL);
}
