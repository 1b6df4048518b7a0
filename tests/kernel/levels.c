// SPDX-License-Identifier: MIT
/* bed: timeout=240 memory=2G param=gfx=gfx90a param=cus=4 */
/*
 * Levels in ROCr's door, with AMD's own runtime (Debian's ROCr 5.2.3) on the software GPU: held queues stand
 * still at a launch, and whatever becomes of the gates every launch ends once and in its order. An argument
 * is another tool, for HSA_TOOLS_LIB: "first NAME" or "last NAME"; levels.py does that.
 */
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "hsa_work.h"
#include "kfd.h"
#include "tap.h"

#define US 1000ull
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define LIBRARY "libgpreempt-level.so"
#define QUEUES 3
#define DEPTH 24 /* launches of a queue that can be under way */
#define CHANGES 10000
#define CHANGES_BESIDE 1000 /* another tool */

static struct gp_ctx *ctx;

/* One queue that always has work. */
struct slot {
	hsa_queue_t *queue;
	struct gp_stream *stream;
	hsa_signal_t signals[DEPTH]; /* of every other launch; the others have none, as those of a graph */
	uint64_t begun, ended, last_end_ns;
	uint64_t disorder, wrong;
	uint64_t changes; /* of its gate */
};

static struct gp_stream *open_stream(hsa_queue_t *queue, uint32_t priority, uint32_t level, uint64_t flags)
{
	const struct gp_stream_opts opts = {
		.size = sizeof(opts), .priority = priority, .level = level, .flags = flags
	};
	struct gp_stream *stream = NULL;
	int r = gp_stream_open(ctx, queue, &opts, &stream);

	if (r < 0)
		note("gp_stream_open: %d, %s", r, gp_ctx_errmsg(ctx));
	return stream;
}

static struct gp_stream_info query(struct gp_stream *stream)
{
	struct gp_stream_info info = { .size = sizeof(info) };

	gp_stream_query(stream, &info);
	return info;
}

static void a_stream_has_levels(hsa_queue_t *queue)
{
	struct gp_stream *stream = open_stream(queue, 0, 0, 0);
	struct gp_stream_info info = query(stream);

	ok(stream && !strcmp(info.door, "rocr"), "a queue of the runtime is a stream in ROCr's door");
	ok(info.levels == (1u << GP_LEVEL_THROTTLE | 1u << GP_LEVEL_GATE),
	   "without gpreemptd it has throttle and gate");
	ok(info.level == GP_LEVEL_GATE, "the highest is chosen");
	ok(gp_stream_set_level(stream, GP_LEVEL_INTERRUPT) == -ENOTSUP &&
		   strstr(gp_ctx_errmsg(ctx), "it has: throttle, gate"),
	   "a level that it does not have is refused: %s", gp_ctx_errmsg(ctx));
	gp_stream_close(stream);
}

static void a_gate_holds_what_was_launched(hsa_queue_t *queue)
{
	struct gp_stream *stream = open_stream(queue, 0, GP_LEVEL_GATE, GP_STREAM_MANUAL);
	hsa_signal_t first = hsa_work_signal(1), last = hsa_work_signal(1);
	uint64_t opened;

	ok(gp_stream_deactivate(stream) == 0, "a gate closes");
	hsa_work_launch(queue, 4, MS, first, HSA_WORK_BARRIER);
	for (int i = 0; i < 10; i++)
		hsa_work_launch(queue, 4, MS, (hsa_signal_t){ 0 }, HSA_WORK_BARRIER);
	hsa_work_launch(queue, 4, MS, last, HSA_WORK_BARRIER);
	kfd_sleep(300 * MS);
	ok(hsa_signal_load_scacquire(first) == 1, "what was launched behind it has not begun");
	ok(query(stream).begun == 12 && query(stream).ended == 0, "twelve launches wait in their queue");
	opened = kfd_now();
	ok(gp_stream_reactivate(stream) == 0 && hsa_work_await(last) == 0,
	   "the gate opens, and they all end");
	/* The device reads its clock before it looks at a gate. Without one this would be 300 ms earlier. */
	ok(hsa_work_began(first) + 100 * MS >= opened, "after it was opened");
	ok(gp_stream_sync(stream, 60 * SECOND) == 0 && query(stream).ended == 12, "each was counted");
	gp_stream_close(stream);
	hsa_signal_destroy(first);
	hsa_signal_destroy(last);
}

static void a_closed_gate_lets_the_running_kernel_end(hsa_queue_t *queue)
{
	struct gp_stream *stream = open_stream(queue, 0, GP_LEVEL_GATE, GP_STREAM_MANUAL);
	hsa_signal_t running = hsa_work_signal(1), next = hsa_work_signal(1);
	struct gp_stream_info info;

	hsa_work_launch(queue, 4, 2 * SECOND, running, HSA_WORK_BARRIER);
	hsa_work_launch(queue, 4, MS, next, HSA_WORK_BARRIER);
	kfd_sleep(100 * MS);
	gp_stream_suspend(stream);
	ok(hsa_work_await(running) == 0, "the kernel that runs ends");
	kfd_sleep(200 * MS);
	info = query(stream);
	ok(hsa_signal_load_scacquire(next) == 1 && info.begun - info.ended == 1 && info.held,
	   "the next one waits");
	gp_stream_close(stream);
	ok(hsa_work_await(next) == 0, "until the stream is closed");
	hsa_signal_destroy(running);
	hsa_signal_destroy(next);
}

static void a_throttle_bounds_what_is_in_flight(hsa_queue_t *queue)
{
	struct gp_stream *stream = open_stream(queue, 0, GP_LEVEL_THROTTLE, GP_STREAM_MANUAL);
	uint64_t most = 0;
	struct gp_stream_info info;

	ok(gp_stream_nlaunch(stream, 3) == 0, "three launches may be in flight");
	for (int i = 0; i < 40; i++) {
		hsa_work_launch(queue, 4, 2 * MS, (hsa_signal_t){ 0 }, HSA_WORK_BARRIER);
		info = query(stream);
		most = info.begun - info.ended > most ? info.begun - info.ended : most;
	}
	ok(most >= 1 && most <= 3, "of 40 there were %llu at most", (unsigned long long)most);
	ok(gp_stream_sync(stream, 60 * SECOND) == 0, "and all have ended");
	gp_stream_nlaunch(stream, 0);
	for (int i = 0; i < 40; i++)
		hsa_work_launch(queue, 4, 20 * MS, (hsa_signal_t){ 0 }, HSA_WORK_BARRIER);
	info = query(stream);
	ok(info.in_flight == 2 && info.length_ns >= 18 * MS,
	   "a launch of 20 ms is measured: %llu us, and two at a time",
	   (unsigned long long)info.length_ns / 1000);
	gp_stream_sync(stream, 60 * SECOND);
	gp_stream_close(stream);
}

/* Launches and gates by chance */

static void launch(struct slot *s, hsa_signal_t free_signal)
{
	int has_signal = s->begun % 2 == 0;
	hsa_signal_t signal = s->signals[s->begun % DEPTH];

	if (has_signal) {
		s->wrong += hsa_signal_load_scacquire(signal) != 0; /* it ended again after it was seen */
		hsa_signal_store_screlease(signal, 1);
	}
	if (s->begun % 7 == 0) /* the program's own, which does not hold it up */
		hsa_work_wait_for(s->queue, free_signal, (hsa_signal_t){ 0 });
	hsa_work_launch(s->queue, 1, 20 * US, has_signal ? signal : (hsa_signal_t){ 0 },
			s->begun % 3 ? HSA_WORK_BARRIER : 0);
	s->begun++;
}

static void collect(struct slot *s)
{
	while (s->ended < s->begun) {
		hsa_signal_t signal = s->signals[s->ended % DEPTH];
		hsa_signal_value_t value = s->ended % 2 ? 0 : hsa_signal_load_scacquire(signal);

		if (value > 0)
			return;
		s->wrong += value < 0;
		if (s->ended++ % 2)
			continue;
		s->disorder += hsa_work_ended(signal) < s->last_end_ns;
		s->last_end_ns = hsa_work_ended(signal);
	}
}

static void prepare(struct slot *s)
{
	s->queue = hsa_work_queue(128); /* what is launched, three packets each, has room in it */
	s->stream = open_stream(s->queue, 0, GP_LEVEL_GATE, GP_STREAM_MANUAL);
	for (int i = 0; i < DEPTH; i++)
		s->signals[i] = hsa_work_signal(0);
}

static int settle(struct slot *s)
{
	hsa_signal_t last = hsa_work_signal(1);
	int r;

	gp_stream_resume(s->stream);
	hsa_work_launch(s->queue, 1, US, last, HSA_WORK_BARRIER);
	r = hsa_work_await(last);
	collect(s);
	for (int i = 0; i < DEPTH; i++)
		s->wrong += hsa_signal_load_scacquire(s->signals[i]) != 0;
	hsa_signal_destroy(last);
	return r;
}

/* To what it is not: counted is what the library says has become of it. */
static void toggle(struct slot *s)
{
	uint64_t was = query(s->stream).held;

	if (was)
		gp_stream_resume(s->stream);
	else
		gp_stream_suspend(s->stream);
	s->changes += query(s->stream).held != was;
}

static void change_by_chance(struct slot *slots, struct gp_random *random, int changes)
{
	hsa_signal_t open = hsa_work_signal(0);

	for (int i = 0; i < changes; i++) {
		struct slot *s = &slots[gp_random_between(random, 0, QUEUES - 1)];

		toggle(s);
		for (s = slots; s < slots + QUEUES; s++) {
			collect(s);
			if (s->begun - s->ended < DEPTH - 1)
				launch(s, open);
		}
		kfd_sleep(100 * US);
	}
	for (struct slot *s = slots; s < slots + QUEUES; s++)
		s->wrong += settle(s) != 0;
	hsa_signal_destroy(open);
}

static void gates_change_by_chance_and_nothing_is_lost(int changes)
{
	static struct slot slots[QUEUES];
	struct gp_random random;
	uint64_t begun = 0, ended = 0, counted = 0, changed = 0;

	gp_random_init(&random, 1, 0);
	for (int i = 0; i < QUEUES; i++)
		prepare(&slots[i]);
	change_by_chance(slots, &random, changes);
	for (struct slot *s = slots; s < slots + QUEUES; s++) {
		ok(s->wrong == 0, "every signal comes once (%llu wrong)", (unsigned long long)s->wrong);
		ok(s->disorder == 0, "in the order of the launches (%llu not)",
		   (unsigned long long)s->disorder);
		gp_stream_sync(s->stream, 60 * SECOND);
		begun += s->begun;
		ended += s->ended;
		counted += query(s->stream).ended - 1;
		changed += s->changes;
		gp_stream_close(s->stream);
		hsa_queue_destroy(s->queue);
		for (int i = 0; i < DEPTH; i++)
			hsa_signal_destroy(s->signals[i]);
	}
	ok(changed == (uint64_t)changes, "%d gates changed %llu times", QUEUES, (unsigned long long)changed);
	ok(begun == ended && begun == counted && begun >= changed,
	   "meanwhile %llu launches began, %llu ended, %llu were counted", (unsigned long long)begun,
	   (unsigned long long)ended, (unsigned long long)counted);
}

static void online_work_goes_first_in_one_process(void)
{
	hsa_queue_t *low = hsa_work_queue(64), *high = hsa_work_queue(64);
	struct gp_stream *offline = open_stream(low, 2, GP_LEVEL_GATE, 0),
			 *online = open_stream(high, 12, 0, 0);
	hsa_signal_t request = hsa_work_signal(1), behind = hsa_work_signal(1);

	for (int i = 0; i < 8; i++)
		hsa_work_launch(low, 64, 30 * MS, (hsa_signal_t){ 0 }, HSA_WORK_BARRIER);
	hsa_work_launch(low, 64, 30 * MS, behind, HSA_WORK_BARRIER);
	hsa_work_launch(high, 16, 200 * MS, request, HSA_WORK_BARRIER);
	ok(query(offline).held == 1, "an online launch holds the offline queue at once");
	ok(hsa_work_await(request) == 0 && hsa_signal_load_scacquire(behind) == 1,
	   "it ends while offline work is left");
	ok(hsa_work_await(behind) == 0, "which then goes on by itself");
	ok(hsa_work_began(behind) >= hsa_work_ended(request), "after the online work");
	gp_stream_close(online);
	gp_stream_close(offline);
	hsa_queue_destroy(low);
	hsa_queue_destroy(high);
	hsa_signal_destroy(request);
	hsa_signal_destroy(behind);
}

int main(int argc, char **argv)
{
	const char *tools[] = { LIBRARY, NULL, NULL };
	const struct gp_open_opts opts = { .size = sizeof(opts), .backend = "kfd" };
	hsa_queue_t *queue;

	if (argc > 2) {
		tools[!strcmp(argv[1], "last")] = argv[2];
		tools[strcmp(argv[1], "last") != 0] = LIBRARY;
	}
	if (!ok(hsa_work_start(tools) == 0, "the runtime starts with %s%s%s", tools[0], tools[1] ? " " : "",
		tools[1] ? tools[1] : ""))
		return tap_done();
	ok(gp_ctx_open(&opts, &ctx) == 0, "a context without gpreemptd");
	queue = hsa_work_queue(128);
	ok(queue != NULL, "the runtime makes a queue");
	a_stream_has_levels(queue);
	a_gate_holds_what_was_launched(queue);
	a_closed_gate_lets_the_running_kernel_end(queue);
	a_throttle_bounds_what_is_in_flight(queue);
	hsa_queue_destroy(queue);
	online_work_goes_first_in_one_process();
	gates_change_by_chance_and_nothing_is_lost(argc > 2 ? CHANGES_BESIDE : CHANGES);
	ok(kfd_stat(0, "bad_addresses") == 0, "no address was mixed up");
	ctx = gp_ctx_close(ctx);
	ok(hsa_shut_down() == HSA_STATUS_SUCCESS, "the runtime ends");
	return tap_done();
}
