// SPDX-License-Identifier: MIT
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/machine_list.h"
#include "cli/options.h"

static const char usage[] = "usage: gpreempt doctor [--json]\n"
			    "\n"
			    "Says what this machine can do, why not more, and what to do about it.\n"
			    "Exit status 0: some backend works.\n"
			    "\n"
			    "examples:\n"
			    "  gpreempt doctor\n"
			    "  gpreempt doctor --json\n";

struct finding {
	const char *what;
	const char *state; /* yes, no, or why not */
	char detail[256];
};

#define NFINDINGS 3

/* Who may use a device file, and whether that is us. */
static void describe_access(const char *path, const struct stat *st, struct finding *f)
{
	const struct group *group = getgrgid(st->st_gid);
	char name[64];

	if (group)
		snprintf(name, sizeof(name), "%s", group->gr_name);
	else
		snprintf(name, sizeof(name), "%u", (unsigned int)st->st_gid);
	if (access(path, R_OK | W_OK) == 0) {
		f->state = "yes";
		snprintf(f->detail, sizeof(f->detail),
			 "%s is there, and you may use it (mode %03o, group %s)", path,
			 (unsigned int)st->st_mode & 0777, name);
	} else {
		f->state = "denied";
		snprintf(
			f->detail, sizeof(f->detail),
			"%s is there, but you may not use it (mode %03o, group %s): sudo usermod -aG %s $USER, "
			"then log in again",
			path, (unsigned int)st->st_mode & 0777, name, name);
	}
}

static void check_file(const char *path, const char *what, const char *absent, struct finding *f)
{
	struct stat st;

	f->what = what;
	if (stat(path, &st) == 0) {
		describe_access(path, &st, f);
		return;
	}
	f->state = "no";
	if (errno == ENOENT)
		snprintf(f->detail, sizeof(f->detail), "%s is not there: %s", path, absent);
	else
		snprintf(f->detail, sizeof(f->detail), "%s: %s", path, strerror(errno));
}

/* The state of a queue, or a negative errno. */
static int queue_state(struct gp_ctx *ctx, uint64_t queue)
{
	struct gp_machine_list list;
	int r;

	r = gp_machine_list_read(ctx, &list);
	if (r < 0)
		return r;
	r = -ENOENT;
	for (size_t i = 0; i < list.nqueues; i++)
		if (list.queues[i].queue == queue)
			r = (int)list.queues[i].state;
	gp_machine_list_free(&list);
	return r;
}

static int try_queue(struct gp_ctx *ctx, uint64_t queue, const char **step)
{
	int r, state;

	*step = "suspend a queue";
	r = gp_queue_suspend(ctx, &queue, 1, NULL, NULL);
	if (r < 0)
		return r;
	*step = "see the queue suspended";
	state = queue_state(ctx, queue);
	r = state < 0 ? state : state == GP_QUEUE_SUSPENDED ? 0 : -EIO;
	if (r < 0) {
		(void)gp_queue_resume(ctx, &queue, 1, NULL); /* r already says why */
		return r;
	}
	*step = "resume the queue";
	r = gp_queue_resume(ctx, &queue, 1, NULL);
	if (r < 0)
		return r;
	*step = "see the queue running again";
	state = queue_state(ctx, queue);
	return state < 0 ? state : state == GP_QUEUE_RUNNING ? 0 : -EIO;
}

static int try_sim(const char **step)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .backend = "sim" };
	struct gp_machine_list list;
	struct gp_ctx *ctx;
	int r;

	*step = "open it";
	r = gp_ctx_open(&opts, &ctx);
	if (r < 0)
		return r;
	*step = "list its queues";
	r = gp_machine_list_read(ctx, &list);
	if (r == 0) {
		r = list.nqueues ? try_queue(ctx, list.queues[0].queue, step) : -ENOENT;
		gp_machine_list_free(&list);
	}
	gp_ctx_close(ctx);
	return r;
}

static int check_sim(struct finding *f)
{
	const char *step;
	int r = try_sim(&step);

	f->what = "simulated GPU";
	f->state = r < 0 ? "no" : "yes";
	if (r < 0)
		snprintf(f->detail, sizeof(f->detail), "cannot %s: %s", step, gp_strerror(r));
	else
		snprintf(f->detail, sizeof(f->detail), "opened, a queue suspended, seen suspended, resumed");
	return r;
}

static const char advice_works[] =
	"Backends for AMD (KFD) and NVIDIA GPUs are not part of this version; what it has is the simulated GPU.\n"
	"To see it work: gpreempt demo";
static const char advice_broken[] =
	"Backends for AMD (KFD) and NVIDIA GPUs are not part of this version, and the simulated GPU does not work.\n"
	"That is a fault of the build: build it again and run its tests (make check).";

static void print_json(const struct finding *found, int works, const char *advice)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < NFINDINGS; i++) {
		struct json_object *item = json_object_new_object();

		gp_json_add_text(item, "what", found[i].what);
		gp_json_add_text(item, "state", found[i].state);
		gp_json_add_text(item, "detail", found[i].detail);
		json_object_array_add(list, item);
	}
	gp_json_add_text(o, "schema", "gpreempt-doctor-1");
	json_object_object_add(o, "works", json_object_new_boolean(works));
	json_object_object_add(o, "checks", list);
	gp_json_add_text(o, "advice", advice);
	gp_json_print(o);
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct finding found[NFINDINGS];
	struct gp_options opts;
	const char *advice;
	int code, works;

	code = gp_options_parse(verb, argc, argv, 0, 0, &opts);
	if (code >= 0)
		return code;
	check_file("/dev/kfd", "AMD driver", "no AMD GPU, or amdgpu is not loaded", &found[0]);
	check_file("/dev/nvidiactl", "NVIDIA driver", "no NVIDIA GPU, or its driver is not loaded",
		   &found[1]);
	works = check_sim(&found[2]) == 0;
	advice = works ? advice_works : advice_broken;
	if (opts.json) {
		print_json(found, works, advice);
	} else {
		for (size_t i = 0; i < NFINDINGS; i++)
			printf("%-14s %-7s %s\n", found[i].what, found[i].state, found[i].detail);
		printf("\n%s\n", advice);
	}
	return works ? GP_EXIT_OK : GP_EXIT_FAILED;
}

const struct gp_verb gp_verb_doctor = {
	.name = "doctor",
	.summary = "what this machine can do, and why not more",
	.usage = usage,
	.options = "json",
	.run = run,
};
