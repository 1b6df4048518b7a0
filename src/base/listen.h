/* SPDX-License-Identifier: MIT */
/* A unix socket of packets that everybody comes to. */
#ifndef GP_BASE_LISTEN_H
#define GP_BASE_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * In it a folder for each class, to be mounted into containers in the place of the socket's own.  Not
 * below that one: who has all of it mounted would have the classes too.
 */
#define GP_CLASS_FOLDER "/run/gpreempt-class"

#define GP_LISTEN_BACKLOG 1024 /* as many as the system allows; who waits there waits behind others */

struct gp_listen {
	bool old_kernel;
	bool is_lent; /* the socket: whoever bound it keeps it, and gives it to the next of us */
	int fd;
	int lock; /* of PATH.lock: held as long as we live, so a socket that is there without it is nobody's
		   */
	dev_t device; /* of the socket's file, and its number there */
	ino_t inode;
	char path[108];
	char lock_path[120];
	const char *option; /* by which another place is chosen */
	char error[256];    /* why not, for people */
};

/*
 * For everybody if we are root, else for this user alone; name is the program's, for what is wrong.
 * -EADDRINUSE: another lives.
 */
int gp_listen_open(struct gp_listen *l, const char *name, const char *path, bool old_kernel);
/*
 * The same with a socket that somebody else has bound to path and listens on, as systemd does: fd, which is
 * ours now.  -EPROTOTYPE: it is none of packets, or nobody listens on it.
 */
int gp_listen_open_lent(struct gp_listen *l, const char *name, const char *path, int fd, bool old_kernel);
/*
 * FOLDER/NAME/SOCKET, for everybody who has FOLDER/NAME mounted, and by path for nobody but this
 * user: FOLDER is closed to others.  All that lies in FOLDER/NAME is the socket; the lock is beside.
 * Both folders are made where they are missing, and stay: whoever mounted one finds the next socket
 * in it.  -ENOTEMPTY: one would need another mode, and holds what is not ours.  -EEXIST: something else has
 * the name of the socket or of NAME, and is left alone.  NAME is online or offline.
 */
int gp_listen_open_behind(struct gp_listen *l, const char *program, const char *folder, const char *name,
			  bool old_kernel);
void gp_listen_close(struct gp_listen *l);       /* and removes it, if it is still ours, and not lent */
int gp_listen_accept(const struct gp_listen *l); /* who came, or -errno */
/* One that is not bound yet, as those above have it; or -errno. */
int gp_listen_socket(bool old_kernel);
/* Of one that was accepted: the kernel lets nobody send descriptors over it. */
bool gp_listen_bars_descriptors(int fd);

#endif
