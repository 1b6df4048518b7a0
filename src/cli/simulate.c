// SPDX-License-Identifier: MIT
#include "cli/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "study/files.h"
#include "study/output.h"
#include "cli/wrap.h"
#include "base/units.h"

struct study {
	struct gp_scenario scenario;
	struct gp_sources sources;
	struct gp_rows rows;
	struct gp_diag diag;
};

int gp_scenario_apply(struct gp_scenario *sc, struct gp_sources *sources, const struct gp_options *opts,
		      struct gp_diag *diag)
{
	const struct gp_place only = { .file = "--only", .diag = diag };
	const struct gp_place duration = { .file = "--duration", .is_option = 1, .diag = diag };
	int r = 0;

	if (opts->has_seed)
		sc->seed = opts->seed;
	if (opts->has_duration)
		sc->duration_ns = opts->duration_ns;
	if (opts->policy)
		r = gp_sources_policy(opts->policy, sc, diag);
	if (r == 0 && opts->device)
		r = gp_sources_device(sources, opts->device, sc, diag);
	if (r == 0 && opts->only)
		r = gp_configs_parse(opts->only, &only, sc->configs, &sc->nconfigs);
	if (r == 0 && opts->has_duration)
		r = gp_scenario_check_times(sc, &duration);
	return r < 0 ? r : gp_scenario_start(sc);
}

int gp_check_out(const char *dir)
{
	const int r = gp_files_can_write(dir);

	if (r == 0)
		return GP_EXIT_OK;
	return gp_fail(r == -ENOTDIR ? GP_EXIT_BAD_INPUT : GP_EXIT_FAILED,
		       "--out: cannot write to %s: %s; give another folder", dir, strerror(-r));
}

static void put_command(FILE *out, const char *verb, const char *name, const struct gp_scenario *sc,
			const struct gp_options *opts)
{
	char time[GP_TIME_TEXT];

	gp_print_argument(out, verb, name);
	fprintf(out, " --seed %" PRIu64, sc->seed);
	if (opts->has_duration)
		gp_print_argument(out, " --duration ", gp_time_text(opts->duration_ns, time));
	if (opts->device)
		gp_print_argument(out, " --device ", opts->device);
	if (opts->policy)
		gp_print_argument(out, " --policy ", opts->policy);
	if (opts->only)
		gp_print_argument(out, " --only ", opts->only);
}

char *gp_make_command(const char *verb, const char *name, const struct gp_scenario *sc,
		      const struct gp_options *opts)
{
	char *text = NULL;
	size_t len;
	FILE *out;

	out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	put_command(out, verb, name, sc, opts);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* result.json, index.html and trace.json, or nothing. */
static int write_result(const char *dir, struct json_object *result, const char *also)
{
	struct json_object *trace = gp_trace_json(result);
	const char *json = gp_json_text(result);
	const char *events = gp_json_text(trace);
	char *html = NULL;
	int r;

	r = gp_page_make(json, also ? also : "", &html);
	if (r == 0) {
		const struct gp_file files[] = {
			{ "result.json", json, strlen(json) },
			{ "index.html", html, strlen(html) },
			{ "trace.json", events, strlen(events) },
		};

		r = gp_files_write(dir, files, sizeof(files) / sizeof(files[0]));
	}
	free(html);
	json_object_put(trace);
	return r;
}

static int show(struct json_object *result, const struct gp_options *opts, const struct gp_around *around)
{
	int r;

	if (opts->out) {
		r = write_result(opts->out, result, around->also);
		if (r < 0)
			return gp_fail(GP_EXIT_FAILED, "%s: cannot write the result: %s", opts->out,
				       strerror(-r));
	}
	if (!opts->json && around->before)
		puts(around->before);
	if (opts->json)
		puts(gp_json_text(result));
	else
		gp_table_print(result, gp_screen_width(stdout, GP_TABLE_WIDTH), stdout);
	if (opts->out)
		fprintf(opts->json ? stderr : stdout,
			"\nWrote %s/index.html (open it in a browser), result.json and trace.json (for ui.perfetto.dev).\n",
			opts->out);
	return GP_EXIT_OK;
}

static int run_study(struct study *st, const char *command, const struct gp_options *opts,
		     const struct gp_around *around)
{
	struct gp_result_input in = {
		.scenario = &st->scenario, .sources = &st->sources, .rows = &st->rows, .command = command
	};
	struct json_object *result;
	int code;

	if (gp_rows_run(&st->scenario, (uint32_t)opts->jobs, &st->rows, &st->diag) < 0)
		return gp_fail(GP_EXIT_FAILED, "%s", st->diag.text);
	result = gp_result_json(&in);
	code = show(result, opts, around);
	json_object_put(result);
	gp_rows_free(&st->rows);
	return code;
}

static int simulate(struct study *st, const char *name, const struct gp_options *opts,
		    const struct gp_around *around)
{
	char *command;
	int code, r;

	r = gp_sources_scenario(&st->sources, name, &st->scenario, &st->diag);
	if (r == 0)
		r = gp_scenario_apply(&st->scenario, &st->sources, opts, &st->diag);
	if (r < 0)
		return gp_fail(GP_EXIT_BAD_INPUT, "%s", st->diag.text);
	code = opts->out ? gp_check_out(opts->out) : GP_EXIT_OK;
	if (code != GP_EXIT_OK)
		return code;
	command = gp_make_command("gpreempt sim ", name, &st->scenario, opts);
	if (!command)
		return gp_fail(GP_EXIT_FAILED, "out of memory");
	code = run_study(st, command, opts, around);
	free(command);
	return code;
}

int gp_simulate(const char *scenario, const struct gp_options *opts, const struct gp_around *around)
{
	struct study *st = calloc(1, sizeof(*st));
	int code;

	if (!st)
		return gp_fail(GP_EXIT_FAILED, "out of memory");
	code = simulate(st, scenario, opts, around);
	gp_scenario_free(&st->scenario);
	gp_sources_free(&st->sources);
	free(st);
	return code;
}
