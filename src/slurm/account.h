/* SPDX-License-Identifier: MIT */
/* What a step had, as a job's comment and as JSON. */
#ifndef GP_SLURM_ACCOUNT_H
#define GP_SLURM_ACCOUNT_H

#include <gpreempt/gpreempt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_SLURM_ENTRY 256    /* bytes of a comment's part about one step on one node */
#define GP_SLURM_COMMENT 4096 /* of a comment, with what its user wrote */

#define GP_SLURM_MOST_ENTRIES 8 /* that a comment keeps */

#define GP_SLURM_NODE 128 /* bytes of a node's name */

/* This machine in comments and reports: its host name's first part, which is no part of a path. */
const char *gp_slurm_node(char name[GP_SLURM_NODE]);

/* Where it ran. */
struct gp_slurm_step {
	uint32_t job;
	const char *step; /* "0", "batch" */
	const char *node;
	const char *gpus; /* as Slurm numbers them: "0,2"; empty: none */
};

/* "gpreempt 0@n1: offline, ran 3.1 s, stopped 12 times, 1.25 s" */
void gp_slurm_entry(const struct gp_slurm_step *step, const struct gp_job_info *had,
		    char text[GP_SLURM_ENTRY]);
/*
 * The comment with the entry in it, behind what was there, in the place of one about the same step and node.
 * Of entries it keeps the last few.  -E2BIG: there is no room for all of it.
 */
int gp_slurm_comment(const char *before, const char *entry, char text[GP_SLURM_COMMENT]);
/* The entry as it is: one that goes on behind it is another. */
bool gp_slurm_comment_has(const char *comment, const char *entry);
/* FOLDER/JOB.STEP.NODE.json: -errno. */
int gp_slurm_report(const char *folder, const struct gp_slurm_step *step, const struct gp_job_info *had,
		    const struct gp_device_info *devices, size_t ndevices);

#endif
