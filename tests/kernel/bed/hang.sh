#!/bin/sh
# SPDX-License-Identifier: MIT
# Waits where it says that it does.
# bed: timeout=3 stock-hangs-in=hrtimer_nanosleep
echo 1..1
sleep 1000
echo 'ok 1 - it has slept'
