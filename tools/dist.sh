#!/bin/sh
# SPDX-License-Identifier: MIT
# dist.sh DIR: make DIR/gpreempt-VERSION-x86_64.tar.xz, for any x86_64 Linux with glibc 2.28 or newer, and its .sha256. The same sources
# give the same bytes. It is built in a Debian 11, which stays in CACHE/dist: a second time only what has changed is compiled.
set -eu

[ $# -eq 1 ] || {
	echo "usage: dist.sh DIR" >&2
	exit 2
}
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
cache=${GPREEMPT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpreempt}
root=$cache/dist
suite=bullseye
compiler=gcc-9 # the one next to EL8's
packages="$compiler libc6-dev meson ninja-build pkg-config python3 libinih-dev libjson-c-dev libmicrohttpd-dev libncurses-dev libcmocka-dev"
libraries="libgpreempt.so.0 libgpreempt_poc.so.0 libm.so.6 ld-linux-x86-64.so.2 libdl.so.2 libpthread.so.0 librt.so.1" # beside libc
sources="LICENSE README.md README.zh-CN.md docs examples include kernel/README.md kernel/apply.sh kernel/series man meson.build meson_options.txt python share src tools"
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$source/meson.build")
name=gpreempt-$version-x86_64
log=$root/log

fail()
{
	echo "dist.sh: $*" >&2
	exit 1
}

say()
{
	echo "dist.sh: $*" >&2
}

# What it prints is shown if it fails.
quietly()
{
	"$@" >"$log" 2>&1 || {
		cat "$log" >&2
		fail "it failed: $*"
	}
}

make_root()
{
	! cmp -s "$source/tools/dist.sh" "$root/dist.sh" || return 0 # it has made this root
	rm -rf "$root"
	# shellcheck disable=SC2086 # a list of words
	"$source/tools/root.sh" "$suite" "$root" $packages || {
		r=$?
		echo "dist.sh: the archive is built in a Debian 11, which this machine cannot make; see above." >&2
		echo "dist.sh: what is made there runs elsewhere: take another machine, with Debian 12, root and an archive of Debian's." >&2
		exit "$r"
	}
	cp "$source/tools/dist.sh" "$root"
}

# As old as they are, so that nothing is compiled again; of another tree, all is.
copy_sources()
{
	[ "$(cat "$root/source" 2>/dev/null)" = "$source" ] || rm -rf "$root/made"
	echo "$source" >"$root/source"
	mkdir -p "$root/src"
	# shellcheck disable=SC2086 # a list of words
	(
		cd "$root/src"
		rm -rf $sources
		tar -C "$source" -cf - $sources | tar -xf -
	)
}

in_root()
{
	"$source/tools/root.sh" --run "$root" env CC="$compiler" "$@"
}

build()
{
	[ -f "$root/made/build.ninja" ] || quietly in_root meson setup /made /src \
		-Dstatic=true -Dmetrics=enabled -Dstrip=true -Ddebug=false -Doptimization=2 --prefix /usr/local --libdir lib --libexecdir libexec
	quietly in_root ninja -C /made
	rm -rf "$root/stage"
	quietly in_root env DESTDIR=/stage meson install -C /made --no-rebuild
}

# The program that needs nothing is gpreempt; the one that can load policies stands behind it.
arrange()
{
	mv "$root/stage/usr/local" "$root/stage/$name"
	cd "$root/stage/$name"
	mv bin/gpreempt libexec/gpreempt/gpreempt
	mv libexec/gpreempt/gpreempt-static bin/gpreempt
	for inside in libc6-dev libinih-dev libjson-c-dev libncurses-dev; do
		cp "$root/usr/share/doc/$inside/copyright" "share/doc/gpreempt/LICENSE.${inside%-dev}"
	done
	cp "$source/share/install.sh" .
	echo "$version" >VERSION
}

# Nothing that EL8 has not: neither a library nor a symbol.
check_libc()
{
	find . -type f ! -name '*.sh' | while read -r file; do
		[ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
		also=
		case $file in */gpreempt-metrics) also=libmicrohttpd.so.12 ;; esac # EL8 has it, as a package
		# shellcheck disable=SC2086 # a list of words
		quietly "$source/tools/check-glibc.sh" "$file" $libraries $also
	done
}

pack()
{
	time=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || echo 0)}
	cd "$root/stage"
	tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$time" -cf - "$name" |
		xz -T1 -6 >"$dir/$name.tar.xz.new"
	cd "$dir"
	mv "$name.tar.xz.new" "$name.tar.xz"
	sha256sum "$name.tar.xz" >"$name.tar.xz.sha256"
	rm -rf "$root/stage"
}

[ "$(uname -m)" = x86_64 ] || fail "this machine is no x86_64, and the archive is for one"
mkdir -p "$cache"
exec 8>"$root.lock" # one at a time
flock 8
make_root
copy_sources
say "compiling in the Debian 11 of $root: what has changed since the last time, at first all of it, some minutes"
build
arrange
say "looking whether EL8 has all that it needs"
check_libc
say "packing"
pack
echo "$dir/$name.tar.xz"
