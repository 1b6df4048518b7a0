#!/bin/sh
# SPDX-License-Identifier: MIT
# deps.sh PURPOSE: see that the Debian packages for build, demo, check, vm, bench, dist, deb, rpm or models are there; install those that are not. On a system
# without apt it names what is missing as EL and Fedora do, and installs nothing. These names were never tried on EL8.
set -eu

# purposes | package | the same of EL8 with EPEL, - for none | what shows that it is there: a program, or pc:NAME for pkg-config | what it is for
table='
build demo check bench | gcc                | gcc                   | gcc         | compiles the C sources
build demo check bench | libc6-dev          | glibc-devel           | -           | headers of the C library
build demo check bench | meson              | meson                 | meson       | configures the build
build demo check bench | ninja-build        | ninja-build           | ninja       | runs the build
build demo check bench | pkg-config         | pkgconf-pkg-config    | pkg-config  | finds the libraries below
build demo check bench | python3            | python3               | python3     | turns device files, scenarios and the report page into C
build demo check bench | libinih-dev        | inih-devel            | pc:inih     | reads scenario and device files
build demo check bench | libjson-c-dev      | json-c-devel          | pc:json-c   | writes JSON
build demo check bench | libmicrohttpd-dev  | libmicrohttpd-devel   | pc:libmicrohttpd | serves metrics
build demo check bench | libncurses-dev     | ncurses-devel         | pc:ncursesw | draws on terminals
check                  | libcmocka-dev      | libcmocka-devel       | pc:cmocka   | runs the unit tests
check                  | g++                | gcc-c++               | g++         | tries the public header from C++
check                  | clang              | clang                 | clang       | second compiler, and the fuzz targets
check                  | libclang-rt-dev    | compiler-rt           | -           | libFuzzer and the sanitizers of clang
check                  | clang-format       | clang-tools-extra     | clang-format | checks the style
check bench            | valgrind           | valgrind              | valgrind    | finds memory errors, counts instructions
check                  | mypy               | -                     | mypy        | checks the types of the Python package
check                  | gcovr              | gcovr                 | gcovr       | measures line coverage
check                  | git                | git                   | git         | lists the files of the project
check                  | patch              | patch                 | patch       | puts the series into the source of a kernel
check                  | groff-base         | groff-base            | groff       | sets the man pages
check                  | chromium           | chromium              | chromium    | opens the report page
check dist             | mmdebstrap         | -                     | mmdebstrap  | makes a root of an older Debian
check                  | podman             | podman                | podman      | runs containers
check                  | podman-compose     | podman-compose        | podman-compose | runs some together
check                  | runc               | runc                  | runc        | starts them
check                  | musl-tools         | musl-gcc              | musl-gcc    | compiles programs of another C library
check                  | prometheus         | -                     | promtool    | scrapes metrics, and checks them
check                  | ocl-icd-opencl-dev | ocl-icd-devel         | -           | the loader of OpenCL, whose layers are a door
check                  | opencl-c-headers   | opencl-headers        | -           | its headers
check                  | pocl-opencl-icd    | pocl                  | -           | a device of OpenCL that is the CPU
check                  | libamdhip64-dev    | -                     | -           | the headers of HIP, and HIP itself
check                  | zsh                | zsh                   | zsh         | completes what is typed
check                  | fish               | fish                  | fish        | the same
check                  | tmux               | tmux                  | tmux        | is a terminal to look at
check                  | python3-yaml       | python3-pyyaml        | -           | reads the file for Docker Compose
check deb rpm          | libslurm-dev       | slurm-devel           | -           | headers of Slurm, for its plug-in
check                  | slurm-wlm          | slurm-slurmctld       | slurmctld   | a cluster of four nodes on one machine
check                  | munge              | munge                 | munged      | how these know each other
vm                     | linux-source-6.12  | -                     | -           | the driver, and the kernel it runs in
vm                     | gcc                | gcc                   | gcc         | compiles them
vm                     | make               | make                  | make        | builds them
vm                     | xz-utils           | xz                    | xz          | unpacks them
dist                   | xz-utils           | xz                    | xz          | packs the archive
check deb              | debhelper          | -                     | dh          | makes packages for Debian
check deb              | dpkg-dev           | -                     | dpkg-buildpackage | the same
check deb              | dh-python          | -                     | dh_python3  | sees to the Python in them
check                  | lintian            | -                     | lintian     | checks them
check rpm              | rpm                | rpm-build             | rpmbuild    | makes packages for EL
dist                   | binutils           | binutils              | objdump     | sees what libraries it needs
vm                     | flex               | flex                  | flex        | reads the configuration of the kernel
vm                     | bison              | bison                 | bison       | the same
vm                     | bc                 | bc                    | bc          | makes time constants of the kernel
vm                     | libelf-dev         | elfutils-libelf-devel | pc:libelf   | checks objects of the kernel
vm                     | libssl-dev         | openssl-devel         | pc:libcrypto | signs modules of the kernel
vm                     | cpio               | cpio                  | cpio        | packs the first files of the machine
vm                     | busybox-static     | -                     | busybox     | starts the machine
vm                     | kmod               | kmod                  | insmod      | loads the driver
vm                     | qemu-system-x86    | qemu-kvm              | qemu-system-x86_64 | is the machine
vm                     | git                | git                   | git         | applies the series
vm                     | perl               | perl                  | perl        | checks the style of the series
vm                     | sparse             | sparse                | sparse      | checks its types
vm                     | rocminfo           | -                     | rocminfo    | a client nobody here wrote
vm                     | libhsa-runtime-dev | -                     | -           | the runtime of AMD, another
vm                     | libhsakmt-dev      | -                     | pc:libhsakmt | its library for calls of the driver, a third
vm                     | python3            | python3               | python3     | runs the tests
models                 | python3-torch      | -                     | -           | serves and trains models
'

purpose=${1:?build, demo, check, vm, bench, dist, deb, rpm or models}

# Rows for this purpose: package|of EL|probe|why.
rows()
{
	echo "$table" | awk -F '|' -v purpose="$purpose" '
		index(" " $1 " ", " " purpose " ") {
			for (i = 2; i <= 5; i++) gsub(/^ +| +$/, "", $i)
			print $2 "|" $3 "|" $4 "|" $5
		}'
}

not_installed()
{
	have=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null | awk '$1 == "ii" { print $2 }')
	rows | while IFS='|' read -r package _ _ why; do
		echo "$have" | grep -qxF "$package" || echo "$package: $why"
	done
}

not_found()
{
	rows | while IFS='|' read -r package el probe why; do
		case $probe in
		-) continue ;;
		pc:*) pkg-config --exists "${probe#pc:}" 2>/dev/null && continue ;;
		*) command -v "$probe" >/dev/null && continue ;;
		esac
		[ "$el" != - ] || why="$why (Debian's name; EL8 has none)"
		[ "$el" = - ] || package=$el
		echo "$package: $why"
	done
}

elsewhere()
{
	missing=$(not_found)
	[ -n "$missing" ] || exit 0
	{
		echo "Not a Debian system. Missing here, as EL8 with EPEL names the packages:"
		echo "$missing" | sed 's/^/  /'
		echo "On EL8 as root: dnf install epel-release && dnf config-manager --set-enabled powertools (on RHEL: CodeReady Builder), then:"
		echo "  dnf install $(echo "$missing" | sed -n "/(Debian's name/d; s/:.*//p" | tr '\n' ' ')"
	} >&2
	exit 1
}

may_sudo()
{
	command -v sudo >/dev/null || return 1
	sudo -n true 2>/dev/null || [ -t 0 ]
}

rows | grep -q . || {
	echo "deps.sh: no such purpose: $purpose (build, demo, check, vm, bench, dist, deb, rpm or models)" >&2
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
