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
ROWS = {"yield with parking": beside.PARKING, "yield": beside.YIELD}


def measure(prefix):
    bench = beside.Bench(prefix, server="tokens")
    try:
        bench.alone()
        bench.alones.clear()  # its kernels were being chosen
        bench.row("native", RATE, COUNT // 2, 1)
        for name, conf in ROWS.items():
            bench.configure(conf)
            bench.alone()
            bench.row("learning", RATE, COUNT * 2 // 3, 99)
            for seed in range(1, REPEATS + 1):
                bench.row("exclusive", RATE, COUNT, seed, trains=False)
                bench.row(name, RATE, COUNT, seed)
        print(bench.gpreempt("stats"))
    finally:
        bench.end()
    return bench.found()


def table(found):
    rows, alone = found["rows"], statistics.median(found["alone_layers_per_s"])
    base = beside.p(beside.some(rows, "exclusive"), 99)
    print(f"Measured on {found['machine']}. 64 tokens a request, {rows[0]['rate']:g}/s, beside the training of a transformer; us from intended arrival; medians of repeats.")
    print(f"{'row':20} {'n':>6} {'p50':>8} {'p95':>8} {'p99':>8} {'of excl.':>8} {'service':>8} {'of excl.':>8} {'offline':>8}")
    service = statistics.median(row["service_mean_us"] for row in beside.some(rows, "exclusive"))
    for name in ("exclusive", "native", "yield", "yield with parking"):
        these = beside.some(rows, name)
        mean = statistics.median(row["service_mean_us"] for row in these)
        print(f"{name:20} {sum(len(row['latency_us']) for row in these):6} {beside.p(these, 50):8.0f} {beside.p(these, 95):8.0f} {beside.p(these, 99):8.0f}"
              f" {beside.p(these, 99) / base:8.2f} {mean:8.0f} {mean / service:8.2f} {statistics.median(row['layers_per_s'] for row in these) / alone:8.2f}")


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
