/* SPDX-License-Identifier: MIT */
/* What slurmctld knows of a job: the user's environment may say anything. */
#ifndef GP_SLURM_CONTROLLER_H
#define GP_SLURM_CONTROLLER_H

#include <stdint.h>

#define GP_SLURM_NAME 128

struct gp_slurm_job {
	char partition[GP_SLURM_NAME], qos[GP_SLURM_NAME]; /* empty: it has none */
};

/* -EIO: slurmctld does not answer, or does not know the job. */
int gp_slurm_job_get(uint32_t job, struct gp_slurm_job *ret);
/* Puts an entry into the job's comment: account.h. Others may do so at the same time. */
int gp_slurm_job_comment(uint32_t job, const char *entry);

#endif
