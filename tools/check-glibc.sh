#!/bin/sh
# SPDX-License-Identifier: MIT
# check-glibc.sh LIBRARY: it needs no library but libc, and no symbol of a libc newer than that of RHEL 8 and Debian 10.
set -eu

library=$1
newest=2.28
failed=0
[ -f "$library" ] || {
	echo "$library: no such file"
	exit 1
}

for needed in $(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
	[ "$needed" = libc.so.6 ] || {
		echo "$library needs $needed; libc.so.6 is all it may need"
		failed=1
	}
done

# One line "SYMBOL VERSION" for each symbol that libc must have.
objdump -T "$library" | sed -n 's/.*\*UND\*.*(\{0,1\}GLIBC_\([0-9.]*\))\{0,1\} *\(.*\)/\2 \1/p' |
	while read -r symbol version; do
		[ "$(printf '%s\n' "$version" "$newest" | sort -V | tail -n 1)" = "$newest" ] ||
			echo "$symbol needs GLIBC_$version; GLIBC_$newest is the newest allowed"
	done | grep . && failed=1
exit $failed
