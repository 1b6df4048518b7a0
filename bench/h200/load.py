#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""load.py SHAPE RATE COUNT SEED BEGIN: requests by the clock, from a process of its own, which keeps no server from working.

Writes the time of each request that comes, as 8 bytes, when it comes: seconds of time.perf_counter(), which all processes share. BEGIN: the
same, when the first one may come. SHAPE: poisson, or burst: Poisson whose rate switches between 0.2 and 3 times its mean every 50 to 500 ms.
"""

import os
import random
import struct
import sys
import time

SPINS = 0.0002  # s: a sleep may end so much too late


def poisson(rate, chance):
    at = 0.0
    while True:
        at += chance.expovariate(rate)
        yield at


def burst(rate, chance):
    """3 times the mean with probability 2/7, else 0.2 times: the mean stays what it is."""
    at = end = 0.0
    while True:
        if at >= end:
            at, end = end, end + chance.uniform(0.05, 0.5)
            now = rate * (3 if chance.randint(1, 7) <= 2 else 0.2)
        at += chance.expovariate(now)
        if at < end:
            yield at


def arrivals(shape, rate, count, seed):
    times = {"poisson": poisson, "burst": burst}[shape](rate, random.Random(seed))
    return [next(times) for _ in range(count)]


def main(shape, rate, count, seed, begin):
    for at in arrivals(shape, float(rate), int(count), int(seed)):
        due = float(begin) + at
        while (wait := due - time.perf_counter()) > 0:
            if wait > SPINS:
                time.sleep(wait - SPINS)
        os.write(1, struct.pack("d", due))


if __name__ == "__main__":
    main(*sys.argv[1:])
