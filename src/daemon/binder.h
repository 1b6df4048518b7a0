/* SPDX-License-Identifier: MIT */
/*
 * gpreemptd --attach PID: a process that binds a socket of gpreemptd's (descriptor 3) in the root folder of
 * another process, of which there is a handle besides (descriptor 4), says how that went (descriptor 5), and
 * ends.  It is a process of its own because that folder may be one that never answers, because it has another
 * root folder then, and other rights.
 */
#ifndef GP_DAEMON_BINDER_H
#define GP_DAEMON_BINDER_H

#include <stdint.h>
#include <sys/types.h>

#include "daemon/process.h"

#define GP_BINDER_S 5 /* it ends by itself, then at the latest */

struct gp_binder_report {
	int32_t status;   /* 0: it listens; or -errno */
	char text[164];   /* why not */
	uint64_t root[2]; /* the root folder that it listens in: device and inode */
};

int gp_binder_main(uint32_t pid); /* the exit status */
/* Starts one; *ret_report: where its report can be read. */
int gp_binder_start(const struct gp_process *process, int socket, int *ret_report);

#endif
