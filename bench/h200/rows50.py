#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""rows50.py PREFIX [OUT]: the rows of rows.py at 50 requests a second, native for 10 s.
rows50.py --again FILE [--short]: as of rows.py.
"""

import os

import beside
import rows

REPEATS = int(os.environ.get("REPEATS", "3"))
REQUESTS = {50: 1000}
WARM = {50: 50}
NATIVE = {50: 500}
table = rows.table


def measure(prefix):
    return rows.measured(prefix, rows.Plan(REPEATS, REQUESTS, WARM, NATIVE, rows.ROWS))


if __name__ == "__main__":
    beside.run(measure, table, __doc__, rows.short)
