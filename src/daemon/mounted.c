// SPDX-License-Identifier: MIT
#include "daemon/mounted.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST 65536 /* bytes of a list: what lies behind them is not mounted for us */

/* "ID PARENT MAJOR:MINOR ROOT PLACE ...": proc(5). What is octal in it, as a blank is, is no path of ours. */
struct mount {
	struct gp_folder root;
	char place[256];
};

static const char *next_mount(const char *line, struct mount *ret)
{
	while (*line) {
		const char *end = strchr(line, '\n');
		int n = sscanf(line, "%*s %*s %23s %255s %255s", ret->root.device, ret->root.path,
			       ret->place);

		if (!end)
			return NULL;
		line = end + 1;
		if (n == 3)
			return line;
	}
	return NULL;
}

/* What follows a folder in a path of something in it, or that folder; NULL: it is elsewhere. */
static const char *behind(const char *folder, const char *path)
{
	size_t len = strcmp(folder, "/") ? strlen(folder) : 0;

	if (strncmp(folder, path, len) || (path[len] && path[len] != '/'))
		return NULL;
	return path + len;
}

static int read_list(const struct gp_process *p, char **ret)
{
	char *list = malloc(LIST);
	int r = list ? gp_process_read(p, "mountinfo", list, LIST) : -ENOMEM;

	if (r < 0) {
		free(list);
		return r;
	}
	*ret = list;
	return 0;
}

static int find_in(const char *list, const char *path, struct gp_folder *ret)
{
	struct mount one;
	size_t longest = 0;
	int r = -ENOENT;

	while ((list = next_mount(list, &one))) {
		const char *rest = behind(one.place, path), *root = one.root.path;

		/* The last one of a place hides those before it. */
		if (!rest || strlen(one.place) < longest)
			continue;
		longest = strlen(one.place);
		*ret = one.root;
		r = snprintf(ret->path, sizeof(ret->path), "%s%s", strcmp(root, "/") ? root : "", rest) <
				    (int)sizeof(ret->path)
			    ? 0
			    : -ENAMETOOLONG;
	}
	return r;
}

int gp_folder_find(const char *path, struct gp_folder *ret)
{
	char whole[PATH_MAX], *list;
	struct gp_process self;
	int r;

	if (!realpath(path, whole))
		return -errno;
	r = gp_process_open((uint32_t)getpid(), &self);
	if (r < 0)
		return r;
	r = read_list(&self, &list);
	gp_process_close(&self);
	if (r < 0)
		return r;
	r = find_in(list, whole, ret);
	free(list);
	return r;
}

bool gp_process_has_mounted(const struct gp_process *p, const char *at, const struct gp_folder *folder)
{
	struct gp_folder there = { "", "" };
	char *list;

	if (read_list(p, &list) < 0)
		return false;
	if (find_in(list, at, &there) < 0)
		there.path[0] = '\0';
	free(list);
	return there.path[0] && !strcmp(there.device, folder->device) && !strcmp(there.path, folder->path);
}
