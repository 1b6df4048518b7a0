#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A thousand faults in a row, by chance; `make soak-daemon` does the same for as long as one likes."""

import itertools

import tap

from faults import Plan, soak

FAULTS = 1000
SEED = 1


@tap.test("the same seed is the same faults, and another one is others")
def _(folder):
    one, again, other = (list(itertools.islice(Plan(seed), 2 * FAULTS)) for seed in (SEED, SEED, SEED + 1))
    tap.same(one, again, "faults")
    tap.true(one != other, "they are the same")


@tap.test("after a thousand faults everything runs, nothing is lost, and gpreemptd has no more memory and descriptors than before", alone=True)
def _(folder):
    stage = soak(folder, SEED, lambda n: n >= FAULTS)
    tap.say(", ".join(f"{n} {name}" for name, n in stage.figures.most_common()))
    tap.say(f"KiB in memory and descriptors: {stage.all_sizes}")
    tap.same(stage.figures["faults"], FAULTS, "faults")
    tap.true(stage.figures["queues stopped"] > FAULTS, "hardly anything was ever stopped")


tap.main()
