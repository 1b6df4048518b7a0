#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=900 memory=3G param=cus=8
"""What suspending costs, each way, in the bed: p50 and p99 of the call, device cycles, and the ratio to the bare ioctls.

Runs in the bed's machine (bench/kfd_ways.sh). Times are software cost under emulation, all of one run: only the ratios mean
something, and they mean the software's part. A lone process's bare ioctls are measured just before and just after, with the
same queues busy; "messages" is what request and answer cost over two processes that do nothing else.
"""

import os
import sys
import tempfile

import amd
import tap

TIMES = int(os.environ.get("TIMES", "100"))
RELAY_COST = os.path.join(os.path.abspath(tap.BUILD), "bench", "relay_cost")


def bare(target):
    before = amd.stat("cycles")
    figures = [int(word) for word in target.ask(f"bare {TIMES}")]
    return figures, (amd.stat("cycles") - before) / TIMES


def through(machine, way, *targets):
    before = amd.stat("cycles")
    done = tap.run(way, str(TIMES), *[str(target.pid) for target in targets], program=amd.WAY_COST, timeout=600,
                   env=machine.environment())
    if done.returncode:
        return None, done.stderr.strip()
    words = done.stdout.split()
    return [int(words[i]) for i in (1, 2, 4, 5)], (amd.stat("cycles") - before) / TIMES


def relayed():
    """What as many messages between as many processes cost that do nothing else."""
    done = tap.run(str(TIMES), program=RELAY_COST)
    p50, p99 = (int(word) for word in done.stdout.split())
    return [p50, p99, p50, p99]


def row(name, processes, queues, figures, cycles, base):
    if figures is None:
        print(f"# {name:<8} {processes:>9} {queues:>6}  {cycles}")
        return
    times = " ".join(f"{value / 1000:>9.0f}" for value in figures)
    ratio = f"{figures[0] / base[0]:>6.2f}" if base else f"{'-':>6}"
    print(f"# {name:<8} {processes:>9} {queues:>6} {times} {cycles:>7.1f} {ratio}", flush=True)


def measure(folder, processes, queues):
    with amd.Machine(folder, "--ways", "update,dbg") as machine:
        targets = [machine.target(queues, "runtime") for _ in range(processes)]
        base, cycles = bare(targets[0])
        row("ioctl", 1, queues, base, cycles, base)
        row("messages", processes, queues, relayed(), 0, base)
        row("update", processes, queues, *through(machine, "update", *targets), base)
        base, cycles = bare(targets[0])
        row("ioctl", 1, queues, base, cycles, base)
        row("dbg", processes, queues, *through(machine, "dbg", *targets), base)
        for target in targets:
            target.end()


print(f"# {TIMES} times each; us of software cost under emulation; ratio: of the suspensions' p50")
print("# cycles: of a suspension and its resume together; to resume the first of all queues takes none")
print(f"# {'way':<8} {'processes':>9} {'queues':>6} {'susp p50':>9} {'susp p99':>9} {'res p50':>9} {'res p99':>9}"
      f" {'cycles':>7} {'ratio':>6}")
for shape in ((1, 1), (1, 4), (1, 12), (4, 1), (4, 6)):
    with tempfile.TemporaryDirectory() as place:
        measure(place, *shape)
print("1..1\nok 1 - measured")
sys.exit(0)
