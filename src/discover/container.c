// SPDX-License-Identifier: MIT
/* A process by its container and the pid that it has in there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discover/scan.h"

/* What is looked for, and what was found. */
struct search {
	int root;
	const char *word;                 /* the container's name, or the first digits of its id */
	char id[GP_CONTAINER_DIGITS + 1]; /* of the one that podman knows by another name; or empty */
	uint32_t inner_pid;
	char container[80];  /* the first that matched */
	enum gp_called best; /* how well that one matched; what matched less does not count */
	uint32_t own, outer; /* host's pids: it is inner_pid in its own namespace; in one around its own */
	int containers, owns, outers;
};

enum gp_called gp_container_called(const char *name, const char *id, const char *word)
{
	const char *slash = strchr(name, '/');
	size_t len = strlen(word), have = strlen(id);

	if (!strcmp(name, word))
		return GP_CALLED_SO;
	if (slash &&
	    (!strcmp(slash + 1, word) || (len == (size_t)(slash - name) && !strncmp(name, word, len))))
		return GP_CALLED_IN_PART;
	return have && len && strspn(word, "0123456789abcdef") == len && len <= GP_CONTAINER_DIGITS &&
			       !strncmp(id, word, len < have ? len : have)
		       ? GP_CALLED_BY_ID
		       : GP_CALLED_OTHERWISE;
}

static enum gp_called match(const struct search *s, const struct gp_found_client *c)
{
	if (!c->container[0])
		return GP_CALLED_OTHERWISE;
	return !strcmp(c->container, s->id) ? GP_CALLED_SO
					    : gp_container_called(c->container_name, c->container, s->word);
}

/* Whether it counts: what matched less before does so no more. */
static int is_meant(struct search *s, const struct gp_found_client *c)
{
	enum gp_called called = match(s, c);

	if (called == GP_CALLED_OTHERWISE || called < s->best)
		return 0;
	if (called > s->best) {
		s->best = called;
		s->container[0] = '\0';
		s->containers = s->owns = s->outers = 0;
	}
	return 1;
}

/* One process of the host's. */
static void look_at(struct search *s, struct gp_found_client *c)
{
	enum gp_pid_where where;
	int process;

	if (!is_meant(s, c))
		return;
	if (strcmp(s->container, c->container)) {
		s->containers++;
		memcpy(s->container, c->container, sizeof(s->container));
	}
	process = gp_proc_open(s->root, c->pid);
	where = gp_process_pid_where(process, s->inner_pid);
	if (process >= 0)
		close(process);
	if (where == GP_PID_OWN) {
		s->own = c->pid;
		s->owns++;
	} else if (where == GP_PID_BETWEEN) {
		s->outer = c->pid;
		s->outers++;
	}
}

static int look_at_all(struct search *s)
{
	int fd = gp_open_at(s->root, "proc", O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct gp_found_client c[2] = { { .pid = 0 } }; /* the process, and the last one in a container */
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return fd < 0 ? fd : -ENOMEM;
	}
	while ((entry = readdir(dir))) {
		struct gp_span name = gp_span_of(entry->d_name);
		uint64_t pid;

		if (!gp_span_decimal(&name, &pid) || name.at != name.end || pid > INT32_MAX)
			continue;
		c[0] = (struct gp_found_client){ .pid = (uint32_t)pid, .inner_pid = (uint32_t)pid };
		gp_proc_client(s->root, &c[0], &c[1]);
		look_at(s, &c[0]);
		if (c[0].container[0])
			c[1] = c[0];
	}
	closedir(dir);
	return 0;
}

void gp_discover_processes(const char *root, struct gp_found_client *clients, size_t n)
{
	int fd = n ? gp_open_at(AT_FDCWD, root ? root : "/", O_DIRECTORY) : -ENOENT;

	for (size_t i = 0; i < n; i++) {
		clients[i] = (struct gp_found_client){ .pid = clients[i].pid, .inner_pid = clients[i].pid };
		if (fd >= 0)
			gp_proc_client(fd, &clients[i], i ? &clients[i - 1] : NULL);
	}
	if (fd >= 0)
		close(fd);
}

static int verdict(const struct search *s, uint32_t *ret_pid)
{
	int many = s->owns ? s->owns : s->outers;

	if (s->containers > 1 || many > 1)
		return -ENOTUNIQ;
	if (!many)
		return -ENOENT;
	*ret_pid = s->owns ? s->own : s->outer;
	return 0;
}

int gp_discover_container_pid(const char *root, const char *container, uint32_t inner_pid, uint32_t *ret_pid)
{
	struct search s = { .word = container, .inner_pid = inner_pid };
	int r;

	if (!container || !container[0] || !inner_pid)
		return -EINVAL;
	s.root = gp_open_at(AT_FDCWD, root ? root : "/", O_DIRECTORY);
	if (s.root < 0)
		return s.root;
	(void)gp_container_id(s.root, container, s.id);
	r = look_at_all(&s);
	close(s.root);
	return r < 0 ? r : verdict(&s, ret_pid);
}
