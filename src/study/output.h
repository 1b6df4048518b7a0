/* SPDX-License-Identifier: MIT */
/* A result, and what is made of it. Everything shown is made of the JSON, never beside it. */
#ifndef GP_STUDY_OUTPUT_H
#define GP_STUDY_OUTPUT_H

#include <stdio.h>

#include "study/json.h"
#include "study/parse.h"
#include "study/rows.h"
#include "study/sources.h"

struct gp_result_input {
	const struct gp_scenario *scenario;
	const struct gp_sources *sources;
	const struct gp_rows *rows;
	const char *command; /* what to type to get this again */
};

struct json_object *gp_result_json(const struct gp_result_input *in);
struct json_object *gp_scenario_json(const struct gp_scenario *sc, const char *text);
struct json_object *gp_device_json(const struct gp_device_file *file);
struct json_object *gp_timeline_json(const struct gp_run_result *run);

#define GP_TABLE_WIDTH 120             /* of all columns */
#define GP_TABLE_AMD 78                /* from there on it says what AMD's need */
#define GP_ON_STOCK_AMD "stock driver" /* a row's on_amd, where nothing else is needed */

/* With less than GP_TABLE_WIDTH, the columns that fit. */
void gp_table_print(struct json_object *result, int width, FILE *out);
/* The same of a cluster; gp_table_print() calls it for one. */
void gp_cluster_table_print(struct json_object *result, int width, FILE *out);
/* What stands below the table: what its words mean, and what is odd about its rows. */
void gp_notes_print(struct json_object *result, int width, FILE *out);
/* Breaks a note between words; what is left goes on the next lines, indented. */
void gp_note_print(const char *text, size_t width, FILE *out);
/* Queues that share a device are AMD's way; what NVIDIA's needs is in the documents. */
int gp_result_is_amd(struct json_object *result);
/* "gate+hints" */
const char *gp_row_name(struct json_object *row, char *name, size_t size);
/* "24 offline queues"; "" if it is no row of a sweep. */
const char *gp_sweep_text(struct json_object *result, struct json_object *row, char *text, size_t size);
/* The page with the result in it, for the caller to free; -ENOENT: this build has no page. also: HTML above
 * it. */
int gp_page_make(const char *json, const char *also, char **ret_html);
/* Chrome's trace format, which Perfetto opens too. */
struct json_object *gp_trace_json(struct json_object *result);

#endif
