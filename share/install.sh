#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh --help says what it does. It stands in the archive's folder; an installation has a copy, to be removed with.
set -eu
umask 022

usage="usage: install.sh [--prefix DIR] [--check]
       install.sh --uninstall [--prefix DIR] [--check]

Copies gpreempt from the folder that this script is in to DIR, and notes every file in DIR/share/gpreempt/manifest. Writes
nowhere else, starts and enables nothing: it prints the commands that do. Over an older version it replaces that.

  --prefix DIR   where to (/usr/local)
  --uninstall    remove what the manifest names, if it is still as it was installed
  --check        say what would be done, and change nothing"

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
prefix=
uninstall=
check=
folders='bin include lib libexec share'
made= # folders, to be noted

fail()
{
	echo "install.sh: $*" >&2
	exit 1
}

bad_usage()
{
	echo "install.sh: $*; see install.sh --help" >&2
	exit 2
}

# say WHAT PATH: what is done, or would be.
say()
{
	if [ -n "$check" ]; then
		echo "would $1 $2"
	fi
}

# The manifest: "# gpreempt VERSION", then "CHECKSUM SIZE PATH" for a file, "link TARGET PATH", "folder - PATH".

# What a file is: the manifest's first two words.
identify()
{
	if [ -L "$1" ]; then
		echo "link $(readlink "$1")"
	elif [ -f "$1" ]; then
		cksum <"$1"
	fi
}

# is_noted PATH: something was installed there.
is_noted()
{
	case $noted in *" $1
"*) return 0 ;; esac
	return 1
}

# is_ours PATH: as it was installed.
is_ours()
{
	case $noted in *"
$(identify "$1") $1
"*) return 0 ;; esac
	return 1
}

is_root()
{
	[ "$(id -u)" -eq 0 ]
}

is_there()
{
	[ -e "$1" ] || [ -L "$1" ]
}

# is_newer A B: of two versions.
is_newer()
{
	awk -v a="$1" -v b="$2" 'BEGIN {
		n = split(a, x, "."); split(b, y, ".")
		for (i = 1; i <= n; i++)
			if (x[i] + 0 != y[i] + 0)
				exit !(x[i] + 0 > y[i] + 0)
		exit 1
	}'
}

# Paths that the archive has, below its folder.
list_archive()
{
	# shellcheck disable=SC2086 # a list of words
	(cd "$here" && find $folders ! -type d | LC_ALL=C sort)
	echo share/gpreempt/install.sh
}

source_of()
{
	case $1 in
	share/gpreempt/install.sh) echo "$here/install.sh" ;;
	*) echo "$here/$1" ;;
	esac
}

# To standard output, with the paths of this installation in it.
contents_of()
{
	case $1 in
	*.pc | *.service) sed "s:/usr/local:$prefix:g" "$here/$1" ;;
	*) cat "$(source_of "$1")" ;;
	esac
}

# The manifest's lines of what is to be installed.
list_entries()
{
	list_archive | while read -r path; do
		case $path in
		*.pc | *.service) identity=$(contents_of "$path" | cksum) ;;
		*) identity=$(identify "$(source_of "$path")") ;;
		esac
		echo "$identity $prefix/$path"
	done
}

# The nearest folder above a path that is there.
nearest()
{
	at=$1
	while [ ! -d "$at" ]; do
		at=$(dirname "$at")
	done
	echo "$at"
}

# The outermost folder of a path that is not there.
outermost()
{
	at=$1
	while [ ! -d "$(dirname "$at")" ]; do
		at=$(dirname "$at")
	done
	echo "$at"
}

# note_folder PATH: it has to be made, after those around it.
note_folder()
{
	if [ -d "$1" ] || echo "$made" | grep -qxF "folder - $1"; then
		return 0
	fi
	note_folder "$(dirname "$1")"
	say 'make the folder' "$1"
	made="$made
folder - $1"
}

# new_folder PATH [OPTION]
new_folder()
{
	why=$(mkdir ${2-} "$1" 2>&1) || fail "cannot make the folder $1 (${why##*: }): choose another --prefix"
}

make_folders()
{
	echo "$made" | while read -r _ _ path; do
		[ -z "$path" ] || [ -d "$path" ] || new_folder "$path"
	done
}

# Never written over: programs may have the old one mapped.
put()
{
	new=$2.gpreempt-new
	rm -f "$new"
	if [ -L "$here/$1" ]; then
		ln -s "$(readlink "$here/$1")" "$new"
	else
		contents_of "$1" >"$new"
		if [ -x "$(source_of "$1")" ]; then
			chmod 755 "$new"
		fi
	fi
	mv -f "$new" "$2"
}

# save PATH: under a name that nobody has.
save()
{
	[ -z "$check" ] || return 0
	saved=$1.saved
	while is_there "$saved"; do
		saved=$saved+
	done
	mv "$1" "$saved"
	echo "$1 was changed since it was installed: it is $saved now"
}

# install_one IDENTITY PATH: the manifest's.
install_one()
{
	if ! is_there "$2"; then
		say install "$2"
	elif ! is_ours "$2"; then
		say 'keep what was changed, as' "$2.saved"
		save "$2"
	elif [ "$(identify "$2")" = "$1" ]; then
		return 0
	else
		say replace "$2"
	fi
	[ -n "$check" ] || put "${2#"$prefix"/}" "$2"
}

# remove PATH: if it is as it was installed.
remove()
{
	[ -n "$check" ] || rm -f "$1.gpreempt-new" # of an installation that was interrupted
	is_there "$1" || return 0
	if is_ours "$1"; then
		say remove "$1"
		[ -n "$check" ] || rm -f "$1"
	else
		echo "$1 was changed since it was installed: it stays"
	fi
}

# noted_paths: of files and links; noted_paths !: of folders.
noted_paths()
{
	echo "$noted" | sed -n "/^folder /${1-}d;s/^[^ ]* [^ ]* //p"
}

# Files that it names elsewhere are not ours, whoever wrote that; folders are removed only if they are empty.
read_manifest()
{
	noted="
$(awk -v prefix="$prefix/" '$1 == "folder" || (!/^#/ && index($3, prefix) == 1)' "$manifest" 2>/dev/null || :)
"
}

# list_manifest LINES: and the folders that are made, now or then.
list_manifest()
{
	{
		echo "# gpreempt $version"
		echo "$entries$made"
		echo "$noted" | sed -n "/^$/d;/^folder /{p;d;};$1"
	} | awk '!seen[$0]++'
}

write_manifest()
{
	list_manifest "$1" >"$manifest.new"
	mv -f "$manifest.new" "$manifest"
}

# Of an installation that was interrupted before there was a manifest.
remove_begun()
{
	[ -d "${manifest%/*}" ] || rm -rf "$(outermost "${manifest%/*}").gpreempt-new"
}

# Before anything else: wherever this is interrupted, the manifest names all that is there. Its own folders come with it in them.
begin_manifest()
{
	if [ ! -d "${manifest%/*}" ]; then
		remove_begun
		top=$(outermost "${manifest%/*}")
		! is_there "$top" || fail "cannot make the folder $top (it is a file): choose another --prefix"
		inner=$top.gpreempt-new${manifest#"$top"}
		new_folder "${inner%/*}" -p
		list_manifest p >"$inner"
		mv "$top.gpreempt-new" "$top"
	else
		write_manifest p # the old one's entries too, until all is done
	fi
}

# What the last version had and this one has not.
remove_rest()
{
	noted_paths | while read -r path; do
		case "$entries
" in
		*" $path
"*) ;;
		*) remove "$path" ;;
		esac
	done
}

# Before anything is changed.
look()
{
	at=$(nearest "$prefix")
	[ -w "$at" ] || fail "no right to write to $at: use sudo, or --prefix \$HOME/.local"
	foreign=$(list_archive | while read -r path; do
		! is_there "$prefix/$path" || is_noted "$prefix/$path" || echo "  $prefix/$path"
	done)
	[ -z "$foreign" ] || fail "these are there and came from elsewhere (make install?); remove them, or choose another --prefix:
$foreign"
	there=$(sed -n 's/^# gpreempt //p;q' "$manifest" 2>/dev/null || :)
	if [ -z "$there" ]; then
		:
	elif is_newer "$version" "$there"; then
		echo "gpreempt $there, which is older, is in $prefix: it is replaced by $version"
	elif is_newer "$there" "$version"; then
		echo "gpreempt $there, which is newer, is in $prefix: it is replaced by $version"
	else
		echo "gpreempt $there is in $prefix already: it is put there again"
	fi
}

# Of the manifest's lines: "98 files, 5.1 MB".
sum()
{
	awk '/^(link|[0-9]+) / { n++; bytes += $1 == "link" ? 0 : $2 } END { printf "%d files, %.1f MB\n", n, bytes / 1e6 }'
}

# Where systemd looks by itself.
is_usual()
{
	[ "$prefix" = /usr/local ] || [ "$prefix" = /usr ]
}

# No unit and no group: a user's gpreemptd is that user's alone.
say_next_own()
{
	cat <<-END

		What may come next; none of it has been done:
		  # what this machine can do
		  $prefix/bin/gpreempt doctor
		  # gpreemptd, for your own processes
		  $prefix/bin/gpreemptd &
		  # away with it
		  $prefix/share/gpreempt/install.sh --uninstall
		Settings, if others are wanted: a copy of $prefix/share/gpreempt/gpreemptd.conf, named by gpreemptd --config FILE.
		For everybody on this machine, root installs it: sudo ./install.sh
	END
}

say_next()
{
	is_usual && unit=gpreemptd || unit=$prefix/lib/systemd/system/gpreemptd.service
	cat <<-END

		What may come next; none of it has been done:
		  # what this machine can do
		  $prefix/bin/gpreempt doctor
		  # the group gpreempt, whose members may be online
		  sudo systemd-sysusers $prefix/lib/sysusers.d/gpreempt.conf
		  sudo usermod -aG gpreempt "\$USER"    # you too, from your next login on
		  # gpreemptd, now and whenever the machine starts
		  sudo systemctl enable --now $unit
		  # if an older one runs
		  sudo systemctl try-restart gpreemptd
		  # away with it
		  sudo $prefix/share/gpreempt/install.sh --uninstall
		Settings, if others are wanted: $prefix/share/gpreempt/gpreemptd.conf, copied to /etc/gpreempt.
	END
}

say_doubts()
{
	libc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //') || libc=
	[ "$(uname -m)" = x86_64 ] || echo "This machine is no x86_64: nothing of this runs on it."
	if [ -z "$libc" ] || is_newer 2.28 "$libc"; then
		echo "There is no glibc 2.28 or newer: gpreempt and its simulator run, gpreemptd and the libraries do not."
	fi
	first=$(command -v gpreempt) || first=$prefix/bin/gpreempt
	[ "$first" = "$prefix/bin/gpreempt" ] || echo "Another gpreempt comes first in the PATH: $first."
	# EL's sudo does not look in /usr/local/bin.
	if is_root && grep -hs '^[^#]*secure_path' /etc/sudoers | grep -qv "[ =:\"]$prefix/bin\(:\|\"\|\$\)"; then
		echo "sudo here does not look in $prefix/bin: say sudo $prefix/bin/gpreempt, or add it to secure_path in /etc/sudoers."
	fi
}

install_all()
{
	version=$(cat "$here/VERSION" 2>/dev/null) || fail "$here is no unpacked archive: there is no VERSION in it"
	look
	entries=$(list_entries)
	for folder in $(echo "$entries" | sed 's/^[^ ]* [^ ]* //;s:/[^/]*$::' | LC_ALL=C sort -u); do
		note_folder "$folder"
	done
	if [ -z "$check" ]; then
		begin_manifest
		make_folders
	fi
	echo "$entries" | while read -r one two path; do
		install_one "$one $two" "$path"
	done
	remove_rest
	if [ -n "$check" ]; then
		say write "$manifest"
		echo "In all: $(echo "$entries" | sum), in $prefix."
		return
	fi
	write_manifest ''
	# SELinux: what a file may be follows from its path.
	if command -v restorecon >/dev/null; then
		echo "$entries" | sed 's/^[^ ]* [^ ]* //' | xargs restorecon
	fi
	echo "gpreempt $version is in $prefix: $(echo "$entries" | sum)."
	say_doubts
	if is_root; then say_next; else say_next_own; fi
}

# A unit that has been enabled or linked would be left pointing nowhere.
look_for_unit()
{
	for place in multi-user.target.wants/gpreemptd.service gpreemptd.service; do
		case $(readlink "/etc/systemd/system/$place" 2>/dev/null) in
		"$prefix"/*) fail "gpreemptd is enabled; first: sudo systemctl disable --now gpreemptd" ;;
		esac
	done
}

uninstall_all()
{
	[ -n "$check" ] || remove_begun
	[ -f "$manifest" ] || fail "nothing is installed in $prefix by install.sh: there is no $manifest"
	look_for_unit
	[ -w "$manifest" ] || fail "no right to change $prefix: use sudo"
	noted_paths | while read -r path; do
		remove "$path"
	done
	say remove "$manifest"
	if [ -n "$check" ]; then
		echo "In all: $(echo "$noted" | sum), in $prefix."
		return
	fi
	rm -f "$manifest"
	for folder in . gpreempt gpreempt/verify; do # a Python of root's made them
		rm -rf "$prefix/share/gpreempt/python/$folder/__pycache__"
	done
	noted_paths ! | LC_ALL=C sort -r | while read -r path; do
		rmdir "$path" 2>/dev/null || [ ! -d "$path" ] || echo "$path stays: there is something in it"
	done
	echo "gpreempt is gone from $prefix. /etc/gpreempt and the group gpreempt, where there are such, stay."
}

while [ $# -gt 0 ]; do
	case $1 in
	--prefix) [ $# -gt 1 ] || bad_usage "--prefix needs a folder"; prefix=$2; shift ;;
	--prefix=*) prefix=${1#*=} ;;
	--uninstall) uninstall=yes ;;
	--check) check=yes ;;
	-h | --help) echo "$usage"; exit 0 ;;
	*) bad_usage "unknown: $1" ;;
	esac
	shift
done
if [ -z "$prefix" ] && [ -f "$here/manifest" ]; then
	prefix=${here%/share/gpreempt} # the copy in an installation
fi
prefix=${prefix:-/usr/local}
while [ "$prefix" != "${prefix%/}" ]; do
	prefix=${prefix%/}
done
case $prefix in
*[!A-Za-z0-9/._+-]*) bad_usage "--prefix $prefix: units and pkg-config cannot name it; letters, digits and / . _ + - can be" ;;
/proc/* | /sys/*) bad_usage "--prefix $prefix: that is the kernel's, and keeps no files" ;;
/*) ;;
*) bad_usage "--prefix ${prefix:-/}: give a whole path, as /opt/gpreempt" ;;
esac
manifest=$prefix/share/gpreempt/manifest
read_manifest

if [ -n "$uninstall" ]; then
	uninstall_all
elif [ -f "$here/manifest" ]; then
	bad_usage "this copy is there to --uninstall; an archive's own installs"
else
	install_all
fi
