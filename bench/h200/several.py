#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""several.py PREFIX [OUT]: one online server beside one offline training and beside three, of the weights 100, 100 and 200, on an NVIDIA GPU.
several.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. The first training stays; the two others come later, because nobody can tell that a
training rests. Rows take turns; each repeat has its own arrivals. Prints a table last; OUT: a file for all of it as JSON.
"""

import os
import statistics

import beside

REPEATS = int(os.environ.get("REPEATS", "4"))
RATE, COUNT, WARM = 300, 3000, 300
WEIGHTS = (100, 100, 200)
WAITS = 0.15  # s: a shorter pause is the training's own, between two steps, or parking


def measure(prefix):
    with beside.Bench(prefix, weights=WEIGHTS[:1]) as bench:
        bench.alone()
        bench.alones.clear()  # its kernels were being chosen
        bench.configure(beside.PARKING)
        bench.alone()
        for seed in range(1, REPEATS + 1):
            bench.exclusive("exclusive", RATE, COUNT, seed, warm=WARM)
            bench.row("one", RATE, COUNT, seed, warm=WARM)
        bench.add_trainings(*WEIGHTS[1:])
        bench.row("three", RATE, COUNT // 3, 99)
        bench.rows.pop()  # their kernels were being chosen
        print(bench.gpreempt("ps"), flush=True)
        for seed in range(1, REPEATS + 1):
            bench.exclusive("exclusive again", RATE, COUNT, seed, warm=WARM)
            bench.row("three", RATE, COUNT, seed, warm=WARM)
        print(bench.gpreempt("stats"))
    return dict(bench.found(), weights=WEIGHTS)


def turns(row, i):
    """How long a training ran between two times that it waited, in ms."""
    pauses = [pause for pause in row["pauses"][i] if pause[1] > WAITS]
    return [(b[0] - b[1] - a[0]) * 1e3 for a, b in zip(pauses, pauses[1:])]


def table(found):
    rows = found["rows"]
    print(f"Measured on {found['machine']}. ResNet-50, batches of 8, {RATE}/s, beside trainings of a transformer; us from intended arrival; medians of repeats.")
    print(f"{'row':20} {'n':>6} {'p50':>7} {'p95':>7} {'p99':>7} {'max':>8} {'of excl.':>8} {'layers/s':>9} {'of one':>7}   p99 of repeats")
    one = statistics.median([row["layers_per_s"] for row in beside.some(rows, "one")] or [float("nan")])
    for name, base in (("exclusive", "exclusive"), ("one", "exclusive"), ("exclusive again", "exclusive again"), ("three", "exclusive again")):
        these = beside.some(rows, name)
        if not these:
            continue
        p99, rate = beside.p(these, 99), statistics.median(row["layers_per_s"] for row in these)
        print(f"{name:20} {sum(len(row['latency_us']) for row in these):6} {beside.p(these, 50):7.0f} {beside.p(these, 95):7.0f} {p99:7.0f}"
              f" {beside.p(these, 100):8.0f} {p99 / beside.p(beside.some(rows, base), 99):8.2f} {rate:9.0f} {rate / one:7.2f}   {beside.spread(these)}")
    beside.clocks(found)
    three, weights = beside.some(rows, "three"), found["weights"]
    if not three:
        return
    print("training  weight  part of all  of its weight  turn, median ms  longest wait ms")
    for i, weight in enumerate(weights):
        part = sum(row["layers_per_s_of"][i] for row in three) / sum(row["layers_per_s"] for row in three)
        lengths = [ms for row in three for ms in turns(row, i)]
        longest = max((pause[1] for row in three for pause in row["pauses"][i]), default=0.0)
        print(f"{i + 1:8} {weight:7} {part:12.3f} {part * sum(weights) / weight:14.2f} {statistics.median(lengths) if lengths else 0:16.0f}"
              f" {longest * 1e3:16.0f}")


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
