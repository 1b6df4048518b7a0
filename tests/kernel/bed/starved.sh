#!/bin/sh
# SPDX-License-Identifier: MIT
# Says for how long its machine is to stand still, unless told otherwise so long that the kernel calls a CPU stuck, and sleeps.
# bed: timeout=60
echo 1..1
echo "# stop ${2:-$((2 * $(cat /proc/sys/kernel/watchdog_thresh) + 8))}"
sleep 5
test "$1" != splat || echo 'WARNING: possible circular locking dependency detected' >/dev/kmsg
test "$1" != wrong || printf 'not '
echo 'ok 1 - it has slept'
