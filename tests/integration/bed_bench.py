#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What bench/bed_schedule.py makes of a run of the bed: costs of the parts from gpreemptd's events, latency by the model's time."""

import os
import sys

import tap

sys.path.append(os.path.join(tap.SOURCE, "bench"))
import bed_figures

PERIOD = 100


def part(requests=(), events=(), **more):
    return {"start_ns": 1000, "requests": requests, "events": events, "elapsed_ns": 1000, "offline_wave_ns": 0, "cycles": 0, "off_ns": 0, **more}


def row(*parts, **more):
    return {"parts": parts, **more}


@tap.test("an order's calls are what its events are apart, and one that is not remembered whole is left out")
def _(folder):
    events = [("suspend", 50, 9), ("resume", 60, 4), ("resume", 60, 10), ("resume", 80, 5), ("resume", 80, 7), ("suspend", 90, 1)]
    tap.same(bed_figures.orders(events, 2), [("resume", 60, [4, 6]), ("resume", 80, [5, 2])], "orders")


@tap.test("a preemption is put down to the last request that was sent before it")
def _(folder):
    requests = [(30, 5, 20), (40, 10, 30)]  # sent at 1005 and 1110
    events = [("suspend", 1060, 10), ("suspend", 1060, 20), ("suspend", 1150, 5), ("suspend", 1150, 10)]
    tap.same(bed_figures.notices(row(part(requests, events)), 2, PERIOD), [35, 30], "notices")


@tap.test("one that no request was sent before is put down to none")
def _(folder):
    tap.same(bed_figures.notices(row(part([(30, 5, 20)], [("suspend", 1003, 1), ("suspend", 1003, 2)])), 2, PERIOD), [], "notices")


@tap.test("the costs that a run was made with are found again")
def _(folder):
    message, look, call, back, off = (n * 100_000 for n in (6, 70, 10, 8, 9))
    linger = 2 * (message + 2 * call + message)
    stopped = 1000 + 3 * message + 2 * call  # of a request that is sent at once; seen at once, if it gives no hint
    freed = stopped + look + linger - 2 * call + 2 * back
    events = [("suspend", stopped, call), ("suspend", stopped, 2 * call), ("resume", freed, back), ("resume", freed, 2 * back)]
    one = row(part([(30, 0, 20)], events, cycles=4, off_ns=4 * off))
    found = bed_figures.costs(one, one, 2, PERIOD)
    tap.same(found, {"message": message, "sample": look, "stop_call": call, "resume_call": back, "off": off}, "costs")


@tap.test("a call that is longer than its cycle costs the rest besides, and one that is shorter nothing")
def _(folder):
    keys = bed_figures.device_keys({"message": 1, "sample": 5000, "stop_call": 30, "resume_call": 10, "off": 20}, 4)
    tap.same([keys[name] for name in ("fence_ns", "stop_call_min_ns", "stop_call_max_ns", "resume_call_max_ns", "sample_ns")], [16, 10, 10, 0, 5000], "keys")


@tap.test("latency by the model's time is from sending to the GPU's end, and what the program takes stands apart")
def _(folder):
    requests = [(30, 5, 20)] * 3 + [(60, 10, 50)]
    found = bed_figures.figures(row(part(requests, offline_wave_ns=300), part(elapsed_ns=500), cycles=12, daemon_cpu_ns=8, preemptions=2),
                                {"offline_wave_ns": 800, "elapsed_ns": 1000})
    tap.same([found[name]["p50"] for name in ("model", "before", "after", "whole")], [15, 5, 10, 30], "medians")
    tap.same((found["model"]["max"], found["model"]["p99"]), (40, None), "its tails")
    tap.same((found["offline"], found["cycles_per_preemption"], found["daemon_ns"]), (0.25, 6, 4), "offline, cycles, gpreemptd")


@tap.test("near is 15 percent, either way")
def _(folder):
    tap.same([bed_figures.is_near(bed, 100) for bed in (84, 86, 114, 116)], [False, True, True, False], "near")


tap.main()
