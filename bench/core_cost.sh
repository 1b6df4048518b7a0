#!/bin/sh
# SPDX-License-Identifier: MIT
# core_cost.sh [JSON]: instructions per event of the core at 10 and at 10,000 queues (callgrind), also with holds, with a
# reservation, and where the last online client goes and comes again. Bar: at most twice.
set -eu
build=${GPREEMPT_BUILD:?the build folder}
json=${1:-/dev/null}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

per_event() {
	events=$(valgrind --quiet --tool=callgrind --toggle-collect='measured*' --callgrind-out-file="$tmp/out" \
		"$build/bench/core_cost" "$@" 2>"$tmp/log") || { cat "$tmp/log" >&2; exit 1; }
	awk -v events="$events" '/^(totals|summary):/ { print int($2 / events); exit }' "$tmp/out"
}

for with in nothing holds reservation leaving; do
	echo "$with $(per_event 10 "$with") $(per_event 10000 "$with")"
done >"$tmp/rows"
awk '{ printf "core with %s: %d instructions per event at 10 queues, %d at 10,000: %.2f times (bar 2)\n", $1, $2, $3, $3 / $2 }' "$tmp/rows"
awk 'BEGIN { printf "{ \"bench\": \"core_cost\", \"figures\": [" }
	{ printf "%s\n  { \"what\": \"with %s\", \"at_10\": %d, \"at_10000\": %d, \"value\": %.3f, \"unit\": \"times\", \"at_most\": 2, \"met\": %s }",
		(NR > 1 ? "," : ""), $1, $2, $3, $3 / $2, ($3 <= 2 * $2 ? "true" : "false") }
	END { print "\n] }" }' "$tmp/rows" >"$json"
awk '$3 > 2 * $2 { bad = 1 } END { exit bad }' "$tmp/rows"
