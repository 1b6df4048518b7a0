#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The design notes' generate_final_report.py: gpreempt report of two folders that gpreempt verify wrote."""

import argparse
import os
import sys

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--traditional-results", metavar="DIR", required=True, help="of gpreempt verify --old --out")
parser.add_argument("--new-results", metavar="DIR", required=True, help="of gpreempt verify --new --out")
parser.add_argument("--output", metavar="FILE", required=True, help="a page, or Markdown if it ends with .md")
asked = parser.parse_args()
try:
    os.execvp(os.environ.get("GPREEMPT_PROGRAM", "gpreempt"),
              ["gpreempt", "report", "--old", asked.traditional_results, "--new", asked.new_results, "--out", asked.output])
except OSError as wrong:
    sys.exit("gpreempt cannot be started ({}): install it, and see that it is in the path".format(wrong.strerror))
