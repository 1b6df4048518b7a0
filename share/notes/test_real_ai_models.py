#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The design notes' test_real_ai_models.py: gpreempt verify models, with the options of gpreempt-verify(1)."""

import os
import sys

os.execvp(os.environ.get("GPREEMPT_PROGRAM", "gpreempt"), ["gpreempt", "verify", "models"] + sys.argv[1:])
