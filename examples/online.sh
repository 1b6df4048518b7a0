#!/bin/sh
# SPDX-License-Identifier: MIT
# online.sh [COMMAND...]: work that is given way to. Without a command: requests of 10 ms on the simulated GPU, 20 a second.
set -eu
[ $# -gt 0 ] || exec gpreempt sim-client --online --work infer-10ms --rate 20 --hints --duration "${DURATION:-10s}"
exec gpreempt run --online -- "$@"
