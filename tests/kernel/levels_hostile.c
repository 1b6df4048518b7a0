// SPDX-License-Identifier: MIT
/* bed: timeout=180 memory=2G param=gfx=gfx90a param=cus=4 */
/*
 * Levels in ROCr's door under a program that is not careful: work that waits for held work, a child
 * after fork(), queues and a runtime that end while something is held. The library is named twice.
 */
#include <gpreempt/gpreempt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hsa_work.h"
#include "kfd.h"
#include "tap.h"

#define US 1000ull
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define LIBRARY "libgpreempt-level.so"
#define NONE \
	(hsa_signal_t) \
	{ \
		0 \
	}

static struct gp_stream *open_stream(hsa_queue_t *queue, uint32_t priority, uint32_t level, uint64_t flags)
{
	const struct gp_stream_opts opts = {
		.size = sizeof(opts), .priority = priority, .level = level, .flags = flags
	};
	struct gp_stream *stream = NULL;

	return gp_stream_open(NULL, queue, &opts, &stream) == 0 ? stream : NULL;
}

static struct gp_stream_info query(struct gp_stream *stream)
{
	struct gp_stream_info info = { .size = sizeof(info) };

	gp_stream_query(stream, &info);
	return info;
}

/* The online queue waits, by a packet of its own, for what an offline launch sets. */
static void online_work_that_waits_for_offline_work_gets_it(void)
{
	hsa_queue_t *low = hsa_work_queue(64), *high = hsa_work_queue(64);
	struct gp_stream *offline = open_stream(low, 0, GP_LEVEL_GATE, 0),
			 *online = open_stream(high, 12, 0, 0);
	hsa_signal_t needed = hsa_work_signal(1), request = hsa_work_signal(1), first = hsa_work_signal(1);
	uint64_t start = kfd_gpu_now(0);

	hsa_work_launch(high, 1, 50 * MS, first, HSA_WORK_BARRIER);
	hsa_work_wait_for(high, needed, NONE);
	hsa_work_launch(high, 1, MS, request, HSA_WORK_BARRIER);
	ok(query(offline).held == 1, "an offline queue is held for online work");
	hsa_work_launch(low, 1, MS, needed, HSA_WORK_BARRIER);
	ok(hsa_work_await(request) == 0, "which waits for a launch there, and gets it");
	note("after %llu ms", (unsigned long long)((kfd_gpu_now(0) - start) / MS));
	ok(kfd_gpu_now(0) - start < 10 * SECOND, "in the first slices");
	gp_stream_close(online);
	gp_stream_close(offline);
	hsa_queue_destroy(low);
	hsa_queue_destroy(high);
	hsa_signal_destroy(needed);
	hsa_signal_destroy(request);
	hsa_signal_destroy(first);
}

struct launcher {
	hsa_queue_t *queue;
	volatile int done;
};

static void *launch_one(void *arg)
{
	struct launcher *l = arg;

	hsa_work_launch(l->queue, 1, 50 * US, NONE, HSA_WORK_BARRIER);
	l->done = 1;
	return NULL;
}

static void a_childs_close_does_not_open_its_parents_gate(void)
{
	hsa_queue_t *queue = hsa_work_queue(64);
	struct gp_stream *stream = open_stream(queue, 0, GP_LEVEL_GATE, GP_STREAM_MANUAL);
	hsa_signal_t signal = hsa_work_signal(1);
	int status = -1;
	pid_t child;

	gp_stream_suspend(stream);
	hsa_work_launch(queue, 1, MS, signal, HSA_WORK_BARRIER);
	child = fork();
	if (!child) {
		alarm(120);
		gp_stream_close(stream);
		_exit(0);
	}
	ok(waitpid(child, &status, 0) == child && status == 0, "a child closes its parent's stream");
	kfd_sleep(200 * MS);
	ok(hsa_signal_load_scacquire(signal) == 1 && query(stream).held, "the parent's is still held");
	gp_stream_close(stream);
	ok(hsa_work_await(signal) == 0, "until the parent closes it");
	hsa_queue_destroy(queue);
	hsa_signal_destroy(signal);
}

static void a_held_queue_with_work_can_be_destroyed(void)
{
	hsa_queue_t *queue = hsa_work_queue(64);
	struct gp_stream *stream = open_stream(queue, 0, GP_LEVEL_GATE, GP_STREAM_MANUAL);

	gp_stream_suspend(stream);
	for (int i = 0; i < 20; i++)
		hsa_work_launch(queue, 1, MS, NONE, HSA_WORK_BARRIER);
	ok(hsa_queue_destroy(queue) == HSA_STATUS_SUCCESS, "a held queue with work is destroyed");
	ok(gp_stream_resume(stream) < 0, "its stream says that it is gone");
	gp_stream_close(stream);
}

/* More than a ring holds */

#define RING 64
#define MANY (4 * RING)

struct crowd {
	hsa_queue_t *queue;
	hsa_signal_t last;
};

static void *launch_many(void *arg)
{
	struct crowd *c = arg;

	for (int i = 1; i < MANY; i++)
		hsa_work_launch(c->queue, 1, 50 * US, NONE, HSA_WORK_BARRIER);
	hsa_work_launch(c->queue, 1, 50 * US, c->last, HSA_WORK_BARRIER);
	return NULL;
}

/* The queue stands at a packet of the program's own, which goes on launching from a thread that waits for
 * places. */
static void a_program_goes_on_launching_while_its_ring_waits(const char *what, uint32_t class_priority)
{
	struct crowd c = { .queue = hsa_work_queue(RING), .last = hsa_work_signal(1) };
	struct gp_stream *stream =
		class_priority ? open_stream(c.queue, class_priority, GP_LEVEL_GATE, 0) : NULL;
	hsa_signal_t stop = hsa_work_signal(1);
	pthread_t thread;

	hsa_work_wait_for(c.queue, stop, NONE);
	pthread_create(&thread, NULL, launch_many, &c);
	kfd_sleep(300 * MS);
	ok(hsa_signal_load_scacquire(c.last) == 1,
	   "%s stands while its program launches four times what it holds", what);
	hsa_signal_store_screlease(stop, 0);
	pthread_join(thread, NULL);
	ok(hsa_work_await(c.last) == 0, "and all of it ends");
	gp_stream_close(stream);
	hsa_queue_destroy(c.queue);
	hsa_signal_destroy(stop);
	hsa_signal_destroy(c.last);
}

static void a_program_goes_on_launching_while_its_queue_is_held(void)
{
	struct crowd c = { .queue = hsa_work_queue(RING), .last = hsa_work_signal(1) };
	struct gp_stream *stream = open_stream(c.queue, 0, GP_LEVEL_GATE, GP_STREAM_MANUAL);
	struct gp_stream_info info;
	pthread_t thread;

	gp_stream_suspend(stream);
	pthread_create(&thread, NULL, launch_many, &c);
	kfd_sleep(1500 * MS); /* longer than what counts as stuck */
	ok(query(stream).ended == 0,
	   "a held queue stands while its program launches four times what it holds");
	gp_stream_resume(stream);
	pthread_join(thread, NULL);
	ok(hsa_work_await(c.last) == 0, "and all of it ends");
	gp_stream_sync(stream, 60 * SECOND);
	info = query(stream);
	ok(info.ended == info.begun && info.ended > RING / 4, "each that was counted too: %llu",
	   (unsigned long long)info.ended); /* not all, where nothing ended for a second */
	gp_stream_close(stream);
	hsa_queue_destroy(c.queue);
	hsa_signal_destroy(c.last);
}

/* One thread, which never waits for a place: it fills what it finds, and lets its queue go then. */
static void a_program_that_fills_its_ring_lets_it_go_itself(uint32_t class_priority, int suspends)
{
	hsa_queue_t *queue = hsa_work_queue(RING);
	struct gp_stream *stream =
		class_priority ? open_stream(queue, class_priority, GP_LEVEL_GATE, 0) : NULL;
	hsa_signal_t stop = hsa_work_signal(1), last = hsa_work_signal(1);
	int n = 0;

	if (suspends)
		gp_stream_suspend(stream);
	else
		hsa_work_wait_for(queue, stop, NONE);
	while (n < MANY &&
	       hsa_queue_load_write_index_relaxed(queue) - hsa_queue_load_read_index_scacquire(queue) <
		       RING) {
		hsa_work_launch(queue, 1, 50 * US, NONE, HSA_WORK_BARRIER);
		n++;
	}
	ok(n >= RING - 1 && n < MANY, "a thread fills its %s ring behind what waits for itself: %d",
	   suspends ? "suspended"
	   : stream ? "offline"
		    : "plain",
	   n);
	hsa_signal_store_screlease(stop, 0);
	if (suspends)
		gp_stream_resume(stream);
	hsa_work_launch(queue, 1, 50 * US, last, HSA_WORK_BARRIER);
	ok(hsa_work_await(last) == 0, "and when it lets it go all ends");
	gp_stream_close(stream);
	hsa_queue_destroy(queue);
	hsa_signal_destroy(stop);
	hsa_signal_destroy(last);
}

/* The last: a thread of the program waits at the throttle when the runtime ends, as at exit(). */
static void the_runtime_ends_below_a_thread_that_waits(void)
{
	hsa_queue_t *queue = hsa_work_queue(64);
	struct gp_stream *stream = open_stream(queue, 0, GP_LEVEL_THROTTLE, GP_STREAM_MANUAL);
	struct launcher l = { .queue = queue };
	pthread_t thread;

	gp_stream_suspend(stream);
	pthread_create(&thread, NULL, launch_one, &l);
	kfd_sleep(300 * MS);
	ok(!l.done, "a thread waits at the throttle");
	ok(hsa_shut_down() == HSA_STATUS_SUCCESS, "the runtime ends");
	ok(gp_stream_resume(stream) < 0, "the stream is gone");
	gp_stream_close(stream);
}

int main(void)
{
	const char *tools[] = { LIBRARY, LIBRARY, NULL };

	if (!ok(hsa_work_start(tools) == 0, "the runtime starts with the library named twice"))
		return tap_done();
	online_work_that_waits_for_offline_work_gets_it();
	a_childs_close_does_not_open_its_parents_gate();
	a_held_queue_with_work_can_be_destroyed();
	a_program_goes_on_launching_while_its_ring_waits("a queue of no class", 0);
	a_program_goes_on_launching_while_its_ring_waits("an offline queue", 2);
	a_program_goes_on_launching_while_its_queue_is_held();
	a_program_that_fills_its_ring_lets_it_go_itself(0, 0);
	a_program_that_fills_its_ring_lets_it_go_itself(2, 0);
	a_program_that_fills_its_ring_lets_it_go_itself(2, 1);
	ok(kfd_stat(0, "bad_addresses") == 0, "no address was mixed up");
	the_runtime_ends_below_a_thread_that_waits();
	return tap_done();
}
