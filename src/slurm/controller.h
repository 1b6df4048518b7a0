/* SPDX-License-Identifier: MIT */
/*
 * What slurmctld knows of a job: the user's environment may say anything.  Where slurmctld is away, both ask
 * again until patience_ns have passed, and no longer, however long Slurm itself would wait: -ETIMEDOUT.  They
 * ask in a process of their own.
 */
#ifndef GP_SLURM_CONTROLLER_H
#define GP_SLURM_CONTROLLER_H

#include <stdint.h>

#define GP_SLURM_NAME 128

struct gp_slurm_job {
	char partition[GP_SLURM_NAME], qos[GP_SLURM_NAME]; /* empty: it has none */
};

/* -EIO: slurmctld does not say. */
int gp_slurm_job_get(uint32_t job, uint64_t patience_ns, struct gp_slurm_job *ret);
/*
 * Puts an entry into the job's comment: account.h. Others may do so at the same time.  -EIO: slurmctld does
 * not take it; -E2BIG: there is no room.
 */
int gp_slurm_job_comment(uint32_t job, const char *entry, uint64_t patience_ns);

#endif
