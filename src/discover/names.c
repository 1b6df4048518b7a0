// SPDX-License-Identifier: MIT
/*
 * What people call a container, by its id, from the files of whoever made it:
 *
 *	docker		DATA-ROOT/containers/ID/config.v2.json
 *	containerd	/run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json
 *	CRI-O		RUNROOT/DRIVER-containers/ID/userdata/config.json
 *	podman		GRAPHROOT/DRIVER-containers/containers.json
 *			RUNROOT/DRIVER-containers/volatile-containers.json
 *
 * Rules make a process online by such a name.  A file counts if it is root's or the reader's, and nobody else
 * can write it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "discover/scan.h"

#define MAX_JSON (4 * 1024 * 1024)
#define PLACE 512 /* of a path: longer ones are not looked at */

#define DOCKER_CONFIG "etc/docker/daemon.json"
#define DOCKER_ROOT "/var/lib/docker"
#define STORAGE_CONFIG "etc/containers/storage.conf"
#define GRAPH_ROOT "/var/lib/containers/storage"
#define RUN_ROOT "/run/containers/storage"
#define TASKS "io.containerd.runtime.v2.task"

static const char *const drivers[] = { "overlay", "vfs", "btrfs", "zfs" };
static const char *const task_folders[] = { "run/containerd/" TASKS "/k8s.io",
					    "run/k3s/containerd/" TASKS "/k8s.io",
					    "run/containerd/" TASKS "/default" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Whether nobody but root and the reader can have written it.  Root is whoever owns the root folder: a
 * recorded tree is somebody's, and was made with that one's umask: where its root folder may be written by a
 * group, so may its files. */
static int is_believed(int root, int fd)
{
	struct statx top, file;

	if (statx(root, "", AT_EMPTY_PATH, STATX_MODE | STATX_UID, &top) < 0 ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE | STATX_UID, &file) < 0)
		return 0;
	return S_ISREG(file.stx_mode) &&
	       (file.stx_uid == 0 || file.stx_uid == top.stx_uid || file.stx_uid == geteuid()) &&
	       !(file.stx_mode & (S_IWGRP | S_IWOTH) & ~top.stx_mode);
}

/* A file whole, for the caller to free; or NULL. */
static char *read_believed(int root, const char *path, size_t *ret_len)
{
	int fd = gp_open_at(root, path, O_NONBLOCK);
	char *text = NULL;
	int n = -1;

	if (fd < 0)
		return NULL;
	if (is_believed(root, fd))
		text = malloc(MAX_JSON);
	if (text)
		n = gp_read_fd(fd, text, MAX_JSON);
	close(fd);
	if (n > 0) {
		*ret_len = (size_t)n;
		return text;
	}
	free(text);
	return NULL;
}

/* An absolute path as one below the root folder. 0: it is none, or too long. */
static int take_path(struct gp_span path, char ret[PLACE])
{
	if (!gp_span_take(&path, "/") || gp_span_len(&path) >= PLACE)
		return 0;
	gp_span_copy(&path, ret, PLACE);
	return 1;
}

static void docker_root(int root, char ret[PLACE])
{
	struct gp_span value;
	size_t len;
	char *text = read_believed(root, DOCKER_CONFIG, &len);

	if (!text || !gp_json_find(text, len, NULL, "data-root", &value) || !take_path(value, ret))
		(void)take_path(gp_span_of(DOCKER_ROOT), ret);
	free(text);
}

/* 'graphroot = "/data/containers"', a line of TOML. */
static int toml_text(const char *text, size_t len, const char *key, struct gp_span *ret)
{
	struct gp_span all = { text, text + len }, line;

	while (gp_span_split(&all, '\n', &line)) {
		gp_span_trim(&line);
		if (!gp_span_take(&line, key))
			continue;
		gp_span_trim(&line);
		if (!gp_span_take(&line, "="))
			continue;
		gp_span_trim(&line);
		if (gp_span_take(&line, "\"") && gp_span_split(&line, '"', ret))
			return 1;
	}
	return 0;
}

/* Where podman and CRI-O keep their containers: for good, and until the next boot. */
struct storage {
	char graph[PLACE], run[PLACE];
};

static void roots_storage(int root, struct storage *ret)
{
	struct gp_span value;
	size_t len;
	char *text = read_believed(root, STORAGE_CONFIG, &len);

	if (!text || !toml_text(text, len, "graphroot", &value) || !take_path(value, ret->graph))
		(void)take_path(gp_span_of(GRAPH_ROOT), ret->graph);
	if (!text || !toml_text(text, len, "runroot", &value) || !take_path(value, ret->run))
		(void)take_path(gp_span_of(RUN_ROOT), ret->run);
	free(text);
}

/* The reader's own, who is not root. 0: there is none. */
static int own_storage(struct storage *ret)
{
	const char *home = secure_getenv("HOME"), *run = secure_getenv("XDG_RUNTIME_DIR");

	if (geteuid() == 0 || !home || home[0] != '/')
		return 0;
	*ret = (struct storage){ "", "" };
	(void)snprintf(ret->graph, PLACE, "%s/.local/share/containers/storage", home + 1);
	if (run && run[0] == '/')
		(void)snprintf(ret->run, PLACE, "%s/containers", run + 1);
	return 1;
}

/* Finds the id for a name, or the name for an id: the other is NULL. 1: found. */
static int look_in_storage(int root, const struct storage *s, const char *id, const char *name, char *ret,
			   size_t size)
{
	int found = 0;

	for (size_t i = 0; !found && i < 2 * COUNT(drivers); i++) {
		char path[PLACE + 64];
		struct gp_span span;
		size_t len;
		char *text;

		(void)snprintf(path, sizeof(path), "%s/%s-containers/%scontainers.json",
			       i & 1 ? s->run : s->graph, drivers[i / 2], i & 1 ? "volatile-" : "");
		text = read_believed(root, path, &len);
		found = text && gp_podman_find(text, len, id, name, &span) &&
			gp_span_copy_whole(&span, ret, size);
		free(text);
	}
	return found;
}

static int look_in_storages(int root, const char *id, const char *name, char *ret, size_t size)
{
	struct storage s;

	roots_storage(root, &s);
	return look_in_storage(root, &s, id, name, ret, size) ||
	       (own_storage(&s) && look_in_storage(root, &s, id, name, ret, size));
}

static int docker_name(int root, struct gp_found_client *c)
{
	char folder[PLACE], path[PLACE + 128];
	struct gp_span name;
	size_t len;
	char *text;
	int found;

	docker_root(root, folder);
	(void)snprintf(path, sizeof(path), "%s/containers/%s/config.v2.json", folder, c->container);
	text = read_believed(root, path, &len);
	found = text && gp_docker_name(text, len, &name) &&
		gp_span_copy_whole(&name, c->container_name, sizeof(c->container_name));
	free(text);
	return found;
}

/* Whole; empty: there is none. 0: it does not fit. */
static int annotation(const char *text, size_t len, const char *key, char *ret, size_t size)
{
	struct gp_span value;

	ret[0] = '\0';
	return !key || !gp_json_find(text, len, "annotations", key, &value) ||
	       gp_span_copy_whole(&value, ret, size);
}

int gp_annotated_name(const char *text, size_t len, struct gp_found_client *c)
{
	/* Of containerd (pkg/cri/annotations), and the kubelet's, which CRI-O keeps. */
	static const struct {
		const char *name, *pod, *space;
	} keys[] = {
		{ "io.kubernetes.cri.container-name", "io.kubernetes.cri.sandbox-name",
		  "io.kubernetes.cri.sandbox-namespace" },
		{ "io.kubernetes.container.name", "io.kubernetes.pod.name", "io.kubernetes.pod.namespace" },
		{ "nerdctl/name", NULL, NULL },
	};
	char name[80], pod[254]; /* Kubernetes allows 63 and 253, nerdctl 76 */

	for (size_t i = 0; i < COUNT(keys); i++) {
		if (!annotation(text, len, keys[i].name, name, sizeof(name)) ||
		    !annotation(text, len, keys[i].pod, pod, sizeof(pod)) ||
		    !annotation(text, len, keys[i].space, c->kube_namespace, sizeof(c->kube_namespace)))
			return 0;
		if (!name[0])
			continue;
		(void)snprintf(c->container_name, sizeof(c->container_name), "%s%s%s", pod, pod[0] ? "/" : "",
			       name);
		return 1;
	}
	return 0;
}

static int name_in(int root, const char *path, struct gp_found_client *c)
{
	size_t len;
	char *text = read_believed(root, path, &len);
	int found = text && gp_annotated_name(text, len, c);

	free(text);
	return found;
}

/* By the bundle that the runtime was given: containerd's, CRI-O's. */
static int bundle_name(int root, struct gp_found_client *c)
{
	char path[PLACE + 160];
	struct storage s;
	int found = 0;

	for (size_t i = 0; !found && i < COUNT(task_folders); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s/config.json", task_folders[i], c->container);
		found = name_in(root, path, c);
	}
	roots_storage(root, &s);
	for (size_t i = 0; !found && i < COUNT(drivers); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s-containers/%s/userdata/config.json", s.run,
			       drivers[i], c->container);
		found = name_in(root, path, c);
	}
	return found;
}

void gp_container_name(int root, struct gp_found_client *c)
{
	if (!docker_name(root, c) && !bundle_name(root, c))
		(void)look_in_storages(root, c->container, NULL, c->container_name,
				       sizeof(c->container_name));
}

int gp_container_id(int root, const char *name, char *ret_id)
{
	char id[2 * GP_CONTAINER_DIGITS];

	if (!look_in_storages(root, NULL, name, id, sizeof(id)) || strlen(id) != GP_CONTAINER_DIGITS)
		return 0;
	memcpy(ret_id, id, GP_CONTAINER_DIGITS + 1);
	return 1;
}
