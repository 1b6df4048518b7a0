// SPDX-License-Identifier: MIT
#include <gpreempt/gpreempt.h>
#include <stdio.h>

#include "cli/options.h"
#include "study/json.h"

static const char usage[] = "usage: gpreempt version [--json]\n"
			    "\n"
			    "Prints the version of the program and of the library it runs with.\n"
			    "\n"
			    "examples:\n"
			    "  gpreempt version\n"
			    "  gpreempt version --json\n";

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	char library[32];
	struct json_object *o;
	int code;

	code = gp_options_parse(verb, argc, argv, 0, 0, &opts);
	if (code >= 0)
		return code;
	snprintf(library, sizeof(library), "%u.%u", gp_version() >> 16, gp_version() & 0xffff);
	if (!opts.json) {
		printf("gpreempt " GPREEMPT_VERSION " (library %s)\n", library);
		return GP_EXIT_OK;
	}
	o = json_object_new_object();
	gp_json_add_text(o, "gpreempt", GPREEMPT_VERSION);
	gp_json_add_text(o, "library", library);
	gp_json_print(o);
	return GP_EXIT_OK;
}

const struct gp_verb gp_verb_version = {
	.name = "version",
	.summary = "print the version",
	.usage = usage,
	.options = "json",
	.run = run,
};
