/* SPDX-License-Identifier: MIT */
/* A job of Slurm on this node, as Slurm's own programs see and change it. */
#ifndef GP_CLI_SLURM_JOB_H
#define GP_CLI_SLURM_JOB_H

#include <gpreempt/gpreempt.h>
#include <stdbool.h>
#include <stdint.h>

#include "slurm/account.h"

struct gp_slurm_task {
	uint32_t number;
	char id[16];
	char name[40]; /* what Slurm's programs call it; empty: not looked for */
};

/* All that were declared to gpreemptd: how many, for the caller to free; or -errno. */
int gp_slurm_jobs_read(struct gp_ctx *ctx, struct gp_job_info **ret);
/* "slurm 1234.batch"; false: it is none of Slurm's.  What is behind the dot is ret_step's. */
bool gp_slurm_task_of(const struct gp_job_info *job, struct gp_slurm_task *ret, const char **ret_step);
/* Its name: one task of an array has the array's own number, by which Slurm's programs mean all of them. */
int gp_slurm_task_find(struct gp_slurm_task *t);
/* Empty where there is none, and where it fails: slurmctld does not say, or says more than there is room for.
 */
int gp_slurm_task_get_comment(const struct gp_slurm_task *t, char text[GP_SLURM_COMMENT]);
/* 0, or it was refused. */
int gp_slurm_task_set_comment(const struct gp_slurm_task *t, const char *text);

#endif
