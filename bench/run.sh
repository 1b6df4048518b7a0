#!/bin/sh
# SPDX-License-Identifier: MIT
# The published numbers, made again: every built-in scenario, then the speed of the machine and the core, of discovery, and the
# agent's cost. What the ways cost on the real driver is measured in the bed, by kfd_ways.sh, which needs the test kernel.
# Tables and pages go to $GPREEMPT_BUILD/bench/. All figures of scenarios are simulated.
set -eu
build=${GPREEMPT_BUILD:?the build folder}
out=$build/bench/out
mkdir -p "$out"

for scenario in A B C D E burst levels queues h200 h200-three; do
	"$build/gpreempt" sim "$scenario" --out "$out/$scenario" | tee "$out/$scenario.txt"
	echo
done
"$build/bench/model_speed"
for script in core_cost discover_speed agent_cost; do
	GPREEMPT_BUILD=$build "$(dirname "$0")/$script.sh"
done
"$build/bench/sampling"
echo "Tables, results and pages: $out"
