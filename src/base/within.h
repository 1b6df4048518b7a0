/* SPDX-License-Identifier: MIT */
/*
 * The root folder of another process, as of one in a container, and its root user.  What is reached from
 * that folder's descriptor is what the process sees, mounts and all: no namespace is entered.
 */
#ifndef GP_BASE_WITHIN_H
#define GP_BASE_WITHIN_H

#include <stdint.h>

struct gp_within {
	int root;          /* its root folder */
	uint64_t id[2];    /* of that: device and inode */
	uint32_t uid, gid; /* who is root in its user namespace, as we see it */
};

/*
 * -ESRCH; -EXDEV: its root folder is our own.  It was the process that was meant if that one still lives
 * afterwards.
 */
int gp_within_open(uint32_t pid, struct gp_within *ret);
/*
 * From now on "/" is that folder, and what we make is that user's.  For a process of its own: there is no
 * way back.
 */
int gp_within_enter(const struct gp_within *w);
/*
 * The descriptor of a folder below, as "usr/lib/gpreempt", made where it is missing.  -ENOTDIR: also for a
 * symbolic link.  None is followed: anybody in there may have made it, and by way of /proc one leads out of
 * a container that has the host's pids.
 */
int gp_within_folder(int root, const char *path);

#endif
