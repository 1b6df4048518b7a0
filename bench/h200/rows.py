#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""rows.py PREFIX [OUT]: one online server and one offline training on an NVIDIA GPU: exclusive, native, yield, yield with parking.
rows.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. Both programs stay up; every row of a repeat sees the same arrivals, and rows take turns.
Prints a table last; OUT: a file for all of it as JSON.
"""

import os
import statistics

import beside
from beside import at

REPEATS = int(os.environ.get("REPEATS", "4"))
REQUESTS = {50: 400, 300: 2000, 500: 2000}
NATIVE_S = 8
ROWS = {"exclusive": beside.EXCLUSIVE, "yield": beside.YIELD, "yield with parking": beside.PARKING}


def measure_rows(bench):
    bench.alone()
    bench.alones.clear()  # its kernels were being chosen
    for rate in (50, 300):
        bench.row("native", rate, rate * NATIVE_S, 1)
    bench.configure(beside.YIELD)
    for rate, count in REQUESTS.items():
        for seed in range(1, REPEATS + 1):
            bench.alone()
            for name, conf in ROWS.items():
                if conf is not None:
                    bench.configure(conf)
                bench.row(name, rate, count, seed, trains=conf is not None)
    print(bench.gpreempt("stats"), bench.gpreempt("ps"))


def measure(prefix):
    bench = beside.Bench(prefix)
    try:
        measure_rows(bench)
    finally:
        bench.end()
    return bench.found()


def table(found):
    rows, alone = found["rows"], statistics.median(found["alone_layers_per_s"])
    print(f"Measured on {found['machine']}. ResNet-50, batches of 8, beside the training of a transformer; us from intended arrival; medians of repeats.")
    print(f"Training alone: {min(found['alone_layers_per_s']):.0f} to {max(found['alone_layers_per_s']):.0f} layers/s, median {alone:.0f}.")
    print(f"{'row':20} {'rate':>5} {'n':>6} {'p50':>7} {'p95':>7} {'p99':>7} {'max':>8} {'of excl.':>8} {'offline':>8} {'harvest':>8}")
    for rate in sorted({row["rate"] for row in rows}):
        exclusive = [row for row in rows if row["row"] == "exclusive" and row["rate"] == rate]
        base = statistics.median(at(row, 99) for row in exclusive)
        busy = statistics.median(rate * row["service_mean_us"] / 1e6 for row in exclusive)
        for name in ("native", *ROWS):
            some = [row for row in rows if row["row"] == name and row["rate"] == rate]
            if not some:
                continue
            p = {q: statistics.median(at(row, q) for row in some) for q in (50, 95, 99, 100)}
            got = statistics.median(row["layers_per_s"] for row in some) / alone
            n = sum(len(row["latency_us"]) for row in some)
            print(f"{name:20} {rate:5.0f} {n:6} {p[50]:7.0f} {p[95]:7.0f} {p[99]:7.0f} {p[100]:8.0f} {p[99] / base:8.2f} {got:8.2f} {got / (1 - busy):8.2f}")


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
