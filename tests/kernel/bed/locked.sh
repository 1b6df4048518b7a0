#!/bin/sh
# SPDX-License-Identifier: MIT
# Keeps a CPU in the kernel for longer than that waits for it.
# bed: timeout=240
echo 1..1
echo "spin $((2 * $(cat /proc/sys/kernel/watchdog_thresh) + 10))" >/sys/kernel/debug/softgpu/0/faults
echo 'ok 1 - it goes on'
