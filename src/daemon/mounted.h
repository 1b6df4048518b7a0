/* SPDX-License-Identifier: MIT */
/*
 * Which folder a process has mounted where, as the kernel lists it: nothing that the process could make wait,
 * as a file system of its own, is asked.
 */
#ifndef GP_DAEMON_MOUNTED_H
#define GP_DAEMON_MOUNTED_H

#include <stdbool.h>

#include "daemon/process.h"

/* A folder, whatever it is called and wherever it is mounted. */
struct gp_folder {
	char device[24]; /* "MAJOR:MINOR" */
	char path[256];  /* from the root of its file system */
};

/* -ENOENT, also where it is not to be found in our own list. */
int gp_folder_find(const char *path, struct gp_folder *ret);
/* The folder is what the process sees at that place. */
bool gp_process_has_mounted(const struct gp_process *p, const char *at, const struct gp_folder *folder);

#endif
