#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Levels in OpenCL's door, on Debian's PoCL: what is computed is the same, whatever is held."""

import os

import tap

BUILD = os.path.abspath(tap.BUILD)
LAYER = os.path.join(BUILD, "libgpreempt-level.so")
WORK = os.path.join(BUILD, "tests", "opencl_work")
MOST_OVERHEAD = 1.02


def work(*args, layer=True, **environment):
    """What it says, as a dict; each word is followed by its number."""
    if not os.path.exists(WORK):
        raise tap.Skip("no OpenCL here when this was built (ocl-icd-opencl-dev, pocl-opencl-icd)")
    environment = {**os.environ, **environment, **({"OPENCL_LAYERS": LAYER} if layer else {})}
    done = tap.run(*args, program=WORK, env=environment, timeout=60)
    if "failed: a platform" in done.stdout:
        raise tap.Skip("no platform of OpenCL here: pocl-opencl-icd")
    tap.same(done.returncode, 0, f"{args}: {done.stdout}{done.stderr}")
    tap.same(done.stderr, "", "stderr")
    words = done.stdout.split()
    return dict(zip(words[::2], map(float, words[1::2])))


@tap.test("with the layer and with ten thousand preemptions the results are those without")
def _(_folder):
    want = work("compute", "10000", layer=False)["sum"]
    tap.same(work("compute", "10000")["sum"], want, "with the layer")
    seen = work("compute", "10000", "10000")
    tap.same(seen, {"sum": want, "held": 10000}, "preempted")


@tap.test("a process that its environment calls offline computes the same too")
def _(_folder):
    tap.same(work("compute", "3000", GPREEMPT_CLASS="offline")["sum"], work("compute", "3000", layer=False)["sum"], "sum")


@tap.test("an online launch holds the offline queue beside it, and both end")
def _(_folder):
    seen = work("order", "300")
    tap.same((seen["begun"], seen["ended"]), (300, 300), "launches")
    tap.true(seen["held"] > 250, f"held at {seen['held']:.0f} of 300 online launches")


@tap.test("launches that fail do not keep those behind them")
def _(_folder):
    tap.same(work("lost", "6"), {"begun": 12, "ended": 12}, "launches")


@tap.test("a queue out of order is left alone: there a launch may wait for one that was made after it")
def _(_folder):
    tap.same(work("unordered", "10", GPREEMPT_CLASS="offline")["ended"], 11, "launches")


@tap.test("what a stream has set is gone when it is closed")
def _(_folder):
    tap.same(work("closed", "7")["in_flight"], 2, "launches that may be in flight")


@tap.test("a hundred queues that were held all go on")
def _(_folder):
    tap.same(work("queues", "100", GPREEMPT_CLASS="offline")["ended"], 100, "queues")


@tap.test("with nobody to preempt a throttled launch of 100 us takes 2 % more of the processor at most", alone=True)
def _(_folder):
    ratios = []
    for _ in range(3):  # a neighbour may have had the other core
        ratios.append(work("overhead", "100")["ratio"])
        if ratios[-1] <= MOST_OVERHEAD:
            return
    raise AssertionError(f"ratios {ratios}")


@tap.test("a layer that is off passes everything on")
def _(_folder):
    tap.same(work("compute", "100", GPREEMPT_LEVEL="off")["sum"], work("compute", "100", layer=False)["sum"], "sum")
    done = tap.run("order", "1", program=WORK, env={**os.environ, "OPENCL_LAYERS": LAYER, "GPREEMPT_LEVEL": "off"})
    tap.same(done.returncode, 1, "a stream of it")
    tap.true("failed: a stream" in done.stdout, done.stdout)


tap.main()
