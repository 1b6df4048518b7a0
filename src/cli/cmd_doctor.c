// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/machine_list.h"
#include "cli/names.h"
#include "cli/options.h"
#include "cli/wrap.h"
#include "study/json.h"

static const char usage[] =
	"usage: gpreempt doctor [--intrusive] [--json]\n"
	"       test_api_availability [--intrusive] [--json]\n"
	"\n"
	"Says what this machine can do, why not more, and what to do about it. Where there is an\n"
	"AMD GPU, a queue is created on it, stopped and resumed: that takes what runs there off for\n"
	"a moment, twice. On an NVIDIA GPU only its programs can try that: what gpreemptd heard from\n"
	"them is said.\n"
	"\n"
	"  --intrusive        try the debugger's interface too: takes everybody's work off the GPU\n"
	"                     several times, and hangs with some drivers until it is ended\n"
	"  --json             print JSON\n"
	"\n"
	"Exit status 0: some backend works; as test_api_availability: AMD's does.\n"
	"\n"
	"examples:\n"
	"  gpreempt doctor\n"
	"  gpreempt doctor --json\n";

#define NAME 14
#define STATE 7

void gp_finding_add(struct gp_findings *f, const char *what, const char *state, const char *format, ...)
{
	struct gp_finding *one = &f->items[f->n];
	va_list args;

	if (f->n == GP_MOST_FINDINGS)
		return;
	f->n++;
	one->what = what;
	one->state = state;
	va_start(args, format);
	vsnprintf(one->detail, sizeof(one->detail), format, args);
	va_end(args);
}

void gp_advise(struct gp_findings *f, const char *format, ...)
{
	size_t used = strlen(f->advice);
	va_list args;

	va_start(args, format);
	if (used && used + 1 < sizeof(f->advice))
		f->advice[used++] = '\n';
	vsnprintf(f->advice + used, sizeof(f->advice) - used, format, args);
	va_end(args);
}

const char *gp_own_folder(void)
{
	static char folder[256];
	const char *slash = strrchr(program_invocation_name, '/');

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash + 1 - program_invocation_name) : 0,
		 program_invocation_name);
	return folder;
}

/* Who may use a device file, and whether that is us. */
static const char *describe_access(struct gp_findings *f, const char *path, const char *what,
				   const struct stat *st)
{
	char name[GP_ACCOUNT_NAME];
	char advice[128] = "it is root's alone; a udev rule usually gives it to group render";
	bool has_name = gp_group_name(st->st_gid, name);

	if (access(path, R_OK | W_OK) == 0) {
		gp_finding_add(f, what, "yes", "%s is there, and you may use it (mode %03o, group %s)", path,
			       (unsigned int)st->st_mode & 0777, name);
		return "yes";
	}
	if (st->st_gid != 0 && (st->st_mode & (S_IRGRP | S_IWGRP)) == (S_IRGRP | S_IWGRP))
		snprintf(advice, sizeof(advice),
			 has_name ? GP_JOIN("%s")
				  : "this group has no name here; start a container with --group-add %s",
			 name);
	gp_finding_add(f, what, "denied", "%s is there, but you may not use it (mode %03o, group %s): %s",
		       path, (unsigned int)st->st_mode & 0777, name, advice);
	return "denied";
}

const char *gp_doctor_file(struct gp_findings *f, const char *path, const char *what, const char *absent)
{
	struct stat st;

	if (stat(path, &st) == 0)
		return describe_access(f, path, what, &st);
	if (errno == ENOENT)
		gp_finding_add(f, what, "no", "%s is not there: %s", path, absent);
	else
		gp_finding_add(f, what, "no", "%s: %s", path, strerror(errno));
	return "no";
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

static int check_sim(struct gp_findings *f)
{
	const char *step;
	int r = try_sim(&step);

	if (r < 0)
		gp_finding_add(f, "simulated GPU", "no", "cannot %s: %s", step, gp_strerror(r));
	else
		gp_finding_add(f, "simulated GPU", "yes",
			       "opened, a queue suspended, seen suspended, resumed");
	return r == 0;
}

static void print_json(const struct gp_findings *f, int works, int amd, int nvidia)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < f->n; i++) {
		struct json_object *item = json_object_new_object();

		gp_json_add_text(item, "what", f->items[i].what);
		gp_json_add_text(item, "state", f->items[i].state);
		gp_json_add_text(item, "detail", f->items[i].detail);
		json_object_array_add(list, item);
	}
	gp_json_add_text(o, "schema", "gpreempt-doctor-1");
	json_object_object_add(o, "works", json_object_new_boolean(works));
	json_object_object_add(o, "amd", json_object_new_boolean(amd));
	json_object_object_add(o, "nvidia", json_object_new_boolean(nvidia));
	json_object_object_add(o, "checks", list);
	gp_json_add_text(o, "advice", f->advice);
	gp_json_print(o);
}

static void print_text(struct gp_findings *f)
{
	char *line = f->advice, *next;

	for (size_t i = 0; i < f->n; i++) {
		printf("%-*s %-*s ", NAME, f->items[i].what, STATE, f->items[i].state);
		gp_print_wrapped(f->items[i].detail, NAME + STATE + 2, stdout);
	}
	putchar('\n');
	while (line) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		gp_print_wrapped(line, 0, stdout);
		line = next;
	}
}

static void advise_last(struct gp_findings *f, int sim, int amd, int nvidia)
{
	if (nvidia)
		gp_advise(f, "On an NVIDIA GPU an online program must give hints (gp_hint_begin, with "
			     "gpreempt.online()): nobody sees its requests otherwise.");
	if (amd || nvidia)
		gp_advise(f, "Then: %sgpreempt list, %sgpreempt suspend PID.", gp_own_folder(),
			  gp_own_folder());
	else if (sim)
		gp_advise(f, "To see it work without a GPU: %sgpreempt demo", gp_own_folder());
	if (!sim)
		gp_advise(
			f,
			"That the simulated GPU does not work is a fault of the build: build it again and run its "
			"tests (make check).");
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_findings *f;
	struct gp_options opts;
	int code, amd, nvidia, sim;

	code = gp_options_parse(verb, argc, argv, 0, 0, &opts);
	if (code >= 0)
		return code;
	f = calloc(1, sizeof(*f));
	if (!f)
		return gp_fail(GP_EXIT_FAILED, "out of memory");
	amd = gp_doctor_amd(f, opts.intrusive);
	gp_doctor_scheduler(f);
	nvidia = gp_doctor_nvidia(f);
	sim = check_sim(f);
	advise_last(f, sim, amd, nvidia);
	if (opts.json)
		print_json(f, amd || nvidia || sim, amd, nvidia);
	else
		print_text(f);
	free(f);
	/* By the notes' name it is about AMD alone. */
	code = strcmp(argv[0], verb->name) ? amd : amd || nvidia || sim;
	return code ? GP_EXIT_OK : GP_EXIT_FAILED;
}

const struct gp_verb gp_verb_doctor = {
	.name = "doctor",
	.summary = "what this machine can do, and why not more",
	.usage = usage,
	.options = "intrusive json",
	.run = run,
};
