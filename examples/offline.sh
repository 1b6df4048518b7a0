#!/bin/sh
# SPDX-License-Identifier: MIT
# offline.sh [COMMAND...]: work that gives way. Without a command: a training job on the simulated GPU.
set -eu
[ $# -gt 0 ] || exec gpreempt sim-client --offline --work train --duration "${DURATION:-60s}"
exec gpreempt run --offline -- "$@"
