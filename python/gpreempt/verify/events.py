# SPDX-License-Identifier: MIT
"""What gpreemptd's events tell of a suspend or resume: where its time went, and how many queues were on the GPU when."""

from typing import List, NamedTuple, Optional, Set, Tuple, Union

import gpreempt
from gpreempt import EventKind

# Of one call, in ms. ask: the program's message, gpreemptd's decision, its order, and the word that it is done. driver: whoever stops
# the queues, in the driver's calls: unmap, save and fence, or the run list, which no event tells apart. answer: back to the program.
PARTS = ("ask", "driver", "answer")
# What the kernel calls those of kernel/series, and where they are: all queues of a GPU off it, from when to when; on it again; one queue.
TRACEPOINTS = ("kfd:kfd_unmap_begin", "kfd:kfd_unmap_end", "kfd:kfd_runlist", "kfd:kfd_queue_suspend", "kfd:kfd_queue_resume")
TRACE_ON, TRACE = "echo 1 > /sys/kernel/tracing/events/kfd/enable", "/sys/kernel/tracing/trace"
Parts = Optional[Tuple[float, float, float]]

Told = NamedTuple("Told", [("kind", Union[EventKind, int]), ("at_s", float), ("took_ms", float), ("queue", int)])


def told(pid: int, since_s: float) -> List[Told]:
    """Of a process's queues, oldest first, as far back as gpreemptd remembers. since_s: by time.time()."""
    try:
        every = list(gpreempt.context().events(kinds=(EventKind.SUSPEND, EventKind.RESUME)))
    except gpreempt.Error:
        return []  # they say where time went: no check is about them
    found = [Told(one.kind, one.at_ns / 1e9, one.latency_ns / 1e6, one.queue) for one in every if one.pid == pid]
    return [one for one in found if one.at_s >= since_s]


def split(every: List[Told], kind: EventKind, began_s: float, took_ms: float) -> Parts:
    """None: gpreemptd told nothing of that call, or has forgotten it."""
    mine = [one for one in every if one.kind == kind and began_s <= one.at_s <= began_s + took_ms / 1e3]
    if not mine:
        return None
    driver = min(max(one.took_ms for one in mine), took_ms)  # each is from the beginning of the order
    answer = took_ms - (mine[-1].at_s - began_s) * 1e3
    return max(0.0, took_ms - driver - answer), driver, answer


def on_gpu(every: List[Told], queues: int) -> List[Tuple[float, int]]:
    """(seconds since the first, queues that were not suspended), a step for each change."""
    off = set()  # type: Set[int]
    steps = []  # type: List[Tuple[float, int]]
    for one in every:
        before = queues - len(off)
        (off.add if one.kind == EventKind.SUSPEND else off.discard)(one.queue)
        at = one.at_s - every[0].at_s
        steps += [(at, before), (at, queues - len(off))]
    return steps
