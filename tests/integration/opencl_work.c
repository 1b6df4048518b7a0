// SPDX-License-Identifier: MIT
/*
 * Not a test: a program of OpenCL, for tests to hold.
 *
 * - compute LAUNCHES PREEMPTIONS: a chain of launches, each on what the one before has left; meanwhile
 * another thread suspends and resumes its stream so often. Says "sum SUM preemptions N held N".
 * - overhead PAIRS: launches of about 100 us, on a queue that is looked after and on one that is not, by
 * turns. Says "ratio R wall W length N": of the medians, by the processor's time and by the wall's, and ns.
 * - order LAUNCHES: on a queue of two priorities. Says "begun N ended N".
 * - lost LAUNCHES: so many whose wait list fails, and as many that are good. Says "begun N ended N".
 * - unordered LAUNCHES: on a queue out of order, so many that wait for the end of the last. Says "ended N".
 * - closed N: a stream that allowed so many launches in flight was closed. Says "in_flight N" of the next.
 * - queues N: on so many queues, while an online one has work. Says "ended N".
 * - sentences LEVEL: a stream at this level is opened, or not, and asked after its queue has gone. Says what
 * the library says, a line each.
 */
#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "level/opencl_table.h"

#define ITEMS 256
#define BATCH 20 /* launches that are timed together */
#define PLACE(name) (offsetof(cl_icd_dispatch, name) / sizeof(void *))

_Static_assert(PLACE(clCreateCommandQueue) == GP_CL_CREATE_QUEUE, "its place in the table");
_Static_assert(PLACE(clCreateCommandQueueWithProperties) == GP_CL_CREATE_QUEUE_WITH,
	       "its place in the table");
_Static_assert(PLACE(clRetainCommandQueue) == GP_CL_RETAIN_QUEUE, "its place in the table");
_Static_assert(PLACE(clReleaseCommandQueue) == GP_CL_RELEASE_QUEUE, "its place in the table");
_Static_assert(PLACE(clRetainEvent) == GP_CL_RETAIN_EVENT, "its place in the table");
_Static_assert(PLACE(clReleaseEvent) == GP_CL_RELEASE_EVENT, "its place in the table");
_Static_assert(PLACE(clEnqueueNDRangeKernel) == GP_CL_LAUNCH, "its place in the table");
_Static_assert(PLACE(clSetEventCallback) == GP_CL_SET_CALLBACK, "its place in the table");
_Static_assert(PLACE(clCreateUserEvent) == GP_CL_USER_EVENT, "its place in the table");
_Static_assert(PLACE(clSetUserEventStatus) == GP_CL_SET_STATUS, "its place in the table");

static const char *const source = "kernel void advance(global uint *x, uint rounds) {\n"
				  "  uint i = get_global_id(0), v = x[i];\n"
				  "  for (uint n = 0; n < rounds; n++) v = v * 1664525u + 1013904223u + n;\n"
				  "  x[i] = v;\n"
				  "}\n";

static cl_context context;
static cl_device_id device;
static cl_kernel kernel;
static cl_mem buffer;

static void need(int holds, const char *what)
{
	if (holds)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

/* Of the processor, for all threads: what else the machine does is not in it. */
static uint64_t time_ns(clockid_t of)
{
	struct timespec t;

	clock_gettime(of, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static cl_command_queue new_queue(void)
{
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);

	need(queue != NULL, "a queue");
	return queue;
}

static void prepare(void)
{
	cl_uint start[ITEMS];
	cl_platform_id platform;
	cl_program program;

	need(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS, "a platform");
	need(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS, "a device");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	for (cl_uint i = 0; i < ITEMS; i++)
		start[i] = i;
	buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(start), start, NULL);
	program = clCreateProgramWithSource(context, 1, (const char **)&source, NULL, NULL);
	need(clBuildProgram(program, 1, &device, "", NULL, NULL) == CL_SUCCESS, "a program");
	kernel = clCreateKernel(program, "advance", NULL);
	need(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer) == CL_SUCCESS, "an argument");
}

static void launch_after(cl_command_queue queue, cl_uint rounds, const cl_event *after, cl_event *ret_event)
{
	const size_t global = ITEMS, local = ITEMS;

	clSetKernelArg(kernel, 1, sizeof(rounds), &rounds);
	need(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, after ? 1 : 0, after,
				    ret_event) == CL_SUCCESS,
	     "a launch");
}

static void launch(cl_command_queue queue, cl_uint rounds, cl_event *ret_event)
{
	launch_after(queue, rounds, NULL, ret_event);
}

static struct gp_stream *open_stream(cl_command_queue queue, uint32_t priority, uint64_t flags)
{
	const struct gp_stream_opts opts = { .size = sizeof(opts), .priority = priority, .flags = flags };
	struct gp_stream *stream = NULL;

	need(gp_stream_open(NULL, queue, &opts, &stream) == 0, "a stream: is the layer loaded?");
	return stream;
}

/* Preemptions */

static void wait_for_all(cl_event *events, int n)
{
	for (int i = 0; i < n; i++) {
		if (!events[i])
			continue;
		need(clWaitForEvents(1, &events[i]) == CL_SUCCESS, "an event");
		clReleaseEvent(events[i]);
		events[i] = NULL;
	}
}

/* Two launches that find their stream held. */
static uint64_t preempt(cl_command_queue queue, struct gp_stream *stream, cl_uint rounds, cl_event *ret_event)
{
	struct gp_stream_info info = { .size = sizeof(info) };

	need(gp_stream_suspend(stream) == 0, "a suspend");
	launch(queue, rounds, ret_event); /* not all have an event */
	launch(queue, rounds + 1, NULL);
	gp_stream_query(stream, &info);
	need(gp_stream_resume(stream) == 0, "a resume");
	return info.begun - info.ended >= 2;
}

static void compute(uint64_t pairs, uint64_t preemptions)
{
	cl_command_queue queue = new_queue();
	struct gp_stream *stream = preemptions ? open_stream(queue, 0, GP_STREAM_MANUAL) : NULL;
	cl_uint result[ITEMS], sum = 0;
	cl_event events[8] = { NULL };
	uint64_t held = 0;

	for (uint64_t i = 0; i < pairs; i++) {
		cl_event *event = i % 3 ? NULL : &events[i % 8];

		if (i < preemptions) {
			held += preempt(queue, stream, (cl_uint)(i % 100), event);
		} else {
			launch(queue, (cl_uint)(i % 100), event);
			launch(queue, (cl_uint)(i % 100) + 1, NULL);
		}
		if (i % 8 == 7)
			wait_for_all(events, 8);
	}
	need(clFinish(queue) == CL_SUCCESS, "an end");
	clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(result), result, 0, NULL, NULL);
	for (int i = 0; i < ITEMS; i++)
		sum = sum * 31 + result[i];
	printf("sum %u held %" PRIu64 "\n", sum, held);
	gp_stream_close(stream);
	need(clReleaseCommandQueue(queue) == CL_SUCCESS, "a release");
}

/* Overhead */

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* By the processor's time, which a neighbour does not make longer. */
static double batch(cl_command_queue queue, cl_uint rounds, int n, double *ret_wall_ns)
{
	uint64_t start = time_ns(CLOCK_PROCESS_CPUTIME_ID), wall = time_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < n; i++)
		launch(queue, rounds, NULL);
	clFinish(queue);
	*ret_wall_ns = (double)(time_ns(CLOCK_MONOTONIC) - wall) / n;
	return (double)(time_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / n;
}

static double median(double *took, int n)
{
	qsort(took, (size_t)n, sizeof(*took), by_value);
	return took[n / 2];
}

static cl_uint rounds_of(cl_command_queue queue, double ns)
{
	double took[9], wall;

	for (int i = 0; i < 9; i++)
		took[i] = batch(queue, 2000, BATCH, &wall);
	return (cl_uint)(2000 * ns / median(took, 9));
}

static void overhead(int pairs)
{
	cl_command_queue alone = new_queue(), held = new_queue();
	struct gp_stream *stream = open_stream(held, 0, 0);
	cl_uint rounds = rounds_of(alone, 100000);
	double *took = calloc((size_t)pairs * 4, sizeof(*took)), *ours = took + pairs;
	double *plain_wall = ours + pairs, *our_wall = plain_wall + pairs;

	for (int i = 0; i < pairs; i++) {
		took[i] = batch(alone, rounds, BATCH, &plain_wall[i]);
		ours[i] = batch(held, rounds, BATCH, &our_wall[i]);
	}
	printf("ratio %.4f wall %.4f length %.0f\n", median(ours, pairs) / median(took, pairs),
	       median(our_wall, pairs) / median(plain_wall, pairs), median(took, pairs));
	free(took);
	gp_stream_close(stream);
	clReleaseCommandQueue(alone);
	clReleaseCommandQueue(held);
}

/* Two priorities */

static void order(uint64_t launches)
{
	cl_command_queue low = new_queue(), high = new_queue();
	struct gp_stream *offline = open_stream(low, 0, 0), *online = open_stream(high, 12, 0);
	struct gp_stream_info info = { .size = sizeof(info) };
	uint64_t held = 0;

	for (uint64_t i = 0; i < launches; i++) {
		launch(low, 1000, NULL);
		launch(high, 1000, NULL);
		gp_stream_query(offline, &info);
		held += info.held;
		clFinish(high);
	}
	clFinish(low);
	need(gp_stream_sync(offline, 60000000000u) == 0, "a sync"); /* its ends are told by another thread */
	gp_stream_query(offline, &info);
	printf("begun %" PRIu64 " ended %" PRIu64 " held %" PRIu64 "\n", info.begun, info.ended, held);
	gp_stream_close(online);
	gp_stream_close(offline);
	clRetainCommandQueue(low);
	clReleaseCommandQueue(low);
	clReleaseCommandQueue(low);
	clReleaseCommandQueue(high);
}

/* What goes wrong, or is done in no order */

static void lose(uint64_t launches)
{
	cl_command_queue queue = new_queue();
	struct gp_stream *stream = open_stream(queue, 0, GP_STREAM_MANUAL);
	struct gp_stream_info info = { .size = sizeof(info) };
	cl_event never;

	for (uint64_t i = 0; i < launches; i++) {
		never = clCreateUserEvent(context, NULL);
		launch_after(queue, 10, &never, NULL);
		need(clSetUserEventStatus(never, -1) == CL_SUCCESS, "an event that fails");
	}
	for (uint64_t i = 0; i < launches; i++) {
		launch(queue, 10, NULL);
		need(clFinish(queue) == CL_SUCCESS, "an end");
	}
	need(gp_stream_sync(stream, 60000000000u) == 0, "a sync");
	gp_stream_query(stream, &info);
	printf("begun %" PRIu64 " ended %" PRIu64 "\n", info.begun, info.ended);
	gp_stream_close(stream);
}

static void launch_unordered(uint64_t launches)
{
	cl_command_queue queue =
		clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, NULL);
	cl_event start = clCreateUserEvent(context, NULL), last;

	need(queue && start, "a queue out of order");
	for (uint64_t i = 0; i < launches; i++)
		launch_after(queue, 10, &start, NULL);
	launch(queue, 10, &last);
	need(clWaitForEvents(1, &last) == CL_SUCCESS, "the last");
	need(clSetUserEventStatus(start, CL_COMPLETE) == CL_SUCCESS, "a start");
	need(clFinish(queue) == CL_SUCCESS, "an end");
	printf("ended %" PRIu64 "\n", launches + 1);
}

static void close_first(uint32_t n)
{
	cl_command_queue queue = new_queue();
	struct gp_stream *stream = open_stream(queue, 0, 0);
	struct gp_stream_info info = { .size = sizeof(info) };

	need(gp_stream_nlaunch(stream, n) == 0, "a bound");
	gp_stream_close(stream);
	stream = open_stream(queue, 0, 0);
	gp_stream_query(stream, &info);
	printf("in_flight %u\n", info.in_flight);
	gp_stream_close(stream);
}

static void use_queues(int n)
{
	cl_command_queue *low = calloc((size_t)n, sizeof(*low)), high = new_queue();
	struct gp_stream *online = open_stream(high, 12, 0);

	for (int i = 0; i < n; i++) { /* their environment says that they are offline */
		low[i] = new_queue();
		launch(high, 20000, NULL);
		launch(low[i], 10, NULL);
	}
	need(clFinish(high) == CL_SUCCESS, "an end of online work");
	for (int i = 0; i < n; i++)
		need(clFinish(low[i]) == CL_SUCCESS && clReleaseCommandQueue(low[i]) == CL_SUCCESS, "an end");
	printf("ended %d\n", n);
	gp_stream_close(online);
	free(low);
}

/* What goes wrong by the program's own fault */

static void say(const struct gp_ctx *ctx, int r)
{
	printf("%s: %s\n", gp_strerror(r), gp_ctx_errmsg(ctx));
}

static void blame(uint32_t level)
{
	const struct gp_open_opts simulated = { .size = sizeof(simulated), .backend = "sim" };
	const struct gp_stream_opts opts = { .size = sizeof(opts), .level = level };
	struct gp_stream_info info = { .size = sizeof(info) };
	const uint64_t none[2] = { 0 };
	cl_command_queue queue = new_queue();
	struct gp_stream *stream = NULL;
	struct gp_ctx *ctx = NULL;
	int r;

	need(gp_ctx_open(&simulated, &ctx) == 0, "a context");
	say(ctx, gp_stream_open(ctx, NULL, &opts, &stream));
	say(ctx, gp_stream_open(ctx, none, &opts, &stream));
	r = gp_stream_open(ctx, queue, &opts, &stream);
	clReleaseCommandQueue(queue);
	say(ctx, r < 0 ? r : gp_stream_query(stream, &info));
	gp_stream_close(stream);
	gp_ctx_close(ctx);
}

int main(int argc, char **argv)
{
	need(argc > 2,
	     "usage: opencl_work compute PAIRS PREEMPTIONS | overhead PAIRS | order LAUNCHES | lost LAUNCHES | "
	     "unordered LAUNCHES | closed N | queues N | sentences LEVEL");
	prepare();
	if (!strcmp(argv[1], "compute"))
		compute(strtoull(argv[2], NULL, 10), argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
	else if (!strcmp(argv[1], "overhead"))
		overhead(atoi(argv[2]));
	else if (!strcmp(argv[1], "lost"))
		lose(strtoull(argv[2], NULL, 10));
	else if (!strcmp(argv[1], "unordered"))
		launch_unordered(strtoull(argv[2], NULL, 10));
	else if (!strcmp(argv[1], "closed"))
		close_first((uint32_t)atoi(argv[2]));
	else if (!strcmp(argv[1], "queues"))
		use_queues(atoi(argv[2]));
	else if (!strcmp(argv[1], "sentences"))
		blame((uint32_t)atoi(argv[2]));
	else
		order(strtoull(argv[2], NULL, 10));
	return 0;
}
