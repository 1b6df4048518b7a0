#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""smoke.py PREFIX: on a machine with an NVIDIA GPU, whether gpreempt finds, stops and resumes a CUDA program, and loses nothing.

PREFIX is where gpreempt was installed. Prints what it sees, and a table last. Exits 1 if anything is not as it should be.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import beside

HERE = os.path.dirname(os.path.abspath(__file__))
PREFIX = os.path.abspath(sys.argv[1])
CYCLES = 200
STILL = 0.3  # s without a kernel that ends: they take a millisecond
LEASE = 1.0


PROGRAM, DAEMON, AGENT = f"{PREFIX}/bin/gpreempt", f"{PREFIX}/bin/gpreemptd", f"{PREFIX}/lib/libgpreempt-agent.so"
rows = []
bad = 0


def row(what, value, good=True):
    global bad
    bad += not good
    rows.append((what, value, "" if good else "  WRONG"))
    print(f"# {what}: {value}{'' if good else '  WRONG'}", flush=True)


class Work:
    """bench/h200/work.cu, or another program that prints the same."""

    def __init__(self, *command, env=None):
        self.process = subprocess.Popen(command, env=dict(os.environ, **(env or {})), stdout=subprocess.PIPE, text=True)
        self.pid, self.done, self.sum, self.last = self.process.pid, 0, None, time.monotonic()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "done":
                self.done, self.last = int(words[1]), time.monotonic()
            elif words[0] == "sum":
                self.sum = words[1]

    def goes_on(self, patience=10.0):
        before, end = self.done, time.monotonic() + patience
        while self.done <= before + 1 and time.monotonic() < end:
            time.sleep(0.001)
        return self.done > before + 1

    def stands_still(self):
        time.sleep(0.02)  # what had ended is told by then
        before = self.done
        time.sleep(STILL)
        return self.done == before

    def end(self):
        self.process.wait(300)
        self.thread.join(5)
        return self.sum


def gpreempt(*words):
    return subprocess.run([PROGRAM, *words], env=dict(os.environ, GPREEMPT_SOCKET=SOCKET), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)


@contextlib.contextmanager
def daemon(log):
    process = subprocess.Popen([DAEMON, "--socket", SOCKET, "--lease", f"{LEASE}s"], stderr=log)
    while gpreempt("list").returncode and process.poll() is None:
        time.sleep(0.05)
    yield process
    if process.poll() is None:
        process.terminate()
        process.wait(10)


def queues(pid):
    done = gpreempt("list", "--json")
    return [one for one in json.loads(done.stdout)["queues"] if one["pid"] == pid] if done.returncode == 0 else []


def until(condition, patience=20.0):
    end = time.monotonic() + patience
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()



def preempts(work, name):
    row(f"{name}: found", len(queues(work.pid)), until(lambda: queues(work.pid)))
    print(gpreempt("list").stdout)
    row(f"{name}: goes on", work.goes_on(), work.done > 0)
    done = gpreempt("suspend", str(work.pid), "--lease", "60s")
    row(f"{name}: suspend", done.stderr.strip() or "done", done.returncode == 0)
    still = work.stands_still()
    row(f"{name}: stands still", still, still)
    done = gpreempt("resume", str(work.pid))
    row(f"{name}: resume", done.stderr.strip() or "done", done.returncode == 0)
    goes = work.goes_on()
    row(f"{name}: goes on", goes, goes)


def cycles(work, name):
    failed = 0
    for _ in range(CYCLES):
        if work.process.poll() is not None:
            break
        failed += gpreempt("suspend", str(work.pid), "--lease", "60s").returncode != 0
        failed += gpreempt("resume", str(work.pid)).returncode != 0
    row(f"{name}: {CYCLES} suspensions, failed", failed, failed == 0)
    found = json.loads(gpreempt("stats", "--json").stdout)["devices"][0]
    row(f"{name}: stats", json.dumps({key: found[key] for key in found if key in ("suspends", "resumes", "failures", "suspend", "resume")}))


def killed(work, process, name):
    gpreempt("suspend", str(work.pid), "--lease", "600s")
    still = work.stands_still()
    begun = time.monotonic()
    process.send_signal(signal.SIGKILL)
    process.wait()
    goes = work.goes_on(LEASE * 10)
    row(f"{name}: gpreemptd killed -9 while it was stopped: stood still, goes on after s", f"{still} {time.monotonic() - begun:.2f}", still and goes)


def main():
    global SOCKET
    folder = tempfile.mkdtemp()
    SOCKET = f"{folder}/gpreemptd.sock"
    program = f"{folder}/work"
    subprocess.run(["nvcc", "-O2", "-arch=native", "-o", program, f"{HERE}/work.cu"], check=True)
    print(gpreempt("doctor").stdout)
    other = beside.other_gpus(json.loads(gpreempt("doctor", "--json").stdout), beside.gpu("name,uuid,pci.bus_id"))
    row("GPUs by name, bus and UUID, as nvidia-smi has them", "the same" if not other else other, not other)
    words = ("8000", "60000")
    begun = time.monotonic()
    alone = Work(program, *words)
    want = alone.end()
    row("alone: seconds, sum", f"{time.monotonic() - begun:.2f} {want}", want is not None)
    with open(f"{folder}/log", "w+", encoding="utf-8") as log:
        with daemon(log) as process:
            work = Work(program, *words, env={"LD_PRELOAD": AGENT, "GPREEMPT_SOCKET": SOCKET})
            preempts(work, "CUDA")
            cycles(work, "CUDA")
            killed(work, process, "CUDA")
            have = work.end()
            row("CUDA: sum", have, have == want)
        log.seek(0)
        print(log.read())
    for what, value, wrong in rows:
        print(f"{what:80} {value}{wrong}")
    shutil.rmtree(folder)
    return bad > 0


sys.exit(main())
