// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/simulate.h"
#include "study/json.h"
#include "study/sources.h"

static const char usage[] =
	"usage: gpreempt sim SCENARIO [options]\n"
	"       gpreempt sim --cluster FILE [options]\n"
	"\n"
	"Runs a scenario on a simulated GPU, once in each configuration, and compares them.\n"
	"SCENARIO is a built-in name, or a file: what has a / or ends in .ini. With --cluster: many\n"
	"GPUs with services on them, and offline jobs from a trace of Slurm's sacct.\n"
	"\n"
	"  --list             the built-in scenarios\n"
	"  --show NAME        print one, to copy and edit\n"
	"  --cluster FILE     a cluster, as in share/gpreempt/clusters\n"
	"  --out DIR          write result.json, index.html and (of a scenario) trace.json there\n"
	"  --json             print the result as JSON, not as a table\n"
	"  --seed N           another run of chance (the scenario's own: usually 1)\n"
	"  --duration TIME    simulate that long, as in 60s\n"
	"  --device NAME|FILE another device: mi308x, mi300x, h200, or a file\n"
	"  --policy NAME|FILE fifo, priority, fair, deadline, or your own: ./mine.so\n"
	"  --only LIST        only these configurations, as in native,auto+hints\n"
	"  --jobs N           rows at a time, processes of a cluster (one per CPU); changes no\n"
	"                     figure\n"
	"\n"
	"examples:\n"
	"  gpreempt sim E --duration 30s\n"
	"  gpreempt sim --show A > mine.ini; gpreempt sim ./mine.ini --out mine\n"
	"  gpreempt sim queues --only exclusive,interrupt-single,interrupt-batched\n"
	"  gpreempt sim B --policy ./mine.so\n"
	"  gpreempt sim --cluster ./mine.ini --out mine\n";

/* The first comment that is not the licence. */
static void first_comment(const char *text, char *line, size_t size)
{
	line[0] = '\0';
	while (*text == '#') {
		size_t len = strcspn(text, "\n");

		if (!strstr(text, "SPDX") || strstr(text, "SPDX") > text + len) {
			snprintf(line, size, "%.*s", (int)len - 1 - (text[1] == ' '),
				 text + 1 + (text[1] == ' '));
			return;
		}
		text += len + (text[len] == '\n');
	}
}

static int list_scenarios(int json)
{
	struct json_object *list = json ? json_object_new_array() : NULL;
	char line[128];

	for (size_t i = 0; i < gp_nembeds; i++) {
		if (strcmp(gp_embeds[i].kind, "scenario"))
			continue;
		first_comment(gp_embeds[i].text, line, sizeof(line));
		if (json) {
			struct json_object *o = json_object_new_object();

			gp_json_add_text(o, "name", gp_embeds[i].name);
			gp_json_add_text(o, "about", line);
			json_object_array_add(list, o);
		} else {
			printf("%-11s %s\n", gp_embeds[i].name, line);
		}
	}
	if (json)
		gp_json_print(list);
	return GP_EXIT_OK;
}

static int show_scenario(const char *name, int json)
{
	const struct gp_embed *embed = gp_embed_find("scenario", name);
	struct json_object *o;
	char known[128];

	if (!embed) {
		gp_embed_list("scenario", known, sizeof(known));
		return gp_fail(GP_EXIT_BAD_INPUT, "--show: no scenario \"%s\"; built in are: %s", name,
			       known);
	}
	if (!json) {
		fputs(embed->text, stdout);
		return GP_EXIT_OK;
	}
	o = json_object_new_object();
	gp_json_add_text(o, "name", embed->name);
	gp_json_add_text(o, "text", embed->text);
	gp_json_print(o);
	return GP_EXIT_OK;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	int code;

	code = gp_options_parse(verb, argc, argv, 1, 1, &opts);
	if (code >= 0)
		return code;
	if (opts.list)
		return list_scenarios(opts.json);
	if (opts.show)
		return show_scenario(opts.show, opts.json);
	if (opts.cluster)
		return gp_simulate_cluster(&opts);
	return gp_simulate(opts.argv[0], &opts, &(const struct gp_around){ 0 });
}

const struct gp_verb gp_verb_sim = {
	.name = "sim",
	.summary = "run a scenario on a simulated GPU",
	.usage = usage,
	.options = "list show cluster out json seed duration device policy only jobs",
	.run = run,
};
