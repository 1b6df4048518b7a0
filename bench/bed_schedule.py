#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=3000 memory=3G instruction_ns=1 param=gfx=gfx90a param=cus=4 param=poll_us=100
"""bed_schedule.py [FILE]: what scheduling does in the bed, and what the simulator predicts of it; FILE gets all of it as JSON.

bed_schedule.py --again FILE: from the rows of such a file, with the simulator as it is now; the rest of FILE is made anew.

Two programs on AMD's own runtime, on the stock driver and a software GPU: one serves requests by the clock, one always has work.
Exclusive is the first alone, native both without gpreemptd. The bed's clock goes by instructions: of the host's load it feels no
more than waking late. What software costs there is an emulated processor's and a checking kernel's, and says nothing of a card.

Latency by the model's time is from a request's sending to its end on the GPU. What the program takes before and after is software
cost, and stands apart. The simulator has the bed's device, and of what scheduling costs in software what was measured of its parts,
in gpreemptd's events and the GPU's counters. REQUESTS in the environment: how many each row has, 1000 unless given.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "tests"))
import amd
import bed_figures
import tap

INSIDE = "inside"  # the first argument in the machine, where the host's environment is not
REQUESTS = int(os.environ.get("REQUESTS", "1000"))
MS = 1_000_000  # ns
PERIOD_MS, DISPATCHES, WAVE_MS = 61, 3, 4  # no whole number of waves: else each request finds offline's at the same point
SLOTS = 128  # waves that the device runs at a time: 4 compute units of 32
ONLINE, OFFLINE = 16, 32  # workgroups of 4 waves: half of the device, and all of it
QUEUES = 2
OWN_QUEUES = 1  # that the runtime has besides, and that are stopped with the others
ALONE_S = 5
PART = 100  # requests
MARK = "row: "
CONF = "[scheduler]\nmax_starve = never\n"
SIM = {"exclusive": "exclusive", "native": "native", "scheduled": "interrupt-single", "scheduled+hints": "interrupt-single+hints"}
SAVE_NS = 10460  # of 128 waves, by the constants of kernel/softgpu/main.c
MACHINE = "QEMU under TCG, one CPU of 1 ns an instruction; Linux with all checkers; software GPU, gfx90a, 4 compute units"
SCENARIO = f"""[scenario]
name = bed
device = bed.ini
duration = {{seconds:g}}s
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
rate = {{rate:.3f}}
prepare = 0s
[offline train]
work = step
queues = {QUEUES}
idle_queues = {OWN_QUEUES}
"""


# In the machine

class Meter:
    """What the device did, since it was made."""

    def __init__(self, offline):
        self.offline, self.begin = offline, time.monotonic()
        self.before = self.read()

    def read(self):
        return {"offline_wave_ns": amd.wave_ns(self.offline.pid) if self.offline else 0,
                **{name: amd.stat(name) for name in ("busy_ns", "cycles", "off_ns", "waves_saved", "waves_restored")}}

    def figures(self):
        now = self.read()
        return {"elapsed_ns": int((time.monotonic() - self.begin) * 1e9), **{name: now[name] - self.before[name] for name in now}}


def start_offline(socket, role):
    offline = amd.Served(QUEUES, socket, role)
    offline.tell(f"busy {OFFLINE} {WAVE_MS * 1000}")
    offline.goes_on()
    return offline


def serve_part(online, offline, requests):
    meter = Meter(offline)
    online.serve(requests, PERIOD_MS, DISPATCHES, ONLINE, WAVE_MS * 1000)
    start, served = online.served()
    return {**meter.figures(), "start_ns": start, "requests": served}


def serve(online, offline, requests, events=lambda: []):
    """In parts: gpreemptd remembers the events of some forty preemptions, and reading them in between takes no time of requests."""
    parts = []
    for first in range(0, requests, PART):
        part = serve_part(online, offline, min(PART, requests - first))
        parts.append({**part, "events": [event for event in events() if event[1] >= part["start_ns"]]})
    return {"parts": parts}


def end(online, offline, requests):
    tap.same(online.end(), requests * DISPATCHES, "dispatches")
    if offline:
        offline.end()


def unscheduled(requests, has_offline):
    online, offline = amd.Served(1), start_offline(None, None) if has_offline else None
    row = serve(online, offline, requests)
    end(online, offline, requests)
    return row


def alone():
    offline = start_offline(None, None)
    meter = Meter(offline)
    time.sleep(ALONE_S)
    figures = meter.figures()
    offline.end()
    return figures


def events(machine):
    """[(event, when, latency)] of what gpreemptd remembers, on the monotonic clock"""
    ahead = time.time_ns() - time.monotonic_ns()
    found = map(json.loads, machine.good("events", "--json", "--kind", "suspend,resume").stdout.splitlines())
    return [(event["event"], event["time_ns"] - ahead, event["latency_ns"]) for event in found]


def cpu_ns(pid):
    user, system = tap.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def scheduled(requests, hints):
    with tempfile.TemporaryDirectory() as folder, amd.Machine(folder, "--config", tap.write(f"{folder}/conf", CONF)) as machine:
        offline = start_offline(machine.socket, "offline")
        online = machine.adopt(amd.Served(1, machine.socket, "online", hints=hints))
        machine.adopt(offline)
        before = [amd.stat("cycles"), machine.stats()["preemptions"], cpu_ns(machine.daemon.pid)]
        row = serve(online, offline, requests, lambda: events(machine))
        offline.goes_on()  # the last preemption is over
        after = [amd.stat("cycles"), machine.stats()["preemptions"], cpu_ns(machine.daemon.pid)]
        end(online, offline, requests)
        return {**row, **{name: b - a for name, a, b in zip(("cycles", "preemptions", "daemon_cpu_ns"), before, after)}}


def measure(requests):
    print("1..1")
    for name, row in (("alone", alone),
                      ("exclusive", lambda: unscheduled(requests, False)),
                      ("native", lambda: unscheduled(requests, True)),
                      ("scheduled", lambda: scheduled(requests, False)),
                      ("scheduled+hints", lambda: scheduled(requests, True))):
        print(MARK + json.dumps({"row": name, **row()}), flush=True)
    print("ok 1 - measured")


# On the host

def run_bed(build, requests):
    """{row: figures}"""
    targets = ["gpreempt", "gpreemptd", "libgpreempt-agent.so", "tests/kernel/served"]
    subprocess.run(["ninja", "-C", build, *targets], check=True, stdout=sys.stderr)
    done = subprocess.run([os.path.join(tap.SOURCE, "kernel", "bed", "run"), "--build", build, f"{os.path.abspath(__file__)} {INSIDE} {requests}"],
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout)
    rows = [json.loads(line.partition(MARK)[2]) for line in done.stdout.splitlines() if MARK in line]
    return {row.pop("row"): row for row in rows}


def set_key(text, key, value):
    new, n = re.subn(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
    tap.same(n, 1, f"lines of {key}")
    return new


def device(cost):
    """The bed's, as kernel/softgpu/main.c has it, with what software costs there."""
    text = tap.read(tap.SOURCE, "share", "devices", "mi300x.ini")
    keys = {"xccs": 1, "cus_per_xcc": SLOTS // 32, **bed_figures.device_keys(cost, SAVE_NS)}
    for key, value in keys.items():
        text = set_key(text, key, round(value))
    return text


def scenario(requests):
    return SCENARIO.format(seconds=1 + requests * PERIOD_MS / 1000, rate=1000 / PERIOD_MS)


def run_sim(build, requests, cost):
    """{row: figures}"""
    with tempfile.TemporaryDirectory() as folder:
        tap.write(f"{folder}/bed.ini", device(cost))
        done = tap.good("sim", tap.write(f"{folder}/scenario.ini", scenario(requests)), "--json", "--only", ",".join(SIM.values()),
                        program=os.path.join(build, "gpreempt"))
    rows = {row["config"] + "+hints" * row["hints"]: row for row in json.loads(done.stdout)["rows"]}
    return {name: predicted(rows[config]) for name, config in SIM.items()}


def predicted(row):
    return {"requests": row["requests"], "model": {name: row["latency_ns"][name] for name in ("p50", "p95", "p99", "max")},
            "offline": row["be_norm"], "preemptions": row["preemptions"],
            "cycles_per_preemption": row["cycles"] / row["preemptions"] if row["preemptions"] else None}


def number(value, unit=1.0):
    return f"{'-':>7}" if value is None else f"{value / unit:>7.2f}"


def compared(bed, model, unit=1.0):
    """What the bed has, what was predicted, and the first as a part of the second."""
    ratio = None if bed is None or not model else bed / model
    return " ".join([number(bed, unit), number(model, unit), number(ratio)])


def print_row(name, cells):
    print(f"{name:<15} " + " | ".join(f"{cell:<23}" for cell in cells).rstrip())


def table(bed, sim):
    base, model_base = bed["exclusive"]["model"]["p50"], sim["exclusive"]["model"]["p50"]
    print("By the model's time: online latency in ms, offline throughput as a part of itself alone. Bed, predicted, one over the other.")
    print_row("", ("p50", "to exclusive", "p99", "offline", "cycles per preemption"))
    for name, row in bed.items():
        model = sim[name]
        print_row(name, (compared(row["model"]["p50"], model["model"]["p50"], MS),
                         compared(row["model"]["p50"] / base, model["model"]["p50"] / model_base),
                         compared(row["model"]["p99"], model["model"]["p99"], MS),
                         compared(row["offline"] if model["offline"] else None, model["offline"]),
                         compared(row["cycles_per_preemption"], model["cycles_per_preemption"])))


def software(bed, cost):
    print("\nSoftware cost under emulation, ms: what the program takes before and after each request, and the whole request.")
    print_row("", [f"{part}: p50, p99, max" for part in ("before", "after", "whole")])
    for name, row in bed.items():
        print_row(name, [" ".join(number(row[part][tail], MS) for tail in ("p50", "p99", "max")) for part in ("before", "after", "whole")])
    print("Of scheduling: " + ", ".join(f"{name.replace('_', ' ')} {ns / MS:.2f}" for name, ns in cost.items()) +
          ", gpreemptd's processor time for each preemption " + " and ".join(f"{row['daemon_ns'] / MS:.2f}" for row in bed.values() if row["daemon_ns"]))


def verdict(bed, sim):
    """p50 and throughput are to be near; tails are only shown."""
    far = [f"{name}: p50" for name, row in bed.items() if not bed_figures.is_near(row["model"]["p50"], sim[name]["model"]["p50"])]
    far += [f"{name}: offline" for name, row in bed.items() if sim[name]["offline"] and not bed_figures.is_near(row["offline"], sim[name]["offline"])]
    print(f"\np50 and offline within {bed_figures.NEAR:.0%} of what was predicted: " + (f"not {', '.join(far)}" if far else "all"))


def report(rows, build):
    """All of it, as the file has it."""
    queues, requests = QUEUES + OWN_QUEUES, sum(len(part["requests"]) for part in rows["exclusive"]["parts"])
    cost = bed_figures.costs(rows["scheduled"], rows["scheduled+hints"], queues, PERIOD_MS * MS)
    bed = {name: bed_figures.figures(rows[name], rows["alone"]) for name in SIM}
    sim = run_sim(build, requests, cost)
    table(bed, sim)
    software(bed, cost)
    verdict(bed, sim)
    return {"machine": MACHINE, "requests": requests, "period_ms": PERIOD_MS, "scenario": scenario(requests), "device": device(cost),
            "cost_ns": cost, "bed": bed, "simulated": sim, "rows": rows}


def main():
    if sys.argv[1:2] == [INSIDE]:
        measure(int(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="no run: the rows of FILE")
    parser.add_argument("file", metavar="FILE", nargs="?")
    options = parser.parse_args()
    if options.again and not options.file:
        parser.error("--again needs the FILE of an earlier run")
    build = os.environ.get("GPREEMPT_BUILD", tap.BUILD)
    rows = json.loads(tap.read(options.file))["rows"] if options.again else run_bed(os.path.abspath(build), REQUESTS)
    all_of_it = report(rows, build)
    if options.file:
        tap.write(options.file, json.dumps(all_of_it) + "\n")


main()
