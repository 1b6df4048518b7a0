// SPDX-License-Identifier: MIT
#include <stdio.h>

#include "cli/targets.h"

static const char usage[] =
	"usage: gpreempt resume PID[:QUEUE]... [options]\n"
	"\n"
	"Lets queues go on that were suspended, whoever suspended them. PID is all queues of a\n"
	"process; - reads more of them from standard input.\n"
	"\n"
	"  --socket PATH      gpreemptd's\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt resume 4711\n"
	"  gpreempt resume 4711:1 4711:2\n";

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	struct gp_targets targets;
	struct gp_ctx *ctx;
	char text[64];
	int code = gp_options_parse(verb, argc, argv, 1, argc, &opts);

	if (code < 0)
		code = gp_targets_open(&opts, &ctx);
	if (code >= 0)
		return code;
	code = gp_targets_find(verb, &opts, ctx, &targets);
	if (code < 0) {
		gp_targets_resume(&targets, ctx);
		if (opts.json)
			gp_targets_print_json(&targets, "gpreempt-resume-1", gp_ctx_notice(ctx));
		else if (gp_targets_done(&targets))
			printf("Resumed %s.\n", gp_targets_text(&targets, text, sizeof(text)));
		if (!opts.json && gp_ctx_notice(ctx)[0])
			printf("Note: %s.\n", gp_ctx_notice(ctx));
		code = gp_targets_exit(&targets);
	}
	gp_targets_free(&targets);
	gp_ctx_close(ctx);
	return code;
}

const struct gp_verb gp_verb_resume = {
	.name = "resume",
	.summary = "let suspended queues go on",
	.usage = usage,
	.options = "socket json",
	.run = run,
};
