// SPDX-License-Identifier: MIT
#include "discover/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discover/scan.h"

#define DEBUGFS "sys/kernel/debug/kfd/"
#define FIRST_ROOM 64

void *gp_array_add(struct gp_array *array, size_t item)
{
	void *at;

	if (array->count == array->room) {
		size_t room = array->room ? 2 * array->room : FIRST_ROOM;

		at = reallocarray(array->at, room, item);
		if (!at)
			return NULL;
		array->at = at;
		array->room = room;
	}
	at = (char *)array->at + array->count * item;
	array->count++;
	return memset(at, 0, item);
}

int gp_scan_client(struct gp_scan *scan, uint32_t pid, uint32_t pasid)
{
	struct gp_found_client *c = gp_array_add(&scan->clients, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->pid = c->inner_pid = pid;
	c->pasid = pasid;
	c->uid = UINT32_MAX;
	return 0;
}

const struct gp_found_device *gp_scan_device(const struct gp_scan *scan, uint32_t gpu_id)
{
	const struct gp_found_device *all = scan->devices.at;

	for (size_t i = 0; i < scan->devices.count; i++)
		if (all[i].gpu_id == gpu_id)
			return &all[i];
	return NULL;
}

typedef int (*parse_fn)(struct gp_lines *, struct gp_scan *);

/* That a file is not there, or may not be read, is what sources[] is for; only memory is an error. */
static int read_file(struct gp_scan *scan, int dir, const char *path, enum gp_source which, parse_fn parse)
{
	struct gp_found_source *source = &scan->sources[which];
	struct gp_lines in;
	int fd = gp_open_at(dir, path, 0);
	int r;

	source->status = fd < 0 ? fd : 0;
	if (fd < 0)
		return 0;
	r = gp_lines_open(&in, fd);
	if (r < 0)
		return r;
	r = parse(&in, scan);
	source->status = in.error;
	source->lines = in.count;
	source->skipped += in.dropped;
	gp_lines_close(&in);
	return r;
}

static void forget(struct gp_scan *scan)
{
	struct gp_array *all[] = { &scan->devices, &scan->clients,       &scan->sysfs,
				   &scan->mqds,    &scan->log,           &scan->run_list,
				   &scan->slots,   &scan->run_list_gpus, &scan->slot_gpus };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		free(all[i]->at);
		*all[i] = (struct gp_array){ 0 };
	}
	for (int i = 0; i < GP_SOURCE_COUNT; i++)
		scan->sources[i] = (struct gp_found_source){ .status = -ENODATA };
}

static int read_all(struct gp_scan *scan, const struct gp_discover_opts *opts)
{
	int r = gp_sysfs_read(scan);

	if (r == 0)
		r = gp_nvidia_read(scan);
	if (r == 0)
		r = read_file(scan, scan->root, DEBUGFS "mqds", GP_SOURCE_MQDS, gp_mqds_parse);
	if (r == 0)
		r = read_file(scan, scan->root, DEBUGFS "rls", GP_SOURCE_RLS, gp_rls_parse);
	if (r == 0 && opts->flags & GP_DISCOVER_HQDS)
		r = read_file(scan, scan->root, DEBUGFS "hqds", GP_SOURCE_HQDS, gp_hqds_parse);
	if (r == 0)
		gp_proc_read(scan);
	if (r == 0 && opts->log)
		r = read_file(scan, AT_FDCWD, opts->log, GP_SOURCE_LOG, gp_log_parse);
	if (r == 0 && opts->log)
		r = scan->sources[GP_SOURCE_LOG].status;
	return r;
}

/* Whether sysfs and mqds may have been read on either side of a change. */
static int worth_another_look(const struct gp_scan *scan)
{
	const struct gp_found_source *mqds = &scan->sources[GP_SOURCE_MQDS];

	return mqds->status == 0 && !mqds->truncated && scan->mqds.count && scan->sysfs.count;
}

/* Arrays change hands: what found has, scan no longer frees. */
static void hand_over(struct gp_scan *scan, struct gp_array *queues, struct gp_found *found)
{
	found->devices = scan->devices.at;
	found->ndevices = scan->devices.count;
	found->clients = scan->clients.at;
	found->nclients = scan->clients.count;
	found->queues = queues->at;
	found->nqueues = queues->count;
	memcpy(found->sources, scan->sources, sizeof(found->sources));
	scan->devices = scan->clients = *queues = (struct gp_array){ 0 };
}

static int look(struct gp_scan *scan, const struct gp_discover_opts *opts, struct gp_found *found)
{
	struct gp_array queues = { 0 };
	int unmatched = 0, r;

	for (int tries = 0; tries < 2; tries++) {
		forget(scan);
		queues.count = 0;
		r = read_all(scan, opts);
		if (r == 0)
			r = gp_join(scan, &queues, &unmatched);
		if (r < 0 || !unmatched || !worth_another_look(scan))
			break;
	}
	if (r == 0)
		hand_over(scan, &queues, found);
	free(queues.at);
	return r;
}

int gp_discover(const struct gp_discover_opts *opts, struct gp_found **ret)
{
	const struct gp_discover_opts none = { 0 };
	struct gp_scan scan = { 0 };
	struct gp_found *found;
	int r;

	if (!opts)
		opts = &none;
	if (opts->flags & ~GP_DISCOVER_HQDS)
		return -EINVAL;
	found = calloc(1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	scan.root = gp_open_at(AT_FDCWD, opts->root ? opts->root : "/", O_DIRECTORY);
	scan.pid = opts->pid;
	r = look(&scan, opts, found);
	forget(&scan);
	if (scan.root >= 0)
		close(scan.root);
	if (r < 0) {
		gp_found_free(found);
		return r;
	}
	*ret = found;
	return 0;
}

void gp_found_free(struct gp_found *found)
{
	if (!found)
		return;
	free(found->devices);
	free(found->clients);
	free(found->queues);
	free(found);
}

/* The first queue of a process. */
static size_t first_of(const struct gp_found *found, uint32_t pid)
{
	size_t low = 0, high = found->nqueues;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (found->queues[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct gp_found_queue *gp_found_by_ring(const struct gp_found *found, uint32_t pid, uint64_t ring)
{
	for (size_t i = first_of(found, pid); i < found->nqueues && found->queues[i].pid == pid; i++)
		if (found->queues[i].ring == ring && found->queues[i].from[GP_FIELD_RING])
			return &found->queues[i];
	return NULL;
}

const struct gp_found_queue *gp_found_by_id(const struct gp_found *found, uint32_t pid, uint32_t queue_id)
{
	for (size_t i = first_of(found, pid); i < found->nqueues && found->queues[i].pid == pid; i++)
		if (found->queues[i].queue_id == queue_id && found->queues[i].from[GP_FIELD_ID])
			return &found->queues[i];
	return NULL;
}

const struct gp_found_client *gp_found_client(const struct gp_found *found, uint32_t pid)
{
	size_t low = 0, high = found->nclients;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (found->clients[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < found->nclients && found->clients[low].pid == pid ? &found->clients[low] : NULL;
}

const char *gp_source_name(uint32_t source)
{
	static const char *const names[] = { "unknown",      "sysfs",       "debugfs mqds",
					     "debugfs hqds", "debugfs rls", "log",
					     "proc",         "agent",       "inferred" };

	return source < GP_SOURCE_COUNT ? names[source] : names[GP_SOURCE_UNKNOWN];
}

const char *gp_kind_name(uint32_t kind)
{
	static const char *const names[] = { "unknown", "compute", "SDMA", "XGMI" };

	return kind <= GP_KIND_XGMI ? names[kind] : names[GP_KIND_UNKNOWN];
}
