#!/bin/sh
# SPDX-License-Identifier: MIT
# check-freestanding.sh LIBRARY: the model calls nobody but itself. A compiler's helper here (__muldf3 and its like) means
# floating point or 128-bit division, which a kernel does not have.
set -eu

library=$1
[ -f "$library" ] || {
	echo "$library: no such file"
	exit 1
}

# The four that a compiler may always call.
nm "$library" | awk '
	NF == 3 { here[$3] = 1 }
	NF == 2 && $1 == "U" { used[$2] = 1 }
	END {
		split("memcpy memmove memset memcmp", allowed)
		for (i in allowed) here[allowed[i]] = 1
		for (name in used)
			if (!(name in here)) {
				print "the model calls " name ", which is not its own"
				failed = 1
			}
		exit failed
	}'
