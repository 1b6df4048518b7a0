#!/bin/sh
# SPDX-License-Identifier: MIT
# HealthCheckProgram of slurm.conf, on each node; HealthCheckInterval says how often. What it says goes to slurmd's log.
gpreempt slurm-requeue
gpreempt slurm-weights
exit 0
