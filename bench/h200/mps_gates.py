#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""mps_gates.py PREFIX [OUT]: two clients of NVIDIA's MPS, which have no channel group of their own, with CUDA's door: one is suspended at its gates by gpreemptd.
mps_gates.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. Both launch kernels of a millisecond without end (two_priorities.c): what each does before, while one is suspended,
and when it was resumed. It ends in four minutes. Prints a table last; OUT: a file for all of it as JSON.
"""

import shutil
import signal
import sys
import time

import beside
import levels
import mps

LIMIT_S = 200
KERNEL_US, WINDOW_S = 1000, 2
LEASE = "60s"  # longer than the window
STATES = ("before", "suspended", "resumed")


class Clients:
    def __init__(self, bench, program):
        self.bench = bench
        bench.trains = [levels.Side((program, "low", KERNEL_US), bench.environment("offline"))]
        turns = bench.trains[0].ready()
        bench.trains.append(levels.Side((program, "low", KERNEL_US, turns), bench.environment("offline")))
        bench.trains[1].ready()
        self.held = bench.trains[0]

    def kernels(self):
        """What each of them, the held one first, did in a while."""
        time.sleep(0.2)  # what runs may end
        for one in self.bench.trains:
            one.since_last()
        time.sleep(WINDOW_S)
        return [one.since_last()["kernels"] for one in self.bench.trains]

    def say(self, *words):
        print(f"# {words[0]}: {self.bench.gpreempt(words[0], str(self.held.pid), *words[1:]).strip()}", flush=True)


def measure_clients(prefix, found):
    here = levels.Levels(prefix)
    here.part_build()
    with mps.control() as env:
        bench = beside.Bench(prefix, servers=(), weights=(), env=dict(env, **here.door()))
        try:
            clients = Clients(bench, f"{here.folder}/two_priorities")
            bench.configure("")
            found["before"] = clients.kernels()
            clients.say("suspend", "--lease", LEASE)
            found["suspended"] = clients.kernels()
            clients.say("resume")
            found["resumed"] = clients.kernels()
        finally:
            bench.end()


def measure(prefix):
    found = {"machine": beside.machine()}
    if not shutil.which("nvidia-cuda-mps-control"):
        found["skipped"] = "there is no nvidia-cuda-mps-control here"
        return found
    signal.signal(signal.SIGALRM, levels.give_up)
    signal.alarm(LIMIT_S)
    try:
        measure_clients(prefix, found)
    except (Exception, SystemExit) as why:  # pylint: disable=broad-except
        found["cut_short"] = f"{type(why).__name__}: {why}"
    signal.alarm(0)
    return found


def holds(state, held, other):
    return other > 0 and (held == 0) == (state == "suspended")


def table(found):
    print(f"Measured on {found['machine']}. Two clients of MPS, kernels of {KERNEL_US / 1000:g} ms; one suspended at its gates.")
    if "skipped" in found:
        print(f"Skipped: {found['skipped']}")
        return
    print(f"{'':16} {'the held one':>14} {'the other':>14}   kernels in {WINDOW_S} s")
    for state in STATES:
        if state in found:
            held, other = found[state]
            print(f"{state:16} {held:14} {other:14}{'' if holds(state, held, other) else '  NOT KEPT'}")


if __name__ == "__main__":
    beside.run(measure, table, __doc__)
