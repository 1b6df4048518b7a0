#!/bin/sh
# SPDX-License-Identifier: MIT
# Says that all is well, and that it is not.
# bed: memory=3G
echo 1..1
echo 'ok 1 - all is well'
exit 3
