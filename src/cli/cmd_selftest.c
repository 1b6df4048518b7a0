// SPDX-License-Identifier: MIT
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/kfd/probe.h"
#include "backend/sim/sim.h"
#include "cli/options.h"
#include "cli/wrap.h"
#include "study/json.h"

static const char usage[] =
	"usage: gpreempt selftest [--backend kfd|sim] [--json]\n"
	"       test_cwsr_lv3 [--backend kfd|sim] [--json]\n"
	"\n"
	"Stops a queue while it runs, sees that it stands still, resumes it, sees that it goes on\n"
	"and that nothing was lost; ten times. On the AMD GPU, if there is one, with packets that\n"
	"run no code: that takes what runs there off for a moment, twenty times. And on a simulated\n"
	"GPU, with a kernel that fills it: times are a model's there. On an NVIDIA GPU a program with\n"
	"the agent alone can try it: what to do is said.\n"
	"Exit status 0: all that was tried works.\n"
	"\n"
	"  --backend kfd|sim  this one alone\n"
	"  --json             print JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt selftest\n"
	"  gpreempt selftest --backend sim --json\n";

struct subject {
	const char *backend, *progress; /* what it is counted in */
	int (*try)(struct gp_trial *ret);
	int is_simulated;
};

static const struct subject subjects[] = {
	{ "kfd", "packets", gp_kfd_try_running, 0 },
	{ "sim", "us of the kernel", gp_sim_try_running, 1 },
};

static void describe(const struct subject *s, const struct gp_trial *t, int r, char *text, size_t size)
{
	char gpu[48] = "simulated MI308X";

	if (!s->is_simulated)
		snprintf(gpu, sizeof(gpu), "GPU %" PRIu32 " (gfx %" PRIu32 ")", t->gpu_id, t->gfx_target);
	if (r < 0)
		snprintf(text, size, "%s: could not %s: %s", s->is_simulated ? gpu : "AMD GPU", t->step,
			 gp_strerror(r));
	else
		snprintf(text, size,
			 "%s: a running queue was stopped and resumed %" PRIu32 " times. Progress: %" PRIu64
			 " %s before, %" PRIu64 " while stopped, %" PRIu64
			 " after; nothing was lost. Longest stop %" PRIu64 " us, longest resume %" PRIu64
			 " us%s.",
			 gpu, t->rounds, t->before, s->progress, t->still, t->after, t->stop_ns / 1000,
			 t->resume_ns / 1000, s->is_simulated ? ", by the model" : "");
}

static struct json_object *as_json(const struct subject *s, const struct gp_trial *t, int r, const char *text)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "backend", s->backend);
	json_object_object_add(o, "simulated", json_object_new_boolean(s->is_simulated));
	json_object_object_add(o, "works", json_object_new_boolean(r == 0));
	gp_json_add_text(o, "detail", text);
	gp_json_add_int(o, "rounds", t->rounds);
	gp_json_add_text(o, "unit", s->progress);
	gp_json_add_int(o, "before", t->before);
	gp_json_add_int(o, "while_stopped", t->still);
	gp_json_add_int(o, "after", t->after);
	gp_json_add_int(o, "stop_ns", t->stop_ns);
	gp_json_add_int(o, "resume_ns", t->resume_ns);
	return o;
}

/* Whether it works; list: where to put it, or NULL: it is printed. */
static int try_one(const struct subject *s, struct json_object *list)
{
	struct gp_trial trial;
	char text[512];
	int r = s->try(&trial);

	describe(s, &trial, r, text, sizeof(text));
	if (list) {
		json_object_array_add(list, as_json(s, &trial, r, text));
	} else {
		printf("%-5s", r == 0 ? "ok" : "FAIL");
		gp_print_wrapped(text, 5, stdout);
	}
	return r == 0;
}

static int has_amd(void)
{
	return access("/dev/kfd", F_OK) == 0;
}

/* Of which nothing was tried: that takes CUDA, and the agent in the program. */
static int has_nvidia(void)
{
	return access("/dev/nvidiactl", F_OK) == 0;
}

static void say_untried(void)
{
	if (!has_amd())
		puts("There is no AMD GPU here (no /dev/kfd): the simulated one alone was tried.");
	if (has_nvidia())
		gp_print_wrapped(
			"On the NVIDIA GPU nothing was tried: start a CUDA program with gpreempt run --offline, "
			"then gpreempt suspend PID --lease 2s. It must stand still for so long, and end with "
			"the right result; gpreempt doctor says what the driver took and refused.",
			0, stdout);
}

/* Of the GPUs here; the simulated one always is. */
static int is_wanted(const struct subject *s, const char *backend)
{
	if (backend)
		return !strcmp(s->backend, backend);
	return s->is_simulated || has_amd();
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct json_object *list, *o;
	struct gp_options opts;
	int works = 1, code = gp_options_parse(verb, argc, argv, 0, 0, &opts);

	if (code >= 0)
		return code;
	if (opts.backend && strcmp(opts.backend, "kfd") != 0 && strcmp(opts.backend, "sim") != 0)
		return gp_fail(GP_EXIT_BAD_INPUT, "--backend: \"%s\" is none; write kfd or sim",
			       opts.backend);
	list = opts.json ? json_object_new_array() : NULL;
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
		if (is_wanted(&subjects[i], opts.backend))
			works &= try_one(&subjects[i], list);
	if (list) {
		o = json_object_new_object();
		gp_json_add_text(o, "schema", "gpreempt-selftest-1");
		json_object_object_add(o, "works", json_object_new_boolean(works));
		json_object_object_add(o, "trials", list);
		json_object_object_add(o, "nvidia_untried", json_object_new_boolean(has_nvidia()));
		gp_json_print(o);
	} else if (!opts.backend) {
		say_untried();
	}
	return works ? GP_EXIT_OK : GP_EXIT_FAILED;
}

const struct gp_verb gp_verb_selftest = {
	.name = "selftest",
	.summary = "stop a running queue and see it go on",
	.usage = usage,
	.options = "backend json",
	.run = run,
};
