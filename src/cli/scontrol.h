/* SPDX-License-Identifier: MIT */
/* Slurm's own programs, which ask and tell slurmctld. */
#ifndef GP_CLI_SCONTROL_H
#define GP_CLI_SCONTROL_H

#include <stddef.h>

#include "slurm/account.h"

/*
 * Runs a program of PATH with these arguments, ended by NULL, and keeps what it prints, without the line's
 * end.  Its exit status; -errno: it cannot be run.  What it has to complain goes to our stderr.
 */
int gp_scontrol(const char *const *argv, char *out, size_t size);
/* What Slurm calls this machine: as slurmd says in what it starts, else the host's short name. */
const char *gp_node_name(char name[GP_SLURM_NODE]);

#endif
