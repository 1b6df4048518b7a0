// SPDX-License-Identifier: MIT
#include "cli/near.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/owned.h"

int gp_near_self(char path[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (len < 0)
		return -errno;
	path[len] = '\0';
	return 0;
}

bool gp_near_find(const char *name, char path[PATH_MAX])
{
	char program[PATH_MAX], near[PATH_MAX];
	const char *slash = gp_near_self(program) == 0 ? strrchr(program, '/') : NULL;

	return slash &&
	       snprintf(near, sizeof(near), "%.*s/%s", (int)(slash - program), program, name) < PATH_MAX &&
	       gp_owned_path(near, path) == 0;
}
