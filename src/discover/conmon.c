// SPDX-License-Identifier: MIT
/*
 * The container of a process by its monitor, where no cgroup has a name: podman as a user under version 1, or
 * with --cgroups=disabled; its name, where no file can be read that has it.  podman and CRI-O start one
 *conmon for each container, outside of it:
 *
 *	conmon --api-version 1 -c ID -u ID ... -n NAME ...
 *
 * Its word counts if it is root's or the reader's, as the names of cgroups do, and if it runs where we do:
 * what a container's processes call themselves says nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discover/scan.h"
#include "discover/trust.h"

#define MAX_ANCESTORS 64

/* What stands behind an option that is one argument by itself. */
static int argument(const char *text, size_t len, const char *option, struct gp_span *ret)
{
	struct gp_span all = { text, text + len }, part;

	while (gp_span_split(&all, '\0', &part))
		if (gp_span_len(&part) == strlen(option) && !memcmp(part.at, option, strlen(option)))
			return gp_span_split(&all, '\0', ret);
	return 0;
}

int gp_conmon_names(const char *text, size_t len, struct gp_found_client *c)
{
	struct gp_span id, name;

	if (!argument(text, len, "-c", &id) || gp_span_len(&id) != GP_CONTAINER_DIGITS ||
	    !gp_is_container_id(id.at))
		return 0;
	gp_span_copy(&id, c->container, sizeof(c->container));
	c->container_name[0] = '\0';
	if (argument(text, len, "-n", &name))
		(void)gp_span_copy_whole(&name, c->container_name, sizeof(c->container_name));
	return 1;
}

static int is_believed(const char *status, size_t len)
{
	uint32_t pids[2], user = gp_status_user(status, len);

	return (user == 0 || user == geteuid()) && gp_status_pids(status, len, pids, 2) < 2;
}

/* Takes what it says, if it is a monitor. */
static void look_at(int process, const char *status, size_t len, struct gp_found_client *c)
{
	char text[8192];
	int n = gp_read_at(process, "comm", text, sizeof(text));

	if (n != 7 || memcmp(text, "conmon\n", 7) || !is_believed(status, len))
		return;
	n = gp_read_at(process, "cmdline", text, sizeof(text));
	if (n > 0)
		(void)gp_conmon_names(text, (size_t)n, c);
}

void gp_conmon_container(int root, uint32_t parent, struct gp_found_client *c)
{
	struct gp_span line;
	char text[4096];

	for (int i = 0; i < MAX_ANCESTORS && parent; i++) {
		int process = gp_proc_open(root, parent);
		int n = gp_read_at(process, "status", text, sizeof(text));

		if (n > 0)
			look_at(process, text, (size_t)n, c); /* the outermost counts */
		if (process >= 0)
			close(process);
		if (n <= 0 || !gp_status_line(text, (size_t)n, "PPid:", &line))
			return;
		gp_span_trim(&line);
		if (!gp_span_u32(&line, &parent))
			return;
	}
}
