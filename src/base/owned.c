// SPDX-License-Identifier: MIT
#include "base/owned.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Many systems give each user a group of his own, with his number, and let that write what he makes. */
static bool is_group_ours(gid_t group)
{
	return group == 0 || (group == getegid() && group == geteuid());
}

static bool is_ours(const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return false;
	if (S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX)
		return true; /* as /tmp: what is in it is its owner's to replace */
	return !(st->st_mode & S_IWOTH) && (!(st->st_mode & S_IWGRP) || is_group_ours(st->st_gid));
}

static int check(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	return is_ours(&st) ? 0 : -EPERM;
}

/* false: it was the root folder. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!path[1])
		return false;
	slash[slash == path] = '\0';
	return true;
}

int gp_owned_path(const char *path, char ret[PATH_MAX])
{
	char real[PATH_MAX];
	int r;

	snprintf(ret, PATH_MAX, "%s", path);
	if (!realpath(path, real))
		return -errno;
	strcpy(ret, real);
	do
		r = check(ret);
	while (r == 0 && go_up(ret));
	if (r != -EPERM)
		strcpy(ret, real);
	return r;
}
