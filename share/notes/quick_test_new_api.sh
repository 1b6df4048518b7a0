#!/bin/sh
# SPDX-License-Identifier: MIT
# The design notes' quick_test_new_api.sh: the new way's calls, in a few seconds.
gpreempt=${GPREEMPT_PROGRAM:-gpreempt}
"$gpreempt" verify batch --new "$@" && "$gpreempt" verify reservation --new "$@"
