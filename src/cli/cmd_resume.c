// SPDX-License-Identifier: MIT
#include <stdio.h>

#include "cli/targets.h"

static const char usage[] =
	"usage: gpreempt resume PID[:QUEUE]... [options]\n"
	"\n"
	"Lets queues go on that were suspended, whoever suspended them. PID is all queues of a\n"
	"process; - reads more of them from standard input.\n"
	"\n"
	"  --container NAME   all queues in this container; a PID beside it is one inside\n"
	"  --socket PATH      gpreemptd's\n"
	"  --backend sim      a simulated machine instead, which ends with this call\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt resume 4711\n"
	"  gpreempt resume 4711:1 4711:2\n";

static void print(const struct gp_targets *t)
{
	static const char *const before[] = { "Resumed",
					      "Running already:", "Suspended by nobody, and not running:" };
	char text[64];

	for (unsigned int was = GP_WAS_HELD; was <= GP_WAS_WAITING; was++)
		if (gp_targets_that_were(t, was, text, sizeof(text)))
			printf("%s %s.\n", before[was], text);
}

static int resume(struct gp_targets *t, struct gp_ctx *ctx, const struct gp_options *o)
{
	gp_targets_resume(t, ctx);
	if (o->json)
		gp_targets_print_json(t, "gpreempt-resume-1", gp_ctx_notice(ctx));
	else
		print(t);
	if (!o->json && gp_ctx_notice(ctx)[0])
		printf("Note: %s.\n", gp_ctx_notice(ctx));
	return gp_targets_exit(t);
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	int code = gp_options_parse(verb, argc, argv, 1, argc, &opts);

	return code < 0 ? gp_targets_run(verb, &opts, resume) : code;
}

const struct gp_verb gp_verb_resume = {
	.name = "resume",
	.summary = "let suspended queues go on",
	.usage = usage,
	.options = "container backend socket json",
	.run = run,
};
