// SPDX-License-Identifier: MIT
/*
 * two_priorities WHAT ...: two priorities on one CUDA GPU, the third example of the design notes; a line of
 * JSON for each thing found.
 *
 * levels KERNEL_US TIMES: two threads of this process launch the same kernels; while the high one has a task,
 * four kernels, the low stream is suspended: not at all, at the throttle, at the gate.  How long tasks of
 * both take, over the same time; how long a kernel takes where nobody is held; and from a suspend until the
 * last low kernel is off the GPU.
 *
 * Between two tasks the high thread rests for 7/16 of a kernel on average.  So it has work nine tenths of the
 * time, and where preemption is for nothing a low task takes 4.44 / 0.44 = 10 times as long as a high one;
 * where there is none, about as long.
 *
 * alone KERNEL_US N: what throttle and gate cost a chain of N kernels with nobody to preempt, by turns.
 *
 * streams N MORE: one of N streams is suspended, at the gate if it has that: whether the others go on, MORE
 * of a higher priority too, and it later.  CUDA_DEVICE_MAX_CONNECTIONS is how many of the hardware's queues
 * they share.
 *
 * deep NODES: how many launches of a stream wait at its gate before the driver has no place for more, and how
 * long a launch of another stream takes meanwhile.  NODES: each is a graph of so many kernels; 0: a kernel.
 *
 * low KERNEL_US [PER_NS]: the low thread as a process of its own, until its standard input ends.  "ready",
 * and how many turns of its loop a kernel does in a nanosecond; for each line that it reads, what it did
 * since the last.
 *
 * high KERNEL_US TIMES PID PER_NS: and the high one, with the other's turns, since it could not count its own
 * beside it.  "ready"; with the first line that it reads it begins.  While a task lasts PID's queues are
 * suspended; 0: there is a hint.
 *
 * The first four need CUDA_INJECTION64_PATH=libgpreempt-level.so, the last two gpreemptd and the agent.  The
 * streams of a process share a channel group, which is stopped as a whole: that level, and yield, are shown
 * by two processes.
 */
#include <cuda.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define TASK 4      /* launches */
#define IN_FLIGHT 4 /* at the throttle */
#define AHEAD 48    /* launches of the low thread */
#define UNHELD 48   /* launches of a chain */
#define TRIAL UINT64_C(10000000)
#define MOST_STREAMS 64
#define ABOVE 8 /* streams with a higher priority beside them, at the most */
#define EACH 20 /* launches of each */
#define MOST_DEEP 256
#define PATIENCE (3000 * MS)
#define MOST_QUEUES 256
#define PLAIN GP_LEVEL_NONE

/* A kernel counts what it does, not the time. Its last block adds 1 to a word of the host's. state: a counter
 * of blocks, then a number for each thread. */
static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry work(.param .u64 n, .param .u64 count, .param .u64 state)\n"
	"{\n"
	"  .reg .u64 %rd<8>;\n  .reg .u32 %r<8>;\n  .reg .pred %p<3>;\n"
	"  ld.param.u64 %rd1, [n];\n  ld.param.u64 %rd2, [count];\n  ld.param.u64 %rd3, [state];\n"
	"  cvta.to.global.u64 %rd2, %rd2;\n  cvta.to.global.u64 %rd3, %rd3;\n"
	"  mov.u32 %r1, %tid.x;\n  mov.u32 %r2, %ctaid.x;\n  mov.u32 %r3, %ntid.x;\n"
	"  mad.lo.u32 %r4, %r2, %r3, %r1;\n  cvt.u64.u32 %rd4, %r4;\n  mov.u64 %rd5, %rd4;\n"
	"  setp.eq.u64 %p1, %rd1, 0;\n  @%p1 bra DONE;\n"
	"LOOP:\n"
	"  mad.lo.u64 %rd5, %rd5, 6364136223846793005, %rd4;\n  sub.u64 %rd1, %rd1, 1;\n"
	"  setp.ne.u64 %p1, %rd1, 0;\n  @%p1 bra LOOP;\n"
	"DONE:\n"
	"  mul.wide.u32 %rd6, %r4, 8;\n  add.u64 %rd6, %rd6, %rd3;\n  st.global.u64 [%rd6+8], %rd5;\n"
	"  bar.sync 0;\n  setp.ne.u32 %p1, %r1, 0;\n  @%p1 bra OUT;\n"
	"  mov.u32 %r5, %nctaid.x;\n  sub.u32 %r5, %r5, 1;\n  atom.global.inc.u32 %r6, [%rd3], %r5;\n"
	"  setp.ne.u32 %p1, %r6, %r5;\n  @%p1 bra OUT;\n  red.sys.global.add.u32 [%rd2], 1;\n"
	"OUT:\n  ret;\n}\n";

static const char *const names[] = { "none", "throttle", "gate", "interrupt" };

/* A stream, and what its kernels need. */
struct line {
	CUstream stream;
	volatile uint32_t *count; /* kernels that have ended */
	CUdeviceptr device_count, state;
	uint64_t begun;
};

static CUcontext context;
static CUfunction work;
static unsigned int blocks;
static uint64_t kernel_ns;
static double per_ns; /* turns of the loop; 0: to be found out */
static struct line high, low;
static volatile int is_over;

static void need(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "two_priorities: %s\n", what);
	exit(1);
}

static void check(CUresult r, const char *what)
{
	if (r == CUDA_SUCCESS)
		return;
	fprintf(stderr, "two_priorities: %s: error %d\n", what, (int)r);
	exit(1);
}

#define CHECK(call) check(call, #call)

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static void rest(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / (1000 * MS)),
				    .tv_nsec = (long)(ns % (1000 * MS)) };

	nanosleep(&t, NULL);
}

/* The GPU */

static void make_line(struct line *l, int priority)
{
	void *at;

	memset(l, 0, sizeof(*l));
	CHECK(cuStreamCreateWithPriority(&l->stream, CU_STREAM_NON_BLOCKING, priority));
	CHECK(cuMemHostAlloc(&at, 64, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(at, 0, 64);
	l->count = at;
	CHECK(cuMemHostGetDevicePointer(&l->device_count, at, 0));
	CHECK(cuMemAlloc(&l->state, ((size_t)blocks * 256 + 1) * 8));
	CHECK(cuMemsetD8(l->state, 0, 8));
}

static void launch(struct line *l, uint64_t ns)
{
	uint64_t turns = (uint64_t)((double)ns * per_ns);
	void *args[] = { &turns, &l->device_count, &l->state };

	CHECK(cuLaunchKernel(work, blocks, 1, 1, 256, 1, 1, 0, l->stream, args, NULL));
	l->begun++;
}

static uint64_t chain(struct line *l, uint64_t ns, int n)
{
	uint64_t since = now();

	for (int i = 0; i < n; i++)
		launch(l, ns);
	CHECK(cuStreamSynchronize(l->stream));
	return now() - since;
}

/* The last one counts: clocks are up by then. */
static void calibrate(void)
{
	per_ns = 1;
	for (int i = 0; i < 3; i++)
		per_ns *= (double)TRIAL / (double)chain(&high, TRIAL, 1);
}

static void start(void)
{
	CUdevice device;
	CUmodule module;
	int processors = 0;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	blocks = (unsigned int)processors * 8; /* all of it, once */
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&work, module, "work"));
	make_line(&high, 0);
	make_line(&low, 0);
	if (per_ns <= 0)
		calibrate();
	for (int i = 0; i < 5; i++) { /* the first launches take longer than those that count */
		chain(&high, 100 * US, 20);
		rest(MS);
	}
}

/* Two threads */

static void *run_low(void *unused)
{
	(void)unused;
	CHECK(cuCtxSetCurrent(context));
	while (!is_over) {
		while (!is_over && (uint32_t)low.begun - *low.count >= AHEAD)
			rest(50 * US);
		launch(&low, kernel_ns);
	}
	CHECK(cuStreamSynchronize(low.stream));
	return NULL;
}

static void start_low(pthread_t *ret)
{
	uint32_t before = *low.count;

	is_over = 0;
	need(pthread_create(ret, NULL, run_low, NULL) == 0, "no thread");
	while (*low.count < before + 4)
		rest(kernel_ns);
}

static void stop_low(pthread_t thread)
{
	is_over = 1;
	pthread_join(thread, NULL);
}

static struct gp_stream *open_stream(const struct line *l, uint32_t level)
{
	const struct gp_stream_opts opts = {
		.size = sizeof(opts), .priority = 2, .level = level, .flags = GP_STREAM_MANUAL
	};
	struct gp_stream *stream = NULL;
	int r;

	if (level == PLAIN)
		return NULL;
	r = gp_stream_open(NULL, l->stream, &opts, &stream);
	if (r < 0) {
		printf("{\"what\": \"missing\", \"level\": \"%s\", \"error\": %d}\n", names[level], r);
		return NULL;
	}
	if (level == GP_LEVEL_THROTTLE)
		need(gp_stream_nlaunch(stream, IN_FLIGHT) == 0, "no bound");
	return stream;
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

/* To another moment of a kernel each time. */
static void shift(int i)
{
	rest(kernel_ns * ((uint64_t)i * 5 % 8) / 8);
}

/* Of a low task, what was held included. Where no kernel ended it took longer than this. */
static double task_us(uint64_t ns, uint32_t kernels)
{
	return (double)ns / (kernels ? kernels : 1) * TASK / US;
}

static void measure_tasks(struct gp_stream *stream, uint32_t level, int times)
{
	uint64_t since, begin, took = 0;
	uint32_t first;
	pthread_t thread;
	double high_us, low_us;

	start_low(&thread);
	first = *low.count;
	begin = now();
	for (int i = 0; i < times; i++) {
		shift(i);
		since = now();
		suspend(stream);
		(void)chain(&high, kernel_ns, TASK);
		took += now() - since;
		resume(stream);
	}
	low_us = task_us(now() - begin, *low.count - first);
	high_us = (double)took / times / US;
	stop_low(thread);
	printf("{\"what\": \"tasks\", \"level\": \"%s\", \"kernel_us\": %" PRIu64
	       ", \"high_us\": %.1f, \"low_us\": %.1f, \"ratio\": %.2f}\n",
	       names[level], kernel_ns / US, high_us, low_us, low_us / high_us);
}

/* From the call until the last low kernel has ended: the host's word is looked at all the time. most: how
 * many did at the most, in any of these calls. */
static uint64_t off_ns(struct gp_stream *stream, uint32_t *most)
{
	uint64_t since = now(), last = since, t;
	uint32_t first = *low.count, seen = first, count;

	suspend(stream);
	for (t = since; t < since + kernel_ns * (IN_FLIGHT + 2) + 2 * MS; t = now()) {
		count = *low.count;
		if (count != seen)
			last = t;
		seen = count;
	}
	if (seen - first > *most)
		*most = seen - first;
	resume(stream);
	return last - since;
}

/* unheld_us: what a kernel takes now, in a chain of them without gate or count. */
static void measure_off(struct gp_stream *stream, uint32_t level, int times, double unheld_us)
{
	uint32_t most = 0;
	pthread_t thread;

	start_low(&thread);
	printf("{\"what\": \"off\", \"level\": \"%s\", \"kernel_us\": %" PRIu64
	       ", \"unheld_us\": %.1f, \"in_flight\": %d, \"us\": [",
	       names[level], kernel_ns / US, unheld_us, level == GP_LEVEL_THROTTLE ? IN_FLIGHT : 1);
	for (int i = 0; i < times; i++) {
		rest(kernel_ns * IN_FLIGHT); /* as many are in flight again as may be */
		shift(i);
		printf("%s%.1f", i ? ", " : "", (double)off_ns(stream, &most) / US);
	}
	printf("], \"most_ended\": %" PRIu32 "}\n", most);
	stop_low(thread);
}

static void measure_levels(int times)
{
	struct gp_stream *stream;
	double unheld_us;

	for (uint32_t level = PLAIN; level <= GP_LEVEL_GATE; level++) {
		unheld_us = (double)chain(&high, kernel_ns, UNHELD) / UNHELD / US;
		stream = open_stream(&low, level);
		if (level != PLAIN && !stream)
			continue;
		measure_tasks(stream, level, times < 50 ? times : 50);
		if (stream)
			measure_off(stream, level, times, unheld_us);
		gp_stream_close(stream);
		fflush(stdout);
	}
}

static void measure_alone(uint32_t level, int n)
{
	uint64_t plain, ours;
	struct gp_stream *stream;

	for (int i = 0; i < 5; i++) {
		plain = chain(&low, kernel_ns, n);
		stream = open_stream(&low, level);
		if (!stream)
			return;
		ours = chain(&low, kernel_ns, n);
		gp_stream_close(stream);
		printf("{\"what\": \"alone\", \"level\": \"%s\", \"kernel_us\": %" PRIu64
		       ", \"plain_us\": %.1f, \"ours_us\": %.1f}\n",
		       names[level], kernel_ns / US, (double)plain / n / US, (double)ours / n / US);
	}
	fflush(stdout);
}

/* Many streams, and deep ones */

/* What is held may keep the one who would let it go, in the driver: this is to be found out. */
static void *resume_later(void *stream)
{
	uint64_t end = now() + 2 * PATIENCE; /* later than anybody who waits himself */

	while (!is_over && now() < end)
		rest(MS);
	resume(stream);
	return NULL;
}

static void hold_for_long(struct gp_stream *stream, pthread_t *ret)
{
	is_over = 0;
	suspend(stream);
	need(pthread_create(ret, NULL, resume_later, stream) == 0, "no thread");
}

static void let_go(pthread_t thread)
{
	is_over = 1;
	pthread_join(thread, NULL);
}

static int count_done(const struct line *lines, int n, uint32_t each)
{
	int done = 0;

	for (int i = 0; i < n; i++)
		done += *lines[i].count == each;
	return done;
}

static int await_done(const struct line *lines, int n, uint32_t each)
{
	uint64_t end = now() + PATIENCE;

	while (count_done(lines, n, each) < n && now() < end)
		rest(MS);
	return count_done(lines, n, each);
}

static void launch_all(struct line *lines, int n, int each)
{
	for (int k = 0; k < each; k++)
		for (int i = 0; i < n; i++)
			launch(&lines[i], 100 * US);
}

static void *launch_held(void *line)
{
	CHECK(cuCtxSetCurrent(context));
	launch_all(line, 1, EACH);
	return NULL;
}

/* The highest of the two that it has, when all are in use. */
static struct gp_stream *open_highest(struct line *l, uint32_t *ret_level)
{
	struct gp_stream_info info = { .size = sizeof(info) };
	struct gp_stream *stream = open_stream(l, GP_LEVEL_THROTTLE);

	if (!stream || gp_stream_query(stream, &info) < 0)
		return gp_stream_close(stream);
	*ret_level = info.levels & 1u << GP_LEVEL_GATE ? GP_LEVEL_GATE : GP_LEVEL_THROTTLE;
	need(gp_stream_set_level(stream, *ret_level) == 0, "a level that is there is refused");
	return stream;
}

/* The first one is held, the last have a higher priority. */
static void measure_streams(int n, int more)
{
	static struct line lines[MOST_STREAMS + ABOVE];
	const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	int least = 0, most = 0, done, above;
	pthread_t thread, launches;
	struct gp_stream *stream;
	uint32_t held, level = GP_LEVEL_NONE;

	CHECK(cuCtxGetStreamPriorityRange(&least, &most));
	for (int i = 0; i < n + more; i++)
		make_line(&lines[i], i < n ? 0 : most);
	launch_all(lines, n + more, 1);
	need(await_done(lines, n + more, 1) == n + more,
	     "a kernel of a stream that nobody holds does not end");
	stream = open_highest(&lines[0], &level);
	if (!stream)
		return;
	hold_for_long(stream, &thread);
	need(pthread_create(&launches, NULL, launch_held, &lines[0]) == 0, "no thread");
	rest(20 * MS); /* so that it has launched what it may */
	launch_all(lines + 1, n - 1 + more, EACH);
	done = await_done(lines + 1, n - 1 + more, 1 + EACH);
	above = count_done(lines + n, more, 1 + EACH);
	held = *lines[0].count - 1;
	let_go(thread);
	pthread_join(launches, NULL);
	(void)await_done(lines, 1, 1 + EACH);
	printf("{\"what\": \"streams\", \"level\": \"%s\", \"connections\": \"%s\", \"streams\": %d, "
	       "\"others_went_on\": %d, \"others\": %d, \"above_went_on\": %d, \"above\": %d, \"held_ran\": %" PRIu32
	       ", \"ran_later\": %" PRIu32 "}\n",
	       names[level], connections ? connections : "", n, done - above, n - 1, above, more, held,
	       (uint32_t)*lines[0].count - 1);
	gp_stream_close(stream);
}

static CUgraphExec graph; /* NULL: kernels */
static volatile uint32_t went_in;

static void make_graph(int nodes)
{
	CUgraph captured;

	CHECK(cuStreamBeginCapture(low.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	for (int i = 0; i < nodes; i++)
		launch(&low, 10 * US);
	CHECK(cuStreamEndCapture(low.stream, &captured));
	CHECK(cuGraphInstantiate(&graph, captured, 0));
	CHECK(cuGraphLaunch(graph, low.stream));
	CHECK(cuStreamSynchronize(low.stream));
}

static void *fill(void *unused)
{
	(void)unused;
	CHECK(cuCtxSetCurrent(context));
	for (int i = 0; i < MOST_DEEP; i++) {
		if (graph)
			CHECK(cuGraphLaunch(graph, low.stream));
		else
			launch(&low, 10 * US);
		went_in++;
	}
	CHECK(cuStreamSynchronize(low.stream));
	return NULL;
}

static void measure_deep(int nodes)
{
	struct gp_stream *stream = open_stream(&low, GP_LEVEL_GATE);
	uint64_t worst = 0, took, stopped;
	pthread_t thread, filler;
	uint32_t deep;

	if (!stream)
		return;
	if (nodes)
		make_graph(nodes);
	hold_for_long(stream, &thread);
	need(pthread_create(&filler, NULL, fill, NULL) == 0, "no thread");
	do {
		stopped = went_in;
		rest(500 * MS);
	} while (went_in != stopped);
	for (int i = 0; i < 20; i++) {
		took = chain(&high, 10 * US, 1);
		worst = took > worst ? took : worst;
	}
	deep = (uint32_t)stopped;
	let_go(thread);
	pthread_join(filler, NULL);
	printf("{\"what\": \"deep\", \"nodes\": %d, \"went_in\": %" PRIu32 ", \"neighbour_us\": %.1f}\n",
	       nodes, deep, (double)worst / US);
	gp_stream_close(stream);
}

/* Two processes */

static int find_queues(struct gp_ctx *ctx, uint32_t pid, uint64_t *queues)
{
	static struct gp_queue_info infos[MOST_QUEUES] = { { .size = sizeof(infos[0]) } };
	int n = gp_queue_list(ctx, infos, MOST_QUEUES), found = 0;

	for (int i = 0; i < n && i < MOST_QUEUES; i++)
		if (infos[i].pid == pid)
			queues[found++] = infos[i].queue;
	return found;
}

static void await_line(void)
{
	char line[64];

	need(fgets(line, sizeof(line), stdin) != NULL, "no line came");
}

static void run_high(int times, uint32_t pid)
{
	static uint64_t queues[MOST_QUEUES];
	struct gp_ctx *ctx = NULL;
	uint64_t since, took = 0;
	int n = 0;

	need(gp_ctx_open(NULL, &ctx) == 0, "no gpreemptd");
	if (pid)
		n = find_queues(ctx, pid, queues);
	need(!pid || n > 0, "that process has no queue");
	printf("ready\n");
	fflush(stdout);
	await_line();
	for (int i = 0; i < times; i++) {
		shift(i);
		since = now();
		need((pid ? gp_queue_suspend(ctx, queues, (size_t)n, NULL, NULL)
			  : gp_hint_begin(ctx, NULL)) == 0,
		     gp_ctx_errmsg(ctx));
		(void)chain(&high, kernel_ns, TASK);
		took += now() - since;
		need((pid ? gp_queue_resume(ctx, queues, (size_t)n, NULL) : gp_hint_end(ctx, NULL)) == 0,
		     gp_ctx_errmsg(ctx));
	}
	printf("{\"what\": \"high\", \"kernel_us\": %" PRIu64 ", \"high_us\": %.1f}\n", kernel_ns / US,
	       (double)took / times / US);
	gp_ctx_close(ctx);
}

static void run_low_alone(void)
{
	uint64_t since = now(), at;
	uint32_t first = 0, count;
	pthread_t thread;
	char line[64];

	start_low(&thread);
	printf("ready %.17g\n", per_ns);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		count = *low.count;
		at = now();
		printf("{\"what\": \"low\", \"kernel_us\": %" PRIu64 ", \"kernels\": %" PRIu32
		       ", \"low_us\": %.1f}\n",
		       kernel_ns / US, count - first, task_us(at - since, count - first));
		fflush(stdout);
		first = count;
		since = at;
	}
	stop_low(thread);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	int times = argc > 3 ? atoi(argv[3]) : 0;

	kernel_ns = argc > 2 ? strtoull(argv[2], NULL, 10) * US : 0;
	if (argc > 3 && (!strcmp(what, "low") || !strcmp(what, "high")))
		per_ns = atof(argv[argc - 1]);
	need(kernel_ns > 0 || !strcmp(what, "deep"),
	     "usage: two_priorities levels|alone|streams|deep|low|high ...");
	start();
	if (!strcmp(what, "levels") && times > 0) {
		measure_levels(times);
	} else if (!strcmp(what, "alone") && times > 0) {
		measure_alone(GP_LEVEL_THROTTLE, times);
		measure_alone(GP_LEVEL_GATE, times);
	} else if (!strcmp(what, "streams")) {
		need(kernel_ns / US <= MOST_STREAMS && times <= ABOVE, "so many streams are not made");
		measure_streams((int)(kernel_ns / US), times);
	} else if (!strcmp(what, "deep")) {
		measure_deep((int)(kernel_ns / US));
	} else if (!strcmp(what, "low")) {
		run_low_alone();
	} else if (!strcmp(what, "high") && argc == 6 && times > 0) {
		run_high(times, (uint32_t)atoi(argv[4]));
	} else {
		need(0, "usage: two_priorities levels|alone|streams|deep|low|high ...");
	}
	return 0;
}
