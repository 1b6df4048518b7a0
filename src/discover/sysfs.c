// SPDX-License-Identifier: MIT
/* /sys/class/kfd/kfd: devices, processes and queues (amdkfd/kfd_topology.c, kfd_process.c, Linux 6.12). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discover/scan.h"

#define NODES "sys/class/kfd/kfd/topology/nodes"
#define PROCESSES "sys/class/kfd/kfd/proc"
#define SCHED_POLICY "sys/module/amdgpu/parameters/sched_policy"

#define MAX_DIGITS 10 /* of a name that is a number */

#define NO_HWS 2 /* amdkfd/kfd_priv.h, enum kfd_sched_policy, Linux 6.12 */

/* amdkfd/kfd_priv.h, enum kfd_queue_type, Linux 6.12: not the numbers of the ioctl. */
enum { TYPE_COMPUTE = 0, TYPE_SDMA = 1, TYPE_SDMA_XGMI = 4, TYPE_SDMA_BY_ENGINE = 5 };

/* Folders whose names are numbers: fn is called with a descriptor for the folder they are in. */
typedef int (*number_fn)(struct gp_scan *scan, int dir, const char *name, uint32_t number, void *arg);

static int each_number(struct gp_scan *scan, int fd, number_fn fn, void *arg)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while (r >= 0 && (entry = readdir(dir))) {
		struct gp_span s = gp_span_of(entry->d_name);
		uint64_t number;

		if (gp_span_len(&s) <= MAX_DIGITS && gp_span_decimal(&s, &number) && s.at == s.end &&
		    number <= INT32_MAX)
			r = fn(scan, dirfd(dir), entry->d_name, (uint32_t)number, arg);
	}
	closedir(dir);
	return r < 0 ? r : 0;
}

static void read_property(struct gp_found_device *d, struct gp_span name, uint32_t value, uint32_t *simds,
			  uint32_t *simds_per_cu)
{
	const struct {
		const char *name;
		uint32_t *to;
	} known[] = {
		{ "simd_count ", simds },
		{ "simd_per_cu ", simds_per_cu },
		{ "num_cp_queues ", &d->queue_slots },
		{ "num_xcc ", &d->xccs },
		{ "gfx_target_version ", &d->gfx_target },
		{ "drm_render_minor ", &d->render_minor },
		{ "location_id ", &d->location },
		{ "domain ", &d->domain },
		{ "num_sdma_engines ", &d->sdma_engines },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (gp_span_take(&name, known[i].name)) {
			*known[i].to = value;
			return;
		}
}

/* "name value" lines; those we do not know are many. */
static void read_properties(struct gp_found_device *d, struct gp_span text)
{
	uint32_t simds = 0, simds_per_cu = 0;
	struct gp_span line;

	while (gp_span_split(&text, '\n', &line)) {
		struct gp_span value = line;
		uint32_t number;

		if (gp_span_find(&value, " ") && gp_span_u32(&value, &number) && value.at == value.end)
			read_property(d, line, number, &simds, &simds_per_cu);
	}
	if (simds_per_cu)
		d->compute_units = simds / simds_per_cu;
}

/* The driver calls every newer chip "ip discovery". 90402 is gfx942: the last digit is a hexadecimal one. */
static void name_by_target(struct gp_found_device *d)
{
	uint32_t v = d->gfx_target;

	if (v && (!d->name[0] || !strcmp(d->name, "ip discovery")))
		snprintf(d->name, sizeof(d->name), "gfx%u%u%x", v / 10000, v / 100 % 100, v % 100);
}

static int read_node(struct gp_scan *scan, int nodes, const char *name, uint32_t node, void *arg)
{
	struct gp_found_device *d;
	struct gp_span text;
	char path[64], buffer[8192];
	uint64_t gpu;
	int n;

	(void)arg;
	snprintf(path, sizeof(path), "%s/gpu_id", name);
	if (gp_read_u64_at(nodes, path, &gpu) < 0 || gpu == 0 || gpu > UINT32_MAX)
		return 0; /* a CPU, or a GPU the device cgroup forbids */
	d = gp_array_add(&scan->devices, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->node = node;
	d->gpu_id = (uint32_t)gpu;
	snprintf(path, sizeof(path), "%s/name", name);
	n = gp_read_at(nodes, path, buffer, sizeof(buffer));
	if (n > 0) {
		text = (struct gp_span){ buffer, buffer + n - (buffer[n - 1] == '\n') };
		gp_span_copy(&text, d->name, sizeof(d->name));
	}
	snprintf(path, sizeof(path), "%s/properties", name);
	n = gp_read_at(nodes, path, buffer, sizeof(buffer));
	if (n > 0)
		read_properties(d, (struct gp_span){ buffer, buffer + n });
	name_by_target(d);
	return 0;
}

static uint32_t kind_of(uint64_t type)
{
	switch (type) {
	case TYPE_COMPUTE:
		return GP_KIND_COMPUTE;
	case TYPE_SDMA:
	case TYPE_SDMA_BY_ENGINE:
		return GP_KIND_SDMA;
	case TYPE_SDMA_XGMI:
		return GP_KIND_XGMI;
	default:
		return GP_KIND_UNKNOWN;
	}
}

static int attribute(int queues, char *path, size_t stem, const char *name, uint64_t *ret)
{
	strcpy(path + stem, name);
	return gp_read_u64_at(queues, path, ret);
}

/* A queue that went between the listing and now has no files: it is no queue. */
static int read_queue(struct gp_scan *scan, int queues, const char *name, uint32_t id, void *arg)
{
	struct gp_found_source *source = &scan->sources[GP_SOURCE_SYSFS];
	struct gp_seen seen = { .q.pid = *(uint32_t *)arg, .engine = GP_NO_ENGINE, .pci = GP_NO_PCI };
	size_t stem = strlen(name);
	struct gp_seen *to;
	char path[32];
	uint64_t value;

	memcpy(path, name, stem);
	if (attribute(queues, path, stem, "/gpuid", &value) == 0 && value <= UINT32_MAX)
		gp_set(&seen.q, gpu_id, GPU, (uint32_t)value, GP_SOURCE_SYSFS);
	if (attribute(queues, path, stem, "/type", &value) == 0 && kind_of(value))
		gp_set(&seen.q, kind, KIND, kind_of(value), GP_SOURCE_SYSFS);
	if (attribute(queues, path, stem, "/size", &value) == 0)
		gp_set(&seen.q, ring_size, RING_SIZE, value, GP_SOURCE_SYSFS);
	source->lines += 3;
	if (!seen.q.from[GP_FIELD_GPU] && !seen.q.from[GP_FIELD_KIND] && !seen.q.from[GP_FIELD_RING_SIZE])
		return 0;
	gp_set(&seen.q, queue_id, ID, id, GP_SOURCE_SYSFS);
	to = gp_array_add(&scan->sysfs, sizeof(*to));
	if (!to)
		return -ENOMEM;
	*to = seen;
	return 0;
}

static int read_process(struct gp_scan *scan, int processes, const char *name, uint32_t pid, void *arg)
{
	uint64_t pasid = UINT32_MAX;
	char path[64];
	int fd, r;

	(void)arg;
	if (scan->pid && scan->pid != pid)
		return 0;
	snprintf(path, sizeof(path), "%s/queues", name);
	fd = gp_open_at(processes, path, O_DIRECTORY);
	if (fd < 0)
		return fd == -ENOMEM ? fd : 0; /* it has ended */
	snprintf(path, sizeof(path), "%s/pasid", name);
	(void)gp_read_u64_at(processes, path, &pasid);
	r = gp_scan_client(scan, pid, (uint32_t)pasid);
	if (r < 0) {
		close(fd);
		return r;
	}
	return each_number(scan, fd, read_queue, &pid);
}

static void read_sched_policy(struct gp_scan *scan)
{
	uint64_t policy;

	scan->no_run_lists = gp_read_u64_at(scan->root, SCHED_POLICY, &policy) == 0 && policy == NO_HWS;
}

static int by_node(const void *a, const void *b)
{
	const struct gp_found_device *x = a, *y = b;

	return x->node < y->node ? -1 : x->node > y->node;
}

int gp_sysfs_read(struct gp_scan *scan)
{
	struct gp_found_source *source = &scan->sources[GP_SOURCE_SYSFS];
	int nodes, processes, r;

	read_sched_policy(scan);
	nodes = gp_open_at(scan->root, NODES, O_DIRECTORY);
	if (nodes >= 0) {
		r = each_number(scan, nodes, read_node, NULL);
		if (r < 0)
			return r;
	}
	if (scan->devices.count)
		qsort(scan->devices.at, scan->devices.count, sizeof(struct gp_found_device), by_node);
	processes = gp_open_at(scan->root, PROCESSES, O_DIRECTORY);
	source->status = processes < 0 ? processes : 0;
	return processes < 0 ? 0 : each_number(scan, processes, read_process, NULL);
}

int gp_discover_queue(const char *root, uint32_t pid, uint32_t queue_id, struct gp_found_queue *ret)
{
	struct gp_scan scan = { .root = -1 };
	const struct gp_seen *seen;
	char path[512], name[MAX_DIGITS + 1];
	int queues, r = -ENOENT;

	snprintf(path, sizeof(path), "%s/" PROCESSES "/%u/queues", root ? root : "/", pid);
	snprintf(name, sizeof(name), "%u", queue_id);
	queues = gp_open_at(AT_FDCWD, path, O_DIRECTORY);
	if (queues < 0)
		return -ENOENT;
	if (read_queue(&scan, queues, name, queue_id, &pid) == 0 && scan.sysfs.count) {
		seen = scan.sysfs.at;
		*ret = seen->q;
		r = 0;
	}
	free(scan.sysfs.at);
	close(queues);
	return r;
}
