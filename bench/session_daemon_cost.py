#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=900 memory=3G instruction_ns=1 param=cus=4
"""What gpreemptd adds to a session's call, in the bed: p50 and p99 of the bare call, of a suspension through gpreemptd, and of a message and its answer.

Runs in the bed's machine, for bench/batch_cost.py, which prints the table. Times are software cost under emulation.
"""

import json
import os
import sys
import tempfile

import amd
import tap

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 50
COUNTS = ((1, 1), (1, 2), (1, 4), (1, 8), (1, 12), (1, 16), (1, 24), (4, 6), (8, 3))  # processes, queues of each
SESSION_COST = os.path.join(os.path.abspath(tap.BUILD), "tests", "kernel", "session_cost")
RELAY_COST = os.path.join(os.path.abspath(tap.BUILD), "bench", "relay_cost")


def times_of(program, *words, env=None):
    words = tap.good(*words, program=program, timeout=600, env=env).stdout.split()
    return {what: {"p50_ns": int(words[at]), "p99_ns": int(words[at + 1])} for what, at in (("stop", 1), ("run", 4))}


def round_trip():
    p50, p99 = map(int, tap.good(str(4 * TIMES), "1", program=RELAY_COST).stdout.split())
    return {"p50_ns": p50, "p99_ns": p99}


def measure(folder, processes, queues):
    with amd.Machine(folder, "--ways", "session", "--lease", "60s") as machine:
        targets = [machine.target(queues, agent=False) for _ in range(processes)]
        for target in targets:
            target.tell("idle")  # one that works takes the machine's one CPU whenever somebody waits
        pids = [str(target.pid) for target in targets]
        named = [f"{target.pid}:{queue}" for target in targets for queue in target.rings]
        shape = {"processes": processes, "queues": processes * queues, "busy": False}
        trip = round_trip()
        for way, row in (("ioctl", times_of(SESSION_COST, str(TIMES), *named)),
                         ("gpreemptd", times_of(amd.WAY_COST, "session", str(TIMES), *pids, env=machine.environment()))):
            print("row:", json.dumps({"way": way, **shape, **row, "round_trip": trip}), flush=True)


for count in COUNTS:
    with tempfile.TemporaryDirectory() as place:
        measure(place, *count)
print("1..1\nok 1 - measured")
