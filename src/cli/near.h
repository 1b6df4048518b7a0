/* SPDX-License-Identifier: MIT */
/* What belongs to this program, by the folder that it is in: of an installation that was moved, or of a
 * build. */
#ifndef GP_CLI_NEAR_H
#define GP_CLI_NEAR_H

#include <limits.h>
#include <stdbool.h>

int gp_near_self(char path[PATH_MAX]); /* this program; -errno */
/*
 * A name below its folder, as "../lib/NAME".  false: it is not there, or others can write it: a copy of the
 * program in /tmp has neighbours that anybody put there.
 */
bool gp_near_find(const char *name, char path[PATH_MAX]);

#endif
