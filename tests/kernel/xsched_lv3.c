// SPDX-License-Identifier: MIT
/*
 * A queue as XSched knows it (its HwQueue: launch and synchronise, deactivate and reactivate, interrupt and
 * restore) on AMD's runtime, with what its HIP queue lacks by libgpreempt: docs/XSCHED.md.  Run by
 * levels_process.py under a gpreemptd.
 */
#include <gpreempt/gpreempt.h>
#include <stdlib.h>
#include <string.h>

#include "hsa_work.h"
#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

/* What a scheduler of queues calls, whichever queue it is. */
struct hw_queue_ops {
	int (*interrupt)(void *queue);
	int (*restore)(void *queue);
};

static int interrupt(void *queue)
{
	return gp_stream_interrupt(queue);
}

static int restore(void *queue)
{
	return gp_stream_restore(queue);
}

static const struct hw_queue_ops hip_queue = { .interrupt = interrupt, .restore = restore };

static uint64_t saved_waves(void)
{
	return (uint64_t)kfd_stat(0, "waves_saved");
}

/* As of a stream of HIP's, whose queue nobody tells: what gpreemptd calls the queue of the last launch. 0:
 * none. */
static uint64_t queue_of_last_launch(struct gp_ctx *ctx)
{
	const struct gp_stream_opts last = { .size = sizeof(last),
					     .flags = GP_STREAM_MANUAL | GP_STREAM_LAST };
	struct gp_stream_info info = { .size = sizeof(info) };
	struct gp_stream *stream = NULL;

	if (gp_stream_open(ctx, NULL, &last, &stream) == 0)
		(void)gp_stream_query(stream, &info);
	gp_stream_close(stream);
	return info.queue;
}

int main(void)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .backend = "kfd" };
	const struct gp_stream_opts how = { .size = sizeof(how), .priority = 2, .flags = GP_STREAM_MANUAL };
	struct gp_stream_info info = { .size = sizeof(info) };
	struct gp_stream *stream = NULL;
	struct gp_ctx *ctx = NULL;
	hsa_signal_t signal;
	hsa_queue_t *queue;
	uint64_t saved, last;

	if (!ok(hsa_work_start(NULL) == 0, "the runtime starts"))
		return tap_done();
	queue = hsa_work_queue(64);
	signal = hsa_work_signal(1);
	ok(gp_ctx_open(&opts, &ctx) == 0, "gpreemptd is there");
	hsa_work_launch(queue, 1, MS, signal, HSA_WORK_BARRIER);
	last = queue_of_last_launch(ctx);
	ok(hsa_work_await(signal) == 0, "a short kernel ends");
	hsa_signal_store_screlease(signal, 1);
	ok(gp_stream_open(ctx, queue, &how, &stream) == 0 && gp_stream_query(stream, &info) == 0 &&
		   info.level == GP_LEVEL_INTERRUPT,
	   "the queue's highest level is interrupt%s%s", stream ? "" : ": ",
	   stream ? "" : gp_ctx_errmsg(ctx));
	ok(last == (getenv("HSA_TOOLS_LIB") ? info.queue : 0),
	   "a door knows it by its last launch, without a handle");
	hsa_work_launch(queue, 16, 2 * SECOND, signal,
			HSA_WORK_BARRIER); /* a kernel that no gate would stop */
	kfd_sleep(500 * MS);
	saved = saved_waves();
	ok(stream && hip_queue.interrupt(stream) == 0, "a running kernel is interrupted");
	ok(saved_waves() > saved, "its waves are saved");
	kfd_sleep(3 * SECOND);
	ok(hsa_signal_load_scacquire(signal) == 1, "it does not go on");
	ok(stream && hip_queue.restore(stream) == 0, "it is restored");
	ok(hsa_work_await(signal) == 0, "and ends");
	gp_stream_close(stream);
	gp_ctx_close(ctx);
	hsa_queue_destroy(queue);
	return tap_done();
}
