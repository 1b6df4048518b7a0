// SPDX-License-Identifier: MIT
#include "cli/options.h"
#include "cli/simulate.h"

static const char usage[] =
	"usage: gpreempt demo [options]\n"
	"\n"
	"Scenario E on a simulated MI308X: five inference clients beside five training jobs,\n"
	"with every way of keeping them apart.  Prints a table and writes a page to look at.\n"
	"\n"
	"  --out DIR          where to write result.json, index.html, trace.json (gpreempt-demo)\n"
	"  --json             print the result as JSON, not as a table\n"
	"  --seed N           another run of chance (1)\n"
	"  --duration TIME    simulate that long (210s: enough for a p99.9)\n"
	"\n"
	"examples:\n"
	"  gpreempt demo\n"
	"  gpreempt demo --seed 2 --out second\n";

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	int code;

	code = gp_options_parse(verb, argc, argv, 0, 0, &opts);
	if (code >= 0)
		return code;
	if (!opts.out)
		opts.out = "gpreempt-demo";
	opts.device = "mi308x";
	return gp_simulate("E", &opts);
}

const struct gp_verb gp_verb_demo = {
	.name = "demo",
	.summary = "the main case on a simulated MI308X: a table and a page",
	.usage = usage,
	.options = "out json seed duration",
	.run = run,
};
