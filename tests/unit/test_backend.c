// SPDX-License-Identifier: MIT
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "backend/registry.h"
#include "backend/sim/presets.h"
#include "backend/sim/sim.h"

#define US 1000ull
#define MS 1000000ull

/* On top of the small device's 100 ns to unmap and 50 for the fence; 200 and 10 per queue to map. */
#define STOP_CALL_NS 1000
#define RESUME_CALL_NS 2000
#define SLICE_CALL_NS 300
#define MESSAGE_NS 400
#define OFF_NS (100 + 50)

/* registry */

static void every_backend_has_a_name_of_its_own(void **state)
{
	size_t n = 0;

	(void)state;
	while (gp_backend_name(n))
		n++;
	assert_true(n >= 1);
	assert_null(gp_backend_name(n + 1));
	for (size_t i = 0; i < n; i++) {
		assert_true(strlen(gp_backend_name(i)) > 0);
		assert_string_not_equal(gp_backend_name(i), "auto");
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(gp_backend_name(i), gp_backend_name(j));
	}
}

static void a_backend_is_opened_by_its_name_or_found(void **state)
{
	static const char *const names[] = { "sim", "auto", NULL };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct gp_backend_ops ops = { 0 };
		struct gp_backend *be = NULL;

		assert_int_equal(gp_backend_open(names[i], NULL, &ops, &be), 0);
		assert_non_null(be);
		assert_int_equal(ops.devices(be, NULL, 0), 1);
		ops.close(be);
	}
}

static void an_unknown_backend_or_device_opens_nothing(void **state)
{
	struct gp_backend_opts opts = { .size = sizeof(opts), .device = "no-such-device" };
	struct gp_backend_ops ops = { .name = "untouched" };
	struct gp_backend *be = NULL;

	(void)state;
	assert_int_equal(gp_backend_open("no-such-backend", NULL, &ops, &be), -ENOENT);
	assert_int_equal(gp_backend_open("", NULL, &ops, &be), -ENOENT);
	assert_int_equal(gp_backend_open("sim", &opts, &ops, &be), -ENOENT);
	assert_null(be);
	assert_string_equal(ops.name, "untouched");
}

static void what_a_table_leaves_out_becomes_not_supported(void **state)
{
	static const struct gp_backend_ops empty = { .size = sizeof(empty),
						     .abi = GP_BACKEND_ABI,
						     .name = "empty" };
	struct gp_want wants[2] = { { .queue = 1 }, { .queue = 2, .status = 7 } };
	struct gp_backend_ops ops;
	struct gp_backend *be = NULL;
	struct gp_activity activity;

	(void)state;
	assert_int_equal(gp_backend_complete(&ops, &empty), 0);
	assert_string_equal(ops.name, "empty");
	assert_int_equal(ops.open(NULL, &be), -ENOTSUP);
	ops.close(NULL);
	assert_int_equal(ops.devices(NULL, NULL, 0), -ENOTSUP);
	assert_int_equal(ops.queues(NULL, NULL, 0), -ENOTSUP);
	assert_int_equal(ops.apply(NULL, wants, 2, NULL), -ENOTSUP);
	assert_int_equal(wants[0].status, -ENOTSUP);
	assert_int_equal(wants[1].status, -ENOTSUP);
	assert_int_equal(ops.complete(NULL, NULL, 0), -ENOTSUP);
	assert_int_equal(ops.reserve(NULL, 0, 0, 0), -ENOTSUP);
	assert_int_equal(ops.activity(NULL, 0, &activity), -ENOTSUP);
}

static void what_a_table_has_is_kept(void **state)
{
	struct gp_backend_ops ops;

	(void)state;
	assert_int_equal(gp_backend_complete(&ops, &gp_sim_ops), 0);
	assert_ptr_equal(ops.apply, gp_sim_ops.apply);
	assert_ptr_equal(ops.open, gp_sim_ops.open);
	assert_ptr_equal(ops.close, gp_sim_ops.close);
	assert_ptr_equal(ops.activity, gp_sim_ops.activity);
}

static void a_table_that_is_none_is_refused(void **state)
{
	struct gp_backend_ops bad = { .size = sizeof(bad), .abi = GP_BACKEND_ABI + 1, .name = "bad" }, ops;

	(void)state;
	assert_int_equal(gp_backend_complete(&ops, &bad), -EPROTO);
	bad.abi = GP_BACKEND_ABI;
	bad.flags = 1;
	assert_int_equal(gp_backend_complete(&ops, &bad), -EINVAL);
	bad.flags = 0;
	bad.name = NULL;
	assert_int_equal(gp_backend_complete(&ops, &bad), -EINVAL);
	bad.size = 0;
	assert_int_equal(gp_backend_complete(&ops, &bad), -EINVAL);
}

static void an_entry_that_a_backend_fills_grows_with_the_abi_alone(void **state)
{
	(void)state;
	assert_int_equal(GP_BACKEND_ABI, 4);
	assert_int_equal(sizeof(struct gp_device_info), 160);
	assert_int_equal(sizeof(struct gp_queue_info), 536);
	assert_int_equal(sizeof(struct gp_done), 32);
	assert_int_equal(sizeof(struct gp_activity), 24);
}

static void a_table_from_before_is_refused(void **state)
{
	const struct gp_backend_ops old = { .size = sizeof(old), .abi = 1, .name = "old" };
	struct gp_backend_ops ops;

	(void)state;
	assert_int_equal(gp_backend_complete(&ops, &old), -EPROTO);
}

static void a_table_from_the_future_is_refused_only_if_it_uses_the_future(void **state)
{
	struct {
		struct gp_backend_ops ops;
		void *new_call;
	} next = { .ops = { .size = sizeof(next), .abi = GP_BACKEND_ABI, .name = "next" } };
	struct gp_backend_ops ops;

	(void)state;
	assert_int_equal(gp_backend_complete(&ops, &next.ops), 0);
	next.new_call = &next;
	assert_int_equal(gp_backend_complete(&ops, &next.ops), -E2BIG);
}

/* sim */

struct sim {
	struct gp_backend_ops ops;
	struct gp_backend *be;
	uint64_t now;
};

static struct gpm_device timed(struct gpm_device dev)
{
	dev.stop_call_min_ns = dev.stop_call_max_ns = STOP_CALL_NS;
	dev.resume_call_min_ns = dev.resume_call_max_ns = RESUME_CALL_NS;
	dev.slice_call_min_ns = dev.slice_call_max_ns = SLICE_CALL_NS;
	dev.slice_calls = 1;
	dev.message_ns = MESSAGE_NS;
	return dev;
}

static void open_device(struct sim *s, struct gpm_device dev, uint32_t caps)
{
	struct gp_sim_params params = { .device = &dev, .devices = 2, .caps = caps };
	struct gp_backend_opts opts = { .size = sizeof(opts), .params = &params };

	dev = timed(dev);
	*s = (struct sim){ 0 };
	assert_int_equal(gp_backend_open("sim", &opts, &s->ops, &s->be), 0);
}

static void open_sim(struct sim *s)
{
	open_device(s, small_concurrent_device(), 0);
}

static void advance(struct sim *s, uint64_t time_ns)
{
	uint64_t next;

	while ((next = gp_sim_next(s->be)) <= time_ns) {
		s->now = next > s->now ? next : s->now;
		gp_sim_advance(s->be, s->now);
	}
	s->now = time_ns;
	gp_sim_advance(s->be, s->now);
}

static uint64_t add_to(struct sim *s, uint32_t device, uint32_t shim)
{
	struct gp_sim_queue_opts opts = { .client = 7,
					  .client_name = "train",
					  .device = device,
					  .client_class = GP_CLASS_OFFLINE,
					  .shim = shim,
					  .depth = 2 };
	uint64_t queue;

	assert_int_equal(gp_sim_queue_add(s->be, &opts, &queue), 0);
	advance(s, s->now + MS); /* made and mapped */
	return queue;
}

static uint64_t add(struct sim *s)
{
	return add_to(s, 0, GPM_SHIM_NONE);
}

static uint64_t cycles(struct sim *s, uint32_t device)
{
	return gp_sim_gpu(s->be, device)->count.cycles;
}

static struct gp_queue_info info_of(struct sim *s, uint64_t queue)
{
	struct gp_queue_info infos[32];
	int n = s->ops.queues(s->be, infos, 32);

	for (int i = 0; i < n; i++)
		if (infos[i].queue == queue)
			return infos[i];
	fail_msg("queue %lu is not listed", (unsigned long)queue);
	return infos[0];
}

/* One want, what apply() said of it. */
static int32_t want(struct sim *s, uint64_t queue, uint32_t kind)
{
	struct gp_want w = { .queue = queue, .want = kind, .status = 7 };
	int r = s->ops.apply(s->be, &w, 1, NULL);

	assert_int_equal(r, w.status == -EINPROGRESS ? 0 : w.status);
	return w.status;
}

static void assert_done(struct sim *s, uint64_t queue, uint32_t kind)
{
	struct gp_done done;

	assert_int_equal(s->ops.complete(s->be, &done, 1), 1);
	assert_int_equal(done.want.queue, queue);
	assert_int_equal(done.want.want, kind);
	assert_int_equal(done.want.status, 0);
}

static void assert_none_done(struct sim *s)
{
	struct gp_done done;

	assert_int_equal(s->ops.complete(s->be, &done, 1), 0);
}

static void stopped(struct sim *s, uint64_t queue)
{
	assert_int_equal(want(s, queue, GP_STOP), -EINPROGRESS);
	advance(s, s->now + MS);
	assert_done(s, queue, GP_STOP);
}

static void gate(struct sim *s, uint64_t queue)
{
	const struct gp_apply_opts by_gate = { .size = sizeof(by_gate), .mechanism = GP_MECH_GATE };
	struct gp_want w = { .queue = queue, .want = GP_STOP };

	assert_int_equal(s->ops.apply(s->be, &w, 1, &by_gate), 0);
	advance(s, s->now + MS);
	assert_done(s, queue, GP_STOP);
}

static void every_preset_is_there_and_opens(void **state)
{
	struct gp_device_info info;

	(void)state;
	assert_true(gp_npresets >= 3);
	assert_null(gp_preset_find("h100"));
	for (size_t i = 0; i < gp_npresets; i++) {
		struct gp_backend_opts opts = { .size = sizeof(opts), .device = gp_presets[i].name };
		struct gp_backend_ops ops;
		struct gp_backend *be;

		assert_ptr_equal(gp_preset_find(gp_presets[i].name), &gp_presets[i]);
		assert_int_equal(gp_backend_open("sim", &opts, &ops, &be), 0);
		assert_int_equal(ops.devices(be, &info, 1), 1);
		assert_string_equal(info.name, gp_presets[i].name);
		assert_string_equal(info.backend, "sim");
		assert_int_equal(info.caps, gp_sim_caps(&gp_presets[i].device));
		ops.close(be);
	}
}

static void a_device_that_does_not_add_up_is_refused(void **state)
{
	struct gpm_device dev = small_concurrent_device();
	struct gp_sim_params params = { .device = &dev };
	struct gp_backend_opts opts = { .size = sizeof(opts), .params = &params };
	struct gp_backend *be = NULL;
	struct gp_backend_ops ops;

	(void)state;
	dev.waves_per_cu = 0;
	assert_int_equal(gp_backend_open("sim", &opts, &ops, &be), -EINVAL);
	assert_null(be);
}

static void what_a_device_can_do_follows_from_its_numbers(void **state)
{
	struct gpm_device amd = small_concurrent_device(), nvidia = small_timeslice_device();

	(void)state;
	assert_int_equal(gp_sim_caps(&amd) & (GP_CAP_RESERVE | GP_CAP_TAKES_TURNS | GP_CAP_SELECTIVE),
			 GP_CAP_RESERVE);
	assert_true(gp_sim_caps(&amd) & GP_CAP_BACKGROUND);
	amd.yields = 0;
	amd.selective = 1;
	assert_false(gp_sim_caps(&amd) & GP_CAP_BACKGROUND);
	assert_true(gp_sim_caps(&amd) & GP_CAP_SELECTIVE);
	assert_int_equal(gp_sim_caps(&nvidia) & (GP_CAP_RESERVE | GP_CAP_TAKES_TURNS), GP_CAP_TAKES_TURNS);
}

static void devices_and_queues_are_listed_at_most_as_many_as_fit(void **state)
{
	struct gp_device_info devices[3] = { 0 };
	struct gp_queue_info queues[2] = { 0 };
	uint64_t first, second;
	struct sim s;

	(void)state;
	open_sim(&s);
	assert_int_equal(s.ops.devices(s.be, devices, 1), 2);
	assert_int_equal(devices[1].size, 0);
	assert_int_equal(s.ops.devices(s.be, devices, 3), 2);
	assert_int_equal(devices[1].device, 1);
	assert_int_equal(devices[1].compute_units, 4);
	assert_int_equal(devices[1].queue_slots, 24);
	first = add(&s);
	second = add_to(&s, 1, GPM_SHIM_NONE);
	assert_int_equal(s.ops.queues(s.be, queues, 1), 2);
	assert_int_equal(queues[1].size, 0);
	assert_int_equal(s.ops.queues(s.be, queues, 2), 2);
	assert_int_equal(queues[0].queue, first);
	assert_int_equal(queues[1].queue, second);
	assert_int_equal(queues[1].device, 1);
	assert_int_equal(queues[1].client, 7);
	assert_string_equal(queues[1].client_name, "train");
	assert_int_equal(queues[1].client_class, GP_CLASS_OFFLINE);
	gp_sim_set_class(s.be, 7, GP_CLASS_ONLINE);
	gp_sim_set_class(s.be, 8, GP_CLASS_UNKNOWN);
	assert_int_equal(info_of(&s, first).client_class, GP_CLASS_ONLINE);
	s.ops.close(s.be);
}

static void a_queue_that_cannot_be_is_refused(void **state)
{
	static const struct gp_sim_queue_opts bad[] = {
		{ .device = 2 },
		{ .priority = 16 },
		{ .depth = GPM_MAX_DEPTH + 1 },
		{ .shim = GPM_SHIM_THROTTLE },
	};
	uint64_t queue = 99;
	struct sim s;

	(void)state;
	open_sim(&s);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(gp_sim_queue_add(s.be, &bad[i], &queue), -EINVAL);
	assert_int_equal(queue, 99);
	assert_int_equal(s.ops.queues(s.be, NULL, 0), 0);
	s.ops.close(s.be);
}

static void a_stop_is_done_when_the_last_wave_is_off(void **state)
{
	struct gp_done done;
	uint64_t q, begin;
	struct sim s;

	(void)state;
	open_sim(&s);
	q = add(&s);
	begin = s.now;
	assert_int_equal(want(&s, q, GP_STOP), -EINPROGRESS);
	assert_int_equal(info_of(&s, q).state, GP_QUEUE_SUSPENDING);
	assert_int_equal(gp_sim_called_ns(s.be, q), 0);
	advance(&s, begin + STOP_CALL_NS + OFF_NS - 1);
	assert_int_equal(gp_sim_called_ns(s.be, q), begin + STOP_CALL_NS);
	assert_none_done(&s);
	advance(&s, begin + STOP_CALL_NS + OFF_NS);
	assert_int_equal(s.ops.complete(s.be, &done, 1), 1);
	assert_int_equal(done.latency_ns, STOP_CALL_NS + OFF_NS);
	assert_int_equal(info_of(&s, q).state, GP_QUEUE_SUSPENDED);
	begin = s.now;
	assert_int_equal(want(&s, q, GP_RUN), -EINPROGRESS);
	assert_int_equal(info_of(&s, q).state, GP_QUEUE_RESUMING);
	advance(&s, begin + RESUME_CALL_NS + 200 + 10);
	assert_int_equal(s.ops.complete(s.be, &done, 1), 1);
	assert_int_equal(done.latency_ns, RESUME_CALL_NS + 200 + 10);
	assert_int_equal(info_of(&s, q).state, GP_QUEUE_RUNNING);
	s.ops.close(s.be);
}

static void without_batch_an_agent_makes_its_calls_one_after_the_other(void **state)
{
	struct gp_want wants[2] = { { .want = GP_STOP }, { .want = GP_STOP } };
	struct gp_done done[2];
	uint64_t begin, before;
	struct sim s;

	(void)state;
	open_device(&s, small_concurrent_device(), GP_CAP_INTERRUPT);
	wants[0].queue = add(&s);
	wants[1].queue = add(&s);
	before = cycles(&s, 0);
	begin = s.now;
	assert_int_equal(s.ops.apply(s.be, wants, 2, NULL), 0);
	advance(&s, begin + MESSAGE_NS + STOP_CALL_NS + OFF_NS +
			    MESSAGE_NS); /* there, and back with the answer */
	assert_int_equal(s.ops.complete(s.be, done, 2), 1);
	assert_int_equal(done[0].latency_ns, MESSAGE_NS + STOP_CALL_NS + OFF_NS);
	advance(&s, begin + MS);
	assert_int_equal(s.ops.complete(s.be, done, 2), 1);
	assert_true(done[0].latency_ns >= MESSAGE_NS + 2 * STOP_CALL_NS);
	assert_int_equal(cycles(&s, 0) - before, 2);
	s.ops.close(s.be);
}

static void a_batch_is_one_cycle_for_any_number_of_queues(void **state)
{
	struct gp_want wants[20];
	struct gp_done done[21];
	uint64_t before;
	struct sim s;

	(void)state;
	open_sim(&s);
	for (int i = 0; i < 20; i++)
		wants[i] = (struct gp_want){ .queue = add(&s), .want = GP_STOP };
	before = cycles(&s, 0);
	for (uint32_t round = 1; round <= 2; round++) {
		assert_int_equal(s.ops.apply(s.be, wants, 20, NULL), 0);
		for (int i = 0; i < 20; i++)
			assert_int_equal(wants[i].status, -EINPROGRESS);
		advance(&s, s.now + MS);
		assert_int_equal(s.ops.complete(s.be, done, 5), 5); /* at most as many as fit */
		assert_int_equal(s.ops.complete(s.be, done, 21), 15);
		assert_int_equal(cycles(&s, 0) - before, round);
		for (int i = 0; i < 20; i++)
			wants[i].want = GP_RUN;
	}
	assert_int_equal(cycles(&s, 1), 0);
	s.ops.close(s.be);
}

static void one_call_each_is_one_cycle_each(void **state)
{
	uint64_t queues[8], before;
	struct sim s;

	(void)state;
	open_sim(&s);
	for (int i = 0; i < 8; i++)
		queues[i] = add(&s);
	before = cycles(&s, 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(want(&s, queues[i], GP_STOP), -EINPROGRESS);
	advance(&s, s.now + MS);
	assert_int_equal(cycles(&s, 0) - before, 8);
	s.ops.close(s.be);
}

static void stops_and_resumes_of_one_call_are_one_cycle_on_each_device(void **state)
{
	struct gp_want wants[4];
	struct gp_done done[5];
	uint64_t before[2];
	struct sim s;

	(void)state;
	open_sim(&s);
	for (uint32_t i = 0; i < 4; i++)
		wants[i] = (struct gp_want){ .queue = add_to(&s, i / 2, GPM_SHIM_NONE), .want = GP_STOP };
	stopped(&s, wants[0].queue);
	stopped(&s, wants[2].queue);
	wants[0].want = wants[2].want = GP_RUN;
	before[0] = cycles(&s, 0);
	before[1] = cycles(&s, 1);
	assert_int_equal(s.ops.apply(s.be, wants, 4, NULL), 0);
	advance(&s, s.now + MS);
	assert_int_equal(s.ops.complete(s.be, done, 5), 4);
	assert_int_equal(cycles(&s, 0) - before[0], 1);
	assert_int_equal(cycles(&s, 1) - before[1], 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(info_of(&s, wants[i].queue).state,
				 wants[i].want == GP_STOP ? GP_QUEUE_SUSPENDED : GP_QUEUE_RUNNING);
	s.ops.close(s.be);
}

static void where_nothing_changes_nothing_is_called(void **state)
{
	uint64_t q, before;
	struct sim s;

	(void)state;
	open_sim(&s);
	q = add(&s);
	before = cycles(&s, 0);
	assert_int_equal(want(&s, q, GP_RUN), 0);
	advance(&s, s.now + MS);
	assert_none_done(&s);
	assert_int_equal(cycles(&s, 0), before);
	stopped(&s, q);
	assert_int_equal(want(&s, q, GP_STOP), 0);
	advance(&s, s.now + MS);
	assert_none_done(&s);
	assert_int_equal(cycles(&s, 0), before + 1);
	s.ops.close(s.be);
}

static void an_unknown_queue_is_reported_and_the_others_are_done(void **state)
{
	struct gp_want wants[3] = { { .queue = 999, .want = GP_STOP }, { .want = GP_STOP }, { .want = 9 } };
	struct sim s;

	(void)state;
	open_sim(&s);
	wants[1].queue = add(&s);
	wants[2].queue = add(&s);
	assert_int_equal(s.ops.apply(s.be, wants, 3, NULL), -ENOENT); /* the first error wins */
	assert_int_equal(wants[0].status, -ENOENT);
	assert_int_equal(wants[1].status, -EINPROGRESS);
	assert_int_equal(wants[2].status, -EINVAL);
	advance(&s, s.now + MS);
	assert_done(&s, wants[1].queue, GP_STOP);
	assert_none_done(&s);
	s.ops.close(s.be);
}

static void a_queue_with_a_want_under_way_is_busy(void **state)
{
	struct gp_want twice[2] = { { .want = GP_STOP }, { .want = GP_RUN } };
	struct sim s;

	(void)state;
	open_sim(&s);
	twice[0].queue = twice[1].queue = add(&s);
	assert_int_equal(s.ops.apply(s.be, twice, 2, NULL), -EBUSY);
	assert_int_equal(twice[0].status, -EINPROGRESS);
	assert_int_equal(want(&s, twice[0].queue, GP_STOP), -EBUSY);
	advance(&s, s.now + MS);
	assert_done(&s, twice[0].queue, GP_STOP);
	assert_none_done(&s);
	s.ops.close(s.be);
}

static void options_that_make_no_sense_are_refused_for_every_want(void **state)
{
	struct {
		struct gp_apply_opts opts;
		uint64_t newer;
	} next = { .opts = { .size = sizeof(next), .flags = 1 }, .newer = 1 };
	struct gp_want wants[2] = { { .want = GP_STOP }, { .want = GP_STOP } };
	struct sim s;

	(void)state;
	open_sim(&s);
	wants[0].queue = add(&s);
	wants[1].queue = add(&s);
	assert_int_equal(s.ops.apply(s.be, wants, 2, &next.opts), -E2BIG);
	assert_int_equal(wants[1].status, -E2BIG);
	next.newer = 0;
	assert_int_equal(s.ops.apply(s.be, wants, 2, &next.opts), -EINVAL);
	assert_int_equal(wants[0].status, -EINVAL);
	next.opts.flags = 0;
	next.opts.mechanism = GP_MECH_COUNT;
	assert_int_equal(s.ops.apply(s.be, wants, 2, &next.opts), -EINVAL);
	next.opts.mechanism = GP_MECH_YIELD; /* no way to stop */
	assert_int_equal(s.ops.apply(s.be, wants, 2, &next.opts), -ENOTSUP);
	next.opts.mechanism = GP_MECH_GATE; /* there is no shim in front of it */
	assert_int_equal(s.ops.apply(s.be, wants, 2, &next.opts), -ENOTSUP);
	advance(&s, s.now + MS);
	assert_none_done(&s);
	assert_int_equal(info_of(&s, wants[0].queue).state, GP_QUEUE_RUNNING);
	s.ops.close(s.be);
}

static void a_queue_with_a_shim_is_stopped_and_resumed_by_it_without_a_cycle(void **state)
{
	static const struct {
		uint32_t shim, mechanism;
	} ways[] = { { GPM_SHIM_GATE, GP_MECH_GATE },
		     { GPM_SHIM_FLUSH, GP_MECH_GATE },
		     { GPM_SHIM_THROTTLE, GP_MECH_THROTTLE } };
	struct sim s;

	(void)state;
	open_sim(&s);
	for (int i = 0; i < 3; i++) {
		struct gp_apply_opts opts = { .size = sizeof(opts), .mechanism = ways[i].mechanism };
		struct gp_want w = { .queue = add_to(&s, 0, ways[i].shim), .want = GP_STOP };
		uint64_t before = cycles(&s, 0);

		assert_int_equal(s.ops.apply(s.be, &w, 1, &opts), 0);
		advance(&s, s.now + MS);
		assert_done(&s, w.queue, GP_STOP);
		assert_true(gp_sim_queue(s.be, w.queue)->closed);
		assert_int_equal(want(&s, w.queue, GP_RUN), -EINPROGRESS);
		advance(&s, s.now + MS);
		assert_done(&s, w.queue, GP_RUN);
		assert_false(gp_sim_queue(s.be, w.queue)->closed);
		assert_int_equal(cycles(&s, 0), before);
	}
	s.ops.close(s.be);
}

static void a_queue_may_be_stopped_the_moment_it_is_made(void **state)
{
	struct gp_sim_queue_opts opts = { .client = 7, .client_class = GP_CLASS_OFFLINE };
	struct gpm_device dev = small_concurrent_device();
	struct gp_want wants[2] = { { .want = GP_STOP }, { .want = GP_STOP } };
	struct gp_done done[3];
	struct sim s;

	(void)state;
	dev.map_fixed_ns = 20 * US; /* it is still being mapped when the call arrives */
	open_device(&s, dev, 0);
	wants[0].queue = add(&s);
	assert_int_equal(gp_sim_queue_add(s.be, &opts, &wants[1].queue), 0);
	assert_int_equal(s.ops.apply(s.be, wants, 2, NULL), 0);
	advance(&s, s.now + MS);
	assert_int_equal(s.ops.complete(s.be, done, 3), 2);
	assert_int_equal(info_of(&s, wants[0].queue).state, GP_QUEUE_SUSPENDED);
	assert_int_equal(info_of(&s, wants[1].queue).state, GP_QUEUE_SUSPENDED);
	s.ops.close(s.be);
}

static void background_works_where_the_device_yields_and_nowhere_else(void **state)
{
	uint64_t q;
	struct sim s;

	(void)state;
	open_sim(&s);
	q = add(&s);
	assert_int_equal(want(&s, q, GP_BACKGROUND), -EINPROGRESS);
	advance(&s, s.now + MS);
	assert_done(&s, q, GP_BACKGROUND);
	assert_int_equal(info_of(&s, q).state, GP_QUEUE_RUNNING);
	assert_int_equal(gp_sim_queue(s.be, q)->want, GPM_BACKGROUND);
	s.ops.close(s.be);
	open_device(&s, small_concurrent_device(), GP_CAP_INTERRUPT | GP_CAP_BATCH);
	q = add(&s);
	assert_int_equal(want(&s, q, GP_BACKGROUND), -ENOTSUP);
	assert_int_equal(want(&s, q, GP_STOP), -EINPROGRESS);
	s.ops.close(s.be);
}

static void a_time_slice_is_set_by_a_call_of_its_own_and_outlives_a_stop(void **state)
{
	struct gp_done done;
	uint64_t q, begin;
	struct sim s;

	(void)state;
	open_device(&s, small_timeslice_device(), 0);
	q = add(&s);
	begin = s.now;
	assert_int_equal(want(&s, q, GP_BACKGROUND), -EINPROGRESS);
	advance(&s, begin + MS);
	assert_int_equal(s.ops.complete(s.be, &done, 1), 1);
	assert_int_equal(done.latency_ns, MESSAGE_NS + SLICE_CALL_NS);
	stopped(&s, q);
	assert_int_equal(want(&s, q, GP_BACKGROUND), -EINPROGRESS);
	advance(&s, s.now + MS);
	assert_int_equal(s.ops.complete(s.be, &done, 1), 1);
	assert_int_equal(done.latency_ns, MESSAGE_NS + RESUME_CALL_NS);
	s.ops.close(s.be);
}

/* leases */

static void apply_lease(struct sim *s, struct gp_want *wants, size_t n, uint64_t lease_ns)
{
	struct gp_apply_opts opts = { .size = sizeof(opts), .lease_ns = lease_ns };

	assert_int_equal(s->ops.apply(s->be, wants, n, &opts), 0);
}

static void when_a_lease_ends_everything_runs_again(void **state)
{
	struct gp_want wants[3] = { { .want = GP_STOP }, { .want = GP_STOP }, { .want = GP_BACKGROUND } };
	struct gp_done done[4];
	uint64_t begin;
	struct sim s;

	(void)state;
	open_sim(&s);
	for (int i = 0; i < 3; i++)
		wants[i].queue = add(&s);
	begin = s.now;
	apply_lease(&s, wants, 3, MS);
	advance(&s, begin + MS - 1);
	assert_int_equal(s.ops.complete(s.be, done, 4), 3);
	assert_int_equal(info_of(&s, wants[0].queue).state, GP_QUEUE_SUSPENDED);
	advance(&s, begin + 2 * MS);
	assert_int_equal(s.ops.complete(s.be, done, 4), 3); /* nobody asked, it is said all the same */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(done[i].want.want, GP_RUN);
		assert_int_equal(gp_sim_queue(s.be, wants[i].queue)->want, GPM_RUN);
	}
	advance(&s, begin + 100 * MS);
	assert_none_done(&s);
	s.ops.close(s.be);
}

static void a_call_that_changes_nothing_renews_the_lease(void **state)
{
	struct gp_want w = { .want = GP_STOP };
	uint64_t begin;
	struct sim s;

	(void)state;
	open_sim(&s);
	w.queue = add(&s);
	begin = s.now;
	apply_lease(&s, &w, 1, MS);
	for (uint64_t i = 1; i <= 10; i++) {
		advance(&s, begin + i * MS / 2);
		assert_int_equal(s.ops.apply(s.be, NULL, 0, NULL), 0);
	}
	advance(&s, begin + 6 * MS - 1);
	assert_int_equal(info_of(&s, w.queue).state, GP_QUEUE_SUSPENDED);
	advance(&s, begin + 7 * MS);
	assert_int_equal(info_of(&s, w.queue).state, GP_QUEUE_RUNNING);
	s.ops.close(s.be);
}

static void without_a_lease_a_stop_lasts(void **state)
{
	uint64_t q;
	struct sim s;

	(void)state;
	open_sim(&s);
	q = add(&s);
	stopped(&s, q);
	advance(&s, s.now + 10000 * MS);
	assert_int_equal(info_of(&s, q).state, GP_QUEUE_SUSPENDED);
	s.ops.close(s.be);
}

static void a_lease_that_ends_while_a_stop_is_under_way_undoes_it_when_it_is_done(void **state)
{
	struct gp_want wants[2] = { { .want = GP_STOP }, { .want = GP_STOP } };
	struct gp_done done;
	uint32_t stops = 0, runs = 0;
	struct sim s;

	(void)state;
	open_sim(&s);
	wants[0].queue = add(&s);
	wants[1].queue = add(&s);
	apply_lease(&s, wants, 2, STOP_CALL_NS / 2);
	for (int i = 0; i < 200; i++) {
		advance(&s, s.now + 100);
		while (s.ops.complete(s.be, &done, 1) == 1) {
			stops += done.want.want == GP_STOP;
			runs += done.want.want == GP_RUN;
			assert_true(runs <= stops);
		}
	}
	assert_int_equal(stops, 2);
	assert_int_equal(runs, 2);
	assert_int_equal(info_of(&s, wants[0].queue).state, GP_QUEUE_RUNNING);
	assert_int_equal(info_of(&s, wants[1].queue).state, GP_QUEUE_RUNNING);
	s.ops.close(s.be);
}

static void a_lease_gives_everything_back_in_one_cycle_and_both_ends_are_told(void **state)
{
	struct gp_want wants[3] = { { .want = GP_STOP }, { .want = GP_STOP }, { .want = GP_STOP } };
	struct gp_done done[8];
	uint64_t cycles;
	struct sim s;

	(void)state;
	open_sim(&s);
	for (int i = 0; i < 3; i++)
		wants[i].queue = add(&s);
	apply_lease(&s, wants, 3, MS);
	advance(&s, s.now + MS - 1);
	cycles = gp_sim_gpu(s.be, 0)->count.cycles;
	advance(&s, s.now + MS); /* nobody asked what has ended, neither the stops nor the lease */
	assert_int_equal(gp_sim_gpu(s.be, 0)->count.cycles, cycles + 1);
	assert_int_equal(s.ops.complete(s.be, done, 1), 1);
	assert_int_equal(s.ops.complete(s.be, done + 1, 7), 5);
	for (int i = 0; i < 6; i++)
		assert_int_equal(done[i].want.want, i % 2 ? GP_RUN : GP_STOP);
	s.ops.close(s.be);
}

static void a_backend_may_be_closed_with_everything_under_way(void **state)
{
	struct gp_want wants[3] = { { .want = GP_STOP }, { .want = GP_STOP }, { .want = GP_BACKGROUND } };
	struct sim s;

	(void)state;
	open_sim(&s);
	for (int i = 0; i < 3; i++)
		wants[i].queue = add(&s);
	apply_lease(&s, wants, 3, MS);
	advance(&s, s.now + STOP_CALL_NS + 10);
	s.ops.close(s.be); /* what is still held would be reported as leaked */
}

/* reserve, activity, work */

static void a_reservation_limits_the_offline_queues_that_are_active(void **state)
{
	struct sim s;

	(void)state;
	open_sim(&s);
	assert_int_equal(s.ops.reserve(s.be, 0, 80, 20), 0);
	assert_int_equal(gp_sim_gpu(s.be, 0)->offline_limit, 4); /* 4.8 of 24 */
	assert_int_equal(s.ops.reserve(s.be, 0, 75, 0), 0);      /* none is left */
	assert_int_equal(gp_sim_gpu(s.be, 0)->offline_limit, 0);
	assert_int_equal(s.ops.reserve(s.be, 0, 10, 50), 0);
	assert_int_equal(gp_sim_gpu(s.be, 0)->offline_limit, 12);
	assert_int_equal(s.ops.reserve(s.be, 0, 0, 0), 0); /* nothing is reserved */
	assert_int_equal(gp_sim_gpu(s.be, 0)->offline_limit, UINT32_MAX);
	s.ops.close(s.be);
}

static void a_reservation_that_cannot_be_is_refused(void **state)
{
	struct sim s;

	(void)state;
	open_sim(&s);
	assert_int_equal(s.ops.reserve(s.be, 2, 50, 50), -ENOENT);
	assert_int_equal(s.ops.reserve(s.be, 0, 101, 0), -EINVAL);
	assert_int_equal(s.ops.reserve(s.be, 0, 0, 101), -EINVAL);
	assert_int_equal(s.ops.reserve(s.be, 0, 60, 41), -EINVAL);
	assert_int_equal(s.ops.reserve(s.be, 0, UINT32_MAX, 2), -EINVAL);
	s.ops.close(s.be);
	open_device(&s, small_timeslice_device(), 0);
	assert_int_equal(s.ops.reserve(s.be, 0, 50, 50), -ENOTSUP);
	s.ops.close(s.be);
}

static void the_pointers_tell_how_much_work_a_queue_has(void **state)
{
	struct gpm_cmd cmd = { .kernel = { .wave_ns = 10 * US, .workgroups = 4, .waves_per_wg = 1 },
			       .count = 3 };
	struct gpm_cmd nothing = { .kernel = { .wave_ns = 10 * US, .workgroups = 4, .waves_per_wg = 1 } };
	struct gp_activity a;
	uint64_t q;
	struct sim s;

	(void)state;
	open_sim(&s);
	q = add(&s);
	assert_int_equal(s.ops.activity(s.be, q, &a), 0);
	assert_int_equal(a.activity, GP_ACTIVITY_IDLE);
	assert_int_equal(a.rptr, a.wptr);
	assert_int_equal(gp_sim_submit(s.be, q, &nothing), -EINVAL);
	assert_int_equal(gp_sim_submit(s.be, q, &cmd), 0);
	advance(&s, s.now + 15 * US); /* into the second kernel */
	assert_int_equal(s.ops.activity(s.be, q, &a), 0);
	assert_int_equal(a.activity, GP_ACTIVITY_BUSY);
	assert_int_equal(a.rptr, 1);
	assert_int_equal(a.wptr, 3);
	assert_int_equal(info_of(&s, q).activity, GP_ACTIVITY_BUSY);
	assert_null(gp_sim_finished(s.be));
	advance(&s, s.now + MS);
	assert_ptr_equal(gp_sim_finished(s.be), &cmd);
	assert_null(gp_sim_finished(s.be));
	assert_int_equal(s.ops.activity(s.be, q, &a), 0);
	assert_int_equal(a.activity, GP_ACTIVITY_IDLE);
	assert_int_equal(a.rptr, 3);
	assert_int_equal(a.wptr, 3);
	s.ops.close(s.be);
}

static void a_stopped_queue_does_no_work_until_it_is_resumed(void **state)
{
	struct gpm_cmd cmd = { .kernel = { .wave_ns = 10 * US, .workgroups = 4, .waves_per_wg = 1 },
			       .count = 1 };
	uint64_t q;
	struct sim s;

	(void)state;
	open_sim(&s);
	q = add(&s);
	stopped(&s, q);
	assert_int_equal(gp_sim_submit(s.be, q, &cmd), 0);
	advance(&s, s.now + 100 * MS);
	assert_null(gp_sim_finished(s.be));
	assert_int_equal(want(&s, q, GP_RUN), -EINPROGRESS);
	advance(&s, s.now + MS);
	assert_ptr_equal(gp_sim_finished(s.be), &cmd);
	s.ops.close(s.be);
}

/* All ways a queue can be when it has to go. */
static void a_removed_queue_is_gone_once_the_device_has_let_go_of_it(void **state)
{
	struct gpm_cmd cmd = { .count = 1,
			       .kernel = { .workgroups = 1, .waves_per_wg = 1, .wave_ns = 1000 * MS } };
	uint64_t runs, is_stopped, stops, gated, left;
	struct sim s;

	(void)state;
	open_device(&s, small_concurrent_device(), gp_sim_caps(&(struct gpm_device){ 0 }) | GP_CAP_GATE);
	left = add(&s);
	runs = add(&s);
	is_stopped = add(&s);
	stops = add(&s);
	gated = add_to(&s, 0, GPM_SHIM_GATE);
	stopped(&s, is_stopped);
	assert_int_equal(gp_sim_submit(s.be, runs, &cmd), 0);
	gate(&s, gated);
	assert_int_equal(want(&s, stops, GP_STOP), -EINPROGRESS);
	for (uint64_t queue = runs; queue <= gated; queue++)
		assert_int_equal(gp_sim_queue_remove(s.be, queue), 0);
	assert_null(gp_sim_queue(s.be, is_stopped));
	assert_non_null(gp_sim_queue(s.be, runs));
	assert_int_equal(gp_sim_submit(s.be, runs, &cmd), -ENOENT);
	advance(&s, s.now + MS);
	for (uint64_t queue = runs; queue <= gated; queue++)
		assert_null(gp_sim_queue(s.be, queue));
	assert_none_done(&s);
	assert_int_equal(s.ops.queues(s.be, NULL, 0), 1);
	assert_int_equal(gp_sim_gpu(s.be, 0)->exec.free, 8);
	stopped(&s, left);
	assert_int_equal(add(&s), gated + 1); /* never used again */
	assert_int_equal(gp_sim_queue_remove(s.be, runs), -ENOENT);
	s.ops.close(s.be);
}

static void a_queue_nobody_knows_has_neither_work_nor_pointers(void **state)
{
	struct gp_activity a;
	struct gpm_cmd cmd = { .count = 1 };
	struct sim s;

	(void)state;
	open_sim(&s);
	assert_int_equal(s.ops.activity(s.be, 99, &a), -ENOENT);
	assert_int_equal(gp_sim_submit(s.be, 99, &cmd), -ENOENT);
	assert_null(gp_sim_queue(s.be, 99));
	assert_int_equal(gp_sim_called_ns(s.be, 99), 0);
	s.ops.close(s.be);
}

/* trial */

static void a_running_kernel_of_the_simulated_gpu_stands_still_while_stopped_and_loses_nothing(void **state)
{
	struct gp_trial trial;

	(void)state;
	assert_int_equal(gp_sim_try_running(&trial), 0);
	assert_int_equal(trial.rounds, 10);
	assert_int_equal(trial.still, 0);
	assert_in_range(trial.before, 99000, 100000); /* of ten times 10 ms, in us */
	assert_in_range(trial.after, 99000, 100000);
	assert_in_range(trial.stop_ns, 1, MS);
	assert_in_range(trial.resume_ns, 1, MS);
}

/* A queue that does in each part of a round what it is told. */
struct fake_trial {
	uint64_t progress[3]; /* running, stopped, resumed */
	int parts, stop, resume;
};

static uint64_t fake_progress(void *arg, int is_running)
{
	struct fake_trial *f = arg;

	assert_int_equal(is_running, f->parts % 3 != 1);
	return f->progress[f->parts++ % 3];
}

static int fake_stop(void *arg, uint64_t *ret_ns)
{
	struct fake_trial *f = arg;

	*ret_ns = (uint64_t)(100 - f->parts); /* the first takes longest */
	return f->stop;
}

static int fake_resume(void *arg, uint64_t *ret_ns)
{
	struct fake_trial *f = arg;

	*ret_ns = (uint64_t)f->parts; /* the last */
	return f->resume;
}

static const struct gp_trial_ops fake_ops = { .progress = fake_progress,
					      .stop = fake_stop,
					      .resume = fake_resume,
					      .stop_step = "stop",
					      .resume_step = "resume" };

static void a_trial_is_good_only_if_the_queue_runs_stands_still_and_goes_on(void **state)
{
	static const struct {
		struct fake_trial trial;
		int r;
		const char *step;
	} cases[] = {
		{ { .progress = { 5, 0, 7 } }, 0, "see the queue go on" },
		{ { .progress = { 0, 0, 7 } }, -EIO, "see the queue run" },
		{ { .progress = { 5, 1, 7 } }, -EIO, "see the queue stand still while it is stopped" },
		{ { .progress = { 5, 0, 0 } }, -EIO, "see the queue go on" },
		{ { .progress = { 5, 0, 7 }, .stop = -EPERM }, -EPERM, "stop" },
		{ { .progress = { 5, 0, 7 }, .resume = -ENOMEM }, -ENOMEM, "resume" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake_trial fake = cases[i].trial;
		struct gp_trial trial = { 0 };

		assert_int_equal(gp_trial_go(&fake_ops, &fake, &trial), cases[i].r);
		assert_string_equal(trial.step, cases[i].step);
		assert_int_equal(trial.rounds, cases[i].r ? 1 : 10);
		if (cases[i].r)
			continue;
		assert_int_equal(trial.before, 50);
		assert_int_equal(trial.after, 70);
		assert_int_equal(trial.stop_ns, 99);   /* after one part */
		assert_int_equal(trial.resume_ns, 29); /* after two of the last three */
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_backend_has_a_name_of_its_own),
	cmocka_unit_test(a_backend_is_opened_by_its_name_or_found),
	cmocka_unit_test(an_unknown_backend_or_device_opens_nothing),
	cmocka_unit_test(what_a_table_leaves_out_becomes_not_supported),
	cmocka_unit_test(what_a_table_has_is_kept),
	cmocka_unit_test(a_table_that_is_none_is_refused),
	cmocka_unit_test(an_entry_that_a_backend_fills_grows_with_the_abi_alone),
	cmocka_unit_test(a_table_from_before_is_refused),
	cmocka_unit_test(a_table_from_the_future_is_refused_only_if_it_uses_the_future),
	cmocka_unit_test(every_preset_is_there_and_opens),
	cmocka_unit_test(a_device_that_does_not_add_up_is_refused),
	cmocka_unit_test(what_a_device_can_do_follows_from_its_numbers),
	cmocka_unit_test(devices_and_queues_are_listed_at_most_as_many_as_fit),
	cmocka_unit_test(a_queue_that_cannot_be_is_refused),
	cmocka_unit_test(a_stop_is_done_when_the_last_wave_is_off),
	cmocka_unit_test(without_batch_an_agent_makes_its_calls_one_after_the_other),
	cmocka_unit_test(a_batch_is_one_cycle_for_any_number_of_queues),
	cmocka_unit_test(one_call_each_is_one_cycle_each),
	cmocka_unit_test(stops_and_resumes_of_one_call_are_one_cycle_on_each_device),
	cmocka_unit_test(where_nothing_changes_nothing_is_called),
	cmocka_unit_test(an_unknown_queue_is_reported_and_the_others_are_done),
	cmocka_unit_test(a_queue_with_a_want_under_way_is_busy),
	cmocka_unit_test(options_that_make_no_sense_are_refused_for_every_want),
	cmocka_unit_test(a_queue_with_a_shim_is_stopped_and_resumed_by_it_without_a_cycle),
	cmocka_unit_test(a_queue_may_be_stopped_the_moment_it_is_made),
	cmocka_unit_test(background_works_where_the_device_yields_and_nowhere_else),
	cmocka_unit_test(a_time_slice_is_set_by_a_call_of_its_own_and_outlives_a_stop),
	cmocka_unit_test(when_a_lease_ends_everything_runs_again),
	cmocka_unit_test(a_call_that_changes_nothing_renews_the_lease),
	cmocka_unit_test(without_a_lease_a_stop_lasts),
	cmocka_unit_test(a_lease_gives_everything_back_in_one_cycle_and_both_ends_are_told),
	cmocka_unit_test(a_lease_that_ends_while_a_stop_is_under_way_undoes_it_when_it_is_done),
	cmocka_unit_test(a_backend_may_be_closed_with_everything_under_way),
	cmocka_unit_test(a_reservation_limits_the_offline_queues_that_are_active),
	cmocka_unit_test(a_reservation_that_cannot_be_is_refused),
	cmocka_unit_test(the_pointers_tell_how_much_work_a_queue_has),
	cmocka_unit_test(a_stopped_queue_does_no_work_until_it_is_resumed),
	cmocka_unit_test(a_removed_queue_is_gone_once_the_device_has_let_go_of_it),
	cmocka_unit_test(a_queue_nobody_knows_has_neither_work_nor_pointers),
	cmocka_unit_test(a_running_kernel_of_the_simulated_gpu_stands_still_while_stopped_and_loses_nothing),
	cmocka_unit_test(a_trial_is_good_only_if_the_queue_runs_stands_still_and_goes_on),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
