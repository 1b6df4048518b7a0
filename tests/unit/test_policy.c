// SPDX-License-Identifier: MIT
#include "core_host.h"

/* Calls take 1 us here: what a client has had is what its policy gave it. */
#define CALL_NS US

static void start(struct host *h, uint32_t caps, const struct gp_policy_ops *ops)
{
	struct gp_core_opts opts = { .quantum_ns = 100 * MS };

	host_init(h, &opts);
	h->resume_ns = CALL_NS;
	for (int i = 0; i < GP_MECH_COUNT; i++)
		h->stop_ns[i] = CALL_NS;
	device(h, 0, caps);
	set_policy(h, 0, ops);
}

static void weighted(struct host *h, uint64_t id, uint32_t weight)
{
	client_with(h, id, GP_CLASS_OFFLINE, 0, weight);
	queue(h, 10 * id, id, 0);
}

/* priority */

static void priority_lets_no_offline_client_run_beside_online_work(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_priority);
	online(&h, 1);
	online(&h, 2);
	for (uint64_t id = 3; id < 6; id++)
		offline(&h, id);
	busy(&h, 10);
	pass(&h, MS);
	busy(&h, 20);
	offline(&h, 6);
	pass(&h, MS);
	for (uint64_t id = 3; id < 7; id++)
		assert_int_equal(state_of(&h, 10 * id), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 10), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	idle(&h, 10);
	idle(&h, 20);
	pass(&h, 2 * MS);
	assert_all_run(&h);
	host_free(&h);
}

static void priority_lets_all_offline_clients_run_where_nobody_is_online(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS, &gp_policy_priority);
	for (uint64_t id = 3; id < 6; id++)
		offline(&h, id);
	pass(&h, 5 * SEC);
	assert_int_equal(h.count[0].actions, 0);
	host_free(&h);
}

/* fifo */

static void fifo_stops_nobody_for_anybody(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fifo);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	busy(&h, 10);
	pass(&h, 5 * SEC);
	assert_int_equal(h.count[0].actions, 0);
	assert_all_run(&h);
	host_free(&h);
}

static void fifo_keeps_the_first_where_one_may_run_and_the_guard_serves_the_rest(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS, &gp_policy_fifo);
	online(&h, 1);
	for (uint64_t id = 2; id < 5; id++)
		offline(&h, id);
	pass(&h, 900 * MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	assert_int_equal(have(&h, 30), GP_STOP);
	assert_int_equal(have(&h, 40), GP_STOP);
	pass(&h, 10 * SEC);
	assert_in_range(run_time(&h, 20), 10900 * MS - 2 * CALL_NS, 10900 * MS);
	assert_in_range(run_time(&h, 30), 10 * 10 * MS, 11 * 10 * MS);
	idle(&h, 20); /* then the one that waited longest is next */
	pass(&h, 100 * MS);
	assert_int_equal((have(&h, 30) == GP_STOP) + (have(&h, 40) == GP_STOP), 1);
	host_free(&h);
}

static void fifo_takes_surplus_clients_off_when_fewer_may_run(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS, &gp_policy_fifo);
	offline(&h, 2);
	offline(&h, 3);
	pass(&h, MS);
	online(&h, 1);
	pass(&h, MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	assert_int_equal(have(&h, 30), GP_STOP);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	host_free(&h);
}

/* fair */

static void fair_shares_by_weight_online_and_offline_alike(void **state)
{
	static const uint32_t weights[] = { 100, 50, 150, 300 };
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	client_with(&h, 1, GP_CLASS_ONLINE, 0, weights[0]);
	queue(&h, 10, 1, 0);
	busy(&h, 10);
	for (uint64_t id = 2; id < 5; id++)
		weighted(&h, id, weights[id - 1]);
	pass(&h, 60 * SEC);
	for (uint64_t id = 1; id < 5; id++) /* 600 is the sum of the weights */
		assert_in_range(run_time(&h, 10 * id) / MS, 100 * weights[id - 1] * 98 / 100,
				100 * weights[id - 1] * 102 / 100);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	host_free(&h);
}

static void fair_follows_a_change_of_weight(void **state)
{
	struct gp_core_client three = { .id = 3, .client_class = GP_CLASS_OFFLINE, .weight = 300 };
	uint64_t before;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	weighted(&h, 2, 100);
	weighted(&h, 3, 100);
	pass(&h, 10 * SEC);
	assert_int_equal(gp_core_client_change(h.core, &three, h.now), 0);
	before = run_time(&h, 30);
	pass(&h, 40 * SEC);
	assert_in_range((run_time(&h, 30) - before) / MS, 30000 * 98 / 100, 30000 * 102 / 100);
	host_free(&h);
}

static void of_user(struct host *h, uint64_t id, uint64_t user, uint32_t weight)
{
	struct gp_core_client c = {
		.id = id, .user = user, .client_class = GP_CLASS_OFFLINE, .weight = weight
	};

	assert_int_equal(gp_core_client_add(h->core, &c), 0);
	queue(h, 10 * id, id, 0);
}

static void fair_gives_users_equal_shares_and_a_weight_divides_its_users(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	of_user(&h, 2, 1000, 10000); /* whatever weight it gives itself */
	of_user(&h, 3, 1001, 100);
	of_user(&h, 4, 1001, 300);
	pass(&h, 40 * SEC);
	assert_in_range(run_time(&h, 20) / MS, 20000 * 97 / 100, 20000 * 103 / 100);
	assert_in_range(run_time(&h, 30) / MS, 5000 * 95 / 100, 5000 * 105 / 100);
	assert_in_range(run_time(&h, 40) / MS, 15000 * 97 / 100, 15000 * 103 / 100);
	host_free(&h);
}

/* Its client leaves at the end of each slice, and comes back. */
static void flee(struct host *h, uint64_t id, int as_another)
{
	if (run_time(h, 10 * id) < 9 * MS)
		return;
	remove_queue(h, 10 * id);
	if (as_another) {
		struct gp_core_client c;

		assert_int_equal(gp_core_client_get(h->core, id, &c), 0);
		assert_int_equal(gp_core_client_remove(h->core, id, h->now), 0);
		assert_int_equal(gp_core_client_add(h->core, &c), 0);
	}
	queue(h, 10 * id, id, 0);
}

static void fair_gives_a_user_nothing_more_for_clients_that_leave_and_come_back(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	for (uint64_t id = 2; id < 6; id++)
		of_user(&h, id, 1000, 100);
	of_user(&h, 6, 1001, 100);
	for (int i = 0; i < 10000; i++) {
		pass(&h, MS);
		for (uint64_t id = 2; id < 6; id++)
			flee(&h, id, i % 2);
	}
	assert_in_range(run_time(&h, 60) / MS, 4500, 5500);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	host_free(&h);
}

static void fair_remembers_a_user_of_whom_nobody_is_left(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	of_user(&h, 2, 1000, 100);
	of_user(&h, 3, 1001, 100);
	for (int i = 0; i < 10000; i++) {
		pass(&h, MS);
		flee(&h, 2, 1);
	}
	assert_in_range(run_time(&h, 30) / MS, 4500, 5500);
	host_free(&h);
}

static void fair_serves_more_users_than_it_has_accounts(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	for (uint64_t user = 0; user < 1000; user++) {
		of_user(&h, 2, user, 100);
		pass(&h, MS);
		assert_int_equal(gp_core_client_remove(h.core, 2, h.now), 0);
		forget_queue(&h, 20);
	}
	for (uint64_t id = 1; id <= 300; id++)
		of_user(&h, id, id, 100);
	pass(&h, 10 * SEC);
	for (uint64_t id = 1; id <= 300; id++)
		assert_true(run_time(&h, 10 * id) > 10 * MS);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	host_free(&h);
}

static void fair_gives_whole_slices_whatever_happens_meanwhile(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	client_with(&h, 1, GP_CLASS_ONLINE, 20 * MS, 100);
	queue(&h, 10, 1, 0);
	busy(&h, 10);
	weighted(&h, 2, 100);
	for (int i = 0; i < 1000; i++) { /* each hint moves the deadline: the policy is asked again */
		hint(&h, 1);
		pass(&h, MS / 2);
		hint_over(&h, 1);
		pass(&h, MS / 2);
	}
	assert_in_range(h.count[0].stops, 99, 102); /* 1 s in slices of 10 ms */
	host_free(&h);
}

/* For the next four seconds two clients of equal weight get two each. */
static void assert_halves(struct host *h, uint64_t a, uint64_t b)
{
	uint64_t a_before = run_time(h, a), b_before = run_time(h, b);

	pass(h, 4 * SEC);
	assert_in_range((run_time(h, a) - a_before) / MS, 1960, 2040);
	assert_in_range((run_time(h, b) - b_before) / MS, 1960, 2040);
}

static void fair_gives_a_newcomer_nothing_for_the_time_before_it_came(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	weighted(&h, 2, 100);
	pass(&h, 10 * SEC);
	assert_int_equal(h.count[0].actions, 0); /* one alone is never stopped */
	weighted(&h, 3, 100);
	assert_halves(&h, 20, 30);
	host_free(&h);
}

static void fair_gives_a_client_nothing_for_having_been_away(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	weighted(&h, 2, 100);
	weighted(&h, 3, 100);
	weighted(&h, 4, 100);
	pass(&h, SEC);
	idle(&h, 30);
	idle(&h, 40);
	pass(&h, 10 * SEC);
	busy(&h, 30);
	assert_halves(&h, 20, 30);
	host_free(&h);
}

static void fair_counts_what_a_client_has_had_as_another_users_for_nothing(void **state)
{
	struct gp_core_client moved = { .id = 2, .user = 1001, .client_class = GP_CLASS_OFFLINE };
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	of_user(&h, 2, 1000, 100);
	pass(&h, 10 * SEC);
	of_user(&h, 3, 1001, 100);
	pass(&h, SEC);
	assert_int_equal(gp_core_client_change(h.core, &moved, h.now), 0);
	assert_halves(&h, 20, 30);
	host_free(&h);
}

static void fair_does_not_make_the_last_one_pay_when_another_comes_to_an_empty_device(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	weighted(&h, 2, 100);
	pass(&h, 10 * SEC);
	idle(&h, 20);
	pass(&h, SEC);
	weighted(&h, 3, 100);
	pass(&h, 100 * MS);
	busy(&h, 20);
	assert_halves(&h, 20, 30);
	host_free(&h);
}

static void fair_lets_the_running_client_be_removed(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_fair);
	weighted(&h, 2, 100);
	weighted(&h, 3, 100);
	pass(&h, MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(gp_core_client_remove(h.core, 2, h.now), 0);
	forget_queue(&h, 20);
	pass(&h, MS);
	assert_all_run(&h);
	assert_string_equal(status_of(&h, 0).policy, "fair");
	assert_int_equal(status_of(&h, 0).ejected, 0);
	host_free(&h);
}

static void fair_runs_one_at_a_time_where_background_clients_take_turns(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS, &gp_policy_fair);
	online(&h, 1);
	for (uint64_t id = 2; id < 5; id++)
		weighted(&h, id, 100);
	busy(&h, 10);
	pass(&h, 40 * SEC);
	for (uint64_t id = 1; id < 5; id++)
		assert_in_range(run_time(&h, 10 * id) / MS, 9800, 10200);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	host_free(&h);
}

/* deadline */

static void start_deadline(struct host *h, uint64_t slo_ns)
{
	start(h, CAPS_STOP, &gp_policy_deadline);
	h->stop_ns[GP_MECH_INTERRUPT] = 100 * US;
	client_with(h, 1, GP_CLASS_ONLINE, slo_ns, 0);
	queue(h, 10, 1, 0);
	offline(h, 2);
}

/* A first request of 2 ms: now its length and the cost of a stop are known, and all runs again. */
static void learn(struct host *h)
{
	hint(h, 1);
	pass(h, 2 * MS);
	hint_over(h, 1);
	pass(h, 10 * MS);
	assert_all_run(h);
	h->count[0].stops = 0;
}

static void deadline_takes_offline_off_at_once_for_a_client_without_slo(void **state)
{
	struct host h;

	(void)state;
	start_deadline(&h, 0);
	for (int i = 0; i < 2; i++) {
		hint(&h, 1);
		settle(&h);
		assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDING);
		pass(&h, 2 * MS);
		hint_over(&h, 1);
		pass(&h, 10 * MS);
		assert_all_run(&h);
	}
	host_free(&h);
}

static void deadline_takes_offline_off_at_once_while_the_length_of_a_request_is_unknown(void **state)
{
	struct host h;

	(void)state;
	start_deadline(&h, 20 * MS);
	hint(&h, 1);
	settle(&h);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDING);
	host_free(&h);
}

static void deadline_takes_offline_off_only_when_the_laxity_is_used_up(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start_deadline(&h, 20 * MS);
	learn(&h);
	begin = h.now;
	hint(&h, 1);
	until(&h, begin + 17 * MS);
	assert_int_equal(h.count[0].stops, 0);
	/* 20 ms, less 2 ms of work and the cost of stopping, 100 us */
	until(&h, begin + 20 * MS - 2 * MS - 100 * US);
	assert_int_equal(h.count[0].stops, 1);
	hint_over(&h, 1);
	pass(&h, 10 * MS);
	assert_all_run(&h);
	host_free(&h);
}

static void deadline_goes_by_the_time_stops_took_and_not_by_what_is_said_of_it(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start_deadline(&h, 20 * MS);
	h.claims_no_time = 1;
	h.stop_ns[GP_MECH_INTERRUPT] = MS;
	learn(&h);
	begin = h.now;
	hint(&h, 1);
	until(&h, begin + 16 * MS - US);
	assert_int_equal(h.count[0].stops, 0);
	until(&h, begin + 16 * MS); /* 20 ms, less 2 ms of work and twice the cost of stopping */
	assert_int_equal(h.count[0].stops, 1);
	host_free(&h);
}

static void deadline_waits_for_the_slowest_to_stop_however_many_are_faster(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start_deadline(&h, 20 * MS);
	online(&h, 50); /* no SLO: no time to spare */
	for (uint64_t id = 3; id < 40; id++)
		offline(&h, id);
	learn(&h);
	for (int i = 0; i < 50; i++) {
		hint(&h, 50);
		settle(&h);
		host_find(&h, 20)->due_ns = h.now + 2 * MS;
		pass(&h, 5 * MS);
		hint_over(&h, 50);
		pass(&h, 10 * MS);
	}
	begin = h.now;
	h.count[0].stops = 0;
	hint(&h, 1);
	until(&h, begin + 14 * MS + 100 * US); /* 20 ms, less 2 ms of work and twice the cost of stopping */
	assert_int_equal(h.count[0].stops, 38);
	host_free(&h);
}

static void deadline_believes_nobody_to_stop_in_no_time(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start_deadline(&h, 20 * MS);
	h.stop_ns[GP_MECH_INTERRUPT] = 0;
	learn(&h);
	begin = h.now;
	hint(&h, 1);
	until(&h, begin + 18 * MS - 100 * US - US);
	assert_int_equal(h.count[0].stops, 0);
	until(&h, begin + 18 * MS - 100 * US);
	assert_int_equal(h.count[0].stops, 1);
	host_free(&h);
}

static void deadline_takes_offline_off_at_once_while_the_cost_of_stopping_is_unknown(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_deadline);
	client_with(&h, 1, GP_CLASS_ONLINE, 20 * MS, 0);
	queue(&h, 10, 1, 0);
	learn(&h); /* there was nobody to stop */
	offline(&h, 2);
	hint(&h, 1);
	settle(&h);
	assert_int_equal(h.count[0].stops, 1);
	host_free(&h);
}

static void deadline_stops_nobody_for_requests_that_end_in_time(void **state)
{
	struct host h;

	(void)state;
	start_deadline(&h, 20 * MS);
	learn(&h);
	for (int i = 0; i < 50; i++) {
		hint(&h, 1);
		pass(&h, 5 * MS);
		hint_over(&h, 1);
		pass(&h, 5 * MS);
	}
	assert_int_equal(h.count[0].stops, 0);
	host_free(&h);
}

static void deadline_counts_from_the_oldest_open_request(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start_deadline(&h, 20 * MS);
	learn(&h);
	begin = h.now;
	hint(&h, 1);
	until(&h, begin + 10 * MS);
	hint(&h, 1);
	until(&h, begin + 18 * MS);
	assert_int_equal(h.count[0].stops, 1);
	hint_over(&h, 1); /* the other one has ten more: its length by now is (7 * 2 + 18) / 8 = 4 ms */
	until(&h, begin + 18 * MS + 100 * US);
	assert_int_equal(h.count[0].runs, 2);
	until(&h, begin + 25 * MS);
	assert_int_equal(h.count[0].stops, 1);
	until(&h, begin + 26 * MS);
	assert_int_equal(h.count[0].stops, 2);
	host_free(&h);
}

static void deadline_follows_the_tightest_of_several_clients(void **state)
{
	struct host h;

	(void)state;
	start_deadline(&h, 20 * MS);
	online(&h, 3); /* no SLO: no time to spare */
	learn(&h);
	hint(&h, 1);
	pass(&h, MS);
	assert_int_equal(h.count[0].stops, 0);
	hint(&h, 3);
	settle(&h);
	assert_int_equal(h.count[0].stops, 1);
	hint_over(&h, 1);
	pass(&h, 10 * MS);
	hint(&h, 1); /* one more with time to spare, after it */
	pass(&h, MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void deadline_leaves_offline_in_the_background_where_the_device_yields(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_YIELD, &gp_policy_deadline);
	online(&h, 1);
	offline(&h, 2);
	pass(&h, MS);
	hint(&h, 1);
	pass(&h, 100 * MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	assert_int_equal(h.count[0].actions, 1);
	host_free(&h);
}

static void deadline_gives_slices_to_who_starves(void **state)
{
	struct host h;

	(void)state;
	start_deadline(&h, 0);
	busy(&h, 10);
	pass(&h, SEC + MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	host_free(&h);
}

/* from one policy to another */

/* Under every policy each client runs within max_starve, and all run once online is done. */
static void assert_nothing_is_lost(struct host *h)
{
	uint64_t before[6];

	for (uint64_t id = 1; id < 6; id++)
		before[id] = run_time(h, 10 * id);
	pass(h, 1500 * MS);
	for (uint64_t id = 1; id < 6; id++)
		assert_true(run_time(h, 10 * id) > before[id] + 5 * MS);
	for (uint64_t id = 1; id < 6; id++)
		idle(h, 10 * id);
	pass(h, 50 * MS);
	assert_all_run(h);
	assert_int_equal(status_of(h, 0).ejected, 0);
}

static void switch_between(const struct gp_policy_ops *from, const struct gp_policy_ops *to, uint32_t caps,
			   uint64_t after_ns)
{
	struct host h;

	start(&h, caps, from);
	online(&h, 1);
	for (uint64_t id = 2; id < 6; id++)
		offline(&h, id);
	busy(&h, 10);
	pass(&h, after_ns);
	set_policy(&h, 0, to);
	settle(&h);
	assert_string_equal(status_of(&h, 0).policy, to->name);
	assert_nothing_is_lost(&h);
	host_free(&h);
}

static void a_policy_may_be_changed_for_any_other_with_work_waiting(void **state)
{
	/* before anything is decided, while wants are under way, when all is settled, in a guard's slice */
	static const uint64_t after[] = { 0, CALL_NS / 2, 50 * MS, SEC + 3 * MS };
	static const uint32_t caps[] = { CAPS_STOP, CAPS_YIELD, CAPS_TURNS };

	(void)state;
	for (size_t from = 0; gp_policy_at(from); from++)
		for (size_t to = 0; gp_policy_at(to); to++)
			for (int c = 0; c < 3; c++)
				for (int a = 0; a < 4; a++)
					switch_between(gp_policy_at(from), gp_policy_at(to), caps[c],
						       after[a]);
}

static void a_policy_takes_over_the_run_set_without_a_call_where_it_agrees(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP, &gp_policy_priority);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, MS);
	set_policy(&h, 0, &gp_policy_deadline); /* no SLO: it decides the same */
	pass(&h, MS);
	set_policy(&h, 0, &gp_policy_priority);
	pass(&h, MS);
	assert_int_equal(h.count[0].actions, 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void every_policy_is_shown_by_its_name(void **state)
{
	static const char *const names[] = { "fifo", "priority", "fair", "deadline" };
	struct host h;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		start(&h, CAPS_STOP, gp_policy_at(i));
		assert_string_equal(status_of(&h, 0).policy, names[i]);
		host_free(&h);
	}
	assert_null(gp_policy_at(4));
}

static void every_policy_is_found_by_its_name_and_no_other(void **state)
{
	const struct gp_policy_ops *ops;

	(void)state;
	for (size_t i = 0; (ops = gp_policy_at(i)); i++)
		assert_ptr_equal(gp_policy_find(ops->name), ops);
	assert_null(gp_policy_find("prio"));
	assert_null(gp_policy_find("priority "));
	assert_null(gp_policy_find(""));
}

/* At any time, that of the slice which one that starved has among them. */
static void a_policy_that_stops_online_clients_is_followed_by_one_that_does_not(void **state)
{
	struct gp_core_opts opts = { .max_starve_ns = 100 * MS, .starve_slice_ns = 20 * MS };

	(void)state;
	for (uint64_t ms = 0; ms < 300; ms += 5) {
		struct host h;

		host_init(&h, &opts);
		device(&h, 0, CAPS_STOP);
		set_policy(&h, 0, &gp_policy_fair);
		client_with(&h, 1, GP_CLASS_ONLINE, 0, 10000);
		client_with(&h, 2, GP_CLASS_ONLINE, 0, 1);
		queue(&h, 10, 1, 0);
		queue(&h, 20, 2, 0);
		busy(&h, 10);
		busy(&h, 20);
		pass(&h, ms * MS);
		set_policy(&h, 0, &gp_policy_fifo);
		pass(&h, 100 * MS);
		assert_int_equal(status_of(&h, 0).ejected, 0);
		host_free(&h);
	}
}

static void fair_does_not_cut_turns_to_nothing_for_a_crowd(void **state)
{
	struct gp_core_opts opts = { .quantum_ns = 100 * MS, .max_starve_ns = 100 * MS };
	struct host h;

	(void)state;
	host_init(&h, &opts);
	device(&h, 0, CAPS_STOP);
	set_policy(&h, 0, &gp_policy_fair);
	for (uint64_t id = 2; id < 52; id++)
		weighted(&h, id, 100);
	pass(&h, 100 * MS);
	/* 100 turns of a millisecond at the most, each stopping one, and the slices of those who starve */
	assert_in_range(status_of(&h, 0).suspends, 50, 250);
	host_free(&h);
}

static void of_the_policies_as_many_are_named_as_there_is_room_for_and_each_whole(void **state)
{
	char list[64];

	(void)state;
	gp_policy_names(list, sizeof(list));
	assert_string_equal(list, "fifo priority fair deadline");
	memset(list, 'x', sizeof(list));
	gp_policy_names(list, 13);
	assert_string_equal(list, "fifo");
	gp_policy_names(list, 14);
	assert_string_equal(list, "fifo priority");
	for (size_t i = 14; i < sizeof(list); i++)
		assert_int_equal(list[i], 'x');
}

/* What a policy is shown. */

static struct {
	struct gp_policy_client client; /* as last seen in enqueue */
	struct gp_policy_limits limits;
	uint32_t decided;
	uint32_t changed;
} seen;

static void look_enqueue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	(void)now;
	seen.client = *c;
	(void)gp_policy_run(p, c->id);
}

static void look_changed(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	(void)p;
	(void)now;
	seen.client = *c;
	seen.changed++;
}

static uint64_t look_decide(struct gp_policy *p, uint64_t now)
{
	(void)now;
	seen.limits = *gp_policy_limits(p);
	seen.decided++;
	return GP_NEVER;
}

static const struct gp_policy_ops looker = { .size = sizeof(looker),
					     .abi = GP_POLICY_ABI,
					     .name = "looker",
					     .enqueue = look_enqueue,
					     .changed = look_changed,
					     .decide = look_decide };

static void a_policy_sees_the_client_and_its_open_request(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	memset(&seen, 0, sizeof(seen));
	start(&h, CAPS_STOP, &looker);
	client_with(&h, 1, GP_CLASS_ONLINE, 20 * MS, 0);
	queue(&h, 10, 1, 0);
	begin = h.now;
	hint(&h, 1);
	assert_int_equal(seen.client.id, 1);
	assert_int_equal(seen.client.client_class, GP_CLASS_ONLINE);
	assert_int_equal(seen.client.weight, 100);
	assert_int_equal(seen.client.slo_ns, 20 * MS);
	assert_int_equal(seen.client.deadline_ns, begin + 20 * MS);
	assert_int_equal(seen.client.service_ns, 0);
	pass(&h, 3 * MS);
	hint(&h, 1);
	hint_over(&h, 1);
	assert_int_equal(seen.changed, 1);
	assert_int_equal(seen.client.deadline_ns, begin + 23 * MS);
	assert_int_equal(seen.client.service_ns, 3 * MS);
	hint_over(&h, 1); /* it lingers; what comes then is a new request */
	pass(&h, MS / 2);
	busy(&h, 10);
	assert_int_equal(seen.client.deadline_ns, h.now + 20 * MS);
	host_free(&h);
}

static void a_policy_sees_the_limits_of_its_device(void **state)
{
	struct host h;

	(void)state;
	memset(&seen, 0, sizeof(seen));
	start(&h, CAPS_TURNS, &looker);
	idle(&h, (offline(&h, 2), 20));
	settle(&h);
	assert_int_equal(seen.limits.max_offline, GP_UNLIMITED);
	assert_int_equal(seen.limits.yields, 0);
	online(&h, 1);
	settle(&h);
	assert_int_equal(seen.limits.max_offline, 1);
	assert_int_equal(seen.limits.yields, 1);
	assert_int_equal(seen.limits.quantum_ns, 100 * MS);
	assert_int_equal(seen.limits.preempt_ns, 0);
	h.stop_ns[GP_MECH_INTERRUPT] = 70 * US;
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	pass(&h, MS);
	busy(&h, 10);
	settle(&h);
	assert_int_equal(seen.limits.preempt_ns, 70 * US);
	host_free(&h);
}

static void a_policy_is_not_asked_again_when_nothing_happened(void **state)
{
	uint32_t before;
	struct host h;

	(void)state;
	memset(&seen, 0, sizeof(seen));
	start(&h, CAPS_STOP, &looker);
	offline(&h, 2);
	settle(&h);
	before = seen.decided;
	for (int i = 0; i < 10; i++)
		settle(&h);
	assert_int_equal(seen.decided, before);
	host_free(&h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(priority_lets_no_offline_client_run_beside_online_work),
	cmocka_unit_test(priority_lets_all_offline_clients_run_where_nobody_is_online),
	cmocka_unit_test(fifo_stops_nobody_for_anybody),
	cmocka_unit_test(fifo_keeps_the_first_where_one_may_run_and_the_guard_serves_the_rest),
	cmocka_unit_test(fifo_takes_surplus_clients_off_when_fewer_may_run),
	cmocka_unit_test(fair_shares_by_weight_online_and_offline_alike),
	cmocka_unit_test(fair_follows_a_change_of_weight),
	cmocka_unit_test(fair_gives_whole_slices_whatever_happens_meanwhile),
	cmocka_unit_test(fair_gives_users_equal_shares_and_a_weight_divides_its_users),
	cmocka_unit_test(fair_gives_a_user_nothing_more_for_clients_that_leave_and_come_back),
	cmocka_unit_test(fair_remembers_a_user_of_whom_nobody_is_left),
	cmocka_unit_test(fair_serves_more_users_than_it_has_accounts),
	cmocka_unit_test(fair_gives_a_newcomer_nothing_for_the_time_before_it_came),
	cmocka_unit_test(fair_gives_a_client_nothing_for_having_been_away),
	cmocka_unit_test(fair_counts_what_a_client_has_had_as_another_users_for_nothing),
	cmocka_unit_test(fair_does_not_make_the_last_one_pay_when_another_comes_to_an_empty_device),
	cmocka_unit_test(fair_lets_the_running_client_be_removed),
	cmocka_unit_test(fair_runs_one_at_a_time_where_background_clients_take_turns),
	cmocka_unit_test(deadline_takes_offline_off_at_once_for_a_client_without_slo),
	cmocka_unit_test(deadline_takes_offline_off_at_once_while_the_length_of_a_request_is_unknown),
	cmocka_unit_test(deadline_takes_offline_off_only_when_the_laxity_is_used_up),
	cmocka_unit_test(deadline_goes_by_the_time_stops_took_and_not_by_what_is_said_of_it),
	cmocka_unit_test(deadline_waits_for_the_slowest_to_stop_however_many_are_faster),
	cmocka_unit_test(deadline_believes_nobody_to_stop_in_no_time),
	cmocka_unit_test(deadline_takes_offline_off_at_once_while_the_cost_of_stopping_is_unknown),
	cmocka_unit_test(deadline_stops_nobody_for_requests_that_end_in_time),
	cmocka_unit_test(deadline_counts_from_the_oldest_open_request),
	cmocka_unit_test(deadline_follows_the_tightest_of_several_clients),
	cmocka_unit_test(deadline_leaves_offline_in_the_background_where_the_device_yields),
	cmocka_unit_test(deadline_gives_slices_to_who_starves),
	cmocka_unit_test(a_policy_may_be_changed_for_any_other_with_work_waiting),
	cmocka_unit_test(a_policy_takes_over_the_run_set_without_a_call_where_it_agrees),
	cmocka_unit_test(every_policy_is_shown_by_its_name),
	cmocka_unit_test(every_policy_is_found_by_its_name_and_no_other),
	cmocka_unit_test(a_policy_that_stops_online_clients_is_followed_by_one_that_does_not),
	cmocka_unit_test(fair_does_not_cut_turns_to_nothing_for_a_crowd),
	cmocka_unit_test(of_the_policies_as_many_are_named_as_there_is_room_for_and_each_whole),
	cmocka_unit_test(a_policy_sees_the_client_and_its_open_request),
	cmocka_unit_test(a_policy_sees_the_limits_of_its_device),
	cmocka_unit_test(a_policy_is_not_asked_again_when_nothing_happened),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
