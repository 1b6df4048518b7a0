#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""slurm_table.py [--rounds N] [--seconds N] [--out FILE] [--again FILE]: what gpreempt is worth to a cluster of Slurm's. GPREEMPT_BUILD says which build.

Four nodes on this machine, a simulated GPU and a gpreemptd each, Debian's Slurm, as root: a service on each node, alone; with four training
jobs beside it; and the same without gpreempt. A round has all three. Training goes on from before the first request until after the last.
--again: from a file that --out wrote.
Exits with 1 if a bar is missed, which is said of a machine with nothing else to do: simulated GPUs run in real time.
"""

import argparse
import json
import os
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import tap
from cluster import NODES, TRAIN, USER, cluster, serving, why_not
from gpreemptd import until

RATE = 10
SLO_MS = 50
EACH = 4  # training jobs, on a node
SERVICE = ("submitted", "slo_met", "latency_ns", "late_ns")
TRAINING = ("completed", "elapsed_ns", "per_second")
ROWS = {"alone": "services alone", "gpreempt": "with gpreempt", "without": "without"}
LEAST_IN_TIME = 0.95
LEAST_TRAINING = 0.8
SOON = 60.0  # s


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return {"cpu": names[0] if names else "unknown", "cores": len(os.sched_getaffinity(0))}


def put(c, command, node, *options):
    return c.batch(f"exec {command} --json", "-w", node, "--gres=shard:1", "-o", f"{c.folder}/out/%j", "-e", "/dev/null", *options, user=USER)


def figures(c, number, keys):
    """Of what the program of a job printed"""
    c.ends(number)
    said = json.loads(tap.read(f"{c.folder}/out/{number}"))
    return {key: said[key] for key in keys}


def serve(c, seconds, *options):
    services = [put(c, serving(seconds, RATE, "--slo", f"{SLO_MS}ms"), node, "-p", "services", *options) for node in NODES]
    for number in services:
        c.ends(number, "COMPLETED", patience=seconds + SOON)
    return [figures(c, number, SERVICE) for number in services]


def train(c, nodes, *options):
    jobs = [put(c, TRAIN, node, *options) for node in nodes]
    for number in jobs:
        until(lambda number=number: c.state(number) == "RUNNING", "it runs", SOON)
    return jobs


def crowd(c, seconds, online=(), offline=()):
    """A service on each node, and training jobs beside it"""
    jobs = train(c, [node for node in NODES for _ in range(EACH)], *offline)
    services = serve(c, seconds, *online)
    c.good("scancel", "--full", "--signal=TERM", *map(str, jobs))
    return {"services": services, "training": [figures(c, number, TRAINING) for number in jobs]}


def is_quiet(c):
    until(lambda: c.is_idle() and all(node.is_quiet() for node in c.nodes.values()), "nothing is left", SOON)


def take_round(c, seconds):
    online, offline = ("--gpreempt=online",), ("--gpreempt=offline",)
    alone = put(c, f"{TRAIN} --duration {max(4, seconds // 2)}s", NODES[0], *offline)
    found = {"training_alone": figures(c, alone, TRAINING), "alone": {"services": serve(c, seconds, *online), "training": []}}
    is_quiet(c)
    found["gpreempt"] = crowd(c, seconds, online, offline)
    is_quiet(c)
    for node in c.nodes.values():
        node.kill_daemon()
    found["without"] = crowd(c, seconds)
    for node in c.nodes.values():
        node.start_daemon()
    return found


def measure(rounds, seconds):
    with cluster() as c:
        os.mkdir(f"{c.folder}/out")
        os.chmod(f"{c.folder}/out", 0o777)
        return {"schema": "gpreempt-slurm-table-1", "machine": machine(), "slurm": c.good("sinfo", "--version").split()[-1], "nodes": len(NODES), "rate": RATE,
                "slo_ms": SLO_MS, "jobs_each": EACH, "seconds": seconds, "rounds": [take_round(c, seconds) for _ in range(rounds)]}


# What it comes to

def summary(said, name):
    """Of all rounds of a row: requests; the part in time; the highest p50, p95 and latency of any service; of each round training as a part
    of what the GPUs do alone"""
    services = [one for found in said["rounds"] for one in found[name]["services"]]
    requests = sum(one["submitted"] for one in services)
    latencies = [one["latency_ns"] for one in services if one["latency_ns"]]
    highest = [max((one[key] for one in latencies if one[key]), default=None) for key in ("p50", "p95", "max")]
    training = [sum(one["per_second"] for one in found[name]["training"]) / said["nodes"] / found["training_alone"]["per_second"] for found in said["rounds"]]
    return requests, sum(one["slo_met"] for one in services) / requests, highest, training


def cells(name, row):
    requests, in_time, highest, training = row
    latency = " ".join(f"{'-':>8}" if ns is None else f"{ns / 1e6:8.1f}" for ns in highest)
    mean = sum(training) / len(training)
    shares = f"{mean:9.1%}  {min(training):.1%} to {max(training):.1%}" if mean else f"{'-':>9}"
    return f"{ROWS[name]:14} {requests:8} {in_time:8.1%} {latency} {shares}"


def judge(rows):
    _, in_time, _, training = rows["gpreempt"]
    is_met = in_time >= LEAST_IN_TIME and min(training) >= LEAST_TRAINING
    print(f"with gpreempt at least {LEAST_IN_TIME:.0%} in time, and {LEAST_TRAINING:.0%} of the training in each round: {'yes' if is_met else 'NO'}")
    return is_met


def show(said):
    n, each = said["nodes"], said["jobs_each"]
    late = max(one["late_ns"]["max"] for found in said["rounds"] for name in ROWS for one in found[name]["services"])
    print(f"Slurm {said['slurm']}, {n} nodes on one machine of {said['machine']['cores']} cores, a simulated GPU each; "
          f"on each a service of {said['rate']} requests/s,\n{said['slo_ms']} ms each may take, and {each} training jobs; {len(said['rounds'])} x {said['seconds']} s")
    print(f"{'':14} {'requests':>8} {'in time':>8} {'p50 ms':>8} {'p95 ms':>8} {'max ms':>8} {'training':>9}  each round")
    rows = {name: summary(said, name) for name in ROWS}
    for name, row in rows.items():
        print(cells(name, row))
    print("p50, p95, max: the highest of any service. training: steps, of what each GPU does with one job and nothing else.")
    print(f"The host woke services at most {late / 1e6:.1f} ms late; that is in the figures.")
    return judge(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--out")
    parser.add_argument("--again")
    options = parser.parse_args()
    if not options.again and why_not():
        sys.exit(f"slurm_table: {why_not()}")
    said = json.loads(tap.read(options.again)) if options.again else measure(options.rounds, options.seconds)
    if options.out:
        tap.write(options.out, json.dumps(said, indent=1) + "\n")
    sys.exit(not show(said))


main()
