/* SPDX-License-Identifier: MIT */
/* JSON that is the same to the byte each time, and reading it back. */
#ifndef GP_STUDY_JSON_H
#define GP_STUDY_JSON_H

#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>

#include "ini/diag.h"

/* What json-c 0.13, which EL8 has, lacks. A number over INT64_MAX is written as it is, but not read. */
#if JSON_C_VERSION_NUM < (14 << 8)
#define json_object_new_uint64 gp_json_new_uint64
#define json_object_get_uint64 gp_json_get_uint64
#define json_tokener_get_parse_end(tok) ((size_t)(tok)->char_offset)

struct json_object *gp_json_new_uint64(uint64_t value);
uint64_t gp_json_get_uint64(struct json_object *o);
#endif

#define GP_RESULT_SCHEMA "gpreempt-result-1"
#define GP_CLUSTER_SCHEMA "gpreempt-cluster-1"

/* Six digits, null for NAN. */
struct json_object *gp_json_double(double value);
void gp_json_add_double(struct json_object *o, const char *key, double value);
/* A whole number of ns, null for NAN. */
void gp_json_add_ns(struct json_object *o, const char *key, double ns);
void gp_json_add_int(struct json_object *o, const char *key, uint64_t value);
void gp_json_add_text(struct json_object *o, const char *key, const char *value);
/* One line; stays valid as long as the object does. */
const char *gp_json_text(struct json_object *o);
/* Prints it and drops it. */
void gp_json_print(struct json_object *o);

/* By a path such as "latency_ns/p50": NULL, NAN and "" if it is null or not there. */
struct json_object *gp_json_get(struct json_object *o, const char *path);
double gp_json_get_double(struct json_object *o, const char *path);
const char *gp_json_get_text(struct json_object *o, const char *path);

/* Of a cluster, not of a scenario. */
int gp_result_is_cluster(struct json_object *o);
/* Parses a result and checks that it is one. */
int gp_result_parse(const char *text, const char *file, struct json_object **ret, struct gp_diag *diag);

#endif
