// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/inside.h"
#include "cli/machine_list.h"
#include "cli/place.h"
#include "cli/wrap.h"
#include "discover/describe.h"
#include "study/files.h"
#include "study/json.h"
#include "base/units.h"

static const char usage[] =
	"usage: gpreempt find PID [LOG] [options]\n"
	"       gpreempt find --container NAME [options]\n"
	"       queue_finder PID [LOG]\n"
	"\n"
	"Finds the AMD GPU queues of a process: in sysfs, in debugfs (root alone may read it) and\n"
	"in LOG, what a HIP program writes with AMD_LOG_LEVEL=4. Writes them to\n"
	"queue_config_pid_PID.py in the current folder as well.\n"
	"\n"
	"  --container NAME   PID is one inside this container; without PID, all processes in it\n"
	"  --root DIR         from a recorded copy of /sys and /proc below DIR\n"
	"  --verbose          all that is known of each queue, and what each source gave\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt find 4711\n"
	"  gpreempt find 4711 /tmp/hip.log\n"
	"  gpreempt find --container trainer\n"
	"  gpreempt find 1 --container trainer\n";

/* A process that was asked for, and what is known of it. */
struct query {
	const struct gp_options *opts;
	uint32_t pid; /* the host's */
	const char *log;
	char file[64]; /* to be written */
	struct gp_found *found;
	struct json_object *list; /* of all processes' objects; NULL: of one alone, and printed */
};

/* As they are in the output: what people read, and what programs do. */
static const struct {
	const char *text, *key;
	uint32_t field;
} fields[] = {
	{ "address", "addr", GP_FIELD_RING },
	{ "queue id", "queue_id", GP_FIELD_ID },
	{ "active", "is_active", GP_FIELD_ACTIVE },
	{ "gpu", "gpu_id", GP_FIELD_GPU },
	{ "kind", "kind", GP_FIELD_KIND },
	{ "priority", "priority", GP_FIELD_PRIORITY },
	{ "ring size", "ring_size", GP_FIELD_RING_SIZE },
};

#define NFIELDS (sizeof(fields) / sizeof(fields[0]))
#define NSHORT 3 /* of these, without --verbose */

static const char *hex_text(uint64_t value, int known, char text[32])
{
	if (known)
		snprintf(text, 32, "0x%016" PRIx64, value);
	else
		strcpy(text, "unknown");
	return text;
}

/* The runtime's own number is no queue id, and must not look like one. */
static const char *id_text(const struct gp_found_queue *q, char text[80])
{
	if (q->from[GP_FIELD_ID] == GP_SOURCE_INFERRED)
		snprintf(text, 80, "%" PRIu32 " (likely: by the order of creation)", q->queue_id);
	else if (q->from[GP_FIELD_ID])
		snprintf(text, 80, "%" PRIu32, q->queue_id);
	else if (q->from[GP_FIELD_RUNTIME_ID])
		snprintf(text, 80, "unknown (the runtime's own number is %" PRIu32 ")", q->runtime_id);
	else
		strcpy(text, "unknown");
	return text;
}

static void print_sources(const struct gp_found_queue *q, size_t n)
{
	char text[512] = "nothing";
	size_t used = 0;

	for (size_t i = 0; i < n && used < sizeof(text); i++)
		if (q->from[fields[i].field])
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s",
						 used ? ", " : "", fields[i].text,
						 gp_source_name(q->from[fields[i].field]));
	printf("  from:     ");
	gp_print_wrapped(text, 12, stdout);
}

static void print_more(const struct gp_found_queue *q)
{
	printf("  gpu:      %s", q->from[GP_FIELD_GPU] ? "" : "unknown\n");
	if (q->from[GP_FIELD_GPU])
		printf("%" PRIu32 "\n", q->gpu_id);
	printf("  kind:     %s\n", q->from[GP_FIELD_KIND] ? gp_kind_name(q->kind) : "unknown");
	printf("  priority: %s", q->from[GP_FIELD_PRIORITY] ? "" : "unknown\n");
	if (q->from[GP_FIELD_PRIORITY])
		printf("%" PRIu32 "\n", q->priority);
	if (q->from[GP_FIELD_RING_SIZE])
		printf("  size:     %" PRIu64 "\n", q->ring_size);
}

static void print_queue(const struct query *f, const struct gp_found_queue *q, size_t number)
{
	char address[32], id[80];

	printf("Queue #%zu:\n", number);
	printf("  address:  %s\n", hex_text(q->ring, q->from[GP_FIELD_RING], address));
	printf("  queue id: %s\n", id_text(q, id));
	printf("  pid:      %" PRIu32 "%s\n", f->pid, q->pid ? "" : " (as you say: the log does not tell)");
	printf("  active:   %s\n", !q->from[GP_FIELD_ACTIVE] ? "unknown" : q->active ? "yes" : "no");
	if (f->opts->verbose)
		print_more(q);
	print_sources(q, f->opts->verbose ? NFIELDS : NSHORT);
	putchar('\n');
}

static const char *source_state(const struct gp_found_source *s)
{
	return s->status == -ENODATA ? "not asked" : s->status < 0 ? gp_strerror(s->status) : "read";
}

static void print_source_states(const struct gp_found *found)
{
	for (uint32_t i = GP_SOURCE_SYSFS; i <= GP_SOURCE_LOG; i++) {
		const struct gp_found_source *s = &found->sources[i];

		printf("%-14s %s", gp_source_name(i), source_state(s));
		if (s->lines)
			printf(", %" PRIu32 " lines", s->lines);
		if (s->skipped)
			printf(", %" PRIu32 " not understood", s->skipped);
		printf("%s\n", s->truncated ? ", ends in the middle" : "");
	}
	putchar('\n');
}

/* What a Python program reads. Appends to a stream in memory. */
static void write_config(const struct query *f, FILE *out)
{
	fprintf(out, "# %s\nqueues = [\n", f->file);
	for (size_t i = 0; i < f->found->nqueues; i++) {
		const struct gp_found_queue *q = &f->found->queues[i];

		fprintf(out, "    {\n");
		if (q->from[GP_FIELD_RING])
			fprintf(out, "        'addr': 0x%016" PRIx64 ",\n", q->ring);
		else
			fprintf(out, "        'addr': None,\n");
		if (q->from[GP_FIELD_ID])
			fprintf(out, "        'queue_id': %" PRIu32 ",\n", q->queue_id);
		else
			fprintf(out, "        'queue_id': None,\n");
		fprintf(out, "        'pid': %" PRIu32 ",\n", f->pid);
		fprintf(out, "        'is_active': %s,\n",
			!q->from[GP_FIELD_ACTIVE] ? "None"
			: q->active               ? "True"
						  : "False");
		fprintf(out, "    },\n");
	}
	fprintf(out, "]\n");
}

static int write_file(const struct query *f)
{
	struct gp_file file = { .name = f->file };
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int r;

	if (!out)
		return -ENOMEM;
	write_config(f, out);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	file.text = text;
	file.len = len;
	r = gp_files_write(".", &file, 1);
	free(text);
	return r;
}

static struct json_object *queue_json(const struct query *f, const struct gp_found_queue *q)
{
	struct json_object *o = json_object_new_object(), *from = json_object_new_object();
	char address[32];

	json_object_object_add(o, "addr",
			       q->from[GP_FIELD_RING] ? json_object_new_string(hex_text(q->ring, 1, address))
						      : NULL);
	json_object_object_add(o, "queue_id",
			       q->from[GP_FIELD_ID] ? json_object_new_uint64(q->queue_id) : NULL);
	gp_json_add_int(o, "pid", f->pid);
	json_object_object_add(o, "is_active",
			       q->from[GP_FIELD_ACTIVE] ? json_object_new_boolean(q->active != 0) : NULL);
	json_object_object_add(o, "gpu_id", q->from[GP_FIELD_GPU] ? json_object_new_uint64(q->gpu_id) : NULL);
	gp_json_add_text(o, "kind", gp_kind_name(q->kind));
	json_object_object_add(o, "priority",
			       q->from[GP_FIELD_PRIORITY] ? json_object_new_uint64(q->priority) : NULL);
	json_object_object_add(o, "runtime_id",
			       q->from[GP_FIELD_RUNTIME_ID] ? json_object_new_uint64(q->runtime_id) : NULL);
	for (size_t i = 0; i < NFIELDS; i++)
		if (q->from[fields[i].field])
			gp_json_add_text(from, fields[i].key, gp_source_name(q->from[fields[i].field]));
	json_object_object_add(o, "from", from);
	return o;
}

static void add_text_or_null(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, text && text[0] ? json_object_new_string(text) : NULL);
}

static void print_json(const struct query *f, const char *written, const char *missing, const char *log)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct json_object *sources = json_object_new_object();

	for (size_t i = 0; i < f->found->nqueues; i++)
		json_object_array_add(list, queue_json(f, &f->found->queues[i]));
	for (uint32_t i = GP_SOURCE_SYSFS; i <= GP_SOURCE_LOG; i++)
		gp_json_add_text(sources, gp_source_name(i), source_state(&f->found->sources[i]));
	gp_json_add_text(o, "schema", "gpreempt-find-1");
	gp_json_add_int(o, "pid", f->pid);
	json_object_object_add(o, "queues", list);
	json_object_object_add(o, "sources", sources);
	add_text_or_null(o, "file", written);
	add_text_or_null(o, "missing", missing);
	add_text_or_null(o, "log", log);
	if (f->list)
		json_object_array_add(f->list, o);
	else
		gp_json_print(o);
}

static int look(const struct gp_options *o, uint32_t pid, const char *log, struct gp_found **ret)
{
	const struct gp_discover_opts opts = { .root = o->root, .log = log, .pid = pid };

	return gp_discover(&opts, ret);
}

/* Who else is called so, inside a container. */
static void add_hint(const struct query *f, char *text, size_t size)
{
	struct gp_found *all;

	if (f->opts->container || look(f->opts, 0, NULL, &all) < 0)
		return;
	for (size_t i = 0; i < all->nclients; i++) {
		const struct gp_found_client *c = &all->clients[i];
		char place[GP_PLACE];

		gp_describe_place(c, place, sizeof(place));
		if (c->inner_pid == f->pid && c->pid != f->pid)
			gp_place_hint(f->pid, c->pid, place, text, size);
	}
	gp_found_free(all);
}

/* Whether the process has a folder there. */
static int is_in(const struct query *f, const char *folder)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s/%" PRIu32, f->opts->root ? f->opts->root : "", folder, f->pid);
	return access(path, F_OK) == 0;
}

/* Why the log that was given helped nothing; empty if it did. */
static void explain_log(const struct query *f, char *text, size_t size)
{
	const struct gp_found_source *log = &f->found->sources[GP_SOURCE_LOG];

	text[0] = '\0';
	if (!f->log || log->queues)
		return;
	if (log->status == -ENODATA)
		snprintf(text, size, "%s was not read: in a pid namespace gpreemptd tells all there is",
			 f->log);
	else if (log->others)
		snprintf(text, size, "%s is of process %" PRIu32 ", not %" PRIu32 ", and none of it was used",
			 f->log, log->other_pid, f->pid);
	else
		snprintf(text, size, "%s names no queue: was it written with AMD_LOG_LEVEL=4?", f->log);
}

/* Why there is no queue to show. */
static void explain_none(const struct query *f, char *text, size_t size)
{
	if (f->found->sources[GP_SOURCE_SYSFS].status < 0 && f->found->sources[GP_SOURCE_MQDS].status < 0)
		snprintf(text, size, "no AMD GPU here, or amdgpu is not loaded (/sys/class/kfd: %s)%s",
			 gp_strerror(f->found->sources[GP_SOURCE_SYSFS].status),
			 access("/dev/nvidiactl", F_OK) == 0
				 ? "; queues on NVIDIA GPUs are known to gpreemptd alone: gpreempt list"
				 : "");
	else if (!is_in(f, "/proc"))
		snprintf(text, size, "there is no process %" PRIu32 "%s", f->pid,
			 f->opts->container ? "" : "; for one in a container, use --container NAME");
	else if (!is_in(f, "/sys/class/kfd/kfd/proc"))
		snprintf(text, size,
			 "process %" PRIu32 " does not use an AMD GPU: it has not opened /dev/kfd", f->pid);
	else
		snprintf(text, size, "process %" PRIu32 " uses an AMD GPU, and has no queue now", f->pid);
}

static size_t count_unknown(const struct query *f, uint32_t field)
{
	size_t n = 0;

	for (size_t i = 0; i < f->found->nqueues; i++)
		n += !f->found->queues[i].from[field];
	return n;
}

/* What would let us read debugfs. */
static const char *remedy(const struct query *f, int32_t status)
{
	if (f->opts->root)
		return "the recorded copy is without it";
	if (status == -EACCES && geteuid() != 0)
		return "run it as root";
	return geteuid() == 0 ? "mount debugfs" : "mount debugfs, and run it as root";
}

/* Why some of it is unknown. */
static void explain_unknown(const struct query *f, char *text, size_t size)
{
	const struct gp_found_source *mqds = &f->found->sources[GP_SOURCE_MQDS];
	size_t rings = count_unknown(f, GP_FIELD_RING), active = count_unknown(f, GP_FIELD_ACTIVE);
	const char *what = rings && active ? "addresses and activity" : rings ? "addresses" : "activity";

	text[0] = '\0';
	if (!rings && !active)
		return;
	if (mqds->status < 0)
		snprintf(text, size, "%s: /sys/kernel/debug/kfd/mqds has that (%s): %s", what,
			 gp_strerror(mqds->status), remedy(f, mqds->status));
	else if (mqds->truncated)
		snprintf(text, size, "%s: /sys/kernel/debug/kfd/mqds ends in the middle", what);
}

/*
 * How many stand in the list twice, by id and by address, where nothing tells which is which.  One that is
 * known by its address alone and not as gone is one of those that are known by their id alone.
 */
static size_t count_twice(const struct gp_found *found)
{
	size_t by_id = 0, by_address = 0;

	for (size_t i = 0; i < found->nqueues; i++) {
		const struct gp_found_queue *q = &found->queues[i];

		by_id += q->from[GP_FIELD_ID] && !q->from[GP_FIELD_RING];
		by_address += !q->from[GP_FIELD_ID] && (!q->from[GP_FIELD_ACTIVE] || q->active);
	}
	return by_id < by_address ? by_id : by_address;
}

static void print_total(const struct query *f)
{
	size_t twice = count_twice(f->found), n = f->found->nqueues - twice;

	printf("Total: %zu queue%s\n", n, n == 1 ? "" : "s");
	if (twice)
		printf("Twice: %zu above, once by %s id and once by %s address: which is which cannot be told\n",
		       twice, twice == 1 ? "its" : "their", twice == 1 ? "its" : "their");
}

/* One line of what is not as it might be; empty: none. */
static void print_note(const char *title, const char *text)
{
	if (!text[0])
		return;
	printf("%s: ", title);
	gp_print_wrapped(text, strlen(title) + 2, stdout);
}

static void print_all(const struct query *f, const char *why, const char *log)
{
	for (size_t i = 0; i < f->found->nqueues; i++)
		print_queue(f, &f->found->queues[i], i + 1);
	if (f->opts->verbose)
		print_source_states(f->found);
	print_total(f);
	print_note("Unknown", why);
	print_note("Log", log);
}

static int report_none(const struct query *f, const char *log)
{
	char why[512];

	explain_none(f, why, sizeof(why));
	add_hint(f, why, sizeof(why));
	if (f->opts->json)
		print_json(f, NULL, why, log);
	return gp_fail(GP_EXIT_FAILED, "no queues found: %s%s%s", why, log[0] ? "; " : "", log);
}

static int report(const struct query *f)
{
	char why[256], log[512];
	int r;

	explain_log(f, log, sizeof(log));
	if (!f->found->nqueues)
		return report_none(f, log);
	explain_unknown(f, why, sizeof(why));
	r = write_file(f);
	if (f->opts->json)
		print_json(f, r < 0 ? NULL : f->file, why, log);
	else
		print_all(f, why, log);
	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "cannot write %s: %s", f->file, strerror(-r));
	if (!f->opts->json)
		printf("Wrote %s\n", f->file);
	return GP_EXIT_OK;
}

struct lodger {
	uint32_t pid;
	char container[80]; /* its id, as in struct gp_found_client */
	char place[GP_PLACE];
};

/* The processes in the container that was named, among those that the driver knows, for the caller to free.
 * -1 to go on, else the exit code. */
static int find_lodgers(const struct gp_options *o, struct lodger **ret, size_t *ret_n)
{
	struct gp_found *found;
	struct lodger *all;
	char place[GP_PLACE];
	size_t n = 0;
	int code, r = look(o, 0, NULL, &found);

	all = r < 0 ? NULL : calloc(found->nclients + 1, sizeof(*all));
	if (!all && r == 0)
		gp_found_free(found);
	if (!all)
		return gp_fail(GP_EXIT_FAILED, "find: %s", strerror(r < 0 ? -r : ENOMEM));
	for (size_t i = 0; i < found->nclients; i++) {
		all[i].pid = found->clients[i].pid;
		memcpy(all[i].container, found->clients[i].container, sizeof(all[i].container));
		gp_describe_place(&found->clients[i], all[i].place, sizeof(all[i].place));
	}
	code = gp_place_choose(o->container, gp_places_of(all, found->nclients), place);
	for (size_t i = 0; code < 0 && i < found->nclients; i++)
		if (!strcmp(all[i].place, place))
			all[n++] = all[i];
	gp_found_free(found);
	if (code >= 0)
		free(all);
	*ret = all;
	*ret_n = n;
	return code;
}

/* A word that names several containers, or none with that pid, may still name one of those with queues. -1 to
 * go on, else the exit code. */
static int find_inner(const struct gp_options *o, uint32_t *pid)
{
	struct lodger *lodgers;
	uint32_t inner = *pid;
	size_t n;
	int code, r = gp_discover_container_pid(o->root, o->container, inner, pid);

	if (r == 0)
		return -1;
	code = find_lodgers(o, &lodgers, &n);
	if (code >= 0)
		return code;
	r = gp_discover_container_pid(o->root, lodgers[0].container, inner, pid);
	free(lodgers);
	if (r == 0)
		return -1;
	return gp_fail(GP_EXIT_FAILED, "--container %s: %s process %" PRIu32 " in it", o->container,
		       r == -ENOTUNIQ ? "there is more than one" : "there is no", inner);
}

/* Whether pids are none that the driver's files have: another process may have ours there. */
static int is_inside(const struct gp_options *o)
{
	return !o->root && !gp_sees_host_pids();
}

/* -1 to go on, else the exit code. */
static int find_pid(const struct gp_options *o, uint32_t *ret)
{
	uint64_t pid;

	if (gp_count_parse(o->argv[0], &pid) < 0 || !pid || pid > INT32_MAX)
		return gp_fail(GP_EXIT_BAD_INPUT, "find: \"%s\" is no process id; write it as 4711",
			       o->argv[0]);
	*ret = (uint32_t)pid;
	return o->container ? find_inner(o, ret) : -1;
}

static int find_one(struct query *f)
{
	int code = is_inside(f->opts) ? gp_inside_find(f->pid, &f->found) : -1, r = 0;

	if (code >= 0)
		return code;
	snprintf(f->file, sizeof(f->file), "queue_config_pid_%" PRIu32 ".py", f->pid);
	if (!f->found)
		r = look(f->opts, f->pid, f->log, &f->found);
	if (r < 0)
		return r != -ENOMEM && f->log ? gp_fail(GP_EXIT_BAD_INPUT, "%s: %s", f->log, strerror(-r))
					      : gp_fail(GP_EXIT_FAILED, "find: %s", strerror(-r));
	code = report(f);
	gp_found_free(f->found);
	f->found = NULL;
	return code;
}

/* Each process in the container; the exit code is the worst. */
static int find_all(struct query *f)
{
	struct lodger *lodgers;
	size_t n;
	int worst = GP_EXIT_OK, code = find_lodgers(f->opts, &lodgers, &n);

	if (code >= 0)
		return code;
	f->list = f->opts->json ? json_object_new_array() : NULL;
	for (size_t i = 0; i < n; i++) {
		f->pid = lodgers[i].pid;
		code = find_one(f);
		worst = code > worst ? code : worst;
	}
	free(lodgers);
	if (f->list) {
		struct json_object *o = json_object_new_object();

		gp_json_add_text(o, "schema", "gpreempt-find-1");
		json_object_object_add(o, "processes", f->list);
		gp_json_print(o);
	}
	return worst;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	struct query f = { .opts = &opts };
	int code = gp_options_parse(verb, argc, argv, 1, 2, &opts);

	if (code < 0 && opts.root)
		code = gp_root_check(opts.root);
	if (code < 0 && opts.container && is_inside(&opts))
		code = gp_fail(GP_EXIT_FAILED, "find: --container is for the host; this is a pid namespace");
	if (code < 0 && !opts.argc)
		return find_all(&f);
	if (code < 0)
		code = find_pid(&opts, &f.pid);
	if (code >= 0)
		return code;
	f.log = opts.argc > 1 ? opts.argv[1] : NULL;
	return find_one(&f);
}

const struct gp_verb gp_verb_find = {
	.name = "find",
	.summary = "the AMD GPU queues of a process",
	.usage = usage,
	.options = "container root verbose json",
	.run = run,
};
