// SPDX-License-Identifier: MIT
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/device_stats.h"
#include "cli/wrap.h"
#include "study/json.h"
#include "base/units.h"

static const char usage[] =
	"usage: gpreempt stats [DEVICE] [options]\n"
	"\n"
	"Counts what was done on each device since gpreemptd was started, or on one: preemptions,\n"
	"stops and resumes and how long they took, hints, and what is wrong if something is.\n"
	"Now: how many queues yield to online work by themselves, and how many are stopped.\n"
	"\n"
	"  --socket PATH      gpreemptd's\n"
	"  --backend sim      a simulated machine instead, which ends with this call\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt stats\n"
	"  gpreempt stats 0 --json\n";

#define VALUE_AT 15

/* A terminal gets no line that is longer than it is wide; a program gets one for each name. */
static void print_line(const char *name, const char *text)
{
	printf("  %-*s", VALUE_AT - 2, name);
	if (gp_screen_width(stdout, 0))
		gp_print_wrapped(text, VALUE_AT, stdout);
	else
		puts(text);
}

static void print_count(const char *name, uint64_t count)
{
	printf("  %-12s %" PRIu64 "\n", name, count);
}

static void print_times(const char *name, uint64_t count, uint64_t p50_ns, uint64_t p99_ns, uint64_t max_ns)
{
	char p50[GP_TIME_TEXT], p99[GP_TIME_TEXT], max[GP_TIME_TEXT], text[128];

	if (!max_ns) {
		print_count(name, count);
		return;
	}
	snprintf(text, sizeof(text), "%" PRIu64 ", p50 %s, p99 %s, most %s", count, gp_time_text(p50_ns, p50),
		 gp_time_text(p99_ns, p99), gp_time_text(max_ns, max));
	print_line(name, text);
}

/* Others' words: a policy's, a driver's. */
static void print_text(const char *name, const char *text)
{
	char clean[256];

	snprintf(clean, sizeof(clean), "%s", text[0] ? text : "-");
	gp_text_clean(clean);
	print_line(name, clean);
}

/* What stands still or yields now. */
static void print_now(const struct gp_stats *s)
{
	char text[128];

	snprintf(text, sizeof(text), "%" PRIu32 " %s, %" PRIu32 " %s stopped", s->yielding,
		 s->yielding == 1 ? "queue yields" : "queues yield", s->stopped,
		 s->stopped == 1 ? "is" : "are");
	print_line("now", text);
}

static void print(void *ndevices, const struct gp_device_info *d, const struct gp_stats *s)
{
	char head[64], reason[GP_REASON_TEXT];

	if ((*(size_t *)ndevices)++)
		putchar('\n');
	snprintf(head, sizeof(head), "%s%s", d->name, gp_device_is_simulated(d) ? " (simulated)" : "");
	gp_text_clean(head);
	printf("device %" PRIu32 ": %s\n", s->device, head);
	print_text("policy", s->policy);
	print_now(s);
	print_count("preemptions", s->preemptions);
	print_count("cycles", s->cycles);
	print_times("suspends", s->suspends, s->suspend_p50_ns, s->suspend_p99_ns, s->suspend_max_ns);
	print_times("resumes", s->resumes, s->resume_p50_ns, s->resume_p99_ns, s->resume_max_ns);
	print_count("slices", s->slices);
	print_count("failures", s->failures);
	print_count("limited", s->limited);
	print_count("hints", s->hints);
	print_count("samples", s->samples);
	print_text("back-off", s->backoff_until_ns ? s->reason : "");
	print_text("reason", s->backoff_until_ns ? "" : gp_reason_text(s, reason));
	print_text("ejection", s->ejection);
}

static void add(void *devices, const struct gp_device_info *d, const struct gp_stats *s)
{
	json_object_array_add(devices, gp_stats_all_json(d, s));
}

static int show(void *arg, const struct gp_options *o, struct gp_ctx *ctx, const struct gp_machine_list *l,
		uint32_t device)
{
	struct json_object *devices = json_object_new_array();
	size_t printed = 0;
	int code = o->json ? gp_stats_each(ctx, l, device, add, devices)
			   : gp_stats_each(ctx, l, device, print, &printed);

	(void)arg;
	if (code < 0 && o->json)
		gp_stats_json_print("gpreempt-stats-1", json_object_get(devices));
	else if (code < 0 && !l->ndevices)
		puts(GP_NO_DEVICES);
	json_object_put(devices);
	return code < 0 ? GP_EXIT_OK : code;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	int code = gp_options_parse(verb, argc, argv, 0, 1, &opts);

	return code >= 0 ? code : gp_devices_run(verb, &opts, opts.argc ? opts.argv[0] : NULL, show, NULL);
}

const struct gp_verb gp_verb_stats = {
	.name = "stats",
	.summary = "what was done on each device, and how long it took",
	.usage = usage,
	.options = "backend socket json",
	.run = run,
};
