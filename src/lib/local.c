// SPDX-License-Identifier: MIT
#include "lib/local.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discover/classes.h"

#define GROUP "gpreempt"

/* A queue that was there at the last look. */
struct known {
	struct gp_found_queue queue;
	uint64_t handle;
};

struct gp_local {
	char *root; /* "" for the machine itself */
	struct gp_classes *classes;
	struct known *known; /* by pid, as they are found */
	size_t nknown;
	uint64_t last; /* handle given */
};

/* Addresses go before ids, which may have been guessed; what one look did not tell does not part them. */
static int is_same(const struct gp_found_queue *a, const struct gp_found_queue *b)
{
	int rings = a->from[GP_FIELD_RING] && b->from[GP_FIELD_RING];
	int ids = a->from[GP_FIELD_ID] && b->from[GP_FIELD_ID];
	int guessed =
		a->from[GP_FIELD_ID] == GP_SOURCE_INFERRED || b->from[GP_FIELD_ID] == GP_SOURCE_INFERRED;

	if (a->pid != b->pid || a->gpu_id != b->gpu_id)
		return 0;
	if (rings)
		return a->ring == b->ring && (!ids || guessed || a->queue_id == b->queue_id);
	return ids && a->queue_id == b->queue_id;
}

/* first: where the process's begin; moves on with the processes. */
static uint64_t handle_for(struct gp_local *local, const struct gp_found_queue *q, size_t *first)
{
	while (*first < local->nknown && local->known[*first].queue.pid < q->pid)
		++*first;
	for (size_t i = *first; i < local->nknown && local->known[i].queue.pid == q->pid; i++)
		if (is_same(&local->known[i].queue, q))
			return local->known[i].handle;
	return ++local->last;
}

/* Handles for what is there now; what is gone is forgotten. */
static int remember(struct gp_local *local, const struct gp_found *found)
{
	struct known *now = calloc(found->nqueues + 1, sizeof(*now));
	size_t first = 0;

	if (!now)
		return -ENOMEM;
	for (size_t i = 0; i < found->nqueues; i++)
		now[i] = (struct known){ found->queues[i], handle_for(local, &found->queues[i], &first) };
	free(local->known);
	local->known = now;
	local->nknown = found->nqueues;
	return 0;
}

static FILE *open_under(const struct gp_local *local, const char *path)
{
	char full[4096];

	if (snprintf(full, sizeof(full), "%s%s", local->root, path) >= (int)sizeof(full))
		return NULL;
	return fopen(full, "re");
}

/* The group's number, or -1. The file is read as it is: nothing here may load what a name service wants. */
static int64_t group_number(const struct gp_local *local)
{
	FILE *file = open_under(local, "/etc/group");
	int64_t found = -1;
	uint32_t number;
	char line[4096];

	while (file && found < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, GROUP ":%*[^:]:%" SCNu32, &number) == 1)
			found = number;
	if (file)
		fclose(file);
	return found;
}

static int has_number(const char *list, int64_t number)
{
	char *end;

	for (;; list = end) {
		long long one = strtoll(list, &end, 10);

		if (end == list)
			return 0;
		if (one == number)
			return 1;
	}
}

/* Whose word about itself counts: root's, and that of a member of the group. */
static int is_trusted(const struct gp_local *local, const struct gp_found_client *client, int64_t group)
{
	char path[64], line[4096];
	int found = 0;
	FILE *file;

	if (!client || client->uid == 0)
		return client != NULL;
	if (group < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", client->pid);
	file = open_under(local, path);
	while (file && !found && fgets(line, sizeof(line), file))
		found = (!strncmp(line, "Gid:", 4) && has_number(line + 4, group)) ||
			(!strncmp(line, "Groups:", 7) && has_number(line + 7, group));
	if (file)
		fclose(file);
	return found;
}

/* "debugfs mqds" is "mqds" here. */
static const char *short_source(uint32_t source)
{
	const char *name = gp_source_name(source), *space = strrchr(name, ' ');

	return space ? space + 1 : name;
}

static void tell_sources(const struct gp_found_queue *q, char *text, size_t size)
{
	static const struct {
		const char *name;
		uint32_t field;
	} told[] = { { "queue_id", GP_FIELD_ID },       { "gpu_id", GP_FIELD_GPU },
		     { "kind", GP_FIELD_KIND },         { "ring", GP_FIELD_RING },
		     { "priority", GP_FIELD_PRIORITY }, { "active", GP_FIELD_ACTIVE } };
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]) && used < size; i++)
		if (q->from[told[i].field])
			used += (size_t)snprintf(text + used, size - used, "%s%s=%s", used ? " " : "",
						 told[i].name, short_source(q->from[told[i].field]));
}

static uint32_t known_fields(const struct gp_found_queue *q)
{
	return (q->from[GP_FIELD_ID] ? GP_KNOWN_QUEUE_ID : 0) | (q->from[GP_FIELD_RING] ? GP_KNOWN_RING : 0) |
	       (q->from[GP_FIELD_PRIORITY] ? GP_KNOWN_PRIORITY : 0) |
	       (q->from[GP_FIELD_ACTIVE] ? GP_KNOWN_ACTIVE : 0);
}

/* The number of the queue's device in the list of devices; UINT32_MAX: not listed. */
static uint32_t device_number(const struct gp_found *found, uint32_t gpu_id)
{
	for (size_t i = 0; i < found->ndevices; i++)
		if (found->devices[i].gpu_id == gpu_id)
			return (uint32_t)i;
	return UINT32_MAX;
}

static void describe(const struct gp_local *local, const struct gp_found *found, const struct known *k,
		     int64_t group, struct gp_queue_info *ret)
{
	const struct gp_found_queue *q = &k->queue;
	const struct gp_found_client *client = gp_found_client(found, q->pid);
	const struct gp_class_subject subject = { .client = client,
						  .queue = q,
						  .trusted = is_trusted(local, client, group) };
	struct gp_class_verdict verdict;

	gp_classes_judge(local->classes, &subject, &verdict);
	*ret = (struct gp_queue_info){ .size = sizeof(*ret),
				       .queue = k->handle,
				       .client = q->pid,
				       .device = device_number(found, q->gpu_id),
				       .priority = q->priority,
				       .client_class = verdict.client_class,
				       .ring = q->ring,
				       .pid = q->pid,
				       .queue_id = q->queue_id,
				       .gpu_id = q->gpu_id,
				       .kind = q->kind,
				       .active = q->active,
				       .known = known_fields(q) };
	ret->state = (ret->known & GP_KNOWN_ACTIVE) && !ret->active ? GP_QUEUE_SUSPENDED : GP_QUEUE_RUNNING;
	memcpy(ret->rule, verdict.rule, sizeof(ret->rule));
	if (client) {
		(void)snprintf(ret->client_name, sizeof(ret->client_name), "%s", client->name);
		if (client->pod[0] || client->container[0])
			(void)snprintf(ret->place, sizeof(ret->place), "%s %s",
				       client->pod[0] ? "pod" : "container",
				       client->pod[0] ? client->pod : client->container);
	}
	tell_sources(q, ret->from, sizeof(ret->from));
}

static int look(struct gp_local *local, struct gp_found **ret)
{
	const struct gp_discover_opts opts = { .root = local->root[0] ? local->root : NULL };

	return gp_discover(&opts, ret);
}

int gp_local_queues(struct gp_local *local, struct gp_queue_info **ret)
{
	struct gp_queue_info *infos = NULL;
	int64_t group = group_number(local);
	struct gp_found *found;
	int r = look(local, &found);

	if (r < 0)
		return r;
	r = remember(local, found);
	if (r == 0)
		infos = calloc(found->nqueues + 1, sizeof(*infos));
	if (!infos) {
		gp_found_free(found);
		return -ENOMEM;
	}
	for (size_t i = 0; i < found->nqueues; i++)
		describe(local, found, &local->known[i], group, &infos[i]);
	r = (int)found->nqueues;
	gp_found_free(found);
	*ret = infos;
	return r;
}

int gp_local_devices(struct gp_local *local, struct gp_device_info **ret)
{
	struct gp_device_info *infos;
	struct gp_found *found;
	int r = look(local, &found);

	if (r < 0)
		return r;
	infos = calloc(found->ndevices + 1, sizeof(*infos));
	for (size_t i = 0; infos && i < found->ndevices; i++) {
		infos[i] = (struct gp_device_info){ .size = sizeof(*infos),
						    .backend = "kfd",
						    .device = (uint32_t)i,
						    .compute_units = found->devices[i].compute_units,
						    .queue_slots = found->devices[i].queue_slots };
		memcpy(infos[i].name, found->devices[i].name, sizeof(infos[i].name));
	}
	r = infos ? (int)found->ndevices : -ENOMEM;
	gp_found_free(found);
	if (infos)
		*ret = infos;
	return r;
}

/* Wrong rules must not hide the queues: what is right of them counts, and the first error is told. */
static void read_rules(struct gp_local *local, char *error, size_t size)
{
	char path[4096], wrong[256] = "";
	int r = gp_classes_environment(local->classes, error, size);

	if (r == 0)
		error[0] = '\0';
	if (snprintf(path, sizeof(path), "%s" GP_CLASSES_FILE, local->root) >= (int)sizeof(path))
		return;
	if (gp_classes_read(local->classes, path, wrong, sizeof(wrong)) == -EINVAL && r == 0)
		(void)snprintf(error, size, "%s", wrong);
}

int gp_local_new(const char *root, char *error, size_t size, struct gp_local **ret)
{
	struct gp_local *local = calloc(1, sizeof(*local));
	int r;

	if (!local)
		return -ENOMEM;
	local->root = strdup(root ? root : "");
	r = local->root ? gp_classes_new(&local->classes) : -ENOMEM;
	if (r < 0) {
		free(local->root);
		free(local);
		return r;
	}
	read_rules(local, error, size);
	*ret = local;
	return 0;
}

void gp_local_free(struct gp_local *local)
{
	if (!local)
		return;
	gp_classes_free(local->classes);
	free(local->known);
	free(local->root);
	free(local);
}
