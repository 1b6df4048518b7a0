#!/bin/sh
# SPDX-License-Identifier: MIT
# check-glibc.sh LIBRARY [OTHER...]: it needs no library but libc and the others, and no symbol of a libc newer than that of RHEL 8
# and Debian 10.
set -eu

library=$1
shift
newest=2.28
failed=0
[ -f "$library" ] || {
	echo "$library: no such file"
	exit 1
}

for needed in $(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
	case " libc.so.6 $* " in
	*" $needed "*) ;;
	*)
		echo "$library needs $needed; it may need: libc.so.6 $*"
		failed=1
		;;
	esac
done

# One line "SYMBOL VERSION" for each symbol that libc must have.
objdump -T "$library" | sed -n 's/.*\*UND\*.*(\{0,1\}GLIBC_\([0-9.]*\))\{0,1\} *\(.*\)/\2 \1/p' |
	while read -r symbol version; do
		[ "$(printf '%s\n' "$version" "$newest" | sort -V | tail -n 1)" = "$newest" ] ||
			echo "$symbol needs GLIBC_$version; GLIBC_$newest is the newest allowed"
	done | grep . && failed=1
exit $failed
