#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""soak.py [--build DIR] [--minutes N] [--seed N]: faults by chance on a running gpreemptd, for so long, and what came of it.

Clients and tools come, go, are killed and stopped; gpreemptd is killed, ended, started, stopped and told to read its
configuration again. The same seed is the same faults. Exits 1 if something stayed stopped, was lost, or grew.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="what to run; a build with sanitizers does too")
    parser.add_argument("--minutes", type=float, default=60, help="%(default)s unless given")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="one by chance unless given")
    return parser.parse_args()


def say(stage):
    """A line now and then: with the newest sizes."""
    if stage.figures["quiet"] % 20 == 0:
        kib, fds = stage.sizes[-1]
        print(f"{stage.figures['faults']} faults, all well; gpreemptd has {kib} KiB, {fds} descriptors", flush=True)


def report(stage, seed):
    print(f"seed {seed}: " + ", ".join(f"{n} {name}" for name, n in stage.figures.most_common()))
    longest = max(stage.all_sizes, key=len)
    print(f"gpreemptd through {len(longest)} quiet moments: {longest[0][0]} KiB then {longest[-1][0]} (most {max(longest)[0]}), "
          f"{longest[0][1]} descriptors then {longest[-1][1]}")


def main():
    options = parse()
    os.environ["GPREEMPT_BUILD"] = options.build
    sys.path.append(os.path.join(ROOT, "tests"))
    sys.dont_write_bytecode = True
    import faults  # now: it reads where the build is

    end = time.monotonic() + 60 * options.minutes
    folder = tempfile.mkdtemp(prefix="gpreempt-soak-")
    print(f"seed {options.seed}, {options.minutes:g} minutes", flush=True)
    try:
        report(faults.soak(folder, options.seed, lambda n: time.monotonic() >= end, say), options.seed)
    except Exception as wrong:
        raise SystemExit(f"{wrong}\nagain: tools/soak.py --seed {options.seed}; what there was is in {folder}") from wrong
    shutil.rmtree(folder)


main()
