// SPDX-License-Identifier: MIT
/* The checks are Python: this finds the package and an interpreter, and becomes it. */
#include <string.h>

#include "cli/options.h"
#include "cli/python.h"
#include "ini/words.h"

static const char usage[] =
	"usage: gpreempt verify [CHECK] [options]\n"
	"\n"
	"Runs the design notes' test programs, and says what each did, what it saw, and whether that is\n"
	"what the notes ask for. They run on a simulated GPU with a gpreemptd and jobs of its own, or on\n"
	"this machine's GPU, with a process that --pid names or a program that --job names. CHECK is all\n"
	"(the default, about a minute), or one of basic, frequent, edge, latency, throughput, stability,\n"
	"stress, batch, reservation, compare and models.\n"
	"\n"
	"  --duration TIME    of those that run for a time, as 5min\n"
	"  --full             with the notes' own counts and times: an hour and a half for all\n"
	"  --old              by the notes' first library alone\n"
	"  --new              by their second one, with one call for many queues\n"
	"  --pid PID          an offline job on this machine's GPU: its queues are stopped and resumed\n"
	"  --job PROGRAM      a program that does GPU work as it is told, and accounts for it\n"
	"  --out DIR          write the results there, a JSON file for each\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt verify\n"
	"  gpreempt verify compare --full --out compared\n"
	"  gpreempt verify stress --duration 1min --pid 4711\n";

static int check(const struct gp_options *o)
{
	if (o->argc && gp_word_find(GP_CHECKS, o->argv[0]) < 0)
		return gp_fail(GP_EXIT_BAD_INPUT, "verify: there is no check \"%s\"; known are: %s",
			       o->argv[0], GP_CHECKS);
	if (o->pid && o->job)
		return gp_fail(GP_EXIT_BAD_INPUT, "verify: give --pid or --job, not both");
	return -1;
}

/* By the names that the design notes have: 1. */
static int is_called(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, name);
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	static char reservation[] = "reservation";
	const int is_one = is_called(argv[0], "test_hqd_reservation");
	char *words[argc + 1];
	struct gp_options o;
	int code;

	memcpy(words, argv, (size_t)argc * sizeof(words[0])); /* parsing sorts them */
	words[argc] = NULL;
	if (is_called(argv[0], "test_batch_unmap") || is_called(argv[0], "test_fast_remap"))
		return gp_python_run("gpreempt.verify.queues", words);
	code = gp_options_parse(verb, argc, argv, 0, !is_one, &o);
	if (code < 0)
		code = check(&o);
	if (code >= 0)
		return code;
	words[0] = reservation;
	return gp_python_run("gpreempt.verify.main", words + !is_one);
}

const struct gp_verb gp_verb_verify = {
	.name = "verify",
	.summary = "the design notes' tests, with their pass criteria",
	.usage = usage,
	.options = "duration full old new pid job out json",
	.run = run,
};
