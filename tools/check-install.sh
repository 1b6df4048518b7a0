#!/bin/sh
# SPDX-License-Identifier: MIT
# check-install.sh BUILD: install into an empty folder, then find the library by pkg-config, link with it and run; and remove it all.
set -eu

build=$1
cc=${CC:-gcc}
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT

DESTDIR=$dest meson install -C "$build" --no-rebuild >"$dest/log" 2>&1 || {
	cat "$dest/log"
	exit 1
}
cp "$build/meson-logs/install-log.txt" "$dest/installed"
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
for kind in devices scenarios clusters; do
	find "$dest" -path "*/share/gpreempt/$kind/*.ini" | grep -q . || {
		echo "no $kind are installed"
		exit 1
	}
done

PYTHONPATH=$(find "$dest" -path '*/share/gpreempt/python') PYTHONDONTWRITEBYTECODE= "${PYTHON:-/usr/bin/python3}" -c 'import gpreempt' # leaves compiled modules there
"$(dirname "$0")/uninstall.sh" "$dest/installed"
left=$(find "$dest" -mindepth 2)
[ -z "$left" ] || {
	echo "uninstall.sh leaves:" "$left"
	exit 1
}
