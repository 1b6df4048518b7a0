// SPDX-License-Identifier: MIT
#include "bars.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static struct json_object *member(struct json_object *of, const char *name, struct json_object *made)
{
	struct json_object *there = json_object_object_get(of, name);

	if (!there)
		json_object_object_add(of, name, made);
	else
		json_object_put(made);
	return json_object_object_get(of, name);
}

void bars_open(struct bars *b, const char *bench)
{
	struct utsname system;

	*b = (struct bars){ .bench = bench, .json = json_object_new_object() };
	json_object_object_add(b->json, "bench", json_object_new_string(bench));
	if (uname(&system) == 0)
		json_object_object_add(b->json, "kernel", json_object_new_string(system.release));
	json_object_object_add(b->json, "cores", json_object_new_int64(sysconf(_SC_NPROCESSORS_ONLN)));
}

void bars_parameter(struct bars *b, const char *name, uint64_t value)
{
	struct json_object *all = member(b->json, "parameters", json_object_new_object());

	json_object_object_add(all, name, json_object_new_int64((int64_t)value));
}

static struct json_object *figure(struct bars *b, const char *what, double value, const char *unit)
{
	struct json_object *one = json_object_new_object();

	json_object_object_add(one, "what", json_object_new_string(what));
	json_object_object_add(one, "value", json_object_new_double(value));
	json_object_object_add(one, "unit", json_object_new_string(unit));
	json_object_array_add(member(b->json, "figures", json_object_new_array()), one);
	printf("%s: %-56s %10.2f %-12s", b->bench, what, value, unit);
	return one;
}

static void compare(struct bars *b, struct json_object *one, const char *how, double bar, int is_met)
{
	json_object_object_add(one, how, json_object_new_double(bar));
	json_object_object_add(one, "met", json_object_new_boolean(is_met));
	printf(" %s %g: %s\n", strcmp(how, "at_most") == 0 ? "at most" : "at least", bar,
	       is_met ? "met" : "MISSED");
	fflush(stdout);
	b->missed |= !is_met;
}

void bars_at_most(struct bars *b, const char *what, double value, const char *unit, double bar)
{
	compare(b, figure(b, what, value, unit), "at_most", bar, value <= bar);
}

void bars_at_least(struct bars *b, const char *what, double value, const char *unit, double bar)
{
	compare(b, figure(b, what, value, unit), "at_least", bar, value >= bar);
}

void bars_figure(struct bars *b, const char *what, double value, const char *unit)
{
	(void)figure(b, what, value, unit);
	printf("\n");
}

/* Of each bucket that is not empty its lower bound and its count. */
static struct json_object *buckets(const struct gp_hist *h)
{
	struct json_object *all = json_object_new_array();

	for (size_t i = 0; i < GP_HIST_BUCKETS; i++) {
		struct json_object *one;
		uint64_t low, high;

		if (!h->bucket[i])
			continue;
		gp_hist_bounds(i, &low, &high);
		one = json_object_new_array();
		json_object_array_add(one, json_object_new_int64((int64_t)low));
		json_object_array_add(one, json_object_new_int64((int64_t)h->bucket[i]));
		json_object_array_add(all, one);
	}
	return all;
}

void bars_latency(struct bars *b, const char *what, const struct gp_hist *h)
{
	struct json_object *all = member(b->json, "histograms_ns", json_object_new_object());
	char text[80];

	json_object_object_add(all, what, buckets(h));
	snprintf(text, sizeof(text), "%s, p50", what);
	bars_figure(b, text, (double)gp_hist_quantile(h, 5000) / 1e3, "us");
	snprintf(text, sizeof(text), "%s, p99", what);
	bars_figure(b, text, (double)gp_hist_quantile(h, 9900) / 1e3, "us");
}

int bars_close(struct bars *b, const char *file)
{
	int r = file ? json_object_to_file_ext(file, b->json, JSON_C_TO_STRING_PRETTY) : 0;

	json_object_put(b->json);
	if (r == 0)
		return b->missed;
	fprintf(stderr, "%s: cannot write %s\n", b->bench, file);
	return 1;
}
