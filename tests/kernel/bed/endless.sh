#!/bin/sh
# SPDX-License-Identifier: MIT
# Never ends, and leaves a child that no signal to its group reaches.
# bed: timeout=3
echo 1..2
echo 'ok 1 - the first half'
setsid sleep 1000 &
exec sleep 1000
