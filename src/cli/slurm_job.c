// SPDX-License-Identifier: MIT
#include "cli/slurm_job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/machine_list.h"
#include "cli/scontrol.h"
#include "study/json.h"

#define MOST_SAID (64 * 1024) /* of an array's tasks that run: a line each */

/* How many, for the caller to free; or -errno. Those that come meanwhile are left to the next call. */
static int read_jobs(struct gp_ctx *ctx, struct gp_job_info **ret)
{
	struct gp_job_info *jobs = NULL;
	int n, room = gp_job_list(ctx, NULL, 0);

	*ret = NULL;
	if (room <= 0)
		return room;
	jobs = calloc((size_t)room, sizeof(*jobs));
	if (!jobs)
		return -ENOMEM;
	jobs[0].size = sizeof(jobs[0]);
	*ret = jobs;
	n = gp_job_list(ctx, jobs, (size_t)room);
	return n < room ? n : room;
}

int gp_slurm_jobs_run(const struct gp_verb *verb, int argc, char **argv, gp_slurm_jobs_fn *do_all)
{
	struct gp_job_info *jobs;
	struct gp_options o;
	struct gp_ctx *ctx;
	int n, code = gp_options_parse(verb, argc, argv, 0, 0, &o);

	if (code < 0)
		code = gp_machine_open(&o, NULL, &ctx);
	if (code >= 0)
		return code;
	n = read_jobs(ctx, &jobs);
	code = n < 0 ? gp_machine_fail(ctx, n) : do_all(&o, jobs, n);
	free(jobs);
	gp_ctx_close(ctx);
	return code;
}

void gp_slurm_jobs_print(const struct gp_options *o, const char *schema, struct json_object *list)
{
	struct json_object *out = json_object_new_object();

	gp_json_add_text(out, "schema", schema);
	json_object_object_add(out, "jobs", list);
	if (o->json)
		gp_json_print(out);
	else
		json_object_put(out);
}

bool gp_slurm_task_of(const struct gp_job_info *job, struct gp_slurm_task *ret, const char **ret_step)
{
	struct gp_slurm_task t = { .number = 0 };
	int step = 0;

	if (sscanf(job->name, "slurm %" SCNu32 ".%n", &t.number, &step) != 1 || !step)
		return false;
	snprintf(t.id, sizeof(t.id), "%" PRIu32, t.number);
	*ret = t;
	*ret_step = job->name + step;
	return true;
}

int gp_slurm_task_find(struct gp_slurm_task *t)
{
	const char *const ask[] = { "squeue", "-h", "-j", t->id, "-o", "%A %i", NULL };
	char *said = malloc(MOST_SAID);
	size_t len = strlen(t->id);
	int r = said ? gp_scontrol(ask, said, MOST_SAID) : -ENOMEM;
	bool found = false;

	for (const char *at = r == 0 ? said : NULL; at && !found; at = strchr(at, '\n')) {
		at += *at == '\n';
		found = !strncmp(at, t->id, len) && at[len] == ' ' &&
			sscanf(at + len, " %39[0-9_+]", t->name) == 1;
	}
	free(said);
	return r != 0 ? r : found ? 0 : -ESRCH;
}

int gp_slurm_task_get_comment(const struct gp_slurm_task *t, char text[GP_SLURM_COMMENT])
{
	const char *const ask[] = { "squeue", "-h", "-j", t->name, "-o", "%k", NULL };
	int r = gp_scontrol(ask, text, GP_SLURM_COMMENT);

	if (r == 0 && strlen(text) == GP_SLURM_COMMENT - 1)
		r = -E2BIG;
	if (r != 0 || !strcmp(text, "(null)"))
		text[0] = '\0';
	return r;
}

int gp_slurm_task_set_comment(const struct gp_slurm_task *t, const char *text)
{
	char job[64], comment[GP_SLURM_COMMENT + 16], said[512];
	const char *const tell[] = { "scontrol", "update", job, comment, NULL };
	int r;

	snprintf(job, sizeof(job), "JobId=%s", t->name);
	snprintf(comment, sizeof(comment), "Comment=%s", text);
	r = gp_scontrol(tell, said, sizeof(said));
	return r > 0 ? -EIO : r;
}
