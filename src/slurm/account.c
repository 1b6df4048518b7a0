// SPDX-License-Identifier: MIT
#include "slurm/account.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OURS "gpreempt "
#define BETWEEN "; "

/* To the millisecond, so that ten digits tell of a hundred days without an exponent. */
static double seconds(uint64_t ns)
{
	return (double)(ns / 1000000) / 1e3;
}

static double milliseconds(uint64_t ns)
{
	return (double)ns / 1e6;
}

static const char *name_of(uint32_t client_class)
{
	return client_class == GP_CLASS_ONLINE ? "online" : "offline";
}

/* SLURMD_NODENAME is what the user says, in a step of theirs. */
const char *gp_slurm_node(char name[GP_SLURM_NODE])
{
	if (gethostname(name, GP_SLURM_NODE - 1) < 0)
		snprintf(name, GP_SLURM_NODE, "?");
	name[GP_SLURM_NODE - 1] = '\0';
	name[strcspn(name, "./")] = '\0';
	return name;
}

/* The comment */

/* Where it has requests they are what counts. */
static int print_requests(const struct gp_job_info *had, char *text, size_t size)
{
	int n = snprintf(text, size, "%llu requests, p50 %.3g ms, p99 %.3g ms",
			 (unsigned long long)had->requests, milliseconds(had->p50_ns),
			 milliseconds(had->p99_ns));

	if (had->with_slo)
		n += snprintf(text + n, size - (size_t)n, ", %.4g%% in time",
			      100.0 * (double)had->within_slo / (double)had->with_slo);
	return n;
}

void gp_slurm_entry(const struct gp_slurm_step *step, const struct gp_job_info *had,
		    char text[GP_SLURM_ENTRY])
{
	int n = snprintf(text, GP_SLURM_ENTRY, OURS "%s@%.64s: %s, ", step->step, step->node,
			 name_of(had->client_class));

	if (had->requests)
		n += print_requests(had, text + n, GP_SLURM_ENTRY - (size_t)n);
	else
		n += snprintf(text + n, GP_SLURM_ENTRY - (size_t)n, "ran %.10g s", seconds(had->ran_ns));
	if (had->client_class != GP_CLASS_ONLINE)
		n += snprintf(text + n, GP_SLURM_ENTRY - (size_t)n, ", stopped %llu times, %.10g s",
			      (unsigned long long)had->waits, seconds(had->waited_ns));
	if (had->is_partial)
		snprintf(text + n, GP_SLURM_ENTRY - (size_t)n, ", since gpreemptd was started again");
}

/* How long the part is that begins here. */
static size_t part_at(const char *at)
{
	const char *end = strstr(at, BETWEEN);

	return end ? (size_t)(end - at) : strlen(at);
}

static const char *after(const char *at)
{
	at += part_at(at);
	return *at ? at + strlen(BETWEEN) : at;
}

static size_t count_ours(const char *comment)
{
	size_t n = 0;

	for (const char *at = comment; *at; at = after(at))
		n += !strncmp(at, OURS, strlen(OURS));
	return n;
}

/* A part of another release's, or a user's own that begins so, is as good as one of ours. */
static bool is_about_the_same(const char *part, const char *entry)
{
	size_t about = strcspn(entry, ":") + 1;

	return !strncmp(part, entry, about);
}

bool gp_slurm_comment_has(const char *comment, const char *entry)
{
	for (const char *at = comment; *at; at = after(at))
		if (part_at(at) == strlen(entry) && !strncmp(at, entry, strlen(entry)))
			return true;
	return false;
}

static int add_part(char text[GP_SLURM_COMMENT], const char *part, size_t len)
{
	size_t used = strlen(text);
	int n = snprintf(text + used, GP_SLURM_COMMENT - used, "%s%.*s", used ? BETWEEN : "", (int)len, part);

	return (size_t)n < GP_SLURM_COMMENT - used ? 0 : -E2BIG;
}

int gp_slurm_comment(const char *before, const char *entry, char text[GP_SLURM_COMMENT])
{
	size_t ours = count_ours(before);
	size_t drop = ours >= GP_SLURM_MOST_ENTRIES ? ours - GP_SLURM_MOST_ENTRIES + 1 : 0;
	int r = 0;

	text[0] = '\0';
	for (const char *at = before; r == 0 && *at; at = after(at)) {
		bool is_ours = !strncmp(at, OURS, strlen(OURS));

		if (is_ours && is_about_the_same(at, entry))
			continue;
		if (is_ours && drop)
			drop--;
		else
			r = add_part(text, at, part_at(at));
	}
	return r < 0 ? r : add_part(text, entry, strlen(entry));
}

/* The file */

static void add_number(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_int64((int64_t)value));
}

static void add_text(struct json_object *o, const char *name, const char *value)
{
	json_object_object_add(o, name, json_object_new_string(value));
}

/* By their numbers, which are in the order of PCI addresses on both sides. */
static struct json_object *list_gpus(const char *gpus, const struct gp_device_info *devices, size_t n)
{
	struct json_object *list = json_object_new_array();

	for (const char *at = gpus; *at; at += strcspn(at, ","), at += *at == ',') {
		struct json_object *one = json_object_new_object();
		unsigned long number = strtoul(at, NULL, 10);

		add_number(one, "slurm", number);
		if (number < n) {
			add_number(one, "device", devices[number].device);
			add_text(one, "name", devices[number].name);
			add_text(one, "pci", devices[number].pci);
		}
		json_object_array_add(list, one);
	}
	return list;
}

static struct json_object *describe(const struct gp_slurm_step *step, const struct gp_job_info *had)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "schema", "gpreempt-slurm-step-1");
	add_number(o, "job", step->job);
	add_text(o, "step", step->step);
	add_text(o, "node", step->node);
	add_text(o, "class", name_of(had->client_class));
	add_number(o, "ran_ns", had->ran_ns);
	add_number(o, "waits", had->waits);
	add_number(o, "waited_ns", had->waited_ns);
	add_number(o, "requests", had->requests);
	add_number(o, "slo_ns", had->slo_ns);
	add_number(o, "with_slo", had->with_slo);
	add_number(o, "within_slo", had->within_slo);
	add_number(o, "p50_ns", had->p50_ns);
	add_number(o, "p99_ns", had->p99_ns);
	add_number(o, "max_ns", had->max_ns);
	json_object_object_add(o, "partial", json_object_new_boolean((int)had->is_partial));
	return o;
}

/* Nothing that is there already is written through: whoever put it there may mean another file. */
static FILE *create(const char *path)
{
	int fd;

	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

/* A reader has all of it or nothing. */
static int write_whole(const char *path, const char *text)
{
	char fresh[PATH_MAX + 8];
	FILE *file;
	int r;

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	file = create(fresh);
	if (!file)
		return -errno;
	r = fprintf(file, "%s\n", text) < 0 ? -EIO : 0;
	if (fclose(file) != 0 && r == 0)
		r = -errno;
	if (r == 0 && rename(fresh, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(fresh);
	return r;
}

int gp_slurm_report(const char *folder, const struct gp_slurm_step *step, const struct gp_job_info *had,
		    const struct gp_device_info *devices, size_t ndevices)
{
	struct json_object *o;
	char path[PATH_MAX];
	int r;

	if (snprintf(path, sizeof(path), "%s/%u.%s.%s.json", folder, step->job, step->step, step->node) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	o = describe(step, had);
	json_object_object_add(o, "gpus", list_gpus(step->gpus, devices, ndevices));
	r = write_whole(path, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
	return r;
}
