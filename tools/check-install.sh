#!/bin/sh
# SPDX-License-Identifier: MIT
# check-install.sh BUILD: install into an empty folder, then find the library by pkg-config, link with it and run.
set -eu

build=$1
cc=${CC:-gcc}
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT

DESTDIR=$dest meson install -C "$build" --no-rebuild >"$dest/log" 2>&1 || {
	cat "$dest/log"
	exit 1
}
pc=$(find "$dest" -name gpreempt.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
PKG_CONFIG_SYSROOT_DIR=$dest
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR

cat >"$dest/try.c" <<'END'
#include <gpreempt/gpreempt.h>

int main(void)
{
	return gp_version() == GP_MAKE_VERSION(GP_VERSION_MAJOR, GP_VERSION_MINOR) ? 0 : 1;
}
END
# shellcheck disable=SC2046 # flags are words
$cc -Wall -Werror "$dest/try.c" -o "$dest/try" $(pkg-config --cflags --libs gpreempt)
libdir=$(dirname "$(dirname "$pc")")
LD_LIBRARY_PATH=$libdir "$dest/try"
LD_LIBRARY_PATH=$libdir ldd "$dest/try" | grep -q 'libgpreempt\.so\.0 ' || {
	echo "the program is not linked with libgpreempt.so.0"
	exit 1
}
program=$(find "$dest" -path '*/bin/gpreempt')
"$program" version >/dev/null
for kind in devices scenarios; do
	find "$dest" -path "*/share/gpreempt/$kind/*.ini" | grep -q . || {
		echo "no $kind are installed"
		exit 1
	}
done
