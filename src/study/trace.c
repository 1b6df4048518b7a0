// SPDX-License-Identifier: MIT
/* The timeline of a row, in the result and as a trace for a viewer. */
#include <inttypes.h>
#include <string.h>

#include "study/output.h"

static const char *const span_names[] = { "request", "work", "suspended", "cycle", "hint" };

static const char *lane_class(uint32_t client_class)
{
	if (client_class == GP_CLASS_UNKNOWN)
		return "device";
	return client_class == GP_CLASS_ONLINE ? "online" : "offline";
}

static struct json_object *span_json(const struct gp_span *span)
{
	struct json_object *o = json_object_new_array();

	json_object_array_add(o, json_object_new_uint64(span->lane));
	json_object_array_add(o, json_object_new_uint64(span->begin_ns));
	json_object_array_add(o, json_object_new_uint64(span->end_ns));
	json_object_array_add(o, json_object_new_string(span_names[span->kind]));
	return o;
}

struct json_object *gp_timeline_json(const struct gp_run_result *run)
{
	struct json_object *o = json_object_new_object();
	struct json_object *lanes = json_object_new_array();
	struct json_object *spans = json_object_new_array();

	for (uint32_t i = 0; i < run->nlanes; i++) {
		struct json_object *lane = json_object_new_object();

		gp_json_add_text(lane, "name", run->lanes[i].name);
		gp_json_add_text(lane, "class", lane_class(run->lanes[i].client_class));
		json_object_array_add(lanes, lane);
	}
	for (uint32_t i = 0; i < run->nspans; i++)
		json_object_array_add(spans, span_json(&run->spans[i]));
	gp_json_add_int(o, "from_ns", run->timeline_from_ns);
	gp_json_add_int(o, "to_ns", run->timeline_to_ns);
	json_object_object_add(o, "lanes", lanes);
	json_object_object_add(o, "spans", spans);
	return o;
}

static struct json_object *event(const char *phase, const char *name, uint64_t pid, uint64_t tid)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "ph", phase);
	gp_json_add_text(o, "name", name);
	gp_json_add_int(o, "pid", pid);
	gp_json_add_int(o, "tid", tid);
	return o;
}

/* A viewer's name for a row or a lane. */
static void add_name(struct json_object *events, const char *kind, const char *name, uint64_t pid,
		     uint64_t tid)
{
	struct json_object *o = event("M", kind, pid, tid);
	struct json_object *args = json_object_new_object();

	gp_json_add_text(args, "name", name);
	json_object_object_add(o, "args", args);
	json_object_array_add(events, o);
}

/* Viewers count in microseconds; the decimals keep the ns. */
static void add_us(struct json_object *o, const char *key, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
	json_object_object_add(o, key, json_object_new_double_s((double)ns / 1000, text));
}

static struct json_object *event_at(struct json_object *events, const char *phase, const char *name,
				    uint64_t pid, uint64_t tid, uint64_t ns)
{
	struct json_object *o = event(phase, name, pid, tid);

	gp_json_add_text(o, "cat", "simulated");
	add_us(o, "ts", ns);
	json_object_array_add(events, o);
	return o;
}

/* What a client has open may overlap, and on one lane a viewer drops what overlaps: a track of its own. */
static void add_open(struct json_object *events, const char *name, uint64_t pid, uint64_t tid, uint64_t begin,
		     uint64_t end)
{
	const uint64_t id = json_object_array_length(events) + 1;

	gp_json_add_int(event_at(events, "b", name, pid, tid, begin), "id", id);
	gp_json_add_int(event_at(events, "e", name, pid, tid, end), "id", id);
}

static void add_span(struct json_object *events, struct json_object *lanes, struct json_object *span,
		     uint64_t pid)
{
	uint64_t lane = json_object_get_uint64(json_object_array_get_idx(span, 0));
	uint64_t begin = json_object_get_uint64(json_object_array_get_idx(span, 1));
	uint64_t end = json_object_get_uint64(json_object_array_get_idx(span, 2));
	const char *kind = json_object_get_string(json_object_array_get_idx(span, 3));
	char name[96];

	if (strcmp(kind, "request") != 0 && strcmp(kind, "hint") != 0) {
		add_us(event_at(events, "X", kind, pid, lane + 1, begin), "dur", end - begin);
		return;
	}
	snprintf(name, sizeof(name), "%s %s",
		 gp_json_get_text(json_object_array_get_idx(lanes, lane), "name"), kind);
	add_open(events, name, pid, lane + 1, begin, end);
}

static void add_row(struct json_object *events, struct json_object *row, uint64_t pid)
{
	struct json_object *lanes = gp_json_get(row, "timeline/lanes");
	struct json_object *spans = gp_json_get(row, "timeline/spans");
	char name[64];

	snprintf(name, sizeof(name), "%s%s (simulated)", gp_json_get_text(row, "config"),
		 json_object_get_boolean(gp_json_get(row, "hints")) ? "+hints" : "");
	add_name(events, "process_name", name, pid, 0);
	for (size_t i = 0; i < json_object_array_length(lanes); i++)
		add_name(events, "thread_name", gp_json_get_text(json_object_array_get_idx(lanes, i), "name"),
			 pid, i + 1);
	for (size_t i = 0; i < json_object_array_length(spans); i++)
		add_span(events, lanes, json_object_array_get_idx(spans, i), pid);
}

struct json_object *gp_trace_json(struct json_object *result)
{
	struct json_object *o = json_object_new_object();
	struct json_object *other = json_object_new_object();
	struct json_object *events = json_object_new_array();
	struct json_object *rows = gp_json_get(result, "rows");

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		if (gp_json_get(row, "timeline"))
			add_row(events, row, i + 1);
	}
	gp_json_add_text(other, "command", gp_json_get_text(result, "command"));
	json_object_object_add(other, "simulated", json_object_new_boolean(1));
	json_object_object_add(o, "traceEvents", events);
	gp_json_add_text(o, "displayTimeUnit", "ms");
	json_object_object_add(o, "otherData", other);
	return o;
}
