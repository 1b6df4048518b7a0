// SPDX-License-Identifier: MIT
/* The whole simulated GPU: run list, device cycles, time slices, command queues and shims. */
#include "unit.h"

#include <string.h>

#include "base/random.h"
#include "model/gpu.h"

#define QUEUES 64
#define T 100000 /* all queues are added and mapped by then */

struct bed {
	struct gpm_device dev;
	struct gpm_gpu gpu;
	struct gpm_queue q[QUEUES];
	gpm_u64 now;
	gpm_u64 changes;     /* handed out by gpm_gpu_changed() */
	gpm_u64 commands;    /* handed out by gpm_gpu_finished() */
	gpm_u32 max_offline; /* mapped at a time, since it was last set to 0 */
};

static struct bed bed;

static void take_results(struct bed *b)
{
	struct gpm_cmd *cmd;

	while (gpm_gpu_changed(&b->gpu))
		b->changes++;
	while ((cmd = gpm_gpu_finished(&b->gpu))) {
		assert_int_equal(cmd->done_ns, b->now);
		b->commands++;
	}
}

/* The device counts its queues as they change; here they are counted one by one. */
static void check_counts(const struct bed *b)
{
	gpm_u32 foreground = 0, background = 0, eligible = 0;

	for (size_t i = 0; i < b->gpu.nqueues; i++) {
		int works = gpm_queue_has_work(&b->q[i]);

		foreground += works && b->q[i].want == GPM_RUN;
		eligible += works && b->q[i].want != GPM_STOP;
		background += b->q[i].want == GPM_BACKGROUND;
	}
	assert_int_equal(b->gpu.foreground, foreground);
	assert_int_equal(b->gpu.background, background);
	assert_int_equal(b->gpu.eligible, eligible);
}

/* What must hold at every instant. */
static void check(struct bed *b)
{
	gpm_u64 slots = b->gpu.exec.free;
	gpm_u32 mapped = 0, offline = 0;

	for (size_t i = 0; i < QUEUES; i++) {
		slots += b->q[i].ctx.held;
		mapped += b->q[i].ctx.mapped;
		offline += b->q[i].ctx.mapped && b->q[i].offline;
	}
	check_counts(b);
	assert_int_equal(slots, gpm_wave_slots(&b->dev));
	assert_true(mapped <= (b->dev.sharing == GPM_TIMESLICE ? 1 : b->dev.queue_slots));
	b->max_offline = offline > b->max_offline ? offline : b->max_offline;
}

static gpm_u64 step(struct bed *b)
{
	gpm_u64 next = gpm_gpu_step(&b->gpu, b->now);

	assert_true(next > b->now);
	check(b);
	take_results(b);
	return next;
}

static void run_until(struct bed *b, gpm_u64 time)
{
	gpm_u64 next = step(b);

	while (next <= time) {
		b->now = next;
		next = step(b);
	}
	b->now = time;
	step(b);
}

static struct bed *start(struct gpm_device dev)
{
	assert_null(gpm_device_check(&dev));
	memset(&bed, 0, sizeof(bed));
	bed.dev = dev;
	gpm_gpu_init(&bed.gpu, &bed.dev);
	return &bed;
}

static void add_queues(struct bed *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		gpm_gpu_add(&b->gpu, &b->q[i]);
	if (b->dev.sharing == GPM_CONCURRENT)
		run_until(b, T);
	b->gpu.count = (struct gpm_counters){ 0 };
	assert_int_equal(b->changes, 0);
}

static struct bed *begin(struct gpm_device dev, size_t queues)
{
	struct bed *b = start(dev);

	add_queues(b, queues);
	return b;
}

static struct gpm_cmd kernels(gpm_u64 count, gpm_u32 waves, gpm_u64 wave_ns)
{
	return (struct gpm_cmd){ .count = count,
				 .kernel = { .workgroups = waves, .waves_per_wg = 1, .wave_ns = wave_ns } };
}

static void submit(struct bed *b, size_t i, struct gpm_cmd *cmd)
{
	assert_int_equal(gpm_gpu_submit(&b->gpu, &b->q[i], cmd, b->now), 0);
	step(b);
}

static void call(struct bed *b, size_t i, gpm_u32 want)
{
	struct gpm_queue *q = &b->q[i];

	assert_int_equal(gpm_gpu_call(&b->gpu, &q, &want, 1, b->now), 0);
	step(b);
}

static void shim(struct bed *b, size_t i, gpm_u32 closed)
{
	assert_int_equal(gpm_gpu_close_shim(&b->gpu, &b->q[i], closed, b->now), 0);
	step(b);
}

static void assert_changed(const struct bed *b, size_t i, gpm_u64 time)
{
	assert_int_equal(b->q[i].call, 0);
	assert_int_equal(b->q[i].ended_ns, time);
}

/* concurrent: the device cycle */

static void a_stop_takes_unmap_save_and_fence_and_the_others_come_back_after_map_and_restore(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 3);
	struct gpm_cmd stopped = kernels(1, 4, 10000), other = kernels(1, 2, 10000);

	(void)state;
	submit(b, 0, &stopped);
	submit(b, 1, &other);
	run_until(b, T + 1020); /* both run since T + 20 */
	call(b, 0, GPM_STOP);
	run_until(b, T + 20000);
	/* Unmapped at T + 1120; 6 waves are saved in 500 + 6 * 1000, and 50 for the fence. */
	assert_changed(b, 0, T + 7670);
	assert_int_equal(b->q[0].called_ns, T + 1020);
	assert_int_equal(b->gpu.count.waves_saved, 6);
	assert_int_equal(b->gpu.count.bytes_saved, 6000);
	/* Two queues are mapped in 200 + 2 * 10, 2 waves restored in 700 + 2 * 1000: T + 10590, 8900 to run.
	 */
	assert_int_equal(other.done_ns, T + 19490);
	assert_int_equal(other.first_ns, T + 20);
	assert_int_equal(stopped.done_ns, GPM_NEVER);
	assert_int_equal(gpm_exec_work(&b->q[0].ctx, b->now), 4 * 1100);
	call(b, 0, GPM_RUN);
	run_until(b, T + 40000);
	/* Unmap 100, nothing to save, fence 50, map 230; then 4700 to restore, 8900 to run. */
	assert_changed(b, 0, T + 20380);
	assert_int_equal(stopped.done_ns, T + 33980);
	assert_int_equal(b->q[0].ctx.done_wave_ns, 40000);
	assert_int_equal(b->gpu.count.cycles, 2);
	assert_int_equal(b->changes, 2);
}

static void a_stop_of_many_queues_in_one_call_is_one_cycle(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 24);
	struct gpm_queue *queues[23];
	gpm_u32 wants[23];

	(void)state;
	for (size_t i = 0; i < 23; i++) {
		queues[i] = &b->q[i];
		wants[i] = GPM_STOP;
	}
	assert_int_equal(gpm_gpu_call(&b->gpu, queues, wants, 23, T), 0);
	run_until(b, T + 10000);
	for (size_t i = 0; i < 23; i++)
		assert_changed(b, i, T + 150);
	assert_int_equal(b->changes, 23);
	assert_int_equal(b->gpu.count.cycles, 1);
}

static void only_a_stopped_queue_can_be_removed_and_the_others_go_on(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 3);
	struct gpm_cmd kept = kernels(2, 4, 10000), removed = kernels(2, 4, 10000);

	(void)state;
	submit(b, 0, &kept);
	submit(b, 2, &removed);
	assert_int_equal(gpm_gpu_remove(&b->gpu, &b->q[2]), -1);
	call(b, 2, GPM_STOP);
	assert_int_equal(gpm_gpu_remove(&b->gpu, &b->q[2]), -1);
	run_until(b, T + 20000);
	assert_int_equal(gpm_gpu_remove(&b->gpu, &b->q[2]), 0);
	assert_int_equal(b->gpu.nqueues, 2);
	run_until(b, 2 * T);
	assert_int_equal(b->commands, 1);
	assert_true(kept.done_ns < 2 * T);
	assert_int_equal(removed.done_ns, GPM_NEVER);
}

static void a_device_whose_last_queue_was_removed_takes_new_ones(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 1);
	struct gpm_cmd removed = kernels(1, 4, 10000), cmd = kernels(1, 4, 1000);

	(void)state;
	call(b, 0, GPM_STOP);
	run_until(b, 2 * T);
	assert_int_equal(gpm_gpu_submit(&b->gpu, &b->q[0], &removed, b->now), 0); /* about to start */
	assert_int_equal(gpm_gpu_remove(&b->gpu, &b->q[0]), 0);
	assert_null(b->gpu.starting);
	run_until(b, 3 * T);
	b->q[0] = (struct gpm_queue){ 0 };
	gpm_gpu_add(&b->gpu, &b->q[0]);
	submit(b, 0, &cmd);
	run_until(b, 4 * T);
	assert_int_equal(b->commands, 1);
}

static void calls_are_served_one_after_the_other(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 3);

	(void)state;
	call(b, 0, GPM_STOP);
	b->now = T + 1;
	call(b, 1, GPM_STOP);
	run_until(b, T + 10000);
	assert_changed(b, 0, T + 150);
	/* The first cycle ends with the map of two queues, at T + 370. */
	assert_changed(b, 1, T + 520);
	assert_int_equal(b->gpu.count.cycles, 2);
	/* Unmap, save and map twice, and two answers. */
	assert_int_equal(b->gpu.count.events, 8);
}

static void one_call_stops_some_and_resumes_others(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 3);
	struct gpm_queue *queues[] = { &b->q[0], &b->q[1] };
	const gpm_u32 wants[] = { GPM_RUN, GPM_STOP };

	(void)state;
	call(b, 0, GPM_STOP);
	run_until(b, T + 1000);
	assert_int_equal(gpm_gpu_call(&b->gpu, queues, wants, 2, b->now), 0);
	run_until(b, T + 10000);
	assert_changed(b, 1, T + 1150);
	assert_changed(b, 0, T + 1370);
	assert_int_equal(b->gpu.count.cycles, 2);
}

static void resuming_the_only_queue_needs_no_unmap(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 1);

	(void)state;
	call(b, 0, GPM_STOP);
	run_until(b, T + 1000);
	call(b, 0, GPM_RUN);
	run_until(b, T + 2000);
	assert_changed(b, 0, T + 1210);
}

static void a_call_that_changes_nothing_makes_no_cycle(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 2);

	(void)state;
	call(b, 0, GPM_RUN);
	assert_changed(b, 0, T);
	assert_int_equal(b->changes, 1);
	assert_int_equal(b->gpu.count.cycles, 0);
	assert_true(b->q[0].ctx.mapped && b->q[1].ctx.mapped);
}

static void a_queue_in_a_call_is_refused_another_and_so_is_a_queue_named_twice(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 2);
	struct gpm_queue *queues[] = { &b->q[1], &b->q[0] }, *twice[] = { &b->q[1], &b->q[1] };
	const gpm_u32 wants[] = { GPM_STOP, GPM_STOP };

	(void)state;
	call(b, 0, GPM_STOP);
	assert_int_equal(gpm_gpu_call(&b->gpu, queues, wants, 2, T), -1);
	assert_int_equal(b->q[1].call, 0);
	assert_int_equal(gpm_gpu_call(&b->gpu, twice, wants, 2, T), -1);
	assert_int_equal(b->q[1].call, 0);
	run_until(b, T + 1000);
	assert_int_equal(b->q[1].want, GPM_RUN);
	assert_int_equal(gpm_gpu_call(&b->gpu, queues, wants, 2, b->now), 0);
	run_until(b, T + 2000);
	assert_int_equal(b->q[1].want, GPM_STOP);
}

static void a_queue_whose_two_calls_were_not_asked_after_is_handed_out_once(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 2);

	(void)state;
	b->q[0].shim = b->q[1].shim = GPM_SHIM_GATE;
	assert_int_equal(gpm_gpu_close_shim(&b->gpu, &b->q[0], 1, T), 0);
	assert_int_equal(gpm_gpu_close_shim(&b->gpu, &b->q[1], 1, T), 0);
	assert_int_equal(gpm_gpu_close_shim(&b->gpu, &b->q[0], 0, T), 0);
	assert_ptr_equal(gpm_gpu_changed(&b->gpu), &b->q[0]);
	assert_ptr_equal(gpm_gpu_changed(&b->gpu), &b->q[1]);
	assert_null(gpm_gpu_changed(&b->gpu));
	assert_int_equal(gpm_gpu_close_shim(&b->gpu, &b->q[0], 1, T), 0);
	assert_ptr_equal(gpm_gpu_changed(&b->gpu), &b->q[0]);
}

static void numbers_of_calls_that_start_again_skip_the_one_that_means_none(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 2);

	(void)state;
	b->q[0].shim = GPM_SHIM_GATE;
	b->gpu.next_call_id = UINT32_MAX;
	call(b, 1, GPM_STOP);
	assert_int_equal(b->q[1].call, 1);
	b->gpu.next_call_id = UINT32_MAX;
	b->q[0].ctx.busy = 1; /* so that it does not drain at once */
	assert_int_equal(gpm_gpu_close_shim(&b->gpu, &b->q[0], 1, T), 0);
	assert_int_equal(b->q[0].call, 1);
}

static void adding_queues_is_one_cycle_for_all_and_stops_those_that_run(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 1);
	struct gpm_cmd running = kernels(1, 2, 10000), early = kernels(1, 1, 1000);

	(void)state;
	submit(b, 0, &running);
	run_until(b, T + 1020);
	gpm_gpu_add(&b->gpu, &b->q[1]);
	gpm_gpu_add(&b->gpu, &b->q[2]);
	submit(b, 2, &early);
	run_until(b, T + 30000);
	/* Unmapped at T + 1120, 2 waves saved in 2500, fence 50, map of three 230: T + 3900. */
	assert_int_equal(early.first_ns, T + 3900);
	assert_int_equal(running.done_ns, T + 3900 + 2700 + (10000 - 1100));
	assert_int_equal(b->gpu.count.cycles, 0);
	assert_int_equal(b->changes, 0);
}

static void a_command_may_be_submitted_again_and_its_times_are_those_of_the_last_time(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 1);
	struct gpm_cmd cmd = kernels(1, 1, 1000);

	(void)state;
	cmd.kernel.waves_per_wg = 8; /* just the device */
	cmd.next = &cmd;
	submit(b, 0, &cmd);
	assert_int_equal(cmd.first_ns, GPM_NEVER);
	assert_int_equal(cmd.done_ns, GPM_NEVER);
	run_until(b, T + 5000);
	assert_int_equal(cmd.done_ns, T + 1020);
	/* A start and an end. */
	assert_int_equal(b->gpu.count.events, 2);
	submit(b, 0, &cmd);
	assert_int_equal(cmd.first_ns, GPM_NEVER);
	run_until(b, T + 10000);
	assert_int_equal(cmd.submitted_ns, T + 5000);
	assert_int_equal(cmd.first_ns, T + 5020);
	assert_int_equal(cmd.done_ns, T + 6020);
	assert_int_equal(b->commands, 2);
}

static void what_cannot_run_is_refused_at_its_submission(void **state)
{
	struct bed *b = begin(small_concurrent_device(), 1);
	struct gpm_cmd none = kernels(0, 1, 1), large = kernels(1, 1, 1);

	(void)state;
	large.kernel.waves_per_wg = 9;
	assert_int_equal(gpm_gpu_submit(&b->gpu, &b->q[0], &none, T), -1);
	assert_int_equal(gpm_gpu_submit(&b->gpu, &b->q[0], &large, T), -1);
	assert_int_equal(b->q[0].waiting, 0);
}

/* concurrent: a selective device */

static struct gpm_device selective_device(void)
{
	struct gpm_device dev = small_concurrent_device();

	dev.selective = 1;
	return dev;
}

static void a_selective_device_leaves_the_others_running(void **state)
{
	struct bed *b = begin(selective_device(), 3);
	struct gpm_cmd stopped = kernels(1, 4, 10000), other = kernels(1, 2, 10000);

	(void)state;
	submit(b, 0, &stopped);
	submit(b, 1, &other);
	run_until(b, T + 1020);
	call(b, 0, GPM_STOP);
	run_until(b, T + 20000);
	/* Unmap 100, 4 waves saved in 4500, fence 50; nothing to map. */
	assert_changed(b, 0, T + 5670);
	assert_int_equal(other.done_ns, T + 10020);
	assert_int_equal(b->gpu.count.waves_saved, 4);
	call(b, 0, GPM_RUN);
	run_until(b, T + 40000);
	/* Map 210; restore 4700; 8900 to run. */
	assert_changed(b, 0, T + 20210);
	assert_int_equal(stopped.done_ns, T + 33810);
}

static void a_selective_device_takes_an_unmap_for_each_queue(void **state)
{
	struct bed *b = begin(selective_device(), 3);
	struct gpm_queue *queues[] = { &b->q[0], &b->q[1] };
	const gpm_u32 wants[] = { GPM_STOP, GPM_STOP };

	(void)state;
	assert_int_equal(gpm_gpu_call(&b->gpu, queues, wants, 2, T), 0);
	run_until(b, T + 1000);
	assert_changed(b, 0, T + 250);
	assert_changed(b, 1, T + 250);
	assert_true(b->q[2].ctx.mapped);
}

static void on_a_full_selective_device_one_more_queue_gets_its_turn(void **state)
{
	struct gpm_device dev = selective_device();
	struct gpm_cmd cmd[3];
	struct bed *b;

	(void)state;
	dev.queue_slots = 2;
	b = begin(dev, 2);
	gpm_gpu_add(&b->gpu, &b->q[2]);
	for (size_t i = 0; i < 3; i++) {
		cmd[i] = kernels(1, 2, 5000000);
		submit(b, i, &cmd[i]);
	}
	/* It found no slot at T: one quantum later is its turn. */
	run_until(b, T + 1100000);
	assert_true(gpm_exec_work(&b->q[2].ctx, b->now) > 0);
	/* A turn takes all off; a call after it again only the one it is about. */
	b->gpu.count.waves_saved = 0;
	call(b, 2, GPM_STOP);
	run_until(b, b->now + 1000);
	assert_int_equal(b->gpu.count.waves_saved, 2);
}

static void calls_more_often_than_the_quantum_do_not_put_a_turn_off(void **state)
{
	struct gpm_cmd cmd[3];
	struct bed *b = start(selective_device());

	(void)state;
	b->q[1].offline = b->q[2].offline = 1;
	gpm_gpu_limit_offline(&b->gpu, 1);
	add_queues(b, 3);
	for (size_t i = 0; i < 3; i++) {
		cmd[i] = kernels(1, 1, 50000000);
		submit(b, i, &cmd[i]);
	}
	for (gpm_u64 n = 1; n <= 30; n++) {
		run_until(b, T + n * 100000);
		call(b, 0, n % 2 ? GPM_STOP : GPM_RUN);
	}
	for (size_t i = 0; i < 3; i++)
		assert_true(gpm_exec_work(&b->q[i].ctx, b->now) > 0);
}

static void a_limit_set_during_a_cycle_of_a_selective_device_takes_effect_after_it(void **state)
{
	struct bed *b = start(selective_device());

	(void)state;
	for (size_t i = 1; i < 4; i++)
		b->q[i].offline = 1;
	add_queues(b, 4);
	call(b, 0, GPM_STOP);
	run_until(b, T + 1000);
	call(b, 0, GPM_RUN);
	gpm_gpu_limit_offline(&b->gpu, 1);
	run_until(b, T + 10000);
	b->max_offline = 0;
	run_until(b, T + 10000000);
	assert_int_equal(b->max_offline, 1);
}

static void a_queue_made_background_while_background_is_held_back_leaves_a_selective_device(void **state)
{
	struct bed *b = begin(selective_device(), 3);
	struct gpm_cmd online = kernels(1, 1, 1000000), offline = kernels(1, 1, 1000000);

	(void)state;
	call(b, 2, GPM_BACKGROUND);
	submit(b, 0, &online);
	submit(b, 1, &offline);
	run_until(b, T + 10000);
	assert_true(b->gpu.held_back && b->q[1].ctx.mapped);
	call(b, 1, GPM_BACKGROUND);
	run_until(b, T + 20000);
	assert_false(b->q[1].ctx.mapped);
	/* It ran from T + 20 until it was unmapped, 100 after the call. */
	assert_int_equal(gpm_exec_work(&b->q[1].ctx, b->now), 10080);
	assert_int_equal(gpm_exec_work(&b->q[0].ctx, b->now), 19980);
}

/* concurrent: more queues than slots */

static void sixty_four_queues_on_twenty_four_slots_all_make_progress(void **state)
{
	static struct gpm_cmd cmd[QUEUES];
	struct bed *b = begin(small_concurrent_device(), QUEUES);

	(void)state;
	for (size_t i = 0; i < QUEUES; i++) {
		cmd[i] = kernels(1000000, 1, 10000);
		submit(b, i, &cmd[i]);
	}
	/* Three turns bring everyone on, each a quantum and its cycle apart. */
	run_until(b, T + 4 * 1100000);
	for (size_t i = 0; i < QUEUES; i++)
		assert_true(gpm_exec_work(&b->q[i].ctx, b->now) > 0);
	assert_in_range(b->gpu.count.quanta, 3, 4);
	assert_int_equal(b->gpu.count.cycles, 0);
}

static void a_turn_comes_one_quantum_after_the_queue_found_no_slot(void **state)
{
	struct gpm_device dev = small_concurrent_device();
	struct gpm_cmd cmd = kernels(1, 1, 1000);
	struct bed *b;

	(void)state;
	dev.queue_slots = 2;
	/* Added at 0: two are mapped in 200 + 2 * 10, and the third finds no slot. */
	b = begin(dev, 3);
	submit(b, 2, &cmd);
	run_until(b, 2000000);
	/* A quantum later: unmap 100, fence 50, map 220. */
	assert_int_equal(cmd.first_ns, 220 + 1000000 + 370);
	assert_int_equal(b->gpu.count.quanta, 1);
}

static void no_turn_is_made_for_queues_without_work(void **state)
{
	struct gpm_device dev = small_concurrent_device();
	struct gpm_cmd cmd = kernels(1, 1, 5000000);
	struct bed *b;

	(void)state;
	dev.queue_slots = 2;
	b = begin(dev, 3);
	submit(b, 0, &cmd);
	run_until(b, T + 10000000);
	assert_int_equal(b->gpu.count.quanta, 0);
	assert_int_equal(cmd.done_ns, T + 5000020);
}

static void begin_with_offline(struct gpm_device dev, struct gpm_cmd *cmd, size_t n)
{
	struct bed *b = start(dev);

	for (size_t i = 1; i < n; i++)
		b->q[i].offline = 1;
	add_queues(b, n);
	for (size_t i = 0; i < n; i++) {
		cmd[i] = kernels(300, 2, 10000);
		submit(b, i, &cmd[i]);
	}
}

static void at_most_as_many_offline_queues_as_the_limit_are_mapped_and_all_finish(void **state)
{
	const struct gpm_device devices[] = { small_concurrent_device(), selective_device() };
	struct gpm_cmd cmd[6];

	(void)state;
	for (size_t d = 0; d < 2; d++) {
		begin_with_offline(devices[d], cmd, 6);
		gpm_gpu_limit_offline(&bed.gpu, 2);
		run_until(&bed, T + 20000); /* 5 queues of 2 waves are unmapped and saved by then */
		bed.max_offline = 0;
		run_until(&bed, T + 100000000);
		assert_int_equal(bed.max_offline, 2);
		for (size_t i = 0; i < 6; i++)
			assert_int_equal(bed.q[i].ctx.done_wave_ns, 300 * 2 * 10000);
	}
}

static void a_limit_that_is_kept_already_makes_no_turn(void **state)
{
	struct gpm_cmd cmd[3];

	(void)state;
	begin_with_offline(small_concurrent_device(), cmd, 3);
	gpm_gpu_limit_offline(&bed.gpu, 2);
	run_until(&bed, T + 100000);
	assert_int_equal(bed.gpu.count.quanta, 0);
}

static void with_a_limit_of_zero_no_offline_queue_runs_until_it_is_raised(void **state)
{
	struct gpm_cmd cmd[3], foreground = kernels(1, 1, 5000);
	struct bed *b = &bed;
	gpm_u64 work;

	(void)state;
	begin_with_offline(small_concurrent_device(), cmd, 3);
	gpm_gpu_limit_offline(&b->gpu, 0);
	run_until(b, T + 20000);
	b->max_offline = 0;
	work = gpm_exec_work(&b->q[1].ctx, b->now);
	run_until(b, T + 10000000);
	assert_int_equal(b->max_offline, 0);
	assert_int_equal(gpm_exec_work(&b->q[1].ctx, b->now), work);
	assert_int_not_equal(cmd[0].done_ns, GPM_NEVER);
	/* A call on a queue that may not run anyway is done at once. */
	call(b, 1, GPM_BACKGROUND);
	assert_changed(b, 1, T + 10000000);
	/* And as it is off, it need not give way. */
	submit(b, 0, &foreground);
	run_until(b, T + 11000000);
	assert_int_equal(foreground.done_ns, T + 10005020);
	assert_int_equal(b->gpu.count.yields, 0);
	gpm_gpu_limit_offline(&b->gpu, 1);
	run_until(b, T + 50000000);
	assert_int_equal(b->max_offline, 1);
	assert_int_equal(b->q[1].ctx.done_wave_ns, 300 * 2 * 10000);
	assert_int_equal(b->q[2].ctx.done_wave_ns, 300 * 2 * 10000);
}

/* concurrent: background queues */

/* Queue 1 runs in the background, 4 waves since T + 20. */
static struct bed *begin_background(struct gpm_cmd *cmd)
{
	struct bed *b = begin(small_concurrent_device(), 2);

	*cmd = kernels(1, 4, 100000);
	call(b, 1, GPM_BACKGROUND);
	assert_changed(b, 1, T);
	assert_int_equal(b->gpu.count.cycles, 0);
	submit(b, 1, cmd);
	run_until(b, T + 10000);
	return b;
}

static void background_gives_way_after_the_notice_and_comes_back_after_the_linger(void **state)
{
	struct gpm_cmd background, foreground = kernels(1, 2, 50000);
	struct bed *b = begin_background(&background);
	gpm_u64 t = b->now;

	(void)state;
	submit(b, 0, &foreground);
	run_until(b, t + 200000);
	/*
	 * Noticed at t + 1000 and unmapped at t + 1100: 6 waves saved in 6500, fence 50, map of one 210: t +
	 * 7860; 2 waves restored in 2700; 50000 - 1080 to run.
	 */
	assert_int_equal(foreground.done_ns, t + 7860 + 2700 + 48920);
	/* 5000 later: unmap 100, fence 50, map 220, restore 4700; it had run from t - 9980 to t + 1100. */
	assert_int_equal(background.done_ns, t + 59480 + 5000 + 370 + 4700 + (100000 - 11080));
	assert_int_equal(b->gpu.count.yields, 2);
	assert_int_equal(b->gpu.count.cycles, 0);
}

static void background_stays_away_when_foreground_work_returns_before_the_linger_ends(void **state)
{
	struct gpm_cmd background, first = kernels(1, 2, 50000), second = kernels(1, 2, 1000);
	struct bed *b = begin_background(&background);
	gpm_u64 t = b->now;

	(void)state;
	submit(b, 0, &first);
	run_until(b, t + 60000); /* the linger would end at t + 64480 */
	submit(b, 0, &second);
	run_until(b, t + 60000 + 1020 + 4999);
	assert_int_equal(second.done_ns, t + 60000 + 1020);
	assert_int_equal(b->gpu.count.yields, 1);
	run_until(b, t + 60000 + 1020 + 5000);
	assert_int_equal(b->gpu.count.yields, 2);
}

static void foreground_work_that_ends_before_the_notice_disturbs_nobody(void **state)
{
	struct gpm_cmd background, foreground = kernels(1, 2, 500);
	struct bed *b = begin_background(&background);

	(void)state;
	submit(b, 0, &foreground);
	run_until(b, T + 200000);
	assert_int_equal(foreground.done_ns, T + 10520);
	assert_int_equal(background.done_ns, T + 100020);
	assert_int_equal(b->gpu.count.yields, 0);
}

static void when_the_last_background_queue_is_stopped_the_device_makes_no_cycle_of_its_own(void **state)
{
	struct gpm_cmd background, foreground = kernels(1, 2, 50000);
	struct bed *b = begin_background(&background);
	gpm_u64 t = b->now;

	(void)state;
	submit(b, 0, &foreground);
	run_until(b, t + 20000);
	assert_int_equal(b->gpu.count.yields, 1);
	call(b, 1, GPM_STOP); /* it is off already */
	assert_changed(b, 1, t + 20000);
	run_until(b, t + 200000);
	assert_int_equal(b->gpu.count.yields, 1);
	assert_int_equal(foreground.done_ns, t + 59480); /* as if nothing had been said */
	/* Nothing is held back any more: it comes back by the call alone. */
	call(b, 1, GPM_BACKGROUND);
	run_until(b, t + 400000);
	assert_changed(b, 1, t + 200370);
	assert_int_equal(b->gpu.count.yields, 1);
	assert_int_equal(background.done_ns, t + 200370 + 4700 + (100000 - 11080));
}

static void the_queue_of_the_higher_priority_gets_the_slots_after_a_cycle_too(void **state)
{
	struct gpm_cmd low = kernels(1, 80, 1000), high = kernels(1, 8, 1000);
	struct bed *b = start(small_concurrent_device());

	(void)state;
	b->q[2].ctx.priority = 7;
	add_queues(b, 3);
	/* All are off for 370 from T on; what is submitted meanwhile meets when they come back. */
	call(b, 0, GPM_STOP);
	run_until(b, T + 110);
	submit(b, 1, &low);
	submit(b, 2, &high);
	run_until(b, T + 20000);
	assert_int_equal(high.done_ns, T + 1370);
	assert_int_equal(low.done_ns, T + 11370); /* ten rounds */
}

/* time slices */

static void two_busy_queues_alternate_by_slice_and_pay_for_each_switch(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 2);
	struct gpm_cmd first = kernels(1, 8, 2500), second = kernels(1, 8, 2500);

	(void)state;
	submit(b, 0, &first);
	run_until(b, 10);
	submit(b, 1, &second);
	run_until(b, 10000);
	/*
	 * first: 50 to 1050, 2150 to 3150, 4250 to 4750; second: 1100 to 2100, 3200 to 4200, 4800 to 5300.
	 * Switches at 0, 1050, 2100, 3150, 4200, 4750.
	 */
	assert_int_equal(first.done_ns, 4750);
	assert_int_equal(second.done_ns, 5300);
	assert_int_equal(b->gpu.count.switches, 6);
	assert_int_equal(b->gpu.count.yields, 0);
	/* Taken off four times with 8 waves. */
	assert_int_equal(b->gpu.count.waves_saved, 32);
}

static void a_lone_queue_never_switches(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 3);
	struct gpm_cmd cmd = kernels(10, 8, 5000);

	(void)state;
	submit(b, 1, &cmd);
	run_until(b, 100000);
	assert_int_equal(cmd.done_ns, 50050);
	assert_int_equal(b->gpu.count.switches, 1);
}

static void a_queue_whose_state_is_on_the_device_comes_back_without_cost(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 2);
	struct gpm_cmd first = kernels(1, 8, 1000), second = kernels(1, 8, 1000);

	(void)state;
	submit(b, 0, &first);
	run_until(b, 5000);
	submit(b, 0, &second);
	run_until(b, 10000);
	assert_int_equal(first.done_ns, 1050);
	assert_int_equal(second.done_ns, 6000);
	assert_int_equal(b->gpu.count.switches, 1);
}

static void a_background_queue_gives_the_device_up_at_the_end_of_its_short_slice(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 2);
	struct gpm_cmd background = kernels(1, 8, 1000000), foreground = kernels(1, 8, 3000);

	(void)state;
	call(b, 1, GPM_BACKGROUND);
	assert_changed(b, 1, 0);
	submit(b, 1, &background);
	run_until(b, 10010);
	submit(b, 0, &foreground);
	run_until(b, 20000);
	/*
	 * Its slices of 100 run since 50: the next ends at 10050, and 50 for the switch. Slices of 1000 to
	 * 11100, 12300 and 13500, with 50 + 100 + 50 between them.
	 */
	assert_int_equal(foreground.first_ns, 10100);
	assert_int_equal(foreground.done_ns, 13500);
	assert_int_equal(b->gpu.count.yields, 3);
}

static void a_background_queue_may_have_a_slice_of_its_own(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 2);
	struct gpm_cmd background = kernels(1, 8, 1000000), foreground = kernels(1, 8, 500);

	(void)state;
	b->q[1].slice_ns = 3000;
	call(b, 1, GPM_BACKGROUND);
	submit(b, 1, &background);
	run_until(b, 10010);
	submit(b, 0, &foreground);
	run_until(b, 20000);
	/* 50 + 4 * 3000 is the first end after 10010. */
	assert_int_equal(foreground.done_ns, 12050 + 50 + 500);
}

static void a_queue_made_background_in_its_slice_has_the_shorter_one_at_once(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 2);
	struct gpm_cmd first = kernels(1, 8, 100000), second = kernels(1, 8, 500);

	(void)state;
	submit(b, 0, &first);
	run_until(b, 60);
	submit(b, 1, &second);
	run_until(b, 320); /* the slice would end at 1050 */
	call(b, 0, GPM_BACKGROUND);
	run_until(b, 10000);
	assert_int_equal(second.first_ns, 400); /* 50 + 3 * 100, and the switch */
}

static void a_stop_of_the_queue_on_the_device_takes_effect_at_once(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 2);
	struct gpm_cmd first = kernels(1, 8, 5000), second = kernels(1, 8, 1000);

	(void)state;
	submit(b, 0, &first);
	run_until(b, 100);
	submit(b, 1, &second);
	run_until(b, 500);
	call(b, 0, GPM_STOP);
	assert_changed(b, 0, 500);
	assert_int_equal(b->gpu.count.cycles, 1);
	run_until(b, 3000);
	assert_int_equal(gpm_exec_work(&b->q[0].ctx, b->now), 8 * 450);
	assert_int_equal(second.done_ns, 1550);
	call(b, 0, GPM_RUN);
	run_until(b, 10000);
	assert_int_equal(first.done_ns, 3000 + 50 + 4550);
}

static void after_a_stopped_queue_comes_the_one_behind_it(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 3);
	struct gpm_cmd cmd[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		cmd[i] = kernels(1, 8, 100000);
		submit(b, i, &cmd[i]);
	}
	run_until(b, 2500); /* 0 on at 50, 1 at 1100, 2 at 2150 */
	assert_true(b->q[2].ctx.mapped);
	call(b, 2, GPM_STOP);
	run_until(b, 2600);
	assert_int_equal(gpm_exec_work(&b->q[0].ctx, b->now), 8 * 1050);
	assert_int_equal(gpm_exec_work(&b->q[1].ctx, b->now), 8 * 1000);
	assert_int_equal(gpm_exec_work(&b->q[2].ctx, b->now), 8 * 350);
}

static void a_slice_that_ends_when_the_only_other_queue_is_stopped_goes_on(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 2);
	struct gpm_cmd first = kernels(1, 8, 5000), second = kernels(1, 8, 1000);
	struct gpm_queue *q = &b->q[1];
	const gpm_u32 want = GPM_STOP;

	(void)state;
	submit(b, 0, &first);
	run_until(b, 100);
	submit(b, 1, &second);
	run_until(b, 1049);
	b->now = 1050;
	assert_int_equal(gpm_gpu_call(&b->gpu, &q, &want, 1, b->now), 0);
	run_until(b, 10000);
	assert_changed(b, 1, 1050);
	assert_int_equal(first.done_ns, 5050);
	assert_int_equal(b->gpu.count.switches, 1);
	assert_int_equal(b->gpu.count.waves_saved, 0);
}

static void a_queue_stopped_on_its_way_to_the_device_does_not_run(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 2);
	struct gpm_cmd cmd = kernels(1, 8, 1000);

	(void)state;
	submit(b, 0, &cmd);
	run_until(b, 20);
	call(b, 0, GPM_STOP);
	assert_changed(b, 0, 20);
	run_until(b, 100);
	assert_int_equal(gpm_exec_work(&b->q[0].ctx, b->now), 0);
	/* The switch was made: its state is there. */
	call(b, 0, GPM_RUN);
	run_until(b, 5000);
	assert_int_equal(cmd.done_ns, 1100);
	assert_int_equal(b->gpu.count.switches, 1);
}

static void a_queue_removed_on_its_way_to_the_device_leaves_it_to_the_next(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 2);
	struct gpm_cmd other = kernels(1, 8, 1000), removed = kernels(1, 8, 1000);

	(void)state;
	submit(b, 1, &removed);
	run_until(b, 20);
	call(b, 1, GPM_STOP);
	assert_int_equal(gpm_gpu_remove(&b->gpu, &b->q[1]), 0);
	submit(b, 0, &other);
	run_until(b, 5000);
	assert_int_equal(other.done_ns, 20 + 50 + 1000);
	assert_int_equal(removed.done_ns, GPM_NEVER);
}

static void a_queue_that_its_closed_gate_holds_back_takes_no_slices(void **state)
{
	struct bed *b = begin(small_timeslice_device(), 2);
	struct gpm_cmd held = kernels(5, 8, 1000), runs = kernels(1, 8, 10000);

	(void)state;
	b->q[0].shim = GPM_SHIM_GATE;
	submit(b, 0, &held);
	run_until(b, 500);
	shim(b, 0, 1);
	run_until(b, 2000);
	assert_changed(b, 0, 1050); /* on at 50 */
	submit(b, 1, &runs);
	run_until(b, 20000);
	assert_int_equal(runs.done_ns, 12050);
	shim(b, 0, 0);
	run_until(b, 50000);
	/* Its state left: 50 to switch and 30 at the gate, at the same time; then 30 before each of 3 more.
	 */
	assert_int_equal(held.done_ns, 20000 + 50 + 4 * 1000 + 3 * 30);
}

/* shims and command queues */

static struct bed *begin_shim(gpm_u32 kind, gpm_u32 depth)
{
	struct bed *b = start(small_concurrent_device());

	b->q[0].shim = kind;
	b->q[0].depth = depth;
	add_queues(b, 1);
	return b;
}

static void a_closed_throttle_lets_only_what_is_in_flight_end(void **state)
{
	struct bed *b = begin_shim(GPM_SHIM_THROTTLE, 2);
	struct gpm_cmd cmd = kernels(10, 8, 1000);

	(void)state;
	submit(b, 0, &cmd);
	/* Kernels of 1000 with 20 before each: the third runs from T + 2060 to T + 3060, the fourth to T +
	 * 4080. */
	run_until(b, T + 2500);
	shim(b, 0, 1);
	run_until(b, T + 10000);
	assert_changed(b, 0, T + 4080);
	assert_int_equal(b->q[0].kernels, 4);
	shim(b, 0, 0);
	assert_changed(b, 0, T + 10000);
	run_until(b, T + 50000);
	/* Launch 300, then 6 more of 1020. */
	assert_int_equal(cmd.done_ns, T + 10300 + 6 * 1020);
	assert_int_equal(b->q[0].ctx.done_wave_ns, 80000);
	assert_int_equal(b->gpu.count.cycles, 0);
}

static void a_throttle_of_depth_one_waits_for_the_host_between_kernels(void **state)
{
	struct bed *b = begin_shim(GPM_SHIM_THROTTLE, 1);
	struct gpm_cmd cmd = kernels(3, 8, 1000);

	(void)state;
	submit(b, 0, &cmd);
	run_until(b, T + 1500);
	run_until(b, T + 10000);
	assert_int_equal(cmd.done_ns, T + 1020 + 2 * 1320);
}

static void short_kernels_wait_for_the_end_of_the_one_depth_before_them(void **state)
{
	struct bed *b = begin_shim(GPM_SHIM_THROTTLE, 2);
	struct gpm_cmd cmd = kernels(5, 8, 100);

	(void)state;
	submit(b, 0, &cmd);
	run_until(b, T + 10000);
	/* Ends at 120 and 240; 120 + 300 + 20 + 100 = 540; 240 + 420 = 660; 540 + 420 = 960. */
	assert_int_equal(cmd.done_ns, T + 960);
}

static void a_throttle_with_less_waiting_than_its_depth_drains_that(void **state)
{
	struct bed *b = begin_shim(GPM_SHIM_THROTTLE, 4);
	struct gpm_cmd cmd = kernels(2, 8, 1000), later = kernels(1, 8, 1000);

	(void)state;
	submit(b, 0, &cmd);
	run_until(b, T + 100);
	shim(b, 0, 1);
	submit(b, 0, &later);
	run_until(b, T + 10000);
	assert_changed(b, 0, T + 2040);
	assert_int_equal(cmd.done_ns, T + 2040);
	assert_int_equal(later.done_ns, GPM_NEVER);
	shim(b, 0, 1); /* it is closed: nothing to do */
	assert_changed(b, 0, T + 10000);
}

/* One kernel each 5000 ns, and the queue is idle when it is closed: nothing is in flight. */
static void a_throttle_closed_between_eager_launches_is_empty_at_once(void **state)
{
	struct bed *b = begin_shim(GPM_SHIM_THROTTLE, 4);
	struct gpm_cmd cmd = kernels(10, 8, 1000);

	(void)state;
	cmd.interval_ns = 5000;
	submit(b, 0, &cmd);
	run_until(b, T + 1500);
	assert_int_equal(b->q[0].kernels, 1);
	shim(b, 0, 1);
	run_until(b, T + 20000);
	assert_changed(b, 0, T + 1500);
	assert_int_equal(b->q[0].kernels, 1);
	shim(b, 0, 0);
	run_until(b, T + 100000);
	assert_int_equal(b->q[0].kernels, 10);
}

static void the_shim_of_a_stopped_queue_with_a_kernel_in_it_cannot_be_closed(void **state)
{
	struct bed *b = begin_shim(GPM_SHIM_GATE, 0);
	struct gpm_cmd cmd = kernels(1, 8, 100000);

	(void)state;
	submit(b, 0, &cmd);
	run_until(b, T + 1000);
	call(b, 0, GPM_STOP);
	run_until(b, T + 50000);
	assert_int_equal(gpm_gpu_close_shim(&b->gpu, &b->q[0], 1, b->now), -1);
	call(b, 0, GPM_RUN);
	run_until(b, T + 500000);
	assert_int_equal(b->q[0].kernels, 1);
}

static void a_gate_closes_at_the_end_of_the_kernel_that_runs(void **state)
{
	struct bed *b = begin_shim(GPM_SHIM_GATE, 0);
	struct gpm_cmd cmd = kernels(4, 8, 1000);

	(void)state;
	submit(b, 0, &cmd);
	/* 30 + 20 before each: kernels end at 1050, 2100. */
	run_until(b, T + 1500);
	shim(b, 0, 1);
	assert_int_equal(gpm_gpu_close_shim(&b->gpu, &b->q[0], 0, b->now), -1);
	run_until(b, T + 5000);
	assert_changed(b, 0, T + 2100);
	assert_int_equal(b->q[0].kernels, 2);
	shim(b, 0, 0);
	run_until(b, T + 6070); /* between the third and the fourth kernel */
	shim(b, 0, 1);
	assert_changed(b, 0, T + 6070);
	run_until(b, T + 8000);
	assert_int_equal(b->q[0].kernels, 3);
	shim(b, 0, 0);
	run_until(b, T + 20000);
	assert_int_equal(cmd.done_ns, T + 9050);
	assert_int_equal(b->q[0].kernels, 4);
}

static void a_flush_turns_away_what_waits_and_replays_it_so_that_each_kernel_runs_once(void **state)
{
	struct bed *b = begin_shim(GPM_SHIM_FLUSH, 0);
	struct gpm_cmd cmd = kernels(10, 8, 1000);

	(void)state;
	submit(b, 0, &cmd);
	run_until(b, T + 1500);
	shim(b, 0, 1);
	run_until(b, T + 5000);
	/* The second kernel ends at 2100, then 8 are turned away, 40 each. */
	assert_changed(b, 0, T + 2420);
	assert_int_equal(b->q[0].replayed, 8);
	shim(b, 0, 0);
	run_until(b, T + 50000);
	/* Launched again after 300; 8 of 1050. */
	assert_int_equal(cmd.done_ns, T + 5300 + 8 * 1050);
	assert_int_equal(b->q[0].kernels, 10);
	assert_int_equal(b->q[0].ctx.done_wave_ns, 80000);
	assert_int_equal(b->commands, 1);
}

static void a_flush_turns_away_no_more_than_the_hardware_queue_holds(void **state)
{
	struct bed *b = begin_shim(GPM_SHIM_FLUSH, 0);
	struct gpm_cmd cmd = kernels(100, 8, 1000);

	(void)state;
	submit(b, 0, &cmd);
	shim(b, 0, 1); /* before the first kernel starts */
	run_until(b, T + 5000);
	assert_changed(b, 0, T + 64 * 40);
	assert_int_equal(b->q[0].replayed, 64);
	assert_int_equal(b->q[0].kernels, 0);
}

static void an_idle_queue_is_closed_at_once_by_any_shim_and_one_without_is_refused(void **state)
{
	(void)state;
	for (gpm_u32 kind = GPM_SHIM_THROTTLE; kind <= GPM_SHIM_FLUSH; kind++) {
		struct bed *b = begin_shim(kind, 4);

		shim(b, 0, 1);
		assert_changed(b, 0, T);
	}
	begin_shim(GPM_SHIM_NONE, 0);
	assert_int_equal(gpm_gpu_close_shim(&bed.gpu, &bed.q[0], 1, T), -1);
}

static void kernels_with_an_interval_start_no_earlier_than_they_are_launched(void **state)
{
	struct bed *b = begin_shim(GPM_SHIM_NONE, 0);
	struct gpm_cmd far = kernels(3, 8, 1000), near = kernels(3, 8, 1000);

	(void)state;
	far.interval_ns = 5000;
	near.interval_ns = 100;
	submit(b, 0, &far);
	run_until(b, T + 20000);
	assert_int_equal(far.done_ns, T + 11020);
	submit(b, 0, &near);
	run_until(b, T + 40000);
	/* Launched faster than they run: one after the other. */
	assert_int_equal(near.done_ns, T + 20000 + 3 * 1020);
}

static void every_nth_kernel_takes_its_own_time(void **state)
{
	struct bed *b = begin_shim(GPM_SHIM_NONE, 0);
	struct gpm_cmd cmd = kernels(7, 8, 1000), plain = kernels(2, 8, 1000);

	(void)state;
	cmd.every = 3;
	cmd.every_wave_ns = 5000;
	plain.every = 1; /* but 0 ns: none does */
	submit(b, 0, &cmd);
	submit(b, 0, &plain);
	run_until(b, T + 50000);
	/* The third and the sixth: 5 * 1000 + 2 * 5000 and 7 gaps of 20. */
	assert_int_equal(cmd.done_ns, T + 15140);
	assert_int_equal(plain.done_ns, T + 15140 + 2040);
	assert_int_equal(b->q[0].ctx.done_wave_ns, 8 * 17000);
}

/* the whole machine, at random */

#define RANDOM_QUEUES 12
#define RANDOM_COMMANDS 300

struct load {
	struct gpm_cmd cmd[RANDOM_COMMANDS];
	gpm_u64 kernels[RANDOM_QUEUES];
	gpm_u64 work[RANDOM_QUEUES]; /* wave-ns */
	gpm_u64 calls;               /* queues for which a change is to be handed out */
	size_t used;
};

static struct load load;

static void submit_at_random(struct bed *b, struct gp_random *r)
{
	size_t i = gp_random_between(r, 0, RANDOM_QUEUES - 1);
	struct gpm_cmd *cmd = &load.cmd[load.used];
	gpm_u64 waves, longer;

	if (load.used == RANDOM_COMMANDS)
		return;
	load.used++;
	*cmd = kernels(gp_random_between(r, 1, 20), (gpm_u32)gp_random_between(r, 1, 12),
		       gp_random_between(r, 1, 20000));
	cmd->kernel.waves_per_wg = (gpm_u32)gp_random_between(r, 1, 3);
	cmd->every = gp_random_between(r, 0, 4);
	cmd->every_wave_ns = gp_random_between(r, 0, 1) * gp_random_between(r, 1, 50000);
	cmd->interval_ns = gp_random_between(r, 0, 1) * gp_random_between(r, 0, 3000);
	waves = (gpm_u64)cmd->kernel.workgroups * cmd->kernel.waves_per_wg;
	longer = cmd->every && cmd->every_wave_ns ? cmd->count / cmd->every : 0;
	load.kernels[i] += cmd->count;
	load.work[i] += waves * ((cmd->count - longer) * cmd->kernel.wave_ns + longer * cmd->every_wave_ns);
	submit(b, i, cmd);
}

static void call_at_random(struct bed *b, struct gp_random *r)
{
	struct gpm_queue *queues[RANDOM_QUEUES];
	gpm_u32 wants[RANDOM_QUEUES], n = 0;

	for (size_t i = 0; i < RANDOM_QUEUES; i++) {
		if (b->q[i].call || gp_random_between(r, 0, 3))
			continue;
		queues[n] = &b->q[i];
		wants[n++] = (gpm_u32)gp_random_between(r, GPM_RUN, GPM_STOP);
	}
	assert_int_equal(gpm_gpu_call(&b->gpu, queues, wants, n, b->now), 0);
	load.calls += n;
	step(b);
}

static void act_at_random(struct bed *b, struct gp_random *r)
{
	size_t i = gp_random_between(r, 0, RANDOM_QUEUES - 1);
	uint64_t what = gp_random_between(r, 0, 9);

	if (what < 4) {
		submit_at_random(b, r);
	} else if (what < 7) {
		call_at_random(b, r);
	} else if (what < 9) {
		/* A stopped queue cannot end the kernel that its shim would wait for. */
		if (b->q[i].want != GPM_STOP)
			load.calls += !gpm_gpu_close_shim(&b->gpu, &b->q[i],
							  (gpm_u32)gp_random_between(r, 0, 1), b->now);
		step(b);
	} else {
		gpm_gpu_limit_offline(&b->gpu, (gpm_u32)gp_random_between(r, 0, 8));
		step(b);
	}
}

/* All may run, all shims are open, nothing is limited: what is left must end. */
static void let_all_end(struct bed *b)
{
	gpm_gpu_limit_offline(&b->gpu, QUEUES);
	for (size_t round = 0; round < 2; round++) {
		for (size_t i = 0; i < RANDOM_QUEUES; i++) {
			struct gpm_queue *q = &b->q[i];

			if (!q->call && q->want != GPM_RUN) {
				call(b, i, GPM_RUN);
				load.calls++;
			}
		}
		/* A kernel may have to end before its shim is closed, and only then can it be opened. */
		run_until(b, b->now + 500000000);
		for (size_t i = 0; i < RANDOM_QUEUES; i++)
			load.calls += !gpm_gpu_close_shim(&b->gpu, &b->q[i], 0, b->now);
		run_until(b, b->now + 500000000);
	}
}

static void run_at_random(struct gpm_device dev, uint64_t seed)
{
	struct bed *b = start(dev);
	struct gp_random r;

	memset(&load, 0, sizeof(load));
	gp_random_init(&r, seed, 0);
	for (size_t i = 0; i < RANDOM_QUEUES; i++) {
		b->q[i].ctx.priority = (gpm_u32)gp_random_between(&r, 0, 2);
		b->q[i].offline = i >= 4;
		b->q[i].shim = (gpm_u32)gp_random_between(&r, GPM_SHIM_NONE, GPM_SHIM_FLUSH);
		b->q[i].depth = (gpm_u32)gp_random_between(&r, 1, GPM_MAX_DEPTH);
	}
	add_queues(b, RANDOM_QUEUES);
	for (size_t n = 0; n < 600; n++) {
		run_until(b, b->now + gp_random_exponential(&r, gp_random_between(&r, 0, 1) ? 100 : 50000));
		act_at_random(b, &r);
	}
	let_all_end(b);
	assert_int_equal(b->commands, load.used);
	assert_int_equal(b->changes, load.calls);
	for (size_t i = 0; i < RANDOM_QUEUES; i++) {
		assert_int_equal(b->q[i].kernels, load.kernels[i]);
		assert_int_equal(b->q[i].ctx.done_wave_ns, load.work[i]);
	}
	assert_int_equal(b->gpu.exec.free, gpm_wave_slots(&b->dev));
}

static void whatever_is_asked_of_any_device_all_work_is_done_exactly_once(void **state)
{
	struct gpm_device over_subscribed = small_concurrent_device(), full = selective_device();
	struct gpm_device at_once = small_concurrent_device();

	(void)state;
	over_subscribed.queue_slots = 3;
	full.queue_slots = 3;
	at_once.unmap_ns = at_once.fence_ns = at_once.map_fixed_ns = at_once.map_queue_ns = 0;
	at_once.save_fixed_ns = at_once.restore_fixed_ns = at_once.save_bytes_per_wave = 0;
	at_once.dispatch_ns = at_once.yield_notice_ns = at_once.yield_linger_ns = 0;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		run_at_random(small_concurrent_device(), seed);
		run_at_random(selective_device(), seed);
		run_at_random(over_subscribed, seed);
		run_at_random(full, seed);
		run_at_random(at_once, seed);
		run_at_random(small_timeslice_device(), seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_stop_takes_unmap_save_and_fence_and_the_others_come_back_after_map_and_restore),
		cmocka_unit_test(a_stop_of_many_queues_in_one_call_is_one_cycle),
		cmocka_unit_test(only_a_stopped_queue_can_be_removed_and_the_others_go_on),
		cmocka_unit_test(a_device_whose_last_queue_was_removed_takes_new_ones),
		cmocka_unit_test(calls_are_served_one_after_the_other),
		cmocka_unit_test(one_call_stops_some_and_resumes_others),
		cmocka_unit_test(resuming_the_only_queue_needs_no_unmap),
		cmocka_unit_test(a_call_that_changes_nothing_makes_no_cycle),
		cmocka_unit_test(a_queue_in_a_call_is_refused_another_and_so_is_a_queue_named_twice),
		cmocka_unit_test(a_queue_whose_two_calls_were_not_asked_after_is_handed_out_once),
		cmocka_unit_test(numbers_of_calls_that_start_again_skip_the_one_that_means_none),
		cmocka_unit_test(adding_queues_is_one_cycle_for_all_and_stops_those_that_run),
		cmocka_unit_test(a_command_may_be_submitted_again_and_its_times_are_those_of_the_last_time),
		cmocka_unit_test(what_cannot_run_is_refused_at_its_submission),
		cmocka_unit_test(a_selective_device_leaves_the_others_running),
		cmocka_unit_test(a_selective_device_takes_an_unmap_for_each_queue),
		cmocka_unit_test(on_a_full_selective_device_one_more_queue_gets_its_turn),
		cmocka_unit_test(calls_more_often_than_the_quantum_do_not_put_a_turn_off),
		cmocka_unit_test(a_limit_set_during_a_cycle_of_a_selective_device_takes_effect_after_it),
		cmocka_unit_test(
			a_queue_made_background_while_background_is_held_back_leaves_a_selective_device),
		cmocka_unit_test(sixty_four_queues_on_twenty_four_slots_all_make_progress),
		cmocka_unit_test(a_turn_comes_one_quantum_after_the_queue_found_no_slot),
		cmocka_unit_test(no_turn_is_made_for_queues_without_work),
		cmocka_unit_test(at_most_as_many_offline_queues_as_the_limit_are_mapped_and_all_finish),
		cmocka_unit_test(a_limit_that_is_kept_already_makes_no_turn),
		cmocka_unit_test(with_a_limit_of_zero_no_offline_queue_runs_until_it_is_raised),
		cmocka_unit_test(background_gives_way_after_the_notice_and_comes_back_after_the_linger),
		cmocka_unit_test(background_stays_away_when_foreground_work_returns_before_the_linger_ends),
		cmocka_unit_test(foreground_work_that_ends_before_the_notice_disturbs_nobody),
		cmocka_unit_test(
			when_the_last_background_queue_is_stopped_the_device_makes_no_cycle_of_its_own),
		cmocka_unit_test(the_queue_of_the_higher_priority_gets_the_slots_after_a_cycle_too),
		cmocka_unit_test(two_busy_queues_alternate_by_slice_and_pay_for_each_switch),
		cmocka_unit_test(a_lone_queue_never_switches),
		cmocka_unit_test(a_queue_whose_state_is_on_the_device_comes_back_without_cost),
		cmocka_unit_test(a_background_queue_gives_the_device_up_at_the_end_of_its_short_slice),
		cmocka_unit_test(a_background_queue_may_have_a_slice_of_its_own),
		cmocka_unit_test(a_queue_made_background_in_its_slice_has_the_shorter_one_at_once),
		cmocka_unit_test(a_stop_of_the_queue_on_the_device_takes_effect_at_once),
		cmocka_unit_test(after_a_stopped_queue_comes_the_one_behind_it),
		cmocka_unit_test(a_slice_that_ends_when_the_only_other_queue_is_stopped_goes_on),
		cmocka_unit_test(a_queue_stopped_on_its_way_to_the_device_does_not_run),
		cmocka_unit_test(a_queue_removed_on_its_way_to_the_device_leaves_it_to_the_next),
		cmocka_unit_test(a_queue_that_its_closed_gate_holds_back_takes_no_slices),
		cmocka_unit_test(a_closed_throttle_lets_only_what_is_in_flight_end),
		cmocka_unit_test(a_throttle_of_depth_one_waits_for_the_host_between_kernels),
		cmocka_unit_test(short_kernels_wait_for_the_end_of_the_one_depth_before_them),
		cmocka_unit_test(a_throttle_with_less_waiting_than_its_depth_drains_that),
		cmocka_unit_test(a_throttle_closed_between_eager_launches_is_empty_at_once),
		cmocka_unit_test(the_shim_of_a_stopped_queue_with_a_kernel_in_it_cannot_be_closed),
		cmocka_unit_test(a_gate_closes_at_the_end_of_the_kernel_that_runs),
		cmocka_unit_test(a_flush_turns_away_what_waits_and_replays_it_so_that_each_kernel_runs_once),
		cmocka_unit_test(a_flush_turns_away_no_more_than_the_hardware_queue_holds),
		cmocka_unit_test(an_idle_queue_is_closed_at_once_by_any_shim_and_one_without_is_refused),
		cmocka_unit_test(kernels_with_an_interval_start_no_earlier_than_they_are_launched),
		cmocka_unit_test(every_nth_kernel_takes_its_own_time),
		cmocka_unit_test(whatever_is_asked_of_any_device_all_work_is_done_exactly_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
