// SPDX-License-Identifier: MIT
#include <gpreempt/gpreempt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/options.h"
#include "cli/scontrol.h"
#include "cli/slurm_job.h"
#include "slurm/account.h"
#include "study/json.h"

static const char usage[] =
	"usage: gpreempt slurm-requeue [options]\n"
	"\n"
	"Requeues jobs of Slurm on this node that asked for it, see gpreempt-slurm(7), and have got less\n"
	"of a GPU than they asked for, for as long as they said. The comment of each has the reason.\n"
	"For root, every minute or so on each node: HealthCheckProgram of slurm.conf.\n"
	"\n"
	"  --dry-run          say what would be done, and do nothing\n"
	"  --socket PATH      gpreemptd's\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt slurm-requeue --dry-run\n"
	"  gpreempt slurm-requeue\n";

struct starved {
	struct gp_slurm_task task;
	char reason[GP_SLURM_ENTRY];
	int status; /* of the requeue: 0, or it was refused */
};

/* false: not one of Slurm's that starves. */
static bool is_starved(const struct gp_job_info *job, struct starved *ret)
{
	char time[GP_TIME_TEXT], node[GP_SLURM_NODE];
	const char *step;

	if (!job->is_starved || !gp_slurm_task_of(job, &ret->task, &step))
		return false;
	snprintf(ret->reason, sizeof(ret->reason), "gpreempt requeued@%s: too little of a GPU for %s",
		 gp_node_name(node), gp_time_text(job->starving_ns / GP_S * GP_S, time));
	return true;
}

/* Each step that starves is listed. */
static bool was_before(const struct gp_job_info *jobs, int n, uint32_t number)
{
	struct starved other;

	for (int i = 0; i < n; i++)
		if (is_starved(&jobs[i], &other) && other.task.number == number)
			return true;
	return false;
}

/* Slurm takes no comment once it has requeued the job: it comes first, and goes if it is not true. */
static int requeue(struct starved *s)
{
	const char *const tell[] = { "scontrol", "requeue", s->task.name, NULL };
	char before[GP_SLURM_COMMENT], after[GP_SLURM_COMMENT], said[512];
	bool has_room;

	s->status = gp_slurm_task_find(&s->task);
	if (s->status != 0)
		return GP_EXIT_FAILED;
	has_room = gp_slurm_task_get_comment(&s->task, before) == 0 &&
		   gp_slurm_comment(before, s->reason, after) == 0;
	if (has_room)
		(void)gp_slurm_task_set_comment(&s->task, after);
	s->status = gp_scontrol(tell, said, sizeof(said));
	if (s->status == 0)
		return GP_EXIT_OK;
	if (has_room)
		(void)gp_slurm_task_set_comment(&s->task, before);
	return GP_EXIT_FAILED;
}

static void print(const struct starved *s, const struct gp_options *o, struct json_object *list)
{
	struct json_object *one;

	if (!o->json) {
		printf("job %s %s: %s\n", s->task.id,
		       o->dry_run  ? "would be requeued"
		       : s->status ? "cannot be requeued"
				   : "is requeued",
		       strchr(s->reason, ':') + 2);
		return;
	}
	one = json_object_new_object();
	gp_json_add_text(one, "job", s->task.id);
	gp_json_add_text(one, "reason", strchr(s->reason, ':') + 2);
	json_object_object_add(one, "requeued", json_object_new_boolean(!o->dry_run && !s->status));
	json_object_array_add(list, one);
}

static int requeue_all(const struct gp_options *o, const struct gp_job_info *jobs, int n)
{
	struct json_object *list = json_object_new_array();
	int code = GP_EXIT_OK;

	for (int i = 0; i < n; i++) {
		struct starved s = { .status = 0 };

		if (!is_starved(&jobs[i], &s) || was_before(jobs, i, s.task.number))
			continue;
		if (!o->dry_run && requeue(&s) != GP_EXIT_OK)
			code = GP_EXIT_FAILED;
		print(&s, o, list);
	}
	gp_slurm_jobs_print(o, "gpreempt-slurm-requeue-1", list);
	return code;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	return gp_slurm_jobs_run(verb, argc, argv, requeue_all);
}

const struct gp_verb gp_verb_slurm_requeue = {
	.name = "slurm-requeue",
	.summary = "requeue jobs of Slurm that get too little of a GPU",
	.usage = usage,
	.options = "dry-run socket json",
	.run = run,
};
