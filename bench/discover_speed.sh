#!/bin/sh
# SPDX-License-Identifier: MIT
# The time to read and join 50,000 queues of a recorded tree. Bar: one second.
set -eu
build=${GPREEMPT_BUILD:?the build folder}
queues=${1:-50000}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

"$build/bench/discover_speed" make "$tmp" "$queues"
"$build/bench/discover_speed" measure "$tmp" "$queues"
