// SPDX-License-Identifier: MIT
#include <stdio.h>

#include "cli/targets.h"
#include "base/units.h"

static const char usage[] =
	"usage: gpreempt preempt PID[:QUEUE]... --type TYPE [options]\n"
	"\n"
	"Takes queues off the GPU in a given way and returns; gpreempt resume gives them back. The\n"
	"same as gpreempt suspend with a type and a lease: what nobody resumes does so by itself.\n"
	"\n"
	"  --type TYPE        save: keep the running waves; drain: let them end; reset: refused, their\n"
	"                     work would be lost\n"
	"  --timeout TIME     how long a drain may take (1s); what has not ended then is saved\n"
	"  --strict           or not: then it runs on, and that is an error\n"
	"  --lease TIME       when they resume by themselves (10s)\n"
	"  --way NAME         auto (the default), session, update, park, dbg or private\n"
	"  --container NAME   all queues in this container; a PID beside it is one inside\n"
	"  --socket PATH      gpreemptd's\n"
	"  --backend sim      a simulated machine instead, which ends with this call\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt preempt 4711:1 --type save\n"
	"  gpreempt preempt 4711:1 --type drain --timeout 200ms\n";

#define LEASE_NS (10 * GP_S)

static int preempt(struct gp_targets *t, struct gp_ctx *ctx, const struct gp_options *o)
{
	const struct gp_suspend_opts opts = { .size = sizeof(opts),
					      .lease_ns = o->has_lease ? o->lease_ns : LEASE_NS,
					      .flags = o->strict ? GP_SUSPEND_STRICT : 0,
					      .timeout_ns = o->timeout_ns,
					      .type = o->type,
					      .way = o->way };
	char text[64], lease[GP_TIME_TEXT];

	gp_targets_suspend(t, ctx, &opts);
	if (o->json)
		gp_targets_print_json(t, "gpreempt-preempt-1", gp_ctx_notice(ctx));
	else if (gp_targets_done(t))
		printf("Preempted %s, for %s at most.\n", gp_targets_text(t, text, sizeof(text)),
		       gp_time_text(opts.lease_ns, lease));
	if (!o->json && gp_targets_done(t) && gp_ctx_notice(ctx)[0])
		printf("Note: %s.\n", gp_ctx_notice(ctx));
	return gp_targets_exit(t);
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	int code = gp_options_parse(verb, argc, argv, 1, argc, &opts);

	if (code < 0 && !opts.has_type)
		code = gp_fail(GP_EXIT_BAD_INPUT,
			       "preempt: say what becomes of the running waves: --type save or "
			       "--type drain");
	return code < 0 ? gp_targets_run(verb, &opts, preempt) : code;
}

const struct gp_verb gp_verb_preempt = {
	.name = "preempt",
	.summary = "take queues off the GPU in a given way, for a time",
	.usage = usage,
	.options = "type timeout strict lease way container backend socket json",
	.run = run,
};
