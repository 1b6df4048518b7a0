// SPDX-License-Identifier: MIT
/* /proc/<pid>: who a client is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discover/scan.h"
#include "discover/trust.h"

/* What /proc/self/ns/pid says where pids are the host's: PROC_PID_INIT_INO, include/linux/proc_ns.h. */
#define HOST_PIDS "pid:[4026531836]"

int gp_status_line(const char *text, size_t len, const char *key, struct gp_span *ret)
{
	struct gp_span all = { text, text + len };
	struct gp_span line;

	while (gp_span_split(&all, '\n', &line))
		if (gp_span_take(&line, key)) {
			*ret = line;
			return 1;
		}
	return 0;
}

uint32_t gp_status_pids(const char *text, size_t len, uint32_t *pids, uint32_t n)
{
	struct gp_span line;
	uint32_t count = 0;

	if (!gp_status_line(text, len, "NSpid:", &line))
		return 0;
	gp_span_trim(&line);
	while (count < n && gp_span_u32(&line, &pids[count])) {
		count++;
		gp_span_trim(&line);
	}
	return count;
}

int gp_proc_open(int root, uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "proc/%u", pid);
	return gp_open_at(root, path, O_DIRECTORY);
}

/* What it says of a client; its parent is the result. */
static uint32_t read_status(int process, struct gp_found_client *c)
{
	uint32_t inner, uid, parent = 0;
	struct gp_span line;
	char text[4096];
	int n = gp_read_at(process, "status", text, sizeof(text));

	if (n <= 0)
		return 0;
	inner = gp_status_inner_pid(text, (size_t)n);
	if (inner)
		c->inner_pid = inner;
	if (gp_status_line(text, (size_t)n, "PPid:", &line)) {
		gp_span_trim(&line);
		(void)gp_span_u32(&line, &parent);
	}
	if (!gp_status_line(text, (size_t)n, "Uid:", &line))
		return parent;
	gp_span_trim(&line);
	if (gp_span_u32(&line, &uid))
		c->uid = uid;
	return parent;
}

/* The files that have names are root's to read; a monitor's arguments are not. */
static void name_container(int root, uint32_t parent, struct gp_found_client *c,
			   const struct gp_found_client *before)
{
	struct gp_found_client monitored = { .pid = 0 };

	if (!c->container[0] || c->container_name[0])
		return;
	if (before && !strcmp(before->container, c->container)) {
		memcpy(c->container_name, before->container_name, sizeof(c->container_name));
		memcpy(c->kube_namespace, before->kube_namespace, sizeof(c->kube_namespace));
		return;
	}
	gp_container_name(root, c);
	if (c->container_name[0])
		return;
	gp_conmon_container(root, parent, &monitored);
	if (!strcmp(monitored.container, c->container))
		memcpy(c->container_name, monitored.container_name, sizeof(c->container_name));
}

void gp_proc_client(int root, struct gp_found_client *c, const struct gp_found_client *before)
{
	struct gp_span name;
	char text[8192];
	int process = gp_proc_open(root, c->pid);
	int n = gp_read_at(process, "comm", text, sizeof(text));
	uint32_t parent;

	if (n > 0) {
		name = (struct gp_span){ text, text + n - (text[n - 1] == '\n') };
		gp_span_copy(&name, c->name, sizeof(c->name));
	}
	parent = read_status(process, c);
	n = gp_read_at(process, "cgroup", text, sizeof(text));
	if (n > 0)
		gp_cgroup_parse(root, text, (size_t)n, c);
	if (process >= 0)
		close(process);
	if (!c->container[0] && c->inner_pid != c->pid)
		gp_conmon_container(root, parent, c);
	name_container(root, parent, c, before);
}

static int by_pid(const void *a, const void *b)
{
	const struct gp_found_client *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Sorts, and makes one of what several sources noted. */
static void unite(struct gp_array *clients)
{
	struct gp_found_client *all = clients->at;
	size_t n = 0;

	if (clients->count)
		qsort(all, clients->count, sizeof(*all), by_pid);
	for (size_t i = 0; i < clients->count; i++) {
		if (n && all[n - 1].pid == all[i].pid) {
			if (all[n - 1].pasid == UINT32_MAX)
				all[n - 1].pasid = all[i].pasid;
			continue;
		}
		all[n++] = all[i];
	}
	clients->count = n;
}

static uint32_t inner_pid(int root, uint32_t pid)
{
	struct gp_found_client one = { .pid = pid, .inner_pid = pid };
	int process = gp_proc_open(root, pid);

	(void)read_status(process, &one);
	if (process >= 0)
		close(process);
	return one.inner_pid;
}

void gp_proc_read(struct gp_scan *scan)
{
	struct gp_found_client *all;
	int fd = gp_open_at(scan->root, "proc", O_DIRECTORY);

	scan->sources[GP_SOURCE_PROC].status = fd < 0 ? fd : 0;
	if (fd >= 0)
		close(fd);
	unite(&scan->clients);
	all = scan->clients.at;
	for (size_t i = 0; i < scan->clients.count; i++)
		gp_proc_client(scan->root, &all[i], i ? &all[i - 1] : NULL);
	scan->sources[GP_SOURCE_PROC].lines = (uint32_t)scan->clients.count * 3;
	if (scan->pid)
		scan->log_pid = inner_pid(scan->root, scan->pid);
}

enum gp_pid_where gp_process_pid_where(int process, uint32_t inner)
{
	uint32_t pids[GP_PID_LEVELS], count;
	char text[8192];
	int n = gp_read_at(process, "status", text, sizeof(text));

	count = n > 0 ? gp_status_pids(text, (size_t)n, pids, GP_PID_LEVELS) : 0;
	if (count && pids[count - 1] == inner)
		return GP_PID_OWN;
	for (uint32_t i = 1; i + 1 < count; i++)
		if (pids[i] == inner)
			return GP_PID_BETWEEN;
	return GP_PID_NOWHERE;
}

enum gp_pid_where gp_proc_pid_where(const char *root, uint32_t pid, uint32_t inner)
{
	int dir = gp_open_at(AT_FDCWD, root ? root : "/", O_DIRECTORY);
	int process = gp_proc_open(dir, pid);
	enum gp_pid_where where = gp_process_pid_where(process, inner);

	if (process >= 0)
		close(process);
	if (dir >= 0)
		close(dir);
	return where;
}

uint64_t gp_proc_start(const char *root, uint32_t pid)
{
	char path[4096], text[1024];
	const char *at;
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/proc/%u/stat", root, pid) >= (int)sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strrchr(text, ')'); /* a name may have anything in it, but nothing after it has a bracket */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

int gp_sees_host_pids(void)
{
	char name[64];
	ssize_t len = readlink("/proc/self/ns/pid", name, sizeof(name) - 1);

	if (len < 0)
		return 1;
	name[len] = '\0';
	return !strcmp(name, HOST_PIDS);
}
