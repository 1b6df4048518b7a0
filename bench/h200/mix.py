#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""mix.py PREFIX [OUT]: three online servers in bursts beside three offline trainings on an NVIDIA GPU: exclusive, native, yield with parking.
mix.py --again FILE: the tables of such a measurement.

PREFIX is where gpreempt was installed. The load is the part of the time that the three servers together keep the GPU busy, by what a request takes alone.
Each has arrivals of its own, the same in every row. Prints tables last; OUT: a file for all of it as JSON.
"""

import statistics

import beside

SERVERS, WEIGHTS = ("serve",) * 3, (100,) * 3
LOADS = {10: 14.0, 50: 10.0, 90: 8.0}  # percent, and s of requests
NATIVE_S = 2.0  # it falls behind
SLOS = (1.2, 1.5, 2.0)  # times the p99 of exclusive
ORDER = ("exclusive", "native", "yield with parking")


def service_s(bench):
    bench.bare[0].tell("repeat 1")
    found = bench.bare[0].answer()
    return found["seconds"] / found["served"]


def row(bench, name, load, seconds, service):
    rate = load / 100 / len(SERVERS) / service
    (bench.exclusive if name == "exclusive" else bench.row)(name, rate, int(rate * seconds), 1, warm=int(rate), shape="burst")
    bench.rows[-1].update(load=load)


def measure(prefix):
    service = float("nan")
    with beside.Bench(prefix, servers=SERVERS, weights=WEIGHTS) as bench:
        bench.train(False)
        service = service_s(bench)
        bench.configure(beside.PARKING)
        bench.alone()
        for load, seconds in LOADS.items():
            row(bench, "exclusive", load, seconds, service)
            row(bench, "yield with parking", load, seconds, service)
        print(bench.gpreempt("stats"), bench.gpreempt("ps"))
        bench.end_daemon()
        for load, seconds in LOADS.items():
            row(bench, "native", load, seconds if load < 50 else NATIVE_S, service)
    return dict(bench.found(), service_us=service * 1e6)


def attained(rows, limit):
    every = [us for one in rows for us in one["latency_us"]]
    return sum(us <= limit for us in every) / len(every)


def table(found):
    rows, alone = found["rows"], beside.alone(found)
    print(f"Measured on {found['machine']}. Three servers of ResNet-50, batches of 8, in bursts, beside three trainings of a transformer; us from intended arrival.")
    print(f"A request alone takes {found['service_us']:.0f} us. Within: of the requests, those that took at most so many times the p99 of exclusive.")
    print(f"{'row':20} {'load':>5} {'n':>6} {'p50':>8} {'p95':>8} {'p99':>8} {'of excl.':>8} " + " ".join(f"{f'{slo} x':>7}" for slo in SLOS) + f" {'offline':>8}")
    for load in LOADS:
        base = [one for one in beside.some(rows, "exclusive") if one["load"] == load]
        base = beside.p(base, 99) if base else float("nan")
        for name in ORDER:
            these = [one for one in beside.some(rows, name) if one["load"] == load]
            if not these:
                continue
            got = statistics.median(one["layers_per_s"] for one in these) / alone
            print(f"{name:20} {load:4}% {sum(len(one['latency_us']) for one in these):6} {beside.p(these, 50):8.0f} {beside.p(these, 95):8.0f} {beside.p(these, 99):8.0f}"
                  f" {beside.p(these, 99) / base:8.2f} " + " ".join(f"{attained(these, slo * base):7.3f}" for slo in SLOS) + f" {got:8.2f}")
    beside.clocks(found)


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
