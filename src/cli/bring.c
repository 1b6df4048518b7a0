// SPDX-License-Identifier: MIT
#include "cli/bring.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/within.h"
#include "cli/options.h"
#include "cli/preload.h"
#include "discover/discover.h"

#define FRESH GP_AGENT_NAME ".new"
#define PATIENCE_S 10 /* with a container's files */
#define COPIED 16     /* and more, as exit codes: into which of the folders */

/* In the order tried; what is mounted noexec no program can load. */
static const struct {
	const char *folder, *file;
} places[] = { { "usr/lib/gpreempt", GP_AGENT_INSIDE }, { "run/gpreempt", "/run/gpreempt/" GP_AGENT_NAME } };

#define NPLACES (sizeof(places) / sizeof(places[0]))

/* A file whole. */
struct bytes {
	char *at;
	size_t size;
};

static int size_of(int fd, size_t *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret = (size_t)st.st_size;
	return 0;
}

static int read_whole(int fd, size_t size, struct bytes *ret)
{
	size_t used = 0;
	ssize_t n = 1;

	ret->size = size;
	ret->at = malloc(size + 1);
	while (ret->at && used < size && (n = read(fd, ret->at + used, size - used)) > 0)
		used += (size_t)n;
	return !ret->at ? -ENOMEM : n < 0 ? -errno : used == size ? 0 : -EIO;
}

/*
 * -1: it is no file of that size.  What has the name is not opened to see that: it may be a device, where
 * that alone does something.  descriptors: our own in /proc, for those in there have none to believe.
 */
static int open_one_of(size_t size, int folder, int descriptors)
{
	int fd = -1, at = openat(folder, GP_AGENT_NAME, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	size_t found = 0;
	char name[16];

	if (at < 0)
		return -1;
	snprintf(name, sizeof(name), "%d", at);
	if (size_of(at, &found) == 0 && found == size)
		fd = openat(descriptors, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	close(at);
	return fd;
}

static bool is_there(int folder, int descriptors, const struct bytes *agent)
{
	int fd = open_one_of(agent->size, folder, descriptors);
	struct bytes found = { NULL, 0 };
	bool same = fd >= 0 && read_whole(fd, agent->size, &found) == 0 &&
		    !memcmp(found.at, agent->at, agent->size);

	if (fd >= 0)
		close(fd);
	free(found.at);
	return same;
}

static int write_whole(int fd, const struct bytes *agent)
{
	for (size_t used = 0; used < agent->size;) {
		ssize_t n = write(fd, agent->at + used, agent->size - used);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		used += (size_t)n;
	}
	return 0;
}

/* A new one in its place: programs may have the old one loaded. */
static int replace(int folder, const struct bytes *agent)
{
	int fd, r;

	(void)unlinkat(folder, FRESH, 0);
	fd = openat(folder, FRESH, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = write_whole(fd, agent);
	close(fd);
	if (r == 0 && renameat(folder, FRESH, folder, GP_AGENT_NAME) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(folder, FRESH, 0);
	return r;
}

static int copy_to(int root, int descriptors, const char *path, const struct bytes *agent)
{
	int r, folder = gp_within_folder(root, path);
	struct statvfs mount;

	if (folder < 0)
		return folder;
	if (fstatvfs(folder, &mount) == 0 && mount.f_flag & ST_NOEXEC)
		r = -EACCES;
	else
		r = is_there(folder, descriptors, agent) ? 0 : replace(folder, agent);
	close(folder);
	return r;
}

/* In a child, which has the container's root folder from here on. Its exit code. */
static int copy(const struct gp_within *w, const struct bytes *agent)
{
	int descriptors = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int first = 0, r = gp_within_enter(w);

	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "attach: cannot enter its root folder: %s", strerror(-r));
	(void)umask(022);
	for (size_t i = 0; i < NPLACES; i++) {
		r = copy_to(w->root, descriptors, places[i].folder, agent);
		if (r == 0)
			return COPIED + (int)i;
		first = first ? first : r;
	}
	return gp_fail(GP_EXIT_FAILED, "attach: cannot write the agent into /%s in it: %s%s",
		       places[0].folder, strerror(-first),
		       first == -ENOTDIR ? " (symbolic links are not followed)" : "");
}

static int copy_in_child(const struct gp_within *w, const struct bytes *agent, const char **ret)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		(void)signal(SIGALRM, SIG_DFL); /* who started us may have had it ignored */
		(void)alarm(PATIENCE_S);
		_exit(copy(w, agent));
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return gp_fail(GP_EXIT_FAILED, "attach: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) >= COPIED &&
	    WEXITSTATUS(status) < COPIED + (int)NPLACES) {
		*ret = places[WEXITSTATUS(status) - COPIED].file;
		return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) /* and said */
				 : gp_fail(GP_EXIT_FAILED, "attach: its files do not answer");
}

/* Opens the agent while it is in our own root folder. */
static int load(const char *path, struct bytes *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	int r = fd < 0 ? -errno : size_of(fd, &size);

	if (r == 0)
		r = read_whole(fd, size, ret);
	if (fd >= 0)
		close(fd);
	return r == 0 ? -1 : gp_fail(GP_EXIT_FAILED, "%s: %s", path, strerror(-r));
}

static int enter(uint32_t pid, uint64_t start, struct gp_within *ret)
{
	int r = gp_within_open(pid, ret);

	if (r == -EXDEV)
		return gp_fail(GP_EXIT_FAILED,
			       "attach: process %" PRIu32
			       " is in no container; gpreempt run starts programs on the host",
			       pid);
	if (r < 0 || gp_proc_start("", pid) != start)
		return gp_fail(GP_EXIT_FAILED, "attach: process %" PRIu32 ": %s", pid,
			       strerror(r < 0 ? -r : ESRCH));
	return -1;
}

int gp_agent_bring(const char *agent, uint32_t pid, uint64_t start, const char **ret)
{
	struct bytes bytes = { NULL, 0 };
	struct gp_within within;
	int code = enter(pid, start, &within);

	if (code >= 0)
		return code;
	code = load(agent, &bytes);
	if (code < 0)
		code = copy_in_child(&within, &bytes, ret);
	free(bytes.at);
	close(within.root);
	return code;
}
