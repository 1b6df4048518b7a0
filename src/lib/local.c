// SPDX-License-Identifier: MIT
#include "lib/local.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kfd/session.h"
#include "discover/classes.h"
#include "discover/describe.h"
#include "discover/trust.h"

#define GROUP "gpreempt"
#define ROOTS_DAEMON 0 /* without a gpreemptd: as root's would judge */

/* A queue that was there at the last look. */
struct known {
	struct gp_found_queue queue;
	uint64_t start; /* of its process; 0: unknown */
	uint64_t handle;
};

struct gp_local {
	char *root; /* "" for the machine itself */
	struct gp_classes *classes;
	struct known *known; /* by pid, as they are found */
	size_t nknown;
	uint64_t last; /* handle given */
	int session;   /* -1: none was needed yet */
};

/* Of one process. Addresses go before ids, which may have been guessed; what one look did not tell does not
 * part them. */
static int is_same_queue(const struct gp_found_queue *a, const struct gp_found_queue *b)
{
	int rings = a->from[GP_FIELD_RING] && b->from[GP_FIELD_RING];
	int ids = a->from[GP_FIELD_ID] && b->from[GP_FIELD_ID];
	int guessed =
		a->from[GP_FIELD_ID] == GP_SOURCE_INFERRED || b->from[GP_FIELD_ID] == GP_SOURCE_INFERRED;

	if (a->gpu_id != b->gpu_id)
		return 0;
	if (rings)
		return a->ring == b->ring && (!ids || guessed || a->queue_id == b->queue_id);
	return ids && a->queue_id == b->queue_id;
}

/* A pid that came into other hands is another process. */
static int is_same(const struct known *a, const struct known *b)
{
	return (a->start == b->start || !a->start || !b->start) && is_same_queue(&a->queue, &b->queue);
}

/* first: where the process's begin; moves on with the processes. */
static uint64_t handle_for(struct gp_local *local, const struct known *k, size_t *first)
{
	while (*first < local->nknown && local->known[*first].queue.pid < k->queue.pid)
		++*first;
	for (size_t i = *first; i < local->nknown && local->known[i].queue.pid == k->queue.pid; i++)
		if (is_same(&local->known[i], k))
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
	for (size_t i = 0; i < found->nqueues; i++) {
		now[i].queue = found->queues[i];
		now[i].start = i && now[i - 1].queue.pid == now[i].queue.pid
				       ? now[i - 1].start
				       : gp_proc_start(local->root, now[i].queue.pid);
		now[i].handle = handle_for(local, &now[i], &first);
	}
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

static void describe(const struct gp_local *local, const struct gp_found *found, const struct known *k,
		     int64_t group, struct gp_queue_info *ret)
{
	const struct gp_found_queue *q = &k->queue;
	const struct gp_found_client *client = gp_found_client(found, q->pid);
	const struct gp_class_subject subject = { .client = client,
						  .queue = q,
						  .trusted = gp_proc_trusted(local->root, q->pid, group,
									     ROOTS_DAEMON) };
	struct gp_class_verdict verdict;

	gp_classes_judge(local->classes, &subject, &verdict);
	*ret = (struct gp_queue_info){ .size = sizeof(*ret),
				       .queue = k->handle,
				       .client = q->pid,
				       .device = gp_found_device_number(found, q->gpu_id),
				       .client_class = verdict.client_class };
	gp_describe_queue(q, client, 1, ret);
	ret->local_pid = local->root[0] || gp_sees_host_pids() ? q->pid : 0;
	ret->state = (ret->known & GP_KNOWN_ACTIVE) && !ret->active ? GP_QUEUE_SUSPENDED : GP_QUEUE_RUNNING;
	memcpy(ret->rule, verdict.rule, sizeof(ret->rule));
	if (client)
		(void)snprintf(ret->client_name, sizeof(ret->client_name), "%s", client->name);
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

/* In a tree that was recorded there is nobody to act on. */
static int has_sessions(const struct gp_local *local)
{
	return !local->root[0] && gp_session_version("") && gp_sees_host_pids();
}

static const struct known *find_known(const struct gp_local *local, uint64_t handle)
{
	for (size_t i = 0; i < local->nknown; i++)
		if (local->known[i].handle == handle)
			return &local->known[i];
	return NULL;
}

static int fill_entries(const struct gp_local *local, const uint64_t *queues, size_t n, uint32_t want,
			struct kfd_session_queue *entries)
{
	for (size_t i = 0; i < n; i++) {
		const struct known *k = find_known(local, queues[i]);

		if (!k || !k->start || !k->queue.from[GP_FIELD_ID])
			return -ENOENT;
		entries[i] = (struct kfd_session_queue){ .pid = k->queue.pid,
							 .queue_id = k->queue.queue_id,
							 .start_time = k->start,
							 .gpu_id = k->queue.gpu_id,
							 .want = want == GP_STOP ? KFD_SESSION_STOP
										 : KFD_SESSION_RUN };
	}
	return 0;
}

/* Of a resume, what is gone runs no more, and what another session stopped is not ours. */
static int result_of(const struct kfd_session_queue *entry, uint32_t want, const char **ret_why)
{
	int r = gp_session_status(entry, ret_why);

	if (entry->status == KFD_SESSION_DENIED)
		*ret_why =
			"without gpreemptd, and without CAP_SYS_NICE, a process stops its own queues alone";
	return want != GP_STOP && (r == -EBUSY || r == -ENOENT) ? 0 : r;
}

/* One call's worth. */
static int set_some(struct gp_local *local, const uint64_t *queues, size_t n, uint32_t want, int32_t *status,
		    char *why, size_t size)
{
	struct kfd_session_queue *entries = calloc(n, sizeof(*entries));
	uint32_t cycles;
	int r = entries ? fill_entries(local, queues, n, want, entries) : -ENOMEM;

	if (r == 0)
		r = gp_kfd_session.set(local->session, entries, (uint32_t)n, &cycles);
	if (r < 0)
		(void)snprintf(why, size, "%s",
			       r == -ENOENT ? "one of the queues is gone" : "the driver does not do it");
	for (size_t i = 0, failed = r < 0; i < n; i++) {
		const char *said = NULL;
		int one = failed ? r : result_of(&entries[i], want, &said);

		if (status)
			status[i] = one;
		if (one < 0 && r == 0) {
			(void)snprintf(why, size, "queue %" PRIu64 ": %s", queues[i], said);
			r = one;
		}
	}
	free(entries);
	return r;
}

int gp_local_set(struct gp_local *local, const uint64_t *queues, size_t n, uint32_t want, int32_t *status,
		 char *why, size_t size)
{
	int first = 0;

	if (local->session < 0 && has_sessions(local))
		local->session = gp_session_open_own(0);
	if (local->session < 0)
		return -ENODEV;
	for (size_t done = 0, some; done < n; done += some) {
		char later[256];
		int r;

		some = n - done < KFD_SESSION_MAX_QUEUES ? n - done : KFD_SESSION_MAX_QUEUES;
		r = set_some(local, queues + done, some, want, status ? status + done : NULL,
			     first ? later : why, first ? sizeof(later) : size);
		first = first ? first : r;
	}
	return first;
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
		gp_describe_device(&found->devices[i], (uint32_t)i, &infos[i]);
		if (has_sessions(local))
			infos[i].caps |= GP_CAP_INTERRUPT | GP_CAP_BATCH;
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
		(void)snprintf(error, size, "%.*s", (int)strcspn(wrong, "\n"), wrong);
}

int gp_local_new(const char *root, char *error, size_t size, struct gp_local **ret)
{
	struct gp_local *local = calloc(1, sizeof(*local));
	int r;

	if (!local)
		return -ENOMEM;
	local->session = -1;
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
	if (local->session >= 0)
		gp_kfd_session.close(local->session); /* all that it stopped runs */
	free(local->known);
	free(local->root);
	free(local);
}
