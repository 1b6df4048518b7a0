// SPDX-License-Identifier: MIT
#include "slurm/controller.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "slurm/account.h"

#define TRIES 16 /* at a comment that others write too */
#define LEAST_NAP_NS 5000000
#define MOST_NAP_NS 20000000

/* An array's tasks come together. NULL: it is not there. */
static const job_info_t *find(const job_info_msg_t *all, uint32_t job)
{
	for (uint32_t i = 0; i < all->record_count; i++)
		if (all->job_array[i].job_id == job)
			return &all->job_array[i];
	return NULL;
}

int gp_slurm_job_get(uint32_t job, struct gp_slurm_job *ret)
{
	const job_info_t *found;
	job_info_msg_t *all;

	if (slurm_load_job(&all, job, SHOW_ALL) != SLURM_SUCCESS)
		return -EIO;
	found = find(all, job);
	if (found) {
		snprintf(ret->partition, sizeof(ret->partition), "%s",
			 found->partition ? found->partition : "");
		snprintf(ret->qos, sizeof(ret->qos), "%s", found->qos ? found->qos : "");
	}
	slurm_free_job_info_msg(all);
	return found ? 0 : -EIO;
}

static int get_comment(uint32_t job, char text[GP_SLURM_COMMENT])
{
	const job_info_t *found;
	job_info_msg_t *all;
	int n = 0;

	if (slurm_load_job(&all, job, SHOW_ALL) != SLURM_SUCCESS)
		return -EIO;
	found = find(all, job);
	if (found)
		n = snprintf(text, GP_SLURM_COMMENT, "%s", found->comment ? found->comment : "");
	slurm_free_job_info_msg(all);
	return !found ? -EIO : n < GP_SLURM_COMMENT ? 0 : -E2BIG;
}

static int set_comment(uint32_t job, char *text)
{
	job_desc_msg_t change;

	slurm_init_job_desc_msg(&change);
	change.job_id = job;
	change.comment = text;
	return slurm_update_job(&change) == SLURM_SUCCESS ? 0 : -EIO;
}

static void nap(unsigned int *chance)
{
	const struct timespec some = { .tv_nsec = LEAST_NAP_NS + rand_r(chance) % MOST_NAP_NS };

	(void)nanosleep(&some, NULL);
}

/*
 * slurmctld has no way to add to a comment.  Two that read the same one write each other's entry away:
 * whoever finds its own gone, now or a little later, tries again, each after a time of its own.
 */
int gp_slurm_job_comment(uint32_t job, const char *entry)
{
	char before[GP_SLURM_COMMENT], text[GP_SLURM_COMMENT];
	unsigned int chance = (unsigned int)getpid();
	int seen = 0, r = get_comment(job, before);

	for (int i = 0; r == 0 && i < TRIES && seen < 2; i++) {
		seen = strstr(before, entry) ? seen + 1 : 0;
		if (!seen) {
			r = gp_slurm_comment(before, entry, text);
			if (r == 0)
				r = set_comment(job, text);
		}
		nap(&chance);
		if (r == 0)
			r = get_comment(job, before);
	}
	return r;
}
