// SPDX-License-Identifier: MIT
/* The table of a cluster's result, and what its words mean. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "study/cluster.h"

#define NAME_WIDTH 23

struct column {
	const char *title;
	const char *unit;
	const char *path; /* in a row */
	double scale;
	int decimals;
	int width;
	int least; /* columns of the terminal that it is shown on */
};

static const struct column columns[] = {
	{ "harvested", "GPU-h", "all/harvested_gpu_hours", 1, 2, 10, 0 },
	{ "harvest", "", "all/harvest", 1, 2, 8, 52 },
	{ "SLO", "%", "all/slo_attainment", 100, 2, 7, 0 },
	{ "p99", "ms", "all/latency_ns/p99", 1e-6, 2, 8, 60 },
	{ "wait50", "s", "jobs/wait_s/p50", 1, 0, 7, 74 },
	{ "wait90", "s", "jobs/wait_s/p90", 1, 0, 7, 0 },
	{ "wait99", "s", "jobs/wait_s/p99", 1, 0, 7, 81 },
	{ "slow50", "x", "jobs/slowdown/p50", 1, 1, 7, 88 },
	{ "slow90", "x", "jobs/slowdown/p90", 1, 1, 7, 95 },
	{ "done", "jobs", "jobs/finished", 1, 0, 7, 102 },
	{ "runs", "jobs", "jobs/running", 1, 0, 6, 108 },
	{ "waits", "jobs", "jobs/waiting", 1, 0, 6, 114 },
};

#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))

static const char *const words[] = {
	"harvested: offline work, in hours of a GPU that does nothing else. harvest: the same, as part of the time that "
	"services leave. SLO: requests within their service's. p99: of all requests, from intended arrival.",
	"wait: from submission to start; of a job that waits still, until the end. slow: submission to end, over what the "
	"job takes on GPUs of its own; of jobs that are done.",
};

static void print_heads(FILE *out, int width, const char *first, const char *second, int is_unit)
{
	fprintf(out, "%-*s %-9s", NAME_WIDTH, first, second);
	for (size_t i = 0; i < NCOLUMNS; i++)
		if (width >= columns[i].least)
			fprintf(out, "%*s", columns[i].width, is_unit ? columns[i].unit : columns[i].title);
	fputc('\n', out);
}

static void print_row(struct json_object *row, int width, FILE *out)
{
	const int is_exclusive = !strcmp(gp_json_get_text(row, "config"), "exclusive");
	char name[64];

	fprintf(out, "%-*s %-9s", NAME_WIDTH, gp_row_name(row, name, sizeof(name)),
		gp_json_get_text(row, "placement"));
	for (size_t i = 0; i < NCOLUMNS; i++) {
		double value = gp_json_get_double(row, columns[i].path) * columns[i].scale;

		if (width < columns[i].least)
			continue;
		/* With a space before it a long number does not run into another. */
		if (isnan(value) || (is_exclusive && i == 0))
			fprintf(out, " %*s", columns[i].width - 1, "-");
		else
			fprintf(out, " %*.*f", columns[i].width - 1, value < 10000 ? columns[i].decimals : 0,
				value);
	}
	fputc('\n', out);
}

static void print_services(struct json_object *services, FILE *out)
{
	char slo[GP_TIME_TEXT];

	for (size_t i = 0; i < json_object_array_length(services); i++) {
		struct json_object *s = json_object_array_get_idx(services, i);
		double rate = gp_json_get_double(s, "rate_per_s"), slo_ns = gp_json_get_double(s, "slo_ns");

		fprintf(out, "  service %s: %.0f GPUs, class %s, %.0f x %s", gp_json_get_text(s, "name"),
			gp_json_get_double(s, "gpus"), gp_json_get_text(s, "class"),
			gp_json_get_double(s, "clients"), gp_json_get_text(s, "work"));
		if (!isnan(rate))
			fprintf(out, " %g/s each", rate);
		if (json_object_get_boolean(gp_json_get(s, "has_curve")))
			fprintf(out, ", by its curve");
		if (gp_json_get_double(s, "bursts") > 0)
			fprintf(out, ", %.0f bursts", gp_json_get_double(s, "bursts"));
		if (slo_ns > 0)
			fprintf(out, ", SLO %s", gp_time_text((uint64_t)slo_ns, slo));
		fputc('\n', out);
	}
}

static void print_title(struct json_object *result, FILE *out)
{
	struct json_object *cl = gp_json_get(result, "cluster");
	char duration[GP_TIME_TEXT];

	fprintf(out, "Cluster %s of %.0f x %s, simulated\n  %s, policy %s, seed %.0f\n",
		gp_json_get_text(cl, "name"), gp_json_get_double(cl, "gpus"),
		gp_json_get_text(result, "device/title"),
		gp_time_text((uint64_t)gp_json_get_double(cl, "duration_ns"), duration),
		gp_json_get_text(cl, "policy"), gp_json_get_double(result, "seed"));
	print_services(gp_json_get(cl, "services"), out);
	fprintf(out, "  jobs: %.0f of the trace, %s, at most %.0f on a GPU\n\n",
		gp_json_get_double(cl, "jobs_in_trace"), gp_json_get_text(cl, "job_work"),
		gp_json_get_double(cl, "slots"));
}

static void print_left_out(struct json_object *cl, struct json_object *rows, FILE *out)
{
	static const char *const reasons[][2] = {
		{ "without_gpu", "had no GPU" },
		{ "never_ran", "never ran" },
		{ "before_begin", "came before trace_begin" },
		{ "after_end", "came after the end" },
	};
	double refused = 0;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (gp_json_get_double(cl, reasons[i][0]) > 0)
			fprintf(out, "Left out: %.0f jobs of the trace that %s.\n",
				gp_json_get_double(cl, reasons[i][0]), reasons[i][1]);
	for (size_t i = 0; i < json_object_array_length(rows); i++)
		refused =
			fmax(refused, gp_json_get_double(json_object_array_get_idx(rows, i), "jobs/refused"));
	if (refused > 0)
		fprintf(out, "Refused: %.0f jobs that ask for more GPUs than there are.\n", refused);
}

void gp_cluster_table_print(struct json_object *result, int width, FILE *out)
{
	struct json_object *rows = gp_json_get(result, "rows");

	print_title(result, out);
	print_heads(out, width, "simulated", "placement", 0);
	print_heads(out, width, "", "", 1);
	for (size_t i = 0; i < json_object_array_length(rows); i++)
		print_row(json_object_array_get_idx(rows, i), width, out);
	fputc('\n', out);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		gp_note_print(words[i], (size_t)width, out);
	print_left_out(gp_json_get(result, "cluster"), rows, out);
}
