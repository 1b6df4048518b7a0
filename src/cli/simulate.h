/* SPDX-License-Identifier: MIT */
/* From a scenario's name to its table and files. */
#ifndef GP_CLI_SIMULATE_H
#define GP_CLI_SIMULATE_H

#include "cli/options.h"
#include "study/json.h"

/* What is said around a result; NULL: nothing. */
struct gp_around {
	const char *before; /* a table */
	const char *also;   /* HTML above the page */
};

/* By a built-in name or a file. Returns the exit code. */
int gp_simulate(const char *scenario, const struct gp_options *opts, const struct gp_around *around);

#endif
