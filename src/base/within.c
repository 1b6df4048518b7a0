// SPDX-License-Identifier: MIT
#include "base/within.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"

/* As it was known last: a file system of the process's own might never answer. */
static int identify(int fd, uint64_t ret[2])
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) < 0)
		return -errno;
	ret[0] = makedev(st.stx_dev_major, st.stx_dev_minor);
	ret[1] = st.stx_ino;
	return 0;
}

static int identify_ours(uint64_t ret[2])
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : identify(fd, ret);

	if (fd >= 0)
		close(fd);
	return r;
}

static int open_root(uint32_t pid, uint64_t ret_id[2])
{
	uint64_t ours[2];
	char path[32];
	int fd, r;

	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	r = identify_ours(ours);
	if (r == 0)
		r = identify(fd, ret_id);
	if (r == 0 && memcmp(ours, ret_id, sizeof(ours)) == 0)
		r = -EXDEV;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

/* Who 0 is outside, by a line "INSIDE OUTSIDE COUNT". */
static int outside_of_root(uint32_t pid, const char *map, uint32_t *ret)
{
	unsigned int inside, outside, count;
	char path[32], text[4096];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, map);
	for (line = gp_file_text(path, text, sizeof(text)); line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0) {
			*ret = outside;
			return 0;
		}
	}
	return -ESRCH;
}

int gp_within_open(uint32_t pid, struct gp_within *ret)
{
	struct gp_within w = { .root = -1 };
	int r = w.root = open_root(pid, w.id);

	if (r >= 0)
		r = outside_of_root(pid, "uid_map", &w.uid);
	if (r == 0)
		r = outside_of_root(pid, "gid_map", &w.gid);
	if (r == 0)
		*ret = w;
	else if (w.root >= 0)
		close(w.root);
	return r;
}

int gp_within_enter(const struct gp_within *w)
{
	if (fchdir(w->root) < 0 || chroot(".") < 0)
		return -errno;
	/* The real user stays: the one in there could send us signals. */
	if ((w->uid || w->gid) && (setgroups(0, NULL) < 0 || setegid(w->gid) < 0 || seteuid(w->uid) < 0))
		return -errno;
	return 0;
}

static int open_below(int folder, const char *name)
{
	return openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int step(int folder, const char *name)
{
	int fd = open_below(folder, name);

	if (fd < 0 && errno == ENOENT && (mkdirat(folder, name, 0755) == 0 || errno == EEXIST))
		fd = open_below(folder, name);
	return fd < 0 ? -errno : fd;
}

int gp_within_folder(int root, const char *path)
{
	char rest[64], *at = rest, *name;
	int fd = -1;

	if (snprintf(rest, sizeof(rest), "%s", path) >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	while ((name = strsep(&at, "/"))) {
		int next = step(fd < 0 ? root : fd, name);

		if (fd >= 0)
			close(fd);
		if (next < 0)
			return next;
		fd = next;
	}
	return fd;
}
