#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""verify.py PREFIX [OUT]: gpreempt verify on an NVIDIA GPU: all checks with jobs of job.cu, then what it can of a PyTorch training, and the notes' scripts.
verify.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. Prints a table last; OUT: a file for all of it as JSON. FULL=1: real models as often as the notes ask for.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile
import time

import beside

FULL = ["--full"] if os.environ.get("FULL") == "1" else []


class Machine:
    """gpreemptd, and what is run under it."""

    def __init__(self, prefix):
        self.prefix, self.folder = prefix, tempfile.mkdtemp()
        self.env = dict(os.environ, GPREEMPT_SOCKET=f"{self.folder}/gpreemptd.sock", PATH=f"{prefix}/bin:{os.environ['PATH']}")
        self.daemon = subprocess.Popen([f"{prefix}/bin/gpreemptd", "--socket", self.env["GPREEMPT_SOCKET"]])
        while self.run("gpreempt", "list", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) and self.daemon.poll() is None:
            time.sleep(0.1)

    def run(self, *words, **more):
        return subprocess.run(words, env=self.env, check=False, **more).returncode

    def verify(self, name, *words):
        """A folder of results, one for each check."""
        out = f"{self.folder}/results/{name}"
        print(f"# {name}: {' '.join(words)}", flush=True)
        self.run("gpreempt", "verify", *words, "--out", out)
        found = []
        for path in sorted(glob.glob(f"{out}/*.json"), key=os.path.getmtime):
            with open(path, encoding="utf-8") as file:
                found.append(json.load(file))
        return found


def script(machine, name, *words):
    code = machine.run(sys.executable, f"{machine.prefix}/share/gpreempt/notes/{name}", *words)
    return {"script": " ".join([name, *words]), "status": code}


def measure(prefix):
    machine = Machine(prefix)
    try:
        yield from measure_on(machine)
    finally:
        beside.end_daemon(machine.daemon)


def measure_on(machine):
    """As it grows."""
    job = beside.compiled("job", machine.folder)
    found = {"machine": beside.machine(), "job": machine.verify("job", "all", "--job", job), "scripts": []}
    yield found
    if FULL:
        found["full_models"] = machine.verify("models", "models", "--full", "--job", job)
        yield found
    found["training"] = verify_training(machine)
    yield found
    found["scripts"] = [script(machine, "models/bert_training.py", "--epochs", "2")]
    machine.run("gpreempt", "report", "--old", f"{machine.folder}/results/job", "--new", f"{machine.folder}/results/job", "--out", f"{machine.folder}/report.md")
    with open(f"{machine.folder}/report.md", encoding="utf-8") as file:
        found["report"] = file.read()
    yield found


def verify_training(machine):
    training = beside.Training(beside.environment(machine.prefix, machine.folder, "offline", 100))
    try:
        training.ready()
        training.tell("go")
        return machine.verify("training", "all", "--pid", str(training.pid))
    finally:
        training.end()


OFF, ON = ("suspend_ms", "batch_unmap_ms"), ("resume_ms", "fast_remap_ms")  # by the old way, by the new one


def means(check, names):
    """Of those figures that it has; of compare the old way's with 1, 3 and 10 queues, and the new one's."""
    rows = sorted(check["figures"].items(), key=lambda row: int("0" + "".join(filter(str.isdigit, row[0]))))
    found = [", ".join(f"{row['mean']:.2f}" for key, row in rows if key.endswith(name)) for name in names]
    return "; ".join(filter(None, found)) or "-"


def table(found):
    print(f"Measured on {found['machine']}. gpreempt verify: ms, means; of compare with 1, 3 and 10 queues, the old way and then the new.\n")
    print("| jobs | check | status | off the GPU | on again | requests |")
    print("|---|---|---|---|---|---|")
    for name, words in (("job", "job.cu"), ("full_models", "job.cu, --full"), ("training", "a PyTorch training, --pid")):
        for check in found.get(name, []):
            served = ", ".join(f"{key[:-3].replace('_', ' ')} {row['mean']:.2f}" for key, row in check["figures"].items() if key.startswith(("case", "online")))
            print(f"| {words} | {check['name']} | {check['status']}{': ' + check['reason'] if check['reason'] else ''}"
                  f" | {means(check, OFF)} | {means(check, ON)} | {served or '-'} |")
    print()
    for check in [one for name in ("job", "full_models", "training") for one in found.get(name, [])]:
        for fact in (fact["what"] for fact in check["facts"] if not fact["is_so"]):
            print(f"{check['name']}: not so: {fact}")
        for row in (row for row in check["criteria"] if row["level"] == "failed"):
            print(f"{check['name']}: not met: {row['what']} ({row['figure']}) {row['value']:.2f}, must {row['sign']} {row['must']} {row['unit']}")
    for one in found["scripts"]:
        print(f"{one['script']}: exit {one['status']}")


beside.run(measure, table, __doc__)
