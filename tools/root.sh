#!/bin/sh
# SPDX-License-Identifier: MIT
# root.sh SUITE DIR [PACKAGE...]: DIR becomes a small Debian root of that suite, with these packages.
# root.sh --run DIR COMMAND...: run it in there, with /proc, /dev and /sys; nothing stays mounted and nobody stays running.
# root.sh --boot DIR: be a machine with that root, which has systemd in it, until killed. Its systemd is the one child; nsenter goes in.
#
# CACHE/root-SUITE-KEY is kept, and DIR is a copy of it. Exits 77 with a line when this machine cannot make one.
set -eu

kept=4

skip()
{
	echo "root.sh: $*" >&2
	exit 77
}

# in_root DIR COMMAND...: in namespaces of its own, which end with it.
in_root()
{
	dir=$1
	shift
	# shellcheck disable=SC2016 # for the inner shell
	exec unshare --mount --pid --fork --kill-child sh -euc '
		mount --bind "$0" "$0"
		cd "$0"
		mount -t proc proc proc
		mount --rbind /dev dev
		mount --rbind /sys sys
		# A process whose root is not that of its namespace may make no user namespace.
		mount --move . /
		exec env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot . "$@"
	' "$dir" "$@"
}

# A cgroup of its own, below the one for cgroup2 here; those of machines that are gone are removed.
make_cgroup()
{
	groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	[ -n "$groups" ] || skip "this machine has no cgroup2"
	for old in "$groups"/gpreempt-boot-*; do
		[ -d "/proc/${old##*-}" ] || find "$old" -depth -type d -exec rmdir '{}' + 2>/dev/null || :
	done
	if ! mkdir "$groups/gpreempt-boot-$$" 2>/dev/null || ! echo $$ >"$groups/gpreempt-boot-$$/cgroup.procs"; then
		skip "no cgroup can be made below $groups"
	fi
}

# Nothing of this machine is to be seen or changed from there: no devices, no network, sysfs and sysctl to be read alone.
boot()
{
	make_cgroup
	# shellcheck disable=SC2016 # for the inner shell
	exec unshare --mount --pid --net --ipc --uts --cgroup --fork --kill-child sh -euc '
		mount --make-rprivate /
		mount --bind "$0" "$0"
		cd "$0"
		mount -t proc proc proc
		mount --bind proc/sys proc/sys
		mount -o remount,bind,ro proc/sys
		mount -t sysfs sysfs sys
		mount -t cgroup2 cgroup2 sys/fs/cgroup
		mount -o remount,bind,ro sys
		mount -t tmpfs -o mode=755 tmpfs dev
		mkdir dev/pts dev/shm
		mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
		ln -s pts/ptmx dev/ptmx
		for name in full null random tty urandom zero; do
			touch "dev/$name"
			mount --bind "/dev/$name" "dev/$name"
		done
		mount -t tmpfs -o mode=755 tmpfs run
		pivot_root . mnt
		umount -l /mnt
		exec env -i container=gpreempt /lib/systemd/systemd --system --unit=multi-user.target
	' "$1"
}

# check_owner PATH: commands are run in it as root. Nobody else may write it, or put another in its place; that nobody can in /tmp.
check_owner()
{
	at=$(realpath "$1")
	sticky=-false
	# shellcheck disable=SC2086 # words
	while [ -n "$(find "$at" -maxdepth 0 -uid 0 '(' $sticky -o ! -perm -0002 ! '(' -perm -0020 ! -gid 0 ')' ')')" ]; do
		[ "$at" != / ] || return 0
		at=$(dirname "$at")
		sticky='-perm -1000'
	done
	skip "others than root can write $at; choose another place for the cache by GPREEMPT_CACHE"
}

# The archives that apt here is told of, and where mirrors keep what has left them.
archives()
{
	# shellcheck disable=SC2016 # for apt
	apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | sed 's:/*$::' | awk '
		!seen[$0]++ { print; sub("/[^/]*$", "/debian-archive/debian"); past[$0] }
		END { for (uri in past) print uri }'
}

# The first archive that has the suite, and is Debian's.
mirror()
{
	release=$scratch/release
	archives | while read -r uri; do
		/usr/lib/apt/apt-helper download-file "$uri/dists/$suite/InRelease" "$release" >/dev/null 2>&1 || continue
		grep -q '^Origin: Debian$' "$release" && echo "$uri" && break
	done
}

make_root()
{
	uri=$(mirror)
	[ -n "$uri" ] || skip "no archive in the sources of apt has Debian's $suite"
	echo "root.sh: making Debian's $suite in $made: some minutes, once" >&2
	rm -rf "$made.new"
	# An archived suite is past its date. What a power cut leaves has not got its name yet.
	mmdebstrap --mode=root --variant=apt --include="apt $packages" \
		--aptopt="$scratch/proxies" --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=force-unsafe-io \
		"$suite" "$made.new" "$uri" >"$scratch/log" 2>&1 || {
		cat "$scratch/log" >&2
		rm -rf "$made.new"
		exit 1
	}
	mv "$made.new" "$made"
}

[ $# -ge 2 ] || {
	echo "usage: root.sh SUITE DIR [PACKAGE...] | root.sh --run DIR COMMAND... | root.sh --boot DIR" >&2
	exit 2
}
[ "$(id -u)" -eq 0 ] || skip "only root can make one or run in it"
unshare --mount --pid --fork true 2>/dev/null || skip "this machine gives no mount namespace"
case $1 in
--run)
	shift
	in_root "$@"
	;;
--boot) boot "$2" ;;
esac

suite=$1
dir=$2
shift 2
for program in mmdebstrap apt-get; do
	command -v "$program" >/dev/null || skip "$program is not installed"
done
[ ! -e "$dir" ] || {
	echo "root.sh: $dir is there already" >&2
	exit 1
}

packages=$(printf '%s\n' "$@" | sort -u | tr '\n' ' ' | sed 's/^ *//; s/ *$//')
cache=${GPREEMPT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpreempt}
made=$cache/root-$suite-$(echo "$packages" | sha256sum | cut -c 1-16)
mkdir -p "$cache"
check_owner "$cache"
[ ! -d "$made" ] || check_owner "$made"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
apt-config dump Acquire | grep -i proxy >"$scratch/proxies" || true

# One at a time: the second finds what the first has made.
exec 9>"$cache/root.lock"
flock 9
[ -d "$made" ] || make_root
touch "$made"
# shellcheck disable=SC2012 # names of our own
ls -dt "$cache"/root-*-* | tail -n "+$((kept + 1))" | xargs -r -d '\n' rm -rf --
cp -a "$made" "$dir"
