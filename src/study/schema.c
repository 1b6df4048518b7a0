// SPDX-License-Identifier: MIT
/* Checks that a file is a result, before a table or a page is made of it. */
#include <errno.h>
#include <json-c/json_visit.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "study/json.h"

enum kind { TEXT, TEXT_OR_NONE, NUMBER, NUMBER_OR_NULL, FLAG, LIST, OBJECT, OBJECT_OR_NULL };

struct field {
	const char *path;
	enum kind kind;
};

static const struct field top_fields[] = {
	{ "gpreempt", TEXT },
	{ "command", TEXT },
	{ "simulated", FLAG },
	{ "seed", NUMBER },
	{ "scenario", OBJECT },
	{ "scenario/name", TEXT },
	{ "scenario/device", TEXT },
	{ "scenario/policy", TEXT },
	{ "scenario/duration_ns", NUMBER },
	{ "scenario/warmup_ns", NUMBER },
	{ "scenario/groups", LIST },
	{ "device", OBJECT },
	{ "device/title", TEXT },
	{ "rows", LIST },
	{ NULL, TEXT },
};

static const struct field group_fields[] = {
	{ "name", TEXT },    { "class", TEXT },  { "clients", NUMBER }, { "queues", NUMBER },
	{ "arrival", TEXT }, { "work", OBJECT }, { "work/name", TEXT }, { "rate_per_s", NUMBER_OR_NULL },
	{ NULL, TEXT },
};

static const struct field row_fields[] = {
	{ "config", TEXT },
	{ "hints", FLAG },
	{ "sweep_value", NUMBER_OR_NULL },
	{ "mechanism", TEXT },
	{ "needs", TEXT },
	{ "on_amd", TEXT_OR_NONE }, /* not in the first results */
	{ "requests", NUMBER },
	{ "unfinished", NUMBER },
	{ "keeps_up", FLAG },
	{ "latency_ns", OBJECT },
	{ "latency_ns/p50", NUMBER_OR_NULL },
	{ "latency_ns/p95", NUMBER_OR_NULL },
	{ "latency_ns/p99", NUMBER_OR_NULL },
	{ "latency_ns/p999", NUMBER_OR_NULL },
	{ "ratio_p50", NUMBER_OR_NULL },
	{ "ratio_p99", NUMBER_OR_NULL },
	{ "slo_attainment", OBJECT },
	{ "be_norm", NUMBER_OR_NULL },
	{ "harvest", NUMBER_OR_NULL },
	{ "preempt_ns", OBJECT },
	{ "preempt_ns/p50", NUMBER_OR_NULL },
	{ "preempt_ns/p99", NUMBER_OR_NULL },
	{ "cycles_per_request", NUMBER_OR_NULL },
	{ "limited", NUMBER },
	{ "reason", TEXT },
	{ "histogram", LIST },
	{ "throughput", OBJECT },
	{ "timeline", OBJECT_OR_NULL },
	{ NULL, TEXT },
};

static int is_kind(struct json_object *o, enum kind kind)
{
	const enum json_type type = json_object_get_type(o);

	switch (kind) {
	case TEXT:
		return type == json_type_string;
	case TEXT_OR_NONE:
		return type == json_type_string || type == json_type_null;
	case FLAG:
		return type == json_type_boolean;
	case LIST:
		return type == json_type_array;
	case OBJECT:
		return type == json_type_object;
	case OBJECT_OR_NULL:
		return type == json_type_object || type == json_type_null;
	case NUMBER_OR_NULL:
		return type == json_type_int || type == json_type_double || type == json_type_null;
	case NUMBER:
		return type == json_type_int || type == json_type_double;
	}
	return 0;
}

static int check_fields(const struct gp_place *at, struct json_object *o, const struct field *fields,
			const char *where)
{
	for (; fields->path; fields++)
		if (!is_kind(gp_json_get(o, fields->path), fields->kind))
			return gp_complain(at,
					   "%s%s is missing or of the wrong kind; make the file again with "
					   "gpreempt sim --out",
					   where, fields->path);
	return 0;
}

static int check_list(const struct gp_place *at, struct json_object *list, const struct field *fields,
		      const char *name)
{
	char where[48];

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		int r;

		snprintf(where, sizeof(where), "%s[%zu]/", name, i);
		r = check_fields(at, json_object_array_get_idx(list, i), fields, where);
		if (r < 0)
			return r;
	}
	return 0;
}

static const struct field cluster_fields[] = {
	{ "gpreempt", TEXT },
	{ "command", TEXT },
	{ "simulated", FLAG },
	{ "seed", NUMBER },
	{ "cluster", OBJECT },
	{ "cluster/name", TEXT },
	{ "cluster/policy", TEXT },
	{ "cluster/duration_ns", NUMBER },
	{ "cluster/gpus", NUMBER },
	{ "cluster/slots", NUMBER },
	{ "cluster/job_work", TEXT },
	{ "cluster/jobs_in_trace", NUMBER },
	{ "cluster/services", LIST },
	{ "device", OBJECT },
	{ "device/title", TEXT },
	{ "rows", LIST },
	{ NULL, TEXT },
};

static const struct field service_fields[] = {
	{ "name", TEXT }, { "class", TEXT },    { "gpus", NUMBER },   { "clients", NUMBER },
	{ "work", TEXT }, { "slo_ns", NUMBER }, { "bursts", NUMBER }, { "rate_per_s", NUMBER_OR_NULL },
	{ NULL, TEXT },
};

static const struct field cluster_row_fields[] = {
	{ "config", TEXT },
	{ "hints", FLAG },
	{ "placement", TEXT },
	{ "all", OBJECT },
	{ "all/harvested_gpu_hours", NUMBER },
	{ "all/harvest", NUMBER_OR_NULL },
	{ "all/slo_attainment", NUMBER_OR_NULL },
	{ "all/latency_ns", OBJECT },
	{ "jobs", OBJECT },
	{ "services", LIST },
	{ "series", OBJECT },
	{ "gpus", LIST },
	{ NULL, TEXT },
};

int gp_result_is_cluster(struct json_object *o)
{
	return !strcmp(gp_json_get_text(o, "schema"), GP_CLUSTER_SCHEMA);
}

static int check_cluster(const struct gp_place *at, struct json_object *o)
{
	int r = check_fields(at, o, cluster_fields, "");

	if (r == 0)
		r = check_list(at, gp_json_get(o, "cluster/services"), service_fields, "services");
	if (r == 0)
		r = check_list(at, gp_json_get(o, "rows"), cluster_row_fields, "rows");
	return r;
}

static int check_result(const struct gp_place *at, struct json_object *o)
{
	int r;

	if (gp_result_is_cluster(o))
		return check_cluster(at, o);
	if (strcmp(gp_json_get_text(o, "schema"), GP_RESULT_SCHEMA))
		return gp_complain(at,
				   "not a result of this version (schema is \"%.40s\", not " GP_RESULT_SCHEMA
				   "); make the file again with gpreempt sim --out",
				   gp_json_get_text(o, "schema"));
	r = check_fields(at, o, top_fields, "");
	if (r == 0)
		r = check_list(at, gp_json_get(o, "scenario/groups"), group_fields, "groups");
	if (r == 0)
		r = check_list(at, gp_json_get(o, "rows"), row_fields, "rows");
	return r;
}

static unsigned int line_of(const char *text, size_t offset)
{
	unsigned int line = 1;

	for (size_t i = 0; i < offset && text[i]; i++)
		line += text[i] == '\n';
	return line;
}

static int parse_text(const char *text, struct gp_place *at, struct json_object **ret)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *o;
	size_t end;
	int r = 0;

	if (!tok)
		return -ENOMEM;
	/* With its end, so that half a file is not taken for one that goes on. */
	o = json_tokener_parse_ex(tok, text, (int)strlen(text) + 1);
	end = json_tokener_get_parse_end(tok);
	if (!o || text[end + strspn(text + end, " \t\r\n")]) {
		at->line = line_of(text, end);
		r = gp_complain(at, "not JSON (%s); make the file again with gpreempt sim --out",
				o ? "more follows its end"
				  : json_tokener_error_desc(json_tokener_get_error(tok)));
	}
	json_tokener_free(tok);
	if (r < 0)
		json_object_put(o);
	else
		*ret = o;
	return r;
}

/*
 * An escape in the file may have made a control character, which is for no table.  The scenario's
 * own text has lines, and comes into none.
 */
static int clean_text(struct json_object *o, int flags, struct json_object *parent, const char *key,
		      size_t *index, void *arg)
{
	char *text;

	(void)flags, (void)parent, (void)index, (void)arg;
	if (!json_object_is_type(o, json_type_string) || (key && !strcmp(key, "text")))
		return JSON_C_VISIT_RETURN_CONTINUE;
	text = strdup(json_object_get_string(o));
	if (!text)
		return JSON_C_VISIT_RETURN_ERROR;
	gp_text_clean(text);
	json_object_set_string(o, text);
	free(text);
	return JSON_C_VISIT_RETURN_CONTINUE;
}

int gp_result_parse(const char *text, const char *file, struct json_object **ret, struct gp_diag *diag)
{
	struct gp_place at = { .file = file, .diag = diag };
	struct json_object *o = NULL;
	int r;

	diag->text[0] = '\0';
	r = parse_text(text, &at, &o);
	if (r < 0)
		return r;
	at.line = 1;
	r = check_result(&at, o);
	if (r == 0 && json_c_visit(o, 0, clean_text, NULL) < 0)
		r = -ENOMEM;
	if (r < 0) {
		json_object_put(o);
		return r;
	}
	*ret = o;
	return 0;
}
