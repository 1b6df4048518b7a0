#!/bin/sh
# SPDX-License-Identifier: MIT
# Instructions per event of the core at 10 and at 10,000 queues (callgrind). Bar: at most twice.
set -eu
build=${GPREEMPT_BUILD:?the build folder}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

per_event() {
	events=$(valgrind --quiet --tool=callgrind --toggle-collect='measured*' --callgrind-out-file="$tmp/out" \
		"$build/bench/core_cost" "$1" 2>"$tmp/log") || { cat "$tmp/log" >&2; exit 1; }
	awk -v events="$events" '/^(totals|summary):/ { print int($2 / events); exit }' "$tmp/out"
}

few=$(per_event 10)
many=$(per_event 10000)
echo "core: $few instructions per event at 10 queues, $many at 10,000: $(awk "BEGIN { printf \"%.2f\", $many / $few }") times (bar 2)"
[ "$many" -le $((2 * few)) ]
