#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The design notes' performance_comparison.py: gpreempt verify compare, with the options of gpreempt-verify(1)."""

import os
import sys

try:
    os.execvp(os.environ.get("GPREEMPT_PROGRAM", "gpreempt"), ["gpreempt", "verify", "compare"] + sys.argv[1:])
except OSError as wrong:
    sys.exit("gpreempt cannot be started ({}): install it, and see that it is in the path".format(wrong.strerror))
