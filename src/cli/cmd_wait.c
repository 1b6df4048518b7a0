// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/clock.h"
#include "cli/machine_list.h"
#include "cli/queue_text.h"
#include "cli/targets.h"
#include "base/units.h"

static const char usage[] =
	"usage: gpreempt wait running|stopped PID[:QUEUE]... [options]\n"
	"\n"
	"Waits until queues run, or stand still, whoever stopped them. PID is all queues of a process,\n"
	"those it creates meanwhile too; - reads more of them from standard input.\n"
	"\n"
	"  --timeout TIME     no longer than that: then it says which are not, and exits with 1\n"
	"  --container NAME   all queues in this container; a PID beside it is one inside\n"
	"  --socket PATH      gpreemptd's\n"
	"  --backend sim      a simulated machine instead, which ends with this call\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt wait stopped 4711 --timeout 10s\n"
	"  gpreempt wait running 4711:1\n";

#define LOOK_NS (50 * GP_MS)

/* Of a process that was named as a whole, any of its queues. */
static int is_of(const struct gp_target *target, const struct gp_queue_info *q)
{
	return target->whole ? target->pid == gp_queue_owner(q) : target->queue == q->queue;
}

static int is_named(const struct gp_targets *t, const struct gp_queue_info *q)
{
	for (size_t i = 0; i < t->n; i++)
		if (is_of(&t->items[i], q))
			return 1;
	return 0;
}

/* How many are not as wanted; which ones, if the time is over: over_ns. */
static size_t count_others(const struct gp_targets *t, const struct gp_machine_list *l, uint32_t wanted,
			   uint64_t over_ns)
{
	char name[GP_QUEUE_NAME], time[GP_TIME_TEXT];
	size_t n = 0;

	for (size_t i = 0; i < l->nqueues; i++) {
		const struct gp_queue_info *q = &l->queues[i];

		if (q->state == wanted || !is_named(t, q))
			continue;
		n++;
		if (over_ns)
			gp_fail(0, "%s: not %s within %s: it is %s", gp_queue_name(q, name),
				wanted == GP_QUEUE_RUNNING ? "running" : "stopped",
				gp_time_text(over_ns, time), gp_state_text(q->state));
	}
	return n;
}

/* What is gone is said once; a process that was named as a whole goes with its last queue. */
static void note_state(struct gp_target *target, const struct gp_machine_list *l, uint32_t wanted)
{
	int there = 0, other = 0;

	for (size_t i = 0; i < l->nqueues; i++) {
		if (!is_of(target, &l->queues[i]))
			continue;
		there = 1;
		other |= target->queue == l->queues[i].queue && l->queues[i].state != wanted;
	}
	if (!there && target->status != -ENOENT)
		gp_fail(0, "%" PRIu32 ":%" PRIu32 ": has gone", target->pid, target->queue_id);
	target->status = !there ? -ENOENT : other ? -ETIMEDOUT : 0;
}

/* The exit code; what is not as wanted is said when the time is over. */
static int wait_for(struct gp_targets *t, struct gp_ctx *ctx, uint32_t wanted, uint64_t timeout_ns)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	uint64_t begin = gp_now_ns();
	struct gp_machine_list list;
	size_t left;
	int is_over;

	for (;;) {
		is_over = timeout_ns && gp_now_ns() - begin >= timeout_ns;
		if (gp_machine_list_read(ctx, &list) < 0)
			return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
		for (size_t i = 0; i < t->n; i++)
			note_state(&t->items[i], &list, wanted);
		left = count_others(t, &list, wanted, is_over ? timeout_ns : 0);
		gp_machine_list_free(&list);
		if (!left || is_over)
			return left ? GP_EXIT_FAILED : GP_EXIT_OK;
		nanosleep(&pause, NULL);
	}
}

static int wait_until(struct gp_targets *t, struct gp_ctx *ctx, const struct gp_options *o, uint32_t wanted)
{
	char text[64];
	int code;

	if (t->wrong)
		return GP_EXIT_FAILED; /* and said */
	code = wait_for(t, ctx, wanted, o->timeout_ns);
	if (o->json)
		gp_targets_print_json(t, "gpreempt-wait-1", "");
	else if (code == GP_EXIT_OK && gp_targets_done(t))
		printf("%s %s.\n", wanted == GP_QUEUE_RUNNING ? "Running:" : "Stopped:",
		       gp_targets_text(t, text, sizeof(text)));
	return code == GP_EXIT_OK ? gp_targets_exit(t) : code;
}

static int wait_running(struct gp_targets *t, struct gp_ctx *ctx, const struct gp_options *o)
{
	return wait_until(t, ctx, o, GP_QUEUE_RUNNING);
}

static int wait_stopped(struct gp_targets *t, struct gp_ctx *ctx, const struct gp_options *o)
{
	return wait_until(t, ctx, o, GP_QUEUE_SUSPENDED);
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	gp_targets_fn fn;
	int code = gp_options_parse(verb, argc, argv, 2, argc, &opts);

	if (code >= 0)
		return code;
	fn = !strcmp(opts.argv[0], "running")   ? wait_running
	     : !strcmp(opts.argv[0], "stopped") ? wait_stopped
						: NULL;
	if (!fn)
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "wait: \"%s\" is neither running nor stopped; see gpreempt wait --help",
			       opts.argv[0]);
	opts.argc--;
	opts.argv++;
	return gp_targets_run(verb, &opts, fn);
}

const struct gp_verb gp_verb_wait = {
	.name = "wait",
	.summary = "until queues run, or stand still",
	.usage = usage,
	.options = "timeout container backend socket json",
	.run = run,
};
