// SPDX-License-Identifier: MIT
/* Policies that break the rules. Each is ejected with a reason, fifo goes on, nobody stays stopped. */
#include "core_host.h"

#include <stdlib.h>

/* What the bad policy does, when it does something bad. */
struct script {
	int (*call)(struct gp_policy *p, uint64_t client); /* gp_policy_run or gp_policy_stop */
	uint64_t victim;
	int armed;
	int result;       /* of that call */
	uint32_t decided; /* how often it was asked */
	uint32_t exits;
};

static struct script script;

static void misbehave(struct gp_policy *p)
{
	if (script.armed)
		script.result = script.call(p, script.victim);
}

static void good_enqueue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	(void)now;
	(void)gp_policy_run(p, c->id);
}

static uint64_t good_decide(struct gp_policy *p, uint64_t now)
{
	(void)p;
	(void)now;
	script.decided++;
	return GP_NEVER;
}

static void count_exit(struct gp_policy *p)
{
	(void)p;
	script.exits++;
}

static uint64_t bad_decide(struct gp_policy *p, uint64_t now)
{
	script.decided++;
	(void)now;
	misbehave(p);
	return GP_NEVER;
}

static void bad_enqueue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	good_enqueue(p, c, now);
	misbehave(p);
}

static void bad_event(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	(void)c;
	(void)now;
	misbehave(p);
}

static void bad_exit(struct gp_policy *p)
{
	script.exits++;
	misbehave(p);
}

static int bad_init(struct gp_policy *p)
{
	misbehave(p);
	return 0;
}

static struct gp_policy_ops bad_policy(void)
{
	return (struct gp_policy_ops){ .size = sizeof(struct gp_policy_ops),
				       .abi = GP_POLICY_ABI,
				       .name = "bad",
				       .enqueue = good_enqueue,
				       .exit = count_exit,
				       .decide = good_decide };
}

/* Device 0: client 1 online, 2 and 3 offline. Device 1: client 5, offline. */
static void start_on(struct host *h, uint32_t caps)
{
	script = (struct script){ .call = gp_policy_run, .result = 1 };
	host_init(h, NULL);
	device(h, 0, caps);
	device(h, 1, caps);
	online(h, 1);
	offline(h, 2);
	offline(h, 3);
	client_with(h, 5, GP_CLASS_OFFLINE, 0, 0);
	queue(h, 50, 5, 1);
	settle(h);
}

static void start(struct host *h)
{
	start_on(h, CAPS_STOP);
}

static void assert_ejected(struct host *h, const char *reason)
{
	struct gp_core_status s = status_of(h, 0);
	uint32_t decided = script.decided;

	assert_int_equal(s.ejected, 1);
	assert_string_equal(s.policy, "fifo");
	assert_string_equal(s.ejection, reason);
	busy(h, 10);
	pass(h, 2 * SEC);
	assert_int_equal(status_of(h, 0).ejected, 1);
	assert_int_equal(script.decided, decided); /* it is never asked again */
	assert_int_equal(script.exits, 1);
	assert_string_equal(status_of(h, 1).policy, "priority"); /* the other device has its own */
	assert_int_equal(status_of(h, 1).ejected, 0);
	assert_all_run(h);
	host_free(h);
}

/* taking too long */

static uint64_t cpu_time, per_call;

static uint64_t read_cpu_time(void)
{
	return ++cpu_time;
}

static void slow_enqueue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	good_enqueue(p, c, now);
	cpu_time += per_call;
}

static uint64_t slow_decide(struct gp_policy *p, uint64_t now)
{
	cpu_time += per_call;
	return good_decide(p, now);
}

static void slow_event(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	(void)p;
	(void)c;
	(void)now;
	cpu_time += per_call;
}

/* As start(), with a policy each of whose calls takes so long. */
static void start_slow(struct host *h, const struct gp_policy_ops *ops, uint64_t ns)
{
	const struct gp_core_opts opts = { .cpu_ns = read_cpu_time };

	script = (struct script){ .result = 1 };
	per_call = 0;
	host_init(h, &opts);
	device(h, 0, CAPS_STOP);
	device(h, 1, CAPS_STOP);
	online(h, 1);
	set_policy(h, 0, ops);
	settle(h);
	per_call = ns;
}

static void one_that_decides_late_is_ejected_at_once(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	ops.decide = slow_decide;
	start_slow(&h, &ops, 20 * MS - US);
	busy(&h, 10);
	settle(&h);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	per_call = 20 * MS;
	offline(&h, 2);
	settle(&h);
	assert_ejected(&h, "policy bad ejected: returned late");
}

static void one_whose_calls_are_late_together_is_ejected(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	ops.enqueue = slow_enqueue;
	ops.dequeue = slow_event;
	start_slow(&h, &ops, 6 * MS);
	for (uint64_t id = 2; id < 8; id++) { /* one in each step */
		offline(&h, id);
		settle(&h);
	}
	assert_int_equal(status_of(&h, 0).ejected, 0);
	for (uint64_t id = 2; id < 4; id++)
		idle(&h, 10 * id);
	for (uint64_t id = 8; id < 10; id++)
		offline(&h, id);
	settle(&h);
	assert_ejected(&h, "policy bad ejected: returned late");
}

static void what_the_host_does_meanwhile_is_not_held_against_a_policy(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	ops.enqueue = slow_enqueue;
	ops.decide = slow_decide;
	start_slow(&h, &ops, MS);
	for (uint64_t id = 2; id < 8; id++) {
		cpu_time += SEC;
		offline(&h, id);
		cpu_time += SEC;
	}
	settle(&h);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	host_free(&h);
}

static void one_that_is_built_in_is_not_timed(void **state)
{
	uint64_t before;
	struct host h;

	(void)state;
	start_slow(&h, &gp_policy_priority, 0);
	before = cpu_time;
	offline(&h, 2);
	busy(&h, 10);
	pass(&h, MS);
	assert_int_equal(cpu_time, before);
	host_free(&h);
}

/* touching who is not its own */

static void run_in_decide(struct host *h, uint64_t victim)
{
	struct gp_policy_ops ops = bad_policy();

	ops.decide = bad_decide;
	script.victim = victim;
	script.armed = 1;
	set_policy(h, 0, &ops);
	settle(h);
	assert_int_equal(script.result, -EINVAL);
}

static void one_that_runs_an_unknown_client_is_ejected(void **state)
{
	struct host h;

	(void)state;
	start(&h);
	run_in_decide(&h, 999);
	assert_ejected(&h, "policy bad ejected: ran client 999, which it does not own");
}

static void one_that_runs_a_client_of_another_device_is_ejected(void **state)
{
	struct host h;

	(void)state;
	start(&h);
	run_in_decide(&h, 5);
	assert_ejected(&h, "policy bad ejected: ran client 5, which it does not own");
}

static void one_that_runs_a_client_without_work_is_ejected(void **state)
{
	struct host h;

	(void)state;
	start(&h);
	idle(&h, 20);
	run_in_decide(&h, 2);
	assert_ejected(&h, "policy bad ejected: ran client 2, which it does not own");
}

static void one_that_runs_a_client_that_was_removed_is_ejected(void **state)
{
	struct host h;

	(void)state;
	start(&h);
	assert_int_equal(gp_core_client_remove(h.core, 2, h.now), 0);
	forget_queue(&h, 20);
	run_in_decide(&h, 2);
	assert_ejected(&h, "policy bad ejected: ran client 2, which it does not own");
}

static void one_that_stops_a_client_it_does_not_own_is_ejected(void **state)
{
	struct host h;

	(void)state;
	start(&h);
	script.call = gp_policy_stop;
	run_in_decide(&h, 5);
	assert_ejected(&h, "policy bad ejected: stopped client 5, which it does not own");
}

static uint64_t decide_worse_and_worse(struct gp_policy *p, uint64_t now)
{
	(void)now;
	script.decided++;
	(void)gp_policy_run(p, 777);
	(void)gp_policy_stop(p, 888);
	(void)gp_policy_stop(p, 2);
	(void)gp_policy_stop(p, 3);
	return 0;
}

static void the_first_reason_is_the_one_that_is_kept(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.decide = decide_worse_and_worse;
	set_policy(&h, 0, &ops);
	settle(&h);
	assert_ejected(&h, "policy bad ejected: ran client 777, which it does not own");
}

/* the events besides decide */

static void one_that_breaks_a_rule_in_enqueue_is_ejected(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.enqueue = bad_enqueue;
	set_policy(&h, 0, &ops);
	settle(&h);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	script.victim = 5;
	script.armed = 1;
	hint(&h, 1);
	settle(&h);
	assert_ejected(&h, "policy bad ejected: ran client 5, which it does not own");
}

static void one_that_breaks_a_rule_when_it_is_handed_the_clients_is_ejected(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.enqueue = bad_enqueue;
	script.victim = 5;
	script.armed = 1;
	set_policy(&h, 0, &ops);
	settle(&h);
	assert_ejected(&h, "policy bad ejected: ran client 5, which it does not own");
}

static void one_that_breaks_a_rule_in_dequeue_is_ejected(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.dequeue = bad_event;
	script.victim = 5;
	script.armed = 1;
	set_policy(&h, 0, &ops);
	settle(&h);
	idle(&h, 20);
	settle(&h);
	assert_ejected(&h, "policy bad ejected: ran client 5, which it does not own");
}

static void one_that_breaks_a_rule_while_a_client_is_removed_is_ejected(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.dequeue = bad_event;
	script.victim = 999;
	script.armed = 1;
	set_policy(&h, 0, &ops);
	settle(&h);
	assert_int_equal(gp_core_client_remove(h.core, 2, h.now), 0);
	forget_queue(&h, 20);
	settle(&h);
	assert_ejected(&h, "policy bad ejected: ran client 999, which it does not own");
}

static void one_that_breaks_a_rule_in_changed_is_ejected(void **state)
{
	struct gp_core_client one = { .id = 1, .client_class = GP_CLASS_ONLINE, .slo_ns = 20 * MS };
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.changed = bad_event;
	script.victim = 5;
	script.armed = 1;
	assert_int_equal(gp_core_client_change(h.core, &one, h.now), 0);
	set_policy(&h, 0, &ops);
	hint(&h, 1);
	pass(&h, MS);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	hint(&h, 1);
	hint_over(&h, 1); /* the oldest request is another one now */
	settle(&h);
	hint_over(&h, 1);
	assert_ejected(&h, "policy bad ejected: ran client 5, which it does not own");
}

static void one_that_keeps_running_a_client_while_letting_go_of_it_changes_nothing(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.dequeue = bad_event;
	script.victim = 2; /* still its own inside dequeue */
	script.armed = 1;
	set_policy(&h, 0, &ops);
	settle(&h);
	idle(&h, 20);
	pass(&h, SEC);
	assert_int_equal(script.result, 0);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	busy(&h, 20);
	pass(&h, SEC);
	assert_all_run(&h);
	host_free(&h);
}

static void one_that_touches_clients_before_it_owns_any_is_ejected(void **state)
{
	static int (*const calls[])(struct gp_policy *, uint64_t) = { gp_policy_run, gp_policy_stop };
	static const char *const reasons[] = {
		"policy bad ejected: ran client 2, which it does not own",
		"policy bad ejected: stopped client 2, which it does not own",
	};
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	ops.init = bad_init;
	for (int i = 0; i < 2; i++) {
		start(&h);
		script.call = calls[i];
		script.victim = 2;
		script.armed = 1;
		assert_int_equal(gp_core_set_policy(h.core, 0, &ops, h.now), 0);
		assert_int_equal(script.result, -EINVAL);
		script.armed = 0;
		settle(&h);
		assert_ejected(&h, reasons[i]);
	}
}

static void one_that_breaks_a_rule_while_it_leaves_harms_nobody(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.exit = bad_exit;
	script.victim = 999;
	script.armed = 1;
	set_policy(&h, 0, &ops);
	settle(&h);
	set_policy(&h, 0, &gp_policy_priority);
	assert_int_equal(script.exits, 1);
	busy(&h, 10);
	pass(&h, MS);
	assert_string_equal(status_of(&h, 0).policy, "priority");
	assert_int_equal(status_of(&h, 0).ejected, 0);
	set_policy(&h, 0, &ops);
	host_free(&h); /* and when everything goes */
	assert_int_equal(script.exits, 2);
}

/* running too many, or nobody */

static void one_that_stops_an_online_client_without_saying_that_it_does_is_ejected(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	busy(&h, 10);
	settle(&h);
	ops.decide = bad_decide;
	script.call = gp_policy_stop;
	script.victim = 1;
	script.armed = 1;
	set_policy(&h, 0, &ops);
	settle(&h);
	assert_int_equal(state_of(&h, 10), GP_QUEUE_RUNNING);
	assert_ejected(&h, "policy bad ejected: left out 1 online clients without GP_POLICY_STOPS_ONLINE");
}

static void run_offline_alone(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	(void)now;
	if (c->client_class != GP_CLASS_ONLINE)
		(void)gp_policy_run(p, c->id);
}

static void one_that_never_runs_an_online_client_must_say_so_too(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.enqueue = run_offline_alone;
	ops.flags = GP_POLICY_STOPS_ONLINE;
	set_policy(&h, 0, &ops);
	busy(&h, 10);
	pass(&h, MS);
	assert_int_equal(state_of(&h, 10), GP_QUEUE_SUSPENDED);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	idle(&h, 10);
	pass(&h, 10 * MS);
	ops.flags = 0;
	set_policy(&h, 0, &ops);
	script.exits = 0;
	settle(&h);
	assert_int_equal(status_of(&h, 0).ejected, 0); /* nobody is online who has work */
	busy(&h, 10);
	settle(&h);
	assert_int_equal(state_of(&h, 10), GP_QUEUE_RUNNING);
	assert_ejected(&h, "policy bad ejected: left out 1 online clients without GP_POLICY_STOPS_ONLINE");
}

static void one_that_runs_too_many_offline_clients_is_ejected(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct gp_core_status s;
	struct host h;

	(void)state;
	start_on(&h, CAPS_TURNS);
	set_policy(&h, 0, &ops);
	pass(&h, MS);
	s = status_of(&h, 0);
	assert_int_equal(s.ejected, 1);
	assert_string_equal(s.policy, "fifo");
	assert_string_equal(s.ejection, "policy bad ejected: ran 2 offline clients where 1 may run");
	assert_int_equal((have(&h, 20) == GP_STOP) + (have(&h, 30) == GP_STOP), 1);
	remove_queue(&h, 10);
	pass(&h, MS);
	assert_all_run(&h);
	host_free(&h);
}

static void run_nobody(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	(void)now;
	(void)gp_policy_stop(p, c->id);
}

static void one_that_runs_nobody_is_ejected_after_a_quarter_of_a_second(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	uint64_t begin;
	struct host h;

	(void)state;
	start(&h);
	begin = h.now;
	ops.enqueue = run_nobody;
	set_policy(&h, 0, &ops);
	until(&h, begin + 250 * MS - 1);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	until(&h, begin + 250 * MS + 50 * US);
	assert_all_run(&h);
	assert_ejected(&h, "policy bad ejected: ran nobody while 2 clients waited");
}

static void one_that_runs_only_somebody_else_leaves_the_rest_to_the_guard(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	set_policy(&h, 0, &ops);
	settle(&h);
	script.call = gp_policy_stop;
	script.victim = 2;
	script.armed = 1;
	ops.decide = bad_decide;
	set_policy(&h, 0, &ops);
	pass(&h, 10 * SEC);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	assert_in_range(run_time(&h, 20), 9 * 10 * MS, 10 * 11 * MS);
	host_free(&h);
}

static void a_stall_is_not_held_against_the_policy_that_follows(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.enqueue = run_nobody;
	set_policy(&h, 0, &ops);
	pass(&h, 250 * MS - 1);
	h.now++; /* the new policy comes at the moment at which the stall would show */
	set_policy(&h, 0, &gp_policy_priority);
	pass(&h, SEC);
	assert_string_equal(status_of(&h, 0).policy, "priority");
	assert_int_equal(status_of(&h, 0).ejected, 0);
	assert_all_run(&h);
	host_free(&h);
}

static void a_stall_that_ended_at_the_last_moment_is_none(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.enqueue = run_nobody;
	set_policy(&h, 0, &ops);
	pass(&h, 250 * MS - 1);
	h.now++;
	idle(&h, 20);
	idle(&h, 30);
	pass(&h, SEC);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	assert_all_run(&h);
	host_free(&h);
}

/* spinning */

static uint64_t ask_at_once(struct gp_policy *p, uint64_t now)
{
	(void)p;
	script.decided++;
	return now;
}

static uint64_t ask_for_the_past(struct gp_policy *p, uint64_t now)
{
	(void)p;
	(void)now;
	script.decided++;
	return 0;
}

static uint64_t ask_a_nanosecond_later(struct gp_policy *p, uint64_t now)
{
	(void)p;
	script.decided++;
	return now + 1;
}

static void one_that_asks_to_be_called_without_end_is_ejected(void **state)
{
	static uint64_t (*const spins[])(struct gp_policy *, uint64_t) = { ask_at_once, ask_for_the_past,
									   ask_a_nanosecond_later };
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	for (int i = 0; i < 3; i++) {
		start(&h);
		ops.decide = spins[i];
		set_policy(&h, 0, &ops);
		pass(&h, 10 * US);
		assert_int_equal(script.decided, 1001);
		assert_ejected(&h,
			       "policy bad ejected: asked to be called again at once, 1000 times in a row");
	}
}

static uint64_t ask_every_microsecond(struct gp_policy *p, uint64_t now)
{
	(void)p;
	script.decided++;
	return now + US;
}

static void one_that_asks_often_but_lets_time_pass_is_kept(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.decide = ask_every_microsecond;
	set_policy(&h, 0, &ops);
	pass(&h, 10 * MS);
	assert_int_equal(script.decided, 10001);
	assert_int_equal(status_of(&h, 0).ejected, 0);
	host_free(&h);
}

/* at the door */

static int failing_init(struct gp_policy *p)
{
	(void)p;
	return -EIO;
}

/* The table is refused with this error, and the old policy goes on. */
static void assert_refused(const struct gp_policy_ops *ops, int error)
{
	struct host h;

	start(&h);
	busy(&h, 10);
	assert_int_equal(gp_core_set_policy(h.core, 0, ops, h.now), error);
	pass(&h, MS);
	assert_string_equal(status_of(&h, 0).policy, "priority");
	assert_int_equal(status_of(&h, 0).ejected, 0);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	idle(&h, 10);
	pass(&h, 2 * MS);
	assert_all_run(&h);
	assert_int_equal(script.exits, 0);
	host_free(&h);
}

static void one_whose_init_fails_is_not_taken(void **state)
{
	struct gp_policy_ops ops = bad_policy();

	(void)state;
	ops.init = failing_init;
	ops.state_size = 100;
	assert_refused(&ops, -EIO);
}

static void one_of_another_abi_is_not_taken(void **state)
{
	struct gp_policy_ops ops = bad_policy();

	(void)state;
	ops.abi = GP_POLICY_ABI + 1;
	assert_refused(&ops, -EPROTO);
	ops.abi = 0;
	assert_refused(&ops, -EPROTO);
}

static void one_without_a_name_or_with_unknown_flags_is_not_taken(void **state)
{
	struct gp_policy_ops ops = bad_policy();

	(void)state;
	ops.name = NULL;
	assert_refused(&ops, -EINVAL);
	ops = bad_policy();
	ops.flags = GP_POLICY_NEEDS_IDLE << 1;
	assert_refused(&ops, -EINVAL);
}

static void one_of_the_wrong_size_is_not_taken(void **state)
{
	struct gp_policy_ops ops = bad_policy();

	(void)state;
	ops.size = 0;
	assert_refused(&ops, -EINVAL);
	ops.size = sizeof(size_t) - 1;
	assert_refused(&ops, -EINVAL);
	ops.size = sizeof(size_t); /* too small to say which abi it is of */
	assert_refused(&ops, -EPROTO);
	ops.size = offsetof(struct gp_policy_ops, name);
	assert_refused(&ops, -EINVAL);
}

static void one_that_wants_more_than_a_mebibyte_for_itself_or_a_client_is_not_taken(void **state)
{
	struct gp_policy_ops ops = bad_policy();

	(void)state;
	ops.state_size = SIZE_MAX;
	assert_refused(&ops, -EINVAL);
	ops.state_size = 0;
	ops.priv_size = (1u << 20) + 1;
	assert_refused(&ops, -EINVAL);
}

struct next_ops {
	struct gp_policy_ops ops;
	void *new_call;
};

static void one_from_the_future_is_refused_only_if_it_uses_the_future(void **state)
{
	struct next_ops next = { .ops = bad_policy() };
	struct host h;

	(void)state;
	next.ops.size = sizeof(next);
	next.new_call = &next;
	assert_refused(&next.ops, -E2BIG);
	next.new_call = NULL;
	start(&h);
	set_policy(&h, 0, &next.ops);
	assert_string_equal(status_of(&h, 0).policy, "bad");
	host_free(&h);
}

static void one_from_the_past_gets_the_rest_filled_in(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	ops.size = offsetof(struct gp_policy_ops, init);
	start(&h);
	set_policy(&h, 0, &ops);
	busy(&h, 10);
	pass(&h, SEC);
	assert_int_equal(script.decided, 0); /* beyond its size: it has no decide() */
	assert_string_equal(status_of(&h, 0).policy, "bad");
	assert_int_equal(status_of(&h, 0).ejected, 0);
	assert_all_run(&h);
	host_free(&h);
}

static void a_name_that_is_too_long_is_cut_and_crashes_nothing(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	static char name[300];
	struct host h;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	ops.name = name;
	start(&h);
	ops.decide = bad_decide;
	script.victim = 999;
	set_policy(&h, 0, &ops);
	assert_int_equal(strlen(status_of(&h, 0).policy), GP_NAME_LEN - 1);
	script.armed = 1;
	settle(&h);
	assert_int_equal(status_of(&h, 0).ejected, 1);
	assert_memory_equal(status_of(&h, 0).ejection, "policy xxx", 10);
	host_free(&h);
}

/* memory */

struct mark {
	struct mark *next;
	uint64_t id;
};

struct marks {
	struct mark *first;
};

static uint32_t marks_at_exit;

static void mark_enqueue(struct gp_policy *p, struct gp_policy_client *c, uint64_t now)
{
	struct marks *all = gp_policy_state(p);
	struct mark *m = c->priv;

	assert_null(m->next);
	assert_int_equal(m->id, 0);
	m->id = c->id;
	m->next = all->first;
	all->first = m;
	good_enqueue(p, c, now);
}

static void mark_exit(struct gp_policy *p)
{
	struct marks *all = gp_policy_state(p);

	for (struct mark *m = all->first; m; m = m->next)
		marks_at_exit += m->id == 2 || m->id == 3;
}

static void a_policy_may_look_at_its_memory_of_clients_until_its_exit_is_over(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	ops.state_size = sizeof(struct marks);
	ops.priv_size = sizeof(struct mark);
	ops.enqueue = mark_enqueue;
	ops.exit = mark_exit;
	marks_at_exit = 0;
	start(&h);
	set_policy(&h, 0, &ops);
	settle(&h);
	set_policy(&h, 0, &ops); /* zero again for the next one */
	assert_int_equal(marks_at_exit, 2);
	ops.decide = bad_decide;
	set_policy(&h, 0, &ops);
	script.victim = 999;
	script.armed = 1;
	settle(&h);
	assert_int_equal(marks_at_exit, 6);
	set_policy(&h, 0, &ops);
	host_free(&h);
	assert_int_equal(marks_at_exit, 8);
}

/* what happens after */

static void everyone_whom_the_ejected_policy_stopped_runs_again(void **state)
{
	struct gp_policy_ops ops = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	ops.decide = decide_worse_and_worse;
	ops.enqueue = run_nobody;
	busy(&h, 10);
	pass(&h, MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	set_policy(&h, 0, &ops);
	pass(&h, MS);
	assert_all_run(&h);
	host_free(&h);
}

static void a_good_policy_may_follow_and_a_second_bad_one_is_counted(void **state)
{
	struct host h;

	(void)state;
	start(&h);
	run_in_decide(&h, 999);
	assert_int_equal(status_of(&h, 0).ejected, 1);
	set_policy(&h, 0, &gp_policy_priority);
	busy(&h, 10);
	pass(&h, MS);
	assert_int_equal(state_of(&h, 20), GP_QUEUE_SUSPENDED);
	assert_string_equal(status_of(&h, 0).policy, "priority");
	run_in_decide(&h, 998);
	pass(&h, MS);
	assert_int_equal(status_of(&h, 0).ejected, 2);
	assert_string_equal(status_of(&h, 0).ejection,
			    "policy bad ejected: ran client 998, which it does not own");
	assert_all_run(&h);
	host_free(&h);
}

static void why_it_was_ejected_is_kept_when_something_else_goes_wrong(void **state)
{
	struct gp_core_status s;
	struct host h;

	(void)state;
	start(&h);
	run_in_decide(&h, 999);
	h.stop_error[GP_MECH_INTERRUPT] = -EIO;
	assert_int_equal(core_hold(h.core, 20, GP_NEVER, h.now), 0);
	pass(&h, MS);
	s = status_of(&h, 0);
	assert_memory_equal(s.reason, "client 2 was not stopped: ", 26);
	assert_string_equal(s.ejection, "policy bad ejected: ran client 999, which it does not own");
	host_free(&h);
}

static void why_it_was_ejected_goes_with_the_next_choice_and_not_with_one_that_is_refused(void **state)
{
	struct gp_policy_ops late = bad_policy(), future = bad_policy();
	struct host h;

	(void)state;
	start(&h);
	run_in_decide(&h, 999);
	future.abi = GP_POLICY_ABI + 1;
	assert_true(gp_core_set_policy(h.core, 0, &future, h.now) < 0);
	assert_memory_equal(status_of(&h, 0).ejection, "policy bad ejected: ", 20);
	set_policy(&h, 0, &gp_policy_fifo);
	assert_string_equal(status_of(&h, 0).ejection, "");
	assert_int_equal(status_of(&h, 0).ejected, 1);
	late.init = bad_init;
	script.armed = 1;
	set_policy(&h, 0, &late);
	assert_memory_equal(status_of(&h, 0).ejection, "policy bad ejected: ", 20);
	host_free(&h);
}

static void a_policy_that_says_nothing_but_its_name_is_first_come_first_served(void **state)
{
	static const struct gp_policy_ops quiet = { .size = sizeof(quiet),
						    .abi = GP_POLICY_ABI,
						    .name = "quiet" };
	struct host h;

	(void)state;
	start(&h);
	set_policy(&h, 0, &quiet);
	busy(&h, 10);
	pass(&h, 2 * SEC);
	assert_string_equal(status_of(&h, 0).policy, "quiet");
	assert_int_equal(h.count[0].actions, 0);
	host_free(&h);
}

/* Under AddressSanitizer too, a request for too much memory is answered with NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(one_that_decides_late_is_ejected_at_once),
	cmocka_unit_test(one_whose_calls_are_late_together_is_ejected),
	cmocka_unit_test(what_the_host_does_meanwhile_is_not_held_against_a_policy),
	cmocka_unit_test(one_that_is_built_in_is_not_timed),
	cmocka_unit_test(one_that_runs_an_unknown_client_is_ejected),
	cmocka_unit_test(one_that_runs_a_client_of_another_device_is_ejected),
	cmocka_unit_test(one_that_runs_a_client_without_work_is_ejected),
	cmocka_unit_test(one_that_runs_a_client_that_was_removed_is_ejected),
	cmocka_unit_test(one_that_stops_a_client_it_does_not_own_is_ejected),
	cmocka_unit_test(the_first_reason_is_the_one_that_is_kept),
	cmocka_unit_test(one_that_breaks_a_rule_in_enqueue_is_ejected),
	cmocka_unit_test(one_that_breaks_a_rule_when_it_is_handed_the_clients_is_ejected),
	cmocka_unit_test(one_that_breaks_a_rule_in_dequeue_is_ejected),
	cmocka_unit_test(one_that_breaks_a_rule_while_a_client_is_removed_is_ejected),
	cmocka_unit_test(one_that_breaks_a_rule_in_changed_is_ejected),
	cmocka_unit_test(one_that_keeps_running_a_client_while_letting_go_of_it_changes_nothing),
	cmocka_unit_test(one_that_touches_clients_before_it_owns_any_is_ejected),
	cmocka_unit_test(one_that_breaks_a_rule_while_it_leaves_harms_nobody),
	cmocka_unit_test(one_that_stops_an_online_client_without_saying_that_it_does_is_ejected),
	cmocka_unit_test(one_that_never_runs_an_online_client_must_say_so_too),
	cmocka_unit_test(one_that_runs_too_many_offline_clients_is_ejected),
	cmocka_unit_test(one_that_runs_nobody_is_ejected_after_a_quarter_of_a_second),
	cmocka_unit_test(one_that_runs_only_somebody_else_leaves_the_rest_to_the_guard),
	cmocka_unit_test(a_stall_is_not_held_against_the_policy_that_follows),
	cmocka_unit_test(a_stall_that_ended_at_the_last_moment_is_none),
	cmocka_unit_test(one_that_asks_to_be_called_without_end_is_ejected),
	cmocka_unit_test(one_that_asks_often_but_lets_time_pass_is_kept),
	cmocka_unit_test(one_whose_init_fails_is_not_taken),
	cmocka_unit_test(one_of_another_abi_is_not_taken),
	cmocka_unit_test(one_without_a_name_or_with_unknown_flags_is_not_taken),
	cmocka_unit_test(one_of_the_wrong_size_is_not_taken),
	cmocka_unit_test(one_that_wants_more_than_a_mebibyte_for_itself_or_a_client_is_not_taken),
	cmocka_unit_test(one_from_the_future_is_refused_only_if_it_uses_the_future),
	cmocka_unit_test(one_from_the_past_gets_the_rest_filled_in),
	cmocka_unit_test(a_name_that_is_too_long_is_cut_and_crashes_nothing),
	cmocka_unit_test(a_policy_may_look_at_its_memory_of_clients_until_its_exit_is_over),
	cmocka_unit_test(everyone_whom_the_ejected_policy_stopped_runs_again),
	cmocka_unit_test(a_good_policy_may_follow_and_a_second_bad_one_is_counted),
	cmocka_unit_test(why_it_was_ejected_is_kept_when_something_else_goes_wrong),
	cmocka_unit_test(why_it_was_ejected_goes_with_the_next_choice_and_not_with_one_that_is_refused),
	cmocka_unit_test(a_policy_that_says_nothing_but_its_name_is_first_come_first_served),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
