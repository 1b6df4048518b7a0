/* SPDX-License-Identifier: MIT */
/* Whose a file is that will be run. */
#ifndef GP_BASE_OWNED_H
#define GP_BASE_OWNED_H

#include <limits.h>

/*
 * 0: nobody but root and this process's effective user can write the file, or put another in its place: the
 * folders above it are as good.  ret is its path without links: the one to be used, since links may be
 * somebody's.
 *
 * -EPERM: ret is what somebody else can write; or another -errno, and ret is the path as it was.
 */
int gp_owned_path(const char *path, char ret[PATH_MAX]);

#endif
