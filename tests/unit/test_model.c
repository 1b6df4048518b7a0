// SPDX-License-Identifier: MIT
/* Devices, costs, and how dispatches make progress on the wave slots. */
#include "unit.h"

#include <string.h>

#include "base/random.h"
#include "model/cost.h"
#include "model/exec.h"

/* device */

static struct gpm_device mi308x(void)
{
	struct gpm_device dev = small_concurrent_device();

	dev.xccs = 4;
	dev.cus_per_xcc = 20;
	dev.waves_per_cu = 32;
	dev.save_bytes_per_wave = 19078;
	dev.save_bytes_per_us = 5300000;
	dev.save_fixed_ns = dev.restore_fixed_ns = 10000;
	dev.unmap_ns = dev.map_fixed_ns = 15000;
	dev.quantum_ns = 10000000;
	dev.stop_call_min_ns = dev.resume_call_min_ns = dev.slice_call_min_ns = 5000;
	dev.stop_call_max_ns = dev.resume_call_max_ns = dev.slice_call_max_ns = 10000;
	return dev;
}

static struct gpm_device h200(void)
{
	struct gpm_device dev = small_timeslice_device();

	dev.cus_per_xcc = 132;
	dev.waves_per_cu = 64;
	dev.selective = 1;
	dev.slice_ns = 2048000;
	dev.yield_slice_ns = 1000;
	dev.switch_ns = 182000;
	dev.stop_call_min_ns = 600000;
	dev.stop_call_max_ns = 650000;
	dev.slice_calls = 4;
	return dev;
}

static void the_devices_we_ship_add_up(void **state)
{
	struct gpm_device amd = mi308x(), nvidia = h200();

	(void)state;
	assert_null(gpm_device_check(&amd));
	assert_int_equal(gpm_wave_slots(&amd), 2560); /* 80 CUs of 32 */
	amd.xccs = 8;
	amd.cus_per_xcc = 38;
	assert_null(gpm_device_check(&amd));
	assert_int_equal(gpm_wave_slots(&amd), 9728); /* 304 CUs of 32 */
	assert_null(gpm_device_check(&nvidia));
	assert_int_equal(gpm_wave_slots(&nvidia), 8448); /* 132 SMs of 64 */
}

static void assert_refused(const struct gpm_device *dev, const char *key, const char *why)
{
	const char *said = gpm_device_check(dev);

	assert_non_null(said);
	assert_memory_equal(said, key, strlen(key));
	assert_non_null(strstr(said, why));
}

static void each_number_out_of_its_range_is_refused_by_its_name(void **state)
{
	(void)state;
#define TRY(field, min, max) \
	{ \
		struct gpm_device dev = mi308x(); \
		dev.field = (gpm_u64)(max) + 1; \
		assert_refused(&dev, #field, " must be from " #min " to " #max); \
		dev.field = (gpm_u64)(min)-1; /* of 0: the largest number there is */ \
		assert_refused(&dev, #field, " must be from " #min " to " #max); \
	}
	GPM_DEVICE_KEYS(TRY)
#undef TRY
}

static void each_number_may_be_the_largest_of_its_range(void **state)
{
	(void)state;
	/* What the others make of it is another reason, never the range. */
#define TRY(field, min, max) \
	{ \
		struct gpm_device dev = mi308x(); \
		dev.field = (max); \
		assert_true(!gpm_device_check(&dev) || \
			    !strstr(gpm_device_check(&dev), #field " must be from")); \
	}
	GPM_DEVICE_KEYS(TRY)
#undef TRY
}

static void a_call_whose_fastest_is_slower_than_its_slowest_is_refused(void **state)
{
	struct gpm_device dev = mi308x();

	(void)state;
	dev.stop_call_min_ns = 10001;
	assert_refused(&dev, "stop_call_min_ns", "must not be more than stop_call_max_ns");
	dev = mi308x();
	dev.resume_call_min_ns = 10001;
	assert_refused(&dev, "resume_call_min_ns", "must not be more than resume_call_max_ns");
	dev = mi308x();
	dev.slice_call_min_ns = 10001;
	assert_refused(&dev, "slice_call_min_ns", "must not be more than slice_call_max_ns");
	dev.stop_call_min_ns = dev.resume_call_min_ns = dev.slice_call_min_ns = 10000; /* always as long */
	assert_null(gpm_device_check(&dev));
}

static void slots_and_slices_must_fit_the_way_of_sharing(void **state)
{
	struct gpm_device dev = mi308x();

	(void)state;
	dev.queue_slots = 0;
	assert_refused(&dev, "queue_slots must be 1 or more", "concurrent");
	dev = h200();
	dev.queue_slots = 24;
	assert_refused(&dev, "queue_slots must be 0", "timeslice");
	dev = h200();
	dev.slice_ns = 0;
	assert_refused(&dev, "slice_ns and yield_slice_ns must be 1 or more", "timeslice");
	dev = h200();
	dev.yield_slice_ns = 0;
	assert_refused(&dev, "slice_ns and yield_slice_ns must be 1 or more", "timeslice");
	dev = h200();
	dev.yield_slice_ns = dev.slice_ns + 1;
	assert_refused(&dev, "yield_slice_ns must not be more than slice_ns", "longer");
	dev.yield_slice_ns = dev.slice_ns;
	assert_null(gpm_device_check(&dev));
}

/* cost */

static void saving_costs_the_bytes_of_the_waves_and_a_fixed_part_and_nothing_costs_nothing(void **state)
{
	struct gpm_device dev = mi308x();

	(void)state;
	assert_int_equal(gpm_save_bytes(&dev, 2560), 48839680);
	/* 48,839,680 bytes at 5300 bytes per ns are 9215.03 ns. */
	assert_int_equal(gpm_save_ns(&dev, 2560), 19215);
	dev.restore_fixed_ns = 7000;
	assert_int_equal(gpm_restore_ns(&dev, 2560), 16215);
	assert_int_equal(gpm_save_ns(&dev, 0), 0);
	assert_int_equal(gpm_restore_ns(&dev, 0), 0);
}

/* exec */

struct bed {
	struct gpm_device dev;
	struct gpm_exec exec;
	struct gpm_ctx ctx[16];
	gpm_u64 total[16]; /* wave-ns dispatched */
	gpm_u64 now;
};

/* All contexts mapped, on a device of so many slots. */
static struct bed *begin(gpm_u64 slots)
{
	static struct bed bed;

	bed = (struct bed){ .dev = small_concurrent_device() };
	bed.dev.xccs = 1;
	bed.dev.cus_per_xcc = slots;
	bed.dev.waves_per_cu = 1;
	gpm_exec_init(&bed.exec, &bed.dev);
	for (size_t i = 0; i < 16; i++)
		gpm_exec_map(&bed.exec, &bed.ctx[i], 0, 0);
	return &bed;
}

static gpm_u64 step(struct bed *b)
{
	gpm_u64 next = gpm_exec_step(&b->exec, b->now), slots = b->exec.free, ring = 0;

	assert_true(next > b->now);
	while (gpm_exec_ended(&b->exec))
		;
	for (size_t i = 0; i < 16; i++) {
		slots += b->ctx[i].held;
		ring += b->ctx[i].mapped && b->ctx[i].busy;
	}
	assert_int_equal(b->exec.nring, ring);
	assert_int_equal(slots, gpm_wave_slots(&b->dev));
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

static void dispatch(struct bed *b, size_t i, gpm_u32 workgroups, gpm_u32 waves_per_wg, gpm_u64 wave_ns)
{
	const struct gpm_dispatch d = { .wave_ns = wave_ns,
					.workgroups = workgroups,
					.waves_per_wg = waves_per_wg };

	assert_int_equal(gpm_exec_dispatch(&b->exec, &b->ctx[i], &d, b->now), 0);
	b->total[i] += wave_ns * workgroups * waves_per_wg;
}

static void run_to_the_end(struct bed *b)
{
	gpm_u64 next = step(b);

	while (next != GPM_NEVER) {
		b->now = next;
		next = step(b);
	}
}

static void assert_ended(const struct bed *b, size_t i, gpm_u64 time)
{
	assert_false(b->ctx[i].busy);
	assert_int_equal(b->ctx[i].ended_ns, time);
	assert_int_equal(b->ctx[i].done_wave_ns, b->total[i]);
}

static void a_dispatch_that_does_not_fill_the_device_ends_after_one_wave(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	b->now = 100;
	dispatch(b, 0, 3, 2, 1000);
	step(b);
	assert_int_equal(b->exec.free, 2);
	run_until(b, 500);
	assert_int_equal(gpm_exec_work(&b->ctx[0], 500), 6 * 400);
	/* The question may come late: no wave works longer than its length. */
	assert_int_equal(gpm_exec_work(&b->ctx[0], 5000), 6 * 1000);
	run_to_the_end(b);
	assert_ended(b, 0, 1100);
	assert_int_equal(b->ctx[0].first_ns, 100);
}

static void a_dispatch_of_just_the_device_takes_all_slots_at_once(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	dispatch(b, 0, 4, 2, 1000);
	step(b);
	assert_int_equal(b->exec.free, 0);
	run_to_the_end(b);
	assert_ended(b, 0, 1000);
}

static void a_dispatch_larger_than_the_device_runs_in_rounds(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	dispatch(b, 0, 9, 2, 1000); /* 4 + 4 + 1 workgroups */
	run_to_the_end(b);
	assert_ended(b, 0, 3000);
	assert_int_equal(b->exec.events, 6); /* three begins, three ends */
}

static void workgroups_run_whole_on_a_device_they_do_not_divide(void **state)
{
	struct bed *b = begin(10);

	(void)state;
	dispatch(b, 0, 5, 4, 1000); /* 2 + 2 + 1 workgroups; 2 slots stay empty */
	step(b);
	assert_int_equal(b->exec.free, 2);
	run_to_the_end(b);
	assert_ended(b, 0, 3000);
}

static void more_waves_than_32_bits_can_count_still_run_in_rounds(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	dispatch(b, 0, 1u << 30, 8, 1000);
	run_until(b, 2500);
	assert_int_equal(gpm_exec_work(&b->ctx[0], 2500), 8 * 2500);
	assert_int_equal(b->ctx[0].pending, (1u << 30) - 3);
}

static void what_cannot_run_is_refused(void **state)
{
	struct bed *b = begin(8);
	struct gpm_dispatch d = { .wave_ns = 1, .workgroups = 1, .waves_per_wg = 9 };

	(void)state;
	assert_int_equal(gpm_exec_dispatch(&b->exec, &b->ctx[0], &d, 0), -1); /* larger than the device */
	d = (struct gpm_dispatch){ .wave_ns = 0, .workgroups = 1, .waves_per_wg = 1 };
	assert_int_equal(gpm_exec_dispatch(&b->exec, &b->ctx[0], &d, 0), -1);
	d = (struct gpm_dispatch){ .wave_ns = 1, .workgroups = 0, .waves_per_wg = 1 };
	assert_int_equal(gpm_exec_dispatch(&b->exec, &b->ctx[0], &d, 0), -1);
	d = (struct gpm_dispatch){ .wave_ns = 1, .workgroups = 1, .waves_per_wg = 0 };
	assert_int_equal(gpm_exec_dispatch(&b->exec, &b->ctx[0], &d, 0), -1);
	assert_false(b->ctx[0].busy);
	dispatch(b, 0, 1, 8, 1000);
	d = (struct gpm_dispatch){ .wave_ns = 1, .workgroups = 1, .waves_per_wg = 1 };
	assert_int_equal(gpm_exec_dispatch(&b->exec, &b->ctx[0], &d, 0), -1); /* busy */
	run_to_the_end(b);
	assert_ended(b, 0, 1000);
}

static void two_that_fit_together_run_side_by_side(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	dispatch(b, 0, 3, 1, 1000);
	run_until(b, 400);
	dispatch(b, 1, 5, 1, 1000);
	run_to_the_end(b);
	assert_ended(b, 0, 1000);
	assert_ended(b, 1, 1400);
}

static void equals_that_do_not_fit_together_take_turns(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	dispatch(b, 0, 24, 1, 1000);
	run_until(b, 10);
	dispatch(b, 1, 16, 1, 1000);
	run_to_the_end(b);
	/* Who comes joins behind all others: 0 has the rounds to 1000, 2000 and 4000, 1 those to 3000 and
	 * 5000. */
	assert_ended(b, 0, 4000);
	assert_ended(b, 1, 5000);
}

static void freed_slots_go_to_the_higher_priority_until_it_is_done(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	b->ctx[1].priority = 1;
	dispatch(b, 0, 24, 1, 1000);
	run_until(b, 10);
	dispatch(b, 1, 16, 1, 1000);
	run_to_the_end(b);
	/* 1 has 1000 to 3000; 0 the round before and the two after */
	assert_ended(b, 1, 3000);
	assert_ended(b, 0, 5000);
}

static void a_context_that_is_denied_half_of_the_slots_takes_twice_as_long(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	b->ctx[0].denied = 4;
	dispatch(b, 0, 8, 2, 1000); /* 16 waves, 4 at a time */
	step(b);
	assert_int_equal(b->exec.free, 4);
	dispatch(b, 1, 2, 2, 1000); /* the others are for whoever wants them */
	run_until(b, 1500);
	assert_ended(b, 1, 1000);
	gpm_exec_stop(&b->exec, &b->ctx[0], b->now);
	gpm_exec_release(&b->exec, &b->ctx[0], b->now);
	gpm_exec_map(&b->exec, &b->ctx[0], b->now, b->now);
	step(b);
	assert_int_equal(b->ctx[0].held, 4); /* also of what comes back */
	run_to_the_end(b);
	assert_ended(b, 0, 4000);
}

static void a_context_that_is_denied_every_slot_waits(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	b->ctx[0].denied = 8;
	dispatch(b, 0, 1, 1, 1000);
	run_to_the_end(b);
	assert_true(b->ctx[0].busy);
	assert_int_equal(gpm_exec_work(&b->ctx[0], b->now), 0);
}

static void a_running_wave_is_not_preempted_by_priority(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	b->ctx[1].priority = 9;
	dispatch(b, 0, 8, 1, 5000);
	run_until(b, 1);
	dispatch(b, 1, 1, 1, 10);
	run_until(b, 4999);
	assert_int_equal(b->ctx[1].held, 0);
	run_to_the_end(b);
	assert_ended(b, 0, 5000);
	assert_ended(b, 1, 5010);
}

static void of_those_that_come_at_one_instant_the_priority_decides_and_not_the_order(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	gpm_exec_stop(&b->exec, &b->ctx[0], 0);
	gpm_exec_stop(&b->exec, &b->ctx[1], 0);
	b->ctx[1].priority = 1;
	dispatch(b, 0, 8, 1, 1000);
	dispatch(b, 1, 8, 1, 1000);
	gpm_exec_map(&b->exec, &b->ctx[0], 0, 0);
	gpm_exec_map(&b->exec, &b->ctx[1], 0, 0);
	run_to_the_end(b);
	assert_ended(b, 1, 1000);
	assert_ended(b, 0, 2000);
	b->ctx[2].priority = 1;
	dispatch(b, 0, 8, 1, 1000);
	dispatch(b, 2, 8, 1, 1000);
	run_to_the_end(b);
	assert_ended(b, 2, 3000);
	assert_ended(b, 0, 4000);
}

static void a_stop_of_one_does_not_make_the_device_forget_another_that_waits(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	dispatch(b, 0, 4, 1, 1000);
	run_until(b, 100);
	dispatch(b, 1, 4, 1, 1000);
	assert_int_equal(gpm_exec_stop(&b->exec, &b->ctx[0], 100), 4);
	run_to_the_end(b);
	assert_ended(b, 1, 1100);
}

static void a_stopped_dispatch_goes_on_with_exactly_what_was_left(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	dispatch(b, 0, 12, 1, 1000);
	run_until(b, 300);
	assert_int_equal(gpm_exec_stop(&b->exec, &b->ctx[0], 300), 8);
	/* The waves hold their slots until they are saved. */
	run_until(b, 400);
	assert_int_equal(b->exec.free, 0);
	assert_int_equal(gpm_exec_work(&b->ctx[0], 400), 8 * 300);
	gpm_exec_release(&b->exec, &b->ctx[0], 400);
	run_until(b, 2000);
	assert_int_equal(b->exec.free, 8);
	/* Mapped at 2000, restored at 2250: 700 are left until 2950, then the other 4 waves. */
	gpm_exec_map(&b->exec, &b->ctx[0], 2000, 2250);
	gpm_exec_map(&b->exec, &b->ctx[0], 2000, 9999); /* it is mapped: changes nothing */
	run_until(b, 2250);
	assert_int_equal(gpm_exec_work(&b->ctx[0], 2250), 8 * 300);
	run_to_the_end(b);
	assert_ended(b, 0, 3950);
	assert_int_equal(b->ctx[0].first_ns, 0);
}

static void slots_that_are_released_go_to_who_waits_for_them(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	dispatch(b, 0, 8, 1, 1000);
	run_until(b, 300);
	dispatch(b, 1, 8, 1, 1000);
	gpm_exec_stop(&b->exec, &b->ctx[0], 300);
	run_until(b, 450);
	gpm_exec_release(&b->exec, &b->ctx[0], 450);
	run_to_the_end(b);
	assert_ended(b, 1, 1450);
	assert_int_equal(b->ctx[0].saved, 8);
}

static void a_dispatch_stopped_before_it_is_restored_loses_nothing(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	dispatch(b, 0, 8, 1, 1000);
	run_until(b, 400);
	gpm_exec_stop(&b->exec, &b->ctx[0], 400);
	gpm_exec_release(&b->exec, &b->ctx[0], 400);
	gpm_exec_map(&b->exec, &b->ctx[0], 400, 900);
	run_until(b, 700);
	assert_int_equal(gpm_exec_stop(&b->exec, &b->ctx[0], 700), 8);
	gpm_exec_release(&b->exec, &b->ctx[0], 700);
	gpm_exec_map(&b->exec, &b->ctx[0], 700, 800);
	run_to_the_end(b);
	assert_ended(b, 0, 1400); /* 800 and the 600 that were left */
}

static void what_was_saved_comes_back_in_pieces_where_not_all_of_it_fits(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	dispatch(b, 0, 4, 2, 1000);
	run_until(b, 300);
	gpm_exec_stop(&b->exec, &b->ctx[0], 300);
	gpm_exec_release(&b->exec, &b->ctx[0], 300);
	dispatch(b, 1, 3, 1, 1000); /* until 1300 */
	run_until(b, 400);
	gpm_exec_map(&b->exec, &b->ctx[0], 400, 450);
	run_until(b, 450);
	/* Of 5 free slots 2 workgroups use 4; they end at 1150, and the other 2 workgroups follow. */
	assert_int_equal(b->ctx[0].held, 4);
	run_to_the_end(b);
	assert_ended(b, 1, 1300);
	assert_ended(b, 0, 1850);
}

static void what_is_left_counts_waves_that_wait_run_and_are_saved(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	dispatch(b, 0, 6, 2, 1000);
	run_until(b, 300);
	assert_int_equal(gpm_exec_left(&b->ctx[0], 300), 8 * 700 + 4 * 1000);
	gpm_exec_stop(&b->exec, &b->ctx[0], 300);
	gpm_exec_release(&b->exec, &b->ctx[0], 300);
	assert_int_equal(gpm_exec_left(&b->ctx[0], 400), 8 * 700 + 4 * 1000);
	gpm_exec_map(&b->exec, &b->ctx[0], 400, 500);
	run_until(b, 450); /* not restored yet */
	assert_int_equal(gpm_exec_left(&b->ctx[0], 450), 8 * 700 + 4 * 1000);
	run_until(b, 1199);
	assert_int_equal(gpm_exec_left(&b->ctx[0], 1199), 8 + 4 * 1000);
	run_to_the_end(b);
	assert_ended(b, 0, 2200);
	assert_int_equal(gpm_exec_left(&b->ctx[0], 2200), 0);
}

static void a_dispatch_to_a_context_that_is_not_mapped_waits_for_it(void **state)
{
	struct bed *b = begin(8);

	(void)state;
	assert_int_equal(gpm_exec_stop(&b->exec, &b->ctx[0], 0), 0);
	dispatch(b, 0, 1, 1, 1000);
	run_until(b, 5000);
	assert_int_equal(b->ctx[0].first_ns, GPM_NEVER);
	gpm_exec_map(&b->exec, &b->ctx[0], 5000, 7000);
	run_to_the_end(b);
	assert_ended(b, 0, 6000); /* nothing was saved: nothing is restored */
}

static void a_dispatch_in_eight_pieces_takes_no_more_slots_until_one_ends(void **state)
{
	struct bed *b = begin(10);

	(void)state;
	/* Ten slots that come free 10 ns apart, and one that wants them all. */
	for (size_t i = 0; i < 10; i++)
		dispatch(b, i, 1, 1, 1000 + 10 * i);
	run_until(b, 1);
	dispatch(b, 10, 16, 1, 100000);
	run_until(b, 2000);
	assert_int_equal(b->ctx[10].ncohorts, GPM_COHORTS);
	assert_int_equal(b->exec.free, 2);
	/* The first piece ends at 101,000: 3 slots; then one each 10 ns, 5 times. Pieces began at 1000 + 10
	 * i. */
	run_to_the_end(b);
	assert_ended(b, 10, 101050 + 100000);
}

/* A long dispatch in many rounds, others that come and go, and a thousand stops at any instant. */
static void preempt_at_random(struct bed *b, struct gp_random *r, size_t times)
{
	for (size_t n = 0; n < times; n++) {
		size_t other = gp_random_between(r, 1, 5);
		gpm_u64 held;

		run_until(b, b->now + gp_random_between(r, 0, 40000));
		assert_true(b->ctx[0].busy);
		if (!b->ctx[other].busy)
			dispatch(b, other, (gpm_u32)gp_random_between(r, 1, 20),
				 (gpm_u32)gp_random_between(r, 1, 5), gp_random_between(r, 1, 30000));
		step(b);
		held = b->ctx[0].held;
		assert_int_equal(gpm_exec_stop(&b->exec, &b->ctx[0], b->now), held);
		run_until(b, b->now + gp_random_between(r, 0, 500));
		gpm_exec_release(&b->exec, &b->ctx[0], b->now);
		run_until(b, b->now + gp_random_between(r, 0, 2000));
		gpm_exec_map(&b->exec, &b->ctx[0], b->now, b->now + gp_random_between(r, 0, 700));
	}
}

static void a_dispatch_preempted_a_thousand_times_ends_with_exactly_its_work(void **state)
{
	struct bed *b;
	struct gp_random r;

	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		gp_random_init(&r, seed, 0);
		b = begin(16);
		for (size_t i = 0; i < 6; i++)
			b->ctx[i].priority = (gpm_u32)gp_random_between(&r, 0, 2);
		dispatch(b, 0, 37, 3, 5000003);
		preempt_at_random(b, &r, 1000);
		run_to_the_end(b);
		/* 37 workgroups of 3 waves of 5,000,003 ns */
		assert_int_equal(b->ctx[0].done_wave_ns, 555000333);
		for (size_t i = 0; i < 6; i++)
			assert_int_equal(b->ctx[i].done_wave_ns, b->total[i]);
		assert_int_equal(b->exec.free, 16);
	}
}

/* What a stop left, put into another context: half of 4 workgroups never ran, the rest has 300 of 1000 ns
 * left. */
static void a_dispatch_stopped_elsewhere_goes_on_with_what_it_had_left(void **state)
{
	const struct gpm_device dev = small_concurrent_device(); /* 8 wave slots */
	const struct gpm_dispatch d = { .wave_ns = 1000, .workgroups = 4, .waves_per_wg = 2 };
	const struct gpm_cohort saved = { .end_ns = 300, .waves = 4 };
	struct gpm_ctx c = { 0 };
	struct gpm_exec e;

	(void)state;
	gpm_exec_init(&e, &dev);
	assert_int_equal(gpm_exec_load(&e, &c, &d, 2, &saved, 1), 0);
	assert_int_equal(gpm_exec_left(&c, 0), 2 * 2 * 1000 + 4 * 300);
	assert_int_equal(gpm_exec_load(&e, &c, &d, 2, &saved, 1), -1); /* it is busy */
	gpm_exec_map(&e, &c, 0, 0);
	assert_int_equal(gpm_exec_step(&e, 0), 300);
	assert_int_equal(gpm_exec_step(&e, 300), 1000);
	gpm_exec_step(&e, 1000);
	assert_ptr_equal(gpm_exec_ended(&e), &c);
	assert_int_equal(c.done_wave_ns, 2 * 2 * 1000 + 4 * 300);
}

static void what_cannot_be_part_of_the_dispatch_is_not_loaded(void **state)
{
	const struct gpm_device dev = small_concurrent_device();
	const struct gpm_dispatch d = { .wave_ns = 1000, .workgroups = 4, .waves_per_wg = 2 };
	const struct gpm_dispatch empty = { .wave_ns = 1000, .waves_per_wg = 2 };
	const struct gpm_cohort good = { .end_ns = 300, .waves = 4 }, odd = { .end_ns = 300, .waves = 3 },
				none = { .end_ns = 300 }, over = { .waves = 4 },
				longer = { .end_ns = 1001, .waves = 4 }, many[GPM_COHORTS + 1] = { 0 };
	struct gpm_ctx c = { 0 };
	struct gpm_exec e;

	(void)state;
	gpm_exec_init(&e, &dev);
	assert_int_equal(gpm_exec_load(&e, &c, &d, 3, &good, 1), -1); /* 10 waves of 8 */
	assert_int_equal(gpm_exec_load(&e, &c, &d, 5, NULL, 0), -1);
	assert_int_equal(gpm_exec_load(&e, &c, &d, 0, NULL, 0), -1);
	assert_int_equal(gpm_exec_load(&e, &c, &d, 0, &odd, 1), -1);
	assert_int_equal(gpm_exec_load(&e, &c, &d, 0, &none, 1), -1);
	assert_int_equal(gpm_exec_load(&e, &c, &d, 0, &over, 1), -1);
	assert_int_equal(gpm_exec_load(&e, &c, &d, 0, &longer, 1), -1);
	assert_int_equal(gpm_exec_load(&e, &c, &d, 0, many, GPM_COHORTS + 1), -1);
	assert_int_equal(gpm_exec_load(&e, &c, &empty, 0, &good, 1), -1);
	assert_int_equal(c.busy, 0);
	assert_int_equal(gpm_exec_load(&e, &c, &d, 0, &good, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_devices_we_ship_add_up),
		cmocka_unit_test(each_number_out_of_its_range_is_refused_by_its_name),
		cmocka_unit_test(each_number_may_be_the_largest_of_its_range),
		cmocka_unit_test(a_call_whose_fastest_is_slower_than_its_slowest_is_refused),
		cmocka_unit_test(slots_and_slices_must_fit_the_way_of_sharing),
		cmocka_unit_test(
			saving_costs_the_bytes_of_the_waves_and_a_fixed_part_and_nothing_costs_nothing),
		cmocka_unit_test(a_dispatch_that_does_not_fill_the_device_ends_after_one_wave),
		cmocka_unit_test(a_dispatch_of_just_the_device_takes_all_slots_at_once),
		cmocka_unit_test(a_dispatch_larger_than_the_device_runs_in_rounds),
		cmocka_unit_test(workgroups_run_whole_on_a_device_they_do_not_divide),
		cmocka_unit_test(more_waves_than_32_bits_can_count_still_run_in_rounds),
		cmocka_unit_test(what_cannot_run_is_refused),
		cmocka_unit_test(two_that_fit_together_run_side_by_side),
		cmocka_unit_test(equals_that_do_not_fit_together_take_turns),
		cmocka_unit_test(freed_slots_go_to_the_higher_priority_until_it_is_done),
		cmocka_unit_test(a_context_that_is_denied_half_of_the_slots_takes_twice_as_long),
		cmocka_unit_test(a_context_that_is_denied_every_slot_waits),
		cmocka_unit_test(a_running_wave_is_not_preempted_by_priority),
		cmocka_unit_test(of_those_that_come_at_one_instant_the_priority_decides_and_not_the_order),
		cmocka_unit_test(a_stop_of_one_does_not_make_the_device_forget_another_that_waits),
		cmocka_unit_test(a_stopped_dispatch_goes_on_with_exactly_what_was_left),
		cmocka_unit_test(slots_that_are_released_go_to_who_waits_for_them),
		cmocka_unit_test(a_dispatch_stopped_before_it_is_restored_loses_nothing),
		cmocka_unit_test(what_was_saved_comes_back_in_pieces_where_not_all_of_it_fits),
		cmocka_unit_test(what_is_left_counts_waves_that_wait_run_and_are_saved),
		cmocka_unit_test(a_dispatch_to_a_context_that_is_not_mapped_waits_for_it),
		cmocka_unit_test(a_dispatch_in_eight_pieces_takes_no_more_slots_until_one_ends),
		cmocka_unit_test(a_dispatch_preempted_a_thousand_times_ends_with_exactly_its_work),
		cmocka_unit_test(a_dispatch_stopped_elsewhere_goes_on_with_what_it_had_left),
		cmocka_unit_test(what_cannot_be_part_of_the_dispatch_is_not_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
