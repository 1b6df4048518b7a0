// SPDX-License-Identifier: MIT
#include <stdio.h>

#include "cli/signals.h"
#include "cli/targets.h"
#include "base/units.h"

static const char usage[] =
	"usage: gpreempt suspend PID[:QUEUE]... [options]\n"
	"\n"
	"Takes queues off the GPU, their work saved, and keeps them off while it runs: Ctrl-C, or\n"
	"whatever else ends it, resumes them. PID is all queues of a process, those it creates\n"
	"meanwhile too; - reads more of them from standard input.\n"
	"\n"
	"  --lease TIME       return at once; they resume by themselves after this time\n"
	"  --way NAME         auto (the default), session, update, park, dbg or private\n"
	"  --type TYPE        save (the default), or drain: let what is running end first\n"
	"  --timeout TIME     how long a drain may take (1s); what has not ended then is saved\n"
	"  --strict           or not: then it runs on, and that is an error\n"
	"  --container NAME   all queues in this container; a PID beside it is one inside\n"
	"  --socket PATH      gpreemptd's\n"
	"  --backend sim      a simulated machine instead, which ends with this call\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt suspend 4711\n"
	"  gpreempt suspend 4711:1 4711:2 --lease 10s\n";

#define LOOK_NS GP_S

/*
 * Until a signal comes, or nothing is left to keep.  It looks meanwhile: if gpreemptd goes, everything
 * runs again, and others may resume what we hold; both are news.
 */
static int keep(struct gp_targets *t, struct gp_ctx *ctx, int json)
{
	int left = 1, asked_to_end;

	do {
		asked_to_end = gp_signals_wait(LOOK_NS);
		left = gp_targets_look(t, ctx);
	} while (!asked_to_end && left > 0);
	if (left < 0)
		return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
	if (!left)
		return GP_EXIT_FAILED;
	gp_targets_resume(t, ctx);
	if (!json)
		puts(t->simulated ? "Resumed (simulated)." : "Resumed.");
	return GP_EXIT_OK;
}

static void print(const struct gp_targets *t, const struct gp_options *o, const char *notice)
{
	char text[64], lease[GP_TIME_TEXT];

	if (o->json) {
		gp_targets_print_json(t, "gpreempt-suspend-1", notice);
		return;
	}
	if (!gp_targets_done(t))
		return;
	gp_targets_text(t, text, sizeof(text));
	if (o->has_lease)
		printf("Suspended %s for %s.\n", text, gp_time_text(o->lease_ns, lease));
	else
		printf("Suspended %s; Ctrl-C resumes.\n", text);
	if (notice[0])
		printf("Note: %s.\n", notice);
	fflush(stdout);
}

static int suspend(struct gp_targets *t, struct gp_ctx *ctx, const struct gp_options *o)
{
	const struct gp_suspend_opts opts = { .size = sizeof(opts),
					      .lease_ns = o->lease_ns,
					      .flags = o->strict ? GP_SUSPEND_STRICT : 0,
					      .timeout_ns = o->timeout_ns,
					      .type = o->type,
					      .way = o->way };
	int code;

	gp_targets_suspend(t, ctx, &opts);
	if (!o->has_lease)
		gp_signals_block(); /* from here on one is waited for; before, it would just have ended us */
	print(t, o, gp_ctx_notice(ctx));
	code = gp_targets_exit(t);
	if (!o->has_lease && gp_targets_done(t) && keep(t, ctx, o->json) != GP_EXIT_OK)
		code = GP_EXIT_FAILED;
	return code;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	int code = gp_options_parse(verb, argc, argv, 1, argc, &opts);

	return code < 0 ? gp_targets_run(verb, &opts, suspend) : code;
}

const struct gp_verb gp_verb_suspend = {
	.name = "suspend",
	.summary = "take queues off the GPU, and keep them off",
	.usage = usage,
	.options = "lease way type timeout strict container backend socket json",
	.run = run,
};
