#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""programs.py PREFIX [OUT]: whether unmodified programs on an NVIDIA GPU are found, stopped and resumed, with the same result.
programs.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. Each program runs twice, beside all others: without gpreempt, and with it, where it is also suspended again and again.
Prints a table last; OUT: a file for all of it as JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import beside

STEPS, CYCLES = os.environ.get("STEPS", "1500"), int(os.environ.get("CYCLES", "5"))
QUICK, STILL = 5, 0.25  # suspensions in a cycle, and s that the first of them lasts
PYTORCH = ("eager training", "compiled training", "graph training", "eager inference", "compiled inference", "sync server", "async server", "fork server")
PATIENCE = 150.0


class Run:
    def __init__(self, command, env):
        self.process = subprocess.Popen(command, env=dict(os.environ, **env), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid, self.done, self.sum, self.is_ready = self.process.pid, 0, None, threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        for line in self.process.stdout:
            word, rest = (line.strip() + " ").split(" ", 1)
            if word == "done":
                self.done = int(rest.split()[0])
            elif word == "ready":
                self.is_ready.set()
            elif word == "pid":  # the child's, which has the context
                self.pid = int(rest)
            elif word == "sum":
                self.sum = rest.strip()
        self.is_ready.set()

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def moves(self, patience):
        before, end = self.done, time.monotonic() + patience
        while self.done == before and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.002)
        return self.done != before

    def end(self):
        self.process.wait(PATIENCE)
        self.thread.join(10)
        return self.sum


def found_of(bench, pid):
    listed = json.loads(bench.gpreempt("list", "--json"))["queues"]
    return sum(one["pid"] == pid for one in listed)


def cycle(bench, run, row):
    """Suspended, it stands still; resumed, it goes on."""
    for i in range(QUICK):
        bench.gpreempt("suspend", str(run.pid), "--lease", "60s")
        if i == 0:
            time.sleep(0.03)  # what had ended is told by then
            row["stopped"] += not run.moves(STILL)
        bench.gpreempt("resume", str(run.pid))
    row["suspended"] += QUICK
    row["cycles"] += 1
    row["resumed"] += run.moves(10.0)


def try_each(bench, runs, rows):
    for name, run in runs.items():
        rows[name]["queues"] = found_of(bench, run.pid)
    for _ in range(CYCLES):
        for name, run in runs.items():
            if run.process.poll() is None:
                cycle(bench, run, rows[name])


def start(bench, commands):
    """Without gpreempt and with it; all go on together."""
    alone = {name: Run(command, {"LD_PRELOAD": ""}) for name, command in commands.items()}
    runs = {name: Run(command, bench.environment("offline")) for name, command in commands.items()}
    for run in (*alone.values(), *runs.values()):
        run.is_ready.wait(PATIENCE)
    for run in (*alone.values(), *runs.values()):
        run.go()
    return alone, runs


def measure(prefix):
    bench = beside.Bench(prefix, servers=(), weights=())
    folder = tempfile.mkdtemp()
    commands = {"CUDA": [beside.compiled("contexts", folder), "1", STEPS, "20000"],
                "CUDA, two contexts": [f"{folder}/contexts", "2", STEPS, "20000"]}
    commands.update({f"PyTorch, {kind}": [sys.executable, f"{beside.HERE}/program.py", kind, STEPS] for kind in PYTORCH})
    rows = {name: {"queues": 0, "cycles": 0, "stopped": 0, "resumed": 0, "suspended": 0, "alone": None, "sum": None} for name in commands}
    with bench:
        bench.configure(beside.PARKING)
        alone, runs = start(bench, commands)
        try_each(bench, runs, rows)
        for name, row in rows.items():
            row.update(alone=alone[name].end(), sum=runs[name].end())
    return dict(bench.how(), programs=rows)


def table(found):
    print(f"Measured on {found['machine']}. Unmodified programs, suspended and resumed; the result is compared with that of a run without gpreempt.")
    print(f"{'program':30} {'queues':>7} {'suspended':>10} {'tried':>6} {'stood still':>12} {'went on':>8} {'result':>9}")
    for name, row in found["programs"].items():
        same = row["sum"] is not None and row["sum"] == row["alone"]
        print(f"{name:30} {row['queues']:7} {row['suspended']:10} {row['cycles']:6} {row['stopped']:12} {row['resumed']:8} {'the same' if same else 'DIFFERS':>9}")


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
