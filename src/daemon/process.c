// SPDX-License-Identifier: MIT
#include "daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "discover/trust.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* Linux 5.3 */
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5, include/uapi/asm-generic/socket.h */
#endif

/* Linux 4.11, include/uapi/linux/nsfs.h */
#define NS_GET_USERNS _IO(0xb7, 0x1)
#define NS_GET_PARENT _IO(0xb7, 0x2)
#define NS_GET_OWNER_UID _IO(0xb7, 0x4)

#define MOST_NESTED 33 /* namespaces: the kernel's limit for both kinds */

static bool no_pidfds;
static int64_t named_group = -1;

void gp_process_without_pidfds(void)
{
	no_pidfds = true;
}

void gp_process_name_group(int64_t group)
{
	named_group = group;
}

static int open_folder(uint32_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

/* In the place of a pidfd, where there is none to be had. */
static int take(int pidfd, uint32_t pid, struct gp_process *ret)
{
	int fd = pidfd >= 0 ? pidfd : open_folder(pid);

	if (fd < 0)
		return fd;
	*ret = (struct gp_process){ .fd = fd, .is_pidfd = pidfd >= 0, .pid = pid };
	if (gp_process_lives(ret))
		return 0;
	gp_process_close(ret);
	return -ESRCH;
}

int gp_process_open(uint32_t pid, struct gp_process *ret)
{
	return take(no_pidfds ? -1 : (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), pid, ret);
}

int gp_process_of_peer(int socket, uint32_t pid, struct gp_process *ret)
{
	socklen_t size = sizeof(int);
	int fd = -1;

	if (no_pidfds ||
	    (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) < 0 && errno == ENOPROTOOPT))
		return gp_process_open(pid, ret);
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : -ESRCH;
	*ret = (struct gp_process){ .fd = fd, .is_pidfd = true, .is_exact = true, .pid = pid };
	return 0;
}

struct gp_process gp_process_of(int fd, uint32_t pid)
{
	struct stat st;

	return (struct gp_process){ .fd = fd,
				    .is_pidfd = fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode),
				    .pid = pid };
}

int gp_process_copy(const struct gp_process *p, struct gp_process *ret)
{
	int fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	*ret = *p;
	ret->fd = fd;
	return 0;
}

void gp_process_close(struct gp_process *p)
{
	if (p->fd >= 0)
		close(p->fd);
	*p = GP_NO_PROCESS;
}

static int read_at(int folder, const char *path, char *text, size_t size)
{
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	while (used < size - 1 && (n = read(fd, text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	text[used] = '\0';
	return n < 0 ? -ESRCH : (int)used;
}

/*
 * "PID (NAME) STATE ...": a name may have anything in it, but no bracket comes after it.  One
 * whose first thread has ended is a zombie while the others go on.
 */
static bool is_running(const char *stat)
{
	const char *at = strrchr(stat, ')');
	char state = at && at[1] ? at[2] : 'X';

	if (state != 'Z' && state != 'X')
		return true;
	for (int field = 2; at && field < 20; field++)
		at = strchr(at + 1, ' ');
	return at && strtoul(at + 1, NULL, 10) > 1;
}

bool gp_process_lives(const struct gp_process *p)
{
	struct pollfd ended = { .fd = p->fd, .events = POLLIN };
	char stat[1024];

	if (p->fd < 0)
		return false;
	if (p->is_pidfd)
		return poll(&ended, 1, 0) == 0;
	return read_at(p->fd, "stat", stat, sizeof(stat)) > 0 && is_running(stat);
}

/* What a path below /proc/PID is relative to, and the path. */
static const char *path_of(const struct gp_process *p, const char *name, int *ret_folder, char path[64])
{
	*ret_folder = p->is_pidfd ? AT_FDCWD : p->fd;
	if (!p->is_pidfd)
		return name;
	snprintf(path, 64, "/proc/%u/%s", p->pid, name);
	return path;
}

int gp_process_read(const struct gp_process *p, const char *name, char *text, size_t size)
{
	char room[64];
	int folder, n;
	const char *path = path_of(p, name, &folder, room);

	if (p->fd < 0)
		return -ESRCH;
	n = read_at(folder, path, text, size);
	/* It had the number all the time, if it has it still. */
	return gp_process_lives(p) ? n : -ESRCH;
}

/* Who they are */

static uint64_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : st.st_ino;
}

static int open_namespace(const struct gp_process *p, const char *name)
{
	char room[64];
	int folder;
	const char *path = path_of(p, name, &folder, room);

	return openat(folder, path, O_RDONLY | O_CLOEXEC);
}

/* Of a namespace below ours, the outermost that it is in; -1: it is ours, or not to be seen. Takes fd. */
static int outermost(int fd, uint64_t ours)
{
	int parent;

	for (int i = 0; fd >= 0 && ours && inode_of(fd) != ours && i < MOST_NESTED; i++) {
		parent = ioctl(fd, NS_GET_PARENT);
		if (parent >= 0 && inode_of(parent) == ours) {
			close(parent);
			return fd;
		}
		close(fd);
		fd = parent;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* All that is below it was made by those in there. */
static void read_user_namespace(const struct gp_process *p, uint64_t ours, struct gp_identity *id)
{
	int fd = open_namespace(p, "ns/user");

	id->user_ns = fd < 0 ? 0 : inode_of(fd);
	id->user_ns_owner = UINT32_MAX;
	fd = outermost(fd, ours);
	if (fd < 0)
		return;
	(void)ioctl(fd, NS_GET_OWNER_UID, &id->user_ns_owner);
	close(fd);
}

/* One that belongs to our user namespace was made by somebody who may do so here. */
static void read_pid_namespace(const struct gp_process *p, const struct gp_identity *self,
			       struct gp_identity *id)
{
	int fd = open_namespace(p, "ns/pid"), of;

	id->pid_ns = fd < 0 ? 0 : inode_of(fd);
	fd = outermost(fd, self->pid_ns);
	if (fd < 0)
		return;
	of = ioctl(fd, NS_GET_USERNS);
	if (of >= 0 && inode_of(of) == self->user_ns)
		id->container = inode_of(fd);
	if (of >= 0)
		close(of);
	close(fd);
}

static uint64_t read_mount_namespace(const struct gp_process *p)
{
	int fd = open_namespace(p, "ns/mnt");
	uint64_t inode = fd < 0 ? 0 : inode_of(fd);

	if (fd >= 0)
		close(fd);
	return inode;
}

/* As it was known last: a file system of the process's own might never answer. */
static void read_root(const struct gp_process *p, struct gp_identity *id)
{
	char room[64];
	struct statx st;
	int folder;
	const char *path = path_of(p, "root", &folder, room);

	if (statx(folder, path, AT_STATX_DONT_SYNC, STATX_INO, &st) < 0)
		return;
	id->root[0] = makedev(st.stx_dev_major, st.stx_dev_minor);
	id->root[1] = st.stx_ino;
}

/* What it may do before where it is: who goes into a namespace to be somebody there is not somebody here. */
static int identify(const struct gp_process *p, const struct gp_identity *self, struct gp_identity *ret)
{
	char status[16384]; /* more than a thousand groups do not fit: then the rest counts as not there */
	int n = gp_process_read(p, "status", status, sizeof(status));

	*ret = (struct gp_identity){ .uid = UINT32_MAX };
	if (n < 0)
		return n;
	ret->uid = gp_status_user(status, (size_t)n);
	ret->is_administrator = gp_status_is_administrator(status, (size_t)n);
	ret->is_member = gp_status_is_member(status, (size_t)n, named_group);
	read_user_namespace(p, self->user_ns, ret);
	read_pid_namespace(p, self, ret);
	ret->mount_ns = read_mount_namespace(p);
	read_root(p, ret);
	return gp_process_lives(p) ? 0 : -ESRCH;
}

const struct gp_identity *gp_process_self(void)
{
	static struct gp_identity self;
	struct gp_process p;

	if (self.user_ns || gp_process_open((uint32_t)getpid(), &p) < 0)
		return &self;
	(void)identify(&p, &(struct gp_identity){ 0 }, &self);
	gp_process_close(&p);
	return &self;
}

int gp_process_identify(const struct gp_process *p, struct gp_identity *ret)
{
	return identify(p, gp_process_self(), ret);
}
