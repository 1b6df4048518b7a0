// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>

#include "cli/options.h"
#include "cli/simulate.h"

static const char usage[] =
	"usage: gpreempt demo [options]\n"
	"\n"
	"Inference beside training on a simulated MI308X, with every way of keeping them apart:\n"
	"scenario light, at which the GPU keeps up even if nobody schedules, and scenario E, at\n"
	"which it does not.  Prints a table of each and writes pages to look at.\n"
	"\n"
	"  --out DIR          where to write result.json, index.html and trace.json of light, and\n"
	"                     those of E in DIR/E (gpreempt-demo)\n"
	"  --json             print the results as JSON, one line for each, not as tables\n"
	"  --seed N           another run of chance (1)\n"
	"  --duration TIME    simulate that long (the scenarios' own: enough for a p99.9)\n"
	"\n"
	"examples:\n"
	"  gpreempt demo\n"
	"  gpreempt demo --seed 2 --out second\n";

static const struct gp_around light = {
	.before =
		"Two loads: light, where the GPU keeps up even if nobody schedules (native), then E, where it does "
		"not.\n",
	.also = "<p class=\"dim\">Of two loads the light one. The other: <a href=\"E/index.html\">scenario E</a>.</p>\n",
};
static const struct gp_around heavy = {
	.before = "",
	.also = "<p class=\"dim\">Of two loads the high one. The other: <a href=\"../index.html\">scenario "
		"light</a>.</p>\n",
};

static int run_both(struct gp_options *opts, char *below)
{
	int code = gp_simulate("light", opts, &light);

	if (code != GP_EXIT_OK)
		return code;
	opts->out = below;
	return gp_simulate("E", opts, &heavy);
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	char *below;
	int code;

	code = gp_options_parse(verb, argc, argv, 0, 0, &opts);
	if (code >= 0)
		return code;
	if (!opts.out)
		opts.out = "gpreempt-demo";
	opts.device = "mi308x";
	if (asprintf(&below, "%s/E", opts.out) < 0)
		return gp_fail(GP_EXIT_FAILED, "out of memory");
	code = run_both(&opts, below);
	free(below);
	return code;
}

const struct gp_verb gp_verb_demo = {
	.name = "demo",
	.summary = "the main case on a simulated MI308X: tables and pages",
	.usage = usage,
	.options = "out json seed duration",
	.run = run,
};
