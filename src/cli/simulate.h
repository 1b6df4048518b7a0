/* SPDX-License-Identifier: MIT */
/* From a scenario's name to its table and files. */
#ifndef GP_CLI_SIMULATE_H
#define GP_CLI_SIMULATE_H

#include "cli/options.h"
#include "study/json.h"
#include "study/sources.h"

/* What is said around a result; NULL: nothing. */
struct gp_around {
	const char *before; /* a table */
	const char *also;   /* HTML above the page */
};

/* By a built-in name or a file. Returns the exit code. */
int gp_simulate(const char *scenario, const struct gp_options *opts, const struct gp_around *around);
/* The cluster that opts name. */
int gp_simulate_cluster(const struct gp_options *opts);

/* What both have in common. What the command line changes about the scenario; 0, or an error in diag. */
int gp_scenario_apply(struct gp_scenario *sc, struct gp_sources *sources, const struct gp_options *opts,
		      struct gp_diag *diag);
/* Before the work rather than after it. Returns the exit code. */
int gp_check_out(const char *dir);
/* What to type to get the same result: --out, --json and --jobs do not change it. For the caller to free. */
char *gp_make_command(const char *verb, const char *name, const struct gp_scenario *sc,
		      const struct gp_options *opts);

#endif
