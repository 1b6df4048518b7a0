#!/bin/sh
# SPDX-License-Identifier: MIT
# The published numbers, made again: every built-in scenario, then the speed of the machine and the core, of discovery, and what
# agent, levels and gpreemptd cost. What the ways cost on the real driver is measured in the bed, by kfd_ways.sh, which needs the test kernel.
# Tables and pages go to $GPREEMPT_BUILD/bench/, and what core and gpreemptd cost, as JSON, to $RESULTS, if that is set. All
# figures of scenarios are simulated.
set -eu
build=${GPREEMPT_BUILD:?the build folder}
out=$build/bench/out
mkdir -p "$out" ${RESULTS:+"$RESULTS"}
missed=

for scenario in A B C D E burst levels queues h200 h200-three h200-queue; do
	"$build/gpreempt" sim "$scenario" --out "$out/$scenario" | tee "$out/$scenario.txt"
	echo
done
"$build/bench/model_speed" || missed="$missed model_speed"
export GPREEMPT_BUILD=$build
"$(dirname "$0")/cluster_cost.py" || missed="$missed cluster_cost"
"$(dirname "$0")/core_cost.sh" ${RESULTS:+"$RESULTS/core_cost.json"} || missed="$missed core_cost"
"$(dirname "$0")/level_cost.sh" ${RESULTS:+"$RESULTS/level_cost.json"} || missed="$missed level_cost"
for script in discover_speed agent_cost; do
	"$(dirname "$0")/$script.sh" || missed="$missed $script"
done
for name in daemon_cost daemon_latency; do
	"$build/bench/$name" "$build/gpreemptd" ${RESULTS:+"$RESULTS/$name.json"} || missed="$missed $name"
done
"$build/bench/sampling" || missed="$missed sampling"
echo "Tables, results and pages: $out"
[ -z "$missed" ] || { echo "Bars missed:$missed" >&2; exit 1; }
