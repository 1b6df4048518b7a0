// SPDX-License-Identifier: MIT
/* Scenarios on the simulated machine: what must hold of every row, and the bars. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "machine/load.h"
#include "machine/run.h"
#include "policy/registry.h"
#include "study/sources.h"

#define SECOND 1000000000ull

static struct gp_sources sources;
static struct gp_scenario sc;

static void load(const char *name, uint64_t seconds)
{
	struct gp_diag diag;

	assert_int_equal(gp_sources_scenario(&sources, name, &sc, &diag), 0);
	if (seconds)
		sc.duration_ns = seconds * SECOND;
}

static int unload(void **state)
{
	(void)state;
	gp_scenario_free(&sc);
	gp_sources_free(&sources);
	return 0;
}

static struct gp_run_result *run(uint32_t way, uint32_t hints)
{
	const struct gp_config config = { way, hints };
	const struct gp_run_opts opts = { .timeline_ns = SECOND / 10, .max_spans = 1000 };
	struct gp_run_result *r;

	assert_int_equal(gp_run(&sc, &config, &opts, &r), 0);
	assert_int_equal(r->lost_wave_ns, 0);
	return r;
}

static double p99(const struct gp_run_result *r)
{
	return (double)gp_hist_quantile(&r->latency, 9900);
}

static void no_way_loses_work_or_a_request_in_any_scenario(void **state)
{
	static const char *const names[] = { "A",      "C",      "D",    "E",          "burst",
					     "levels", "queues", "h200", "h200-three", "h200-queue" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t requests = 0;

		load(names[i], 4);
		for (uint32_t way = 0; way < GP_CONFIG_COUNT; way++) {
			struct gp_scenario whole = sc, last;
			struct gp_run_result *r;

			gp_scenario_at(&whole, whole.nsweep ? whole.nsweep - 1 : 0, &last);
			sc = last;
			r = run(way, way % 2);
			sc = whole;
			/* Open loop: every way has the same arrivals, and none is dropped. */
			if (way == 0)
				requests = r->requests;
			else if (sc.groups[0].arrival != GP_ARRIVAL_CLOSED)
				assert_int_equal(r->requests, requests);
			gp_run_free(r);
		}
		unload(NULL);
	}
}

static void one_seed_gives_one_result_and_another_gives_another(void **state)
{
	struct gp_run_result *a, *b, *c;

	(void)state;
	load("E", 5);
	a = run(GP_CONFIG_BATCH, 0);
	b = run(GP_CONFIG_BATCH, 0);
	sc.seed++;
	c = run(GP_CONFIG_BATCH, 0);
	a->spans = b->spans = (free(a->spans), free(b->spans), NULL);
	assert_memory_equal(a, b, sizeof(*a));
	assert_memory_not_equal(&a->latency, &c->latency, sizeof(a->latency));
	gp_run_free(a);
	gp_run_free(b);
	gp_run_free(c);
}

/* The bar of the default policy: p99 at most 1.10 times exclusive, harvest at least 0.90. */
static void in_scenario_e_the_default_holds_the_tail_and_the_harvest(void **state)
{
	static const struct gp_config ways[] = { { GP_CONFIG_AUTO, 0 },
						 { GP_CONFIG_SINGLE, 0 },
						 { GP_CONFIG_BATCH, 1 } };
	struct gp_run_result *exclusive, *alone, *r;
	struct gp_scenario whole;
	double busy, harvest;

	(void)state;
	load("E", 60);
	exclusive = run(GP_CONFIG_EXCLUSIVE, 0);
	busy = (double)exclusive->online_busy_ns / (double)exclusive->measured_ns;
	whole = sc;
	sc.groups[0] = sc.groups[1];
	sc.ngroups = 1;
	alone = run(GP_CONFIG_NATIVE, 0);
	sc = whole;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		r = run(ways[i].kind, ways[i].hints);
		harvest = (double)r->offline_wave_ns / (double)alone->offline_wave_ns / (1 - busy);
		assert_true(p99(r) <= 1.10 * p99(exclusive));
		assert_true(harvest >= 0.90);
		gp_run_free(r);
	}
	gp_run_free(exclusive);
	gp_run_free(alone);
}

static void a_batch_is_one_cycle_where_single_calls_are_one_each(void **state)
{
	struct gp_run_result *single, *batch;

	(void)state;
	load("queues", 5);
	sc.sweep = GP_SWEEP_NONE;
	sc.groups[1].queues = 8;
	single = run(GP_CONFIG_SINGLE, 1);
	batch = run(GP_CONFIG_BATCH, 1);
	/* Eight queues: sixteen cycles to stop and resume them one by one, two in a batch. */
	assert_int_equal((single->cycles + single->requests / 2) / single->requests, 16);
	assert_int_equal((batch->cycles + batch->requests / 2) / batch->requests, 2);
	assert_true(gp_hist_quantile(&batch->preempt, 5000) < gp_hist_quantile(&single->preempt, 5000));
	gp_run_free(single);
	gp_run_free(batch);
}

static void idle_queues_are_stopped_with_the_others_and_are_not_felt_otherwise(void **state)
{
	struct gp_run_result *native, *idle, *single;

	(void)state;
	load("queues", 5);
	sc.sweep = GP_SWEEP_NONE;
	sc.groups[1].queues = 2;
	native = run(GP_CONFIG_NATIVE, 0);
	sc.groups[1].idle_queues = 6;
	idle = run(GP_CONFIG_NATIVE, 0);
	single = run(GP_CONFIG_SINGLE, 1);
	assert_int_equal((single->cycles + single->requests / 2) / single->requests, 16);
	assert_int_equal(idle->offline_steps, native->offline_steps);
	assert_true(p99(idle) == p99(native));
	gp_run_free(native);
	gp_run_free(idle);
	gp_run_free(single);
}

static void one_look_sees_work_and_the_next_that_it_is_over(void **state)
{
	const uint64_t linger_ns = 800000; /* a millisecond, less what the stop takes */
	struct gp_run_result *r;
	uint64_t off_ns;

	(void)state;
	load("A", 20);
	sc.device.sample_ns = 9000000;
	r = run(GP_CONFIG_BATCH, 0);
	off_ns = r->measured_ns - r->offline_wave_ns / gpm_wave_slots(&sc.device);
	assert_true(off_ns >= r->preemptions * (sc.device.sample_ns + linger_ns));
	assert_in_range(r->cycles, 2 * r->preemptions - 1, 2 * r->preemptions + 1);
	gp_run_free(r);
}

static void only_an_interrupt_ends_an_endless_kernel(void **state)
{
	struct gp_run_result *gate, *interrupt;

	(void)state;
	load("levels", 10);
	sc.sweep = GP_SWEEP_NONE;
	sc.groups[1].work.length_ns = 10000 * SECOND;
	gate = run(GP_CONFIG_GATE, 0);
	interrupt = run(GP_CONFIG_BATCH, 0);
	assert_int_equal(gate->unfinished, gate->requests);
	assert_true(interrupt->unfinished <= 1);
	gp_run_free(gate);
	gp_run_free(interrupt);
}

static void a_hint_hides_the_preemption_behind_the_requests_preparation(void **state)
{
	struct gp_run_result *exclusive, *hinted;

	(void)state;
	load("A", 20);
	exclusive = run(GP_CONFIG_EXCLUSIVE, 0);
	hinted = run(GP_CONFIG_BATCH, 1);
	assert_true(p99(hinted) <= 1.005 * p99(exclusive));
	gp_run_free(exclusive);
	gp_run_free(hinted);
}

static void devices_are_scheduled_apart(void **state)
{
	struct gp_run_result *r;

	(void)state;
	load("A", 5);
	sc.devices = 2;
	sc.groups[2] = sc.groups[1];
	sc.groups[2].device = 1;
	sc.ngroups = 3;
	r = run(GP_CONFIG_BATCH, 1);
	/* The second device's training is never stopped: all of that device's waves, and most of the first's.
	 */
	assert_true(r->offline_wave_ns > 1.6 * (double)(r->measured_ns * gpm_wave_slots(&sc.device)));
	assert_true(gp_hist_quantile(&r->latency, 9900) < 2000000);
	gp_run_free(r);
}

static void every_policy_runs_every_way(void **state)
{
	(void)state;
	load("E", 3);
	for (size_t i = 0; gp_policy_at(i); i++) {
		strcpy(sc.policy, gp_policy_at(i)->name);
		for (uint32_t way = GP_CONFIG_THROTTLE; way < GP_CONFIG_COUNT; way++) {
			struct gp_run_result *r = run(way, 1);

			assert_string_equal(r->reason, "");
			assert_true(r->offline_wave_ns > 0);
			gp_run_free(r);
		}
	}
	strcpy(sc.policy, "none");
	assert_int_equal(gp_run(&sc, &(struct gp_config){ GP_CONFIG_AUTO, 0 }, NULL,
				&(struct gp_run_result *){ NULL }),
			 -22);
}

static void a_deadline_with_time_to_spare_costs_fewer_preemptions(void **state)
{
	struct gp_run_result *strict, *lazy;

	(void)state;
	load("A", 20);
	sc.groups[0].slo_ns = 8000000;
	sc.groups[0].work.kernels = 10; /* short requests: 8 ms is plenty */
	strict = run(GP_CONFIG_BATCH, 1);
	strcpy(sc.policy, "deadline");
	lazy = run(GP_CONFIG_BATCH, 1);
	assert_true(lazy->preemptions < strict->preemptions);
	assert_true(lazy->slo_met * 100 >= lazy->slo_requests * 95);
	assert_true(lazy->offline_wave_ns > strict->offline_wave_ns);
	gp_run_free(strict);
	gp_run_free(lazy);
}

static void a_burst_keeps_its_mean_rate(void **state)
{
	const struct gp_group g = { .arrival = GP_ARRIVAL_BURST, .rate_milli = 100000 };
	uint64_t n = 0;
	struct gp_load l;

	(void)state;
	gp_load_init(&l, &g, 0, 1, 1);
	while (gp_load_next(&l) < 3000 * SECOND)
		n++;
	assert_true(n > 95 * 3000 && n < 105 * 3000);
}

static void a_trace_is_followed_to_the_nanosecond(void **state)
{
	uint64_t times[] = { 5, 7, 7, 900 };
	uint32_t clients[] = { 0, 1, 0, 0 };
	const struct gp_group g = {
		.arrival = GP_ARRIVAL_TRACE, .trace_ns = times, .trace_client = clients, .trace_len = 4
	};
	struct gp_load l;

	(void)state;
	gp_load_init(&l, &g, 0, 1, 1);
	assert_int_equal(gp_load_next(&l), 5);
	assert_int_equal(gp_load_next(&l), 7);
	assert_int_equal(gp_load_next(&l), 900);
	assert_int_equal(gp_load_next(&l), UINT64_MAX);
}

#define SCENARIO(test) cmocka_unit_test_teardown(test, unload)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_way_loses_work_or_a_request_in_any_scenario),
		SCENARIO(one_seed_gives_one_result_and_another_gives_another),
		SCENARIO(in_scenario_e_the_default_holds_the_tail_and_the_harvest),
		SCENARIO(a_batch_is_one_cycle_where_single_calls_are_one_each),
		SCENARIO(idle_queues_are_stopped_with_the_others_and_are_not_felt_otherwise),
		SCENARIO(one_look_sees_work_and_the_next_that_it_is_over),
		SCENARIO(only_an_interrupt_ends_an_endless_kernel),
		SCENARIO(a_hint_hides_the_preemption_behind_the_requests_preparation),
		SCENARIO(devices_are_scheduled_apart),
		SCENARIO(every_policy_runs_every_way),
		SCENARIO(a_deadline_with_time_to_spare_costs_fewer_preemptions),
		cmocka_unit_test(a_burst_keeps_its_mean_rate),
		cmocka_unit_test(a_trace_is_followed_to_the_nanosecond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
