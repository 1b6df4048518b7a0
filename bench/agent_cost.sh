#!/bin/sh
# SPDX-License-Identifier: MIT
# What the agent adds to a program: instructions of an ioctl on another file and on the driver's (callgrind, against a run without
# it), and the time of its thread while it tells busy from idle. Bars: 30, 500, 1 per cent of a core at 64 queues.
set -eu
build=$(cd "${GPREEMPT_BUILD:?the build folder}" && pwd)
agent=$build/libgpreempt-agent.so
double=$build/tests/libkfd_double.so
calls=1000
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export GPREEMPT_KFD=/dev/full LD_BIND_NOW=1 GPREEMPT_SOCKET="$tmp/nobody"

# per_call PRELOAD MODE: instructions of the calling thread
per_call() {
	rm -f "$tmp"/out*
	LD_PRELOAD=$1 valgrind --quiet --tool=callgrind --separate-threads=yes --toggle-collect="measured_$2" \
		--callgrind-out-file="$tmp/out" "$build/bench/agent_cost" "$2" "$calls" >"$tmp/log" 2>&1 ||
		{ cat "$tmp/log" >&2; exit 1; }
	awk -v calls="$calls" '/^(totals|summary):/ { print int($2 / calls + 0.5); exit }' "$tmp/out-01"
}

with=$(per_call "$agent:$double" other)
without=$(per_call "$double" other)
other=$((with - without))
with=$(per_call "$agent:$double" kfd)
without=$(per_call "$double" kfd)
kfd=$((with - without))
echo "agent: $other instructions more for an ioctl on another file (bar 30), $kfd for one on the driver's (bar 500)"

"$build/bench/agent_cost" sample 64 >"$tmp/sample"
awk '{ printf "agent: %.2f %% of a core for 64 queues that are %s, %d messages a second (bar 1 %%)\n", $2 / 10000, $1, $3 }' "$tmp/sample"
[ "$other" -le 30 ] && [ "$kfd" -le 500 ] && awk '$2 > 10000 { bad = 1 } END { exit bad }' "$tmp/sample"
