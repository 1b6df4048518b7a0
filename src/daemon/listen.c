// SPDX-License-Identifier: MIT
#include "daemon/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/log.h"

#define BACKLOG 1024 /* as many as the system allows; who waits there waits behind others */

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16, include/uapi/asm-generic/socket.h */
#endif

static int complain(const char *what, const char *path, int error)
{
	gp_log("cannot %s %s: %s", what, path, strerror(error));
	return -error;
}

static int make_folder(const char *path)
{
	char folder[108];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0;
	*slash = '\0';
	if (mkdir(folder, geteuid() == 0 ? 0755 : 0700) < 0 && errno != EEXIST)
		return complain("make", folder, errno);
	return 0;
}

static int take_lock(struct gp_listen *l)
{
	char path[120];

	snprintf(path, sizeof(path), "%s.lock", l->path);
	l->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->lock < 0)
		return complain("open", path, errno);
	if (flock(l->lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return complain("lock", path, errno);
	gp_log("another gpreemptd listens on %s; end it, or choose another place by --socket", l->path);
	return -EADDRINUSE;
}

/* Whoever made it is dead: the lock was free. */
static int remove_stale(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : complain("look at", path, errno);
	if (!S_ISSOCK(st.st_mode)) {
		gp_log("%s is there and is no socket; it is left alone", path);
		return -EEXIST;
	}
	return unlink(path) < 0 ? complain("remove", path, errno) : 0;
}

static int bind_socket(struct gp_listen *l)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const int yes = 1, no = 0;

	memcpy(at.sun_path, l->path, strlen(l->path));
	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return complain("make a socket for", l->path, errno);
	/* Each that is accepted inherits it: every message bears who sent it, and, since 6.16, no
	 * descriptors. */
	if (setsockopt(l->fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0)
		return complain("listen on", l->path, errno);
	if (!l->old_kernel)
		(void)setsockopt(l->fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
	if (bind(l->fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return complain("listen on", l->path, errno);
	/* Who may do what is asked of the kernel, for each that comes: SO_PEERCRED. */
	if (chmod(l->path, geteuid() == 0 ? 0666 : 0600) < 0 || listen(l->fd, BACKLOG) < 0)
		return complain("listen on", l->path, errno);
	return 0;
}

int gp_listen_open(struct gp_listen *l, const char *path, bool old_kernel)
{
	int r;

	*l = (struct gp_listen){ .old_kernel = old_kernel, .fd = -1, .lock = -1 };
	snprintf(l->path, sizeof(l->path), "%s", path);
	r = make_folder(path);
	if (r == 0)
		r = take_lock(l);
	if (r == 0)
		r = remove_stale(path);
	if (r == 0)
		r = bind_socket(l);
	if (r < 0)
		gp_listen_close(l);
	return r;
}

void gp_listen_close(struct gp_listen *l)
{
	if (l->fd >= 0) {
		(void)unlink(l->path);
		close(l->fd);
	}
	if (l->lock >= 0)
		close(l->lock); /* the file stays: removing it would race with one who has it open */
	l->fd = l->lock = -1;
}
