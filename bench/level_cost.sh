#!/bin/sh
# SPDX-License-Identifier: MIT
# level_cost.sh [JSON]: what a launch takes in ROCr's door with nobody to preempt, in ns and in instructions (callgrind), without
# what a launch takes that passes no door. Bar: 2 us, which is 2 % of a kernel of 100 us.
set -eu
build=${GPREEMPT_BUILD:?the build folder}
json=${1:-/dev/null}
launches=200000
counted=2000 # by callgrind; five times
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

instructions()
{
	valgrind --quiet --tool=callgrind --toggle-collect=measured --callgrind-out-file="$tmp/out" \
		"$build/bench/level_cost" "$1" "$counted" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
	awk -v n="$counted" '/^(totals|summary):/ { print int($2 / n / 5 + 0.5); exit }' "$tmp/out"
}

for one in bare untouched throttle gate counted; do
	ns=$("$build/bench/level_cost" "$one" "$launches")
	n=$(instructions "$one")
	echo "$one $ns $n"
done >"$tmp/all"
awk '$1 == "bare" { ns = $2; n = $3; next } { print $1, $2 - ns, $3 - n }' "$tmp/all" >"$tmp/rows"
awk '{ printf "a launch in ROCr'\''s door, %s: %.0f ns (bar 2000), %d instructions\n", $1, $2, $3 }' "$tmp/rows"
awk 'BEGIN { printf "{ \"bench\": \"level_cost\", \"figures\": [" }
	{ printf "%s\n  { \"what\": \"%s\", \"instructions\": %d, \"value\": %.1f, \"unit\": \"ns\", \"at_most\": 2000, \"met\": %s }",
		(NR > 1 ? "," : ""), $1, $3, $2, ($2 <= 2000 ? "true" : "false") }
	END { print "\n] }" }' "$tmp/rows" >"$json"
awk '$2 > 2000 { bad = 1 } END { exit bad }' "$tmp/rows"
