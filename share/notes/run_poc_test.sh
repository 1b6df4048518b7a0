#!/bin/sh
# SPDX-License-Identifier: MIT
# The design notes' run_poc_test.sh [--container NAME] [DIR]: all tests, their logs and results in DIR, and a report of them.
set -u
gpreempt=${GPREEMPT_PROGRAM:-gpreempt}
container=
if [ "${1-}" = --container ]; then
	container=${2:?--container needs a name}
	shift 2
fi
dir=${1:-poc_results}
pid=

if [ -n "$container" ]; then
	pid=$("$gpreempt" list --container "$container" --json | grep -o '"pid": *[1-9][0-9]*' | head -n 1 | tr -dc 0-9)
	if [ -z "$pid" ]; then
		echo "run_poc_test.sh: no process in container $container has a GPU queue; see gpreempt list" >&2
		exit 1
	fi
fi

mkdir -p "$dir" || exit 1
"$gpreempt" verify all ${pid:+--pid "$pid"} --out "$dir" >"$dir/log.txt" 2>&1
status=$?
cat "$dir/log.txt"
"$gpreempt" report --old "$dir" --new "$dir" --out "$dir/report.md" || status=1
"$gpreempt" report --old "$dir" --new "$dir" --out "$dir/report.html" >/dev/null || status=1
exit $status
