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
	# As installed: man3/NAME.
	other=$(sed -n 's:^\.so man[1-8]/::p' "$page")
	[ -z "$other" ] || {
		[ -f "man/$other" ] || {
			echo "$page: there is no man/$other"
			failed=1
		}
		continue
	}
	out=$(cd man && groff -man -t -Tutf8 -ww -z "${page#man/}" 2>&1)
	[ -z "$out" ] || {
		echo "$page: $out"
		failed=1
	}
	name=${page#man/}
	grep -qi "^$(echo "${name%.*}" | sed 's/_/./g').*\\\\-" "$page" || {
		echo "$page: NAME does not say what ${name%.*} is"
		failed=1
	}
done
exit $failed
