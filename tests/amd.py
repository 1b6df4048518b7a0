# SPDX-License-Identifier: MIT
"""What the tests of AMD's ways share, in the bed's machine: targets, gpreemptd, the program, and the software GPU's counters."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time

import tap

AGENT = os.path.join(os.path.abspath(tap.BUILD), "libgpreempt-agent.so")
DAEMON = os.path.join(os.path.abspath(tap.BUILD), "gpreemptd")
SERVED = os.path.join(os.path.abspath(tap.BUILD), "tests", "kernel", "served")
TARGET = os.path.join(os.path.abspath(tap.BUILD), "tests", "kernel", "target")
WAY_COST = os.path.join(os.path.abspath(tap.BUILD), "tests", "kernel", "way_cost")
PATIENCE = 120.0  # s; for a test that hangs: the machine is emulated, and its host may be busy
PATIENT = ("--lease", "3600s")  # what a busy host keeps from running for some seconds must not end a lease
SOME_LEASE = "6s"  # that ends soon, and not because the host was busy
STILL = 0.4  # s in which a running target ends dispatches, and a stopped one must not


def stat(name, device=0):
    for line in tap.read(f"/sys/kernel/debug/softgpu/{device}/stats").splitlines():
        key, value = line.split()
        if key == name:
            return int(value)
    raise KeyError(name)


def wave_ns(pid, device=0):
    """How long the waves of a process have run on the software GPU."""
    pasid = tap.read(f"/sys/class/kfd/kfd/proc/{pid}/pasid").strip()
    return int(dict(line.split() for line in tap.read(f"/sys/kernel/debug/softgpu/{device}/processes").splitlines()).get(pasid, 0))


def until(condition, why, patience=PATIENCE):
    end = time.monotonic() + patience
    while not condition():
        tap.true(time.monotonic() < end, f"not in {patience:g} s: {why}")
        time.sleep(0.02)


class Target:
    """A process that keeps its queues busy: tests/kernel/target.c."""

    def __init__(self, queues, socket, *words, env=None, agent=True):
        preload = {"LD_PRELOAD": AGENT} if agent else {}
        self.start(self.command(queues, words), dict(os.environ, GPREEMPT_SOCKET=socket, **preload, **(env or {})))

    def start(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.pid = self.process.pid
        self.rings = self.hear_ready()

    def command(self, queues, words):
        return [TARGET, str(queues), *words]

    def hear_ready(self):
        word, *queues = self.process.stdout.readline().split()
        tap.same(word, "ready", "what the target says first")
        return {int(one.split(":")[0]): int(one.split(":")[1], 16) for one in queues}

    def begin(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().split()[1:]

    def ask(self, order):
        self.begin(order)
        return self.answer()

    def tell(self, order):
        tap.same(self.ask(order)[0], "0", order)

    def progress(self):
        return {int(id): int(ended) for id, ended in (one.split(":") for one in self.ask("progress"))}

    def stands_still(self, queues=None):
        """Which of its queues end nothing for a while, all of them unless told."""
        before = self.progress()
        time.sleep(STILL)
        after = self.progress()
        return all(before[id] == after[id] for id in (before if queues is None else queues))

    def goes_on(self, queues=None):
        before = self.progress()
        until(lambda: all(self.progress()[id] > before[id] for id in (before if queues is None else queues)),
              f"{self.pid} ends a dispatch on each queue, from {before}")

    def end(self):
        """Nothing was lost, and nothing done twice."""
        begun, ended, wrong, status = map(int, self.ask("end"))
        tap.same((ended, wrong, status), (begun, 0, 0), "dispatches ended, ended twice, error")
        tap.same(self.process.wait(PATIENCE), 0, "the target's exit")
        return begun

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait(PATIENCE)


class Served(Target):
    """A program on AMD's own runtime: tests/kernel/served.c. role: online or offline; None: it runs without gpreempt."""

    def __init__(self, queues, socket=None, role=None, hints=False, weight=100):
        run = [tap.PROGRAM, "run", f"--{role}", "--weight", str(weight), "--socket", socket, "--"] if role else []
        self.start([*run, SERVED, str(queues), *([socket] if hints else [])], dict(os.environ))

    def serve(self, requests, period_ms, dispatches, workgroups, wave_us):
        """Only begins; served() waits for the end."""
        self.begin(f"serve {requests} {int(period_ms * 1000)} {dispatches} {workgroups} {wave_us}")

    def is_serving(self):
        return not select.select([self.process.stdout], [], [], 0)[0]

    def served(self):
        """when it began, on the monotonic clock, and (latency, sent, ended) of each, from when it was to come: all ns"""
        start, *requests = self.answer()
        return int(start), [tuple(map(int, one.split(":"))) for one in requests]


def service_rights():
    """What starts gpreemptd as its service does, as far as capabilities go."""
    unit = tap.read(tap.SOURCE, "share", "gpreemptd.service.in")
    names = re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M).group(1).lower().split()
    kept = "".join(f",+{name[len('cap_'):]}" for name in names)
    return "setpriv", f"--bounding-set=-all{kept}", "--inh-caps=-all", "--no-new-privs"


class Machine:
    """gpreemptd and targets under it. No lease ends, unless options have one."""

    def __init__(self, folder, *options, before=()):
        self.before = before  # gpreemptd is started by that
        self.socket = f"{folder}/gpreemptd.sock"
        self.log = open(f"{folder}/gpreemptd.log", "a+", encoding="utf-8")
        self.targets = []
        self.start(*options)

    def start(self, *options):
        self.daemon = subprocess.Popen([*self.before, DAEMON, "--socket", self.socket, *PATIENT, *options], stderr=self.log)
        until(lambda: self.run("list").returncode == 0, "gpreemptd answers")

    def target(self, queues, *words, **more):
        return self.adopt(Target(queues, self.socket, *words, **more))

    def adopt(self, target):
        self.targets.append(target)
        until(lambda: self.knows(target), f"gpreemptd knows the queues of {target.pid}")
        return target

    def knows(self, target):
        """A runtime has queues of its own besides."""
        return set(target.rings.values()) <= {int(queue["ring"], 16) for queue in self.queues(target) if queue["ring"]}

    def environment(self):
        return dict(os.environ, GPREEMPT_SOCKET=self.socket)

    def run(self, *words):
        return tap.run(*words, env=self.environment())

    def good(self, *words):
        return tap.good(*words, env=self.environment())

    def list(self):
        return json.loads(self.good("list", "--json").stdout)

    def stats(self, device=0):
        return json.loads(self.good("stats", str(device), "--json").stdout)["devices"][0]

    def queues(self, target):
        """Those that gpreemptd can stop."""
        return [queue for queue in self.list()["queues"] if queue["pid"] == target.pid and queue["way"]]

    def states(self, target):
        return {queue["queue_id"]: queue["state"] for queue in self.queues(target)}

    @contextlib.contextmanager
    def cycles(self, most, least=None):
        """What is done inside costs the device so many cycles."""
        before = stat("cycles")
        yield
        spent = stat("cycles") - before
        tap.true((most if least is None else least) <= spent <= most, f"{spent} device cycles, {most} allowed")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for target in self.targets:
            if target.process.poll() is None:
                target.kill()
        self.daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.daemon.wait(PATIENCE)
        self.daemon.kill()
        self.log.seek(0)
        tap.say(self.log.read() or "gpreemptd said nothing")
        self.log.close()
