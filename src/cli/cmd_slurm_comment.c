// SPDX-License-Identifier: MIT
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/scontrol.h"
#include "cli/slurm_job.h"
#include "slurm/account.h"
#include "study/json.h"

static const char usage[] =
	"usage: gpreempt slurm-comment [options]\n"
	"\n"
	"Writes into the comment of each job of Slurm on this node what its steps have had so far, as\n"
	"gpreempt's plug-in does at their end, see gpreempt-slurm(7). Slurm takes no comment of a job that\n"
	"it has ended itself, by scancel or a time limit: such a one has the last entry.\n"
	"For root, every minute or so on each node: HealthCheckProgram of slurm.conf.\n"
	"\n"
	"  --dry-run          say what would be done, and do nothing\n"
	"  --socket PATH      gpreemptd's\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt slurm-comment --dry-run\n"
	"  gpreempt slurm-comment\n";

#define SO_FAR ", so far"

struct note {
	struct gp_slurm_task task;
	char whole[GP_SLURM_ENTRY]; /* what the plug-in writes if no more comes */
	char entry[GP_SLURM_ENTRY + sizeof(SO_FAR)];
	const char *why; /* it was not written; or NULL */
};

/* false: it is none of Slurm's. */
static bool make_note(const struct gp_job_info *job, struct note *ret)
{
	char node[GP_SLURM_NODE];
	struct gp_slurm_step step = { .gpus = "" };

	if (!gp_slurm_task_of(job, &ret->task, &step.step))
		return false;
	step.job = ret->task.number;
	step.node = gp_slurm_node(node);
	gp_slurm_entry(&step, job, ret->whole);
	snprintf(ret->entry, sizeof(ret->entry), "%s" SO_FAR, ret->whole);
	ret->why = NULL;
	return true;
}

/* What Slurm's own programs have to complain is on stderr. */
static const char *why_not(int r)
{
	if (r > 0)
		return "squeue does not tell of it, see its line";
	if (r == -ENOENT)
		return "there is no squeue or scontrol in PATH";
	if (r == -ESRCH)
		return "Slurm has ended it";
	if (r == -E2BIG)
		return "there is no room in its comment";
	return r == -EIO ? "slurmctld refuses, see scontrol's line" : gp_strerror(r);
}

/*
 * Two that write at once write each other's entry away; ours is back with the next call.  A step that has
 * ended is listed for as long as its slurmstepd is there.
 */
static int write_note(struct note *n)
{
	char before[GP_SLURM_COMMENT], after[GP_SLURM_COMMENT];
	int r = gp_slurm_task_find(&n->task);

	if (r == 0)
		r = gp_slurm_task_get_comment(&n->task, before);
	if (r == 0)
		r = gp_slurm_comment(before, n->entry, after);
	if (r == 0 && strcmp(before, after) && !gp_slurm_comment_has(before, n->whole))
		r = gp_slurm_task_set_comment(&n->task, after);
	n->why = r == 0 ? NULL : why_not(r);
	return r == 0 ? GP_EXIT_OK : GP_EXIT_FAILED;
}

static void print(const struct note *n, const struct gp_options *o, struct json_object *list)
{
	struct json_object *one;

	if (!o->json) {
		if (n->why)
			printf("job %s, not written (%s): %s\n", n->task.id, n->why, n->entry);
		else
			printf("job %s: %s\n", n->task.id, n->entry);
		return;
	}
	one = json_object_new_object();
	gp_json_add_text(one, "job", n->task.id);
	gp_json_add_text(one, "entry", n->entry);
	json_object_object_add(one, "written", json_object_new_boolean(!o->dry_run && !n->why));
	if (n->why)
		gp_json_add_text(one, "why", n->why);
	json_object_array_add(list, one);
}

static int write_all(const struct gp_options *o, const struct gp_job_info *jobs, int n)
{
	struct json_object *list = json_object_new_array();
	int code = GP_EXIT_OK;

	for (int i = 0; i < n; i++) {
		struct note note;

		if (!make_note(&jobs[i], &note))
			continue;
		if (!o->dry_run && write_note(&note) != GP_EXIT_OK)
			code = GP_EXIT_FAILED;
		print(&note, o, list);
	}
	gp_slurm_jobs_print(o, "gpreempt-slurm-comment-1", list);
	return code;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	return gp_slurm_jobs_run(verb, argc, argv, write_all);
}

const struct gp_verb gp_verb_slurm_comment = {
	.name = "slurm-comment",
	.summary = "write into jobs of Slurm what they have had so far",
	.usage = usage,
	.options = "dry-run socket json",
	.run = run,
};
