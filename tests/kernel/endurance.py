#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=900 memory=3G param=cus=8
"""Ten thousand suspensions and resumes leave nothing behind: no descriptor, no thread, no memory."""

import os
import re
import time

import amd
import tap

PAIRS = 10000
WARM = 500
LOST_KB = PAIRS * 32 // 1024 // 2  # malloc() gives 32 bytes at the least: half of what one a pair would be


def holdings(pid):
    """(descriptors, threads, kB of data) of a process"""
    status = tap.read(f"/proc/{pid}/status")
    data = int(re.search(r"^VmData:\s+(\d+) kB", status, re.MULTILINE).group(1))
    return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")), data


def least(pid):
    """The least of what it holds in a second: gpreemptd may just be looking around."""
    looks = []
    end = time.monotonic() + 1
    while time.monotonic() < end:
        looks.append(holdings(pid))
        time.sleep(0.02)
    return tuple(map(min, zip(*looks)))


def preempt(machine, target, pairs):
    done = tap.run("update", str(pairs), str(target.pid), program=amd.WAY_COST, timeout=None, env=machine.environment())
    tap.same(done.returncode, 0, done.stderr)


@tap.test(f"{PAIRS} suspensions and resumes of a queue leave no descriptor, no thread and no memory, here and there")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(1)
        target.tell("idle")  # or the machine would be busy with its work
        preempt(machine, target, WARM)  # what is allocated once, and kept
        before = {pid: least(pid) for pid in (target.pid, machine.daemon.pid)}
        cycles = amd.stat("cycles")
        preempt(machine, target, PAIRS)
        tap.true(amd.stat("cycles") - cycles >= PAIRS, "there were fewer device cycles")
        for pid, had in before.items():
            has = least(pid)
            more = [now - then for now, then in zip(has, had)]
            tap.true(more[0] <= 0 and more[1] <= 0 and more[2] < LOST_KB, f"{has}, and it was {had}: descriptors, threads, kB of data")
        target.tell("busy")
        target.goes_on()
        target.end()


tap.main()
