// SPDX-License-Identifier: MIT
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/event_words.h"
#include "base/text.h"
#include "cli/clock.h"
#include "cli/machine_list.h"
#include "cli/signals.h"
#include "study/json.h"
#include "base/units.h"
#include "ini/words.h"

static const char usage[] =
	"usage: gpreempt events [options]\n"
	"\n"
	"Prints what gpreemptd did, as far back as it remembers, one line for each event: queues that\n"
	"were stopped and given back, what failed, clients that came and went. On stderr it says how\n"
	"many earlier ones are not kept.\n"
	"\n"
	"  --follow           those to come instead, until Ctrl-C or the end of gpreemptd\n"
	"  --since TIME       those of the last TIME, as 10s, or all; with --follow, before those to come\n"
	"  --retry            with --follow: when gpreemptd goes, wait for the next one\n"
	"  --kind K,...       only these: suspend, resume, failed, backoff, ejected, lease, client, gone,\n"
	"                     starved, lost, policy, class\n"
	"  --socket PATH      gpreemptd's\n"
	"  --json             one JSON object in each line\n"
	"\n"
	"examples:\n"
	"  gpreempt events\n"
	"  gpreempt events --since 5min\n"
	"  gpreempt events --follow --kind failed,ejected\n";

static const char kinds[] = GP_EVENT_WORDS;

#define CLIENT_WIDTH 18       /* of a name and a process */
#define LOOK_NS (GP_S / 5)    /* a signal is heard after so long */
#define RETRY_NS (GP_S / 2)   /* how often gpreemptd is looked for */
#define ANSWERS_NS (5 * GP_S) /* what it keeps comes at once */

static const char *kind_text(uint32_t kind, char text[32])
{
	const char *list = kinds;
	bool there = true;

	for (uint32_t i = 0; there && i <= kind; i++)
		there = gp_word_next(&list, text, 32);
	if (!there)
		snprintf(text, 32, "kind-%" PRIu32, kind); /* a later release's */
	return text;
}

static int parse_kinds(const char *list, uint32_t *ret)
{
	char word[32], near[32];
	int at;

	while (list && gp_word_next(&list, word, sizeof(word))) {
		at = gp_word_find(kinds, word);
		if (at < 0 && gp_word_near(kinds, word, near, sizeof(near)))
			return gp_fail(GP_EXIT_BAD_INPUT, "--kind: there is no \"%s\"; did you mean %s?",
				       word, near);
		if (at < 0)
			return gp_fail(GP_EXIT_BAD_INPUT, "--kind: there is no \"%s\"; there are: %s", word,
				       kinds);
		*ret |= 1u << at;
	}
	return -1;
}

static void print_json(const struct gp_event *e)
{
	struct json_object *o = json_object_new_object();
	const char *tried = gp_tried_word(e->tried);
	char kind[32];

	gp_json_add_int(o, "number", e->number);
	gp_json_add_int(o, "time_ns", e->at_ns);
	gp_json_add_text(o, "event", kind_text(e->kind, kind));
	json_object_object_add(o, "device",
			       e->device == GP_ALL_DEVICES ? NULL : json_object_new_uint64(e->device));
	gp_json_add_int(o, "client", e->client);
	gp_json_add_text(o, "client_name", e->client_name);
	gp_json_add_int(o, "pid", e->pid);
	gp_json_add_int(o, "queue", e->queue);
	gp_json_add_int(o, "latency_ns", e->latency_ns);
	json_object_object_add(o, "tried", tried ? json_object_new_string(tried) : NULL);
	gp_json_add_text(o, "way", e->way);
	json_object_object_add(o, "error",
			       e->status < 0 ? json_object_new_string(gp_strerror(e->status)) : NULL);
	gp_json_add_text(o, "text", e->text);
	gp_json_print(o);
}

/* Adds to a line what there is to say. */
__attribute__((format(printf, 3, 4))) static void add(char *line, size_t size, const char *format, ...)
{
	size_t used = strlen(line);
	va_list args;

	va_start(args, format);
	vsnprintf(line + used, size - used, format, args);
	va_end(args);
}

static void add_time(char *line, size_t size, uint64_t at_ns)
{
	time_t seconds = (time_t)(at_ns / GP_S);
	char clock[16];
	struct tm tm;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&seconds, &tm));
	add(line, size, "%s.%03u", clock, (unsigned)(at_ns % GP_S / GP_MS));
}

/* The same place in each line, as long as names are not longer. */
static void add_client(char *line, size_t size, const struct gp_event *e)
{
	char who[GP_NAME_LEN + 24] = "";

	if (e->client || e->pid)
		snprintf(who, sizeof(who), "%s %" PRIu64, e->client_name[0] ? e->client_name : "?",
			 e->pid ? e->pid : e->client);
	add(line, size, "  %-*s", CLIENT_WIDTH, who);
}

static void cut_spaces(char *line)
{
	size_t len = strlen(line);

	while (len && line[len - 1] == ' ')
		line[--len] = '\0';
}

static void print_text(const struct gp_event *e)
{
	char line[512] = "", kind[32], device[24] = "";
	const char *tried = gp_tried_word(e->tried), *error = e->status < 0 ? gp_strerror(e->status) : "";

	add_time(line, sizeof(line), e->at_ns);
	add(line, sizeof(line), "  %-8s", kind_text(e->kind, kind));
	if (e->device != GP_ALL_DEVICES)
		snprintf(device, sizeof(device), "device %" PRIu32, e->device);
	add(line, sizeof(line), "  %-9s", device);
	add_client(line, sizeof(line), e);
	if (e->latency_ns)
		add(line, sizeof(line), "  %7.3fms", (double)e->latency_ns / (double)GP_MS);
	if (tried)
		add(line, sizeof(line), "  %s", tried);
	if (e->way[0])
		add(line, sizeof(line), "%s by %s", tried ? "" : " ", e->way);
	if (strstr(e->text, error))
		error = ""; /* it is said there, with more */
	if (error[0])
		add(line, sizeof(line), "  %s", error);
	if (e->text[0])
		add(line, sizeof(line), "%s %s", error[0] ? ":" : " ", e->text);
	gp_text_clean(line);
	cut_spaces(line);
	puts(line);
}

/* What is lost is no event: in JSON alone it is a line among them. */
static void print_event(const struct gp_options *o, const struct gp_event *e)
{
	if (o->json)
		print_json(e);
	else if (e->kind == GP_EVENT_LOST)
		gp_fail(0, "%s", e->text[0] ? e->text : "earlier events are not kept");
	else
		print_text(e);
	fflush(stdout);
}

/* The other end of a pipe that nobody reads any more. */
static int nobody_reads(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return ferror(stdout) || (poll(&out, 1, 0) > 0 && out.revents & POLLERR);
}

/* The last that is known: its number, and the newest time until then. */
struct known {
	uint64_t number, at_ns;
};

static void remember(struct known *k, const struct gp_event *e)
{
	if (!e->at_ns)
		return; /* it is of no time: lost, by the word of an older gpreemptd */
	k->number = e->number;
	k->at_ns = e->at_ns > k->at_ns ? e->at_ns : k->at_ns;
}

/* The number says it, whatever the clock does; the time, if another gpreemptd counts anew. */
static int is_new(const struct known *k, const struct gp_event *e)
{
	return !e->at_ns || e->number > k->number || e->at_ns > k->at_ns;
}

/* As if one of just before that time were the last; after the first that is wanted all are. */
static struct known known_before(uint64_t since_ns)
{
	uint64_t now = gp_wall_ns();

	return since_ns < now ? (struct known){ UINT64_MAX, now - since_ns - 1 } : (struct known){ 0 };
}

/* What gpreemptd keeps. */
static int know_kept(struct gp_ctx *ctx, uint32_t wanted, struct known *k)
{
	const struct gp_event_opts opts = { .size = sizeof(opts), .kinds = wanted };
	struct gp_event event = { .size = sizeof(event) };
	int r = gp_event_open(ctx, &opts);

	if (r < 0)
		return r;
	while ((r = gp_event_next(ctx, ANSWERS_NS, &event)) > 0)
		remember(k, &event);
	return r;
}

/* Until there are no more (0), somebody wants it to end (1), or gpreemptd goes (-errno). */
static int print_events(const struct gp_options *o, struct gp_ctx *ctx, struct known *known)
{
	struct gp_event event = { .size = sizeof(event) };
	int r;

	for (;;) {
		r = gp_event_next(ctx, o->follow ? LOOK_NS : ANSWERS_NS, &event);
		if (r < 0 || (r == 0 && !o->follow))
			return r;
		if (r && is_new(known, &event)) {
			remember(known, &event);
			print_event(o, &event);
		}
		if (gp_signals_wait(0) || nobody_reads())
			return 1;
	}
}

/* 0, or 1: somebody wants it to end. */
static int wait_for_daemon(struct gp_ctx *ctx, const struct gp_event_opts *opts)
{
	gp_fail(0, "%s; waiting for it", gp_ctx_errmsg(ctx));
	while (gp_event_open(ctx, opts) < 0)
		if (gp_signals_wait(RETRY_NS) || nobody_reads())
			return 1;
	return 0;
}

/* Those to come alone; an older gpreemptd tells the kept ones first, and they are known then. */
static int open_new(struct gp_ctx *ctx, const struct gp_event_opts *all, struct known *k)
{
	struct gp_event_opts opts = *all;
	int r;

	opts.flags |= GP_EVENT_NEW;
	r = gp_event_open(ctx, &opts);
	if (r != -ENOTSUP)
		return r;
	r = know_kept(ctx, all->kinds, k);
	return r < 0 ? r : gp_event_open(ctx, all);
}

static int serve(const struct gp_options *o, struct gp_ctx *ctx, uint32_t wanted)
{
	const struct gp_event_opts opts = { .size = sizeof(opts),
					    .kinds = wanted,
					    .flags = o->follow ? GP_EVENT_FOLLOW : 0 };
	struct known known = o->has_since ? known_before(o->since_ns) : (struct known){ 0 };
	uint64_t begun = gp_wall_ns();
	int r = o->follow && !o->has_since ? open_new(ctx, &opts, &known) : gp_event_open(ctx, &opts);

	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
	gp_signals_block();
	do {
		r = print_events(o, ctx, &known);
		if (r >= 0)
			return GP_EXIT_OK;
		if (!known.number && !known.at_ns && !o->has_since)
			known = (struct known){ UINT64_MAX,
						begun }; /* the next one tells what it keeps too */
	} while (o->retry && wait_for_daemon(ctx, &opts) == 0);
	if (o->retry)
		return GP_EXIT_OK;
	return gp_fail(GP_EXIT_FAILED, "%s%s", gp_ctx_errmsg(ctx),
		       o->follow && r == -ECONNRESET ? "; --retry waits for the next one" : "");
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	uint32_t wanted = 0;
	struct gp_options opts;
	struct gp_ctx *ctx;
	int code = gp_options_parse(verb, argc, argv, 0, 0, &opts);

	if (code < 0 && opts.retry && !opts.follow)
		code = gp_fail(GP_EXIT_BAD_INPUT, "events: --retry is for --follow alone");
	if (code < 0)
		code = parse_kinds(opts.kind, &wanted);
	if (code < 0)
		code = gp_machine_open(&opts, NULL, &ctx);
	if (code >= 0)
		return code;
	code = serve(&opts, ctx, wanted);
	gp_ctx_close(ctx);
	return code;
}

const struct gp_verb gp_verb_events = {
	.name = "events",
	.summary = "what gpreemptd did, and does",
	.usage = usage,
	.options = "follow since retry kind socket json",
	.run = run,
};
