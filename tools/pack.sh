#!/bin/sh
# SPDX-License-Identifier: MIT
# pack.sh deb|rpm DIR: make Debian's packages, or those of EL, in DIR, from packaging/. They are built in DIR/work, which stays: a
# second time only what has changed is compiled.
set -eu

[ $# -eq 2 ] || {
	echo "usage: pack.sh deb|rpm DIR" >&2
	exit 2
}
kind=$1
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$2"
dir=$(cd "$2" && pwd)
work=$dir/work
sources="LICENSE README.md README.zh-CN.md bench docs include kernel man meson.build meson_options.txt packaging python share src tests tools"
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$source/meson.build")
maintainer=$(sed -n 's/^Maintainer: //p' "$source/packaging/debian/control")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

# What it prints is shown if it fails.
quietly()
{
	"$@" >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		echo "pack.sh: it failed: $*" >&2
		exit 1
	}
}

# copy_sources DIR: as old as they are, so that nothing is compiled again.
copy_sources()
{
	mkdir -p "$1"
	# shellcheck disable=SC2086 # a list of words
	(
		cd "$1"
		rm -rf $sources
		tar -C "$source" --exclude=__pycache__ -cf - $sources | tar -xf -
	)
}

# A distribution has its own changes and revisions: what is made here is older than any revision of this version.
write_changelog()
{
	printf 'gpreempt (%s) unstable; urgency=medium\n\n  * Release %s.\n\n -- %s  %s\n' "$version" "$version" "$maintainer" \
		"$(LC_ALL=C date --utc -R -d "@$SOURCE_DATE_EPOCH")"
}

make_deb()
{
	tree=$work/gpreempt
	copy_sources "$tree"
	rm -rf "$tree/debian"
	cp -r "$tree/packaging/debian" "$tree"
	write_changelog >"$tree/debian/changelog"
	rm -f "$work"/*.deb "$dir"/*.deb "$dir"/*.changes "$dir"/*.buildinfo
	cd "$tree"
	quietly env DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS-}" dpkg-buildpackage --build=binary --no-pre-clean --unsigned-changes
	mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$dir"
	ls "$dir"/*.deb
}

mkdir -p "$work"
exec 8>"$work/lock" # one at a time
flock 8
case $kind in
deb | rpm) "make_$kind" ;;
*)
	echo "pack.sh: deb or rpm, not $kind" >&2
	exit 2
	;;
esac
