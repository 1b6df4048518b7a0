#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""rows_async.py PREFIX [OUT]: a server that sends each request to the GPU when it comes, and gives no hints, beside the training of rows.py's: exclusive, and yield.
rows_async.py --again FILE: the tables of such a measurement.
"""

import os

import beside
import rows

REPEATS = int(os.environ.get("REPEATS", "5"))
REQUESTS = {300: 2000}
WARM = {300: 200}
table = rows.table


def measure(prefix):
    return rows.measured(prefix, rows.Plan(REPEATS, REQUESTS, WARM, {}, rows.ASYNC))


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
