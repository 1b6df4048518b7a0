#!/bin/sh
# SPDX-License-Identifier: MIT
# sim.sh COMMAND...: the command, with a simulated GPU and a gpreemptd of one's own, which end with it.
# sim.sh: the same until Ctrl-C, for commands in other shells.
set -eu

for program in gpreempt gpreemptd; do
	command -v $program >/dev/null || {
		echo "$0: $program is not in the path: README.md beside it says how it gets there" >&2
		exit 1
	}
done
dir=$(mktemp -d)
export XDG_RUNTIME_DIR="$dir" GPREEMPT_SOCKET="$dir/gpreemptd.sock"
gpu= daemon=

end()
{
	trap - EXIT
	# shellcheck disable=SC2086 # of those that were started
	kill $gpu $daemon 2>/dev/null || :
	wait
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 130' INT TERM

mkdir -m 700 "$dir/gpreempt"
gpreemptd --config /dev/null --socket "$GPREEMPT_SOCKET" --class-sockets "$dir/class" 2>"$dir/gpreemptd.log" &
daemon=$!
gpreempt sim-gpu >"$dir/sim-gpu.log" 2>&1 &
gpu=$!

# Until gpreemptd knows the GPU.
for _ in $(seq 300); do
	gpreempt list 2>/dev/null | grep -q simulated && break
	kill -0 $gpu && kill -0 $daemon || {
		cat "$dir"/*.log >&2
		exit 1
	}
	sleep 0.1
done

if [ $# -gt 0 ]; then
	"$@"
else
	echo "In other shells: export XDG_RUNTIME_DIR=$dir GPREEMPT_SOCKET=$GPREEMPT_SOCKET"
	wait $gpu
fi
