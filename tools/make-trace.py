#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""make-trace.py --seed N --first JOBS --per-hour JOBS --hours H --median S [--gangs "1:70 2:20 4:10"]

Prints made-up jobs as Slurm's accounting would, for gpreempt sim --cluster: sacct -a -P -o JobID,JobName,Submit,ElapsedRaw,State,AllocTRES.
So many at the beginning, then more at random times; lengths are lognormal around the median; gangs: how many of a
hundred jobs want so many GPUs. A few had no GPU, were cancelled before they ran, or have steps, as in real ones.
"""

import argparse
import math
import random
import time

BEGIN = 1772409600  # 2026-03-02T00:00:00


def normal(rng):
    """By Box and Muller, from random() alone: the same numbers in every version of Python."""
    return math.sqrt(-2 * math.log(1 - rng.random())) * math.cos(2 * math.pi * rng.random())


def pick(rng, gangs):
    at = rng.random() * sum(weight for _, weight in gangs)
    for gpus, weight in gangs:
        at -= weight
        if at < 0:
            return gpus
    return gangs[-1][0]


def times(rng, args):
    yield from [0] * args.first
    at = 0.0
    while args.per_hour:
        at -= math.log(1 - rng.random()) * 3600 / args.per_hour
        if at >= args.hours * 3600:
            return
        yield int(at)


def line(number, name, submit, elapsed, state, tres):
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(BEGIN + submit))
    print("|".join((str(number), name, stamp, str(elapsed), state, tres)))


def job(rng, number, submit, args):
    elapsed = max(1, round(args.median * math.exp(args.sigma * normal(rng))))
    gpus, luck = pick(rng, args.gangs), rng.random()
    tres = f"billing={8 * gpus},cpu={8 * gpus},gres/gpu={gpus},mem={64 * gpus}G,node=1"
    if luck < 0.02:
        line(number, "prepare", submit, elapsed, "COMPLETED", "billing=4,cpu=4,mem=16G,node=1")
    elif luck < 0.04:
        line(number, "train", submit, 0, "CANCELLED by 1000", "")
    else:
        line(number, "train", submit, elapsed, "COMPLETED", tres)
        if luck < 0.10:
            line(f"{number}.batch", "batch", submit, elapsed, "COMPLETED", tres)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--per-hour", type=float, default=0)
    parser.add_argument("--hours", type=float, default=1)
    parser.add_argument("--median", type=float, default=600)
    parser.add_argument("--sigma", type=float, default=1)
    parser.add_argument("--gangs", default="1:70 2:20 4:10")
    args = parser.parse_args()
    args.gangs = [tuple(map(int, word.split(":"))) for word in args.gangs.split()]
    rng = random.Random(args.seed)
    print("JobID|JobName|Submit|ElapsedRaw|State|AllocTRES")
    for number, submit in enumerate(times(rng, args), 1000):
        job(rng, number, submit, args)


main()
