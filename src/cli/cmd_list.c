// SPDX-License-Identifier: MIT
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/machine_list.h"
#include "cli/options.h"
#include "cli/place.h"
#include "cli/queue_text.h"
#include "cli/signals.h"
#include "cli/wrap.h"
#include "discover/classes.h"
#include "base/units.h"

static const char usage[] =
	"usage: gpreempt list [options]\n"
	"\n"
	"Lists the devices and queues of this machine: from gpreemptd, or without one from the AMD\n"
	"driver's files. --backend sim lists those of a simulated machine, each marked as such.\n"
	"\n"
	"  --backend NAME     kfd: this machine's GPUs (the default); sim: a simulated machine\n"
	"  --device NAME      for sim: mi308x (the default), mi300x or h200\n"
	"  --container NAME   only queues in this container, by its name or the first digits of its id\n"
	"  --socket PATH      gpreemptd's\n"
	"  --priority MIN-MAX only queues of these priorities, 0 to 15\n"
	"  --rule RULE        what class this rule would give, as online:pid=4711; may be given again\n"
	"  --root DIR         from a recorded copy of /sys and /proc below DIR\n"
	"  --watch [TIME]     then a line for each queue that comes or goes, every second, until Ctrl-C\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt list\n"
	"  gpreempt list --priority 0-7 --rule offline:command=train*\n"
	"  gpreempt list --watch 500ms\n"
	"  gpreempt list --backend sim --device h200\n";

#define WATCH_NS GP_S

/* Rules are tried on the spot: gpreemptd's own are not touched, and it is not asked. */
static int take_rules(const struct gp_options *o)
{
	const char *before = getenv("GPREEMPT_CLASSES");
	struct gp_classes *classes = NULL;
	char text[4096] = "", error[256] = "";
	size_t used = 0;
	int r = gp_classes_new(&classes);

	for (uint32_t i = 0; r == 0 && i < o->nrules; i++) {
		r = gp_classes_add(classes, o->rules[i], "--rule", error, sizeof(error));
		if (used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s;", o->rules[i]);
	}
	if (classes)
		gp_classes_free(classes);
	if (r < 0 || used >= sizeof(text))
		return gp_fail(GP_EXIT_BAD_INPUT, "%s", error[0] ? error : "--rule: too long");
	if (before && used < sizeof(text))
		snprintf(text + used, sizeof(text) - used, "%s", before);
	return setenv("GPREEMPT_CLASSES", text, 1) < 0 ? GP_EXIT_FAILED : -1;
}

static int take_root(const char *root)
{
	int code = gp_root_check(root);

	if (code >= 0)
		return code;
	return setenv("GPREEMPT_ROOT", root, 1) < 0 ? GP_EXIT_FAILED : -1;
}

/* -1 to go on, else the exit code. */
static int open_machine(struct gp_options *o, struct gp_ctx **ret)
{
	int code = -1;

	if ((o->nrules || o->root) && (o->device || (o->backend && !strcmp(o->backend, "sim"))))
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "list: --rule and --root are for AMD GPUs: what the simulated machine has "
			       "no rule changes");
	if (o->nrules)
		code = take_rules(o);
	if (code < 0 && o->root)
		code = take_root(o->root);
	if (code >= 0)
		return code;
	if (o->nrules || o->root) {
		o->backend = "kfd";
		o->socket = "";
	}
	return gp_machine_open(o, "GPREEMPT_SOCKET= gpreempt list lists what the driver's files tell", ret);
}

/* Those with the priorities that were asked for, in place; how many have one that nobody told. */
static size_t keep_priorities(const struct gp_options *o, struct gp_machine_list *l)
{
	size_t kept = 0, unknown = 0;

	if (!o->has_priority)
		return 0;
	for (size_t i = 0; i < l->nqueues; i++) {
		const struct gp_queue_info *q = &l->queues[i];

		if (!(q->known & GP_KNOWN_PRIORITY))
			unknown++;
		else if (q->priority >= o->min_priority && q->priority <= o->max_priority)
			l->queues[kept++] = *q;
	}
	l->nqueues = kept;
	return unknown;
}

/* Those at this place, in the list; empty: at any. */
static void keep_place(const char *place, struct gp_machine_list *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->nqueues; i++)
		if (!place[0] || !strcmp(l->queues[i].place, place))
			l->queues[kept++] = l->queues[i];
	l->nqueues = kept;
}

/* They went through the environment; who gave them here should see that these are meant. */
static void name_rules(const struct gp_options *o, struct gp_machine_list *l)
{
	static const char from[] = "GPREEMPT_CLASSES ";

	for (size_t i = 0; i < l->nqueues; i++) {
		char *rule = l->queues[i].rule;

		for (uint32_t j = 0; j < o->nrules && !strncmp(rule, from, sizeof(from) - 1); j++) {
			const char *condition = strchr(o->rules[j], ':');

			if (condition && !strcmp(rule + sizeof(from) - 1, condition + 1))
				snprintf(rule, sizeof(l->queues[i].rule), "--rule %s", condition + 1);
		}
	}
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	gp_text_clean(text);
	putchar('\n');
	gp_print_wrapped(text, 0, stdout);
}

/* Who reads debugfs: gpreemptd, who has nothing to note then; or we. */
static const char *why_unknown(const char *notice)
{
	if (getenv("GPREEMPT_ROOT"))
		return "the recorded copy does not tell it";
	if (notice[0] && geteuid() != 0)
		return "only root can read it";
	return "debugfs does not tell it; of SDMA queues it never does";
}

static void say_what_is_missing(const struct gp_options *o, const struct gp_machine_list *l, size_t before,
				size_t unknown, const char *notice)
{
	if (notice[0])
		say("%s.", notice);
	if (unknown)
		say("The priority of %zu queue%s is unknown: %s.", unknown, unknown == 1 ? "" : "s",
		    why_unknown(notice));
	if (o->has_priority && !l->nqueues && before > unknown)
		say("No queue has a priority from %" PRIu32 " to %" PRIu32
		    ". ROCm gives queues 0, 7 or 11, and a program that does not ask has 7: look for 7-7, or choose "
		    "by process or by AMD_QUEUE_TAG.",
		    o->min_priority, o->max_priority);
}

/* Whoever names a gpreemptd wants that one's word. */
static int check_daemon(const struct gp_options *o, struct gp_ctx *ctx)
{
	const char *named = o->socket ? o->socket : getenv("GPREEMPT_SOCKET");
	uint32_t rights;

	if (!named || !*named || o->nrules || o->root || gp_ctx_rights(ctx, &rights) != -ENODEV)
		return GP_EXIT_OK;
	return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
}

static int read_list(struct gp_ctx *ctx, struct gp_machine_list *ret)
{
	int r = gp_machine_list_read(ctx, ret);

	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "cannot list: %s",
			       *gp_ctx_errmsg(ctx) ? gp_ctx_errmsg(ctx) : gp_strerror(r));
	return -1;
}

/* What was asked for, and its container, empty if any will do. -1 to go on, else the exit code. */
static int choose(const struct gp_options *o, struct gp_ctx *ctx, char place[GP_PLACE],
		  struct gp_machine_list *ret)
{
	int code = read_list(ctx, ret);

	place[0] = '\0';
	if (code >= 0 || !o->container)
		return code;
	code = gp_place_choose(o->container, gp_places_of(ret->queues, ret->nqueues), place);
	if (code >= 0)
		gp_machine_list_free(ret);
	else
		keep_place(place, ret);
	return code;
}

/* -1 to go on, else the exit code. */
static int list_once(const struct gp_options *o, struct gp_ctx *ctx, char place[GP_PLACE],
		     struct gp_machine_list *ret)
{
	size_t unknown, before;
	int code = choose(o, ctx, place, ret);

	if (code >= 0)
		return code;
	name_rules(o, ret);
	before = ret->nqueues;
	unknown = keep_priorities(o, ret);
	if (o->json) {
		gp_json_print(gp_machine_json(ret));
	} else {
		gp_machine_print(ret, stdout);
		say_what_is_missing(o, ret, before, unknown, gp_ctx_notice(ctx));
		if (ret->nqueues)
			gp_pids_say(ctx);
	}
	fflush(stdout);
	return -1;
}

static void print_change(const struct gp_options *o, const char *change, const struct gp_machine_list *l,
			 const struct gp_queue_info *q)
{
	struct json_object *line;
	struct tm tm;
	time_t now = time(NULL);
	char clock[16];

	if (o->json) {
		line = json_object_new_object();
		gp_json_add_text(line, "change", change);
		json_object_object_add(line, "queue", gp_queue_json(l, q));
		gp_json_print(line);
		return;
	}
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
	printf("%s  %-4s  ", clock, change);
	gp_queue_print(l, q, stdout);
	putchar('\n');
}

static int by_handle(const void *a, const void *b)
{
	const struct gp_queue_info *x = a, *y = b;

	return x->queue < y->queue ? -1 : x->queue > y->queue;
}

static void print_changes(const struct gp_options *o, const struct gp_machine_list *before,
			  const struct gp_machine_list *after)
{
	size_t i = 0, j = 0;

	while (i < before->nqueues || j < after->nqueues) {
		const struct gp_queue_info *a = i < before->nqueues ? &before->queues[i] : NULL;
		const struct gp_queue_info *b = j < after->nqueues ? &after->queues[j] : NULL;

		if (a && b && a->queue == b->queue) {
			i++;
			j++;
		} else if (a && (!b || a->queue < b->queue)) {
			print_change(o, "went", before, a);
			i++;
		} else {
			print_change(o, "came", after, b);
			j++;
		}
	}
}

static void sort(struct gp_machine_list *l)
{
	if (l->nqueues)
		qsort(l->queues, l->nqueues, sizeof(*l->queues), by_handle);
}

/* Until a signal ends it, which is no failure; or gpreemptd goes, which is one. before is what was shown. */
static int watch(const struct gp_options *o, struct gp_ctx *ctx, const char *place,
		 struct gp_machine_list *before)
{
	struct gp_machine_list after;
	int code;

	sort(before);
	while (!ferror(stdout) && !gp_signals_wait(o->watch_ns ? o->watch_ns : WATCH_NS)) {
		code = read_list(ctx, &after);
		if (code >= 0)
			return code;
		keep_place(place, &after);
		(void)keep_priorities(o, &after);
		sort(&after);
		print_changes(o, before, &after);
		fflush(stdout);
		gp_machine_list_free(before);
		*before = after;
	}
	return GP_EXIT_OK;
}

/* "--watch 2s" as well as "--watch=2s": an option's own value cannot be left out otherwise. */
static int take_interval(struct gp_options *o)
{
	if (!o->argc)
		return -1;
	if (!o->has_watch || o->watch_ns)
		return gp_fail(GP_EXIT_BAD_INPUT, "list: \"%s\" is one too many; see gpreempt list --help",
			       o->argv[0]);
	if (gp_time_parse(o->argv[0], &o->watch_ns) < 0 || o->watch_ns < 10 * GP_MS ||
	    o->watch_ns > 3600 * GP_S)
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "--watch: \"%s\" is no time from 10ms to 3600s, as 500ms or 1s", o->argv[0]);
	return -1;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_machine_list list;
	struct gp_options opts;
	struct gp_ctx *ctx;
	char place[GP_PLACE];
	int code;

	code = gp_options_parse(verb, argc, argv, 0, 1, &opts);
	if (code < 0)
		code = take_interval(&opts);
	if (code < 0)
		code = open_machine(&opts, &ctx);
	if (code >= 0)
		return code;
	if (opts.has_watch)
		gp_signals_block();
	code = list_once(&opts, ctx, place, &list);
	if (code < 0) {
		code = check_daemon(&opts, ctx);
		if (opts.has_watch && code == GP_EXIT_OK)
			code = watch(&opts, ctx, place, &list);
		gp_machine_list_free(&list);
	}
	gp_ctx_close(ctx);
	return code;
}

const struct gp_verb gp_verb_list = {
	.name = "list",
	.summary = "devices and queues",
	.usage = usage,
	.options = "backend device container socket priority rule root watch json",
	.run = run,
};
