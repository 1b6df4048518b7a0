#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""rows.py PREFIX [OUT]: one online server and one offline training on an NVIDIA GPU: exclusive, native, yield, yield with parking, at 300 and 500 requests a second.
rows.py --again FILE [--short]: the tables of such a measurement, or the README's.

PREFIX is where gpreempt was installed. Programs stay up; every row of a repeat sees the same arrivals, and rows take turns: what is cut short has fewer repeats, of each rate.
Prints tables last; OUT: a file for all of it as JSON.
"""

import collections
import os
import statistics

import beside

REPEATS = int(os.environ.get("REPEATS", "5"))
REQUESTS = {300: 2000, 500: 2000}  # in each repeat
WARM = {300: 200, 500: 200}
NATIVE = {300: 3000}  # once, 10 s: it falls behind without end
ROWS = {"exclusive": beside.EXCLUSIVE, "yield": beside.YIELD, "yield with parking": beside.PARKING}
ASYNC = {"exclusive, async": beside.EXCLUSIVE, "yield, async, no hints": beside.PARKING}
ORDER = ("exclusive", "native", "yield", "yield with parking", *ASYNC)


# How often, how many requests of each rate, and how many come before that do not count; native's; which rows
Plan = collections.namedtuple("Plan", "repeats requests warm native rows")


def measure_rows(bench, plan):
    bench.alone()
    bench.alones.clear()  # its kernels were being chosen
    for rate, count in plan.native.items():
        bench.row("native", rate, count, 1, warm=plan.warm[rate])
    bench.configure(beside.YIELD)
    for seed in range(1, plan.repeats + 1):
        bench.alone(3)
        for rate in plan.requests:
            measure_rate(bench, plan, rate, seed)
    print(bench.gpreempt("stats"), bench.gpreempt("ps"))


def measure_rate(bench, plan, rate, seed):
    for name, conf in plan.rows.items():
        if conf is not None:
            bench.configure(conf)
        measure_one = bench.exclusive if conf is None else bench.row
        measure_one(name, rate, plan.requests[rate], seed, warm=plan.warm[rate], hints=name not in ASYNC, is_async=name in ASYNC)


def measured(prefix, plan):
    with beside.Bench(prefix) as bench:
        measure_rows(bench, plan)
    return bench.found()


def measure(prefix):
    return measured(prefix, Plan(REPEATS, REQUESTS, WARM, NATIVE, ROWS))


def names_of(rows):
    """Those that are measured here first, and what else a file has."""
    return [*ORDER, *sorted({row["row"] for row in rows} - set(ORDER))]


def base_of(rows, name, rate):
    return beside.some(rows, "exclusive, async" if name in ASYNC else "exclusive", rate)


def latencies(found):
    rows, alone = found["rows"], beside.alone(found)
    print(f"{'row':24} {'rate':>5} {'n':>6} {'p50':>7} {'p95':>7} {'p99':>7} {'max':>8} {'of excl.':>8} {'offline':>8} {'harvest':>8}   p99 of repeats")
    for rate in sorted({row["rate"] for row in rows}):
        for name in names_of(rows):
            these, base = beside.some(rows, name, rate), base_of(rows, name, rate)
            if not these or not base:
                continue
            got = statistics.median(row["layers_per_s"] for row in these) / alone
            p = {q: beside.p(these, q) for q in (50, 95, 99, 100)}
            print(f"{name:24} {rate:5.0f} {sum(len(row['latency_us']) for row in these):6} {p[50]:7.0f} {p[95]:7.0f} {p[99]:7.0f} {p[100]:8.0f}"
                  f" {p[99] / beside.p(base, 99):8.2f} {got:8.2f} {got / (1 - rate * beside.service(base) / 1e6):8.2f}   {beside.spread(these)}")


def places(row):
    """The service times of requests by how many were served before them since the server was idle: 0, 1, and more."""
    found, place = ([], [], []), 0
    for latency, service in zip(row["latency_us"], beside.services(row)):
        place = place + 1 if latency > service + 1 else 0
        found[min(place, 2)].append(service)
    return found


def services(found):
    """Where the tail comes from: what a request pays that finds the server idle, and what one that queued."""
    print(f"{'service, median us':24} {'rate':>5} {'first':>7} {'second':>7} {'later':>7}   part that queued")
    for rate in sorted({row["rate"] for row in found["rows"]}):
        for name in (name for name in names_of(found["rows"]) if name not in ASYNC):
            these = [places(row) for row in beside.some(found["rows"], name, rate)]
            by_place = [[us for one in these for us in one[i]] for i in range(3)]
            total = sum(map(len, by_place))
            if total:
                print(f"{name:24} {rate:5.0f} " + " ".join(f"{statistics.median(some):7.0f}" if some else f"{'-':>7}" for some in by_place)
                      + f"   {1 - len(by_place[0]) / total:.2f}")


def table(found):
    print(f"Measured on {found['machine']}. ResNet-50, batches of 8, beside the training of a transformer; us from intended arrival; medians of repeats.")
    alone = found["alone_layers_per_s"] or [float("nan")]
    print(f"Training alone: {min(alone):.0f} to {max(alone):.0f} layers/s, median {beside.alone(found):.0f}.")
    latencies(found)
    services(found)
    beside.clocks(found)


def short_of(found, name, rate):
    """p99, that over exclusive's, and offline over itself alone; as table() has them."""
    these, base = beside.some(found["rows"], name, rate), base_of(found["rows"], name, rate)
    if not these or not base:
        return f"{'-':>8} {'-':>6} {'-':>8}"
    p99, got = beside.p(these, 99), statistics.median(row["layers_per_s"] for row in these) / beside.alone(found)
    return f"{p99:8.0f} {p99 / beside.p(base, 99):6.2f} {got:8.2f}"


def short(found):
    rates = sorted({row["rate"] for row in found["rows"]})
    print(f"Measured on {found['machine']}. ResNet-50, batches of 8, beside the training of a transformer: p99 in us from intended\n"
          "arrival, the same over exclusive's, and what the training did over what it does alone; medians of repeats.")
    print(f"{'':20}" + " |".join(f"{f'{rate:.0f} requests a second':>24}" for rate in rates))
    print(f"{'':20}" + " |".join(f"{'p99':>8} {'ratio':>6} {'training':>8}" for _ in rates))
    for name in ORDER[:-len(ASYNC)]:
        print(f"{name:20}" + " |".join(short_of(found, name, rate) for rate in rates))
    beside.baseline(found)


if __name__ == "__main__":
    beside.run(measure, table, __doc__, short)
