#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# apply.sh [--check|--reverse] DIR: put the series into a source tree, or take it out again.
#
# DIR is a kernel's source, or a driver package's as DKMS has it (/usr/src/amdgpu-VERSION, where the driver is in amd/).
# Says of each patch how it fits. Changes nothing unless all of them do. What was there before is kept in
# DIR/.gpreempt-series, from where --reverse brings it back.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
series=${GPREEMPT_SERIES:-$here/series}
in_kernel=drivers/gpu/drm/amd
how=apply

fail() {
	echo "apply.sh: $*" >&2
	exit 1
}

usage() {
	echo "usage: apply.sh [--check|--reverse] DIR" >&2
	exit 2
}

case ${1-} in
--check | --reverse)
	how=${1#--}
	shift
	;;
--help)
	sed -n '3,8s/^# \{0,1\}//p' "$0"
	exit 0
	;;
-*) usage ;;
esac
[ $# -eq 1 ] || usage
[ -d "$1" ] || fail "$1 is no folder."
tree=$(cd "$1" && pwd)
kept=$tree/.gpreempt-series

# Where the driver is, and what the names in the patches become.
if [ -d "$tree/$in_kernel/amdkfd" ]; then
	driver=$in_kernel
elif [ -d "$tree/amd/amdkfd" ]; then
	driver=amd
else
	fail "there is no $in_kernel/amdkfd and no amd/amdkfd in $tree: neither a kernel's source nor a driver package's."
fi

# Whether a file is as the series makes it or, where something was interrupted, as it was before.
is_ours() {
	sum=$(cd "$tree" && sha256sum "$1" 2>/dev/null) || sum=none
	if grep -qxF "$sum" "$kept/after"; then
		return 0
	elif [ -e "$kept/before/$1" ]; then
		cmp -s "$tree/$1" "$kept/before/$1"
	else
		[ ! -e "$tree/$1" ]
	fi
}

# In one step, so that no file is ever half of what it is to be.
put() {
	mkdir -p "$(dirname "$2")"
	cp -p "$1" "$2.gpreempt"
	mv -f "$2.gpreempt" "$2"
}

reverse() {
	[ -d "$kept" ] || fail "there is no series in $tree: $kept is not there."
	changed=$(while read -r file; do is_ours "$file" || echo "$file"; done <"$kept/files")
	[ -z "$changed" ] || fail "these files have changed since the series was put in:
$changed
Nothing was changed; what they were is in $kept/before."
	while read -r file; do
		rm -f "$tree/$file.gpreempt" # of a put() that was interrupted
		if [ -e "$kept/before/$file" ]; then
			put "$kept/before/$file" "$tree/$file"
		else
			rm -f "$tree/$file"
		fi
	done <"$kept/files"
	rm -rf "$kept"
	echo "$tree is as it was."
}

if [ $how = reverse ]; then
	reverse
	exit 0
fi
[ ! -d "$kept" ] || fail "the series is in $tree already; \`$0 --reverse $tree\` takes it out."
command -v patch >/dev/null || fail "the program patch is not there (package patch)."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/tree" "$work/patches"

# Of a patch, what is of the driver and its header: documentation is not in every tree.
part_of() {
	awk -v driver="$driver" -v in_kernel="$in_kernel" '
		/^diff --git / { wanted = index($3, "a/" in_kernel "/") == 1 || index($3, "a/include/") == 1 }
		wanted && /^(diff --git|---|\+\+\+) / {
			gsub("a/" in_kernel "/", "a/" driver "/")
			gsub("b/" in_kernel "/", "b/" driver "/")
		}
		wanted' "$1"
}

for patch in "$series"/0*.patch; do
	case $patch in */0000-*) continue ;; esac
	[ -e "$patch" ] || fail "there is no series in $series."
	part_of "$patch" >"$work/patches/$(basename "$patch")"
done
sed -n 's|^+++ b/||p' "$work"/patches/*.patch | sort -u >"$work/files"
while read -r file; do
	mkdir -p "$work/tree/$(dirname "$file")"
	[ ! -e "$tree/$file" ] || cp -p "$tree/$file" "$work/tree/$file"
done <"$work/files"

bad=0
for patch in "$work"/patches/*.patch; do
	name=$(basename "$patch" .patch)
	if [ ! -s "$patch" ]; then
		echo "$name: nothing for this tree"
	elif patch -d "$work/tree" -p1 -f -F0 --no-backup-if-mismatch <"$patch" >"$work/log" 2>&1; then
		moved=$(grep -c "succeeded at" "$work/log" || true)
		echo "$name: fits, $moved of $(grep -c "^@@" "$patch") hunks elsewhere than in the base"
	else
		bad=1
		echo "$name: DOES NOT FIT"
		sed -n -e '/^patching file/h' -e '/FAILED\|can.t find file\|already exists/{x;p;x;p}' "$work/log" | uniq | sed 's/^/    /'
	fi
done
if [ $bad = 1 ]; then
	echo "Nothing was changed in $tree: what does not fit has to be brought there by hand." >&2
	exit 1
fi
[ $how = apply ] || exit 0

# Before any file changes, all that --reverse needs, whatever interrupts what comes after.
rm -rf "$kept.new"
mkdir -p "$kept.new/before"
cp "$work/files" "$kept.new/files"
while read -r file; do
	[ ! -e "$tree/$file" ] || put "$tree/$file" "$kept.new/before/$file"
done <"$work/files"
(cd "$work/tree" && xargs sha256sum <"$work/files") >"$kept.new/after"
mv "$kept.new" "$kept"
while read -r file; do
	put "$work/tree/$file" "$tree/$file"
done <"$work/files"
echo "The series is in $tree, $(wc -l <"$kept/files") files; \`$0 --reverse $tree\` takes it out."
