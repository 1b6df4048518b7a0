#!/bin/sh
# SPDX-License-Identifier: MIT
# HealthCheckProgram of slurm.conf, on each node; HealthCheckInterval says how often. slurmd keeps nothing of what it prints.

# slurmd gives it no PATH and no SLURM_CONF. Say here where gpreempt and scontrol are, if not where the shell looks by itself, and where slurm.conf is, if
# not where Slurm looks.
export PATH

# Where slurm.conf gives this node a weight of its own, slurm-weights needs it: --base 200.
gpreempt slurm-requeue
gpreempt slurm-weights
# Asks slurmctld up to three times for each step. Without it a job that scancel or a time limit ends has no entry in its comment.
gpreempt slurm-comment
exit 0
