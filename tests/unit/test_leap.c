// SPDX-License-Identifier: MIT
/* What a device leaves out when it runs by itself: a twin that is stepped must not differ. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/units.h"
#include "machine/machine.h"
#include "study/sources.h"

static struct gp_sources sources;
static struct gp_scenario sc;

static void load(const char *name, uint64_t seconds)
{
	struct gp_diag diag;

	assert_int_equal(gp_sources_scenario(&sources, name, &sc, &diag), 0);
	sc.duration_ns = seconds * GP_S;
	sc.warmup_ns = 0;
}

static int unload(void **state)
{
	(void)state;
	gp_scenario_free(&sc);
	gp_sources_free(&sources);
	return 0;
}

/* One row by single steps, which leave nothing out, and one as it is run. */
static void compare_ways_to_run(uint32_t kind, uint32_t hints)
{
	const struct gp_config config = { kind, hints };
	struct gp_run_result *stepped = calloc(1, sizeof(*stepped)), *run = calloc(1, sizeof(*run));
	struct gp_machine *a, *b;
	uint64_t next;

	assert_int_equal(gp_machine_new(&sc, &config, stepped, &a), 0);
	assert_int_equal(gp_machine_new(&sc, &config, run, &b), 0);
	gp_machine_measure(a);
	gp_machine_measure(b);
	while ((next = gp_machine_next(a)) < sc.duration_ns)
		gp_machine_step(a, next);
	gp_machine_step(a, sc.duration_ns);
	gp_machine_run_until(b, sc.duration_ns);
	gp_machine_finish(a);
	gp_machine_finish(b);
	assert_true(run->events > 0);
	assert_memory_equal(run, stepped, sizeof(*run));
	gp_machine_free(a);
	gp_machine_free(b);
	free(stepped);
	free(run);
}

static void rounds_that_are_left_out_change_nothing(void **state)
{
	static const char *const names[] = { "A", "E", "levels", "burst", "queues", "h200-three" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		load(names[i], 2);
		if (sc.nsweep) {
			struct gp_scenario at;

			gp_scenario_at(&sc, sc.nsweep - 1, &at);
			sc = at;
		}
		for (uint32_t kind = 0; kind < GP_CONFIG_COUNT; kind++)
			compare_ways_to_run(kind, kind & 1);
		unload(NULL);
	}
}

/* A device that is stepped and its twin that runs, with the same asked of both. */
#define QUEUES 6
#define COMMANDS 64
#define ACTIONS 400

struct twin {
	struct gpm_gpu gpu;
	struct gpm_queue queues[QUEUES];
	struct gpm_cmd cmds[COMMANDS];
	uint32_t in_use[COMMANDS];
	uint64_t next;
	uint64_t log; /* of all that ended, and when */
};

static void note(struct twin *t, uint64_t now)
{
	struct gpm_cmd *cmd;
	struct gpm_queue *q;

	while ((cmd = gpm_gpu_finished(&t->gpu))) {
		t->in_use[cmd - t->cmds] = 0;
		t->log = t->log * 31 + now + cmd->first_ns * 7 + (uint64_t)(cmd - t->cmds);
	}
	while ((q = gpm_gpu_changed(&t->gpu)))
		t->log = t->log * 31 + now + q->ended_ns * 5 + (uint64_t)(q - t->queues);
}

static void step_to(struct twin *t, uint64_t now)
{
	while (t->next <= now) {
		uint64_t at = t->next;

		t->next = gpm_gpu_step(&t->gpu, at);
		note(t, at);
	}
}

static void run_to(struct twin *t, uint64_t now)
{
	while (t->next <= now) {
		uint64_t at = gpm_gpu_run(&t->gpu, t->next, now + 1);

		t->next = at <= now ? gpm_gpu_step(&t->gpu, at) : at;
		if (at <= now)
			note(t, at);
	}
}

static void same_twins(const struct twin *a, const struct twin *b, uint64_t now)
{
	assert_int_equal(a->log, b->log);
	assert_int_equal(a->gpu.count.events, b->gpu.count.events);
	assert_int_equal(a->gpu.exec.events, b->gpu.exec.events);
	assert_int_equal(a->gpu.exec.free, b->gpu.exec.free);
	for (int i = 0; i < QUEUES; i++) {
		const struct gpm_queue *p = &a->queues[i], *q = &b->queues[i];

		assert_int_equal(p->kernels, q->kernels);
		assert_int_equal(p->kernel, q->kernel);
		assert_int_equal(p->waiting, q->waiting);
		assert_int_equal(p->ctx.ended_ns, q->ctx.ended_ns);
		assert_int_equal(gpm_exec_work(&p->ctx, now), gpm_exec_work(&q->ctx, now));
		assert_int_equal(gpm_exec_left(&p->ctx, now), gpm_exec_left(&q->ctx, now));
	}
}

static void start_twin(struct twin *t, const struct gpm_device *dev, struct gp_random *r)
{
	memset(t, 0, sizeof(*t));
	gpm_gpu_init(&t->gpu, dev);
	for (int i = 0; i < QUEUES; i++) {
		t->queues[i].ctx.priority = (uint32_t)gp_random_between(r, 6, 7);
		t->queues[i].shim =
			gp_random_between(r, 0, 3) ? GPM_SHIM_NONE : (uint32_t)gp_random_between(r, 1, 3);
		t->queues[i].depth = t->queues[i].shim == GPM_SHIM_THROTTLE ? 2 : 0;
		gpm_gpu_add(&t->gpu, &t->queues[i]);
	}
	t->next = gpm_gpu_step(&t->gpu, 0);
}

static void submit_one(struct twin *t, struct gp_random *r, uint64_t now)
{
	struct gpm_queue *q = &t->queues[gp_random_between(r, 0, QUEUES - 1)];
	struct gpm_cmd cmd = { .kernel = { .wave_ns = gp_random_between(r, 1, 6) * 100,
					   .workgroups = (uint32_t)gp_random_between(r, 1, 9),
					   .waves_per_wg = (uint32_t)gp_random_between(r, 1, 2) },
			       .count = gp_random_between(r, 1, 200) };
	int i = 0;

	if (!gp_random_between(r, 0, 2)) {
		cmd.every = gp_random_between(r, 2, 5);
		cmd.every_wave_ns = 900;
	}
	if (!gp_random_between(r, 0, 4))
		cmd.interval_ns = gp_random_between(r, 1, 1000);
	while (i < COMMANDS && t->in_use[i])
		i++;
	if (i == COMMANDS)
		return;
	t->cmds[i] = cmd;
	t->in_use[i] = 1;
	assert_int_equal(gpm_gpu_submit(&t->gpu, q, &t->cmds[i], now), 0);
}

static void change_one(struct twin *t, struct gp_random *r, uint64_t now)
{
	struct gpm_queue *q = &t->queues[gp_random_between(r, 0, QUEUES - 1)];
	uint32_t want = (uint32_t)gp_random_between(r, 0, 2);

	if (q->shim != GPM_SHIM_NONE)
		(void)gpm_gpu_close_shim(&t->gpu, q, want == GPM_STOP, now);
	else
		(void)gpm_gpu_call(&t->gpu, &q, &want, 1, now);
}

static void act(struct twin *t, uint64_t seed, uint64_t now)
{
	struct gp_random r;

	gp_random_init(&r, seed, now);
	if (gp_random_between(&r, 0, 2))
		submit_one(t, &r, now);
	else
		change_one(t, &r, now);
	t->next = gpm_gpu_step(&t->gpu, now);
	note(t, now);
}

static void whatever_is_asked_of_a_device_rounds_change_nothing(void **state)
{
	struct twin *a = malloc(sizeof(*a)), *b = malloc(sizeof(*b));

	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct gpm_device dev = small_concurrent_device();
		struct gp_random r, again;
		uint64_t now = 0;

		gp_random_init(&r, seed, 1);
		dev.queue_slots = gp_random_between(&r, 2, 8);
		dev.selective = gp_random_between(&r, 0, 1);
		dev.quantum_ns = gp_random_between(&r, 1, 5) * 3000;
		again = r;
		start_twin(a, &dev, &r);
		start_twin(b, &dev, &again);
		for (int i = 0; i < ACTIONS; i++) {
			now += gp_random_exponential(&r, gp_random_between(&r, 0, 3) ? 3000 : 60000);
			step_to(a, now);
			run_to(b, now);
			same_twins(a, b, now);
			act(a, seed, now);
			act(b, seed, now);
		}
		assert_true(a->gpu.exec.events > ACTIONS);
	}
	free(a);
	free(b);
}

static void submit_many(struct twin *t, int i, uint64_t wave_ns, uint64_t now)
{
	t->cmds[i] = (struct gpm_cmd){ .kernel = { wave_ns, 1, 1 }, .count = 1000 };
	t->in_use[i] = 1;
	assert_int_equal(gpm_gpu_submit(&t->gpu, &t->queues[i], &t->cmds[i], now), 0);
	t->next = gpm_gpu_step(&t->gpu, now);
}

/*
 * One queue runs; another comes, 15 ns before a kernel of the first ends.  Its first kernel waits until it is
 * mapped, and is as long as to make it begin its second as long after a kernel of the first as its first was
 * to: only that first one had to wait.
 */
static void start_beside_one_that_is_mapped_later(struct twin *t, const struct gpm_device *dev)
{
	const uint64_t mapped = dev->map_fixed_ns + dev->map_queue_ns, period = 1000, before = 15;

	memset(t, 0, sizeof(*t));
	gpm_gpu_init(&t->gpu, dev);
	gpm_gpu_add(&t->gpu, &t->queues[0]);
	t->next = gpm_gpu_step(&t->gpu, 0);
	step_to(t, mapped);
	submit_many(t, 0, period - dev->dispatch_ns, mapped);
	step_to(t, mapped + period - before);
	gpm_gpu_add(&t->gpu, &t->queues[1]);
	submit_many(t, 1, period - mapped, mapped + period - before);
}

static void a_kernel_that_waited_for_its_queue_to_be_mapped_is_no_round(void **state)
{
	struct gpm_device dev = small_concurrent_device();
	struct twin *a = malloc(sizeof(*a)), *b = malloc(sizeof(*b));

	(void)state;
	dev.selective = 1;
	start_beside_one_that_is_mapped_later(a, &dev);
	start_beside_one_that_is_mapped_later(b, &dev);
	step_to(a, 100000);
	run_to(b, 100000);
	assert_true(a->queues[1].kernels > a->queues[0].kernels);
	same_twins(a, b, 100000);
	free(a);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(rounds_that_are_left_out_change_nothing, unload),
		cmocka_unit_test(whatever_is_asked_of_a_device_rounds_change_nothing),
		cmocka_unit_test(a_kernel_that_waited_for_its_queue_to_be_mapped_is_no_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
