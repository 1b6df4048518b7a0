/* SPDX-License-Identifier: MIT */
/* The agent's file, brought into a container that runs. */
#ifndef GP_CLI_BRING_H
#define GP_CLI_BRING_H

#include <stdint.h>

/*
 * Copies it into the root folder of process pid, which is the one that started then (gp_proc_start()); an
 * equal one is left as it is.  *ret: its path in there.  -1 to go on, else the exit code, after a complaint.
 */
int gp_agent_bring(const char *agent, uint32_t pid, uint64_t start, const char **ret);

#endif
