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
sources="LICENSE README.md README.zh-CN.md bench docs examples include kernel man meson.build meson_options.txt packaging python share src tests tools"
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

archive_sources()
{
	# shellcheck disable=SC2086 # a list of words
	tar -C "$source" --sort=name --owner=0 --group=0 --exclude=__pycache__ "$@" -cf - $sources
}

# copy_sources DIR: as old as they are, so that nothing is compiled again.
copy_sources()
{
	mkdir -p "$1"
	# shellcheck disable=SC2086 # a list of words
	(
		cd "$1"
		rm -rf $sources
		archive_sources | tar -xf -
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
	rm -f "$work"/*.deb
	cd "$tree"
	quietly env DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS-}" dpkg-buildpackage --build=binary --no-pre-clean --unsigned-changes
	rm -f "$dir"/*.deb "$dir"/*.changes "$dir"/*.buildinfo
	mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$dir"
}

# Debian's rpm knows no package of EL's, nor of Debian's: what is needed to build is for tools/deps.sh to see. What the spec has to unpack is
# there the second time.
make_rpm()
{
	grep -qx "Version: $version" "$source/packaging/gpreempt.spec" || {
		echo "pack.sh: Version in packaging/gpreempt.spec is not meson's $version" >&2
		exit 1
	}
	name=gpreempt-$version
	top=$work/rpm
	mkdir -p "$top/SOURCES"
	set -- --define "_topdir $top"
	[ ! -f /etc/debian_version ] || set -- "$@" --nodeps
	[ ! -f "$top/BUILD/$name/made/build.ninja" ] || set -- "$@" --noprep
	copy_sources "$top/BUILD/$name"
	archive_sources --mtime="@$SOURCE_DATE_EPOCH" --transform="s:^:$name/:S" | gzip -n >"$top/SOURCES/$name.tar.gz"
	rm -rf "$top/RPMS" "$top/SRPMS"
	quietly rpmbuild -ba --noclean "$@" "$source/packaging/gpreempt.spec"
	rm -f "$dir"/*.rpm
	mv "$top"/RPMS/*/*.rpm "$top"/SRPMS/*.rpm "$dir"
}

case $kind in
deb | rpm) ;;
*)
	echo "pack.sh: deb or rpm, not $kind" >&2
	exit 2
	;;
esac
mkdir -p "$work"
exec 8>"$work/lock" # one at a time
flock 8
# Those of the same sources stay: somebody may be reading them.
of=$(archive_sources --mtime="@$SOURCE_DATE_EPOCH" | sha256sum)
if [ "$(cat "$work/$kind.of" 2>/dev/null)" != "$of" ]; then
	rm -f "$work/$kind.of"
	"make_$kind"
	echo "$of" >"$work/$kind.of"
fi
ls "$dir"/*."$kind"
