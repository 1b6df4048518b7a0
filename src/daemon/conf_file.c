// SPDX-License-Identifier: MIT
#include "daemon/conf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/manager.h"
#include "discover/text.h"
#include "ini/ini.h"
#include "ini/keys.h"
#include "base/units.h"
#include "ini/words.h"
#include "policy/load.h"
#include "policy/registry.h"
#include "wire/wire.h"

#define MOST_BYTES (256 * 1024)
#define VALUE 320 /* bytes of the longest value's text */
#define SECTIONS "daemon scheduler device limits classes"

struct setting {
	const char *section;
	struct gp_key key;
	void (*print)(const struct gp_key *key, const void *field, char text[VALUE]);
};

/* Kinds of values: how they are read and written */

static void print_time(const struct gp_key *key, const void *field, char text[VALUE])
{
	uint64_t ns = *(const uint64_t *)field;
	char number[GP_TIME_TEXT];

	if (key->word && ns == key->word_value)
		snprintf(text, VALUE, "%s", key->word);
	else
		snprintf(text, VALUE, "%s", ns ? gp_time_text(ns, number) : "0s");
}

static int set_count(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	uint64_t n = key->word_value;
	int r = key->word && !strcmp(value, key->word) ? 0 : gp_set_count(key, at, value, &n);

	if (r == 0)
		*(uint32_t *)field = (uint32_t)n;
	return r;
}

static void print_count(const struct gp_key *key, const void *field, char text[VALUE])
{
	uint32_t n = *(const uint32_t *)field;

	if (key->word && n == key->word_value)
		snprintf(text, VALUE, "%s", key->word);
	else
		snprintf(text, VALUE, "%" PRIu32, n);
}

/* A user may have as much as root. */
static int set_limit(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	const char *most =
		(const char *)&gp_limits_of_root + (key->offset - offsetof(struct gp_conf, limits));
	struct gp_key bounded = *key;

	bounded.max = *(const uint32_t *)most;
	return set_count(&bounded, at, value, field);
}

static int set_flag(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	uint64_t yes;
	int r = gp_set_yes(key, at, value, &yes);

	if (r == 0)
		*(uint32_t *)field = (uint32_t)yes;
	return r;
}

static void print_flag(const struct gp_key *key, const void *field, char text[VALUE])
{
	(void)key;
	snprintf(text, VALUE, "%s", *(const uint32_t *)field ? "yes" : "no");
}

/* To the byte, which gp_set_text() is not. */
static int set_path(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	size_t len = strlen(value);

	if (!len || len >= key->size)
		return gp_complain(at, "%s is empty, or too long; write a path of less than %zu bytes",
				   at->is_option ? "it" : key->name, key->size);
	memcpy(field, value, len + 1);
	return 0;
}

static bool is_others(const struct stat *file)
{
	return (file->st_uid != 0 && file->st_uid != geteuid()) || file->st_mode & (S_IWGRP | S_IWOTH);
}

/* Its code runs here: nobody else may have written it. */
static int check_file(const char *path, const struct gp_place *at)
{
	struct stat file, folder;
	char parent[256];

	if (path[0] != '/')
		return gp_complain(at, "load: write the whole path of \"%.80s\", from / on", path);
	if (stat(path, &file) < 0)
		return gp_complain(at, "load: %.120s: %s", path, strerror(errno));
	snprintf(parent, sizeof(parent), "%.*s/", (int)(strrchr(path, '/') - path), path);
	if (stat(parent, &folder) < 0 || is_others(&file) || is_others(&folder))
		return gp_complain(
			at,
			"load: %.120s or its folder can be written by others; chown them to root and chmod go-w",
			path);
	return 0;
}

static int set_policy_file(const struct gp_key *key, const struct gp_place *at, const char *value,
			   void *field)
{
	const struct gp_policy_ops *ops;
	char why[256];
	int r;

	if (!strcmp(value, "none")) {
		((char *)field)[0] = '\0';
		return 0;
	}
	r = check_file(value, at);
	if (r < 0)
		return r;
	if (gp_policy_load(value, &ops, why, sizeof(why)) < 0)
		return gp_complain(at, "load: %.120s: %s", value, why);
	if (gp_policy_add(ops) < 0)
		return gp_complain(at,
				   "load: there is another policy \"%.31s\"; give this one a name of its own",
				   ops->name);
	return set_path(key, at, value, field);
}

static void print_text(const struct gp_key *key, const void *field, char text[VALUE])
{
	(void)key;
	snprintf(text, VALUE, "%s", (const char *)field);
}

static void print_policy_file(const struct gp_key *key, const void *field, char text[VALUE])
{
	const char *path = field;

	print_text(key, path[0] ? path : "none", text);
}

static int set_ways(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	char error[160];

	if (gp_ways_parse(value, field, error, sizeof(error)) < 0)
		return gp_complain(at, "%s%s%s", at->is_option ? "" : key->name, at->is_option ? "" : ": ",
				   error);
	return 0;
}

static void print_ways(const struct gp_key *key, const void *field, char text[VALUE])
{
	const struct gp_ways *ways = field;
	size_t used = 0;

	(void)key;
	for (uint32_t i = 0; i < ways->n; i++)
		used += (size_t)snprintf(text + used, VALUE - used, "%s%s%s", i ? "," : "",
					 gp_way_name(ways->way[i].way), ways->way[i].named ? "?" : "");
}

/* The settings */

#define FIELD(field) .offset = offsetof(struct gp_conf, field)
#define TIME(in, as, field, usual, least, most) \
	{ \
		.section = (in), \
		.key = { .name = (as), \
			 .set = gp_set_time, \
			 FIELD(field), \
			 .min = (least), \
			 .max = (most), \
			 .preset = (usual), \
			 .example = (usual) }, \
		.print = print_time \
	}
#define WORD_OR_TIME(in, as, field, usual, least, most, say, means) \
	{ \
		.section = (in), \
		.key = { .name = (as), \
			 .set = gp_set_time, \
			 FIELD(field), \
			 .min = (least), \
			 .max = (most), \
			 .preset = (usual), \
			 .example = "1s", \
			 .word = (say), \
			 .word_value = (means) }, \
		.print = print_time \
	}
#define LIMIT(as, field, usual) \
	{ \
		.section = "limits", \
		.key = { .name = (as), .set = set_limit, FIELD(limits.field), .min = 1, .preset = (usual) }, \
		.print = print_count \
	}
#define FLAG(in, as, field, setter, printer, usual) \
	{ \
		.section = (in), .key = { .name = (as), .set = (setter), FIELD(field), .preset = (usual) }, \
		.print = (printer) \
	}
#define PATH(in, as, field, usual) \
	{ \
		.section = (in), \
		.key = { .name = (as), \
			 .set = set_path, \
			 FIELD(field), \
			 .preset = (usual), \
			 .size = sizeof(((struct gp_conf *)0)->field) }, \
		.print = print_text \
	}

/* share/gpreemptd.conf explains each. */
static const struct setting settings[] = {
	PATH("daemon", "socket", socket, NULL),
	PATH("daemon", "class_sockets", class_sockets, NULL),
	FLAG("daemon", "ways", ways, set_ways, print_ways, "session,update,park"),
	TIME("daemon", "lease", lease_ns, "3s", 30 * GP_MS, 3600 * GP_S),
	TIME("daemon", "scan", scan_ns, "1s", 0, 3600 * GP_S),
	TIME("daemon", "patience", patience_ns, "10s", 10 * GP_MS, 3600 * GP_S),
	FLAG("daemon", "sample", sample, set_flag, print_flag, "yes"),
	PATH("daemon", "root", root, "/"),
	FLAG("daemon", "old_kernel", old_kernel, set_flag, print_flag, "no"),
	{ .section = "scheduler",
	  .key = { .name = "load",
		   .set = set_policy_file,
		   FIELD(policy_file),
		   .preset = "none",
		   .size = sizeof(((struct gp_conf *)0)->policy_file) },
	  .print = print_policy_file },
	{ .section = "scheduler",
	  .key = { .name = "policy",
		   .set = gp_set_policy,
		   FIELD(policy),
		   .preset = "priority",
		   .size = GP_NAME_LEN },
	  .print = print_text },
	WORD_OR_TIME("scheduler", "linger", core.linger_ns, "auto", 0, 60 * GP_S, "auto", 0),
	TIME("scheduler", "hint_expiry", core.hint_expiry_ns, "1s", GP_MS, 3600 * GP_S),
	WORD_OR_TIME("scheduler", "max_starve", core.max_starve_ns, "1s", 10 * GP_MS, 3600 * GP_S, "never",
		     GP_NEVER),
	TIME("scheduler", "starve_slice", core.starve_slice_ns, "10ms", 100 * GP_US, 60 * GP_S),
	TIME("scheduler", "quantum", core.quantum_ns, "250ms", GP_MS, 60 * GP_S),
	TIME("scheduler", "stall", core.stall_ns, "250ms", GP_MS, 60 * GP_S),
	{ .section = "scheduler",
	  .key = { .name = "max_stops_per_s",
		   .set = set_count,
		   FIELD(core.max_stops_per_s),
		   .min = 1,
		   .max = 1000000,
		   .preset = "2000" },
	  .print = print_count },
	{ .section = "scheduler",
	  .key = { .name = "park",
		   .set = set_count,
		   FIELD(core.park_hints),
		   .min = 0,
		   .max = 1000000,
		   .preset = "2" },
	  .print = print_count },
	FLAG("scheduler", "sdma", stop_sdma, set_flag, print_flag, "yes"),
	FLAG("scheduler", "driver_watches", driver_watches, set_flag, print_flag, "no"),
	LIMIT("peers", peers, "128"),
	LIMIT("processes", processes, "512"),
	LIMIT("queues", queues, "4096"),
	LIMIT("holds", holds, "8192"),
	LIMIT("requests", requests, "256"),
	LIMIT("items", items, "8192"),
	LIMIT("debuggers", debuggers, "16"),
	LIMIT("followers", followers, "8"),
	LIMIT("unread", unread, "4194304"),
	{ .section = "limits",
	  .key = { .name = "places",
		   .set = set_count,
		   FIELD(places),
		   .min = 1,
		   .max = GP_MOST_PEERS,
		   .preset = "auto",
		   .word = "auto" },
	  .print = print_count },
	PATH("classes", "include", classes_file, GP_CONF_CLASSES),
};

#define NSETTINGS (sizeof(settings) / sizeof(settings[0]))

_Static_assert(NSETTINGS <= 64, "struct reader has a bit for each");

static const struct gp_key device_policy = { .name = "policy", .set = gp_set_policy, .size = GP_NAME_LEN };

/* NULL: there is none. */
static const struct setting *find_setting(const char *section, const char *name)
{
	for (size_t i = 0; i < NSETTINGS; i++)
		if (!strcmp(settings[i].section, section) && !strcmp(settings[i].key.name, name))
			return &settings[i];
	return NULL;
}

static int set_field(struct gp_conf *conf, const struct setting *s, const struct gp_place *at,
		     const char *value)
{
	return s->key.set(&s->key, at, value, (char *)conf + s->key.offset);
}

void gp_conf_preset(struct gp_conf *conf)
{
	struct gp_diag diag = { "" };
	const struct gp_place at = { .file = "preset", .diag = &diag };

	for (size_t i = 0; i < NSETTINGS; i++)
		if (settings[i].key.preset)
			(void)set_field(conf, &settings[i], &at, settings[i].key.preset);
}

int gp_conf_set(struct gp_conf *conf, const char *section, const char *name, const char *value,
		const char *option, struct gp_diag *diag)
{
	const struct gp_place at = { .file = option, .is_option = 1, .diag = diag };

	return set_field(conf, find_setting(section, name), &at, value);
}

/* The file */

struct reader {
	struct gp_conf *conf;
	const char *section;           /* NULL: one that is not known; what is in it is left out */
	struct gp_conf_device *device; /* of a [device N] */
	uint64_t seen;                 /* by their places in settings[] */
	bool is_bad;
};

/* What is wrong is told, and the rest is read, so that all of it is told. */
static int go_on(struct reader *rd, const struct gp_place *at, int r)
{
	if (r < 0) {
		gp_log("%s", at->diag->text);
		at->diag->text[0] = '\0';
		rd->is_bad = true;
	}
	return 0;
}

static int begin_device(struct reader *rd, const struct gp_place *at, const char *number)
{
	struct gp_conf *conf = rd->conf;
	uint64_t n;

	if (gp_count_parse(number, &n) < 0 || n >= GP_MOST_DEVICES)
		return gp_complain(at, "[device %.16s] is none; write its number, as in: [device 0]", number);
	for (uint32_t i = 0; i < conf->ndevices; i++)
		if (conf->devices[i].device == n)
			return gp_complain(at, "[device %" PRIu64 "] is here twice; write it once", n);
	rd->section = "device";
	rd->device = &conf->devices[conf->ndevices++];
	*rd->device = (struct gp_conf_device){ .device = (uint32_t)n };
	return 0;
}

static int begin_section(void *arg, const struct gp_place *at, const char *heading)
{
	struct reader *rd = arg;

	rd->section = NULL;
	rd->device = NULL;
	if (!strncmp(heading, "device ", 7))
		return go_on(rd, at, begin_device(rd, at, heading + 7));
	if (!strcmp(heading, "device"))
		return go_on(rd, at, begin_device(rd, at, ""));
	for (size_t i = 0; i < NSETTINGS && !rd->section; i++)
		if (!strcmp(settings[i].section, heading))
			rd->section = settings[i].section;
	return rd->section ? 0 : go_on(rd, at, gp_complain_unknown(at, "section", heading, SECTIONS));
}

/* It was a word for two things. */
#define OLD_NAME "background"
#define NEW_NAME "driver_watches"

static int complain_key(const struct reader *rd, const struct gp_place *at, const char *name)
{
	char list[256] = "";
	size_t used = 0;

	if (!strcmp(name, OLD_NAME) && !strcmp(rd->section, "scheduler"))
		return gp_complain(at, "%s is called %s now; write that", OLD_NAME, NEW_NAME);
	for (size_t i = 0; i < NSETTINGS && used < sizeof(list); i++)
		if (!strcmp(settings[i].section, rd->section))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? " " : "",
						 settings[i].key.name);
	return gp_complain_unknown(at, "setting", name, rd->device ? device_policy.name : list);
}

static int take_entry(struct reader *rd, const struct gp_place *at, const char *name, const char *value)
{
	const struct setting *s = rd->device ? NULL : find_setting(rd->section, name);
	uint64_t bit;

	if (rd->device && !strcmp(name, device_policy.name))
		return rd->device->policy[0] ? gp_complain(at, "policy is here twice; write it once")
					     : gp_set_policy(&device_policy, at, value, rd->device->policy);
	if (!s)
		return complain_key(rd, at, name);
	bit = 1ull << (s - settings);
	if (rd->seen & bit)
		return gp_complain(at, "%s is here twice; write it once", name);
	rd->seen |= bit;
	return set_field(rd->conf, s, at, value);
}

static int read_entry(void *arg, const struct gp_place *at, const char *name, const char *value)
{
	struct reader *rd = arg;

	return rd->section ? go_on(rd, at, take_entry(rd, at, name, value)) : 0;
}

/* A [device N] that says nothing is as the others. */
static void fill_devices(struct gp_conf *conf)
{
	for (uint32_t i = 0; i < conf->ndevices; i++)
		if (!conf->devices[i].policy[0])
			memcpy(conf->devices[i].policy, conf->policy, GP_NAME_LEN);
}

static int parse(struct gp_conf *conf, const char *path, const char *text)
{
	static const struct gp_ini_ops ops = { .section = begin_section, .entry = read_entry };
	struct reader rd = { .conf = conf };
	struct gp_diag diag = { "" };

	if (gp_ini_parse(text, path, &ops, &rd, &diag) < 0) {
		gp_log("%s", diag.text);
		rd.is_bad = true;
	}
	fill_devices(conf);
	return rd.is_bad ? -EINVAL : 0;
}

int gp_conf_read(struct gp_conf *conf, const char *path)
{
	const size_t size = MOST_BYTES + 2; /* one more than it may have, and a zero */
	char *text = malloc(size);
	int n = text ? gp_read_at(AT_FDCWD, path, text, size) : -ENOMEM;
	int r = n;

	if (n > MOST_BYTES || (n >= 0 && memchr(text, '\0', (size_t)n))) {
		gp_log("%s: it is too long for a configuration, or not text; --config names another", path);
		r = -EINVAL;
	} else if (n >= 0) {
		r = parse(conf, path, text);
	}
	free(text);
	return r;
}

void gp_conf_print(const struct gp_conf *conf)
{
	const char *section = "";
	char text[VALUE];

	for (size_t i = 0; i < NSETTINGS; i++) {
		const struct setting *s = &settings[i];

		if (strcmp(section, s->section) != 0)
			printf("%s[%s]\n", i ? "\n" : "", s->section);
		section = s->section;
		s->print(&s->key, (const char *)conf + s->key.offset, text);
		printf("%s = %s\n", s->key.name, text);
	}
	for (uint32_t i = 0; i < conf->ndevices; i++)
		printf("\n[device %" PRIu32 "]\npolicy = %s\n", conf->devices[i].device,
		       conf->devices[i].policy);
}
