// SPDX-License-Identifier: MIT
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <gpreempt/gpreempt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/event_words.h"
#include "base/text.h"
#include "cli/wrap.h"
#include "ini/diag.h"
#include "ini/keys.h"
#include "base/units.h"
#include "ini/words.h"

#define MAX_OPTIONS 96

struct option_kind {
	struct gp_key key; /* name, setter, range and field of struct gp_options */
	int takes_value;   /* no_argument, required_argument or optional_argument */
	size_t given;      /* field that says so, 0: none */
};

static int set_pointer(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	(void)key;
	if (!*value)
		return gp_complain(at, "its value is empty; see --help");
	*(const char **)field = value;
	return 0;
}

/* A name goes to gpreemptd, which has so much room for it. */
static int set_name(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	if (strlen(value) >= GP_NAME_LEN)
		return gp_complain(at, "\"%s\" is too long; write at most %d characters", value,
				   GP_NAME_LEN - 1);
	return set_pointer(key, at, value, field);
}

static int set_flag(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	(void)key;
	(void)at;
	(void)value;
	*(int *)field = 1;
	return 0;
}

static int set_way(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	if (gp_word_find(key->choices, value) < 0)
		return gp_complain_unknown(at, "way", value, key->choices);
	return set_pointer(key, at, value, field);
}

/* What a rule may be is the library's to say, where it is used. */
static int set_rule(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	struct gp_options *o = (struct gp_options *)((char *)field - key->offset);

	if (o->nrules == GP_MOST_RULES)
		return gp_complain(at, "more than %d rules; write them into a file", GP_MOST_RULES);
	return set_pointer(key, at, value, &o->rules[o->nrules++]);
}

/* Without a value: as often as is usual. */
static int set_watch(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	return value ? gp_set_time(key, at, value, field) : 0;
}

static int set_priorities(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	struct gp_options *o = (struct gp_options *)((char *)field - key->offset);
	const char *dash = strchr(value, '-');
	char first[16];
	uint64_t min = 0, max = 0;

	snprintf(first, sizeof(first), "%.*s", dash ? (int)(dash - value) : 15, value);
	if (gp_count_parse(first, &min) < 0 || gp_count_parse(dash ? dash + 1 : value, &max) < 0 ||
	    min > max || max > key->max)
		return gp_complain(at, "\"%s\" is no range of priorities; write it as 0-5, within 0-15",
				   value);
	o->min_priority = (uint32_t)min;
	o->max_priority = (uint32_t)max;
	return 0;
}

#define FIELD(field) .offset = offsetof(struct gp_options, field)
#define FOLDER "=DIR" /* ends the name of a kind for verbs that take a folder where others have a flag */

static const struct option_kind kinds[] = {
	{ { .name = "out", .set = set_pointer, FIELD(out) }, 1, 0 }, /* the first: -o is it too */
	{ { .name = "device", .set = set_pointer, FIELD(device) }, 1, 0 },
	{ { .name = "policy", .set = set_pointer, FIELD(policy) }, 1, 0 },
	{ { .name = "only", .set = set_pointer, FIELD(only) }, 1, 0 },
	{ { .name = "show", .set = set_pointer, FIELD(show) }, 1, 0 },
	{ { .name = "cluster", .set = set_pointer, FIELD(cluster) }, 1, 0 },
	{ { .name = "backend", .set = set_pointer, FIELD(backend), .choices = "kfd sim" }, 1, 0 },
	{ { .name = "container", .set = set_pointer, FIELD(container) }, 1, 0 },
	{ { .name = "root", .set = set_pointer, FIELD(root) }, 1, 0 },
	{ { .name = "socket", .set = set_pointer, FIELD(socket) }, 1, 0 },
	{ { .name = "tag", .set = set_pointer, FIELD(tag) }, 1, 0 },
	{ { .name = "client", .set = set_pointer, FIELD(client) }, 1, 0 },
	{ { .name = "kind", .set = set_pointer, FIELD(kind), .choices = GP_EVENT_WORDS }, 1, 0 },
	{ { .name = "docker-args", .set = set_pointer, FIELD(docker_args), .choices = "online offline" },
	  1,
	  0 },
	{ { .name = "listen", .set = set_pointer, FIELD(listen) }, 1, 0 },
	{ { .name = "unix", .set = set_pointer, FIELD(unix_path) }, 1, 0 },
	{ { .name = "class-sockets", .set = set_pointer, FIELD(class_sockets) }, 1, 0 },
	{ { .name = "rule", .set = set_rule, FIELD(rules) }, 1, 0 },
	{ { .name = "way", .set = set_way, FIELD(way), .choices = "auto session update park dbg private" },
	  1,
	  0 },
	{ { .name = "type", .set = gp_set_choice, FIELD(type), .choices = "save drain reset" },
	  1,
	  offsetof(struct gp_options, has_type) },
	{ { .name = "priority", .set = set_priorities, FIELD(min_priority), .max = 15 },
	  1,
	  offsetof(struct gp_options, has_priority) },
	{ { .name = "watch",
	    .set = set_watch,
	    FIELD(watch_ns),
	    .min = 10 * GP_MS,
	    .max = 3600 * GP_S,
	    .example = "1s" },
	  optional_argument,
	  offsetof(struct gp_options, has_watch) },
	{ { .name = "interval",
	    .set = gp_set_time,
	    FIELD(interval_ns),
	    .min = 100 * GP_MS,
	    .max = 3600 * GP_S,
	    .example = "2s" },
	  1,
	  0 },
	{ { .name = "lease",
	    .set = gp_set_time,
	    FIELD(lease_ns),
	    .min = GP_MS,
	    .max = 86400 * GP_S,
	    .example = "10s" },
	  1,
	  offsetof(struct gp_options, has_lease) },
	{ { .name = "timeout",
	    .set = gp_set_time,
	    FIELD(timeout_ns),
	    .min = GP_MS,
	    .max = 600 * GP_S,
	    .example = "500ms" },
	  1,
	  0 },
	{ { .name = "slo",
	    .set = gp_set_time,
	    FIELD(slo_ns),
	    .min = GP_US,
	    .max = 3600 * GP_S,
	    .example = "20ms" },
	  1,
	  0 },
	{ { .name = "weight", .set = gp_set_count, FIELD(weight), .min = 1, .max = 10000 }, 1, 0 },
	{ { .name = "base", .set = gp_set_count, FIELD(base), .min = 1, .max = 1000000000 }, 1, 0 },
	{ { .name = "for",
	    .set = gp_set_time,
	    FIELD(for_ns),
	    .min = GP_MS,
	    .max = 3600 * GP_S,
	    .example = "5s" },
	  1,
	  0 },
	{ { .name = "since",
	    .set = gp_set_time,
	    FIELD(since_ns),
	    .max = 86400 * GP_S,
	    .example = "10s",
	    .word = "all",
	    .word_value = UINT64_MAX },
	  1,
	  offsetof(struct gp_options, has_since) },
	{ { .name = "number", .set = gp_set_count, FIELD(number), .min = 1, .max = (1ull << 53) - 1 }, 1, 0 },
	{ { .name = "pid", .set = gp_set_count, FIELD(pid), .min = 1, .max = INT32_MAX }, 1, 0 },
	{ { .name = "seed", .set = gp_set_count, FIELD(seed), .max = (1ull << 53) - 1 },
	  1,
	  offsetof(struct gp_options, has_seed) },
	{ { .name = "duration",
	    .set = gp_set_time,
	    FIELD(duration_ns),
	    .min = GP_MS,
	    .max = 100000 * GP_S,
	    .example = "60s" },
	  1,
	  offsetof(struct gp_options, has_duration) },
	{ { .name = "gpu", .set = set_pointer, FIELD(gpu) }, 1, 0 },
	{ { .name = "job", .set = set_pointer, FIELD(job) }, 1, 0 },
	{ { .name = "name", .set = set_name, FIELD(name) }, 1, 0 },
	{ { .name = "work", .set = set_pointer, FIELD(work), .choices = GP_WORKS }, 1, 0 },
	{ { .name = "devices", .set = gp_set_count, FIELD(devices), .min = 1, .max = 16 }, 1, 0 },
	{ { .name = "queues", .set = gp_set_count, FIELD(queues), .min = 1, .max = 32 }, 1, 0 },
	{ { .name = "requests", .set = gp_set_count, FIELD(requests), .min = 1, .max = 1000000000 }, 1, 0 },
	{ { .name = "rate",
	    .set = gp_set_rate,
	    FIELD(rate_milli),
	    .min = 1,
	    .max = 100000 * 1000,
	    .example = "100" },
	  1,
	  0 },
	{ { .name = "arrival",
	    .set = gp_set_choice,
	    FIELD(arrival),
	    .choices = "periodic poisson burst" }, /* in the order of enum gp_arrival */
	  1,
	  0 },
	{ { .name = "online", .set = set_flag, FIELD(online) }, 0, 0 },
	{ { .name = "offline", .set = set_flag, FIELD(offline) }, 0, 0 },
	{ { .name = "hints", .set = set_flag, FIELD(hints) }, 0, 0 },
	{ { .name = "jobs", .set = gp_set_count, FIELD(jobs), .min = 1, .max = 1024 }, 1, 0 },
	{ { .name = "json", .set = set_flag, FIELD(json) }, 0, 0 },
	{ { .name = "list", .set = set_flag, FIELD(list) }, 0, 0 },
	{ { .name = "strict", .set = set_flag, FIELD(strict) }, 0, 0 },
	{ { .name = "verbose", .set = set_flag, FIELD(verbose) }, 0, 0 },
	{ { .name = "quiet", .set = set_flag, FIELD(quiet) }, 0, 0 },
	{ { .name = "wide", .set = set_flag, FIELD(wide) }, 0, 0 },
	{ { .name = "follow", .set = set_flag, FIELD(follow) }, 0, 0 },
	{ { .name = "dry-run", .set = set_flag, FIELD(dry_run) }, 0, 0 },
	{ { .name = "simulated", .set = set_flag, FIELD(simulated) }, 0, 0 },
	{ { .name = "retry", .set = set_flag, FIELD(retry) }, 0, 0 },
	{ { .name = "once", .set = set_flag, FIELD(once) }, 0, 0 },
	{ { .name = "print-env", .set = set_flag, FIELD(print_env) }, 0, 0 },
	{ { .name = "per-client", .set = set_flag, FIELD(per_client) }, 0, 0 },
	{ { .name = "intrusive", .set = set_flag, FIELD(intrusive) }, 0, 0 },
	{ { .name = "full", .set = set_flag, FIELD(full) }, 0, 0 },
	{ { .name = "old", .set = set_flag, FIELD(old_way) }, 0, 0 },
	{ { .name = "new", .set = set_flag, FIELD(new_way) }, 0, 0 },
	{ { .name = "old" FOLDER, .set = set_pointer, FIELD(old_dir) }, 1, 0 },
	{ { .name = "new" FOLDER, .set = set_pointer, FIELD(new_dir) }, 1, 0 },
};

#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))
#define LONG 256 /* and more is a long option, to getopt_long(); less is a letter */
#define HELP (LONG + NKINDS)

_Static_assert(NKINDS + 2 <= MAX_OPTIONS, "MAX_OPTIONS is too small");

int gp_fail(int code, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	fflush(stdout);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	gp_text_clean(text);
	fprintf(stderr, "gpreempt: %s\n", text);
	return code;
}

/* As it is typed. */
static const char *name_of(const struct option_kind *kind)
{
	if (kind->key.offset == offsetof(struct gp_options, old_dir))
		return "old";
	return kind->key.offset == offsetof(struct gp_options, new_dir) ? "new" : kind->key.name;
}

/* The options of this verb, each with LONG and its index in kinds[] as its value. */
static void list_options(const struct gp_verb *verb, struct option longs[MAX_OPTIONS])
{
	size_t n = 0;

	longs[n++] = (struct option){ "help", no_argument, NULL, HELP };
	for (size_t i = 0; i < NKINDS; i++)
		if (gp_word_find(verb->options, kinds[i].key.name) >= 0)
			longs[n++] = (struct option){ name_of(&kinds[i]), kinds[i].takes_value, NULL,
						      (int)(LONG + i) };
	longs[n] = (struct option){ 0 };
}

int gp_option_at(const struct gp_verb *verb, size_t i, struct gp_option_info *ret)
{
	struct option longs[MAX_OPTIONS];
	size_t n = 0;

	list_options(verb, longs);
	while (n < i && longs[n].name)
		n++;
	if (!longs[n].name)
		return 0;
	*ret = (struct gp_option_info){
		.name = longs[n].name,
		.choices = longs[n].val == HELP ? NULL : kinds[longs[n].val - LONG].key.choices,
		.takes_value = longs[n].has_arg != no_argument,
		.may_omit = longs[n].has_arg == optional_argument,
	};
	return 1;
}

static int take_option(const struct option_kind *kind, const char *value, struct gp_options *ret)
{
	struct gp_diag diag = { "" };
	char file[32];
	const struct gp_place at = { .file = file, .is_option = 1, .diag = &diag };

	snprintf(file, sizeof(file), "--%s", name_of(kind));
	if (kind->key.set(&kind->key, &at, value, (char *)ret + kind->key.offset) < 0)
		return gp_fail(GP_EXIT_BAD_INPUT, "%s", diag.text);
	if (kind->given)
		*(int *)((char *)ret + kind->given) = 1;
	return -1;
}

static int complain_unknown(const struct gp_verb *verb, const char *arg)
{
	char word[64], near[64], meant[96] = "";

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(arg, "="), arg);
	if (gp_word_near(verb->options, word + 2, near, sizeof(near)))
		snprintf(meant, sizeof(meant), " (did you mean --%s?)", near);
	return gp_fail(GP_EXIT_BAD_INPUT, "%s: unknown option %s%s; see gpreempt %s --help", verb->name, word,
		       meant, verb->name);
}

static int complain_option(const struct gp_verb *verb, int kind, const char *arg)
{
	if (kind == ':')
		return gp_fail(GP_EXIT_BAD_INPUT, "%s: %s needs a value; see gpreempt %s --help", verb->name,
			       arg, verb->name);
	if (optopt >= LONG)
		return gp_fail(GP_EXIT_BAD_INPUT, "%s: %.*s takes no value; see gpreempt %s --help",
			       verb->name, (int)strcspn(arg, "="), arg, verb->name);
	if (optopt) /* a letter: arg may be the argument before it, or others with it */
		return gp_fail(GP_EXIT_BAD_INPUT, "%s: unknown option -%c; see gpreempt %s --help",
			       verb->name, optopt, verb->name);
	return complain_unknown(verb, arg);
}

/* As the usage calls it: "usage: gpreempt VERB FIRST SECOND..." */
static int complain_missing(const struct gp_verb *verb, int at)
{
	const char *rest = verb->usage;
	char word[64] = "";
	int used = 0;

	for (int i = -3; i <= at && sscanf(rest, "%63s%n", word, &used) == 1; i++)
		rest += used;
	if (strlen(word) > 3 && !strcmp(word + strlen(word) - 3, "..."))
		word[strlen(word) - 3] = '\0';
	return gp_fail(GP_EXIT_BAD_INPUT, "%s: %s is missing; see gpreempt %s --help", verb->name, word,
		       verb->name);
}

static int check_arguments(const struct gp_verb *verb, const struct gp_options *o, int min_args, int max_args)
{
	if (o->list || o->show || o->cluster)
		min_args = max_args = 0;
	else if (o->container && min_args)
		min_args--; /* it stands for the pids */
	if (o->argc < min_args)
		return complain_missing(verb, o->argc);
	if (o->argc > max_args)
		return gp_fail(GP_EXIT_BAD_INPUT, "%s: \"%s\" is one too many; see gpreempt %s --help",
			       verb->name, o->argv[max_args], verb->name);
	return -1;
}

int gp_options_parse(const struct gp_verb *verb, int argc, char **argv, int min_args, int max_args,
		     struct gp_options *ret)
{
	struct option longs[MAX_OPTIONS];
	const char *letters;
	int c, r;

	memset(ret, 0, sizeof(*ret));
	ret->verb = verb;
	list_options(verb, longs);
	opterr = 0;
	optind = 1;
	letters = verb->has_command ? "+:h" : gp_word_find(verb->options, "out") >= 0 ? ":ho:" : ":h";
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == 'h' || c == (int)HELP) {
			gp_print_usage(verb->usage, stdout);
			return GP_EXIT_OK;
		}
		c = c == 'o' ? LONG : c;
		r = c >= LONG ? take_option(&kinds[c - LONG], optarg, ret)
			      : complain_option(verb, c, argv[optind - 1]);
		if (r >= 0)
			return r;
	}
	ret->argc = argc - optind;
	ret->argv = argv + optind;
	return check_arguments(verb, ret, min_args, max_args);
}
