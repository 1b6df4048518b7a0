#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""probe.py: how long a kernel that does nearly nothing takes from the call that launches it until its end is known.

Lines on standard input: "probe COUNT PID" or "end". PID: a process that is suspended before the launch and resumed after it; 0: none.
Prints "ready", and for each probe a line of JSON: the latencies in us.
"""

import contextlib
import json
import random
import sys
import time

import gpreempt
import torch


def probe(count, pid, data):
    chance, found = random.Random(count), []
    with gpreempt.Context() if pid else contextlib.nullcontext() as context:
        queues = context.queues(pid=pid) if pid else []
        for _ in range(count):
            time.sleep(chance.uniform(0.002, 0.008))
            begin = time.perf_counter()
            with context.suspend(queues) if pid else contextlib.nullcontext():
                data.add_(1)
                torch.cuda.synchronize()
                found.append(round((time.perf_counter() - begin) * 1e6, 1))
    return found


def main():
    data = torch.zeros(1, device="cuda")
    probe(50, 0, data)
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "end":
            break
        print(json.dumps(probe(int(rest[0]), int(rest[1]), data)), flush=True)


if __name__ == "__main__":
    main()
