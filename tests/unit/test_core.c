// SPDX-License-Identifier: MIT
#include "core_host.h"

#include <stdio.h>

#include "base/random.h"

/* Stopping takes 100 us here and resuming 50 us, so the linger is its least, 1 ms, unless a test says
 * otherwise. */
#define STOP_NS (100 * US)
#define RESUME_NS (50 * US)
#define LINGER_NS (1 * MS)
#define QUANTUM_NS (100 * MS)

static void start_with(struct host *h, uint32_t caps, const struct gp_core_opts *opts)
{
	host_init(h, opts);
	device(h, 0, caps);
}

static void start(struct host *h, uint32_t caps)
{
	struct gp_core_opts opts = { .quantum_ns = QUANTUM_NS };

	start_with(h, caps, &opts);
}

/* Client 1 is online, client 2 is offline and is stopped for it. */
static void start_stopped(struct host *h)
{
	start(h, CAPS_STOP);
	online(h, 1);
	offline(h, 2);
	busy(h, 10);
	pass(h, STOP_NS);
	assert_int_equal(state_of(h, 20), GP_QUEUE_SUSPENDED);
}

/* activity, hints, linger */

static void offline_is_stopped_while_online_is_busy_and_given_back_after_the_linger(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	pass(&h, MS);
	assert_int_equal(h.count[0].actions, 0);
	busy(&h, 10);
	settle(&h);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDING);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	idle(&h, 10);
	pass(&h, LINGER_NS - 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	pass(&h, 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RESUMING);
	pass(&h, RESUME_NS);
	assert_all_run(&h);
	assert_int_equal(h.count[0].actions, 2);
	assert_int_equal(h.count[0].stops, 1);
	assert_int_equal(h.count[0].runs, 1);
	host_free(&h);
}

static void what_was_done_is_counted_and_measured(void **state)
{
	struct gp_core_status s;
	struct host h;

	(void)state;
	start_stopped(&h);
	assert_int_equal(h.count[0].mechanism, GP_MECH_INTERRUPT);
	assert_int_equal(h.count[0].lease_ns, 3 * SEC);
	idle(&h, 10);
	pass(&h, 2 * MS);
	s = status_of(&h, 0);
	assert_string_equal(s.policy, "priority");
	assert_string_equal(s.reason, "");
	assert_int_equal(s.mechanism, GP_MECH_INTERRUPT);
	assert_int_equal(s.preemptions, 1);
	assert_int_equal(s.suspends, 1);
	assert_int_equal(s.resumes, 1);
	assert_int_equal(s.failures + s.limited + s.ejected + s.backoff_until_ns, 0);
	assert_int_equal(s.suspend->count, 1);
	assert_int_equal(s.suspend->max, STOP_NS);
	assert_int_equal(s.resume->count, 1);
	assert_int_equal(s.resume->max, RESUME_NS);
	assert_int_equal(queue_status(&h, 20).client, 2);
	assert_int_equal(queue_status(&h, 20).client_class, GP_CLASS_OFFLINE);
	assert_int_equal(queue_status(&h, 20).device, 0);
	host_free(&h);
}

static void a_hint_stops_offline_before_any_work_is_there(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	hint(&h, 1);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	hint_over(&h, 1);
	pass(&h, LINGER_NS + RESUME_NS);
	assert_all_run(&h);
	host_free(&h);
}

static void two_hints_need_two_ends(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	hint(&h, 1);
	hint(&h, 1);
	pass(&h, MS);
	hint_over(&h, 1);
	pass(&h, 100 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	hint_over(&h, 1);
	pass(&h, LINGER_NS + RESUME_NS);
	assert_all_run(&h);
	assert_int_equal(core_hint_end(h.core, 1, h.now), -EALREADY);
	host_free(&h);
}

static void each_hint_that_is_never_ended_expires_a_second_after_it_began(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	begin = h.now;
	hint(&h, 1);
	pass(&h, SEC / 2);
	hint(&h, 1);
	until(&h, begin + SEC + SEC / 2 + LINGER_NS - 1);
	/* the starvation guard gave it a slice after a second, and took it back */
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	pass(&h, 1 + RESUME_NS);
	assert_all_run(&h);
	assert_int_equal(core_hint_end(h.core, 1, h.now), -EALREADY);
	host_free(&h);
}

static void hints_die_with_their_client(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	hint(&h, 1);
	pass(&h, STOP_NS);
	assert_int_equal(gp_core_client_remove(h.core, 1, h.now), 0);
	forget_queue(&h, 10);
	pass(&h, RESUME_NS);
	assert_all_run(&h);
	until(&h, h.now + 3 * SEC);
	assert_int_equal(h.count[0].stops, 1);
	host_free(&h);
}

static void hints_are_refused_from_who_may_not_give_them(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	client_with(&h, 3, GP_CLASS_UNKNOWN, 0, 0);
	assert_int_equal(core_hint_begin(h.core, 2, h.now), -EPERM);
	assert_int_equal(core_hint_begin(h.core, 3, h.now), -EPERM);
	assert_int_equal(core_hint_begin(h.core, 4, h.now), -ENOENT);
	assert_int_equal(core_hint_end(h.core, 4, h.now), -ENOENT);
	assert_int_equal(core_hint_end(h.core, 1, h.now), -EALREADY);
	for (int i = 0; i < 64; i++)
		hint(&h, 1);
	assert_int_equal(core_hint_begin(h.core, 1, h.now), -EBUSY);
	host_free(&h);
}

static void a_hint_before_the_first_queue_frees_the_only_device_until_it_ends(void **state)
{
	struct gp_core_seat seat;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	client_with(&h, 1, GP_CLASS_ONLINE, 0, 0);
	hint(&h, 1);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(gp_core_seats(h.core, 1, &seat, 1, h.now), 1);
	assert_int_equal(seat.state, GP_CLIENT_RUNNING);
	assert_int_equal(seat.queues, 0);
	hint_over(&h, 1);
	pass(&h, SEC);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(gp_core_seats(h.core, 1, &seat, 1, h.now), 0);
	host_free(&h);
}

static void the_first_queue_takes_the_place_that_a_hint_has_kept_for_it(void **state)
{
	struct gp_core_seat seat;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	client_with(&h, 1, GP_CLASS_ONLINE, 0, 0);
	hint(&h, 1);
	pass(&h, STOP_NS);
	queue(&h, 10, 1, 0);
	hint_over(&h, 1);
	pass(&h, SEC);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(gp_core_seats(h.core, 1, &seat, 1, h.now), 1);
	assert_int_equal(seat.queues, 1);
	host_free(&h);
}

static void a_place_kept_by_a_hint_outlives_a_change_of_weight_and_not_one_of_class(void **state)
{
	struct gp_core_client client = { .id = 1, .client_class = GP_CLASS_ONLINE, .weight = 300 };
	struct gp_core_seat seat;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	client_with(&h, 1, GP_CLASS_ONLINE, 0, 0);
	hint(&h, 1);
	assert_int_equal(gp_core_client_change(h.core, &client, h.now), 0);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	client.client_class = GP_CLASS_OFFLINE;
	assert_int_equal(gp_core_client_change(h.core, &client, h.now), 0);
	assert_int_equal(gp_core_seats(h.core, 1, &seat, 1, h.now), 0);
	pass(&h, SEC);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	host_free(&h);
}

static void a_hint_before_the_first_queue_on_one_of_two_devices_must_name_it(void **state)
{
	struct gp_core_hint which = { .client = 1, .number = 1, .device = GP_ALL_DEVICES };
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	device(&h, 1, CAPS_STOP);
	offline(&h, 2);
	client_with(&h, 3, GP_CLASS_OFFLINE, 0, 0);
	queue(&h, 30, 3, 1);
	client_with(&h, 1, GP_CLASS_ONLINE, 0, 0);
	assert_int_equal(gp_core_hint_begin(h.core, &which, h.now), 0);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 30), GP_QUEUE_RUNNING);
	which.device = 1;
	assert_int_equal(gp_core_hint_begin(h.core, &which, h.now), 0);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 30), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

/* Its queues have classes of their own, as the daemon judges them. */
static void a_client_that_turns_offline_preempts_nobody_by_a_place_that_a_hint_kept(void **state)
{
	struct gp_core_client client = { .id = 1, .client_class = GP_CLASS_ONLINE };
	const struct gp_core_hint again = { .client = 1, .number = 2, .device = GP_ALL_DEVICES };
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	client_with(&h, 1, GP_CLASS_ONLINE, 0, 0);
	queue(&h, 10, 1, 0);
	assert_int_equal(gp_core_queue_class(h.core, 10, GP_CLASS_OFFLINE, h.now), 0);
	hint(&h, 1);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	client.client_class = GP_CLASS_OFFLINE;
	assert_int_equal(gp_core_client_change(h.core, &client, h.now), 0);
	assert_int_equal(gp_core_hint_begin(h.core, &again, h.now), -EPERM);
	client.client_class = GP_CLASS_ONLINE;
	assert_int_equal(gp_core_client_change(h.core, &client, h.now), 0);
	queue(&h, 11, 1, 0);
	pass(&h, 10 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	host_free(&h);
}

static void a_hint_outlives_the_last_queue_and_a_device_does_not_stay_for_it(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	online(&h, 1);
	hint(&h, 1);
	pass(&h, STOP_NS);
	remove_queue(&h, 10);
	pass(&h, 100 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(gp_core_device_remove(h.core, 0, h.now), -EBUSY);
	remove_queue(&h, 20);
	assert_int_equal(gp_core_device_remove(h.core, 0, h.now), 0);
	assert_int_equal(gp_core_hint_end(h.core, &(struct gp_core_hint){ .client = 1 }, h.now), 0);
	host_free(&h);
}

static void a_device_apart_which_anybody_may_bring_leaves_another_the_only_one(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	device(&h, 1, CAPS_STOP | GP_CORE_APART);
	offline(&h, 2);
	client_with(&h, 1, GP_CLASS_ONLINE, 0, 0);
	hint(&h, 1);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void an_online_queue_of_unknown_activity_is_no_work_by_itself(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	assert_int_equal(gp_core_activity(h.core, 10, GP_ACTIVITY_UNKNOWN, h.now), 0);
	pass(&h, 10 * SEC);
	assert_int_equal(h.count[0].actions, 0);
	host_free(&h);
}

static void a_client_of_unknown_class_is_stopped_like_an_offline_one(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	client_with(&h, 2, GP_CLASS_UNKNOWN, 0, 0);
	queue(&h, 20, 2, 0);
	busy(&h, 10);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void two_requests_in_a_row_cost_one_preemption(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	idle(&h, 10);
	pass(&h, LINGER_NS - 1);
	busy(&h, 10);
	pass(&h, 10 * MS);
	idle(&h, 10);
	pass(&h, LINGER_NS - 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(h.count[0].actions, 1);
	pass(&h, 1 + RESUME_NS);
	assert_all_run(&h);
	assert_int_equal(status_of(&h, 0).preemptions, 1);
	host_free(&h);
}

static void the_linger_is_twice_the_measured_cost_where_that_is_longer(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	h.stop_ns[GP_MECH_INTERRUPT] = 3 * MS;
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, 3 * MS);
	idle(&h, 10);
	pass(&h, 6 * MS - 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	pass(&h, 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RESUMING);
	host_free(&h);
}

static void what_a_stop_costs_counts_from_when_it_was_taken_not_from_the_decision(void **state)
{
	struct gp_action action;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	h.stop_ns[GP_MECH_INTERRUPT] = 3 * MS;
	online(&h, 1);
	offline(&h, 2);
	assert_int_equal(gp_core_activity(h.core, 10, GP_ACTIVITY_BUSY, h.now), 0);
	(void)gp_core_run(h.core, h.now);
	h.now += 10 * MS;
	assert_int_equal(gp_core_take(h.core, &action, h.now), 1);
	host_accept(&h, &action);
	pass(&h, 3 * MS);
	idle(&h, 10);
	pass(&h, 6 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RESUMING);
	host_free(&h);
}

static void what_nobody_else_sees_has_no_cost_to_linger_for(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	h.stop_ns[GP_MECH_INTERRUPT] = 3 * MS;
	online(&h, 1);
	offline(&h, 2);
	assert_int_equal(gp_core_queue_reach(h.core, 20, GP_REACH_FREE, h.now), 0);
	busy(&h, 10);
	pass(&h, 3 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	idle(&h, 10);
	pass(&h, MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RESUMING);
	host_free(&h);
}

static void a_linger_that_was_set_is_kept_whatever_the_cost(void **state)
{
	struct gp_core_opts opts = { .linger_ns = 20 * US };
	struct host h;

	(void)state;
	start_with(&h, CAPS_STOP, &opts);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, STOP_NS);
	idle(&h, 10);
	pass(&h, 20 * US);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RESUMING);
	host_free(&h);
}

/* work-conserving */

static void without_online_work_nothing_is_called(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	for (uint64_t id = 2; id < 6; id++)
		offline(&h, id);
	for (int i = 0; i < 100; i++) {
		busy(&h, 20);
		pass(&h, 10 * MS);
		idle(&h, 20);
		pass(&h, 10 * MS);
	}
	assert_int_equal(h.count[0].actions, 0);
	assert_int_equal(h.next_ns, GP_NEVER);
	host_free(&h);
}

static void without_offline_work_nothing_is_called(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	idle(&h, 20);
	for (int i = 0; i < 100; i++) {
		busy(&h, 10);
		pass(&h, 10 * MS);
		idle(&h, 10);
		pass(&h, 10 * MS);
	}
	assert_int_equal(h.count[0].actions, 0);
	host_free(&h);
}

static void where_nothing_changes_there_is_no_action(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	for (int i = 0; i < 100; i++) {
		busy(&h, 10);
		busy(&h, 20);
		settle(&h);
	}
	assert_int_equal(h.count[0].actions, 1);
	host_free(&h);
}

static void a_stopped_client_that_has_no_more_work_is_given_back(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	idle(&h, 20);
	pass(&h, RESUME_NS);
	assert_all_run(&h);
	busy(&h, 20);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

/* wants */

static void a_change_of_mind_before_the_action_is_taken_costs_nothing(void **state)
{
	struct gp_action action;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	(void)gp_core_run(h.core, h.now);
	remove_queue(&h, 10);
	(void)gp_core_run(h.core, h.now);
	assert_int_equal(gp_core_take(h.core, &action, h.now), 0);
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	assert_int_equal(core_release(h.core, 20, h.now), 0);
	(void)gp_core_run(h.core, h.now);
	assert_int_equal(gp_core_take(h.core, &action, h.now), 0);
	assert_all_run(&h);
	host_free(&h);
}

static void a_change_of_mind_while_a_stop_is_under_way_follows_when_it_is_done(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	settle(&h);
	remove_queue(&h, 10);
	pass(&h, STOP_NS - 1);
	assert_int_equal(h.count[0].actions, 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDING);
	pass(&h, 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RESUMING);
	pass(&h, RESUME_NS);
	assert_all_run(&h);
	host_free(&h);
}

static void a_change_of_mind_while_a_resume_is_under_way_follows_when_it_is_done(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	idle(&h, 10);
	pass(&h, LINGER_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RESUMING);
	busy(&h, 10);
	pass(&h, RESUME_NS - 1);
	assert_int_equal(h.count[0].actions, 2);
	pass(&h, 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDING);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void stops_and_resumes_of_one_step_come_in_one_list(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	offline(&h, 3);
	set_policy(&h, 0, &gp_policy_fair);
	pass(&h, 10 * MS); /* one slice of a tenth of the quantum */
	assert_int_equal(h.count[0].actions, 2);
	assert_int_equal(h.count[0].wants, 2);
	assert_int_equal(h.count[0].stops, 2);
	assert_int_equal(h.count[0].runs, 1);
	host_free(&h);
}

static void all_queues_of_all_offline_clients_are_stopped_in_one_list(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	for (uint64_t id = 2; id < 7; id++) {
		offline(&h, id);
		queue(&h, 10 * id + 1, id, 0);
	}
	busy(&h, 10);
	pass(&h, STOP_NS);
	assert_int_equal(h.count[0].actions, 1);
	assert_int_equal(h.count[0].wants, 10);
	assert_int_equal(status_of(&h, 0).preemptions, 1);
	assert_int_equal(status_of(&h, 0).suspends, 10);
	host_free(&h);
}

static void a_list_holds_as_many_wants_as_there_are_queues(void **state)
{
	struct gp_action action;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	client_with(&h, 2, GP_CLASS_OFFLINE, 0, 0);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(core_queue_add(h.core, 100 + i, 2, 0, h.now), 0);
	busy(&h, 10);
	(void)gp_core_run(h.core, h.now);
	assert_int_equal(gp_core_take(h.core, &action, h.now), 1);
	assert_int_equal(action.nwants, 1000);
	assert_int_equal(action.stops, 1000);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(action.wants[i].queue, 100 + i);
	assert_int_equal(gp_core_take(h.core, &action, h.now), 0);
	host_free(&h);
}

static void offline_waits_for_the_last_of_several_online_clients(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	online(&h, 3);
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, MS);
	hint(&h, 3);
	idle(&h, 10);
	pass(&h, 100 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	hint_over(&h, 3);
	pass(&h, LINGER_NS + RESUME_NS);
	assert_all_run(&h);
	assert_int_equal(h.count[0].actions, 2);
	host_free(&h);
}

static void devices_are_scheduled_apart_each_by_its_own_policy(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	device(&h, 1, CAPS_STOP);
	device(&h, 2, CAPS_STOP);
	set_policy(&h, 1, &gp_policy_fifo);
	for (uint32_t dev = 0; dev < 3; dev++) {
		if (!dev)
			client_with(&h, 1, GP_CLASS_ONLINE, 0, 0);
		client_with(&h, 2 + dev, GP_CLASS_OFFLINE, 0, 0);
		queue(&h, 10 + dev, 1, dev);
		queue(&h, 20 + dev, 2 + dev, dev);
	}
	busy(&h, 10);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(h.count[2].actions, 0); /* its online queue is not busy */
	hint(&h, 1);                             /* that is for all devices */
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 22), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_RUNNING); /* fifo stops nobody */
	assert_int_equal(h.count[1].actions, 0);
	assert_string_equal(status_of(&h, 1).policy, "fifo");
	assert_string_equal(status_of(&h, 2).policy, "priority");
	hint_over(&h, 1);
	idle(&h, 10);
	pass(&h, 2 * MS);
	assert_all_run(&h);
	host_free(&h);
}

static void a_queue_added_to_a_stopped_client_is_stopped_too(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	queue(&h, 21, 2, 0);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_SUSPENDED);
	idle(&h, 10);
	pass(&h, 2 * MS);
	assert_all_run(&h);
	host_free(&h);
}

/* coming and going */

static void names_are_checked_at_the_door(void **state)
{
	struct gp_core_client two = { .id = 2, .client_class = GP_CLASS_OFFLINE };
	struct gp_core_client odd = { .id = 9, .client_class = GP_CLASS_ONLINE + 1 };
	struct gp_core_queue_status qs;
	struct gp_core_status s;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	assert_int_equal(gp_core_device_add(h.core, 0, 0), -EEXIST);
	assert_int_equal(gp_core_client_add(h.core, &two), -EEXIST);
	assert_int_equal(gp_core_client_add(h.core, &odd), -EINVAL);
	assert_int_equal(gp_core_client_change(h.core, &odd, h.now), -ENOENT);
	odd.id = 2;
	assert_int_equal(gp_core_client_change(h.core, &odd, h.now), -EINVAL);
	assert_int_equal(gp_core_client_remove(h.core, 9, h.now), -ENOENT);
	assert_int_equal(core_queue_add(h.core, 20, 2, 0, h.now), -EEXIST);
	assert_int_equal(core_queue_add(h.core, 21, 9, 0, h.now), -ENOENT);
	assert_int_equal(core_queue_add(h.core, 21, 2, 9, h.now), -ENOENT);
	assert_int_equal(gp_core_queue_remove(h.core, 21, h.now), -ENOENT);
	assert_int_equal(gp_core_activity(h.core, 21, GP_ACTIVITY_BUSY, h.now), -ENOENT);
	assert_int_equal(gp_core_activity(h.core, 20, GP_ACTIVITY_BUSY + 1, h.now), -EINVAL);
	assert_int_equal(core_hold(h.core, 21, GP_NEVER, h.now), -ENOENT);
	assert_int_equal(core_release(h.core, 21, h.now), -ENOENT);
	assert_int_equal(gp_core_set_policy(h.core, 9, &gp_policy_fifo, h.now), -ENOENT);
	assert_int_equal(gp_core_device_status(h.core, 9, &s), -ENOENT);
	assert_int_equal(gp_core_queue_status(h.core, 21, &qs), -ENOENT);
	assert_null(gp_core_free(NULL));
	host_free(&h);
}

enum situation { SUSPENDING, SUSPENDED, RESUMING, HELD, GUARDED, RETRYING, SITUATIONS };

/* Brings queue 20 of client 2 there; client 3 is a bystander. */
static void bring_to(struct host *h, enum situation situation)
{
	start(h, CAPS_STOP);
	online(h, 1);
	offline(h, 2);
	offline(h, 3);
	if (situation == HELD) {
		assert_int_equal(core_hold(h->core, 20, h->now + SEC, h->now), 0);
		pass(h, STOP_NS);
		return;
	}
	busy(h, 10);
	settle(h);
	if (situation == SUSPENDING)
		return;
	pass(h, STOP_NS);
	if (situation == GUARDED)
		pass(h, SEC + MS);
	if (situation != RESUMING && situation != RETRYING)
		return;
	h->resume_error = situation == RETRYING ? -EIO : 0;
	idle(h, 10);
	pass(h, LINGER_NS + (situation == RETRYING ? RESUME_NS : 0));
}

static void assert_rest_goes_on(struct host *h, uint32_t dones)
{
	struct gp_done late = { .want = { .queue = 20, .want = GP_STOP } };

	for (uint32_t i = 0; i < dones; i++)
		assert_int_equal(gp_core_done(h->core, &late, h->now), -ENOENT);
	h->resume_error = 0;
	busy(h, 10);
	pass(h, 20 * MS); /* longer than a starved client's slice */
	assert_int_equal(state_of(h, 30), GP_QUEUE_SUSPENDED);
	idle(h, 10);
	pass(h, 5 * MS);
	assert_all_run(h);
	until(h, h->now + 5 * SEC);
}

static void a_queue_may_go_in_every_state(void **state)
{
	struct host h;

	(void)state;
	for (enum situation i = SUSPENDING; i < SITUATIONS; i++) {
		bring_to(&h, i);
		remove_queue(&h, 20);
		assert_rest_goes_on(&h, 1);
		host_free(&h);
	}
}

static void a_client_may_go_in_every_state_of_its_queue(void **state)
{
	struct host h;

	(void)state;
	for (enum situation i = SUSPENDING; i < SITUATIONS; i++) {
		bring_to(&h, i);
		assert_int_equal(gp_core_client_remove(h.core, 2, h.now), 0);
		forget_queue(&h, 20);
		assert_rest_goes_on(&h, 1);
		host_free(&h);
	}
}

static void everything_may_go_in_every_state_of_a_queue(void **state)
{
	struct host h;

	(void)state;
	for (enum situation i = SUSPENDING; i < SITUATIONS; i++) {
		bring_to(&h, i);
		host_free(&h); /* what is still held would be reported as leaked */
	}
}

static void a_situation_is_what_its_name_says(void **state)
{
	static const uint32_t expected[] = { GP_QUEUE_SUSPENDING, GP_QUEUE_SUSPENDED, GP_QUEUE_RESUMING,
					     GP_QUEUE_SUSPENDED,  GP_QUEUE_RUNNING,   GP_QUEUE_SUSPENDED };
	struct host h;

	(void)state;
	for (enum situation i = SUSPENDING; i < SITUATIONS; i++) {
		bring_to(&h, i);
		assert_int_equal(state_of(&h, 20), expected[i]);
		assert_int_equal(queue_status(&h, 20).held, i == HELD);
		host_free(&h);
	}
}

static void a_client_that_turns_online_gets_the_device(void **state)
{
	struct gp_core_client two = { .id = 2, .client_class = GP_CLASS_ONLINE };
	struct host h;

	(void)state;
	start_stopped(&h);
	offline(&h, 3);
	busy(&h, 20);
	assert_int_equal(gp_core_client_change(h.core, &two, h.now), 0);
	idle(&h, 10);
	pass(&h, 10 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 30), GP_QUEUE_SUSPENDED);
	idle(&h, 20);
	pass(&h, 10 * MS);
	assert_all_run(&h);
	host_free(&h);
}

static void hints_of_a_client_that_turns_offline_are_gone_for_good(void **state)
{
	struct gp_core_client one = { .id = 1, .client_class = GP_CLASS_OFFLINE };
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	hint(&h, 1);
	pass(&h, MS);
	assert_int_equal(gp_core_client_change(h.core, &one, h.now), 0);
	idle(&h, 10);
	pass(&h, RESUME_NS);
	assert_all_run(&h);
	until(&h, h.now + 2 * SEC); /* past the time at which the hint would have expired */
	one.client_class = GP_CLASS_ONLINE;
	assert_int_equal(gp_core_client_change(h.core, &one, h.now), 0);
	pass(&h, SEC);
	assert_int_equal(core_hint_end(h.core, 1, h.now), -EALREADY);
	assert_int_equal(h.count[0].stops, 1);
	assert_all_run(&h);
	host_free(&h);
}

static void a_change_of_weight_alone_stops_and_resumes_nobody(void **state)
{
	struct gp_core_client two = { .id = 2, .client_class = GP_CLASS_OFFLINE, .weight = 300 };
	struct host h;

	(void)state;
	start_stopped(&h);
	assert_int_equal(gp_core_client_change(h.core, &two, h.now), 0);
	pass(&h, 10 * MS);
	assert_int_equal(h.count[0].actions, 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

/* fail open */

static void a_stop_that_fails_leaves_the_queue_running_and_backs_off_longer_each_time(void **state)
{
	struct gp_core_status s;
	uint64_t t;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	busy(&h, 10);
	t = h.now + STOP_NS;
	until(&h, t);
	s = status_of(&h, 0);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(s.failures, 1);
	assert_string_equal(s.reason, "client 2 was not stopped: Input/output error");
	assert_int_equal(s.backoff_until_ns, 0); /* that is for what holds up everybody */
	assert_int_equal(queue_status(&h, 20).backoff_until_ns, t + MS);
	until(&h, t + MS - 1);
	assert_int_equal(h.count[0].actions, 1);
	t += MS + STOP_NS; /* the second try, and its failure */
	until(&h, t);
	assert_int_equal(h.count[0].actions, 2);
	assert_int_equal(queue_status(&h, 20).backoff_until_ns, t + 2 * MS);
	h.stop_error[GP_MECH_INTERRUPT] = 0;
	until(&h, t + 2 * MS + STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(queue_status(&h, 20).backoff_until_ns, 0);
	host_free(&h);
}

static void a_stop_that_never_works_is_tried_about_once_a_second(void **state)
{
	uint32_t before;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	busy(&h, 10);
	pass(&h, 5 * SEC); /* 1 + 2 + ... + 1024 ms, and the guard's slices between */
	before = h.count[0].actions;
	pass(&h, 10 * SEC);
	assert_in_range(h.count[0].actions - before, 8, 11);
	assert_int_equal(run_time(&h, 20), 15 * SEC);
	host_free(&h);
}

static void a_call_that_fails_for_many_queues_is_one_failure_to_back_off_from(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	for (uint64_t i = 1; i < 20; i++)
		queue(&h, 20 + i, 2, 0);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	busy(&h, 10);
	pass(&h, STOP_NS);
	assert_int_equal(status_of(&h, 0).failures, 20);
	assert_int_equal(queue_status(&h, 20).backoff_until_ns, h.now + MS);
	h.stop_error[GP_MECH_INTERRUPT] = 0;
	pass(&h, MS + STOP_NS);
	assert_int_equal(h.count[0].actions, 2); /* and all are tried again together */
	assert_int_equal(status_of(&h, 0).suspends, 20);
	host_free(&h);
}

static void a_client_whose_stops_fail_does_not_keep_another_from_being_stopped(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	h.only_queue = 20;
	busy(&h, 10);
	pass(&h, 300 * MS); /* several failures: the back-off is long by now */
	assert_true(queue_status(&h, 20).backoff_until_ns > h.now + 50 * MS);
	offline(&h, 3);
	for (int i = 0; i < 100; i++) {
		pass(&h, STOP_NS);
		assert_int_equal(state_of(&h, 30), GP_QUEUE_SUSPENDED);
		idle(&h, 30);
		pass(&h, RESUME_NS);
		busy(&h, 30);
	}
	assert_int_equal(status_of(&h, 0).suspends, 100);
	assert_int_equal(queue_status(&h, 30).backoff_until_ns, 0);
	assert_string_equal(status_of(&h, 0).reason, "client 2 was not stopped: Input/output error");
	host_free(&h);
}

static void while_a_client_backs_off_none_of_its_queues_is_stopped(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	busy(&h, 10);
	pass(&h, STOP_NS);
	h.stop_error[GP_MECH_INTERRUPT] = 0;
	queue(&h, 21, 2, 0);
	idle(&h, 10);
	busy(&h, 10);
	pass(&h, MS - 1);
	assert_int_equal(h.count[0].stops, 1);
	assert_int_equal(status_of(&h, 0).limited, 1);
	pass(&h, 1 + STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_SUSPENDED);
	assert_int_equal(h.count[0].actions, 2);
	host_free(&h);
}

static void a_failure_on_one_device_does_not_matter_on_another(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	device(&h, 1, CAPS_STOP);
	online(&h, 1);
	queue(&h, 11, 1, 1);
	offline(&h, 2);
	queue(&h, 21, 2, 1);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	h.only_queue = 20;
	busy(&h, 10);
	pass(&h, 300 * MS);
	busy(&h, 11);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_SUSPENDED);
	assert_int_equal(queue_status(&h, 21).backoff_until_ns, 0);
	assert_string_equal(status_of(&h, 1).reason, "");
	host_free(&h);
}

/* Whatever a queue does that the policy has no say in. */
static void a_stop_that_works_begins_the_back_off_anew(void **state)
{
	(void)state;
	for (int beside = 0; beside < 2; beside++) {
		struct host h;

		start(&h, CAPS_STOP);
		online(&h, 1);
		offline(&h, 2);
		if (beside) {
			queue(&h, 21, 2, 0);
			assert_int_equal(gp_core_queue_reach(h.core, 21, GP_REACH_NONE, h.now), 0);
			idle(&h, 21);
		}
		h.stop_error[GP_MECH_INTERRUPT] = -EIO;
		busy(&h, 10);
		pass(&h, 100 * MS);
		h.stop_error[GP_MECH_INTERRUPT] = 0;
		pass(&h, 100 * MS);
		assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
		idle(&h, 20);
		pass(&h, MS);
		h.stop_error[GP_MECH_INTERRUPT] = -EIO;
		busy(&h, 20);
		pass(&h, STOP_NS);
		assert_int_equal(queue_status(&h, 20).backoff_until_ns, h.now + MS);
		host_free(&h);
	}
}

/* One second, with 50 requests, and one of two queues that is not stopped. */
static void back_off_from(uint64_t bad, uint32_t reach, int32_t error)
{
	struct host h;

	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	queue(&h, 21, 2, 0);
	assert_int_equal(gp_core_queue_reach(h.core, bad, reach, h.now), 0);
	h.stop_error[GP_MECH_INTERRUPT] = error;
	h.only_queue = bad;
	for (int i = 0; i < 50; i++) {
		busy(&h, 10);
		pass(&h, 10 * MS);
		idle(&h, 10);
		pass(&h, 10 * MS);
	}
	assert_in_range(status_of(&h, 0).failures, 1, 11); /* 1 + 2 + ... + 1024 ms */
	assert_in_range(h.count[0].stops, 2, 2 * 11);
	host_free(&h);
}

static void a_queue_that_is_stopped_does_not_end_the_back_off_from_one_that_is_not(void **state)
{
	(void)state;
	for (uint64_t bad = 20; bad <= 21; bad++) {
		back_off_from(bad, GP_REACH_ALL, -EIO);
		back_off_from(bad, GP_REACH_ALL, -ETIMEDOUT); /* and may have been */
		back_off_from(bad, GP_REACH_FREE, -EIO);
	}
}

/* All stops are for turns: online makes offline yield. */
static void where_turns_are_taken_a_queue_that_is_stopped_does_not_end_that_back_off_either(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	offline(&h, 2);
	queue(&h, 21, 2, 0);
	offline(&h, 3);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	h.only_queue = 21;
	busy(&h, 10);
	pass(&h, 5 * SEC);
	assert_in_range(status_of(&h, 0).failures, 5, 20);
	host_free(&h);
}

static void a_client_takes_its_back_off_with_it(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	busy(&h, 10);
	pass(&h, 300 * MS);
	assert_true(queue_status(&h, 20).backoff_until_ns > h.now);
	assert_int_equal(gp_core_client_remove(h.core, 2, h.now), 0);
	forget_queue(&h, 20);
	h.stop_error[GP_MECH_INTERRUPT] = 0;
	offline(&h, 2); /* another process that was given the same name */
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	pass(&h, 900 * MS); /* past the end of what it was */
	assert_int_equal(h.count[0].runs, 0);
	host_free(&h);
}

static void a_hold_does_not_wait_for_the_back_off_of_its_client(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	queue(&h, 21, 2, 0);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	busy(&h, 10);
	pass(&h, STOP_NS);
	h.stop_error[GP_MECH_INTERRUPT] = 0;
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_RUNNING);
	host_free(&h);
}

static void a_hold_whose_stop_fails_ends_unless_its_agent_is_gone(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	pass(&h, SEC);
	assert_int_equal(queue_status(&h, 20).held, 0);
	assert_int_equal(h.count[0].stops, 1);
	h.stop_error[GP_MECH_INTERRUPT] = -ESRCH;
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	settle(&h);
	assert_int_equal(gp_core_queue_reach(h.core, 20, GP_REACH_NONE, h.now), 0);
	pass(&h, SEC);
	assert_int_equal(queue_status(&h, 20).held, 1);
	assert_int_equal(h.count[0].stops, 2);
	h.stop_error[GP_MECH_INTERRUPT] = 0;
	assert_int_equal(gp_core_queue_reach(h.core, 20, GP_REACH_ALL, h.now), 0); /* the agent is back */
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void one_queue_that_cannot_be_stopped_leaves_the_others_stopped(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	h.stop_error[GP_MECH_INTERRUPT] = -EPERM;
	h.only_queue = 20;
	busy(&h, 10);
	pass(&h, 100 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 30), GP_QUEUE_SUSPENDED);
	idle(&h, 10);
	pass(&h, 2 * SEC);
	assert_all_run(&h);
	host_free(&h);
}

static void a_resume_that_fails_is_tried_again_until_it_works(void **state)
{
	struct gp_core_seat seat;
	struct host h;

	(void)state;
	start_stopped(&h);
	h.resume_error = -EAGAIN;
	idle(&h, 10);
	pass(&h, LINGER_NS + RESUME_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_string_equal(status_of(&h, 0).reason,
			    "client 2 was not resumed: Resource temporarily unavailable");
	assert_int_equal(status_of(&h, 0).reason_ns, h.now);
	assert_int_equal(gp_core_seats(h.core, 2, &seat, 1, h.now), 1);
	assert_int_equal(seat.stopped, 1);
	assert_int_equal(seat.resuming, 1);
	pass(&h, MS);
	assert_int_equal(h.count[0].runs, 2);
	pass(&h, 10 * SEC); /* after twice as long each time, up to a second */
	assert_in_range(h.count[0].runs, 10 + 8, 10 + 12);
	assert_in_range(status_of(&h, 0).reason_ns, h.now - 1100 * MS, h.now);
	h.resume_error = 0;
	pass(&h, 1100 * MS);
	assert_all_run(&h);
	assert_int_equal(gp_core_seats(h.core, 2, &seat, 1, h.now), 1);
	assert_int_equal(seat.resuming, 0);
	host_free(&h);
}

static void call(void *arg, uint64_t client, char *text, size_t size)
{
	assert_null(arg);
	(void)snprintf(text, size, "train %d", client == 2 ? 4711 : 0);
}

static void who_is_in_trouble_is_called_by_the_name_that_the_host_has_for_it(void **state)
{
	struct gp_core_opts opts = { .name = call };
	struct host h;

	(void)state;
	start_with(&h, CAPS_STOP, &opts);
	gp_core_change_opts(h.core, &(struct gp_core_opts){ 0 }); /* as when its file is read again */
	online(&h, 1);
	offline(&h, 2);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	busy(&h, 10);
	pass(&h, STOP_NS);
	assert_string_equal(status_of(&h, 0).reason, "train 4711 was not stopped: Input/output error");
	host_free(&h);
}

static void resumes_go_on_while_stops_back_off(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	offline(&h, 3);
	pass(&h, 300 * MS); /* several failures: the back-off is long by now */
	assert_true(queue_status(&h, 30).backoff_until_ns > h.now + 50 * MS);
	idle(&h, 10);
	pass(&h, LINGER_NS + RESUME_NS);
	assert_all_run(&h);
	host_free(&h);
}

/* One preemption, from work to work's end and back. */
static void preempt_once(struct host *h)
{
	busy(h, 10);
	pass(h, 200 * US);
	idle(h, 10);
	pass(h, 200 * US);
}

static void stops_are_capped_per_second_with_the_reason_shown(void **state)
{
	struct gp_core_opts opts = { .max_stops_per_s = 100, .linger_ns = US };
	struct gp_core_status s;
	uint64_t begin;
	struct host h;

	(void)state;
	start_with(&h, CAPS_STOP, &opts);
	online(&h, 1);
	offline(&h, 2);
	begin = h.now;
	for (int i = 0; i < 10; i++) /* a tenth of a second's worth at once */
		preempt_once(&h);
	assert_int_equal(h.count[0].stops, 10);
	assert_int_equal(h.count[0].runs, 10);
	busy(&h, 10);
	until(&h, begin + 10 * MS - 1); /* one more every 10 ms */
	s = status_of(&h, 0);
	assert_int_equal(h.count[0].stops, 10);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_string_equal(s.reason, "preemption capped at 100 cycles per second");
	assert_true(s.limited > 0);
	assert_int_equal(s.backoff_until_ns, begin + 10 * MS);
	pass(&h, 1);
	assert_int_equal(h.count[0].stops, 11);
	host_free(&h);
}

static void a_cap_below_ten_per_second_still_allows_one(void **state)
{
	struct gp_core_opts opts = { .max_stops_per_s = 1, .linger_ns = US, .max_starve_ns = GP_NEVER };
	struct host h;

	(void)state;
	start_with(&h, CAPS_STOP, &opts);
	online(&h, 1);
	offline(&h, 2);
	preempt_once(&h);
	assert_int_equal(h.count[0].stops, 1);
	busy(&h, 10);
	pass(&h, SEC + MS);
	assert_int_equal(h.count[0].stops, 2);
	host_free(&h);
}

static void a_batch_costs_one_cycle_of_the_cap_for_any_number_of_clients(void **state)
{
	struct gp_core_opts opts = { .max_stops_per_s = 10, .linger_ns = US };
	struct host h;

	(void)state;
	start_with(&h, CAPS_STOP, &opts);
	online(&h, 1);
	for (uint64_t id = 2; id < 7; id++)
		offline(&h, id);
	busy(&h, 10);
	pass(&h, STOP_NS);
	assert_int_equal(status_of(&h, 0).suspends, 5);
	assert_int_equal(status_of(&h, 0).limited, 0);
	host_free(&h);
}

static void without_batch_every_queue_costs_a_cycle_of_the_cap(void **state)
{
	struct gp_core_opts opts = { .max_stops_per_s = 100, .linger_ns = US };
	struct host h;

	(void)state;
	start_with(&h, GP_CAP_INTERRUPT, &opts);
	online(&h, 1);
	offline(&h, 2);
	for (uint64_t i = 1; i < 8; i++)
		queue(&h, 20 + i, 2, 0);
	for (int i = 0; i < 4; i++)
		preempt_once(&h);
	/* of 10, 8 go to the first, the rest allows the second: then the account is overdrawn */
	assert_int_equal(status_of(&h, 0).preemptions, 2);
	host_free(&h);
}

static void what_is_free_is_stopped_and_takes_nothing_from_the_budget(void **state)
{
	struct gp_core_opts opts = { .max_stops_per_s = 10, .linger_ns = US, .max_starve_ns = GP_NEVER };
	struct host h;

	(void)state;
	start_with(&h, GP_CAP_INTERRUPT, &opts);
	online(&h, 1);
	for (uint64_t id = 2; id < 7; id++) {
		offline(&h, id);
		queue(&h, 10 * id + 1, id, 0);
		for (uint64_t q = 10 * id; id < 6 && q < 10 * id + 2; q++)
			assert_int_equal(gp_core_queue_reach(h.core, q, GP_REACH_FREE, h.now), 0);
	}
	gp_core_queue_remove(h.core, 61, h.now);
	busy(&h, 10);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 60),
			 GP_QUEUE_SUSPENDED); /* the one cycle that there is was left to it */
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(status_of(&h, 0).suspends, 9);
	assert_int_equal(status_of(&h, 0).limited, 0);
	host_free(&h);
}

/* Client 1 is online and busy, client 2 is offline and has so many queues, from 100 on, all stopped. */
static void start_many(struct host *h, uint32_t caps, uint32_t per_s, uint64_t queues)
{
	struct gp_core_opts opts = { .max_stops_per_s = per_s, .max_starve_ns = GP_NEVER };

	start_with(h, caps, &opts);
	online(h, 1);
	busy(h, 10);
	client_with(h, 2, GP_CLASS_OFFLINE, 0, 0);
	for (uint64_t i = 0; i < queues; i++)
		queue(h, 100 + i, 2, 0);
	for (uint64_t i = 1; i < queues; i++)
		idle(h, 100 + i); /* what the first does is what the client does */
	idle(h, 100);
	settle(h);
	busy(h, 100);
	pass(h, STOP_NS);
	assert_int_equal(status_of(h, 0).suspends, queues);
}

/* Client 2 has no work, and then some: it is given back, and to be stopped again. */
static void flap(struct host *h)
{
	idle(h, 100);
	pass(h, RESUME_NS);
	busy(h, 100);
	settle(h);
}

static void a_client_with_a_thousand_queues_does_not_use_up_what_another_needs(void **state)
{
	struct host h;

	(void)state;
	start_many(&h, GP_CAP_INTERRUPT, 2000, 1000);
	offline(&h, 3);
	for (int i = 0; i < 100; i++) {
		flap(&h);
		busy(&h, 30);
		pass(&h, MS + STOP_NS); /* two clients: two cycles at most */
		assert_int_equal(state_of(&h, 30), GP_QUEUE_SUSPENDED);
		idle(&h, 30);
		pass(&h, RESUME_NS);
	}
	assert_true(status_of(&h, 0).limited > 0); /* the first was, time and again */
	host_free(&h);
}

static void where_the_budget_is_used_up_each_client_is_stopped_within_a_cycle_for_each(void **state)
{
	struct host h;

	(void)state;
	start_many(&h, GP_CAP_INTERRUPT, 100, 50);
	for (uint64_t id = 3; id < 8; id++)
		offline(&h, id);
	pass(&h, 60 * MS + STOP_NS); /* with client 2, which owes for 40 of its queues, six clients */
	for (uint64_t id = 3; id < 8; id++)
		assert_int_equal(state_of(&h, 10 * id), GP_QUEUE_SUSPENDED);
	assert_string_equal(status_of(&h, 0).reason, "preemption capped at 100 cycles per second");
	host_free(&h);
}

static void a_client_is_stopped_whole_and_not_again_before_it_has_paid_for_every_queue(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start_many(&h, GP_CAP_INTERRUPT, 100, 30); /* 10 are in the budget, 20 come to be paid for */
	begin = h.now - STOP_NS;
	assert_int_equal(h.count[0].actions, 1);
	assert_int_equal(status_of(&h, 0).limited + status_of(&h, 0).backoff_until_ns, 0);
	flap(&h);
	assert_int_equal(status_of(&h, 0).backoff_until_ns, begin + 10 * MS);
	until(&h, begin + 210 * MS - 1);
	assert_int_equal(h.count[0].stops, 30);
	assert_true(status_of(&h, 0).limited > 0);
	until(&h, begin + 210 * MS);
	assert_int_equal(h.count[0].stops, 60);
	assert_int_equal(h.count[0].wants, 30);
	host_free(&h);
}

static void over_time_stops_are_no_more_than_the_cap_whatever_clients_do(void **state)
{
	uint32_t before;
	struct host h;

	(void)state;
	start_many(&h, GP_CAP_INTERRUPT, 100, 50);
	offline(&h, 3);
	before = h.count[0].stops;
	for (int i = 0; i < 10000; i++) {
		flap(&h);
		queue(&h, 500, 2, 0); /* born to be stopped */
		if (have(&h, 30) == GP_STOP)
			host_unasked(&h, 30, GP_RUN); /* it will not stay stopped */
		pass(&h, MS - RESUME_NS);
		remove_queue(&h, 500);
	}
	/* 100 a second for 10 s, and those of the last stop that are not paid for yet */
	assert_in_range(h.count[0].stops - before, 1000 - 51, 1000 + 51);
	host_free(&h);
}

static void a_client_that_is_gone_leaves_its_turn_to_the_others(void **state)
{
	struct host h;

	(void)state;
	start_many(&h, GP_CAP_INTERRUPT, 10, 50);
	offline(&h, 3);
	settle(&h);
	assert_int_equal(state_of(&h, 30), GP_QUEUE_RUNNING);
	assert_int_equal(gp_core_client_remove(h.core, 2, h.now), 0);
	for (uint64_t i = 0; i < 50; i++)
		forget_queue(&h, 100 + i);
	pass(&h, 100 * MS); /* one cycle */
	assert_int_equal(state_of(&h, 30), GP_QUEUE_SUSPENDED);
	pass(&h, SEC);
	idle(&h, 30);
	pass(&h, RESUME_NS);
	busy(&h, 30);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 30), GP_QUEUE_SUSPENDED); /* nobody pays for it */
	host_free(&h);
}

static void a_client_that_no_longer_has_to_be_stopped_takes_no_turn(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start_many(&h, GP_CAP_INTERRUPT, 10, 1); /* the one that the budget allows */
	begin = h.now - STOP_NS;
	offline(&h, 3);
	offline(&h, 4);
	settle(&h);
	idle(&h, 30);
	until(&h, begin + 100 * MS + STOP_NS);
	assert_int_equal(state_of(&h, 40), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void in_a_batch_all_that_wait_go_with_the_next_cycle(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start_many(&h, CAPS_STOP, 10, 50);
	begin = h.now - STOP_NS;
	for (uint64_t id = 3; id < 8; id++)
		offline(&h, id);
	flap(&h);
	until(&h, begin + 100 * MS - 1);
	assert_int_equal(h.count[0].stops, 50);
	until(&h, begin + 100 * MS);
	assert_int_equal(h.count[0].stops, 105);
	assert_int_equal(h.count[0].wants, 55);
	host_free(&h);
}

static void a_stop_that_was_not_handed_out_leaves_its_cycle_to_the_next_batch(void **state)
{
	struct host h;

	(void)state;
	start_many(&h, CAPS_STOP, 10, 1);
	pass(&h, 100 * MS);
	offline(&h, 3);
	(void)gp_core_run(h.core, h.now);
	remove_queue(&h, 30);
	offline(&h, 4);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 40), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void asking_often_does_not_slow_the_budget_down(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start_many(&h, GP_CAP_INTERRUPT, 1, 1);
	begin = h.now - STOP_NS;
	offline(&h, 3);
	while (h.now < begin + SEC - MS) {
		idle(&h, 30);
		settle(&h);
		busy(&h, 30);
		pass(&h, 700 * US); /* less than a thousandth of what a cycle takes */
	}
	until(&h, begin + SEC + STOP_NS);
	assert_int_equal(state_of(&h, 30), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void a_cap_that_does_not_divide_a_second_is_kept_all_the_same(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start_many(&h, GP_CAP_INTERRUPT, 3, 1);
	begin = h.now - STOP_NS;
	offline(&h, 3);
	until(&h, begin + 333333333);
	assert_int_equal(h.count[0].stops, 1);
	pass(&h, 1);
	assert_int_equal(h.count[0].stops, 2);
	host_free(&h);
}

static void the_budget_is_full_from_the_first_moment(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	h.now = 0;
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	settle(&h);
	assert_int_equal(h.count[0].stops, 1);
	host_free(&h);
}

static void a_client_that_changes_its_mind_often_keeps_its_turn(void **state)
{
	struct host h;

	(void)state;
	start_many(&h, GP_CAP_INTERRUPT, 100, 50);
	offline(&h, 3);
	for (int i = 0; i < 10; i++) { /* 20 ms: a cycle for each of the two */
		idle(&h, 30);
		settle(&h);
		busy(&h, 30);
		pass(&h, 2 * MS);
	}
	assert_int_equal(status_of(&h, 0).suspends, 51);
	host_free(&h);
}

static void a_client_that_backs_off_does_not_take_the_turn_it_waits_for(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start_many(&h, GP_CAP_INTERRUPT, 5000, 500); /* all that the budget has; a cycle takes 200 us */
	begin = h.now - STOP_NS;
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	queue(&h, 700, 2, 0);
	until(&h, begin + 200 * US); /* its stop is handed out, to fail after 100 us */
	queue(&h, 701, 2, 0);
	until(&h, begin + 300 * US + MS - 1);
	assert_int_equal(h.count[0].stops, 501);
	pass(&h, 1);
	assert_int_equal(h.count[0].stops, 503);
	host_free(&h);
}

static void after_a_long_pause_the_budget_is_full_and_no_more(void **state)
{
	struct gp_core_opts opts = { .max_stops_per_s = 100, .linger_ns = US };
	struct host h;

	(void)state;
	start_with(&h, CAPS_STOP, &opts);
	online(&h, 1);
	offline(&h, 2);
	for (int i = 0; i < 15; i++)
		preempt_once(&h);
	h.count[0].stops = 0;
	h.now += UINT64_MAX / 100 + 1; /* the machine slept for years: times the cap, that is nothing again */
	for (int i = 0; i < 15; i++)
		preempt_once(&h);
	assert_int_equal(h.count[0].stops, 10);
	host_free(&h);
}

static void after_a_long_pause_a_back_off_is_over(void **state)
{
	uint64_t limited;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	busy(&h, 10);
	pass(&h, 300 * MS);
	h.stop_error[GP_MECH_INTERRUPT] = 0;
	limited = status_of(&h, 0).limited;
	h.now += 1000000 * SEC;
	queue(&h, 21, 2, 0);         /* before the core was run, and has seen how late it is */
	pass(&h, STOP_NS + 10 * MS); /* the slice of one that waited too long comes first */
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_SUSPENDED);
	assert_int_equal(status_of(&h, 0).limited, limited);
	host_free(&h);
}

/* One thing that client 2, of many queues, may do. */
static void be_a_nuisance(struct host *h, struct gp_random *random, uint64_t fresh)
{
	struct host_queue *q = &h->queues[gp_random_between(random, 1, 60)]; /* the first is client 1's */

	switch (gp_random_between(random, 0, 5)) {
	case 0:
		if (q->handle >= 100)
			remove_queue(h, q->handle);
		break;
	case 1:
		if (!q->handle)
			queue(h, fresh, 2, 0);
		break;
	case 2:
		if (q->handle >= 100 && q->have == GP_STOP && !q->under_way)
			host_unasked(h, q->handle, GP_RUN);
		break;
	case 3:
		h->only_queue = q->handle >= 100 ? q->handle : 0;
		h->stop_error[GP_MECH_INTERRUPT] = h->only_queue ? -EIO : 0;
		break;
	default:
		for (int i = 1; i < h->used; i++) {
			if (h->queues[i].handle >= 100)
				idle(h, h->queues[i].handle);
		}
		settle(h);
		if (q->handle >= 100)
			busy(h, q->handle);
	}
}

static void whatever_another_client_does_one_is_stopped_in_time(void **state)
{
	static const uint32_t caps[] = { GP_CAP_INTERRUPT, CAPS_STOP };
	struct gp_random random;
	struct host h;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		gp_random_init(&random, i, 0);
		start_many(&h, caps[i], 200, 50);
		offline(&h, 3);
		for (uint64_t j = 0; j < 20000; j++) {
			be_a_nuisance(&h, &random, 1000 + j);
			pass(&h, gp_random_between(&random, 0, 2 * MS));
			if (j % 10)
				continue;
			idle(&h, 30);
			pass(&h, RESUME_NS);
			busy(&h, 30);
			pass(&h, 10 * MS + STOP_NS); /* two cycles: one is the other's */
			assert_int_equal(state_of(&h, 30), GP_QUEUE_SUSPENDED);
		}
		assert_true(status_of(&h, 0).limited > 1000 && status_of(&h, 0).failures > 100);
		host_free(&h);
	}
}

static void a_hold_ends_by_itself_when_its_time_is_up(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	assert_int_equal(core_hold(h.core, 20, h.now + 5 * MS, h.now), 0);
	pass(&h, 5 * MS - 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(status_of(&h, 0).preemptions, 0); /* it is not for somebody else's work */
	assert_int_equal(queue_status(&h, 20).held, 1);
	pass(&h, 1 + RESUME_NS);
	assert_all_run(&h);
	assert_int_equal(queue_status(&h, 20).held, 0);
	host_free(&h);
}

static void a_hold_without_end_lasts_until_it_is_released(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	assert_int_equal(core_hold(h.core, 20, h.now + MS, h.now), 0);
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0); /* the later word holds */
	pass(&h, 100 * SEC);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(core_release(h.core, 20, h.now), 0);
	pass(&h, RESUME_NS);
	assert_all_run(&h);
	assert_int_equal(core_release(h.core, 20, h.now), 0);
	pass(&h, SEC);
	assert_int_equal(h.count[0].actions, 2);
	host_free(&h);
}

static void a_hold_survives_policies_and_requests(void **state)
{
	static const struct gp_policy_ops *const all[] = { &gp_policy_fair, &gp_policy_fifo,
							   &gp_policy_deadline, &gp_policy_priority };
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	for (int i = 0; i < 4; i++) {
		set_policy(&h, 0, all[i]);
		busy(&h, 10);
		pass(&h, 1200 * MS); /* longer than the starvation guard waits */
		assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
		idle(&h, 10);
		pass(&h, 50 * MS);
		assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	}
	assert_int_equal(h.count[0].actions, 1);
	host_free(&h);
}

static void a_released_queue_stays_stopped_while_online_works(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	pass(&h, MS);
	assert_int_equal(core_release(h.core, 20, h.now), 0);
	pass(&h, MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(h.count[0].actions, 1);
	idle(&h, 10);
	pass(&h, LINGER_NS + RESUME_NS);
	assert_all_run(&h);
	host_free(&h);
}

static void a_held_online_queue_keeps_nobody_off_the_device(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	assert_int_equal(core_hold(h.core, 10, GP_NEVER, h.now), 0);
	assert_int_equal(core_hold(h.core, 10, GP_NEVER, h.now), 0); /* twice is the same as once */
	pass(&h, STOP_NS + LINGER_NS + RESUME_NS);
	assert_int_equal(state_of(&h, 10), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	idle(&h, 10);
	busy(&h, 10); /* what it says while it is held counts when it is released */
	pass(&h, 10 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(core_release(h.core, 10, h.now), 0);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 10), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void a_device_that_cannot_stop_never_gets_a_stop(void **state)
{
	static const uint32_t caps[] = { 0, GP_CAP_BATCH, GP_CAP_BACKGROUND,
					 GP_CAP_BACKGROUND | GP_CAP_TAKES_TURNS };
	struct host h;

	(void)state;
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		start(&h, caps[i]);
		online(&h, 1);
		offline(&h, 2);
		offline(&h, 3);
		busy(&h, 10);
		assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), -ENOTSUP);
		pass(&h, 3 * SEC);
		assert_int_equal(h.count[0].stops, 0);
		assert_int_equal(status_of(&h, 0).limited, 0);
		assert_all_run(&h);
		host_free(&h);
	}
}

static void a_queue_whose_lease_ended_is_stopped_again_if_that_is_still_needed(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	host_unasked(&h, 20, GP_RUN);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(h.count[0].stops, 2);
	host_free(&h);
}

static void a_queue_whose_lease_ended_is_left_alone_if_nobody_needs_the_device(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	h.resume_error = -EIO;
	idle(&h, 10);
	pass(&h, LINGER_NS + RESUME_NS); /* the resume failed, the next try is a while off */
	host_unasked(&h, 20, GP_RUN);
	pass(&h, SEC);
	assert_all_run(&h);
	assert_int_equal(h.count[0].stops, 1);
	assert_int_equal(h.count[0].runs, 1);
	host_free(&h);
}

static void an_answer_that_makes_no_sense_is_refused(void **state)
{
	struct gp_done done = { .want = { .queue = 20, .want = GP_RUN } };
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	settle(&h);
	assert_int_equal(gp_core_done(h.core, &done, h.now), -EINVAL); /* a stop is under way */
	done.want.want = GP_STOP + 1;
	assert_int_equal(gp_core_done(h.core, &done, h.now), -EINVAL);
	done.want.want = GP_STOP;
	done.want.status = 1;
	assert_int_equal(gp_core_done(h.core, &done, h.now), -EINVAL);
	done.want.status = -EINPROGRESS;
	assert_int_equal(gp_core_done(h.core, &done, h.now), -EINVAL);
	done.want.queue = 99;
	assert_int_equal(gp_core_done(h.core, &done, h.now), -ENOENT);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDING);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	done.want = (struct gp_want){ .queue = 20, .want = GP_RUN, .status = -EIO };
	assert_int_equal(gp_core_done(h.core, &done, h.now),
			 0); /* a failure nobody asked for changes nothing */
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(status_of(&h, 0).failures, 0);
	host_free(&h);
}

static void who_waits_gets_a_slice_every_max_starve(void **state)
{
	uint64_t t;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	t = h.now;
	for (int i = 0; i < 3; i++) {
		until(&h, t + SEC - 1);
		assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
		until(&h, t + SEC + RESUME_NS);
		assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
		until(&h, t + SEC + 10 * MS - 1);
		assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
		t += SEC + 10 * MS; /* the slice is over: it waits anew */
		until(&h, t + STOP_NS);
		assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	}
	host_free(&h);
}

static void all_that_waited_half_as_long_get_their_slice_together(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, SEC * 2 / 5);
	offline(&h, 3);
	pass(&h, SEC * 2 / 5);
	offline(&h, 4);
	pass(&h, SEC / 5 + MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 30), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 40), GP_QUEUE_SUSPENDED);
	assert_int_equal(h.count[0].wants, 2);
	pass(&h, SEC * 4 / 5);
	assert_int_equal(state_of(&h, 40), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING); /* it has waited for most of a second again */
	host_free(&h);
}

static void however_many_wait_online_work_is_disturbed_twice_as_often_at_most(void **state)
{
	uint64_t before, runs = 0;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	busy(&h, 10);
	for (uint64_t id = 2; id < 102; id++) { /* each begins at a time of its own */
		offline(&h, id);
		pass(&h, 10 * MS);
	}
	pass(&h, 2 * SEC);
	before = h.now;
	while (h.now < before + 10 * SEC) {
		uint32_t running = 0;

		for (uint64_t id = 2; id < 102; id++)
			running |= have(&h, 10 * id) != GP_STOP;
		runs += running;
		pass(&h, MS);
	}
	assert_in_range(runs, 100, 250); /* ms of 10 s: slices of 10 ms, at most two a second */
	host_free(&h);
}

static void a_slice_that_online_ends_early_is_not_taken_back(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, SEC + MS);
	idle(&h, 10);
	pass(&h, SEC);
	assert_all_run(&h);
	assert_int_equal(h.count[0].actions, 2);
	host_free(&h);
}

static void a_slice_ends_with_the_work_it_was_for(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, SEC + MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	idle(&h, 20);
	pass(&h, MS);
	busy(&h, 20); /* this is new work: it waits like any other */
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	pass(&h, SEC - MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void who_is_told_to_wait_for_ever_does(void **state)
{
	struct gp_core_opts opts = { .max_starve_ns = GP_NEVER };
	struct host h;

	(void)state;
	start_with(&h, CAPS_STOP, &opts);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, 1000 * SEC);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(h.count[0].actions, 1);
	host_free(&h);
}

/* mechanisms */

static void start_levels(struct host *h)
{
	struct gp_core_opts opts = { .max_stops_per_s = 1000000, .linger_ns = US };

	start_with(h, GP_CAP_INTERRUPT | GP_CAP_GATE | GP_CAP_THROTTLE | GP_CAP_BATCH, &opts);
	h->stop_ns[GP_MECH_INTERRUPT] = 90 * US;
	h->stop_ns[GP_MECH_GATE] = 30 * US;
	h->stop_ns[GP_MECH_THROTTLE] = 60 * US;
	online(h, 1);
	offline(h, 2);
}

static void each_way_to_stop_is_tried_from_the_highest_level_and_the_cheapest_kept(void **state)
{
	static const uint32_t expected[] = { GP_MECH_INTERRUPT, GP_MECH_GATE, GP_MECH_THROTTLE, GP_MECH_GATE,
					     GP_MECH_GATE };
	struct host h;

	(void)state;
	start_levels(&h);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(status_of(&h, 0).mechanism, expected[i / 8]);
		preempt_once(&h);
		assert_int_equal(h.count[0].mechanism, expected[i / 8]);
	}
	host_free(&h);
}

static void a_way_to_stop_that_was_dear_is_tried_again_once_in_a_while(void **state)
{
	uint32_t others = 0;
	struct host h;

	(void)state;
	start_levels(&h);
	for (int i = 0; i < 1200; i++) {
		preempt_once(&h);
		others += i >= 24 && h.count[0].mechanism != GP_MECH_GATE;
	}
	assert_int_equal(others, 1);
	host_free(&h);
}

static void a_way_to_stop_that_never_works_is_not_the_cheapest(void **state)
{
	struct host h;

	(void)state;
	start_levels(&h);
	h.stop_error[GP_MECH_GATE] = -ENOTSUP;
	for (int i = 0; i < 16; i++) {
		busy(&h, 10);
		pass(&h, 2 * SEC);
		idle(&h, 10);
		pass(&h, 2 * SEC);
	}
	assert_int_equal(status_of(&h, 0).mechanism, GP_MECH_THROTTLE);
	assert_int_equal(status_of(&h, 0).failures, 8);
	host_free(&h);
}

static void a_stop_that_took_no_time_is_measured_all_the_same(void **state)
{
	struct host h;

	(void)state;
	start_levels(&h);
	h.stop_ns[GP_MECH_GATE] = 0;
	for (int i = 0; i < 24; i++)
		preempt_once(&h);
	assert_int_equal(status_of(&h, 0).mechanism, GP_MECH_GATE);
	host_free(&h);
}

/* yielding devices */

static void a_device_that_yields_gets_one_want_and_none_per_request(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_YIELD);
	offline(&h, 2);
	pass(&h, MS);
	assert_int_equal(h.count[0].actions, 0); /* there is nobody to yield to */
	online(&h, 1);
	pass(&h, MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(status_of(&h, 0).mechanism, GP_MECH_YIELD);
	for (int i = 0; i < 100; i++)
		preempt_once(&h);
	assert_int_equal(h.count[0].actions, 1);
	assert_int_equal(have(&h, 10), GP_RUN);
	queue(&h, 21, 2, 0);
	offline(&h, 3);
	pass(&h, MS);
	assert_int_equal(have(&h, 21), GP_BACKGROUND);
	assert_int_equal(have(&h, 30), GP_BACKGROUND);
	host_free(&h);
}

static void background_ends_when_the_last_online_client_leaves(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_YIELD);
	online(&h, 1);
	online(&h, 3);
	offline(&h, 2);
	pass(&h, MS);
	remove_queue(&h, 10);
	pass(&h, MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	assert_int_equal(gp_core_client_remove(h.core, 3, h.now), 0);
	forget_queue(&h, 30);
	pass(&h, MS);
	assert_int_equal(have(&h, 20), GP_RUN);
	assert_int_equal(status_of(&h, 0).mechanism, GP_MECH_INTERRUPT);
	assert_int_equal(status_of(&h, 0).resumes, 0); /* it was never stopped */
	host_free(&h);
}

static void a_device_that_learns_to_yield_does_so_and_one_that_forgets_it_stops(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	assert_int_equal(gp_core_device_caps(h.core, 0, CAPS_YIELD), 0);
	pass(&h, MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(gp_core_device_caps(h.core, 0, CAPS_STOP), 0);
	pass(&h, MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(gp_core_device_caps(h.core, 7, CAPS_STOP), -ENOENT);
	host_free(&h);
}

/* Client 1 is online, client 2 is offline and yields to it; two open requests park it. */
static void start_yielding(struct host *h, uint32_t caps, uint64_t max_starve_ns)
{
	struct gp_core_opts opts = { .park_hints = 2, .max_starve_ns = max_starve_ns };

	start_with(h, caps, &opts);
	online(h, 1);
	offline(h, 2);
	pass(h, MS);
	assert_int_equal(have(h, 20), GP_BACKGROUND);
}

static void offline_that_yields_is_parked_while_requests_queue(void **state)
{
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	hint(&h, 1);
	pass(&h, STOP_NS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	hint(&h, 1);
	pass(&h, STOP_NS);
	assert_int_equal(have(&h, 20), GP_STOP);
	hint_over(&h, 1);
	pass(&h, 100 * MS);
	assert_int_equal(have(&h, 20), GP_STOP); /* the one behind is open still */
	hint_over(&h, 1);
	pass(&h, RESUME_NS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND); /* at once: no linger */
	host_free(&h);
}

static void requests_of_several_clients_queue_as_one_clients_do(void **state)
{
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	online(&h, 3);
	hint(&h, 1);
	hint(&h, 3);
	pass(&h, STOP_NS);
	assert_int_equal(have(&h, 20), GP_STOP);
	hint_over(&h, 1);
	assert_int_equal(gp_core_client_remove(h.core, 3, h.now), 0);
	forget_queue(&h, 30);
	pass(&h, RESUME_NS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	host_free(&h);
}

static void nobody_is_parked_where_slices_do_not_make_it_yield_or_it_is_not_asked_for(void **state)
{
	struct gp_core_opts never = { .max_starve_ns = GP_NEVER };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_YIELD, GP_NEVER);
	hint(&h, 1);
	hint(&h, 1);
	pass(&h, 10 * MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	host_free(&h);
	start_with(&h, CAPS_TURNS, &never);
	online(&h, 1);
	offline(&h, 2);
	hint(&h, 1);
	hint(&h, 1);
	pass(&h, 10 * MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	host_free(&h);
}

static void parking_ends_when_offline_would_starve_and_begins_again_after_a_pause(void **state)
{
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, 100 * MS);
	hint(&h, 1);
	hint(&h, 1);
	pass(&h, 100 * MS - 1);
	assert_int_equal(have(&h, 20), GP_STOP);
	pass(&h, 1 + RESUME_NS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	hint(&h, 1);
	pass(&h, 10 * MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	for (int i = 0; i < 3; i++)
		hint_over(&h, 1);
	hint(&h, 1);
	hint(&h, 1);
	pass(&h, STOP_NS);
	assert_int_equal(have(&h, 20), GP_STOP);
	host_free(&h);
}

static void the_first_requests_after_a_pause_in_which_offline_ran_are_parked_for(void **state)
{
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, 100 * MS);
	for (int i = 0; i < 4; i++) {
		hint(&h, 1);
		hint(&h, 1);
		pass(&h, 50 * MS);
		assert_int_equal(have(&h, 20), GP_STOP);
		pass(&h, 51 * MS);
		assert_int_equal(have(&h, 20), GP_BACKGROUND);
		hint_over(&h, 1);
		hint_over(&h, 1);
		pass(&h, 11 * MS);
	}
	host_free(&h);
}

static void parking_that_ended_in_time_does_not_count_against_the_next(void **state)
{
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, 100 * MS);
	hint(&h, 1);
	hint(&h, 1);
	pass(&h, 60 * MS);
	hint_over(&h, 1);
	hint_over(&h, 1);
	pass(&h, 20 * MS);
	hint(&h, 1);
	pass(&h, 25 * MS);
	hint(&h, 1);
	pass(&h, STOP_NS);
	assert_int_equal(have(&h, 20), GP_STOP);
	host_free(&h);
}

/* One request is open at any time; offline may run for pause_ns between two of 20 ms. Returns how long it
 * did. */
static uint64_t ran_beside_requests_in_a_row(uint32_t *ret_stops, uint64_t pause_ns)
{
	struct gp_core_opts opts = { .park_hints = 1, .max_starve_ns = 100 * MS };
	uint64_t ran;
	struct host h;

	start_with(&h, CAPS_TURNS, &opts);
	online(&h, 1);
	offline(&h, 2);
	pass(&h, 50 * MS);
	ran = run_time(&h, 20);
	for (int i = 0; i < 12; i++) {
		hint(&h, 1);
		pass(&h, 20 * MS);
		hint_over(&h, 1);
		if (pause_ns)
			pass(&h, pause_ns);
	}
	ran = run_time(&h, 20) - ran;
	*ret_stops = h.count[0].stops;
	host_free(&h);
	return ran;
}

static void requests_that_follow_each_other_at_once_do_not_park_for_longer_than_one_may(void **state)
{
	uint32_t stops;

	(void)state;
	/* twice in 240 ms; each time until the request ends in which a slice is over */
	assert_in_range(ran_beside_requests_in_a_row(&stops, 0), 2 * 10 * MS, 2 * 40 * MS);
	assert_in_range(ran_beside_requests_in_a_row(&stops, 60 * US), 2 * 10 * MS, 2 * 40 * MS);
	/* pauses of a slice in all are one: every request is parked for */
	(void)ran_beside_requests_in_a_row(&stops, 3 * MS);
	assert_int_equal(stops, 12);
}

static void parking_that_is_switched_off_ends_though_requests_are_open(void **state)
{
	struct gp_core_opts off = { .max_starve_ns = GP_NEVER };
	struct host h;

	(void)state;
	for (int by_caps = 0; by_caps < 2; by_caps++) {
		start_yielding(&h, CAPS_TURNS, GP_NEVER);
		hint(&h, 1);
		hint(&h, 1);
		pass(&h, STOP_NS);
		assert_int_equal(have(&h, 20), GP_STOP);
		if (by_caps)
			assert_int_equal(gp_core_device_caps(h.core, 0, CAPS_YIELD), 0);
		else
			gp_core_change_opts(h.core, &off);
		pass(&h, 50 * MS + RESUME_NS);
		assert_int_equal(have(&h, 20), GP_BACKGROUND);
		host_free(&h);
	}
}

static void requests_that_nobody_ends_park_until_they_expire(void **state)
{
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	hint(&h, 1);
	hint(&h, 1);
	pass(&h, SEC - 1);
	assert_int_equal(have(&h, 20), GP_STOP);
	pass(&h, 1 + RESUME_NS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	host_free(&h);
}

/* Client 2 cannot yield, client 3 can. */
static void start_refusing_on(struct host *h, uint32_t caps, int32_t error)
{
	start(h, caps);
	h->resume_error = error;
	h->only_queue = 20;
	offline(h, 2);
	offline(h, 3);
	online(h, 1);
	pass(h, MS);
}

static void start_refusing(struct host *h, int32_t error)
{
	start_refusing_on(h, CAPS_YIELD, error);
}

static void whose_driver_refuses_to_let_it_yield_is_stopped_while_online_works(void **state)
{
	struct host h;

	(void)state;
	start_refusing(&h, -ENOTSUP);
	h.resume_error = 0;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(have(&h, 20), GP_RUN);
		hint(&h, 1);
		pass(&h, STOP_NS);
		assert_int_equal(have(&h, 20), GP_STOP);
		assert_int_equal(have(&h, 30), GP_BACKGROUND);
		hint_over(&h, 1);
		pass(&h, LINGER_NS + RESUME_NS);
	}
	assert_int_equal(h.count[0].backgrounds, 2); /* it was not asked again */
	assert_int_equal(status_of(&h, 0).failures, 1);
	assert_string_equal(
		status_of(&h, 0).reason,
		"client 2 cannot yield: Operation not supported; it is stopped for requests instead");
	host_free(&h);
}

static void who_cannot_yield_has_a_slice_every_max_starve_though_online_never_rests(void **state)
{
	struct gp_core_hint forever = { .client = 1, .expiry_ns = GP_NEVER, .device = GP_ALL_DEVICES };
	uint64_t ran;
	struct host h;

	(void)state;
	for (int turns = 0; turns < 2; turns++) {
		start_refusing_on(&h, turns ? CAPS_TURNS : CAPS_YIELD, -ENOTSUP);
		pass(&h, 5 * QUANTUM_NS); /* it had a turn */
		h.resume_error = 0;
		assert_int_equal(gp_core_hint_begin(h.core, &forever, h.now), 0);
		pass(&h, STOP_NS);
		assert_int_equal(have(&h, 20), GP_STOP);
		ran = run_time(&h, 20);
		pass(&h, 10 * SEC);
		assert_in_range(run_time(&h, 20) - ran, 9 * 10 * MS, 11 * 10 * MS);
		host_free(&h);
	}
}

static void yielding_is_tried_again_when_the_next_online_client_comes(void **state)
{
	struct host h;

	(void)state;
	start_refusing(&h, -EPERM);
	h.resume_error = 0;
	remove_queue(&h, 10);
	pass(&h, MS);
	queue(&h, 11, 1, 0);
	pass(&h, MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	hint(&h, 1);
	pass(&h, STOP_NS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	host_free(&h);
}

static void a_call_to_yield_that_failed_for_now_is_tried_again(void **state)
{
	struct host h;

	(void)state;
	start_refusing(&h, -EIO);
	h.resume_error = 0;
	pass(&h, 10 * MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	host_free(&h);
}

/*
 * A made server: what a request takes with offline running, and with offline parked, in us.  Each busy period
 * is one request, or one and another that comes when the first is half done.
 */
struct made {
	uint64_t us[2];
	uint64_t noise_us; /* up to so much more or less, by chance */
	uint64_t chance;
};

static uint64_t made_service(struct made *m, int parked)
{
	m->chance = m->chance * 6364136223846793005u + 1442695040888963407u;
	return (m->us[parked] - m->noise_us + (m->noise_us ? (m->chance >> 33) % (2 * m->noise_us) : 0)) * US;
}

/* Whether offline was parked for the one that was served last. */
static int serve_queued(struct host *h, struct made *m)
{
	int parked;

	hint(h, 1);
	pass(h, 300 * US);
	hint(h, 1);
	pass(h, 300 * US);
	hint_over(h, 1);
	settle(h);
	parked = have(h, 20) == GP_STOP;
	pass(h, made_service(m, parked));
	hint_over(h, 1);
	pass(h, 5 * MS);
	assert_int_equal(have(h, 20), GP_BACKGROUND);
	return parked;
}

/*
 * Three: the second comes just before the first is done, so that the call that parks is under way when its
 * own service begins; the third while the second is served.  Whether offline was parked for the third.
 */
static int serve_late(struct host *h, struct made *m)
{
	int parked, was_parked;

	hint(h, 1);
	pass(h, 590 * US);
	hint(h, 1);
	pass(h, 10 * US);
	was_parked = have(h, 20) == GP_STOP;
	hint_over(h, 1);
	pass(h, STOP_NS);
	parked = have(h, 20) == GP_STOP;
	hint(h, 1);
	pass(h, (parked == was_parked ? made_service(m, parked) : 1700 * US) - STOP_NS);
	hint_over(h, 1);
	pass(h, made_service(m, parked));
	hint_over(h, 1);
	pass(h, 5 * MS);
	return parked;
}

static int serve_single(struct host *h, struct made *m)
{
	int parked;

	hint(h, 1);
	pass(h, STOP_NS);
	parked = have(h, 20) == GP_STOP;
	pass(h, made_service(m, parked) - STOP_NS);
	hint_over(h, 1);
	pass(h, 5 * MS);
	return parked;
}

static int serve_times(struct host *h, struct made *m, int (*serve)(struct host *, struct made *), int n)
{
	int parked = 0;

	for (int i = 0; i < n; i++)
		parked += serve(h, m);
	return parked;
}

static void parking_is_kept_where_queued_requests_gain_by_it(void **state)
{
	struct made m = { .us = { 1365, 1014 } };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	assert_int_equal(serve_times(&h, &m, serve_queued, 16), 16);
	assert_in_range(serve_times(&h, &m, serve_queued, 1000), 975, 985); /* 16 without, then one in 256 */
	host_free(&h);
}

static void what_is_served_while_the_call_is_under_way_says_nothing_of_parking(void **state)
{
	struct made m = { .us = { 1375, 1040 } };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	serve_times(&h, &m, serve_late, 64);
	assert_in_range(serve_times(&h, &m, serve_late, 512), 500, 512);
	host_free(&h);
}

static void parking_is_given_up_where_queued_requests_gain_nothing(void **state)
{
	struct made m = { .us = { 1000, 980 } };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	assert_int_equal(serve_times(&h, &m, serve_queued, 16), 16);
	assert_int_equal(serve_times(&h, &m, serve_queued, 16), 0);
	serve_times(&h, &m, serve_queued, 64); /* and now the first ones are compared */
	assert_in_range(serve_times(&h, &m, serve_queued, 1024), 6, 10); /* either kind, one in 256 */
	m.us[1] = 700; /* it changes: the next trials tell */
	serve_times(&h, &m, serve_queued, 64 * 256);
	assert_in_range(serve_times(&h, &m, serve_queued, 256), 250, 256);
	m.us[1] = 1200;
	serve_times(&h, &m, serve_queued, 256);
	assert_in_range(serve_times(&h, &m, serve_queued, 256), 0, 3);
	host_free(&h);
}

static void a_client_whose_single_requests_gain_has_offline_parked_from_the_first_hint(void **state)
{
	struct made gains = { .us = { 3000, 2000 } }, loses = { .us = { 1226, 1415 } };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	assert_int_equal(serve_times(&h, &gains, serve_single, 16), 0);
	assert_int_equal(serve_times(&h, &gains, serve_single, 16), 16);
	assert_in_range(serve_times(&h, &gains, serve_single, 256), 255, 256);
	host_free(&h);
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	assert_int_equal(serve_times(&h, &loses, serve_single, 32), 16);
	assert_in_range(serve_times(&h, &loses, serve_single, 256), 0, 1);
	host_free(&h);
}

static void a_client_is_learnt_anew_soon_when_offline_comes_back_to_work(void **state)
{
	struct made rests = { .us = { 1205, 1205 } }, works = { .us = { 1284, 1190 } };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	serve_times(&h, &rests, serve_queued, 300);
	assert_in_range(serve_times(&h, &rests, serve_queued, 100), 0, 1);
	serve_times(&h, &works, serve_queued, 150);
	assert_in_range(serve_times(&h, &works, serve_queued, 100), 84, 100); /* 16: one more trial */
	host_free(&h);
}

/* Its queue is seen to work just before the end. */
static int serve_watched(struct host *h, struct made *m)
{
	int parked;

	hint(h, 1);
	pass(h, STOP_NS);
	parked = have(h, 20) == GP_STOP;
	pass(h, made_service(m, parked) - 2 * STOP_NS);
	busy(h, 10);
	pass(h, STOP_NS);
	idle(h, 10);
	hint_over(h, 1);
	pass(h, 5 * MS);
	return parked;
}

static void what_is_seen_of_a_queue_meanwhile_is_no_new_request_to_learn_from(void **state)
{
	struct made gains = { .us = { 3000, 2000 } };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	serve_times(&h, &gains, serve_watched, 32);
	assert_in_range(serve_times(&h, &gains, serve_watched, 64), 63, 64);
	host_free(&h);
}

/* Short, beside a request of client 3 that begins later and ends before. */
static int serve_around_another(struct host *h, struct made *m)
{
	(void)m;
	hint(h, 1);
	pass(h, STOP_NS);
	hint(h, 3);
	pass(h, STOP_NS);
	hint_over(h, 3);
	pass(h, STOP_NS);
	hint_over(h, 1);
	pass(h, 5 * MS);
	return 0;
}

/* The same beside one that begins before and ends before. */
static int serve_behind_another(struct host *h, struct made *m)
{
	(void)m;
	hint(h, 3);
	pass(h, STOP_NS);
	hint(h, 1);
	pass(h, STOP_NS);
	hint_over(h, 3);
	pass(h, STOP_NS);
	hint_over(h, 1);
	pass(h, 5 * MS);
	return 0;
}

static void what_is_served_while_another_comes_and_goes_says_nothing(void **state)
{
	int (*const beside[])(struct host *, struct made *) = { serve_around_another, serve_behind_another };
	struct made loses = { .us = { 1226, 1415 } };
	struct host h;

	(void)state;
	for (int i = 0; i < 2; i++) {
		start_yielding(&h, CAPS_TURNS, GP_NEVER);
		online(&h, 3);
		serve_times(&h, NULL, beside[i], 2 * 256 + 32);
		assert_in_range(serve_times(&h, &loses, serve_single, 200), 0, 2);
		host_free(&h);
	}
}

/* Two are open for so long that offline goes on: it was parked, and is not any more, when the first ends. */
static int serve_starving(struct host *h, struct made *m)
{
	(void)m;
	hint(h, 1);
	pass(h, STOP_NS);
	hint(h, 1);
	pass(h, 2 * MS);
	hint_over(h, 1);
	hint_over(h, 1);
	pass(h, 15 * MS);
	return 0;
}

static void what_is_served_while_offline_is_parked_and_goes_on_says_nothing(void **state)
{
	struct gp_core_opts patient = { .park_hints = 2, .max_starve_ns = GP_NEVER };
	struct made same = { .us = { 1000, 1000 } };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, 1500 * US);
	serve_times(&h, NULL, serve_starving, 16);
	gp_core_change_opts(h.core, &patient);
	serve_times(&h, &same, serve_single, 64);
	assert_in_range(serve_times(&h, &same, serve_single, 100), 0, 2);
	host_free(&h);
}

static void one_request_that_takes_a_hundred_times_as_long_changes_nobodys_mind(void **state)
{
	struct made gains = { .us = { 1374, 1236 } }, slow = { .us = { 500000, 500000 } };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	serve_times(&h, &gains, serve_queued, 64);
	serve_queued(&h, &slow);
	assert_in_range(serve_times(&h, &gains, serve_queued, 100), 98, 100);
	host_free(&h);
}

/* Empty, by a clock that saw no time go by. */
static int serve_nothing(struct host *h, struct made *m)
{
	(void)m;
	hint(h, 1);
	settle(h);
	hint_over(h, 1);
	pass(h, 5 * MS);
	return 0;
}

static int serve_a_nanosecond(struct host *h, struct made *m)
{
	(void)m;
	hint(h, 1);
	pass(h, 1);
	hint_over(h, 1);
	pass(h, 5 * MS);
	return 0;
}

static void requests_without_work_do_not_keep_others_from_being_learnt(void **state)
{
	int (*const empty[])(struct host *, struct made *) = { serve_nothing, serve_a_nanosecond };
	struct made gains = { .us = { 3000, 2000 } };
	struct host h;

	(void)state;
	for (int i = 0; i < 2; i++) {
		start_yielding(&h, CAPS_TURNS, GP_NEVER);
		serve_times(&h, NULL, empty[i], 40);
		serve_times(&h, &gains, serve_single, 1024);
		assert_in_range(serve_times(&h, &gains, serve_single, 100), 84, 100); /* 16: one more trial */
		host_free(&h);
	}
}

/* Where one of the first requests, offline parked or not, takes so long: whether it is parked for later. */
static void learn_beside_one(int (*serve)(struct host *, struct made *), const struct made *usual,
			     uint64_t odd_us, int odd_at, int *ret_parked)
{
	struct made odd = { .us = { odd_us, odd_us } }, m = *usual;
	struct host h;

	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	for (int i = 0; i < 48; i++)
		serve(&h, i == odd_at ? &odd : &m);
	*ret_parked = serve_times(&h, &m, serve, 100);
	host_free(&h);
}

static void one_request_among_the_first_that_stands_out_changes_nobodys_mind(void **state)
{
	static const uint64_t odd_us[] = { 150, 200000 };
	struct made gains = { .us = { 1374, 1236 } }, loses = { .us = { 1226, 1415 } },
		    same = { .us = { 1226, 1226 } };
	int parked;

	(void)state;
	for (int i = 0; i < 2; i++)
		for (int at = 0; at < 32; at++) {
			learn_beside_one(serve_queued, &gains, odd_us[i], at, &parked);
			assert_in_range(parked, 99, 100);
			learn_beside_one(serve_single, &gains, odd_us[i], at, &parked);
			assert_in_range(parked, 99, 100);
			learn_beside_one(serve_queued, &loses, odd_us[i], at, &parked);
			assert_in_range(parked, 0, 1);
			learn_beside_one(serve_single, &loses, odd_us[i], at, &parked);
			assert_in_range(parked, 0, 1);
			learn_beside_one(serve_single, &same, odd_us[i], at, &parked);
			assert_in_range(parked, 0, 1);
		}
}

static void who_dies_or_hangs_in_requests_teaches_nothing_and_parks_for_nobody(void **state)
{
	struct made gains = { .us = { 1374, 1236 } };
	struct gp_core_hint forever = {
		.client = 3, .number = 7, .expiry_ns = GP_NEVER, .device = GP_ALL_DEVICES
	};
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, SEC);
	serve_times(&h, &gains, serve_queued, 64);
	for (int i = 0; i < 20; i++) {
		online(&h, 3);
		assert_int_equal(gp_core_hint_begin(h.core, &forever, h.now), 0);
		hint(&h, 3);
		pass(&h, MS);
		assert_int_equal(have(&h, 20), GP_STOP);
		assert_int_equal(gp_core_client_remove(h.core, 3, h.now), 0);
		forget_queue(&h, 30);
		pass(&h, 11 * MS);
		assert_int_equal(have(&h, 20), GP_BACKGROUND);
	}
	assert_in_range(serve_times(&h, &gains, serve_queued, 100), 98, 100);
	online(&h, 3);
	assert_int_equal(gp_core_hint_begin(h.core, &forever, h.now), 0);
	forever.number++;
	assert_int_equal(gp_core_hint_begin(h.core, &forever, h.now), 0);
	pass(&h, SEC + RESUME_NS);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(have(&h, 20), GP_BACKGROUND);
		assert_int_equal(gp_core_hint_begin(h.core, &forever, h.now), 0); /* nor by saying it again */
		pass(&h, 10 * MS);
	}
	host_free(&h);
}

static void each_client_has_what_was_learnt_of_it(void **state)
{
	struct made gains = { .us = { 3000, 2000 } };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	online(&h, 3);
	serve_times(&h, &gains, serve_single, 64);
	hint(&h, 3);
	pass(&h, STOP_NS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	hint_over(&h, 3);
	pass(&h, MS);
	hint(&h, 1);
	pass(&h, STOP_NS);
	assert_int_equal(have(&h, 20), GP_STOP);
	assert_int_equal(gp_core_client_remove(h.core, 1, h.now), 0); /* and takes it along */
	forget_queue(&h, 10);
	pass(&h, MS);
	hint(&h, 3);
	pass(&h, STOP_NS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	host_free(&h);
}

static void who_was_parked_for_and_is_gone_has_no_say_in_what_is_done_for_others(void **state)
{
	struct made same = { .us = { 1000, 1000 } };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	serve_times(&h, &same, serve_queued, 100);
	online(&h, 3);
	hint(&h, 3);
	hint(&h, 3);
	pass(&h, STOP_NS);
	assert_int_equal(have(&h, 20), GP_STOP);
	assert_int_equal(gp_core_client_remove(h.core, 3, h.now), 0);
	forget_queue(&h, 30);
	pass(&h, 10 * MS);
	assert_int_equal(serve_times(&h, &same, serve_queued, 10), 0);
	host_free(&h);
}

static void noise_alone_makes_nobody_change_its_mind_for_long(void **state)
{
	struct made same = { .us = { 1000, 1000 }, .noise_us = 200, .chance = 1 };
	struct made gains = { .us = { 1374, 1236 }, .noise_us = 200, .chance = 2 };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	serve_times(&h, &same, serve_single, 64);
	assert_in_range(serve_times(&h, &same, serve_single, 5000), 0, 250);
	host_free(&h);
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	serve_times(&h, &gains, serve_queued, 64);
	assert_in_range(serve_times(&h, &gains, serve_queued, 5000), 4750, 5000);
	host_free(&h);
}

static void give(struct host *h, uint64_t number, int ends)
{
	const struct gp_core_hint one = { .client = 1, .number = number, .device = GP_ALL_DEVICES };

	assert_int_equal(ends ? gp_core_hint_end(h->core, &one, h->now)
			      : gp_core_hint_begin(h->core, &one, h->now),
			 0);
	pass(h, MS);
}

static void from_requests_that_end_out_of_order_nothing_is_learnt(void **state)
{
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	for (uint64_t i = 1; i < 400; i += 3) { /* parking gains nothing, as far as anybody could measure */
		for (uint64_t k = 0; k < 3; k++)
			give(&h, i + k, 0);
		assert_int_equal(have(&h, 20), GP_STOP);
		give(&h, i + 1, 1);
		give(&h, i, 1);
		give(&h, i + 2, 1);
		pass(&h, MS);
	}
	host_free(&h);
}

static void requests_out_of_order_once_are_followed_by_64_busy_periods_without_learning(void **state)
{
	struct made gains = { .us = { 3000, 2000 } };
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	give(&h, 1, 0);
	give(&h, 2, 0);
	give(&h, 2, 1);
	give(&h, 1, 1);
	assert_int_equal(serve_times(&h, &gains, serve_single, 63 + 16), 0);
	assert_int_equal(serve_times(&h, &gains, serve_single, 16), 16);
	host_free(&h);
}

/* Whether offline was parked for a request that nobody ended. */
static int serve_expiring(struct host *h, struct made *m)
{
	const struct gp_core_hint one = { .client = 1, .expiry_ns = MS, .device = GP_ALL_DEVICES };
	int parked;

	(void)m;
	assert_int_equal(gp_core_hint_begin(h->core, &one, h->now), 0);
	pass(h, STOP_NS);
	parked = have(h, 20) == GP_STOP;
	pass(h, 5 * MS);
	return parked;
}

static void where_nothing_can_be_measured_either_way_is_tried_256_times_and_the_setting_stands(void **state)
{
	struct host h;

	(void)state;
	start_yielding(&h, CAPS_TURNS, GP_NEVER);
	assert_int_equal(serve_times(&h, NULL, serve_expiring, 256), 0);
	assert_int_equal(serve_times(&h, NULL, serve_expiring, 256), 256);
	assert_int_equal(serve_times(&h, NULL, serve_expiring, 255), 0);
	host_free(&h);
}

static void nothing_is_learnt_while_nobody_is_there_to_be_parked_or_others_are_served_too(void **state)
{
	struct made loses = { .us = { 1226, 1415 } };
	struct host h;

	(void)state;
	for (int others = 0; others < 2; others++) {
		start_yielding(&h, CAPS_TURNS, GP_NEVER);
		online(&h, 3);
		if (others)
			hint(&h, 3);
		else
			idle(&h, 20);
		serve_times(&h, &loses, serve_single, 100);
		if (others)
			hint_over(&h, 3);
		else
			busy(&h, 20);
		pass(&h, 10 * MS);
		assert_int_equal(serve_times(&h, &loses, serve_single, 16), 0);
		assert_int_equal(serve_times(&h, &loses, serve_single, 16),
				 16); /* all is still to be tried */
		host_free(&h);
	}
}

static void yield_on_demand_is_one_call_per_request_and_one_back(void **state)
{
	struct gp_core_opts opts = { .yield_on_demand = 1 };
	struct host h;

	(void)state;
	start_with(&h, CAPS_YIELD, &opts);
	online(&h, 1);
	offline(&h, 2);
	pass(&h, MS);
	assert_int_equal(h.count[0].actions, 0);
	busy(&h, 10);
	pass(&h, MS);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	idle(&h, 10);
	pass(&h, LINGER_NS + RESUME_NS);
	assert_int_equal(have(&h, 20), GP_RUN);
	assert_int_equal(h.count[0].actions, 2);
	assert_int_equal(h.count[0].stops, 0);
	host_free(&h);
}

static uint32_t not_stopped(struct host *h, uint64_t first, uint64_t last)
{
	uint32_t n = 0;

	for (uint64_t id = first; id <= last; id++)
		n += have(h, 10 * id) != GP_STOP;
	return n;
}

static void background_clients_that_would_thrash_run_one_at_a_time(void **state)
{
	uint64_t begin;
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	for (uint64_t id = 2; id < 5; id++)
		offline(&h, id);
	pass(&h, MS);
	begin = h.now;
	for (int i = 0; i < 300; i++) {
		until(&h, begin + (uint64_t)i * 10 * MS + 5 * MS);
		assert_int_equal(not_stopped(&h, 2, 4), 1);
	}
	/* 3 s, 100 ms each: ten turns of a tenth of a second for each of the three */
	for (uint64_t id = 2; id < 5; id++)
		assert_in_range(run_time(&h, 10 * id), 900 * MS, 1110 * MS);
	assert_in_range(h.count[0].stops, 30, 33);
	host_free(&h);
}

static void turns_are_so_short_that_nobody_starves_though_each_may_come_late(void **state)
{
	uint64_t before[22];
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	for (uint64_t id = 2; id < 22; id++)
		offline(&h, id);
	pass(&h, 2 * SEC);
	for (uint64_t id = 2; id < 22; id++)
		before[id] = run_time(&h, 10 * id);
	h.count[0].stops = 0;
	pass(&h, 10 * SEC);
	/* Each may be a quarter too long: 20 of 40 ms make 0.8 s, and 250 of them 10 s. */
	assert_in_range(h.count[0].stops, 247, 253);
	for (uint64_t id = 2; id < 22; id++)
		assert_in_range(run_time(&h, 10 * id) - before[id], 450 * MS, 560 * MS);
	host_free(&h);
}

static void a_turn_that_is_due_waits_for_a_pause_of_online(void **state)
{
	uint64_t begin;
	uint64_t first;
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	begin = h.now;
	settle(&h);
	pass(&h, MS);
	first = have(&h, 20) == GP_STOP ? 30 : 20;
	busy(&h, 10);
	until(&h, begin + 110 * MS);
	assert_int_not_equal(have(&h, first), GP_STOP); /* it was due after 100 ms */
	idle(&h, 10);
	until(&h, begin + 110 * MS + LINGER_NS + STOP_NS);
	assert_int_equal(have(&h, first), GP_STOP);
	host_free(&h);
}

static void a_turn_that_is_due_waits_for_online_no_longer_than_a_quarter_of_one(void **state)
{
	uint64_t begin, first;
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	begin = h.now;
	pass(&h, MS);
	first = have(&h, 20) == GP_STOP ? 30 : 20;
	busy(&h, 10);
	until(&h, begin + 125 * MS - 1);
	assert_int_not_equal(have(&h, first), GP_STOP);
	until(&h, begin + 125 * MS + STOP_NS + RESUME_NS);
	assert_int_equal(have(&h, first), GP_STOP);
	assert_int_equal(not_stopped(&h, 2, 3), 1);
	host_free(&h);
}

static void turns_are_as_long_as_weights_say_and_one_that_came_late_is_taken_from_the_next(void **state)
{
	static const uint32_t weights[] = { 100, 200, 300 };
	uint64_t begin, before[3];
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	for (uint64_t id = 2; id < 5; id++) {
		client_with(&h, id, GP_CLASS_OFFLINE, 0, weights[id - 2]);
		queue(&h, 10 * id, id, 0);
	}
	pass(&h, SEC);
	begin = h.now;
	for (uint64_t id = 2; id < 5; id++)
		before[id - 2] = run_time(&h, 10 * id);
	for (int i = 0; i < 6000; i++) { /* all turns of client 2, and no others, end while online works */
		if (have(&h, 20) != GP_STOP)
			busy(&h, 10);
		else
			idle(&h, 10);
		until(&h, begin + (uint64_t)(i + 1) * MS);
	}
	/* 6 s: rounds of 300 ms, in which they have 50, 100 and 150 */
	for (uint64_t id = 2; id < 5; id++)
		assert_in_range(run_time(&h, 10 * id) - before[id - 2], weights[id - 2] * 95 * MS / 10,
				weights[id - 2] * 105 * MS / 10);
	host_free(&h);
}

static void a_turn_is_a_tenth_of_the_quantum_at_least_however_small_the_weight(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	client_with(&h, 2, GP_CLASS_OFFLINE, 0, 1000);
	client_with(&h, 3, GP_CLASS_OFFLINE, 0, 1);
	queue(&h, 20, 2, 0);
	queue(&h, 30, 3, 0);
	pass(&h, 10 * (2 * QUANTUM_NS + QUANTUM_NS / 10));
	assert_in_range(run_time(&h, 30), 9 * QUANTUM_NS / 10, 11 * QUANTUM_NS / 10);
	host_free(&h);
}

static void a_turn_that_is_due_while_offline_is_parked_costs_nothing(void **state)
{
	struct gp_core_opts opts = { .park_hints = 2, .quantum_ns = QUANTUM_NS };
	uint64_t first;
	struct host h;

	(void)state;
	start_with(&h, CAPS_TURNS, &opts);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	pass(&h, QUANTUM_NS - MS);
	first = have(&h, 20) == GP_STOP ? 30 : 20;
	hint(&h, 1);
	hint(&h, 1);
	pass(&h, MS + STOP_NS);
	assert_int_equal(not_stopped(&h, 2, 3), 0);
	h.count[0] = (struct host_count){ 0 };
	hint_over(&h, 1);
	hint_over(&h, 1);
	pass(&h, RESUME_NS);
	assert_int_equal(have(&h, 50 - first), GP_BACKGROUND);
	assert_int_equal(h.count[0].actions, 1);
	host_free(&h);
}

static void a_turn_that_ends_while_a_request_is_open_is_not_begun_before_that_ends(void **state)
{
	struct gp_core_opts opts = { .quantum_ns = QUANTUM_NS };
	uint64_t first;
	struct host h;

	(void)state;
	start_with(&h, CAPS_TURNS, &opts);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	pass(&h, QUANTUM_NS - 1);
	first = have(&h, 20) == GP_STOP ? 30 : 20;
	pass(&h, 1);
	hint(&h, 1);
	pass(&h, 10 * MS);
	assert_int_equal(not_stopped(&h, 2, 3), 0);
	hint_over(&h, 1);
	pass(&h, RESUME_NS);
	assert_int_equal(have(&h, 50 - first), GP_BACKGROUND);
	pass(&h, QUANTUM_NS - 10 * MS - RESUME_NS);
	hint(&h, 1);
	pass(&h, 50 * MS + RESUME_NS); /* nor is it for longer than that */
	assert_int_equal(have(&h, first), GP_BACKGROUND);
	host_free(&h);
}

/* Of all offline clients, in ten seconds in which a request is always open. */
static uint64_t ran_in_turns_beside_a_busy_server(uint64_t clients)
{
	struct gp_core_hint forever = { .client = 1, .expiry_ns = GP_NEVER, .device = GP_ALL_DEVICES };
	uint64_t ran = 0;
	struct host h;

	start(&h, CAPS_TURNS);
	online(&h, 1);
	for (uint64_t id = 2; id < 2 + clients; id++)
		offline(&h, id);
	pass(&h, MS);
	assert_int_equal(gp_core_hint_begin(h.core, &forever, h.now), 0);
	for (uint64_t id = 2; id < 2 + clients; id++)
		ran -= run_time(&h, 10 * id);
	pass(&h, 10 * SEC);
	for (uint64_t id = 2; id < 2 + clients; id++)
		ran += run_time(&h, 10 * id);
	host_free(&h);
	return ran;
}

static void a_crowds_turns_wait_no_longer_than_they_are_for_requests_that_are_always_open(void **state)
{
	(void)state;
	for (uint64_t clients = 2; clients <= 64; clients *= 2)
		assert_in_range(ran_in_turns_beside_a_busy_server(clients), 4 * SEC, 10 * SEC);
}

static void under_a_policy_that_stops_online_too_no_turn_waits_for_its_requests(void **state)
{
	struct gp_core_hint forever = { .client = 1, .expiry_ns = GP_NEVER, .device = GP_ALL_DEVICES };
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	set_policy(&h, 0, &gp_policy_fair);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	assert_int_equal(gp_core_hint_begin(h.core, &forever, h.now), 0);
	pass(&h, 6 * SEC);
	for (uint64_t handle = 10; handle <= 30; handle += 10) /* two seconds each, less what calls take */
		assert_in_range(run_time(&h, handle), 1900 * MS, 2100 * MS);
	host_free(&h);
}

static void a_request_in_the_middle_of_a_turn_does_not_end_it(void **state)
{
	uint64_t first;
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	pass(&h, MS);
	first = have(&h, 20) == GP_STOP ? 30 : 20;
	for (int i = 0; i < 20; i++) {
		busy(&h, 10);
		pass(&h, MS);
		idle(&h, 10);
		pass(&h, 2 * MS);
	}
	assert_int_not_equal(have(&h, first), GP_STOP);
	assert_int_equal(h.count[0].stops, 1);
	host_free(&h);
}

static void the_next_turn_begins_when_the_last_one_is_off(void **state)
{
	uint64_t first, second;
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	pass(&h, QUANTUM_NS - 1);
	first = have(&h, 20) == GP_STOP ? 30 : 20;
	second = 50 - first;
	pass(&h, 1);
	assert_int_equal(state_of(&h, first), GP_QUEUE_SUSPENDING);
	assert_int_equal(state_of(&h, second), GP_QUEUE_SUSPENDED);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, first), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, second), GP_QUEUE_RESUMING);
	pass(&h, QUANTUM_NS - STOP_NS); /* a queue that goes while it is being stopped holds up nobody */
	assert_int_equal(state_of(&h, second), GP_QUEUE_SUSPENDING);
	remove_queue(&h, second);
	settle(&h);
	assert_int_equal(state_of(&h, first), GP_QUEUE_RESUMING);
	host_free(&h);
}

static void a_stop_that_is_never_answered_does_not_keep_the_next_one_waiting_for_ever(void **state)
{
	uint64_t first;
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	pass(&h, QUANTUM_NS - 1);
	first = have(&h, 20) == GP_STOP ? 30 : 20;
	h.stop_ns[GP_MECH_INTERRUPT] = 1000 * MS;
	pass(&h, 1 + 50 * MS + RESUME_NS); /* in one go: nothing but the core's own answer wakes the host */
	assert_int_equal(state_of(&h, first), GP_QUEUE_SUSPENDING);
	assert_int_equal(state_of(&h, 50 - first), GP_QUEUE_RUNNING);
	assert_int_equal(h.count[0].at_ns, h.now - RESUME_NS);
	host_free(&h);
}

static void one_that_will_not_stay_stopped_does_not_keep_the_next_one_waiting_for_ever(void **state)
{
	uint64_t first, end;
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	pass(&h, QUANTUM_NS - 1 - STOP_NS);
	first = have(&h, 20) == GP_STOP ? 30 : 20;
	queue(&h, 11, 1, 0);
	assert_int_equal(core_hold(h.core, 11, GP_NEVER, h.now), 0);
	pass(&h, STOP_NS);
	h.stop_ns[GP_MECH_INTERRUPT] = MS; /* few enough for the budget */
	pass(&h, 1);
	end = h.now + 51 * MS;
	while (h.now < end) { /* each time it is stopped it goes on at once, and is to be stopped again */
		h.now += MS;
		assert_int_equal(core_release(h.core, 11, h.now), 0); /* nor do others that come and go */
		assert_int_equal(core_hold(h.core, 11, GP_NEVER, h.now), 0);
		host_answer_due(&h);
		if (have(&h, first) == GP_STOP)
			host_unasked(&h, first, GP_RUN);
		settle(&h);
	}
	assert_int_equal(state_of(&h, 50 - first), GP_QUEUE_RUNNING);
	host_free(&h);
}

/* Holds the one queue and lets the other go on, in one step. */
static void swap_held(struct host *h, uint64_t held, uint64_t released)
{
	assert_int_equal(core_hold(h->core, held, GP_NEVER, h->now), 0);
	assert_int_equal(core_release(h->core, released, h->now), 0);
	settle(h);
}

static void each_turn_waits_as_long_for_the_one_before(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	queue(&h, 11, 1, 0);
	swap_held(&h, 10, 11);
	pass(&h, MS);
	swap_held(&h, 11, 10);
	pass(&h, 30 * MS);
	assert_int_equal(state_of(&h, 10), GP_QUEUE_RUNNING);
	h.stop_ns[GP_MECH_INTERRUPT] = 40 * MS;
	swap_held(&h, 10, 11);
	pass(&h, 40 * MS - 1);
	assert_int_equal(state_of(&h, 11), GP_QUEUE_SUSPENDED);
	pass(&h, 1);
	assert_int_equal(state_of(&h, 11), GP_QUEUE_RESUMING);
	host_free(&h);
}

static void where_there_are_no_turns_nobody_waits_for_a_stop(void **state)
{
	struct host h;

	(void)state;
	for (int i = 0; i < 2; i++) {
		start(&h, i ? CAPS_YIELD : CAPS_TURNS);
		client_with(&h, 1, i ? GP_CLASS_ONLINE : GP_CLASS_OFFLINE, 0, 0);
		queue(&h, 10, 1, 0);
		queue(&h, 11, 1, 0);
		swap_held(&h, 10, 11);
		pass(&h, MS);
		swap_held(&h, 11, 10);
		assert_int_equal(state_of(&h, 10), GP_QUEUE_RESUMING);
		assert_int_equal(state_of(&h, 11), GP_QUEUE_SUSPENDING);
		host_free(&h);
	}
}

static void a_turn_that_waits_for_a_stop_does_not_end_the_back_off(void **state)
{
	uint64_t until_ns;
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	for (uint64_t id = 2; id < 5; id++)
		offline(&h, id);
	assert_int_equal(core_hold(h.core, 30, GP_NEVER, h.now), 0);
	pass(&h, MS);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	h.only_queue = 20;
	while (queue_status(&h, 20).backoff_until_ns < h.now + 100 * MS) {
		assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0); /* it fails, and ends */
		pass(&h, MS);
	}
	until_ns = queue_status(&h, 20).backoff_until_ns;
	idle(&h, 20); /* it takes no turn */
	h.stop_ns[GP_MECH_INTERRUPT] = 1000 * MS;
	assert_int_equal(core_hold(h.core, 40, GP_NEVER, h.now), 0);
	settle(&h);
	assert_int_equal(core_release(h.core, 30, h.now), 0);
	pass(&h, 50 * MS + RESUME_NS);
	assert_int_equal(state_of(&h, 40), GP_QUEUE_SUSPENDING);
	assert_int_equal(state_of(&h, 30), GP_QUEUE_RUNNING);
	assert_int_equal(queue_status(&h, 20).backoff_until_ns, until_ns);
	host_free(&h);
}

static void a_turn_that_cannot_be_taken_from_one_is_given_to_the_other_all_the_same(void **state)
{
	uint64_t first;
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	pass(&h, QUANTUM_NS - 1);
	first = have(&h, 20) == GP_STOP ? 30 : 20;
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	pass(&h, 1 + STOP_NS + RESUME_NS);
	assert_int_equal(state_of(&h, first), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 50 - first), GP_QUEUE_RUNNING);
	host_free(&h);
}

/* Those that are neither stopped nor in the background, of clients 2 to 4. */
static uint32_t with_slices_of_their_own(struct host *h)
{
	uint32_t n = 0;

	for (uint64_t handle = 20; handle <= 40; handle += 10)
		n += have(h, handle) == GP_RUN;
	return n;
}

/* Three offline clients; the driver refuses to stop any of them. */
static void start_unstoppable(struct host *h, int32_t error)
{
	start(h, CAPS_TURNS);
	h->stop_error[GP_MECH_INTERRUPT] = error;
	for (uint64_t id = 2; id <= 4; id++)
		offline(h, id);
	online(h, 1);
	pass(h, 10 * MS);
}

static void several_that_cannot_be_stopped_are_all_in_the_background_and_nobody_asks_again(void **state)
{
	struct gp_stats stats;
	struct host h;
	uint32_t stops;

	(void)state;
	start_unstoppable(&h, -ENOTSUP);
	pass(&h, 3 * QUANTUM_NS); /* each had a turn */
	stops = h.count[0].stops;
	assert_in_range(stops, 1, 3);
	assert_string_equal(status_of(&h, 0).reason,
			    "client 2 cannot be stopped: Operation not supported; it stays in the background "
			    "instead");
	for (int i = 0; i < 60; i++) {
		hint(&h, 1);
		hint(&h, 1);
		pass(&h, 5 * MS);
		assert_int_equal(with_slices_of_their_own(&h), 0);
		assert_int_equal(not_stopped(&h, 2, 4), 3);
		hint_over(&h, 1);
		hint_over(&h, 1);
		pass(&h, 5 * MS);
	}
	assert_int_equal(h.count[0].stops, stops);
	assert_int_equal(status_of(&h, 0).failures, stops);
	assert_int_equal(gp_core_device_stats(h.core, 0, &stats, h.now), 0);
	assert_int_equal(stats.backing_off, 3);
	remove_queue(&h, 10);
	assert_int_equal(gp_core_device_stats(h.core, 0, &stats, h.now), 0);
	assert_int_equal(stats.backing_off, 0);
	host_free(&h);
}

static void those_that_cannot_be_stopped_have_slices_of_their_own_every_max_starve(void **state)
{
	uint64_t with = 0;
	struct host h;

	(void)state;
	start_unstoppable(&h, -EPERM);
	for (int i = 0; i < 10000; i++) {
		pass(&h, MS);
		with += with_slices_of_their_own(&h) > 0;
	}
	/* 10 ms each second, all together; a call takes 50 us */
	assert_in_range(with, 9 * 10, 11 * 11);
	host_free(&h);
}

static void one_of_whose_queues_one_cannot_be_stopped_runs_with_all_and_is_asked_once(void **state)
{
	struct host h;

	(void)state;
	for (uint64_t refuses = 20; refuses <= 21; refuses++) { /* the first to be answered, or the last */
		start(&h, CAPS_TURNS);
		h.stop_error[GP_MECH_INTERRUPT] = -ENOTSUP;
		h.only_queue = refuses;
		offline(&h, 2);
		queue(&h, 21, 2, 0);
		offline(&h, 3);
		online(&h, 1);
		pass(&h, 10 * QUANTUM_NS);
		assert_int_equal(status_of(&h, 0).failures, 1);
		assert_int_equal(have(&h, 20), GP_BACKGROUND);
		assert_int_equal(have(&h, 21), GP_BACKGROUND);
		host_free(&h);
	}
}

static void the_only_one_that_cannot_be_stopped_yields_and_needs_no_slices(void **state)
{
	struct host h;

	(void)state;
	start_unstoppable(&h, -ENOTSUP);
	pass(&h, 3 * QUANTUM_NS);
	remove_queue(&h, 30);
	remove_queue(&h, 40);
	hint(&h, 1);
	pass(&h, MS);
	for (int i = 0; i < 5000; i++) {
		pass(&h, MS);
		assert_int_equal(have(&h, 20), GP_BACKGROUND);
	}
	host_free(&h);
}

static void who_refused_before_online_went_does_not_count_among_those_that_refuse_now(void **state)
{
	struct host h;

	(void)state;
	start_unstoppable(&h, -ENOTSUP);
	pass(&h, 3 * QUANTUM_NS);
	remove_queue(&h, 10);
	pass(&h, MS);
	h.only_queue = 20; /* the driver has learnt the rest */
	queue(&h, 11, 1, 0);
	pass(&h, 3 * QUANTUM_NS);
	for (int i = 0; i < 5000; i++) {
		pass(&h, MS);
		assert_int_equal(have(&h, 20), GP_BACKGROUND);
		assert_int_equal(queue_status(&h, 20).for_others, 0);
	}
	host_free(&h);
}

static void stopping_is_tried_again_when_the_next_online_client_comes_and_by_who_holds_it(void **state)
{
	struct host h;

	(void)state;
	start_unstoppable(&h, -ENOTSUP);
	pass(&h, 3 * QUANTUM_NS);
	h.stop_error[GP_MECH_INTERRUPT] = 0;
	pass(&h, 3 * QUANTUM_NS);
	assert_int_equal(not_stopped(&h, 2, 4), 3);
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	pass(&h, MS);
	assert_int_equal(have(&h, 20), GP_STOP);
	assert_int_equal(core_release(h.core, 20, h.now), 0);
	pass(&h, QUANTUM_NS);
	assert_in_range(not_stopped(&h, 2, 4), 2, 3); /* the others are as they were */
	remove_queue(&h, 10);
	pass(&h, MS);
	assert_int_equal(not_stopped(&h, 2, 4), 3);
	queue(&h, 11, 1, 0);
	pass(&h, MS);
	assert_int_equal(not_stopped(&h, 2, 4), 1);
	host_free(&h);
}

static void hint_all_the_time(struct host *h, uint64_t ns)
{
	for (uint64_t end = h->now + ns; h->now < end; pass(h, 100 * MS))
		hint(h, 1);
}

/* Neither of two could be stopped; and after their slice they cannot yield. */
static void start_refusing_all(struct host *h, int stop_first)
{
	start_refusing_on(h, CAPS_TURNS, stop_first ? 0 : -ENOTSUP);
	h->only_queue = 0;
	h->resume_error = 0;
	h->stop_error[GP_MECH_INTERRUPT] = -ENOTSUP;
	pass(h, QUANTUM_NS);
	for (int i = 0; i < 3000 && have(h, 20) != GP_RUN; i++)
		pass(h, MS);
	assert_int_equal(have(h, 20), GP_RUN);
	h->resume_error = stop_first ? -ENOTSUP : 0;
	pass(h, 20 * MS);
	h->resume_error = 0;
	assert_int_equal(have(h, 20), GP_RUN);
}

static void who_can_neither_yield_nor_be_stopped_is_tried_again_until_it_can(void **state)
{
	struct host h;

	(void)state;
	for (int stop_first = 0; stop_first < 2; stop_first++) {
		uint32_t stops;

		start_refusing_all(&h, stop_first);
		hint_all_the_time(&h, 5 * SEC);
		assert_int_equal(have(&h, 20), GP_RUN);
		assert_string_equal(status_of(&h, 0).reason,
				    "client 2 was not stopped: Operation not supported");
		stops = h.count[0].stops;
		hint_all_the_time(&h, 5 * SEC);
		assert_in_range(h.count[0].stops - stops, 2, 20); /* it backs off */
		h.stop_error[GP_MECH_INTERRUPT] = 0;
		hint_all_the_time(&h, 5 * SEC);
		assert_int_equal(have(&h, 20), GP_STOP);
		host_free(&h);
	}
}

static void whose_stop_failed_for_now_yields_until_it_is_tried_again(void **state)
{
	struct host h;
	uint32_t stops;

	(void)state;
	start_unstoppable(&h, -EIO);
	stops = h.count[0].stops;
	for (int i = 0; i < 1000; i++) {
		pass(&h, MS);
		assert_int_equal(with_slices_of_their_own(&h), 0);
	}
	assert_true(h.count[0].stops > stops);
	h.stop_error[GP_MECH_INTERRUPT] = 0;
	pass(&h, 2 * SEC);
	assert_int_equal(not_stopped(&h, 2, 4), 1);
	host_free(&h);
}

static void without_turns_all_are_in_the_background_together(void **state)
{
	struct gp_core_opts opts = { .no_turns = 1 };
	struct host h;

	(void)state;
	start_with(&h, CAPS_TURNS, &opts);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	busy(&h, 10);
	pass(&h, SEC);
	assert_int_equal(have(&h, 20), GP_BACKGROUND);
	assert_int_equal(have(&h, 30), GP_BACKGROUND);
	assert_int_equal(h.count[0].actions, 1);
	host_free(&h);
}

static void turns_end_when_online_leaves_and_when_one_is_left(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_TURNS);
	online(&h, 1);
	offline(&h, 2);
	offline(&h, 3);
	pass(&h, 50 * MS);
	assert_int_equal(not_stopped(&h, 2, 3), 1);
	idle(&h, 20);
	pass(&h, MS);
	assert_int_not_equal(have(&h, 30), GP_STOP);
	assert_int_equal(not_stopped(&h, 2, 3), 2); /* who has no work may run */
	busy(&h, 20);
	pass(&h, MS);
	assert_int_equal(not_stopped(&h, 2, 3), 1);
	remove_queue(&h, 10);
	pass(&h, MS);
	assert_int_equal(have(&h, 20), GP_RUN);
	assert_int_equal(have(&h, 30), GP_RUN);
	host_free(&h);
}

/* programs on several devices */

static void start_gang(struct host *h, const struct gp_core_opts *opts)
{
	start_with(h, CAPS_STOP, opts);
	device(h, 1, CAPS_STOP);
	online(h, 1);
	offline(h, 2);
	queue(h, 21, 2, 1);
}

static void a_program_on_two_devices_stops_and_goes_on_on_both_together(void **state)
{
	struct gp_core_opts opts = { 0 };
	struct host h;

	(void)state;
	start_gang(&h, &opts);
	offline(&h, 3); /* on device 0 alone */
	client_with(&h, 4, GP_CLASS_OFFLINE, 0, 0);
	queue(&h, 41, 4, 1); /* on device 1 alone */
	busy(&h, 10);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 41), GP_QUEUE_RUNNING);
	idle(&h, 10);
	pass(&h, LINGER_NS + RESUME_NS);
	assert_all_run(&h);
	host_free(&h);
}

static void of_a_program_on_two_devices_what_has_no_work_is_left_alone(void **state)
{
	struct gp_core_opts opts = { 0 };
	struct host h;

	(void)state;
	start_gang(&h, &opts);
	idle(&h, 21);
	busy(&h, 10);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_RUNNING);
	busy(&h, 21);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_SUSPENDED);
	idle(&h, 20); /* so nothing of it waits where online works */
	pass(&h, RESUME_NS);
	assert_all_run(&h);
	host_free(&h);
}

static void a_program_on_two_devices_that_starves_gets_its_slice_on_both(void **state)
{
	struct gp_core_opts opts = { .max_starve_ns = 100 * MS, .starve_slice_ns = 10 * MS };
	struct host h;

	(void)state;
	start_gang(&h, &opts);
	busy(&h, 10);
	pass(&h, 100 * MS + RESUME_NS);
	assert_all_run(&h);
	pass(&h, 10 * MS + STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void a_program_on_two_devices_that_waits_for_one_and_then_for_the_other_starves_all_the_same(
	void **state)
{
	struct gp_core_opts opts = { .max_starve_ns = 100 * MS, .starve_slice_ns = 10 * MS };
	uint64_t ran;
	struct host h;

	(void)state;
	start_gang(&h, &opts);
	client_with(&h, 3, GP_CLASS_ONLINE, 0, 0);
	queue(&h, 31, 3, 1);
	busy(&h, 10);
	pass(&h, STOP_NS);
	ran = run_time(&h, 20);
	for (int i = 0; i < 10; i++) { /* there is always one that works */
		busy(&h, 31);
		pass(&h, MS);
		idle(&h, 10);
		pass(&h, 80 * MS);
		busy(&h, 10);
		pass(&h, MS);
		idle(&h, 31);
		pass(&h, 80 * MS);
	}
	assert_in_range(run_time(&h, 20) - ran, 12 * 10 * MS, 16 * 11 * MS); /* in 1620 ms */
	host_free(&h);
}

static void a_program_on_two_devices_waits_where_others_have_their_turn(void **state)
{
	struct gp_core_opts opts = { .quantum_ns = QUANTUM_NS };
	uint64_t alone;
	struct host h;

	(void)state;
	start_gang(&h, &opts);
	offline(&h, 3);
	client_with(&h, 4, GP_CLASS_OFFLINE, 0, 0);
	queue(&h, 41, 4, 1);
	set_policy(&h, 0, &gp_policy_fair);
	set_policy(&h, 1, &gp_policy_fair);
	pass(&h, 2 * SEC);
	alone = run_time(&h, 30) < run_time(&h, 41) ? run_time(&h, 30) : run_time(&h, 41);
	assert_true(run_time(&h, 20) < 2 * SEC * 9 / 10);
	assert_in_range(run_time(&h, 21), run_time(&h, 20) * 95 / 100, run_time(&h, 20) * 105 / 100);
	assert_true(alone > SEC / 2);
	host_free(&h);
}

/* Device 0 keeps the program waiting; on device 1, where it would yield, a request is open all the time. */
static void a_starved_programs_slice_is_on_all_its_devices(void **state)
{
	struct gp_core_hint forever = { .client = 3, .expiry_ns = GP_NEVER, .device = 1 };
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	device(&h, 1, CAPS_TURNS);
	online(&h, 1);
	client_with(&h, 3, GP_CLASS_ONLINE, 0, 0);
	queue(&h, 31, 3, 1);
	client_with(&h, 2, GP_CLASS_OFFLINE, 0, 0);
	busy(&h, 10);
	assert_int_equal(gp_core_hint_begin(h.core, &forever, h.now), 0);
	queue(&h, 20, 2, 0);
	queue(&h, 21, 2, 1);
	pass(&h, 10 * SEC);
	assert_in_range(run_time(&h, 20), 9 * 10 * MS, 11 * 10 * MS);
	assert_in_range(run_time(&h, 21), 9 * 10 * MS, 11 * 10 * MS);
	host_free(&h);
}

static void what_a_program_has_on_a_device_apart_gets_it_nothing_on_another(void **state)
{
	struct gp_core_opts opts = { .quantum_ns = QUANTUM_NS };
	struct host h;

	(void)state;
	start_with(&h, CAPS_STOP, &opts);
	device(&h, 1, CAPS_STOP | GP_CORE_APART);
	set_policy(&h, 0, &gp_policy_fair);
	set_policy(&h, 1, &gp_policy_fifo);
	offline(&h, 2);
	queue(&h, 21, 2, 1); /* there it may always run */
	offline(&h, 3);
	pass(&h, 2 * SEC);
	assert_in_range(run_time(&h, 20), SEC * 9 / 10, SEC * 11 / 10);
	assert_in_range(run_time(&h, 30), SEC * 9 / 10, SEC * 11 / 10);
	host_free(&h);
}

static void two_programs_on_the_same_devices_do_not_wait_for_each_other(void **state)
{
	struct gp_core_opts opts = { .quantum_ns = QUANTUM_NS };
	uint64_t ran;
	struct host h;

	(void)state;
	start_gang(&h, &opts);
	client_with(&h, 3, GP_CLASS_OFFLINE, 0, 0);
	queue(&h, 31, 3, 1); /* it comes first on one, and last on the other */
	queue(&h, 30, 3, 0);
	remove_queue(&h, 21);
	queue(&h, 21, 2, 1);
	set_policy(&h, 0, &gp_policy_fair);
	set_policy(&h, 1, &gp_policy_fair);
	pass(&h, 5 * MS); /* within the first slices: each device has picked another one */
	ran = run_time(&h, 20) + run_time(&h, 30);
	pass(&h, SEC);
	assert_true(run_time(&h, 20) + run_time(&h, 30) - ran > SEC * 9 / 10);
	assert_true(run_time(&h, 20) > SEC / 3 && run_time(&h, 30) > SEC / 3);
	host_free(&h);
}

/* queues of one client that are not alike */

static int set_class(struct host *h, uint64_t handle, uint32_t client_class)
{
	return gp_core_queue_class(h->core, handle, client_class, h->now);
}

static void a_client_with_queues_of_both_classes_is_stopped_for_itself(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	queue(&h, 21, 2, 0);
	assert_int_equal(set_class(&h, 21, GP_CLASS_ONLINE), 0);
	assert_int_equal(queue_status(&h, 21).client_class, GP_CLASS_ONLINE);
	assert_int_equal(queue_status(&h, 20).client_class, GP_CLASS_OFFLINE);
	busy(&h, 21);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_RUNNING);
	idle(&h, 21);
	pass(&h, LINGER_NS + RESUME_NS);
	assert_all_run(&h);
	host_free(&h);
}

static void a_queue_takes_what_it_is_and_who_holds_it_to_its_new_class(void **state)
{
	struct host h;

	(void)state;
	start_stopped(&h);
	queue(&h, 21, 2, 0);
	pass(&h, STOP_NS);
	assert_int_equal(core_hold(h.core, 21, GP_NEVER, h.now), 0);
	assert_int_equal(set_class(&h, 20, GP_CLASS_ONLINE), 0);
	assert_int_equal(set_class(&h, 21, GP_CLASS_ONLINE), 0);
	pass(&h, RESUME_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING); /* an online queue is not stopped for another */
	assert_int_equal(state_of(&h, 21), GP_QUEUE_SUSPENDED);
	assert_int_equal(queue_status(&h, 21).held, 1);
	assert_int_equal(set_class(&h, 20, GP_CLASS_UNKNOWN), 0); /* as its client again */
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(set_class(&h, 20, GP_CLASS_ONLINE + 1), -EINVAL);
	assert_int_equal(set_class(&h, 99, GP_CLASS_ONLINE), -ENOENT);
	host_free(&h);
}

static void a_change_of_a_clients_class_leaves_queues_with_their_own_alone(void **state)
{
	struct gp_core_client two = { .id = 2, .client_class = GP_CLASS_ONLINE };
	struct host h;

	(void)state;
	start_stopped(&h);
	queue(&h, 21, 2, 0);
	assert_int_equal(set_class(&h, 21, GP_CLASS_OFFLINE), 0);
	pass(&h, STOP_NS);
	assert_int_equal(gp_core_client_change(h.core, &two, h.now), 0);
	pass(&h, RESUME_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void a_queue_that_nobody_can_stop_is_left_alone_and_its_client_stopped_otherwise(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	queue(&h, 21, 2, 0);
	assert_int_equal(gp_core_queue_reach(h.core, 20, GP_REACH_NONE, h.now), 0);
	busy(&h, 10);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_SUSPENDED);
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), -ENOTSUP);
	assert_int_equal(gp_core_queue_reach(h.core, 20, GP_REACH_ALL, h.now), 0);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(gp_core_queue_reach(h.core, 99, GP_REACH_ALL, h.now), -ENOENT);
	host_free(&h);
}

static void a_queue_of_which_nobody_knows_whether_it_runs_is_resumed_before_it_is_stopped_again(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	h.stop_error[GP_MECH_INTERRUPT] = -ETIMEDOUT;
	busy(&h, 10);
	pass(&h, STOP_NS);
	h.stop_error[GP_MECH_INTERRUPT] = 0;
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RESUMING);
	assert_int_equal(h.count[0].runs, 1);
	assert_int_equal(h.count[0].stops, 1);
	pass(&h, RESUME_NS + 2 * MS);
	assert_int_equal(h.count[0].stops, 2);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

/* wants that overtake */

static void where_wants_overtake_a_resume_does_not_wait_for_the_stop(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP | GP_CORE_OVERTAKES);
	offline(&h, 2);
	h.stop_ns[GP_MECH_INTERRUPT] = 10 * SEC; /* it drains */
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	pass(&h, MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDING);
	assert_int_equal(core_release(h.core, 20, h.now), 0);
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0); /* nothing is said of a change of mind */
	settle(&h);
	assert_int_equal(h.count[0].runs, 0);
	assert_int_equal(core_release(h.core, 20, h.now), 0);
	pass(&h, RESUME_NS);
	assert_int_equal(h.count[0].runs, 1);
	assert_all_run(&h);
	host_free(&h);
}

static void where_wants_overtake_a_policy_does_not_wait_for_a_gentle_stop(void **state)
{
	const struct gp_hold drain = {
		.holder = 1, .owner = 2, .queue = 20, .until_ns = GP_NO_LEASE, .most = 1, .gentle = 1
	};
	struct host h;

	(void)state;
	start(&h, CAPS_STOP | GP_CORE_OVERTAKES);
	online(&h, 1);
	offline(&h, 2);
	h.stop_ns[GP_MECH_INTERRUPT] = 10 * SEC; /* it drains */
	assert_int_equal(gp_core_hold(h.core, &drain, h.now), 0);
	pass(&h, MS);
	h.stop_ns[GP_MECH_INTERRUPT] = STOP_NS;
	busy(&h, 10);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_int_equal(h.count[0].stops, 2);
	idle(&h, 10);
	pass(&h, SEC);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED); /* it is held still */
	assert_int_equal(h.count[0].actions, 2);
	host_free(&h);
}

/* hints with numbers, and of a device */

static int hint_numbered(struct host *h, uint64_t number, uint32_t dev, uint64_t expiry_ns)
{
	const struct gp_core_hint hint = {
		.client = 1, .number = number, .device = dev, .expiry_ns = expiry_ns
	};

	return gp_core_hint_begin(h->core, &hint, h->now);
}

static int end_numbered(struct host *h, uint64_t number)
{
	return gp_core_hint_end(h->core, &(struct gp_core_hint){ .client = 1, .number = number }, h->now);
}

static void a_hint_with_a_number_ends_by_that_number_and_is_renewed_by_it(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	assert_int_equal(hint_numbered(&h, 7, GP_ALL_DEVICES, 0), 0);
	assert_int_equal(hint_numbered(&h, 8, GP_ALL_DEVICES, 0), 0);
	pass(&h, SEC / 2);
	assert_int_equal(hint_numbered(&h, 7, GP_ALL_DEVICES, 0), 0);
	assert_int_equal(end_numbered(&h, 9), -EALREADY);
	assert_int_equal(end_numbered(&h, 8), 0);
	pass(&h, SEC - MS); /* it would have expired, had it not been renewed */
	assert_int_equal(end_numbered(&h, 7), 0);
	assert_int_equal(end_numbered(&h, 7), -EALREADY);
	pass(&h, LINGER_NS + RESUME_NS);
	assert_all_run(&h);
	host_free(&h);
}

static void a_hint_says_itself_when_it_expires(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	assert_int_equal(hint_numbered(&h, 1, GP_ALL_DEVICES, 0), 0);
	assert_int_equal(hint_numbered(&h, 2, GP_ALL_DEVICES, 10 * MS), 0);
	assert_int_equal(end_numbered(&h, 1), 0);
	pass(&h, 10 * MS + LINGER_NS - 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	pass(&h, 1 + RESUME_NS);
	assert_all_run(&h);
	host_free(&h);
}

static void a_hint_of_one_device_leaves_the_others_alone(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	device(&h, 1, CAPS_STOP);
	online(&h, 1);
	queue(&h, 11, 1, 1);
	offline(&h, 2);
	offline(&h, 3);
	remove_queue(&h, 30);
	queue(&h, 31, 3, 1);
	assert_int_equal(hint_numbered(&h, 1, 1, 0), 0);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	assert_int_equal(state_of(&h, 31), GP_QUEUE_SUSPENDED);
	assert_int_equal(status_of(&h, 1).hinted, 1);
	assert_int_equal(status_of(&h, 0).hinted, 0);
	busy(&h, 10);
	settle(&h);
	assert_int_equal(status_of(&h, 0).sampled, 1);
	host_free(&h);
}

static void hints_end_with_who_gave_them(void **state)
{
	const struct gp_core_hint hers = { .client = 1, .number = 7, .giver = 100, .device = GP_ALL_DEVICES },
				  his = { .client = 1, .number = 7, .giver = 200, .device = GP_ALL_DEVICES };
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	assert_int_equal(gp_core_hint_begin(h.core, &hers, h.now), 0);
	assert_int_equal(gp_core_hint_begin(h.core, &his, h.now), 0);
	gp_core_hints_gone(h.core, 1, 100, h.now);
	gp_core_hints_gone(h.core, 99, 100, h.now);
	assert_int_equal(gp_core_hint_end(h.core, &hers, h.now), -EALREADY);
	pass(&h, 100 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	gp_core_hints_gone(h.core, 1, 200, h.now);
	pass(&h, LINGER_NS + RESUME_NS);
	assert_all_run(&h);
	host_free(&h);
}

static struct gp_core_usage usage_of(struct host *h, uint64_t client)
{
	struct gp_core_usage usage;

	assert_int_equal(gp_core_client_usage(h->core, client, &usage, h->now), 0);
	return usage;
}

static void what_a_client_had_is_counted_while_it_waits_and_after_its_queues_are_gone(void **state)
{
	struct gp_core_usage usage, after;
	struct host h;
	uint64_t begin;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	begin = h.now;
	until(&h, 2 * SEC);
	usage = usage_of(&h, 2);
	assert_int_equal(usage.waits, 0);
	assert_int_equal(usage.waited_ns, 0);
	hint(&h, 1);
	until(&h, 2 * SEC + 300 * MS);
	assert_int_equal(usage_of(&h, 2).waits, 1);
	assert_int_equal(usage_of(&h, 2).waited_ns, 300 * MS);
	assert_int_equal(usage_of(&h, 2).ran_ns, usage.ran_ns);
	hint_over(&h, 1);
	until(&h, 3 * SEC);
	usage = usage_of(&h, 2);
	assert_int_equal(usage.waited_ns, 300 * MS + LINGER_NS);
	assert_int_equal(usage.waited_ns + usage.ran_ns, 3 * SEC - begin);
	assert_int_equal(gp_core_queue_remove(h.core, 20, h.now), 0);
	until(&h, 4 * SEC);
	after = usage_of(&h, 2);
	assert_memory_equal(&after, &usage, sizeof(usage));
	assert_int_equal(gp_core_client_usage(h.core, 9, &after, h.now), -ENOENT);
	host_free(&h);
}

static void what_is_said_of_a_client_is_so(void **state)
{
	struct gp_core_seat seats[2];
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	client_with(&h, 2, GP_CLASS_OFFLINE, 0, 300);
	queue(&h, 20, 2, 0);
	queue(&h, 21, 2, 0);
	until(&h, 20 * SEC);
	hint(&h, 1);
	until(&h, 20 * SEC + 900 * MS);
	assert_int_equal(gp_core_seats(h.core, 1, seats, 2, h.now), 1);
	assert_int_equal(seats[0].state, GP_CLIENT_RUNNING);
	assert_int_equal(seats[0].hints, 1);
	assert_int_equal(seats[0].hinted, 1);
	assert_int_equal(seats[0].sampled, 0);
	assert_int_equal(seats[0].share_permille, 1000 * 900 / 9900);
	assert_int_equal(gp_core_seats(h.core, 2, seats, 2, h.now), 1);
	assert_int_equal(seats[0].state, GP_CLIENT_WAITING);
	assert_int_equal(seats[0].client_class, GP_CLASS_OFFLINE);
	assert_int_equal(seats[0].weight, 300);
	assert_int_equal(seats[0].queues, 2);
	assert_int_equal(seats[0].stopped, 2);
	assert_int_equal(seats[0].resuming, 0);
	assert_int_equal(seats[0].share_permille, 1000 * 9000 / 9900);
	hint_over(&h, 1);
	pass(&h, 10 * MS);
	assert_int_equal(gp_core_seats(h.core, 1, seats, 1, h.now), 1);
	assert_int_equal(seats[0].state, GP_CLIENT_IDLE);
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now) + core_hold(h.core, 21, GP_NEVER, h.now), 0);
	assert_int_equal(gp_core_seats(h.core, 2, seats, 1, h.now), 1);
	assert_int_equal(seats[0].state, GP_CLIENT_HELD);
	assert_int_equal(gp_core_seats(h.core, 2, NULL, 0, h.now), 1);
	assert_int_equal(gp_core_seats(h.core, 9, seats, 1, h.now), -ENOENT);
	host_free(&h);
}

/* holds */

static const struct gp_hold gentle = {
	.holder = 1, .owner = 2, .queue = 10, .client = 1, .until_ns = GP_NO_LEASE, .most = 9, .gentle = 1
};

static void online_work_that_is_let_run_empty_counts_until_it_stands_still(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP | GP_CORE_OVERTAKES);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, STOP_NS);
	h.stop_ns[GP_MECH_INTERRUPT] = 500 * MS;
	assert_int_equal(gp_core_hold(h.core, &gentle, h.now), 0);
	pass(&h, 400 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	pass(&h, 100 * MS + LINGER_NS + RESUME_NS);
	assert_int_equal(state_of(&h, 10), GP_QUEUE_SUSPENDED);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	host_free(&h);
}

static void a_stop_that_is_for_the_policy_too_is_asked_for_once(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP | GP_CORE_OVERTAKES);
	online(&h, 1);
	offline(&h, 2);
	queue(&h, 21, 2, 0);
	busy(&h, 10);
	(void)gp_core_run(h.core, h.now); /* the policy has decided */
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	settle(&h);
	assert_int_equal(gp_core_queue_reach(h.core, 20, GP_REACH_ALL, h.now), 0); /* it is looked at again */
	pass(&h, STOP_NS);
	assert_int_equal(h.count[0].stops, 2); /* one of each */
	host_free(&h);
}

static void what_a_stop_for_the_policy_costs_is_measured_where_wants_overtake_too(void **state)
{
	struct host h;

	(void)state;
	start(&h, CAPS_STOP | GP_CORE_OVERTAKES);
	h.stop_ns[GP_MECH_INTERRUPT] = 3 * MS;
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, 3 * MS);
	idle(&h, 10);
	pass(&h, 6 * MS - 1);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	pass(&h, 1 + RESUME_NS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_RUNNING);
	host_free(&h);
}

static void who_holds_a_clients_new_queues_holds_one_that_is_adopted_until_the_client_is_freed(void **state)
{
	const struct gp_hold new_too = { .holder = 1,
					 .owner = 2,
					 .queue = 20,
					 .client = 2,
					 .until_ns = GP_NO_LEASE,
					 .new_queues = 1,
					 .most = 9 };
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	assert_int_equal(gp_core_hold(h.core, &new_too, h.now), 0);
	queue(&h, 21, 2, 0);
	assert_int_equal(gp_core_adopt(h.core, 21, h.now), 0);
	pass(&h, STOP_NS);
	assert_int_equal(state_of(&h, 21), GP_QUEUE_SUSPENDED);
	gp_core_free_client(h.core, 2, h.now);
	pass(&h, RESUME_NS);
	assert_all_run(&h);
	queue(&h, 22, 2, 0);
	assert_int_equal(gp_core_adopt(h.core, 22, h.now), 0);
	pass(&h, STOP_NS);
	assert_all_run(&h);
	assert_int_equal(gp_core_adopt(h.core, 99, h.now), -ENOENT);
	host_free(&h);
}

static void a_device_goes_when_nothing_is_on_it(void **state)
{
	struct gp_core_status s;
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	offline(&h, 2);
	assert_int_equal(gp_core_device_remove(h.core, 0, h.now), -EBUSY);
	assert_int_equal(gp_core_device_remove(h.core, 9, h.now), -ENOENT);
	pass(&h, MS);
	remove_queue(&h, 20);
	assert_int_equal(gp_core_device_remove(h.core, 0, h.now), 0);
	assert_int_equal(gp_core_device_status(h.core, 0, &s), -ENOENT);
	pass(&h, SEC);
	host_free(&h);
}

static void a_client_that_turns_online_leaves_no_trace_of_its_own_when_it_goes(void **state)
{
	struct gp_core_client two = { .id = 2, .client_class = GP_CLASS_ONLINE };
	struct host h;

	(void)state;
	start(&h, CAPS_YIELD);
	offline(&h, 2);
	queue(&h, 21, 2, 0);
	assert_int_equal(set_class(&h, 21, GP_CLASS_OFFLINE), 0);
	offline(&h, 3);
	assert_int_equal(gp_core_client_change(h.core, &two, h.now), 0);
	pass(&h, MS);
	assert_int_equal(have(&h, 30), GP_BACKGROUND);
	assert_int_equal(gp_core_client_remove(h.core, 2, h.now), 0);
	forget_queue(&h, 20);
	forget_queue(&h, 21);
	pass(&h, MS);
	assert_int_equal(have(&h, 30), GP_RUN); /* nobody is online any more */
	host_free(&h);
}

static void a_hint_of_one_device_sets_no_deadline_on_another(void **state)
{
	const struct gp_core_hint there = { .client = 1, .number = 1, .device = 1 };
	struct gp_core_seat seats[2];
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	device(&h, 1, CAPS_STOP);
	client_with(&h, 1, GP_CLASS_ONLINE, 20 * MS, 0);
	queue(&h, 10, 1, 0);
	queue(&h, 11, 1, 1);
	assert_int_equal(gp_core_hint_begin(h.core, &there, h.now), 0);
	assert_int_equal(gp_core_seats(h.core, 1, seats, 2, h.now), 2);
	assert_int_equal(seats[0].hints, 0);
	assert_int_equal(seats[1].hints, 1);
	host_free(&h);
}

static void a_hint_that_expires_later_than_any_time_stays_open(void **state)
{
	const struct gp_core_hint endless = {
		.client = 1, .number = 1, .device = GP_ALL_DEVICES, .expiry_ns = UINT64_MAX - 1
	};
	struct host h;

	(void)state;
	start(&h, CAPS_STOP);
	online(&h, 1);
	offline(&h, 2);
	assert_int_equal(gp_core_hint_begin(h.core, &endless, h.now), 0);
	pass(&h, 500 * MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	host_free(&h);
}

static void options_that_change_hold_from_then_on(void **state)
{
	struct gp_core_opts never = { .max_starve_ns = GP_NEVER }, soon = { .max_starve_ns = 100 * MS };
	struct host h;

	(void)state;
	start_with(&h, CAPS_STOP, &never);
	online(&h, 1);
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, 2 * SEC);
	assert_int_equal(h.count[0].runs, 0);
	gp_core_change_opts(h.core, &soon);
	pass(&h, RESUME_NS);
	assert_int_equal(h.count[0].runs, 1);
	host_free(&h);
}

/* notes */

static struct gp_core_note noted[16];
static uint32_t nnoted;

static void take_note(void *arg, const struct gp_core_note *note)
{
	(void)arg;
	noted[nnoted++ % 16] = *note;
}

static void whoever_wants_to_know_is_told_what_became_of_a_queue(void **state)
{
	struct gp_core_opts opts = { .note = take_note };
	struct host h;

	(void)state;
	nnoted = 0;
	start_with(&h, CAPS_STOP, &opts);
	offline(&h, 2);
	assert_int_equal(core_hold(h.core, 20, h.now + MS, h.now), 0);
	pass(&h, STOP_NS);
	assert_int_equal(nnoted, 2);
	assert_int_equal(noted[0].kind, GP_NOTE_HELD);
	assert_int_equal(noted[1].kind, GP_NOTE_STOPPED);
	assert_int_equal(noted[1].queue, 20);
	assert_int_equal(noted[1].client, 2);
	assert_int_equal(noted[1].latency_ns, STOP_NS);
	h.resume_error = -EIO;
	pass(&h, MS - STOP_NS + RESUME_NS);
	assert_int_equal(nnoted, 4);
	assert_int_equal(noted[2].kind, GP_NOTE_HOLD_ENDED);
	assert_int_equal(noted[3].kind, GP_NOTE_RUNS);
	assert_int_equal(noted[3].status, -EIO);
	assert_int_equal(noted[3].tried, 1 + GP_ATTEMPT_RESUME);
	h.resume_error = 0;
	pass(&h, 10 * MS);
	assert_int_equal(nnoted, 5);
	assert_int_equal(noted[4].status, 0);
	h.stop_error[GP_MECH_INTERRUPT] = -EPERM;
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	pass(&h, STOP_NS);
	assert_int_equal(nnoted, 9); /* held, backs off, failed, ended */
	assert_int_equal(noted[6].kind, GP_NOTE_PUT_OFF);
	assert_int_equal(noted[7].kind, GP_NOTE_STOPPED);
	assert_int_equal(noted[7].status, -EPERM);
	assert_int_equal(noted[7].tried, 1 + GP_ATTEMPT_SUSPEND);
	assert_int_equal(noted[8].kind, GP_NOTE_HOLD_ENDED);
	host_free(&h);
}

static uint64_t run_a_stranger(struct gp_policy *p, uint64_t now)
{
	(void)now;
	(void)gp_policy_run(p, 99);
	return GP_NEVER;
}

static void who_wants_to_know_is_told_of_a_policy_that_is_ejected(void **state)
{
	static const struct gp_policy_ops bad = {
		.size = sizeof(bad), .abi = GP_POLICY_ABI, .name = "bad", .decide = run_a_stranger
	};
	struct gp_core_opts opts = { .note = take_note };
	struct host h;

	(void)state;
	nnoted = 0;
	start_with(&h, CAPS_STOP, &opts);
	set_policy(&h, 0, &bad);
	settle(&h);
	assert_int_equal(nnoted, 1);
	assert_int_equal(noted[0].kind, GP_NOTE_POLICY_EJECTED);
	assert_string_equal(status_of(&h, 0).ejection,
			    "policy bad ejected: ran client 99, which it does not own");
	assert_string_equal(status_of(&h, 0).policy, "fifo");
	host_free(&h);
}

/* What a step makes of what apply() says. */

static int apply_says; /* 1: nothing */

static int say_at_once(struct gp_backend *be, struct gp_want *wants, size_t n,
		       const struct gp_apply_opts *opts)
{
	(void)be;
	(void)opts;
	if (apply_says == 1)
		return -EIO;
	for (size_t i = 0; i < n; i++)
		wants[i].status = apply_says;
	return apply_says;
}

static int nothing_ended(struct gp_backend *be, struct gp_done *done, size_t n)
{
	(void)be;
	(void)done;
	(void)n;
	return 0;
}

static void what_apply_says_of_a_want_is_so_and_what_it_says_nothing_of_has_failed(void **state)
{
	static const struct gp_backend_ops ops = { .apply = say_at_once, .complete = nothing_ended };
	static const struct gp_core_host host = { .ops = &ops };
	static const struct {
		int says;
		uint32_t state, failures;
	} cases[] = {
		{ 0, GP_QUEUE_SUSPENDED, 0 },
		{ -EINPROGRESS, GP_QUEUE_SUSPENDING, 0 },
		{ -EIO, GP_QUEUE_RUNNING, 1 },
		{ 1, GP_QUEUE_RUNNING, 1 },
	};
	struct host h;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start(&h, CAPS_STOP);
		online(&h, 1);
		offline(&h, 2);
		busy(&h, 10);
		apply_says = cases[i].says;
		(void)gp_core_step(h.core, &host, h.now);
		assert_int_equal(queue_status(&h, 20).state, cases[i].state);
		assert_int_equal(status_of(&h, 0).failures, cases[i].failures);
		host_free(&h);
	}
}

/* A long run of whatever may happen. */

#define RANDOM_CLIENTS 8
#define RANDOM_QUEUES 24

struct random_run {
	struct host h;
	struct gp_random random;
	struct gp_core_opts opts;
	uint64_t next_queue;
	uint32_t classes[RANDOM_CLIENTS + 1]; /* by id; the client is there */
	uint32_t there[RANDOM_CLIENTS + 1];
	uint64_t hinted_ns[RANDOM_CLIENTS + 1];
	uint64_t client_of[RANDOM_QUEUES]; /* by place in the host, as are these */
	uint64_t changed_ns[RANDOM_QUEUES];
	uint64_t free_ns[RANDOM_QUEUES]; /* up to when it was held */
	uint64_t trouble_ns;             /* up to when resumes failed */
	uint64_t gone_ns;                /* when a queue last went, for which its client may linger */
	uint32_t activity[RANDOM_QUEUES];
};

static uint64_t draw(struct random_run *r, uint64_t below)
{
	return gp_random_between(&r->random, 0, below - 1);
}

static struct host_queue *any_queue(struct random_run *r)
{
	struct host_queue *q = &r->h.queues[draw(r, 2 * RANDOM_QUEUES)];

	return q->handle ? q : NULL;
}

static void random_client(struct random_run *r, uint64_t id)
{
	struct gp_core_client c = { .id = id,
				    .client_class = (uint32_t)draw(r, 3),
				    .slo_ns = draw(r, 2) * 20 * MS,
				    .weight = (uint32_t)draw(r, 400) };

	if (!r->there[id])
		assert_int_equal(gp_core_client_add(r->h.core, &c), 0);
	else if (draw(r, 4))
		assert_int_equal(gp_core_client_change(r->h.core, &c, r->h.now), 0);
	r->there[id] = 1;
}

static void random_departure(struct random_run *r, uint64_t id)
{
	if (!r->there[id] || draw(r, 4))
		return;
	assert_int_equal(gp_core_client_remove(r->h.core, id, r->h.now), 0);
	r->there[id] = 0;
	for (int i = 0; i < r->h.used; i++)
		if (r->h.queues[i].handle && r->client_of[i] == id)
			r->h.queues[i] = (struct host_queue){ 0 };
}

static void random_queue(struct random_run *r, uint64_t id)
{
	struct host_queue *old = any_queue(r), *place;

	if (old && !draw(r, 3)) {
		remove_queue(&r->h, old->handle);
		r->gone_ns = r->h.now;
	}
	place = host_place(&r->h);
	if (!r->there[id] || place - r->h.queues >= RANDOM_QUEUES)
		return;
	r->client_of[place - r->h.queues] = id;
	r->activity[place - r->h.queues] = GP_ACTIVITY_UNKNOWN;
	queue(&r->h, ++r->next_queue, id, (uint32_t)draw(r, HOST_DEVICES));
}

static void random_hold(struct random_run *r)
{
	struct host_queue *q = any_queue(r);
	int result;

	if (!q)
		return;
	if (draw(r, 2))
		result = core_release(r->h.core, q->handle, r->h.now);
	else
		result = core_hold(r->h.core, q->handle, r->h.now + draw(r, 20 * MS), r->h.now);
	assert_int_equal(result, 0);
}

/* Some queues are of another class than their client. */
static void random_kind(struct random_run *r)
{
	struct host_queue *q = any_queue(r);

	if (q)
		assert_int_equal(set_class(&r->h, q->handle, draw(r, 2) ? GP_CLASS_UNKNOWN : GP_CLASS_ONLINE),
				 0);
}

/* What goes wrong for now, and what a driver refuses for good. */
static void random_trouble(struct random_run *r)
{
	static const int32_t to_stop[] = { -EIO, -ETIMEDOUT, -ENOTSUP, -EPERM };
	static const int32_t to_resume[] = { -EIO, -ENOTSUP, -EPERM };
	struct host_queue *q = any_queue(r);

	r->h.stop_error[GP_MECH_INTERRUPT] = draw(r, 4) ? 0 : to_stop[draw(r, 4)];
	r->h.resume_error = draw(r, 4) ? 0 : to_resume[draw(r, 3)];
	r->h.only_queue = draw(r, 2) && q ? q->handle : 0;
	r->h.stop_ns[GP_MECH_INTERRUPT] = draw(r, 2 * MS);
	r->h.resume_ns = draw(r, MS);
	if (q && !q->under_way && q->have == GP_STOP && !draw(r, 4))
		host_unasked(&r->h, q->handle, GP_RUN);
}

/* Device 1 learns and forgets to yield, and what parks there changes. */
static void random_yielding(struct random_run *r)
{
	static const uint32_t caps[] = { CAPS_TURNS, CAPS_YIELD, CAPS_STOP };
	struct gp_core_opts opts = r->opts;

	opts.park_hints = (uint32_t)draw(r, 4);
	opts.no_turns = !draw(r, 4);
	opts.yield_on_demand = !draw(r, 4);
	gp_core_change_opts(r->h.core, &opts);
	assert_int_equal(gp_core_device_caps(r->h.core, 1, caps[draw(r, 3)]), 0);
}

static void random_policy(struct random_run *r)
{
	static const struct gp_policy_ops *const all[] = { &gp_policy_priority, &gp_policy_fair,
							   &gp_policy_deadline, &gp_policy_fifo };

	if (!draw(r, 4))
		set_policy(&r->h, (uint32_t)draw(r, HOST_DEVICES), all[draw(r, 4)]);
}

static void random_activity(struct random_run *r, const struct host_queue *q)
{
	uint32_t activity = (uint32_t)draw(r, 3);
	size_t place = (size_t)(q - r->h.queues);

	if (r->activity[place] != activity)
		r->changed_ns[place] = r->h.now;
	r->activity[place] = activity;
	assert_int_equal(gp_core_activity(r->h.core, q->handle, activity, r->h.now), 0);
}

static void random_event(struct random_run *r)
{
	uint64_t id = 1 + draw(r, RANDOM_CLIENTS);
	struct host_queue *q = any_queue(r);

	switch (draw(r, 18)) {
	case 0:
		random_client(r, id);
		break;
	case 16:
		random_kind(r);
		break;
	case 17:
		if (!draw(r, 4))
			random_yielding(r);
		break;
	case 1:
		random_departure(r, id);
		break;
	case 2:
	case 3:
		random_queue(r, id);
		break;
	case 4:
		random_hold(r);
		break;
	case 5:
		random_trouble(r);
		break;
	case 6:
		random_policy(r);
		break;
	case 7:
	case 8:
		if (core_hint_begin(r->h.core, id, r->h.now) == 0) /* refused to most: that is part of it */
			r->hinted_ns[id] = r->h.now;
		break;
	case 9:
	case 10:
		(void)core_hint_end(r->h.core, id, r->h.now);
		break;
	default:
		if (q)
			random_activity(r, q);
	}
}

/* May its client have work, or have had it less than a linger ago, or keep the device busy with a call? */
static int may_need_device(const struct random_run *r, int place)
{
	uint64_t hinted = r->hinted_ns[r->client_of[place]];

	if (r->h.queues[place].under_way || r->activity[place] != GP_ACTIVITY_IDLE)
		return 1;
	return r->h.now < r->changed_ns[place] + 10 * MS || (hinted && r->h.now < hinted + SEC + 10 * MS);
}

/* Whether the client has a queue there. */
static int is_on(struct random_run *r, uint64_t client, uint32_t dev)
{
	for (int i = 0; i < r->h.used; i++)
		if (r->h.queues[i].handle && r->client_of[i] == client &&
		    queue_status(&r->h, r->h.queues[i].handle).device == dev)
			return 1;
	return 0;
}

/* On a device that its client is on, of another client, or of this one and another class. */
static int is_other(struct random_run *r, int place, const struct gp_core_queue_status *s)
{
	struct gp_core_queue_status other = queue_status(&r->h, r->h.queues[place].handle);

	return is_on(r, s->client, other.device) &&
	       (other.client != s->client ||
		(other.client_class == GP_CLASS_ONLINE) != (s->client_class == GP_CLASS_ONLINE));
}

/* Whether a client may keep a place by a hint, though its last queue there is gone. */
static int may_keep_place(struct random_run *r, uint32_t dev)
{
	for (uint64_t id = 1; id <= RANDOM_CLIENTS; id++)
		if (r->there[id] && !is_on(r, id, dev) && r->hinted_ns[id] &&
		    r->h.now < r->hinted_ns[id] + SEC + 10 * MS)
			return 1;
	return 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Though it is needed, it has a slice every second, if nobody holds it and resumes work. */
static void check_starving(struct random_run *r, const struct host_queue *q, uint32_t held)
{
	uint64_t *free_ns = &r->free_ns[q - r->h.queues];

	if (r->h.resume_error)
		r->trouble_ns = r->h.now;
	if (held)
		*free_ns = r->h.now;
	assert_true(r->h.now < later(q->since_ns, later(*free_ns, r->trouble_ns)) + 4 * SEC);
}

/* A stopped queue is held, or somebody else needs its device, or giving it back failed just now. */
static void check_run(struct random_run *r)
{
	for (int i = 0; i < r->h.used; i++) {
		struct host_queue *q = &r->h.queues[i];
		struct gp_core_queue_status s;
		int others = r->h.now < r->gone_ns + 10 * MS;

		if (!q->handle || q->under_way || q->have != GP_STOP || q->status < 0)
			continue;
		s = queue_status(&r->h, q->handle);
		assert_int_equal(s.state, GP_QUEUE_SUSPENDED);
		for (int j = 0; j < r->h.used; j++)
			others += r->h.queues[j].handle && is_other(r, j, &s) && may_need_device(r, j);
		assert_true(s.held || others || may_keep_place(r, s.device));
		check_starving(r, q, s.held);
	}
}

/* All online work goes, all goes well: everyone runs. */
static void wind_down(struct random_run *r)
{
	r->h.stop_error[GP_MECH_INTERRUPT] = r->h.resume_error = 0;
	for (uint32_t dev = 0; dev < HOST_DEVICES; dev++)
		set_policy(&r->h, dev, &gp_policy_priority);
	for (int i = 0; i < r->h.used; i++) {
		uint64_t handle = r->h.queues[i].handle;

		if (!handle)
			continue;
		assert_int_equal(core_release(r->h.core, handle, r->h.now), 0);
		assert_int_equal(set_class(&r->h, handle, GP_CLASS_UNKNOWN), 0);
		if (queue_status(&r->h, handle).client_class == GP_CLASS_ONLINE)
			idle(&r->h, handle);
	}
	for (uint64_t id = 1; id <= RANDOM_CLIENTS; id++)
		while (core_hint_end(r->h.core, id, r->h.now) == 0)
			;
	for (uint64_t id = 1; id <= RANDOM_CLIENTS; id++) {
		struct gp_core_client c = { .id = id, .client_class = GP_CLASS_OFFLINE };

		if (r->there[id])
			assert_int_equal(gp_core_client_change(r->h.core, &c, r->h.now), 0);
	}
	pass(&r->h, 3 * SEC);
	assert_all_run(&r->h);
}

static void random_run(uint64_t seed)
{
	static const uint32_t caps[HOST_DEVICES] = { CAPS_STOP | GP_CORE_OVERTAKES, CAPS_TURNS,
						     GP_CAP_INTERRUPT };
	struct gp_core_opts opts = { .max_stops_per_s = seed % 2 ? 0 : 20, /* enough for all, or for some */
				     .park_hints = (uint32_t)(seed % 3) };
	static struct random_run r;

	memset(&r, 0, sizeof(r));
	gp_random_init(&r.random, seed, 0);
	r.opts = opts;
	host_init(&r.h, &opts);
	for (uint32_t dev = 0; dev < HOST_DEVICES; dev++)
		device(&r.h, dev, caps[dev]);
	for (int i = 0; i < 10000; i++) {
		random_event(&r);
		if (draw(&r, 4))
			pass(&r.h, draw(&r, 3) ? draw(&r, 2 * MS) : draw(&r, 200 * MS));
		settle(&r.h);
		check_run(&r);
		if (i % 1000 == 999)
			wind_down(&r);
	}
	for (uint32_t dev = 0; dev < HOST_DEVICES; dev++)
		assert_int_equal(status_of(&r.h, dev).ejected, 0);
	assert_true(r.h.count[0].stops > 100 && r.h.count[1].stops > 100 && r.h.count[2].stops > 100);
	host_free(&r.h);
}

static void whatever_happens_nobody_stays_stopped_for_nobody(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		random_run(seed);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(offline_is_stopped_while_online_is_busy_and_given_back_after_the_linger),
	cmocka_unit_test(what_was_done_is_counted_and_measured),
	cmocka_unit_test(a_hint_stops_offline_before_any_work_is_there),
	cmocka_unit_test(two_hints_need_two_ends),
	cmocka_unit_test(what_apply_says_of_a_want_is_so_and_what_it_says_nothing_of_has_failed),
	cmocka_unit_test(each_hint_that_is_never_ended_expires_a_second_after_it_began),
	cmocka_unit_test(hints_die_with_their_client),
	cmocka_unit_test(hints_are_refused_from_who_may_not_give_them),
	cmocka_unit_test(a_hint_before_the_first_queue_frees_the_only_device_until_it_ends),
	cmocka_unit_test(the_first_queue_takes_the_place_that_a_hint_has_kept_for_it),
	cmocka_unit_test(a_place_kept_by_a_hint_outlives_a_change_of_weight_and_not_one_of_class),
	cmocka_unit_test(a_hint_before_the_first_queue_on_one_of_two_devices_must_name_it),
	cmocka_unit_test(a_client_that_turns_offline_preempts_nobody_by_a_place_that_a_hint_kept),
	cmocka_unit_test(a_hint_outlives_the_last_queue_and_a_device_does_not_stay_for_it),
	cmocka_unit_test(a_device_apart_which_anybody_may_bring_leaves_another_the_only_one),
	cmocka_unit_test(an_online_queue_of_unknown_activity_is_no_work_by_itself),
	cmocka_unit_test(a_client_of_unknown_class_is_stopped_like_an_offline_one),
	cmocka_unit_test(two_requests_in_a_row_cost_one_preemption),
	cmocka_unit_test(the_linger_is_twice_the_measured_cost_where_that_is_longer),
	cmocka_unit_test(what_a_stop_costs_counts_from_when_it_was_taken_not_from_the_decision),
	cmocka_unit_test(what_nobody_else_sees_has_no_cost_to_linger_for),
	cmocka_unit_test(a_linger_that_was_set_is_kept_whatever_the_cost),
	cmocka_unit_test(without_online_work_nothing_is_called),
	cmocka_unit_test(without_offline_work_nothing_is_called),
	cmocka_unit_test(where_nothing_changes_there_is_no_action),
	cmocka_unit_test(a_stopped_client_that_has_no_more_work_is_given_back),
	cmocka_unit_test(a_change_of_mind_before_the_action_is_taken_costs_nothing),
	cmocka_unit_test(a_change_of_mind_while_a_stop_is_under_way_follows_when_it_is_done),
	cmocka_unit_test(a_change_of_mind_while_a_resume_is_under_way_follows_when_it_is_done),
	cmocka_unit_test(stops_and_resumes_of_one_step_come_in_one_list),
	cmocka_unit_test(all_queues_of_all_offline_clients_are_stopped_in_one_list),
	cmocka_unit_test(a_list_holds_as_many_wants_as_there_are_queues),
	cmocka_unit_test(offline_waits_for_the_last_of_several_online_clients),
	cmocka_unit_test(devices_are_scheduled_apart_each_by_its_own_policy),
	cmocka_unit_test(a_queue_added_to_a_stopped_client_is_stopped_too),
	cmocka_unit_test(names_are_checked_at_the_door),
	cmocka_unit_test(a_queue_may_go_in_every_state),
	cmocka_unit_test(a_client_may_go_in_every_state_of_its_queue),
	cmocka_unit_test(everything_may_go_in_every_state_of_a_queue),
	cmocka_unit_test(a_situation_is_what_its_name_says),
	cmocka_unit_test(a_client_that_turns_online_gets_the_device),
	cmocka_unit_test(hints_of_a_client_that_turns_offline_are_gone_for_good),
	cmocka_unit_test(a_change_of_weight_alone_stops_and_resumes_nobody),
	cmocka_unit_test(a_stop_that_fails_leaves_the_queue_running_and_backs_off_longer_each_time),
	cmocka_unit_test(a_stop_that_never_works_is_tried_about_once_a_second),
	cmocka_unit_test(a_call_that_fails_for_many_queues_is_one_failure_to_back_off_from),
	cmocka_unit_test(a_client_whose_stops_fail_does_not_keep_another_from_being_stopped),
	cmocka_unit_test(while_a_client_backs_off_none_of_its_queues_is_stopped),
	cmocka_unit_test(a_failure_on_one_device_does_not_matter_on_another),
	cmocka_unit_test(a_stop_that_works_begins_the_back_off_anew),
	cmocka_unit_test(a_queue_that_is_stopped_does_not_end_the_back_off_from_one_that_is_not),
	cmocka_unit_test(where_turns_are_taken_a_queue_that_is_stopped_does_not_end_that_back_off_either),
	cmocka_unit_test(a_client_takes_its_back_off_with_it),
	cmocka_unit_test(a_hold_does_not_wait_for_the_back_off_of_its_client),
	cmocka_unit_test(a_hold_whose_stop_fails_ends_unless_its_agent_is_gone),
	cmocka_unit_test(one_queue_that_cannot_be_stopped_leaves_the_others_stopped),
	cmocka_unit_test(a_resume_that_fails_is_tried_again_until_it_works),
	cmocka_unit_test(who_is_in_trouble_is_called_by_the_name_that_the_host_has_for_it),
	cmocka_unit_test(resumes_go_on_while_stops_back_off),
	cmocka_unit_test(stops_are_capped_per_second_with_the_reason_shown),
	cmocka_unit_test(what_is_free_is_stopped_and_takes_nothing_from_the_budget),
	cmocka_unit_test(a_cap_below_ten_per_second_still_allows_one),
	cmocka_unit_test(a_batch_costs_one_cycle_of_the_cap_for_any_number_of_clients),
	cmocka_unit_test(without_batch_every_queue_costs_a_cycle_of_the_cap),
	cmocka_unit_test(a_client_with_a_thousand_queues_does_not_use_up_what_another_needs),
	cmocka_unit_test(where_the_budget_is_used_up_each_client_is_stopped_within_a_cycle_for_each),
	cmocka_unit_test(a_client_is_stopped_whole_and_not_again_before_it_has_paid_for_every_queue),
	cmocka_unit_test(over_time_stops_are_no_more_than_the_cap_whatever_clients_do),
	cmocka_unit_test(a_client_that_is_gone_leaves_its_turn_to_the_others),
	cmocka_unit_test(a_client_that_no_longer_has_to_be_stopped_takes_no_turn),
	cmocka_unit_test(in_a_batch_all_that_wait_go_with_the_next_cycle),
	cmocka_unit_test(a_stop_that_was_not_handed_out_leaves_its_cycle_to_the_next_batch),
	cmocka_unit_test(asking_often_does_not_slow_the_budget_down),
	cmocka_unit_test(a_cap_that_does_not_divide_a_second_is_kept_all_the_same),
	cmocka_unit_test(the_budget_is_full_from_the_first_moment),
	cmocka_unit_test(a_client_that_changes_its_mind_often_keeps_its_turn),
	cmocka_unit_test(a_client_that_backs_off_does_not_take_the_turn_it_waits_for),
	cmocka_unit_test(after_a_long_pause_the_budget_is_full_and_no_more),
	cmocka_unit_test(after_a_long_pause_a_back_off_is_over),
	cmocka_unit_test(whatever_another_client_does_one_is_stopped_in_time),
	cmocka_unit_test(a_hold_ends_by_itself_when_its_time_is_up),
	cmocka_unit_test(a_hold_without_end_lasts_until_it_is_released),
	cmocka_unit_test(a_hold_survives_policies_and_requests),
	cmocka_unit_test(a_released_queue_stays_stopped_while_online_works),
	cmocka_unit_test(a_held_online_queue_keeps_nobody_off_the_device),
	cmocka_unit_test(a_device_that_cannot_stop_never_gets_a_stop),
	cmocka_unit_test(a_queue_whose_lease_ended_is_stopped_again_if_that_is_still_needed),
	cmocka_unit_test(a_queue_whose_lease_ended_is_left_alone_if_nobody_needs_the_device),
	cmocka_unit_test(an_answer_that_makes_no_sense_is_refused),
	cmocka_unit_test(who_waits_gets_a_slice_every_max_starve),
	cmocka_unit_test(all_that_waited_half_as_long_get_their_slice_together),
	cmocka_unit_test(however_many_wait_online_work_is_disturbed_twice_as_often_at_most),
	cmocka_unit_test(a_slice_that_online_ends_early_is_not_taken_back),
	cmocka_unit_test(a_slice_ends_with_the_work_it_was_for),
	cmocka_unit_test(who_is_told_to_wait_for_ever_does),
	cmocka_unit_test(each_way_to_stop_is_tried_from_the_highest_level_and_the_cheapest_kept),
	cmocka_unit_test(a_way_to_stop_that_was_dear_is_tried_again_once_in_a_while),
	cmocka_unit_test(a_way_to_stop_that_never_works_is_not_the_cheapest),
	cmocka_unit_test(a_stop_that_took_no_time_is_measured_all_the_same),
	cmocka_unit_test(a_device_that_yields_gets_one_want_and_none_per_request),
	cmocka_unit_test(background_ends_when_the_last_online_client_leaves),
	cmocka_unit_test(a_device_that_learns_to_yield_does_so_and_one_that_forgets_it_stops),
	cmocka_unit_test(offline_that_yields_is_parked_while_requests_queue),
	cmocka_unit_test(requests_of_several_clients_queue_as_one_clients_do),
	cmocka_unit_test(nobody_is_parked_where_slices_do_not_make_it_yield_or_it_is_not_asked_for),
	cmocka_unit_test(parking_ends_when_offline_would_starve_and_begins_again_after_a_pause),
	cmocka_unit_test(the_first_requests_after_a_pause_in_which_offline_ran_are_parked_for),
	cmocka_unit_test(parking_that_ended_in_time_does_not_count_against_the_next),
	cmocka_unit_test(parking_that_is_switched_off_ends_though_requests_are_open),
	cmocka_unit_test(requests_that_follow_each_other_at_once_do_not_park_for_longer_than_one_may),
	cmocka_unit_test(requests_that_nobody_ends_park_until_they_expire),
	cmocka_unit_test(whose_driver_refuses_to_let_it_yield_is_stopped_while_online_works),
	cmocka_unit_test(who_cannot_yield_has_a_slice_every_max_starve_though_online_never_rests),
	cmocka_unit_test(yielding_is_tried_again_when_the_next_online_client_comes),
	cmocka_unit_test(a_call_to_yield_that_failed_for_now_is_tried_again),
	cmocka_unit_test(parking_is_kept_where_queued_requests_gain_by_it),
	cmocka_unit_test(parking_is_given_up_where_queued_requests_gain_nothing),
	cmocka_unit_test(a_client_whose_single_requests_gain_has_offline_parked_from_the_first_hint),
	cmocka_unit_test(what_is_served_while_the_call_is_under_way_says_nothing_of_parking),
	cmocka_unit_test(a_client_is_learnt_anew_soon_when_offline_comes_back_to_work),
	cmocka_unit_test(what_is_seen_of_a_queue_meanwhile_is_no_new_request_to_learn_from),
	cmocka_unit_test(what_is_served_while_another_comes_and_goes_says_nothing),
	cmocka_unit_test(what_is_served_while_offline_is_parked_and_goes_on_says_nothing),
	cmocka_unit_test(one_request_that_takes_a_hundred_times_as_long_changes_nobodys_mind),
	cmocka_unit_test(requests_without_work_do_not_keep_others_from_being_learnt),
	cmocka_unit_test(one_request_among_the_first_that_stands_out_changes_nobodys_mind),
	cmocka_unit_test(who_dies_or_hangs_in_requests_teaches_nothing_and_parks_for_nobody),
	cmocka_unit_test(each_client_has_what_was_learnt_of_it),
	cmocka_unit_test(who_was_parked_for_and_is_gone_has_no_say_in_what_is_done_for_others),
	cmocka_unit_test(noise_alone_makes_nobody_change_its_mind_for_long),
	cmocka_unit_test(from_requests_that_end_out_of_order_nothing_is_learnt),
	cmocka_unit_test(requests_out_of_order_once_are_followed_by_64_busy_periods_without_learning),
	cmocka_unit_test(where_nothing_can_be_measured_either_way_is_tried_256_times_and_the_setting_stands),
	cmocka_unit_test(nothing_is_learnt_while_nobody_is_there_to_be_parked_or_others_are_served_too),
	cmocka_unit_test(yield_on_demand_is_one_call_per_request_and_one_back),
	cmocka_unit_test(background_clients_that_would_thrash_run_one_at_a_time),
	cmocka_unit_test(turns_are_so_short_that_nobody_starves_though_each_may_come_late),
	cmocka_unit_test(a_turn_that_is_due_waits_for_a_pause_of_online),
	cmocka_unit_test(a_turn_that_is_due_waits_for_online_no_longer_than_a_quarter_of_one),
	cmocka_unit_test(turns_are_as_long_as_weights_say_and_one_that_came_late_is_taken_from_the_next),
	cmocka_unit_test(a_turn_is_a_tenth_of_the_quantum_at_least_however_small_the_weight),
	cmocka_unit_test(a_turn_that_is_due_while_offline_is_parked_costs_nothing),
	cmocka_unit_test(a_turn_that_ends_while_a_request_is_open_is_not_begun_before_that_ends),
	cmocka_unit_test(a_crowds_turns_wait_no_longer_than_they_are_for_requests_that_are_always_open),
	cmocka_unit_test(under_a_policy_that_stops_online_too_no_turn_waits_for_its_requests),
	cmocka_unit_test(a_request_in_the_middle_of_a_turn_does_not_end_it),
	cmocka_unit_test(the_next_turn_begins_when_the_last_one_is_off),
	cmocka_unit_test(a_stop_that_is_never_answered_does_not_keep_the_next_one_waiting_for_ever),
	cmocka_unit_test(one_that_will_not_stay_stopped_does_not_keep_the_next_one_waiting_for_ever),
	cmocka_unit_test(each_turn_waits_as_long_for_the_one_before),
	cmocka_unit_test(where_there_are_no_turns_nobody_waits_for_a_stop),
	cmocka_unit_test(a_turn_that_waits_for_a_stop_does_not_end_the_back_off),
	cmocka_unit_test(a_turn_that_cannot_be_taken_from_one_is_given_to_the_other_all_the_same),
	cmocka_unit_test(several_that_cannot_be_stopped_are_all_in_the_background_and_nobody_asks_again),
	cmocka_unit_test(those_that_cannot_be_stopped_have_slices_of_their_own_every_max_starve),
	cmocka_unit_test(one_of_whose_queues_one_cannot_be_stopped_runs_with_all_and_is_asked_once),
	cmocka_unit_test(the_only_one_that_cannot_be_stopped_yields_and_needs_no_slices),
	cmocka_unit_test(who_refused_before_online_went_does_not_count_among_those_that_refuse_now),
	cmocka_unit_test(stopping_is_tried_again_when_the_next_online_client_comes_and_by_who_holds_it),
	cmocka_unit_test(who_can_neither_yield_nor_be_stopped_is_tried_again_until_it_can),
	cmocka_unit_test(whose_stop_failed_for_now_yields_until_it_is_tried_again),
	cmocka_unit_test(without_turns_all_are_in_the_background_together),
	cmocka_unit_test(turns_end_when_online_leaves_and_when_one_is_left),
	cmocka_unit_test(a_program_on_two_devices_stops_and_goes_on_on_both_together),
	cmocka_unit_test(of_a_program_on_two_devices_what_has_no_work_is_left_alone),
	cmocka_unit_test(a_program_on_two_devices_that_starves_gets_its_slice_on_both),
	cmocka_unit_test(two_programs_on_the_same_devices_do_not_wait_for_each_other),
	cmocka_unit_test(
		a_program_on_two_devices_that_waits_for_one_and_then_for_the_other_starves_all_the_same),
	cmocka_unit_test(a_program_on_two_devices_waits_where_others_have_their_turn),
	cmocka_unit_test(a_starved_programs_slice_is_on_all_its_devices),
	cmocka_unit_test(online_work_that_is_let_run_empty_counts_until_it_stands_still),
	cmocka_unit_test(what_a_stop_for_the_policy_costs_is_measured_where_wants_overtake_too),
	cmocka_unit_test(who_holds_a_clients_new_queues_holds_one_that_is_adopted_until_the_client_is_freed),
	cmocka_unit_test(a_stop_that_is_for_the_policy_too_is_asked_for_once),
	cmocka_unit_test(a_device_goes_when_nothing_is_on_it),
	cmocka_unit_test(who_wants_to_know_is_told_of_a_policy_that_is_ejected),
	cmocka_unit_test(a_client_that_turns_online_leaves_no_trace_of_its_own_when_it_goes),
	cmocka_unit_test(a_hint_of_one_device_sets_no_deadline_on_another),
	cmocka_unit_test(a_hint_that_expires_later_than_any_time_stays_open),
	cmocka_unit_test(options_that_change_hold_from_then_on),
	cmocka_unit_test(what_a_program_has_on_a_device_apart_gets_it_nothing_on_another),
	cmocka_unit_test(what_a_client_had_is_counted_while_it_waits_and_after_its_queues_are_gone),
	cmocka_unit_test(what_is_said_of_a_client_is_so),
	cmocka_unit_test(hints_end_with_who_gave_them),
	cmocka_unit_test(a_client_with_queues_of_both_classes_is_stopped_for_itself),
	cmocka_unit_test(a_queue_takes_what_it_is_and_who_holds_it_to_its_new_class),
	cmocka_unit_test(a_change_of_a_clients_class_leaves_queues_with_their_own_alone),
	cmocka_unit_test(a_queue_that_nobody_can_stop_is_left_alone_and_its_client_stopped_otherwise),
	cmocka_unit_test(a_queue_of_which_nobody_knows_whether_it_runs_is_resumed_before_it_is_stopped_again),
	cmocka_unit_test(where_wants_overtake_a_resume_does_not_wait_for_the_stop),
	cmocka_unit_test(where_wants_overtake_a_policy_does_not_wait_for_a_gentle_stop),
	cmocka_unit_test(a_hint_with_a_number_ends_by_that_number_and_is_renewed_by_it),
	cmocka_unit_test(a_hint_says_itself_when_it_expires),
	cmocka_unit_test(a_hint_of_one_device_leaves_the_others_alone),
	cmocka_unit_test(whoever_wants_to_know_is_told_what_became_of_a_queue),
	cmocka_unit_test(whatever_happens_nobody_stays_stopped_for_nobody),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
