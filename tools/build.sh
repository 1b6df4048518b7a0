#!/bin/sh
# SPDX-License-Identifier: MIT
# build.sh DIR [MESON OPTION...]: configure DIR if need be, and compile. Says nothing unless it fails.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
dir=$1
shift
mkdir -p "$dir"
log=$dir/setup.log

quietly()
{
	"$@" >"$log" 2>&1 || {
		r=$?
		cat "$log" >&2
		exit "$r"
	}
}

if [ ! -f "$dir/build.ninja" ]; then
	quietly meson setup "$dir" "$root" "$@"
elif [ $# -gt 0 ]; then
	quietly meson configure "$dir" "$@"
fi
quietly ninja -C "$dir" --quiet
