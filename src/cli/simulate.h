/* SPDX-License-Identifier: MIT */
/* From a scenario's name to its table and files. */
#ifndef GP_CLI_SIMULATE_H
#define GP_CLI_SIMULATE_H

#include "cli/options.h"
#include "study/json.h"

/* By a built-in name or a file. Returns the exit code. */
int gp_simulate(const char *scenario, const struct gp_options *opts);
/* Writes result.json, index.html and trace.json into opts->out, or nothing. */
int gp_write_result(const char *dir, struct json_object *result);

#endif
