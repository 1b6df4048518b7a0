#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=1200 memory=3G param=gfx=gfx90a param=cus=4
"""bed_schedule.py [FILE]: what scheduling costs in the bed, and what the simulator says of the same; FILE gets all of it as JSON.

Two programs on AMD's own runtime, on the stock driver and a software GPU: one serves requests by the clock, one always has work.
Exclusive is the first alone, native both without gpreemptd. Bed times are software cost under emulation, all of one run: they say
nothing of a card. REQUESTS in the environment: how many each row has, 1000 unless given.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "tests"))
import amd
import tap

INSIDE = "inside"  # the first argument in the machine, where the host's environment is not
REQUESTS = int(sys.argv[2] if sys.argv[1:2] == [INSIDE] else os.environ.get("REQUESTS", "1000"))
PERIOD_MS, DISPATCHES, WAVE_MS = 60, 3, 4
SLOTS = 128  # waves that the device runs at a time: 4 compute units of 32
ONLINE, OFFLINE = 16, 32  # workgroups of 4 waves: half of the device, and all of it
QUEUES = 2
OWN_QUEUES = 1  # that the runtime has besides, and that are stopped with the others
ALONE_S = 10
MARK = "row: "
CONF = "[scheduler]\nmax_starve = never\n"
SIM = {"exclusive": "exclusive", "native": "native", "scheduled": "interrupt-single", "scheduled+hints": "interrupt-single+hints"}
# The bed's device: kernel/softgpu/main.c has the constants of mi300x.ini, and these compute units.
SCENARIO = f"""[scenario]
name = bed
device = bed.ini
duration = {1 + REQUESTS * PERIOD_MS / 1000:g}s
max_starve = never
[work request]
kernels = {DISPATCHES}
length = {WAVE_MS}ms
share = {ONLINE * 4 / SLOTS:g}
[work step]
kernels = 1
length = {WAVE_MS}ms
share = {OFFLINE * 4 / SLOTS:g}
[online serve]
work = request
arrival = periodic
rate = {1000 / PERIOD_MS:.3f}
prepare = 0s
[offline train]
work = step
queues = {QUEUES + OWN_QUEUES}
"""


def quantile(values, permille):
    return sorted(values)[-(-len(values) * permille // 1000) - 1]


# In the machine

class Meter:
    """What the device did, since it was made."""

    def __init__(self, offline):
        self.offline, self.begin = offline, time.monotonic()
        self.before = self.read()

    def read(self):
        return {"offline_wave_ns": amd.wave_ns(self.offline.pid) if self.offline else 0,
                **{name: amd.stat(name) for name in ("busy_ns", "cycles", "waves_saved", "waves_restored")}}

    def figures(self):
        now = self.read()
        return {"elapsed_ns": int((time.monotonic() - self.begin) * 1e9), **{name: now[name] - self.before[name] for name in now}}


def start_offline(socket, role):
    offline = amd.Served(QUEUES, socket, role)
    offline.tell(f"busy {OFFLINE} {WAVE_MS * 1000}")
    offline.goes_on()
    return offline


def serve(online, offline):
    meter = Meter(offline)
    online.serve(REQUESTS, PERIOD_MS, DISPATCHES, ONLINE, WAVE_MS * 1000)
    latencies = online.served()[1]
    figures = meter.figures()
    tap.same(online.end(), REQUESTS * DISPATCHES, "dispatches")
    if offline:
        offline.end()
    return {**figures, "latency_us": [one // 1000 for one in latencies]}


def alone():
    offline = start_offline(None, None)
    meter = Meter(offline)
    time.sleep(ALONE_S)
    figures = meter.figures()
    offline.end()
    return figures


def scheduled(hints):
    with tempfile.TemporaryDirectory() as folder, amd.Machine(folder, "--config", tap.write(f"{folder}/conf", CONF)) as machine:
        offline = start_offline(machine.socket, "offline")
        online = machine.adopt(amd.Served(1, machine.socket, "online", hints=hints))
        row = serve(online, machine.adopt(offline))
        return {**row, "preemptions": machine.stats()["preemptions"]}


def measure():
    print("1..1")
    for name, row in (("alone", alone),
                      ("exclusive", lambda: serve(amd.Served(1), None)),
                      ("native", lambda: serve(amd.Served(1), start_offline(None, None))),
                      ("scheduled", lambda: scheduled(False)),
                      ("scheduled+hints", lambda: scheduled(True))):
        print(MARK + json.dumps({"row": name, **row()}), flush=True)
    print("ok 1 - measured")


# On the host

def run_bed(build):
    """{row: figures}"""
    done = subprocess.run([os.path.join(tap.SOURCE, "kernel", "bed", "run"), "--build", build, f"{os.path.abspath(__file__)} {INSIDE} {REQUESTS}"],
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout)
    rows = [json.loads(line.partition(MARK)[2]) for line in done.stdout.splitlines() if MARK in line]
    return {row.pop("row"): row for row in rows}


def run_sim(build):
    """{row: figures}"""
    with tempfile.TemporaryDirectory() as folder:
        device = tap.read(tap.SOURCE, "share", "devices", "mi300x.ini")
        tap.write(f"{folder}/bed.ini", device.replace("xccs = 8", "xccs = 1").replace("cus_per_xcc = 38", "cus_per_xcc = 4"))
        done = tap.good("sim", tap.write(f"{folder}/scenario.ini", SCENARIO), "--json", "--only", ",".join(SIM.values()),
                        program=os.path.join(build, "gpreempt"))
    rows = {row["config"] + "+hints" * row["hints"]: row for row in json.loads(done.stdout)["rows"]}
    return {name: rows[config] for name, config in SIM.items()}


def ms(us):
    return f"{us / 1000:>8.1f}"


def part(amount, of):
    return f"{amount / of:>8.2f}" if of else f"{'-':>8}"


def bed_columns(row, base_us, free):
    """free: wave-ns that offline has each ns, alone"""
    latencies = row["latency_us"]
    p50 = quantile(latencies, 500)
    return [ms(p50), ms(quantile(latencies, 950)), ms(quantile(latencies, 990)) if len(latencies) >= 1000 else part(0, 0), ms(max(latencies)),
            part(p50, base_us), part(row["offline_wave_ns"] / row["elapsed_ns"], free), part(row["cycles"], row.get("preemptions"))]


def sim_columns(row):
    return [ms(row["latency_ns"]["p50"] / 1000), part(row["ratio_p50"] or 1, 1), part(row["be_norm"] or 0, 1), part(row["cycles"], row["preemptions"])]


def table(bed, sim):
    base, by_itself = quantile(bed["exclusive"]["latency_us"], 500), bed["alone"]
    free = by_itself["offline_wave_ns"] / by_itself["elapsed_ns"]
    print(f"{REQUESTS} requests a row, one each {PERIOD_MS} ms. x: to exclusive. offline: to itself alone. cycles: of the device, for each preemption.")
    print(f"{'':<16} {'bed: software cost under emulation, ms':<62} | simulated, ms")
    heads = "p50 p95 p99 max x offline cycles | p50 x offline cycles".split()
    print(f"{'':<16} " + " ".join("|" if head == "|" else f"{head:>8}" for head in heads))
    for name, model in sim.items():
        print(f"{name:<16} " + " ".join([*bed_columns(bed[name], base, free), "|", *sim_columns(model)]))


def main():
    if sys.argv[1:2] == [INSIDE]:
        measure()
        return
    build = os.environ.get("GPREEMPT_BUILD", tap.BUILD)
    targets = ["gpreempt", "gpreemptd", "libgpreempt-agent.so", "tests/kernel/served"]
    subprocess.run(["ninja", "-C", build, *targets], check=True, stdout=sys.stderr)
    bed, sim = run_bed(os.path.abspath(build)), run_sim(build)
    table(bed, sim)
    if sys.argv[1:]:
        tap.write(sys.argv[1], json.dumps({"requests": REQUESTS, "scenario": SCENARIO, "software_cost": bed, "simulated": sim}) + "\n")


main()
