/* SPDX-License-Identifier: MIT */
/* A process by the pid that it has in our own pid namespace, where the driver's files have the host's. */
#ifndef GP_CLI_INSIDE_H
#define GP_CLI_INSIDE_H

#include "discover/discover.h"

/* What gpreemptd tells of its queues, to be freed as gp_discover()'s. -1 to go on, else the exit code, after
 * a complaint. */
int gp_inside_find(uint32_t pid, struct gp_found **ret);

#endif
