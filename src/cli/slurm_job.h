/* SPDX-License-Identifier: MIT */
/* A job of Slurm on this node, as Slurm's own programs see and change it. */
#ifndef GP_CLI_SLURM_JOB_H
#define GP_CLI_SLURM_JOB_H

#include <gpreempt/gpreempt.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "slurm/account.h"

struct json_object;

typedef int gp_slurm_jobs_fn(const struct gp_options *o, const struct gp_job_info *jobs, int n);

struct gp_slurm_task {
	uint32_t number;
	char id[16];
	char name[40]; /* what Slurm's programs call it; empty: not looked for */
};

/* A verb's run(): do_all has all jobs that were declared to gpreemptd, and says the exit status. */
int gp_slurm_jobs_run(const struct gp_verb *verb, int argc, char **argv, gp_slurm_jobs_fn *do_all);
/* What do_all did with each, if JSON is asked for; list is given away. */
void gp_slurm_jobs_print(const struct gp_options *o, const char *schema, struct json_object *list);
/* "slurm 1234.batch"; false: it is none of Slurm's.  What is behind the dot is ret_step's. */
bool gp_slurm_task_of(const struct gp_job_info *job, struct gp_slurm_task *ret, const char **ret_step);
/*
 * Its name: one task of an array has the array's own number, by which Slurm's programs mean all of them.
 * -ESRCH: Slurm has ended it.  Here and below: -ENOENT, there is no such program of Slurm's; > 0, it failed.
 */
int gp_slurm_task_find(struct gp_slurm_task *t);
/* Empty where there is none, and where it fails: slurmctld does not say, or more than there is room for
 * (-E2BIG). */
int gp_slurm_task_get_comment(const struct gp_slurm_task *t, char text[GP_SLURM_COMMENT]);
/* -EIO: slurmctld refuses. */
int gp_slurm_task_set_comment(const struct gp_slurm_task *t, const char *text);

#endif
