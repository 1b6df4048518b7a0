#!/bin/sh
# SPDX-License-Identifier: MIT
# uninstall.sh LIST: remove the files that meson's LIST names, and then the folders that installing made, if they are empty.
set -eu

[ -f "$1" ] || {
	echo "uninstall.sh: there is no $1: nothing was installed from that folder, or it was cleaned; make install makes it again" >&2
	exit 1
}
grep -v '^#' "$1" | while read -r path; do
	if [ -d "$path" ] && [ ! -L "$path" ]; then
		rm -rf "$path/__pycache__" # Python's own
		rmdir "$path" 2>/dev/null || : # somebody else's files are in it
	else
		rm -f "$path"
	fi
done
