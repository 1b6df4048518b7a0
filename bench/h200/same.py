#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""same.py PREFIX [OUT]: whether offline programs on an NVIDIA GPU come to the same result when they are preempted ten thousand times as when they are not.
same.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. Kernels of CUDA that spin, read and write memory, and multiply matrices, whose sums depend on each kernel; and a training of
PyTorch with fixed seeds and deterministic kernels, of which every loss counts. All at once, first without gpreempt; then with it, each suspended and resumed again
and again (preempt.py). One that ends before it was preempted so often begins anew. Prints a table last; OUT: a file for all of it as JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading

import beside

COUNT, MOST_RUNS = int(os.environ.get("COUNT", "10000")), 8
KERNELS, STEPS = os.environ.get("KERNELS", "8000"), os.environ.get("STEPS", "1500")
ITERATIONS = {"spin": "60000", "memory": "8", "gemm": "1"}  # a kernel takes about a millisecond
PATIENCE = 120.0  # s, for one that nobody preempts any more to come to its end


class Run:
    """A program that prints "done ..." and in the end "sum X"."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(command, env=dict(os.environ, **env), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.sum, self.works = None, threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "done":
                self.works.set()
            elif words[0] == "sum":
                self.sum = words[1]
        self.works.set()

    def end(self):
        """Its sum; None: it came to no end."""
        self.thread.join(PATIENCE)
        self.process.kill()
        self.process.wait()
        return self.sum


def preempt(bench, run, count):
    run.works.wait(PATIENCE)
    env = {**os.environ, **bench.environment("offline"), "LD_PRELOAD": ""}
    done = subprocess.run([sys.executable, f"{beside.HERE}/preempt.py", str(run.process.pid), str(count)], env=env, text=True, stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout or '{"preempted": 0, "failed": 1}')


def runs_of(bench, command, runs):
    left = COUNT
    while left > 0 and len(runs) < MOST_RUNS:
        run = Run(command, bench.environment("offline"))
        try:
            found = preempt(bench, run, left)
        finally:
            runs.append({"sum": run.end()})
        runs[-1].update(found)
        left -= found["preempted"]


def together(threads):
    for thread in threads:
        thread.daemon = True
        thread.start()
    for thread in threads:
        thread.join()


def commands():
    work = beside.compiled("work", tempfile.mkdtemp())
    found = {f"CUDA, {kind}": [work, KERNELS, iterations, "4", kind] for kind, iterations in ITERATIONS.items()}
    found["PyTorch, training"] = [sys.executable, f"{beside.HERE}/program.py", "loss training", STEPS]
    return found


def measure(prefix):
    programs = commands()
    found = {name: {"alone": None, "runs": []} for name in programs}
    with beside.Bench(prefix, servers=(), weights=()) as bench:
        alone = {name: Run(command, {"LD_PRELOAD": ""}) for name, command in programs.items()}
        for name, run in alone.items():
            found[name]["alone"] = run.end()
        print(f"# alone: {found}", flush=True)
        bench.configure("")
        together([threading.Thread(target=runs_of, args=(bench, command, found[name]["runs"])) for name, command in programs.items()])
        print(bench.gpreempt("stats"))
    return dict(bench.how(), wanted=COUNT, programs=found)


def table(found):
    print(f"Measured on {found['machine']}. Suspended and resumed, and its result beside that of the same program alone.")
    print(f"{'program':20} {'preempted':>10} {'in runs of':>24} {'failed':>7}   result")
    for name, one in found["programs"].items():
        runs, times = one["runs"], [run.get("preempted", 0) for run in one["runs"]]
        same = one["alone"] is not None and runs and all(run["sum"] == one["alone"] for run in runs)
        print(f"{name:20} {sum(times):10} {', '.join(map(str, times)):>24} {sum(run.get('failed', 0) for run in runs):7}   {one['alone']}, {'the same' if same else 'DIFFERS'}")
        if sum(times) < found["wanted"]:
            print(f"WRONG: {name} was preempted {sum(times)} times, not {found['wanted']}")


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
