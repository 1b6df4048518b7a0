/* SPDX-License-Identifier: MIT */
/* The agent's file, the file that a command is, and whether the one reaches the other. */
#ifndef GP_CLI_PRELOAD_H
#define GP_CLI_PRELOAD_H

#include <limits.h>
#include <stdbool.h>

#define GP_AGENT_NAME "libgpreempt-agent.so"
/* Where it is in containers that were given a class. */
#define GP_AGENT_INSIDE "/usr/lib/gpreempt/" GP_AGENT_NAME

/* Where the agent is, as an absolute path; false: where it should have been, and is not. */
bool gp_agent_find(char path[PATH_MAX]);
/* The one that LD_PRELOAD names already; false: none. */
bool gp_agent_preloaded(char path[PATH_MAX]);

/* A shared object, for whatever machine, and no program. */
bool gp_is_library(const char *path);

/*
 * The file that execvp() would take. -ENOENT: there is none; -EACCES: there is one that may not be executed;
 * -EISDIR: it is a folder.
 */
int gp_command_find(const char *command, char path[PATH_MAX]);

/* Why LD_PRELOAD does not bring the agent into a program. */
struct gp_obstacle {
	char program[PATH_MAX]; /* a script's is its interpreter */
	const char *what;       /* "is statically linked"; NULL: nothing is in the way */
	bool is_foreign;        /* the program's loader would complain of the agent, or fail */
};

void gp_obstacle_find(const char *path, const char *agent, struct gp_obstacle *ret);

#endif
