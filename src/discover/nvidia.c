// SPDX-License-Identifier: MIT
/* /proc/driver/nvidia: GPUs and the driver's version (kernel-open/nvidia/nv-procfs.c, open kernel modules 550
 * to 595). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "discover/scan.h"

#define GPUS "proc/driver/nvidia/gpus"
#define MOST_KEPT 64

/*
 * The driver asks the GPU for what is in such a file, so each is read once.  The kernel makes another file of
 * it when the driver is loaded again.
 */
static struct {
	pthread_mutex_t lock;
	uint32_t next;
	struct {
		uint64_t inode, size;
		uint32_t major, minor; /* of what it is on */
		struct statx_timestamp changed;
		struct gp_found_device found;
	} kept[MOST_KEPT];
} read_before = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* As gpuGenerate32BitId() does (src/nvidia/src/kernel/gpu/gpu.c): it is how RM's own calls name the GPU. */
static uint32_t gpu_id(uint32_t domain, uint32_t bus, uint32_t device)
{
	return (domain & 0xffff) << 16 | bus << 8 | device;
}

/* "0000:41:00.0" */
static int read_address(const char *name, struct gp_found_device *d)
{
	unsigned int domain, bus, device, function;
	char more;

	if (sscanf(name, "%8x:%2x:%2x.%1x%c", &domain, &bus, &device, &function, &more) != 4)
		return 0;
	d->domain = domain;
	d->location = bus << 8 | device << 3 | function;
	d->gpu_id = gpu_id(domain, bus, device);
	return d->gpu_id != 0;
}

/* "Model: \t\t NVIDIA H200" */
static void read_information(struct gp_span text, struct gp_found_device *d)
{
	struct gp_span line;
	uint64_t minor;

	while (gp_span_split(&text, '\n', &line)) {
		struct gp_span value = line;

		if (!gp_span_find(&value, ":"))
			continue;
		while (value.at < value.end && (*value.at == ' ' || *value.at == '\t'))
			value.at++;
		if (gp_span_take(&line, "Model:"))
			gp_span_copy(&value, d->name, sizeof(d->name));
		else if (gp_span_take(&line, "GPU UUID:"))
			gp_span_copy(&value, d->uuid, sizeof(d->uuid));
		else if (gp_span_take(&line, "Device Minor:") && gp_span_decimal(&value, &minor))
			d->node = (uint32_t)minor;
	}
}

static int is_kept(const struct statx *s, struct gp_found_device *ret)
{
	for (uint32_t i = 0; i < MOST_KEPT && i < read_before.next; i++) {
		if (read_before.kept[i].inode != s->stx_ino || read_before.kept[i].size != s->stx_size ||
		    read_before.kept[i].major != s->stx_dev_major ||
		    read_before.kept[i].minor != s->stx_dev_minor ||
		    read_before.kept[i].changed.tv_sec != s->stx_mtime.tv_sec ||
		    read_before.kept[i].changed.tv_nsec != s->stx_mtime.tv_nsec)
			continue;
		*ret = read_before.kept[i].found;
		return 1;
	}
	return 0;
}

static void keep(const struct statx *s, const struct gp_found_device *d)
{
	uint32_t i = read_before.next++ % MOST_KEPT;

	read_before.kept[i].inode = s->stx_ino;
	read_before.kept[i].size = s->stx_size;
	read_before.kept[i].major = s->stx_dev_major;
	read_before.kept[i].minor = s->stx_dev_minor;
	read_before.kept[i].changed = s->stx_mtime;
	read_before.kept[i].found = *d;
}

/* How many GPU instances MIG has made of it. */
static uint32_t count_instances(int root, uint32_t minor)
{
	struct dirent *entry;
	uint32_t n = 0;
	char path[80];
	DIR *dir;
	int fd;

	snprintf(path, sizeof(path), "proc/driver/nvidia/capabilities/gpu%u/mig", minor);
	fd = gp_open_at(root, path, O_DIRECTORY);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir)))
		n += !strncmp(entry->d_name, "gi", 2);
	if (dir)
		closedir(dir);
	return n;
}

/* What is not to be had of it stays unknown. */
static void read_gpu(int gpus, const char *name, struct gp_found_device *d)
{
	char path[300], buffer[4096];
	struct statx s;
	int n;

	snprintf(path, sizeof(path), "%s/information", name);
	if (statx(gpus, path, 0, STATX_INO | STATX_SIZE | STATX_MTIME, &s) < 0)
		return;
	pthread_mutex_lock(&read_before.lock);
	if (!is_kept(&s, d)) {
		n = gp_read_at(gpus, path, buffer, sizeof(buffer));
		if (n > 0)
			read_information((struct gp_span){ buffer, buffer + n }, d);
		if (n > 0)
			keep(&s, d);
	}
	pthread_mutex_unlock(&read_before.lock);
}

static int by_address(const void *a, const void *b)
{
	const struct gp_found_device *x = a, *y = b;

	return x->gpu_id < y->gpu_id ? -1 : x->gpu_id > y->gpu_id;
}

static int read_gpus(struct gp_scan *scan, DIR *dir)
{
	size_t first = scan->devices.count;
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		struct gp_found_device found = { .vendor = GP_VENDOR_NVIDIA }, *d;

		if (!read_address(entry->d_name, &found))
			continue;
		d = gp_array_add(&scan->devices, sizeof(*d));
		if (!d)
			return -ENOMEM;
		read_gpu(dirfd(dir), entry->d_name, &found);
		found.instances = count_instances(scan->root, found.node);
		*d = found;
	}
	if (scan->devices.count > first)
		qsort((struct gp_found_device *)scan->devices.at + first, scan->devices.count - first,
		      sizeof(struct gp_found_device), by_address);
	return 0;
}

int gp_nvidia_read(struct gp_scan *scan)
{
	int fd = gp_open_at(scan->root, GPUS, O_DIRECTORY), r;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	r = read_gpus(scan, dir);
	closedir(dir);
	return r;
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ..." */
int gp_nvidia_version(const char *root, char *ret, size_t size)
{
	int dir = gp_open_at(AT_FDCWD, root, O_DIRECTORY), n;
	char buffer[1024];
	struct gp_span text, word;

	n = dir < 0 ? dir : gp_read_at(dir, "proc/driver/nvidia/version", buffer, sizeof(buffer));
	if (dir >= 0)
		close(dir);
	if (n < 0)
		return n;
	text = (struct gp_span){ buffer, buffer + n };
	while (gp_span_split(&text, ' ', &word)) {
		if (word.at < word.end && *word.at >= '0' && *word.at <= '9' &&
		    memchr(word.at, '.', gp_span_len(&word))) {
			gp_span_copy(&word, ret, size);
			return 0;
		}
	}
	return -ENODATA;
}
