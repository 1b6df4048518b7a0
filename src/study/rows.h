/* SPDX-License-Identifier: MIT */
/* Runs the rows of a scenario, several at a time. The result does not depend on how many. */
#ifndef GP_STUDY_ROWS_H
#define GP_STUDY_ROWS_H

#include "machine/run.h"
#include "ini/diag.h"

enum gp_row_kind {
	GP_ROW_SHOWN,
	GP_ROW_EXCLUSIVE, /* not asked for, but the others are compared to it */
	GP_ROW_ALONE,     /* offline with nobody beside: what be_norm is a part of */
};

struct gp_row {
	uint32_t kind;  /* enum gp_row_kind */
	uint32_t sweep; /* index of the sweep's value, 0 without a sweep */
	struct gp_config config;
	int error; /* -ENOTSUP: this device has no such way */
	const struct gp_run_result *run;
};

struct gp_rows {
	struct gp_row *row;
	size_t n;
	void *memory; /* what the runs are in */
	size_t memory_size;
};

/* jobs of 0: one per CPU. Progress goes to stderr if that is a terminal. */
int gp_rows_run(const struct gp_scenario *sc, uint32_t jobs, struct gp_rows *ret, struct gp_diag *diag);
void gp_rows_free(struct gp_rows *rows);
/* The row of that kind (for EXCLUSIVE: shown or not) of the same sweep value; NULL if there is none. */
const struct gp_row *gp_rows_find(const struct gp_rows *rows, uint32_t kind, uint32_t sweep);

#endif
