/* SPDX-License-Identifier: MIT */
#include "cli/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files.h"
#include "cli/output.h"
#include "cli/units.h"

struct study {
	struct gp_scenario scenario;
	struct gp_sources sources;
	struct gp_rows rows;
	struct gp_diag diag;
};

/* What the command line changes about the scenario. */
static int apply_options(struct study *st, const struct gp_options *opts)
{
	const struct gp_place only = { .file = "--only", .diag = &st->diag };
	const struct gp_place duration = { .file = "--duration", .diag = &st->diag };
	struct gp_scenario *sc = &st->scenario;
	int r = 0;

	if (opts->has_seed)
		sc->seed = opts->seed;
	if (opts->has_duration)
		sc->duration_ns = opts->duration_ns;
	if (opts->policy)
		snprintf(sc->policy, sizeof(sc->policy), "%s", opts->policy);
	if (opts->device)
		r = gp_sources_device(&st->sources, opts->device, sc, &st->diag);
	if (r == 0 && opts->only)
		r = gp_configs_parse(opts->only, &only, sc->configs, &sc->nconfigs);
	if (r == 0 && opts->has_duration)
		r = gp_scenario_check_times(sc, &duration);
	return r;
}

static int check_out(const char *dir, struct gp_diag *diag)
{
	const struct gp_place at = { .file = "--out", .diag = diag };
	int r = gp_files_can_write(dir);

	if (r < 0)
		return gp_complain(&at, "cannot write to %s: %s; give another folder", dir, strerror(-r));
	return 0;
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + used, size - used, fmt, args);
	va_end(args);
}

/* What to type to get the same result: --out, --json and --jobs do not change it. */
static void describe(const struct gp_scenario *sc, const struct gp_options *opts, char *text, size_t size)
{
	char time[GP_TIME_TEXT];

	append(text, size, " --seed %" PRIu64, sc->seed);
	if (opts->has_duration)
		append(text, size, " --duration %s", gp_time_text(opts->duration_ns, time));
	if (opts->device)
		append(text, size, " --device %s", opts->device);
	if (opts->policy)
		append(text, size, " --policy %s", opts->policy);
	if (opts->only)
		append(text, size, " --only %s", opts->only);
}

int gp_write_result(const char *dir, struct json_object *result)
{
	struct json_object *trace = gp_trace_json(result);
	const char *json = gp_json_text(result);
	const char *events = gp_json_text(trace);
	char *html = NULL;
	int r;

	r = gp_page_make(json, &html);
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

static int show(struct json_object *result, const struct gp_options *opts)
{
	int r;

	if (opts->out) {
		r = gp_write_result(opts->out, result);
		if (r < 0)
			return gp_fail(GP_EXIT_FAILED, "%s: cannot write the result: %s", opts->out,
				       strerror(-r));
	}
	if (opts->json)
		puts(gp_json_text(result));
	else
		gp_table_print(result, stdout);
	if (opts->out)
		fprintf(opts->json ? stderr : stdout,
			"\nWrote %s/index.html (open it in a browser), result.json and trace.json (for ui.perfetto.dev).\n",
			opts->out);
	return GP_EXIT_OK;
}

static int run_study(struct study *st, const char *command, const struct gp_options *opts)
{
	char text[1024];
	struct gp_result_input in = {
		.scenario = &st->scenario, .sources = &st->sources, .rows = &st->rows, .command = text
	};
	struct json_object *result;
	int code;

	if (gp_rows_run(&st->scenario, (uint32_t)opts->jobs, &st->rows, &st->diag) < 0)
		return gp_fail(GP_EXIT_FAILED, "%s", st->diag.text);
	snprintf(text, sizeof(text), "%s", command);
	describe(&st->scenario, opts, text, sizeof(text));
	result = gp_result_json(&in);
	code = show(result, opts);
	json_object_put(result);
	gp_rows_free(&st->rows);
	return code;
}

int gp_simulate(const char *scenario, const char *command, const struct gp_options *opts)
{
	struct study *st = calloc(1, sizeof(*st));
	int code, r;

	if (!st)
		return gp_fail(GP_EXIT_FAILED, "out of memory");
	r = gp_sources_scenario(&st->sources, scenario, &st->scenario, &st->diag);
	if (r == 0)
		r = apply_options(st, opts);
	if (r == 0 && opts->out)
		r = check_out(opts->out, &st->diag);
	if (r < 0)
		code = gp_fail(GP_EXIT_BAD_INPUT, "%s", st->diag.text);
	else
		code = run_study(st, command, opts);
	gp_scenario_free(&st->scenario);
	gp_sources_free(&st->sources);
	free(st);
	return code;
}
