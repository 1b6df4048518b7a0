#!/bin/sh
# SPDX-License-Identifier: MIT
# aside.sh COMMAND [WORD...]: runs it behind everything else on the machine.
#
# With autogroups a nice value counts within one session alone: the session itself, this one's own, has to be nice
# too. Not SCHED_IDLE: beside busy strangers it gets nothing at all, and somebody waits for this in the end.
echo 19 2>/dev/null >/proc/self/autogroup || :
exec nice -n 19 "$@"
