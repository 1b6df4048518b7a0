#!/bin/sh
# SPDX-License-Identifier: MIT
# check-c11.sh ROOT: what is loaded into other people's programs compiles with the C11 that gcc 8 knows: nothing of C23, which newer
# compilers take without a word. gcc 8 itself is in no current Debian; clang says what is newer.
set -eu

root=$1
cd "$root"
find src/base src/wire src/model src/core src/policy src/discover src/backend src/machine src/lib src/agent -name '*.c' |
	xargs clang -fsyntax-only -std=gnu11 -D_GNU_SOURCE -DGP_OLD_GLIBC -Iinclude -Isrc -Werror=c2x-extensions -Werror=implicit-function-declaration
