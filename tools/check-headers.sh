#!/bin/sh
# SPDX-License-Identifier: MIT
# check-headers.sh ROOT: each public header compiles alone, as C11 without a hole in any struct, and gpreempt.h as C++17.
set -eu

root=$1
cc=${CC:-gcc}
cxx=${CXX:-g++}
failed=0

cd "$root"
for header in $(cd include && find gpreempt -name '*.h' | sort); do
	echo "#include <$header>" | $cc -x c -std=c11 -pedantic -Wall -Wextra -Wpadded -Werror -Iinclude -fsyntax-only - || failed=1
done
# Holes show only when a struct is laid out, warnings in the header itself only when it is the main file.
$cc -x c -std=c11 -pedantic -Wall -Wextra -Wpadded -Werror -Iinclude -fsyntax-only include/gpreempt/gpreempt.h || failed=1

command -v "$cxx" >/dev/null || {
	echo "$cxx is not installed"
	[ $failed -eq 1 ] || exit 77
}
echo '#include <gpreempt/gpreempt.h>' |
	$cxx -x c++ -std=c++17 -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only - || failed=1
exit $failed
