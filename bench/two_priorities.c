// SPDX-License-Identifier: MIT
/*
 * two_priorities KERNEL_US TASKS [LEVEL]: two threads of one process launch the same kernels on ROCr, one
 * with a high and one with a low priority; the third example of the design notes.  A task is four launches
 * and their end. The high thread has the low stream suspended while its task lasts, at each level that there
 * is.  Start it with HSA_TOOLS_LIB=libgpreempt-level.so, and under `gpreempt run` with a gpreemptd for
 * interrupt.
 *
 * A line for each level: how long tasks of both took by the device's clock, over the same time, the ratio of
 * low to high, how many low kernels ended beside a high task, from when the suspend had returned, how long
 * that call took; and from a suspend until the last low kernel was off the device (at interrupt: how long
 * the call took), and how many kernels ended until then. Then what the throttle and the gate cost where
 * there is nobody to preempt.  LEVEL: its tasks alone.
 *
 * Between two tasks the high thread rests for 7/16 of a kernel on average: the ratio is about 1 where nobody
 * is preferred, and 10 where preemption is for nothing.
 */
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/kernel/hsa_work.h"
#include "../tests/kernel/kfd.h"

#define US 1000ull
#define TASK 4 /* launches */
#define WORKGROUPS 32
#define MOST_ENDS 65536
#define IN_FLIGHT 5 /* at the throttle: one runs, and four are behind it */
#define PLAIN GP_LEVEL_NONE

static const char *const names[] = { "none", "throttle", "gate", "interrupt" };
static uint64_t kernel_ns;
static hsa_queue_t *high_queue, *low_queue;

struct tasks {
	hsa_signal_t signals[TASK];
	uint64_t n, total_ns, end_ns;
};

static struct tasks high;
static volatile int is_over;

#define AHEAD 16 /* launches of the low thread */
static hsa_signal_t low_signals[AHEAD];
static uint64_t ends[MOST_ENDS], nends; /* of its kernels */

static void need(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "two_priorities: %s\n", what);
	exit(1);
}

static void run_task(struct tasks *t, hsa_queue_t *queue, uint64_t since_ns)
{
	for (int i = 0; i < TASK; i++) {
		hsa_signal_store_screlease(t->signals[i], 1);
		hsa_work_launch(queue, WORKGROUPS, kernel_ns, t->signals[i], HSA_WORK_BARRIER);
	}
	need(hsa_work_await(t->signals[TASK - 1]) == 0, "a task did not end in a minute");
	t->end_ns = hsa_work_ended(t->signals[TASK - 1]);
	t->total_ns += t->end_ns - since_ns;
	t->n++;
}

static void collect(hsa_signal_t signal)
{
	need(hsa_work_await(signal) == 0, "a low kernel did not end in a minute");
	if (nends < MOST_ENDS)
		ends[nends++] = hsa_work_ended(signal);
}

static void *run_low(void *unused)
{
	uint64_t begun = 0, ended = 0;

	(void)unused;
	while (!is_over) {
		hsa_signal_store_screlease(low_signals[begun % AHEAD], 1);
		hsa_work_launch(low_queue, WORKGROUPS, kernel_ns, low_signals[begun++ % AHEAD],
				HSA_WORK_BARRIER);
		if (begun - ended == AHEAD)
			collect(low_signals[ended++ % AHEAD]);
	}
	while (ended < begun)
		collect(low_signals[ended++ % AHEAD]);
	return NULL;
}

static void suspend(struct gp_stream *stream)
{
	if (stream)
		need(gp_stream_suspend(stream) == 0, "the low stream was not suspended");
}

static void resume(struct gp_stream *stream)
{
	if (stream)
		need(gp_stream_resume(stream) == 0, "the low stream was not resumed");
}

static struct gp_stream *open_low(struct gp_ctx *ctx, uint32_t level)
{
	const struct gp_stream_opts opts = {
		.size = sizeof(opts), .priority = 2, .level = level, .flags = GP_STREAM_MANUAL
	};
	struct gp_stream *stream = NULL;

	if (gp_stream_open(ctx, low_queue, &opts, &stream) < 0)
		printf("%s: not here: %s\n", names[level], gp_ctx_errmsg(ctx));
	if (stream && level == GP_LEVEL_THROTTLE)
		need(gp_stream_nlaunch(stream, IN_FLIGHT) == 0, "no bound");
	return stream;
}

static void start_low(pthread_t *ret_thread)
{
	nends = 0;
	is_over = 0;
	need(pthread_create(ret_thread, NULL, run_low, NULL) == 0, "no thread");
	while (nends < AHEAD)
		kfd_sleep(kernel_ns);
}

static void stop_low(pthread_t thread)
{
	is_over = 1;
	pthread_join(thread, NULL);
}

/* To another moment of a kernel each time. */
static void shift(int i)
{
	kfd_sleep(kernel_ns * ((uint64_t)i * 5 % 8) / 8);
}

static uint64_t count_ends(uint64_t after_ns, uint64_t before_ns)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < nends; i++)
		n += ends[i] > after_ns && ends[i] < before_ns;
	return n;
}

/* What four low kernels took, what was held included. Where none ended they took longer. */
static double low_task_ns(uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t n = count_ends(begin_ns, end_ns);

	return (double)(end_ns - begin_ns) / (double)(n ? n : 1) * TASK;
}

static void measure_tasks(struct gp_stream *stream, uint32_t level, int ntasks)
{
	uint64_t *at = calloc((size_t)ntasks * 2, sizeof(*at)), begin, since, beside = 0, calls = 0;
	double high_ns, low_ns;
	pthread_t thread;

	high.n = high.total_ns = 0;
	start_low(&thread);
	begin = kfd_now();
	for (int i = 0; i < ntasks; i++) {
		shift(i);
		since = kfd_now();
		suspend(stream);
		at[2 * i] = kfd_now();
		calls += at[2 * i] - since;
		run_task(&high, high_queue, since);
		at[2 * i + 1] = high.end_ns;
		resume(stream);
	}
	stop_low(thread);
	for (int i = 0; i < ntasks; i++)
		beside += count_ends(at[2 * i], at[2 * i + 1]);
	free(at);
	high_ns = (double)high.total_ns / (double)high.n;
	low_ns = low_task_ns(begin, high.end_ns);
	printf("level %s high_us %.0f low_us %.0f ratio %.2f beside %.2f call_us %.0f\n", names[level],
	       high_ns / US, low_ns / US, low_ns / high_ns, (double)beside / ntasks,
	       (double)calls / ntasks / US);
}

static uint64_t last_end(uint64_t after_ns, uint64_t before_ns)
{
	uint64_t last = after_ns;

	for (uint64_t i = 0; i < nends; i++)
		if (ends[i] > last && ends[i] < before_ns)
			last = ends[i];
	return last;
}

/* From the call until the last low kernel is off the device, with nothing else on it; at interrupt, until it
 * returns. */
static void measure_off(struct gp_stream *stream, uint32_t level, int n)
{
	uint64_t *at = calloc((size_t)n * 2, sizeof(*at)), off = 0, ended = 0;
	pthread_t thread;

	start_low(&thread);
	for (int i = 0; i < n; i++) {
		kfd_sleep(kernel_ns * IN_FLIGHT); /* as many are in flight again as may be */
		shift(i);
		at[2 * i] = kfd_now();
		suspend(stream);
		if (level == GP_LEVEL_INTERRUPT)
			off += kfd_now() - at[2 * i];
		kfd_sleep(kernel_ns * (IN_FLIGHT + 2));
		at[2 * i + 1] = kfd_now();
		resume(stream);
	}
	stop_low(thread);
	for (int i = 0; i < n; i++) {
		if (level != GP_LEVEL_INTERRUPT)
			off += last_end(at[2 * i], at[2 * i + 1]) - at[2 * i];
		ended += count_ends(at[2 * i], at[2 * i + 1]);
	}
	printf("level %s off_us %" PRIu64 " ended %.2f\n", names[level], (uint64_t)(off / (uint64_t)n / US),
	       (double)ended / n);
	free(at);
}

static void measure(struct gp_ctx *ctx, uint32_t level, int ntasks, int is_all)
{
	struct gp_stream *stream = level == PLAIN ? NULL : open_low(ctx, level);

	if (level != PLAIN && !stream)
		return;
	measure_tasks(stream, level, ntasks);
	if (stream && is_all)
		measure_off(stream, level, ntasks);
	gp_stream_close(stream);
}

/* A chain of launches with nobody beside it, by the device's clock. */
static uint64_t alone(struct gp_ctx *ctx, uint32_t level, int n)
{
	struct gp_stream *stream = level == PLAIN ? NULL : open_low(ctx, level);
	hsa_signal_t first = hsa_work_signal(1), last = hsa_work_signal(1);
	uint64_t took;

	for (int i = 0; i < n; i++)
		hsa_work_launch(low_queue, WORKGROUPS, kernel_ns,
				i == 0 ? first : (i == n - 1 ? last : (hsa_signal_t){ 0 }), HSA_WORK_BARRIER);
	need(hsa_work_await(last) == 0, "a chain did not end in a minute");
	took = hsa_work_ended(last) - hsa_work_began(first);
	gp_stream_close(stream);
	hsa_signal_destroy(first);
	hsa_signal_destroy(last);
	return took;
}

/* The least of a few, by turns: what else a machine does only makes it longer. */
static void measure_overhead(struct gp_ctx *ctx, uint32_t level, int n)
{
	uint64_t plain = UINT64_MAX, ours = UINT64_MAX, took;

	for (int i = 0; i < 5; i++) {
		took = alone(ctx, PLAIN, n);
		plain = took < plain ? took : plain;
		took = alone(ctx, level, n);
		ours = took < ours ? took : ours;
	}
	printf("alone %s ratio %.4f\n", names[level], (double)ours / (double)plain);
}

int main(int argc, char **argv)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .backend = "kfd" };
	struct gp_ctx *ctx = NULL;

	need(argc == 3 || argc == 4, "usage: two_priorities KERNEL_US TASKS [LEVEL]");
	kernel_ns = strtoull(argv[1], NULL, 10) * US;
	need(hsa_work_start(NULL) == 0, "ROCr finds no GPU");
	need(gp_ctx_open(&opts, &ctx) == 0, "no context");
	high_queue = hsa_work_queue(64);
	low_queue = hsa_work_queue(64);
	need(high_queue && low_queue, "no queues");
	for (int i = 0; i < TASK; i++)
		high.signals[i] = hsa_work_signal(0);
	for (int i = 0; i < AHEAD; i++)
		low_signals[i] = hsa_work_signal(0);
	for (uint32_t level = PLAIN; level <= GP_LEVEL_INTERRUPT; level++)
		if (argc == 3 || !strcmp(argv[3], names[level]))
			measure(ctx, level, atoi(argv[2]), argc == 3);
	if (argc == 3) {
		measure_overhead(ctx, GP_LEVEL_THROTTLE, 16);
		measure_overhead(ctx, GP_LEVEL_GATE, 16);
	}
	gp_ctx_close(ctx);
	return 0;
}
