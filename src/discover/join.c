// SPDX-License-Identifier: MIT
/*
 * One list of queues from what each source said.
 *
 *	mqds -- ring, size, doorbell, priority     no id
 *	   | by doorbell or MQD address            rls: runnable; hqds: on a slot
 *	   | by device, kind and ring size         sysfs: id
 *	   | by pid and ring                       log: the runtime's id
 *
 * An id is certain where device, kind and ring size leave one queue of a process to choose; among several
 * alike it is inferred from an order, and marked so.  Where sysfs and mqds count differently nothing is
 * inferred, and each keeps its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "discover/mqd.h"
#include "discover/scan.h"

#define known(q, field) ((q)->from[GP_FIELD_##field] != GP_SOURCE_UNKNOWN)
#define compare(a, b) ((a) < (b) ? -1 : (a) > (b))

static int has_gpu(const struct gp_array *gpus, uint32_t gpu_id)
{
	const uint32_t *at = gpus->at;

	for (size_t i = 0; i < gpus->count; i++)
		if (at[i] == gpu_id)
			return 1;
	return 0;
}

/*
 * The device that text named by its PCI address.  Partitions of one card have the function's bits to tell
 * them apart (kfd_topology.c, kfd_topology_add_device(), Linux 6.12): then the address alone does not say
 * which.
 */
static const struct gp_found_device *device_at(const struct gp_scan *scan, uint64_t pci)
{
	const struct gp_found_device *all = scan->devices.at, *found = NULL;

	for (size_t i = 0; i < scan->devices.count; i++) {
		uint64_t here = (uint64_t)all[i].domain << 16 | all[i].location;

		if ((here | 7) != (pci | 7))
			continue;
		if (found)
			return NULL;
		found = &all[i];
	}
	return found;
}

static void name_devices_and_engines(struct gp_scan *scan)
{
	struct gp_seen *all = scan->mqds.at;

	for (size_t i = 0; i < scan->mqds.count; i++) {
		struct gp_found_queue *q = &all[i].q;
		const struct gp_found_device *device;

		device = all[i].pci != GP_NO_PCI ? device_at(scan, all[i].pci)
						 : gp_scan_device(scan, q->gpu_id);
		if (!device)
			continue;
		if (!known(q, GPU))
			gp_set(q, gpu_id, GPU, device->gpu_id, GP_SOURCE_MQDS);
		/* XGMI engines come behind the others: kfd_device_queue_manager.c, allocate_sdma_queue(). */
		if (all[i].engine != GP_NO_ENGINE && device->sdma_engines &&
		    all[i].engine >= device->sdma_engines)
			q->kind = GP_KIND_XGMI;
	}
}

static int by_ring(const void *a, const void *b)
{
	const struct gp_seen *x = a, *y = b;

	if (x->q.pid != y->q.pid)
		return compare(x->q.pid, y->q.pid);
	if (x->q.ring != y->q.ring)
		return compare(x->q.ring, y->q.ring);
	return compare(x->order, y->order);
}

static int same_or_unknown(const struct gp_found_queue *x, const struct gp_found_queue *y, uint32_t field,
			   uint64_t a, uint64_t b)
{
	return x->from[field] == GP_SOURCE_UNKNOWN || y->from[field] == GP_SOURCE_UNKNOWN || a == b;
}

#define fill_in(to, from_, member, field) \
	do { \
		if (!known(to, field) && known(from_, field)) \
			gp_set(to, member, field, (from_)->member, (from_)->from[GP_FIELD_##field]); \
	} while (0)

/* What the second knows and the first does not. */
static void merge(struct gp_found_queue *to, const struct gp_found_queue *more)
{
	fill_in(to, more, queue_id, ID);
	fill_in(to, more, gpu_id, GPU);
	fill_in(to, more, kind, KIND);
	fill_in(to, more, ring, RING);
	fill_in(to, more, ring_size, RING_SIZE);
	fill_in(to, more, priority, PRIORITY);
	fill_in(to, more, active, ACTIVE);
	fill_in(to, more, mapped, MAPPED);
	fill_in(to, more, doorbell, DOORBELL);
	fill_in(to, more, rptr_address, RPTR);
	fill_in(to, more, wptr_address, WPTR);
	fill_in(to, more, runtime_id, RUNTIME_ID);
	if (!to->mqd_address)
		to->mqd_address = more->mqd_address;
}

/* A file may tell of a queue twice, once in text and once in hex. */
static void unite_same_rings(struct gp_array *list)
{
	struct gp_seen *all = list->at;
	size_t n = 0;

	if (list->count)
		qsort(all, list->count, sizeof(*all), by_ring);
	for (size_t i = 0; i < list->count; i++) {
		struct gp_found_queue *x = n ? &all[n - 1].q : NULL, *y = &all[i].q;

		if (x && x->pid == y->pid && x->ring == y->ring && known(x, RING) && known(y, RING) &&
		    same_or_unknown(x, y, GP_FIELD_ID, x->queue_id, y->queue_id) &&
		    same_or_unknown(x, y, GP_FIELD_GPU, x->gpu_id, y->gpu_id) &&
		    same_or_unknown(x, y, GP_FIELD_DOORBELL, x->doorbell, y->doorbell))
			merge(x, y);
		else
			all[n++] = all[i];
	}
	list->count = n;
}

static int by_mqd(const void *a, const void *b)
{
	const struct gp_mapping *x = a, *y = b;

	return x->gpu_id != y->gpu_id ? compare(x->gpu_id, y->gpu_id) : compare(x->mqd, y->mqd);
}

static int by_doorbell(const void *a, const void *b)
{
	const struct gp_mapping *x = a, *y = b;

	return x->gpu_id != y->gpu_id ? compare(x->gpu_id, y->gpu_id) : compare(x->doorbell, y->doorbell);
}

static int by_mapped_ring(const void *a, const void *b)
{
	const struct gp_mapping *x = a, *y = b;

	return x->gpu_id != y->gpu_id ? compare(x->gpu_id, y->gpu_id) : compare(x->ring, y->ring);
}

typedef int (*order_fn)(const void *, const void *);

static void sort_mappings(struct gp_array *list, order_fn order)
{
	if (list->count)
		qsort(list->at, list->count, sizeof(struct gp_mapping), order);
}

static const struct gp_mapping *find_mapping(const struct gp_array *list, const struct gp_mapping *like,
					     order_fn order)
{
	return list->count ? bsearch(like, list->at, list->count, sizeof(*like), order) : NULL;
}

/* MES keeps no run list, and debugfs says "No active runlist" all the same. */
static int run_list_counts(const struct gp_scan *scan, const struct gp_found_queue *q)
{
	const struct gp_found_device *device = gp_scan_device(scan, q->gpu_id);

	if (!known(q, GPU) || scan->no_run_lists || !has_gpu(&scan->run_list_gpus, q->gpu_id))
		return 0;
	return device && device->gfx_target && device->gfx_target < GFX11;
}

static void runnable(struct gp_found_queue *q, const struct gp_mapping *found)
{
	gp_set(q, active, ACTIVE, 1, GP_SOURCE_RLS);
	q->mqd_address = found->mqd;
	if (!known(q, WPTR))
		gp_set(q, wptr_address, WPTR, found->wptr, GP_SOURCE_RLS);
}

/* An SDMA queue's MQD has neither its own address nor the write pointer's: the doorbell is what is unique. */
static void join_run_lists(struct gp_scan *scan)
{
	struct gp_seen *all = scan->mqds.at;

	sort_mappings(&scan->run_list, by_doorbell);
	for (size_t i = 0; i < scan->mqds.count; i++) {
		struct gp_found_queue *q = &all[i].q;
		const struct gp_mapping like = { .gpu_id = q->gpu_id, .doorbell = q->doorbell };
		const struct gp_mapping *found;

		if (!known(q, DOORBELL))
			continue;
		found = find_mapping(&scan->run_list, &like, by_doorbell);
		if (found && (!q->mqd_address || q->mqd_address == found->mqd))
			runnable(q, found);
		else if (run_list_counts(scan, q))
			gp_set(q, active, ACTIVE, 0, GP_SOURCE_RLS);
	}
}

static void join_slots(struct gp_scan *scan)
{
	struct gp_seen *all = scan->mqds.at;

	for (int pass = 0; pass < 2; pass++) {
		order_fn order = pass ? by_mapped_ring : by_mqd;

		sort_mappings(&scan->slots, order);
		for (size_t i = 0; i < scan->mqds.count; i++) {
			struct gp_found_queue *q = &all[i].q;
			const struct gp_mapping like = { .gpu_id = q->gpu_id,
							 .mqd = q->mqd_address,
							 .ring = q->ring };
			int compute = known(q, KIND) && q->kind == GP_KIND_COMPUTE && q->mqd_address;

			if (!known(q, GPU) || !known(q, RING) || compute == pass ||
			    !has_gpu(&scan->slot_gpus, q->gpu_id))
				continue;
			gp_set(q, mapped, MAPPED, find_mapping(&scan->slots, &like, order) != NULL,
			       GP_SOURCE_HQDS);
		}
	}
}

typedef int (*group_fn)(const struct gp_found_queue *, const struct gp_found_queue *);

/* Queues of a process that nothing but their order tells apart. */
static int by_shape(const struct gp_found_queue *x, const struct gp_found_queue *y)
{
	if (x->pid != y->pid)
		return compare(x->pid, y->pid);
	if (x->gpu_id != y->gpu_id)
		return compare(x->gpu_id, y->gpu_id);
	if (x->kind != y->kind)
		return compare(x->kind, y->kind);
	return compare(x->ring_size, y->ring_size);
}

static int by_size(const struct gp_found_queue *x, const struct gp_found_queue *y)
{
	return x->pid != y->pid ? compare(x->pid, y->pid) : compare(x->ring_size, y->ring_size);
}

static int by_shape_and_id(const void *a, const void *b)
{
	const struct gp_seen *x = *(struct gp_seen *const *)a, *y = *(struct gp_seen *const *)b;
	int order = by_shape(&x->q, &y->q);

	return order ? order : compare(x->q.queue_id, y->q.queue_id);
}

/*
 * The order in which ids were probably given.  Compute queues: a process's doorbells on a device come from a
 * bitmap, lowest first, and so do its ids.  SDMA doorbells belong to the engine: there it is age, and KFD
 * lists the newest first.
 */
static int by_shape_and_age(const void *a, const void *b)
{
	const struct gp_seen *x = *(struct gp_seen *const *)a, *y = *(struct gp_seen *const *)b;
	int order = by_shape(&x->q, &y->q);

	if (order)
		return order;
	if (x->q.kind == GP_KIND_COMPUTE && x->q.doorbell != y->q.doorbell)
		return compare(x->q.doorbell, y->q.doorbell);
	return compare(y->order, x->order);
}

static int by_size_and_id(const void *a, const void *b)
{
	const struct gp_seen *x = *(struct gp_seen *const *)a, *y = *(struct gp_seen *const *)b;
	int order = by_size(&x->q, &y->q);

	return order ? order : compare(x->q.queue_id, y->q.queue_id);
}

static int by_size_and_age(const void *a, const void *b)
{
	const struct gp_seen *x = *(struct gp_seen *const *)a, *y = *(struct gp_seen *const *)b;
	int order = by_size(&x->q, &y->q);

	return order ? order : compare(x->order, y->order);
}

/* Some of a list, in order, and how far it has been looked at. */
struct side {
	struct gp_seen **at;
	size_t count, next;
};

static int make_side(const struct gp_array *list, int (*wanted)(const struct gp_seen *), order_fn order,
		     struct side *ret)
{
	struct gp_seen *all = list->at;

	*ret = (struct side){ .at = calloc(list->count + 1, sizeof(*ret->at)) };
	if (!ret->at)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++)
		if (wanted(&all[i]))
			ret->at[ret->count++] = &all[i];
	if (ret->count)
		qsort(ret->at, ret->count, sizeof(*ret->at), order);
	return 0;
}

static size_t group_size(const struct side *s, group_fn group)
{
	size_t n = 0;

	while (s->next + n < s->count && !group(&s->at[s->next]->q, &s->at[s->next + n]->q))
		n++;
	return n;
}

typedef void (*pair_fn)(struct gp_seen *id, struct gp_seen *queue, size_t n);

/* Calls pair for the n queues of each group that both sides count alike. 1: some group they do not. */
static int match_groups(struct side *ids, struct side *queues, group_fn group, pair_fn pair)
{
	int differ = 0;

	while (ids->next < ids->count && queues->next < queues->count) {
		int order = group(&ids->at[ids->next]->q, &queues->at[queues->next]->q);
		size_t n = order <= 0 ? group_size(ids, group) : 0;
		size_t m = order >= 0 ? group_size(queues, group) : 0;

		for (size_t i = 0; n == m && i < n; i++)
			pair(ids->at[ids->next + i], queues->at[queues->next + i], n);
		differ |= n != m;
		ids->next += n;
		queues->next += m;
	}
	return differ || ids->next < ids->count || queues->next < queues->count;
}

static int has_shape(const struct gp_found_queue *q)
{
	return known(q, GPU) && known(q, KIND) && known(q, RING_SIZE);
}

static int is_free_id(const struct gp_seen *s)
{
	return !s->gone && has_shape(&s->q);
}

static int is_free_compute_id(const struct gp_seen *s)
{
	return is_free_id(s) && s->q.kind == GP_KIND_COMPUTE;
}

static int lacks_id(const struct gp_seen *s)
{
	return !known(&s->q, ID) && has_shape(&s->q);
}

static int is_sized(const struct gp_seen *s)
{
	return !s->gone && s->q.pid && known(&s->q, RING_SIZE);
}

static void give_id(struct gp_seen *id, struct gp_seen *queue, size_t n)
{
	gp_set(&queue->q, queue_id, ID, id->q.queue_id, n == 1 ? GP_SOURCE_SYSFS : GP_SOURCE_INFERRED);
	id->gone = 1;
}

/* A log does not name the device, and nobody knows whether it shows all queues: no certainty here. */
static void guess_id(struct gp_seen *id, struct gp_seen *queue, size_t n)
{
	(void)n;
	gp_set(&queue->q, queue_id, ID, id->q.queue_id, GP_SOURCE_INFERRED);
	gp_set(&queue->q, gpu_id, GPU, id->q.gpu_id, GP_SOURCE_INFERRED);
	id->gone = 1;
}

static int by_pid_and_id(const void *a, const void *b)
{
	const struct gp_seen *x = a, *y = b;

	return x->q.pid != y->q.pid ? compare(x->q.pid, y->q.pid) : compare(x->q.queue_id, y->q.queue_id);
}

/* A queue whose text gave its id takes the entry of that id. */
static void claim_known_ids(struct gp_scan *scan)
{
	struct gp_seen *all = scan->mqds.at;

	if (!scan->sysfs.count)
		return;
	qsort(scan->sysfs.at, scan->sysfs.count, sizeof(*all), by_pid_and_id);
	for (size_t i = 0; i < scan->mqds.count; i++) {
		struct gp_found_queue *q = &all[i].q;
		struct gp_seen *id;

		if (!known(q, ID))
			continue;
		id = bsearch(&all[i], scan->sysfs.at, scan->sysfs.count, sizeof(*id), by_pid_and_id);
		if (!id || id->gone || !same_or_unknown(q, &id->q, GP_FIELD_GPU, q->gpu_id, id->q.gpu_id))
			continue;
		merge(q, &id->q);
		id->gone = 1;
	}
}

static int join_ids(struct gp_scan *scan, int *ret_unmatched)
{
	struct side ids = { 0 }, queues = { 0 };
	int r;

	claim_known_ids(scan);
	r = make_side(&scan->sysfs, is_free_id, by_shape_and_id, &ids);
	if (r == 0)
		r = make_side(&scan->mqds, lacks_id, by_shape_and_age, &queues);
	if (r == 0)
		*ret_unmatched = match_groups(&ids, &queues, by_shape, give_id);
	free(ids.at);
	free(queues.at);
	return r;
}

static struct gp_found_queue *by_pid_and_ring(struct gp_scan *scan, uint32_t pid, uint64_t ring)
{
	struct gp_seen *all = scan->mqds.at;
	size_t low = 0, high = scan->mqds.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct gp_found_queue *q = &all[middle].q;

		if (q->pid < pid || (q->pid == pid && q->ring < ring))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == scan->mqds.count || all[low].q.pid != pid || all[low].q.ring != ring ||
	    !known(&all[low].q, RING))
		return NULL;
	return &all[low].q;
}

static int kernel_knows(const struct gp_scan *scan, uint32_t pid)
{
	const struct gp_found_client *all = scan->clients.at;

	for (size_t i = 0; i < scan->clients.count; i++)
		if (all[i].pid == pid)
			return 1;
	return 0;
}

/* The one process that has this ring, or 0. */
static uint32_t owner_of_ring(const struct gp_scan *scan, uint64_t ring)
{
	const struct gp_seen *all = scan->mqds.at;
	uint32_t owner = 0;

	for (size_t i = 0; i < scan->mqds.count; i++) {
		if (all[i].q.ring != ring || !known(&all[i].q, RING) || all[i].q.pid == owner)
			continue;
		if (owner)
			return 0;
		owner = all[i].q.pid;
	}
	return owner;
}

/* A process in a container writes the pid it has there. 0: whose it is cannot be told. */
static uint32_t host_pid(struct gp_scan *scan, uint32_t pid, uint64_t ring)
{
	const struct gp_found_client *all = scan->clients.at;
	uint32_t only = 0, inside = 0;

	if (!pid)
		return owner_of_ring(scan, ring);
	if (by_pid_and_ring(scan, pid, ring))
		return pid;
	for (size_t i = 0; i < scan->clients.count; i++) {
		if (all[i].inner_pid != pid || all[i].pid == pid)
			continue;
		if (by_pid_and_ring(scan, all[i].pid, ring))
			return all[i].pid;
		only = all[i].pid;
		inside++;
	}
	if (!inside || kernel_knows(scan, pid))
		return pid;
	return inside == 1 ? only : 0; /* several containers have such a pid */
}

/* Of one process alone: a log without pids is its own, and other processes' lines are dropped. */
static void name_processes(struct gp_scan *scan)
{
	struct gp_found_source *log = &scan->sources[GP_SOURCE_LOG];
	struct gp_seen *all = scan->log.at;
	size_t n = 0;

	for (size_t i = 0; i < scan->log.count; i++) {
		uint32_t pid = all[i].q.pid;

		if (scan->pid && pid && pid != scan->pid && pid != scan->log_pid) {
			log->others++;
			log->other_pid = pid;
			continue;
		}
		all[n] = all[i];
		all[n].q.pid = scan->pid ? scan->pid : host_pid(scan, pid, all[i].q.ring);
		n++;
	}
	log->queues = (uint32_t)n;
	scan->log.count = n;
}

/* A queue that only the log knows: what the kernel's silence means. */
static void judge_silence(const struct gp_scan *scan, struct gp_seen *seen)
{
	const struct gp_found_source *mqds = &scan->sources[GP_SOURCE_MQDS];
	const struct gp_found_source *sysfs = &scan->sources[GP_SOURCE_SYSFS];

	if (seen->gone)
		gp_set(&seen->q, active, ACTIVE, 0, GP_SOURCE_LOG);
	else if (seen->q.pid && mqds->status == 0 && !mqds->truncated)
		gp_set(&seen->q, active, ACTIVE, 0, GP_SOURCE_MQDS);
	else if (seen->q.pid && sysfs->status == 0 && !kernel_knows(scan, seen->q.pid))
		gp_set(&seen->q, active, ACTIVE, 0, GP_SOURCE_SYSFS);
}

/* Gives the runtime's words to the queues the kernel knows. What stays in the list is the log's alone. */
static void join_log(struct gp_scan *scan)
{
	struct gp_seen *all = scan->log.at;
	size_t n = 0;

	name_processes(scan);
	for (size_t i = 0; i < scan->log.count; i++) {
		struct gp_found_queue *q = by_pid_and_ring(scan, all[i].q.pid, all[i].q.ring);

		if (all[i].gone && kernel_knows(scan, all[i].q.pid))
			continue;
		if (q && !all[i].gone) {
			merge(q, &all[i].q);
			continue;
		}
		judge_silence(scan, &all[i]);
		all[n++] = all[i];
	}
	scan->log.count = n;
}

static int guess_ids(struct gp_scan *scan)
{
	struct side ids = { 0 }, queues = { 0 };
	int r;

	if (scan->sources[GP_SOURCE_MQDS].status == 0)
		return 0;
	r = make_side(&scan->sysfs, is_free_compute_id, by_size_and_id, &ids);
	if (r == 0)
		r = make_side(&scan->log, is_sized, by_size_and_age, &queues);
	if (r == 0)
		(void)match_groups(&ids, &queues, by_size, guess_id);
	free(ids.at);
	free(queues.at);
	return r;
}

int gp_queue_order(const struct gp_found_queue *x, const struct gp_found_queue *y)
{
	uint64_t gpu_x = known(x, GPU) ? x->gpu_id : UINT64_MAX,
		 gpu_y = known(y, GPU) ? y->gpu_id : UINT64_MAX;
	uint64_t id_x = known(x, ID) ? x->queue_id : UINT64_MAX,
		 id_y = known(y, ID) ? y->queue_id : UINT64_MAX;

	if (x->pid != y->pid)
		return compare(x->pid, y->pid);
	if (gpu_x != gpu_y)
		return compare(gpu_x, gpu_y);
	if (id_x != id_y)
		return compare(id_x, id_y);
	return compare(x->ring, y->ring);
}

static int by_order(const void *a, const void *b)
{
	return gp_queue_order(a, b);
}

static int append(struct gp_array *to, const struct gp_array *from, int drop_gone)
{
	const struct gp_seen *all = from->at;

	for (size_t i = 0; i < from->count; i++) {
		struct gp_found_queue *q;

		if (drop_gone && all[i].gone)
			continue;
		q = gp_array_add(to, sizeof(*q));
		if (!q)
			return -ENOMEM;
		*q = all[i].q;
	}
	return 0;
}

int gp_join(struct gp_scan *scan, struct gp_array *ret, int *ret_unmatched)
{
	int r;

	name_devices_and_engines(scan);
	unite_same_rings(&scan->mqds);
	join_run_lists(scan);
	join_slots(scan);
	r = join_ids(scan, ret_unmatched);
	if (r < 0)
		return r;
	join_log(scan);
	r = guess_ids(scan);
	if (r == 0)
		r = append(ret, &scan->mqds, 0);
	if (r == 0)
		r = append(ret, &scan->sysfs, 1);
	if (r == 0)
		r = append(ret, &scan->log, 0);
	if (r == 0 && ret->count)
		qsort(ret->at, ret->count, sizeof(struct gp_found_queue), by_order);
	return r;
}
