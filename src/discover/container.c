// SPDX-License-Identifier: MIT
/*
 * Containers by name: docker and podman keep it in JSON files, of which this reads strings and depth and
 * nothing else.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discover/scan.h"

#define DOCKER "var/lib/docker/containers"
#define DOCKER_FILE "config.v2.json"
#define PODMAN "var/lib/containers/storage/overlay-containers/containers.json"
#define MAX_JSON (4 * 1024 * 1024)
#define MAX_LEVELS 32 /* of pid namespaces: the kernel's limit */

/* A string of a JSON text: its depth, and whether it is a key. Escapes stay as they are. */
struct token {
	struct gp_span text;
	int depth;
	int is_key;
};

struct json {
	const char *at, *end;
	int depth;
	int closed; /* an object of the outermost array has ended since the last token */
};

/* Behind the closing quote of the string at at, or NULL. */
static const char *string_end(const char *at, const char *end)
{
	for (at++; at < end; at++) {
		if (*at == '\\')
			at++;
		else if (*at == '"')
			return at + 1;
	}
	return NULL;
}

static int next_string(struct json *j, struct token *ret)
{
	const char *end;

	j->closed = 0;
	for (; j->at < j->end; j->at++) {
		if (*j->at == '{' || *j->at == '[')
			j->depth++;
		if (*j->at == '}' || *j->at == ']')
			j->depth--;
		if (*j->at == '}' && j->depth == 1)
			j->closed = 1;
		if (*j->at != '"')
			continue;
		end = string_end(j->at, j->end);
		if (!end)
			return 0;
		ret->text = (struct gp_span){ j->at + 1, end - 1 };
		ret->depth = j->depth;
		while (end < j->end && (*end == ' ' || *end == '\n' || *end == '\t' || *end == '\r'))
			end++;
		ret->is_key = end < j->end && *end == ':';
		j->at = end;
		return 1;
	}
	return 0;
}

static int is(const struct gp_span *s, const char *word)
{
	return gp_span_len(s) == strlen(word) && !memcmp(s->at, word, gp_span_len(s));
}

int gp_docker_name(const char *text, size_t len, struct gp_span *ret_name)
{
	struct json j = { .at = text, .end = text + len };
	struct token t;
	int next_is_name = 0;

	while (next_string(&j, &t)) {
		if (next_is_name && !t.is_key) {
			(void)gp_span_take(&t.text, "/");
			*ret_name = t.text;
			return 1;
		}
		next_is_name = t.is_key && t.depth == 1 && is(&t.text, "Name");
	}
	return 0;
}

/* An array of objects with "id": "...", "names": ["...", ...]. */
int gp_podman_find(const char *text, size_t len, const char *id, const char *name, struct gp_span *ret)
{
	struct json j = { .at = text, .end = text + len };
	struct gp_span this_id = { 0 }, this_name = { 0 };
	enum { OTHER, ID, NAMES } key = OTHER;
	struct token t;

	while (next_string(&j, &t)) {
		if (j.closed)
			this_id = this_name = (struct gp_span){ 0 };
		if (t.is_key) {
			key = t.depth != 2           ? OTHER
			      : is(&t.text, "id")    ? ID
			      : is(&t.text, "names") ? NAMES
						     : OTHER;
			continue;
		}
		if (key == ID && t.depth == 2)
			this_id = t.text;
		if (key == NAMES && t.depth == 3 && (!this_name.at || (name && is(&t.text, name))))
			this_name = t.text;
		if (!this_id.at || !this_name.at || !is(id ? &this_id : &this_name, id ? id : name))
			continue;
		*ret = id ? this_name : this_id;
		return 1;
	}
	return 0;
}

static char *read_whole(int dir, const char *path, int *ret_len)
{
	char *text = malloc(MAX_JSON);
	int n = text ? gp_read_at(dir, path, text, MAX_JSON) : -ENOMEM;

	if (n > 0) {
		*ret_len = n;
		return text;
	}
	free(text);
	return NULL;
}

void gp_container_name(int root, struct gp_found_client *c)
{
	struct gp_span name;
	char path[160];
	char *text;
	int n;

	snprintf(path, sizeof(path), DOCKER "/%s/" DOCKER_FILE, c->container);
	text = read_whole(root, path, &n);
	if (text) {
		if (gp_docker_name(text, (size_t)n, &name))
			gp_span_copy(&name, c->container_name, sizeof(c->container_name));
		free(text);
		return;
	}
	text = read_whole(root, PODMAN, &n);
	if (text && gp_podman_find(text, (size_t)n, c->container, NULL, &name))
		gp_span_copy(&name, c->container_name, sizeof(c->container_name));
	free(text);
}

static int docker_has_name(int docker, const char *id, const char *name)
{
	struct gp_span found;
	char path[300];
	char *text;
	int n, same;

	snprintf(path, sizeof(path), "%.255s/" DOCKER_FILE, id);
	text = read_whole(docker, path, &n);
	if (!text)
		return 0;
	same = gp_docker_name(text, (size_t)n, &found) && is(&found, name);
	free(text);
	return same;
}

/* The id of docker's container of this name. 1: found. */
static int docker_id(int root, const char *name, char *id)
{
	int fd = gp_open_at(root, DOCKER, O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int found = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (!found && (entry = readdir(dir))) {
		if (strlen(entry->d_name) != GP_CONTAINER_DIGITS ||
		    !docker_has_name(dirfd(dir), entry->d_name, name))
			continue;
		memcpy(id, entry->d_name, GP_CONTAINER_DIGITS + 1);
		found = 1;
	}
	closedir(dir);
	return found;
}

static int podman_id(int root, const char *name, char *id)
{
	struct gp_span found;
	int n, r;
	char *text = read_whole(root, PODMAN, &n);

	if (!text)
		return 0;
	r = gp_podman_find(text, (size_t)n, NULL, name, &found) && gp_span_len(&found) == GP_CONTAINER_DIGITS;
	if (r)
		gp_span_copy(&found, id, GP_CONTAINER_DIGITS + 1);
	free(text);
	return r;
}

/* What is looked for, and what was found. */
struct search {
	int root;
	const char *prefix; /* of the container's id */
	uint32_t inner_pid;
	char container[80];  /* the first that matched */
	uint32_t own, outer; /* host's pids: it is inner_pid in its own namespace; in one around its own */
	int containers, owns, outers;
};

/* Where the pid that is looked for stands among those of a process, outermost first. */
static void look_at_pids(struct search *s, uint32_t pid, const uint32_t *pids, uint32_t count)
{
	if (count && pids[count - 1] == s->inner_pid) {
		s->own = pid;
		s->owns++;
		return;
	}
	for (uint32_t i = 1; i + 1 < count; i++)
		if (pids[i] == s->inner_pid) {
			s->outer = pid;
			s->outers++;
			return;
		}
}

/* One process of the host's. */
static void look_at(struct search *s, uint32_t pid, int process)
{
	struct gp_found_client c = { .pid = pid };
	uint32_t pids[MAX_LEVELS];
	char text[8192];
	int n = gp_read_at(process, "cgroup", text, sizeof(text));

	if (n <= 0)
		return;
	gp_cgroup_parse(s->root, text, (size_t)n, &c);
	if (!c.container[0] || strncmp(c.container, s->prefix, strlen(s->prefix)))
		return;
	if (strcmp(s->container, c.container)) {
		s->containers++;
		memcpy(s->container, c.container, sizeof(s->container));
	}
	n = gp_read_at(process, "status", text, sizeof(text));
	if (n > 0)
		look_at_pids(s, pid, pids, gp_status_pids(text, (size_t)n, pids, MAX_LEVELS));
}

static int look_at_all(struct search *s)
{
	int fd = gp_open_at(s->root, "proc", O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return fd < 0 ? fd : -ENOMEM;
	}
	while ((entry = readdir(dir))) {
		struct gp_span name = gp_span_of(entry->d_name);
		uint64_t pid;
		int process;

		if (!gp_span_decimal(&name, &pid) || name.at != name.end || pid > INT32_MAX)
			continue;
		process = gp_proc_open(s->root, (uint32_t)pid);
		look_at(s, (uint32_t)pid, process);
		if (process >= 0)
			close(process);
	}
	closedir(dir);
	return 0;
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
	struct search s = { .prefix = container, .inner_pid = inner_pid };
	char id[GP_CONTAINER_DIGITS + 1];
	int r;

	if (!container || !container[0] || !inner_pid)
		return -EINVAL;
	s.root = gp_open_at(AT_FDCWD, root ? root : "/", O_DIRECTORY);
	if (s.root < 0)
		return s.root;
	if (docker_id(s.root, container, id) || podman_id(s.root, container, id))
		s.prefix = id;
	r = look_at_all(&s);
	close(s.root);
	return r < 0 ? r : verdict(&s, ret_pid);
}
