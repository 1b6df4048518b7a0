#!/bin/sh
# SPDX-License-Identifier: MIT
# Does not wait where it says that it does.
# bed: timeout=20 stock-hangs-in=hrtimer_nanosleep
echo 1..1
echo 'ok 1 - it has slept'
