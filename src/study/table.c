// SPDX-License-Identifier: MIT
/* The table of a result, at most GP_TABLE_WIDTH columns wide. */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "study/output.h"
#include "base/units.h"

#define NAME_WIDTH 23
#define AMD_WIDTH 13 /* with a blank before it */
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

enum kind { COUNT, TIME, FACTOR, RATIO, PERCENT };

struct column {
	const char *title;
	const char *unit; /* below the title; a time's is chosen by its values */
	const char *path; /* in a row */
	enum kind kind;
	int width;
	int least; /* columns of the terminal that it is shown on */
};

static const struct column columns[] = {
	{ "n", "", "requests", COUNT, 7, GP_TABLE_WIDTH },
	{ "p50", "", "latency_ns/p50", TIME, 7, 0 },
	{ "p95", "", "latency_ns/p95", TIME, 7, GP_TABLE_WIDTH },
	{ "p99", "", "latency_ns/p99", TIME, 7, 0 },
	{ "p99.9", "", "latency_ns/p999", TIME, 7, GP_TABLE_WIDTH },
	{ "ratio", "p99", "ratio_p99", RATIO, 6, 43 },
	{ "SLO%", "1.2x", "slo_attainment/1.2", PERCENT, 6, GP_TABLE_WIDTH },
	{ "be_norm", "", "be_norm", FACTOR, 8, 51 },
	{ "harvest", "", "harvest", FACTOR, 8, GP_TABLE_WIDTH },
	{ "stop50", "", "preempt_ns/p50", TIME, 7, 58 },
	{ "stop99", "", "preempt_ns/p99", TIME, 7, 65 },
	{ "cycles", "/req", "cycles_per_request", FACTOR, 7, GP_TABLE_WIDTH },
};

#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))

struct scale {
	const char *unit;
	double ns;
};

struct sheet {
	FILE *out;
	bool is_amd;
	int screen;   /* how many columns it has */
	bool is_bold; /* where it matters */
	struct scale scales[NCOLUMNS];
};

static bool is_shown(const struct sheet *s, const struct column *col)
{
	return s->screen >= col->least;
}

/* The unit of a column of times: its largest value fits six characters. */
static struct scale scale_of(struct json_object *rows, const char *path)
{
	static const struct scale units[] = { { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	struct scale scale = units[2];
	double largest = 0;

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		double value = gp_json_get_double(json_object_array_get_idx(rows, i), path);

		if (value > largest) /* never true of NAN */
			largest = value;
	}
	if (largest == 0)
		scale = (struct scale){ "", 1 };
	else if (largest < 1e7)
		scale = units[0];
	else if (largest < 1e12)
		scale = units[1];
	return scale;
}

/* As many as six characters hold, at most three: one slow row must not round away the others. */
static int decimals_of(double value)
{
	int decimals = 3;

	while (decimals && value >= pow(10, 5 - decimals))
		decimals--;
	return decimals;
}

static void print_value(const struct sheet *s, size_t i, struct json_object *row)
{
	const struct column *col = &columns[i];
	double value = gp_json_get_double(row, col->path);

	if (col->kind == RATIO && !json_object_get_boolean(gp_json_get(row, "keeps_up")))
		fprintf(s->out, "%*s", col->width, "grows");
	else if (isnan(value))
		fprintf(s->out, "%*s", col->width, "-");
	else if (col->kind == TIME)
		fprintf(s->out, "%*.*f", col->width, decimals_of(value / s->scales[i].ns),
			value / s->scales[i].ns);
	else if (col->kind == PERCENT)
		fprintf(s->out, "%*.1f", col->width, value * 100);
	else if (col->kind == COUNT)
		fprintf(s->out, "%*.0f", col->width, value);
	else
		fprintf(s->out, "%*.*f", col->width, value < 1000 ? 2 : 0, value);
}

static void print_heads(const struct sheet *s, const char *name, const char *amd, bool is_unit)
{
	fprintf(s->out, "%-*s", NAME_WIDTH, name);
	if (s->is_amd)
		fprintf(s->out, " %-*s", AMD_WIDTH - 1, amd);
	for (size_t i = 0; i < NCOLUMNS; i++) {
		const char *unit = columns[i].kind == TIME ? s->scales[i].unit : columns[i].unit;

		if (is_shown(s, &columns[i]))
			fprintf(s->out, "%*s", columns[i].width, is_unit ? unit : columns[i].title);
	}
	fputc('\n', s->out);
}

const char *gp_row_name(struct json_object *row, char *name, size_t size)
{
	snprintf(name, size, "%s%s", gp_json_get_text(row, "config"),
		 json_object_get_boolean(gp_json_get(row, "hints")) ? "+hints" : "");
	return name;
}

static void print_row(const struct sheet *s, struct json_object *row)
{
	const char *amd = gp_json_get_text(row, "on_amd");
	const bool is_bold = s->is_bold && !strcmp(amd, GP_ON_STOCK_AMD);
	char name[64];

	fprintf(s->out, "%s%-*s", is_bold ? BOLD : "", NAME_WIDTH, gp_row_name(row, name, sizeof(name)));
	if (s->is_amd)
		fprintf(s->out, " %-*s", AMD_WIDTH - 1, amd);
	for (size_t i = 0; i < NCOLUMNS; i++)
		if (is_shown(s, &columns[i]))
			print_value(s, i, row);
	fprintf(s->out, "%s\n", is_bold ? PLAIN : "");
}

const char *gp_sweep_text(struct json_object *result, struct json_object *row, char *text, size_t size)
{
	const char *sweep = gp_json_get_text(result, "scenario/sweep");
	const double value = gp_json_get_double(row, "sweep_value");
	char length[GP_TIME_TEXT];

	text[0] = '\0';
	if (isnan(value))
		return text;
	if (!strcmp(sweep, "load"))
		snprintf(text, size, "load %g%%", value / 10);
	else if (!strcmp(sweep, "length"))
		snprintf(text, size, "kernels of %s", gp_time_text((uint64_t)value, length));
	else
		snprintf(text, size, "%g offline queue%s", value, value == 1 ? "" : "s");
	return text;
}

static void print_groups(FILE *out, struct json_object *groups)
{
	for (size_t i = 0; i < json_object_array_length(groups); i++) {
		struct json_object *g = json_object_array_get_idx(groups, i);
		double rate = gp_json_get_double(g, "rate_per_s");

		fprintf(out, "  %s %s: %.0f x %s, %s", gp_json_get_text(g, "class"),
			gp_json_get_text(g, "name"), gp_json_get_double(g, "clients"),
			gp_json_get_text(g, "work/name"), gp_json_get_text(g, "arrival"));
		if (!isnan(rate))
			fprintf(out, " %g/s each", rate);
		fputc('\n', out);
	}
}

static void print_title(FILE *out, struct json_object *result)
{
	char duration[GP_TIME_TEXT];

	fprintf(out, "Scenario %s on %s, simulated\n  %s, policy %s, seed %.0f\n",
		gp_json_get_text(result, "scenario/name"), gp_json_get_text(result, "device/title"),
		gp_time_text((uint64_t)gp_json_get_double(result, "scenario/duration_ns"), duration),
		gp_json_get_text(result, "scenario/policy"), gp_json_get_double(result, "seed"));
	print_groups(out, gp_json_get(result, "scenario/groups"));
	fputc('\n', out);
}

void gp_table_print(struct json_object *result, int width, FILE *out)
{
	struct json_object *rows = gp_json_get(result, "rows");
	struct sheet s = { .out = out,
			   .is_amd = gp_result_is_amd(result) && width >= GP_TABLE_AMD,
			   .screen = width,
			   .is_bold = isatty(fileno(out)) };
	char last[64] = "", sweep[64];

	if (gp_result_is_cluster(result)) {
		gp_cluster_table_print(result, width, out);
		return;
	}
	for (size_t i = 0; i < NCOLUMNS; i++)
		s.scales[i] = scale_of(rows, columns[i].path);
	print_title(out, result);
	print_heads(&s, "simulated", "on AMD", false);
	print_heads(&s, "", "", true);
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		if (strcmp(gp_sweep_text(result, row, sweep, sizeof(sweep)), last))
			fprintf(out, "%s\n", sweep);
		strcpy(last, sweep);
		print_row(&s, row);
	}
	gp_notes_print(result, width, out);
}
