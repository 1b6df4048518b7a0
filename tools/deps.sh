#!/bin/sh
# SPDX-License-Identifier: MIT
# deps.sh PURPOSE: see that the Debian packages for build, demo, check, vm or bench are there; install those that are not.
set -eu

# purposes | package | what shows that it is there: a program, or pc:NAME for pkg-config | what it is for
table='
build demo check bench | gcc                | gcc         | compiles the C sources
build demo check bench | libc6-dev          | -           | headers of the C library
build demo check bench | meson              | meson       | configures the build
build demo check bench | ninja-build        | ninja       | runs the build
build demo check bench | pkg-config         | pkg-config  | finds the libraries below
build demo check bench | python3            | python3     | turns device files, scenarios and the report page into C
build demo check bench | libinih-dev        | pc:inih     | reads scenario and device files
build demo check bench | libjson-c-dev      | pc:json-c   | writes JSON
check                  | libcmocka-dev      | pc:cmocka   | runs the unit tests
check                  | g++                | g++         | tries the public header from C++
check                  | clang              | clang       | second compiler, and the fuzz targets
check                  | libclang-rt-dev    | -           | libFuzzer and the sanitizers of clang
check                  | clang-format       | clang-format | checks the style
check bench            | valgrind           | valgrind    | finds memory errors, counts instructions
check                  | gcovr              | gcovr       | measures line coverage
check                  | git                | git         | lists the files of the project
check                  | groff-base         | groff       | sets the man pages
check                  | chromium           | chromium    | opens the report page
check                  | mmdebstrap         | mmdebstrap  | makes a root of an older Debian
vm                     | linux-source-6.12  | -           | the driver, and the kernel it runs in
vm                     | gcc                | gcc         | compiles them
vm                     | make               | make        | builds them
vm                     | xz-utils           | xz          | unpacks them
vm                     | flex               | flex        | reads the configuration of the kernel
vm                     | bison              | bison       | the same
vm                     | bc                 | bc          | makes time constants of the kernel
vm                     | libelf-dev         | pc:libelf   | checks objects of the kernel
vm                     | libssl-dev         | pc:libcrypto | signs modules of the kernel
vm                     | cpio               | cpio        | packs the first files of the machine
vm                     | busybox-static     | busybox     | starts the machine
vm                     | kmod               | insmod      | loads the driver
vm                     | qemu-system-x86    | qemu-system-x86_64 | is the machine
vm                     | git                | git         | applies the series
vm                     | rocminfo           | rocminfo    | a client nobody here wrote
vm                     | libhsa-runtime-dev | -           | the runtime of AMD, another
vm                     | libhsakmt-dev      | pc:libhsakmt | its library for calls of the driver, a third
vm                     | python3            | python3     | runs the tests
'

purpose=${1:?build, demo, check, vm or bench}

# Rows for this purpose: package|probe|why.
rows()
{
	echo "$table" | awk -F '|' -v purpose="$purpose" '
		index(" " $1 " ", " " purpose " ") {
			for (i = 2; i <= 4; i++) gsub(/^ +| +$/, "", $i)
			print $2 "|" $3 "|" $4
		}'
}

not_installed()
{
	have=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null | awk '$1 == "ii" { print $2 }')
	rows | while IFS='|' read -r package _ why; do
		echo "$have" | grep -qxF "$package" || echo "$package: $why"
	done
}

not_found()
{
	rows | while IFS='|' read -r package probe why; do
		case $probe in
		-) continue ;;
		pc:*) pkg-config --exists "${probe#pc:}" 2>/dev/null && continue ;;
		*) command -v "$probe" >/dev/null && continue ;;
		esac
		echo "$package: $why"
	done
}

elsewhere()
{
	missing=$(not_found)
	[ -n "$missing" ] || exit 0
	echo "Not a Debian system. What these Debian packages bring is missing here; install your system's:" >&2
	echo "$missing" >&2
	exit 1
}

may_sudo()
{
	command -v sudo >/dev/null || return 1
	sudo -n true 2>/dev/null || [ -t 0 ]
}

rows | grep -q . || {
	echo "deps.sh: no such purpose: $purpose (build, demo, check, vm or bench)" >&2
	exit 2
}
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	elsewhere
fi

missing=$(not_installed)
[ -n "$missing" ] || exit 0

packages=$(echo "$missing" | sed 's/:.*//' | tr '\n' ' ' | sed 's/ $//')
by_hand="apt-get update && apt-get install --no-install-recommends $packages"
echo "Missing Debian packages:"
echo "$missing" | sed 's/^/  /'

if [ "$(id -u)" -eq 0 ]; then
	sudo=
elif may_sudo; then
	sudo=sudo
else
	echo "No right to install them. Run this as root, then try again:"
	echo "  $by_hand"
	exit 1
fi

apt()
{
	# Not through sudo's environment: it may be cleared.
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >/dev/null
}

echo "Installing them."
# shellcheck disable=SC2086 # a list of words
if ! apt update || ! apt install -y --no-install-recommends $packages; then
	echo "That failed. Run this as root, then try again:"
	echo "  $by_hand"
	exit 1
fi
