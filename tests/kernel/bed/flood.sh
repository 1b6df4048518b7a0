#!/bin/sh
# SPDX-License-Identifier: MIT
# Never ends, and never stops talking.
# bed: timeout=3
echo 1..1
exec yes '# this line, and many others like it, so that the machine has something to read for as long as it wants to'
