// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/wrap.h"
#include "study/json.h"

static const char usage[] = "usage: gpreempt help [VERB]\n"
			    "\n"
			    "Prints how a verb is used, or all verbs.\n"
			    "\n"
			    "  --json             the verbs as JSON\n"
			    "\n"
			    "examples:\n"
			    "  gpreempt help\n"
			    "  gpreempt help sim\n";

static void print_verbs(void)
{
	gp_print_usage(
		"usage: gpreempt VERB [options]\n"
		"\n"
		"Latency-critical GPU work takes the GPU from best-effort work at once, loses nothing,\n"
		"and gives it back: on AMD and NVIDIA GPUs through gpreemptd, and on a simulated GPU anywhere.\n"
		"\n",
		stdout);
	for (size_t i = 0; gp_verbs[i]; i++)
		printf("  %-10s  %s\n", gp_verbs[i]->name, gp_verbs[i]->summary);
	fputs("\nexamples:\n"
	      "  gpreempt demo\n"
	      "  gpreempt doctor\n"
	      "  gpreempt suspend 4711\n"
	      "  gpreempt help sim\n",
	      stdout);
}

static void print_json(void)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; gp_verbs[i]; i++) {
		struct json_object *o = json_object_new_object();

		gp_json_add_text(o, "name", gp_verbs[i]->name);
		gp_json_add_text(o, "about", gp_verbs[i]->summary);
		gp_json_add_text(o, "usage", gp_verbs[i]->usage);
		json_object_array_add(list, o);
	}
	gp_json_print(list);
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	int code;

	code = gp_options_parse(verb, argc, argv, 0, 1, &opts);
	if (code >= 0)
		return code;
	for (size_t i = 0; opts.argc && gp_verbs[i]; i++) {
		if (!strcmp(gp_verbs[i]->name, opts.argv[0])) {
			gp_print_usage(gp_verbs[i]->usage, stdout);
			return GP_EXIT_OK;
		}
	}
	if (opts.argc)
		return gp_complain_verb(opts.argv[0]);
	if (opts.json)
		print_json();
	else
		print_verbs();
	return GP_EXIT_OK;
}

const struct gp_verb gp_verb_help = {
	.name = "help",
	.summary = "how a verb is used",
	.usage = usage,
	.options = "json",
	.run = run,
};
