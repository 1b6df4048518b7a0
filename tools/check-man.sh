#!/bin/sh
# SPDX-License-Identifier: MIT
# check-man.sh ROOT: every man page is set without a warning and names what it is about.
set -eu

command -v groff >/dev/null || {
	echo "groff is not installed"
	exit 77
}
cd "$1"
failed=0
for page in man/*.[1-8]; do
	[ -f "$page" ] || continue
	out=$(cd man && groff -man -t -Tutf8 -ww -z "${page#man/}" 2>&1)
	[ -z "$out" ] || {
		echo "$page: $out"
		failed=1
	}
	name=${page#man/}
	grep -q '^\.so ' "$page" || grep -qi "^$(echo "${name%.*}" | sed 's/_/./g').*\\\\-" "$page" || {
		echo "$page: NAME does not say what ${name%.*} is"
		failed=1
	}
done
exit $failed
