#!/bin/sh
# SPDX-License-Identifier: MIT
# What suspending costs in each way, against the bare ioctls, in the bed's machine. All figures are software cost.
set -eu
root=$(dirname "$0")/..
build=${GPREEMPT_BUILD:?the build folder}
ninja -C "$build" bench/relay_cost gpreemptd libgpreempt-agent.so tests/kernel/target tests/kernel/way_cost >&2
exec "$root/kernel/bed/run" --build "$build" "$root/bench/kfd_ways.py"
