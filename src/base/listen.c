// SPDX-License-Identifier: MIT
#include "base/listen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/places.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16, include/uapi/asm-generic/socket.h */
#endif

__attribute__((format(printf, 3, 4))) static int refuse(struct gp_listen *l, int r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(l->error, sizeof(l->error), fmt, args);
	va_end(args);
	return r;
}

static int complain(struct gp_listen *l, const char *what, const char *path, int error)
{
	return refuse(l, -error, "cannot %s %s: %s", what, path, strerror(error));
}

/* The run folder is made where it is missing; any other is a mistake in what was typed. */
static int make_folder(struct gp_listen *l)
{
	char folder[108];
	const char *name;
	char *slash;
	int r;

	snprintf(folder, sizeof(folder), "%s", l->path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0;
	*slash = '\0';
	name = strrchr(folder, '/');
	if (!strcmp(name ? name + 1 : folder, GP_RUN_NAME))
		r = mkdir(folder, geteuid() == 0 ? 0755 : 0700);
	else
		r = access(folder, F_OK);
	if (r == 0 || errno == EEXIST)
		return 0;
	return refuse(l, -errno, "there is no folder %s: %s; make it, or choose another place by %s", folder,
		      strerror(errno), l->option);
}

static bool is_kept_in_folders(const char *name)
{
	static const char *const kept[] = { ".",           "..",           "online",      "offline",
					    "online.lock", "offline.lock", GP_SOCKET_NAME };

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (!strcmp(name, kept[i]))
			return true;
	return false;
}

/* Who names a folder by mistake, as /run, must not find it closed to everybody else. */
static int refuse_others(struct gp_listen *l, const char *folder, int fd)
{
	int r = 0, again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	struct dirent *d;

	if (!dir)
		return complain(l, "look into", folder, errno);
	while (r == 0 && (d = readdir(dir)))
		if (!is_kept_in_folders(d->d_name))
			r = refuse(l, -ENOTEMPTY,
				   "%s holds other things, as %.60s; choose an empty folder by %s", folder,
				   d->d_name, l->option);
	closedir(dir);
	return r;
}

static int check_folder(struct gp_listen *l, const char *folder, int fd, mode_t mode)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return complain(l, "look at", folder, errno);
	if (st.st_uid != geteuid())
		return refuse(l, -EPERM, "%s is user %u's; choose another place by %s", folder,
			      (unsigned int)st.st_uid, l->option);
	if ((st.st_mode & 07777) == mode)
		return 0;
	r = refuse_others(l, folder, fd);
	if (r < 0)
		return r;
	return fchmod(fd, mode) < 0 ? complain(l, "change the mode of", folder, errno) : 0;
}

/* One that is there may have been made by somebody who mounts it before we come, with the usual mode. */
static int own_folder(struct gp_listen *l, const char *folder, mode_t mode)
{
	int fd, r;

	if (mkdir(folder, mode) < 0 && errno != EEXIST)
		return complain(l, "make the folder", folder, errno);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return complain(l, "open the folder", folder, errno);
	r = check_folder(l, folder, fd, mode);
	close(fd);
	return r;
}

static int take_lock(struct gp_listen *l, const char *name)
{
	const char *path = l->lock_path;

	l->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->lock < 0)
		return complain(l, "open", path, errno);
	if (flock(l->lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return complain(l, "lock", path, errno);
	return refuse(l, -EADDRINUSE, "another %s listens on %s; end it, or choose another place by %s", name,
		      l->path, l->option);
}

/* Whoever made it is dead: the lock was free. */
static int remove_stale(struct gp_listen *l)
{
	struct stat st;

	if (lstat(l->path, &st) < 0)
		return errno == ENOENT ? 0 : complain(l, "look at", l->path, errno);
	if (!S_ISSOCK(st.st_mode))
		return refuse(l, -EEXIST, "%s is there and is no socket; it is left alone", l->path);
	return unlink(l->path) < 0 ? complain(l, "remove", l->path, errno) : 0;
}

static int remember(struct gp_listen *l)
{
	struct stat st;

	if (lstat(l->path, &st) < 0)
		return complain(l, "look at", l->path, errno);
	l->device = st.st_dev;
	l->inode = st.st_ino;
	return 0;
}

/* Who cleared the folder may have started another one there: that one's socket is not ours to remove. */
static bool is_ours(const struct gp_listen *l)
{
	struct stat st;

	return lstat(l->path, &st) == 0 && st.st_dev == l->device && st.st_ino == l->inode;
}

static int ask_for_sender(int fd)
{
	const int yes = 1;

	return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0 ? -errno : 0;
}

/* Each that comes inherits it: every message bears who sent it, and, since 6.16, no descriptors. */
static int prepare(int fd, bool old_kernel)
{
	const int no = 0;
	int r = ask_for_sender(fd);

	if (r < 0)
		return r;
	if (!old_kernel)
		(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
	return 0;
}

int gp_listen_socket(bool old_kernel)
{
	int r, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	r = prepare(fd, old_kernel);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

static int bind_socket(struct gp_listen *l)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	memcpy(at.sun_path, l->path, strlen(l->path));
	l->fd = gp_listen_socket(l->old_kernel);
	if (l->fd < 0)
		return complain(l, "make a socket for", l->path, -l->fd);
	if (bind(l->fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return complain(l, "listen on", l->path, errno);
	/* Who may do what is asked of the kernel, for each that comes: SO_PEERCRED. */
	if (chmod(l->path, geteuid() == 0 ? 0666 : 0600) < 0 || listen(l->fd, GP_LISTEN_BACKLOG) < 0)
		return complain(l, "listen on", l->path, errno);
	return remember(l);
}

static int option_of(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -errno : value;
}

/*
 * Who waits on it already is served as if it had come later.  Who comes from now on is told of us, and not of
 * who bound it: the kernel notes who listens, for SO_PEERCRED, whenever somebody does.
 */
static int use_lent(struct gp_listen *l)
{
	int r;

	if (option_of(l->fd, SO_TYPE) != SOCK_SEQPACKET || option_of(l->fd, SO_ACCEPTCONN) != 1)
		return refuse(l, -EPROTOTYPE,
			      "the socket %s that it was started with is none of packets: use "
			      "ListenSequentialPacket= in its unit",
			      l->path);
	if (fcntl(l->fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(l->fd, F_SETFL, O_NONBLOCK) < 0)
		return complain(l, "use", l->path, errno);
	r = prepare(l->fd, l->old_kernel);
	if (r < 0)
		return complain(l, "use", l->path, -r);
	return listen(l->fd, GP_LISTEN_BACKLOG) < 0 ? complain(l, "listen on", l->path, errno) : 0;
}

/* Since 6.16 it is inherited when one comes, and before when it is accepted: then it may have been set
 * meanwhile. */
int gp_listen_accept(const struct gp_listen *l)
{
	int r, fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	r = l->is_lent ? ask_for_sender(fd) : 0;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

bool gp_listen_bars_descriptors(int fd)
{
	return option_of(fd, SO_PASSRIGHTS) == 0;
}

static int begin(struct gp_listen *l, const char *name)
{
	int r = take_lock(l, name);

	if (l->is_lent) {
		r = r < 0 ? r : use_lent(l);
	} else {
		r = r < 0 ? r : remove_stale(l);
		r = r < 0 ? r : bind_socket(l);
	}
	if (r < 0)
		gp_listen_close(l);
	return r;
}

static int open_at(struct gp_listen *l, const char *name, const char *path)
{
	int r;

	if (snprintf(l->path, sizeof(l->path), "%s", path) >= (int)sizeof(l->path))
		return complain(l, "listen on", path, ENAMETOOLONG);
	snprintf(l->lock_path, sizeof(l->lock_path), "%s.lock", path);
	r = make_folder(l);
	return r < 0 ? r : begin(l, name);
}

int gp_listen_open(struct gp_listen *l, const char *name, const char *path, bool old_kernel)
{
	*l = (struct gp_listen){ .old_kernel = old_kernel, .fd = -1, .lock = -1, .option = "--socket" };
	return open_at(l, name, path);
}

int gp_listen_open_lent(struct gp_listen *l, const char *name, const char *path, int fd, bool old_kernel)
{
	*l = (struct gp_listen){
		.old_kernel = old_kernel, .is_lent = true, .fd = fd, .lock = -1, .option = "--socket"
	};
	return open_at(l, name, path);
}

int gp_listen_open_behind(struct gp_listen *l, const char *program, const char *folder, const char *name,
			  bool old_kernel)
{
	char inner[sizeof(l->path)];
	int r;

	*l = (struct gp_listen){
		.old_kernel = old_kernel, .fd = -1, .lock = -1, .option = "--class-sockets"
	};
	if (snprintf(l->path, sizeof(l->path), "%s/%s/" GP_SOCKET_NAME, folder, name) >= (int)sizeof(l->path))
		return complain(l, "listen in", folder, ENAMETOOLONG);
	snprintf(inner, sizeof(inner), "%s/%s", folder, name);
	snprintf(l->lock_path, sizeof(l->lock_path), "%s/%s.lock", folder, name);
	r = own_folder(l, folder, 0700);
	if (r < 0)
		return r;
	r = own_folder(l, inner, 0755);
	if (r == -ENOTDIR)
		r = -EEXIST;
	return r < 0 ? r : begin(l, program);
}

void gp_listen_close(struct gp_listen *l)
{
	if (l->fd >= 0) {
		if (!l->is_lent && is_ours(l))
			(void)unlink(l->path);
		close(l->fd);
	}
	if (l->lock >= 0)
		close(l->lock); /* the file stays: removing it would race with one who has it open */
	l->fd = l->lock = -1;
}
