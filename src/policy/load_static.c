// SPDX-License-Identifier: MIT
/*
 * In place of load.c in a program that is linked statically, which can load nothing: the same program, linked
 * dynamically, takes over, with the same arguments.  It stands in ../libexec/gpreempt.
 */
#include "policy/load.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/owned.h"

#define MOST_ARGUMENTS 128
#define MOST_BYTES 65536

static int find_other(char path[PATH_MAX])
{
	static const char place[] = "../libexec/gpreempt/gpreempt";
	char here[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", here, sizeof(here) - 1);

	if (len < 0)
		return -errno;
	here[len] = '\0';
	*strrchr(here, '/') = '\0';
	return snprintf(path, PATH_MAX, "%s/%s", here, place) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static ssize_t read_command_line(char *bytes, size_t size)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, bytes, size);
	if (len < 0)
		len = -errno;
	(void)close(fd);
	return len;
}

/* This program's own; size is that of bytes. */
static int read_arguments(char *bytes, size_t size, char *argv[MOST_ARGUMENTS])
{
	ssize_t len = read_command_line(bytes, size);
	size_t n = 0;

	if (len < 0)
		return (int)len;
	if ((size_t)len == size)
		return -E2BIG;
	for (char *at = bytes; at < bytes + len; at += strlen(at) + 1) {
		if (n == MOST_ARGUMENTS - 1)
			return -E2BIG;
		argv[n++] = at;
	}
	argv[n] = NULL;
	return 0;
}

/* Returns only if it cannot. A copy of this program may stand in a folder whose neighbours are anybody's. */
static int become_other(char path[PATH_MAX])
{
	static char bytes[MOST_BYTES];
	char *argv[MOST_ARGUMENTS], place[PATH_MAX];
	int r = read_arguments(bytes, sizeof(bytes), argv);

	if (r < 0)
		return r;
	strcpy(place, path);
	r = gp_owned_path(place, path);
	if (r < 0)
		return r;
	(void)execv(path, argv);
	return -errno;
}

int gp_policy_load(const char *path, const struct gp_policy_ops **ret, char *text, size_t size)
{
	char other[PATH_MAX] = "/proc/self/exe";
	int r;

	(void)path;
	(void)ret;
	r = find_other(other);
	if (r == 0)
		r = become_other(other);
	(void)snprintf(text, size,
		       "a static gpreempt needs another to load it, which %s (%s): %s; "
		       "install all of the archive",
		       r == -EPERM ? "others than root and you can write" : "cannot be started", strerror(-r),
		       other);
	return r;
}
