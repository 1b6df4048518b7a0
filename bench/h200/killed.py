#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""killed.py PREFIX [OUT]: whether programs on an NVIDIA GPU lose or repeat anything, or stay parked, while gpreemptd, an online and an offline program are killed.
killed.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. CUDA: an online program with hints and two offline ones; one of these is killed, the other works, to its end again and
again, and its result depends on each of its kernels having run exactly once. PyTorch: a server, and two trainings, the same. What was killed is started again.
Prints a table last; OUT: a file for all of it as JSON.
"""

import os
import random
import subprocess
import sys
import tempfile
import threading
import time

import beside

KERNELS, ITERATIONS, STEPS = os.environ.get("KERNELS", "600"), "60000", os.environ.get("STEPS", "400")
KILLS = {"CUDA": int(os.environ.get("KILLS", "100")), "PyTorch": 3}
LEASE = "500ms"
STARTS = {"gpreemptd": (0.2, 0.5), "online": (0.2, 1.0), "offline": (0.2, 1.0)}  # s, until the next is killed
SLOW = 9.0  # s that a PyTorch program may take to come back
PATIENCE = 60.0  # s, in which what nobody parks any more has come to its end


class Work:
    """A program that prints "done N at SECONDS" and its sum in the end, over and over."""

    def __init__(self, command, env=None):
        self.command, self.env = command, dict(os.environ, **(env or {}))
        self.sums, self.longest, self.done, self.last, self.is_over = [], 0.0, 0, None, False
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        while True:
            self.process = subprocess.Popen(self.command, env=self.env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            self.last = None
            for line in self.process.stdout:
                words = line.split()
                if words[0] == "done":
                    now = float(words[3])
                    self.longest, self.last = max(self.longest, now - (self.last or now)), now
                    self.done += 1
                elif words[0] == "sum":
                    self.sums.append(words[1])
            self.process.wait()
            if self.is_over:
                return

    def to_its_end(self):
        self.is_over = True
        self.thread.join(PATIENCE)
        is_stuck = self.thread.is_alive()
        self.stop()
        return {"sums": self.sums, "longest_s": self.longest, "done": self.done, "is_stuck": is_stuck}

    def stop(self):
        """It may be about to start again."""
        self.is_over = True
        while self.thread.is_alive():
            self.process.kill()
            self.thread.join(0.1)


class Victims:
    """The programs, each by its part, and gpreemptd."""

    def __init__(self, bench, kind, online, offline):
        self.bench, self.kind, self.kills = bench, kind, {name: 0 for name in STARTS}
        self.programs = {"online": Work(online, bench.environment("online")), "offline": Work(offline, bench.environment("offline"))}
        self.stays = Work(offline, bench.environment("offline"))

    def kill(self, name):
        if name == "gpreemptd":
            self.bench.daemon.kill()
            self.bench.daemon.wait()
            time.sleep(self.chance.uniform(0.0, 0.4))
            self.bench.launch_daemon("--lease", LEASE)
        else:
            self.programs[name].process.kill()
        self.kills[name] += 1

    def kill_at_random(self, count):
        self.chance = random.Random(1)
        for i in range(count):
            name = sorted(STARTS)[i % 3] if count < 10 else self.chance.choice(sorted(STARTS))
            time.sleep(SLOW if count < 10 else self.chance.uniform(*STARTS[name]))
            self.kill(name)
        print(f"# {self.kind}: killed {self.kills}", flush=True)

    def end(self):
        """Nobody is parked once the online program is gone: what stays comes to its end."""
        self.programs["online"].stop()
        found = {"kills": self.kills, "served": self.programs["online"].done}
        found["stays"] = self.stays.to_its_end()
        found["killed"] = self.programs["offline"].to_its_end()
        return found


class Bench(beside.Bench):
    def __init__(self, prefix):
        super().__init__(prefix, servers=(), weights=())
        self.configure(beside.PARKING, "--lease", LEASE)

    def measure(self, kind, online, offline):
        alone = Work(offline, {"LD_PRELOAD": ""})
        want = alone.to_its_end()["sums"]
        victims = Victims(self, kind, online, offline)
        victims.kill_at_random(KILLS[kind])
        return dict(victims.end(), alone=want)


def measure(prefix):
    folder = tempfile.mkdtemp()
    work, pulse = (beside.compiled(name, folder) for name in ("work", "pulse"))
    program = [sys.executable, f"{beside.HERE}/program.py"]
    programs = {"CUDA": ([pulse, f"{prefix}/lib/libgpreempt.so.0"], [work, KERNELS, ITERATIONS]),
                "PyTorch": ([*program, "pulse", "0"], [*program, "eager training", STEPS])}
    found = {}
    with Bench(prefix) as bench:
        for kind, (online, offline) in programs.items():
            found[kind] = bench.measure(kind, online, offline)
            yield dict(bench.how(), found=found)
        print(bench.gpreempt("stats"), bench.gpreempt("ps"))
    yield dict(bench.how(), found=found)


def table(found):
    print(f"Measured on {found['machine']}. kill -9 at random; offline's result alone, and all of its results beside that.")
    for kind, one in found["found"].items():
        sums = one["stays"]["sums"] + one["killed"]["sums"]
        same = sums and set(sums) == set(one["alone"])
        print(f"{kind + ', killed':28} " + ", ".join(f"{name} {n} times" for name, n in one["kills"].items()))
        print(f"{'results':28} {(one['alone'] or ['none'])[0]}, {len(sums)} times {'the same' if same else 'NOT THE SAME'}")
        print(f"{'longest without a kernel':28} {one['stays']['longest_s'] * 1e3:.0f} ms, of {one['stays']['done']} kernels or steps")
        print(f"{'online requests served':28} {one['served']}")
        for name in (name for name in ("stays", "killed") if one[name].get("is_stuck")):
            print(f"{'STAYED PARKED':28} the one that {'is not killed' if name == 'stays' else 'was killed'}: no end in {PATIENCE:.0f} s")


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
