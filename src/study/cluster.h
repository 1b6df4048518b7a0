/* SPDX-License-Identifier: MIT */
/* A cluster's rows, run one after the other, and what is made of them. */
#ifndef GP_STUDY_CLUSTER_H
#define GP_STUDY_CLUSTER_H

#include "cluster/cluster.h"
#include "study/output.h"

/* One configuration and one placement; exclusive lets no job in, and has one row. */
struct gp_cluster_row {
	struct gp_config config;
	const struct gp_placement *placement;
	struct gp_cluster_result *result;
};

struct gp_cluster_input {
	const struct gp_cluster *cluster;
	const struct gp_sources *sources;
	const struct gp_cluster_row *rows;
	size_t nrows;
	const char *command;
};

/* For the caller to free, also after an error. jobs of 0: one process per CPU. Progress goes to a terminal.
 */
int gp_cluster_rows_run(const struct gp_cluster *cl, uint32_t jobs, struct gp_cluster_row **ret,
			size_t *ret_n, struct gp_diag *diag);
void gp_cluster_rows_free(struct gp_cluster_row *rows, size_t n);

struct json_object *gp_cluster_json(const struct gp_cluster_input *in);

#endif
