#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""decode.py PREFIX [OUT]: requests of 64 tokens, a hint open throughout, beside an offline training on an NVIDIA GPU.
decode.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. Each token is launched kernel by kernel, and the program waits for it: a request is full of gaps.
Prints a table last; OUT: a file for all of it as JSON.
"""

import os
import statistics

import beside

REPEATS = int(os.environ.get("REPEATS", "3"))
RATE, COUNT = float(os.environ.get("RATE", "8")), int(os.environ.get("COUNT", "150"))
LEARNS = 50  # requests


def measure(prefix, server="tokens"):
    with beside.Bench(prefix, servers=(server,)) as bench:
        bench.alone(1)
        bench.alones.clear()  # its kernels were being chosen
        bench.row("native", RATE, COUNT // 3, 1)
        bench.configure(beside.PARKING)
        bench.alone(3)
        bench.row("learning", RATE, LEARNS, 99)
        for seed in range(1, REPEATS + 1):
            bench.exclusive("exclusive", RATE, COUNT, seed)
            bench.row("yield with parking", RATE, COUNT, seed)
        bench.configure(beside.YIELD)
        for seed in range(1, REPEATS + 1):
            bench.row("yield", RATE, COUNT, seed)
        print(bench.gpreempt("stats"))
    return bench.found()


def table(found):
    rows, alone = found["rows"], beside.alone(found)
    base = beside.p(beside.some(rows, "exclusive"), 99)
    print(f"Measured on {found['machine']}. 64 tokens a request, {rows[0]['rate']:g}/s, beside the training of a transformer; us from intended arrival; medians of repeats.")
    print(f"{'row':20} {'n':>6} {'p50':>8} {'p95':>8} {'p99':>8} {'of excl.':>8} {'service':>8} {'of excl.':>8} {'offline':>8}")
    service = beside.service(beside.some(rows, "exclusive"))
    for name in ("exclusive", "native", "yield", "yield with parking"):
        these = beside.some(rows, name)
        mean = beside.service(these)
        print(f"{name:20} {sum(len(row['latency_us']) for row in these):6} {beside.p(these, 50):8.0f} {beside.p(these, 95):8.0f} {beside.p(these, 99):8.0f}"
              f" {beside.p(these, 99) / base:8.2f} {mean:8.0f} {mean / service:8.2f} {statistics.median(row['layers_per_s'] for row in these) / alone:8.2f}")
    beside.clocks(found)


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
