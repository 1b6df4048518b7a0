// SPDX-License-Identifier: MIT
/* /proc/<pid>: who a client is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discover/scan.h"

#define MAX_LEVELS 32 /* of pid namespaces; the kernel's limit */

/* The rest of the line of this key in the text of status. */
static int status_line(const char *text, size_t len, const char *key, struct gp_span *ret)
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

	if (!status_line(text, len, "NSpid:", &line))
		return 0;
	gp_span_trim(&line);
	while (count < n && gp_span_u32(&line, &pids[count])) {
		count++;
		gp_span_trim(&line);
	}
	return count;
}

static int read_of(const struct gp_scan *scan, uint32_t pid, const char *name, char *buffer, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%u/%s", pid, name);
	return gp_read_at(scan->root, path, buffer, size);
}

static void read_status(const struct gp_scan *scan, struct gp_found_client *c)
{
	uint32_t pids[MAX_LEVELS], count, uid;
	struct gp_span line;
	char text[4096];
	int n = read_of(scan, c->pid, "status", text, sizeof(text));

	if (n <= 0)
		return;
	count = gp_status_pids(text, (size_t)n, pids, MAX_LEVELS);
	if (count)
		c->inner_pid = pids[count - 1];
	if (!status_line(text, (size_t)n, "Uid:", &line))
		return;
	gp_span_trim(&line);
	if (gp_span_u32(&line, &uid))
		c->uid = uid;
}

static void read_client(const struct gp_scan *scan, struct gp_found_client *c,
			const struct gp_found_client *before)
{
	struct gp_span name;
	char text[8192];
	int n = read_of(scan, c->pid, "comm", text, sizeof(text));

	if (n > 0) {
		name = (struct gp_span){ text, text + n - (text[n - 1] == '\n') };
		gp_span_copy(&name, c->name, sizeof(c->name));
	}
	read_status(scan, c);
	n = read_of(scan, c->pid, "cgroup", text, sizeof(text));
	if (n > 0)
		gp_cgroup_parse(text, (size_t)n, c);
	if (!c->container[0])
		return;
	if (before && !strcmp(before->container, c->container))
		memcpy(c->container_name, before->container_name, sizeof(c->container_name));
	else
		gp_container_name(scan->root, c);
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
		read_client(scan, &all[i], i ? &all[i - 1] : NULL);
	scan->sources[GP_SOURCE_PROC].lines = (uint32_t)scan->clients.count * 3;
	if (scan->pid) {
		struct gp_found_client one = { .pid = scan->pid, .inner_pid = scan->pid };

		read_status(scan, &one);
		scan->log_pid = one.inner_pid;
	}
}
