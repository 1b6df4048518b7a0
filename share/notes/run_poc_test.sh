#!/bin/sh
# SPDX-License-Identifier: MIT
# The design notes' run_poc_test.sh [--container NAME] [DIR]: all tests, their logs and results in DIR, and a report of them.
set -u
gpreempt=${GPREEMPT_PROGRAM:-gpreempt}
container=
if [ "${1-}" = --container ] && [ -n "${2-}" ]; then
	container=$2
	shift 2
fi
case $#,${1-} in
0, | 1,[!-]*) ;;
*)
	echo "usage: run_poc_test.sh [--container NAME] [DIR]; see gpreempt-verify(1)" >&2
	exit 2
	;;
esac
dir=${1:-poc_results}
pid=

if [ -n "$container" ]; then
	pids=$("$gpreempt" list --container "$container" --json | grep -o '"pid": *[1-9][0-9]*' | tr -dc '0-9\n' | sort -nu)
	pid=${pids%%[!0-9]*}
	if [ -z "$pid" ]; then
		echo "run_poc_test.sh: no process in container $container has a GPU queue; see gpreempt list" >&2
		exit 1
	fi
	if [ "$pid" != "$pids" ]; then
		echo "run_poc_test.sh: of the processes with GPU queues in container $container the first is taken, $pid; gpreempt verify --pid takes another" >&2
	fi
fi

mkdir -p "$dir" || exit 1
trap : INT # ends the tests, and not what they found
echo "run_poc_test.sh: the tests run; what they say comes at the end, and is in $dir/log.txt" >&2
"$gpreempt" verify all ${pid:+--pid "$pid"} --out "$dir" >"$dir/log.txt" 2>&1
status=$?
cat "$dir/log.txt"
"$gpreempt" report --old "$dir" --new "$dir" --out "$dir/report.md" &&
	"$gpreempt" report --old "$dir" --new "$dir" --out "$dir/report.html" >/dev/null || status=1
exit $status
