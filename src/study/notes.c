// SPDX-License-Identifier: MIT
/* What stands below the table. A page says the same of the same JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "model/device.h"
#include "study/output.h"

#define NOTE 1024
#define NARROWEST 40

struct paper {
	FILE *out;
	size_t width;
};

void gp_note_print(const char *text, size_t width, FILE *out)
{
	size_t room = width;

	while (strlen(text) > room) {
		size_t len = room;

		while (len && text[len] != ' ')
			len--;
		if (!len)
			break;
		fprintf(out, "%.*s\n  ", (int)len, text);
		text += len + 1;
		room = width - 2;
	}
	fprintf(out, "%s\n", text);
}

static void print_wrapped(const struct paper *p, const char *text)
{
	gp_note_print(text, p->width, p->out);
}

__attribute__((format(printf, 2, 3))) static void append(char text[NOTE], const char *fmt, ...)
{
	const size_t used = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + used, NOTE - used, fmt, args);
	va_end(args);
}

/* 12,345 */
static const char *count_text(double value, char text[32])
{
	char digits[24];
	const int len = snprintf(digits, sizeof(digits), "%.0f", value);
	size_t used = 0;

	for (int i = 0; i < len && i < (int)sizeof(digits) - 1; i++) {
		if (i && (len - i) % 3 == 0)
			text[used++] = ',';
		text[used++] = digits[i];
	}
	text[used] = '\0';
	return text;
}

static bool same_name(struct json_object *a, struct json_object *b)
{
	char one[64], other[64];

	return !strcmp(gp_row_name(a, one, sizeof(one)), gp_row_name(b, other, sizeof(other)));
}

/* Rows of one name, over a sweep: the worst of them by some figure, and how many have it. */
struct worst {
	struct json_object *row; /* NULL: none has it */
	size_t bad;
};

typedef double badness(struct json_object *row); /* 0: nothing to say */

static struct worst find_worst(struct json_object *rows, struct json_object *like, badness *bad)
{
	struct worst w = { 0 };

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		if (!same_name(row, like) || !(bad(row) > 0))
			continue;
		w.bad++;
		if (!w.row || bad(row) > bad(w.row))
			w.row = row;
	}
	return w;
}

static void begin_note(struct json_object *result, struct json_object *row, char note[NOTE])
{
	char name[64], sweep[64];

	note[0] = '\0';
	append(note, "%s", gp_row_name(row, name, sizeof(name)));
	if (*gp_sweep_text(result, row, sweep, sizeof(sweep)))
		append(note, ", %s", sweep);
	append(note, ": ");
}

static void end_note(const struct paper *p, const struct worst *w, char note[NOTE])
{
	if (w->bad > 1)
		append(note, " (the worst of %zu such)", w->bad);
	append(note, ".");
	print_wrapped(p, note);
}

static double waiting(struct json_object *row)
{
	if (json_object_get_boolean(gp_json_get(row, "keeps_up")))
		return 0;
	return gp_json_get_double(row, "unfinished") / gp_json_get_double(row, "requests");
}

static void say_waiting(const struct paper *p, struct json_object *result, const struct worst *w)
{
	char note[NOTE], open[32], all[32];

	begin_note(result, w->row, note);
	append(note,
	       "%s of %s requests were still waiting at the end: online cannot keep up, and its latency grows "
	       "with the duration",
	       count_text(gp_json_get_double(w->row, "unfinished"), open),
	       count_text(gp_json_get_double(w->row, "requests"), all));
	end_note(p, w, note);
}

static double refused(struct json_object *row)
{
	return *gp_json_get_text(row, "reason") ? 1 + gp_json_get_double(row, "limited")
						: gp_json_get_double(row, "limited");
}

static void say_refused(const struct paper *p, struct json_object *result, const struct worst *w)
{
	const double limited = gp_json_get_double(w->row, "limited");
	const char *reason = gp_json_get_text(w->row, "reason");
	char note[NOTE], number[32];

	begin_note(result, w->row, note);
	append(note, "%s", reason);
	if (limited > 0)
		append(note, "%sthe rate limit refused %s preemptions", *reason ? "; " : "",
		       count_text(limited, number));
	end_note(p, w, note);
}

static bool is_first_of_name(struct json_object *rows, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (same_name(json_object_array_get_idx(rows, j), json_object_array_get_idx(rows, i)))
			return false;
	return true;
}

static void print_odd_rows(const struct paper *p, struct json_object *result, struct json_object *rows)
{
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		struct worst w;

		if (!is_first_of_name(rows, i))
			continue;
		w = find_worst(rows, row, waiting);
		if (w.row)
			say_waiting(p, result, &w);
		w = find_worst(rows, row, refused);
		if (w.row)
			say_refused(p, result, &w);
	}
}

/* Every run ends while something is open; worth a line, not one per row. */
static void print_open(const struct paper *p, struct json_object *rows)
{
	char note[NOTE] = "", number[32], all[32];
	double most = 0, of = 0;

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		double open = gp_json_get_double(row, "unfinished");

		if (waiting(row) > 0 || !(open > most))
			continue;
		most = open;
		of = gp_json_get_double(row, "requests");
	}
	if (most == 0)
		return;
	append(note, "Open when a row ended: at most %s of %s requests; their latency counts as it stands.",
	       count_text(most, number), count_text(of, all));
	print_wrapped(p, note);
}

/* Whether some row did run, but too short for its tail. */
static bool tail_is_missing(struct json_object *rows)
{
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		if (gp_json_get_double(row, "requests") > 0 &&
		    isnan(gp_json_get_double(row, "latency_ns/p999")))
			return true;
	}
	return false;
}

/* Whether no earlier row has the same text there. */
static bool is_first(struct json_object *rows, size_t i, const char *path)
{
	const char *text = gp_json_get_text(json_object_array_get_idx(rows, i), path);

	for (size_t j = 0; j < i; j++)
		if (!strcmp(gp_json_get_text(json_object_array_get_idx(rows, j), path), text))
			return false;
	return true;
}

/* "throttle, gate": all that need the same. */
static void append_names(struct json_object *rows, const char *needs, char note[NOTE])
{
	const char *between = " ";

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		if (strcmp(gp_json_get_text(row, "needs"), needs) || !is_first(rows, i, "config"))
			continue;
		append(note, "%s%s", between, gp_json_get_text(row, "config"));
		between = ", ";
	}
}

static void print_needs(const struct paper *p, struct json_object *rows)
{
	char note[NOTE] = "On a real AMD GPU:";
	bool any = false;

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		const char *needs = gp_json_get_text(json_object_array_get_idx(rows, i), "needs");

		if (!*needs || !is_first(rows, i, "needs"))
			continue;
		append(note, "%s", any ? ";" : "");
		append_names(rows, needs, note);
		append(note, ": %s", needs);
		any = true;
	}
	append(note, ".");
	if (any)
		print_wrapped(p, note);
}

int gp_result_is_amd(struct json_object *result)
{
	struct json_object *device = gp_json_get(result, "device");

	return device && json_object_get_int(gp_json_get(device, "sharing")) == GPM_CONCURRENT;
}

/* The model of an NVIDIA GPU: which of its rows were measured on a card, and where. */
static void print_measured(const struct paper *p, struct json_object *result)
{
	struct json_object *device = gp_json_get(result, "device");

	if (device && json_object_get_int(gp_json_get(device, "sharing")) == GPM_TIMESLICE)
		print_wrapped(p,
			      "On a real NVIDIA GPU (stock driver): exclusive, native and yield were "
			      "measured under open loads of 50 to 500 requests/s, the last with parking and "
			      "without (docs/BENCH.md). yield+hints parks here too, unless the scenario says "
			      "park = 0.");
}

/* What the columns are. */
static void print_words(const struct paper *p, bool is_amd)
{
	const bool is_wide = p->width >= GP_TABLE_WIDTH - 2;

	fputc('\n', p->out);
	if (is_amd)
		print_wrapped(p, "on AMD: what a real AMD GPU needs for this row; \"" GP_ON_STOCK_AMD
				 "\" is what gpreempt does today, with nothing changed.");
	print_wrapped(
		p,
		is_wide ? "n: requests. p50 to p99.9: latency, from intended arrival to completion. ratio: p99 "
			  "over exclusive's. SLO: requests within 1.2 times exclusive's p99."
			: "p50, p99: latency, from intended arrival to completion. ratio: p99 over exclusive's.");
	print_wrapped(
		p,
		is_wide ? "be_norm: offline work, as part of what it does alone. harvest: be_norm over the time "
			  "that online leaves free."
			: "be_norm: offline work, as part of what it does alone.");
	print_wrapped(
		p,
		is_wide ? "stop50, stop99: request or hint to last offline wave off. cycles: device cycles per "
			  "request."
			: "stop50, stop99: request or hint to last offline wave off. A wider terminal shows "
			  "more.");
}

void gp_notes_print(struct json_object *result, int width, FILE *out)
{
	const int room = width > GP_TABLE_WIDTH ? GP_TABLE_WIDTH : width < NARROWEST ? NARROWEST : width;
	const struct paper p = { .out = out, .width = (size_t)room - 2 };
	struct json_object *rows = gp_json_get(result, "rows");

	print_words(&p, gp_result_is_amd(result) && width >= GP_TABLE_AMD);
	if (tail_is_missing(rows))
		print_wrapped(&p,
			      "-: not known; a p99 takes 1,000 values, a p99.9 takes 10,000. Give a longer "
			      "--duration.");
	if (gp_result_is_amd(result))
		print_needs(&p, rows);
	print_measured(&p, result);
	print_open(&p, rows);
	print_odd_rows(&p, result, rows);
}
