#!/bin/sh
# SPDX-License-Identifier: MIT
# bed: timeout=20
echo 1..2
: >"$GPREEMPT_SOURCE/written" && echo 'ok 1 - the tree can be written to'
echo 'ok 2 - it cannot # SKIP no reason'
