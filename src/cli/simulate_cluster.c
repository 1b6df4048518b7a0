// SPDX-License-Identifier: MIT
#include "cli/simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/wrap.h"
#include "study/cluster.h"
#include "study/files.h"

struct study {
	struct gp_cluster cluster;
	struct gp_sources sources;
	struct gp_diag diag;
};

/* result.json and index.html, or nothing. */
static int write_result(const char *dir, struct json_object *result)
{
	const char *json = gp_json_text(result);
	char *html = NULL;
	int r;

	r = gp_page_make(json, "", &html);
	if (r == 0) {
		const struct gp_file files[] = {
			{ "result.json", json, strlen(json) },
			{ "index.html", html, strlen(html) },
		};

		r = gp_files_write(dir, files, sizeof(files) / sizeof(files[0]));
	}
	free(html);
	return r;
}

static int show(struct json_object *result, const struct gp_options *opts)
{
	int r;

	if (opts->out) {
		r = write_result(opts->out, result);
		if (r < 0)
			return gp_fail(GP_EXIT_FAILED, "%s: cannot write the result: %s", opts->out,
				       strerror(-r));
	}
	if (opts->json)
		puts(gp_json_text(result));
	else
		gp_table_print(result, gp_screen_width(stdout, GP_TABLE_WIDTH), stdout);
	if (opts->out)
		fprintf(opts->json ? stderr : stdout,
			"\nWrote %s/index.html (open it in a browser) and result.json.\n", opts->out);
	return GP_EXIT_OK;
}

static int run_study(struct study *st, const char *command, const struct gp_options *opts)
{
	struct gp_cluster_row *rows;
	struct json_object *result;
	size_t n;
	int code;

	if (gp_cluster_rows_run(&st->cluster, (uint32_t)opts->jobs, &rows, &n, &st->diag) < 0) {
		gp_cluster_rows_free(rows, n);
		return gp_fail(GP_EXIT_FAILED, "%s", st->diag.text[0] ? st->diag.text : "out of memory");
	}
	result = gp_cluster_json(&(struct gp_cluster_input){ .cluster = &st->cluster,
							     .sources = &st->sources,
							     .rows = rows,
							     .nrows = n,
							     .command = command });
	code = show(result, opts);
	json_object_put(result);
	gp_cluster_rows_free(rows, n);
	return code;
}

static int simulate(struct study *st, const struct gp_options *opts)
{
	char *command;
	int code, r;

	r = gp_sources_cluster(&st->sources, opts->cluster, &st->cluster, &st->diag);
	if (r == 0)
		r = gp_scenario_apply(&st->cluster.scenario, &st->sources, opts, &st->diag);
	if (r < 0)
		return gp_fail(GP_EXIT_BAD_INPUT, "%s", st->diag.text);
	code = opts->out ? gp_check_out(opts->out) : GP_EXIT_OK;
	if (code != GP_EXIT_OK)
		return code;
	command = gp_make_command("gpreempt sim --cluster ", opts->cluster, &st->cluster.scenario, opts);
	if (!command)
		return gp_fail(GP_EXIT_FAILED, "out of memory");
	code = run_study(st, command, opts);
	free(command);
	return code;
}

int gp_simulate_cluster(const struct gp_options *opts)
{
	struct study *st = calloc(1, sizeof(*st));
	int code;

	if (!st)
		return gp_fail(GP_EXIT_FAILED, "out of memory");
	code = simulate(st, opts);
	gp_cluster_free(&st->cluster);
	gp_sources_free(&st->sources);
	free(st);
	return code;
}
