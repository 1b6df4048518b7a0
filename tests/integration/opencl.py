#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Levels in OpenCL's door, on Debian's PoCL: what is computed is the same, whatever is held."""

import os

import tap

BUILD = os.path.abspath(tap.BUILD)
LAYER = os.path.join(BUILD, "libgpreempt-level.so")
WORK = os.path.join(BUILD, "tests", "opencl_work")
MOST_OVERHEAD = 1.02


def said(*args, layer=True, **environment):
    if not os.path.exists(WORK):
        raise tap.Skip("no OpenCL here when this was built (ocl-icd-opencl-dev, pocl-opencl-icd)")
    environment = {**os.environ, **environment, **({"OPENCL_LAYERS": LAYER} if layer else {})}
    done = tap.run(*args, program=WORK, env=environment, timeout=60)
    if "failed: a platform" in done.stdout:
        raise tap.Skip("no platform of OpenCL here: pocl-opencl-icd")
    tap.same(done.returncode, 0, f"{args}: {done.stdout}{done.stderr}")
    tap.same(done.stderr, "", "stderr")
    return done.stdout


def work(*args, **more):
    """What it says, as a dict; each word is followed by its number."""
    words = said(*args, **more).split()
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
        found = work("overhead", "100")
        print(f"# by the wall's clock, neighbours and all: {found['wall']}", flush=True)
        ratios.append(found["ratio"])
        if ratios[-1] <= MOST_OVERHEAD:
            return
    raise AssertionError(f"ratios {ratios}")


@tap.test("a layer that is off passes everything on")
def _(_folder):
    tap.same(work("compute", "100", GPREEMPT_LEVEL="off")["sum"], work("compute", "100", layer=False)["sum"], "sum")
    done = tap.run("order", "1", program=WORK, env={**os.environ, "OPENCL_LAYERS": LAYER, "GPREEMPT_LEVEL": "off"})
    tap.same(done.returncode, 1, "a stream of it")
    tap.true("failed: a stream" in done.stdout, done.stdout)


@tap.test("who cannot hold a stream is told how far the library has come, and what to do")
def _(_folder):
    nobody = "No such device: nobody here can hold this stream: "
    for more, want in (({"layer": False}, "for throttle and gate start the program with HSA_TOOLS_LIB="),
                       ({"layer": False, "LD_PRELOAD": LAYER}, "libgpreempt-level.so is loaded, but by no runtime: name it in HSA_TOOLS_LIB, "),
                       ({"GPREEMPT_LEVEL": "off"}, "libgpreempt-level.so is loaded (opencl: shut: GPREEMPT_LEVEL is off) and does not know it: ")):
        null, wrong, right = said("sentences", "0", **more).splitlines()
        tap.same(null, "Invalid argument: NULL is no stream; CUDA's default one is CU_STREAM_LEGACY", f"{more}")
        tap.true(wrong.startswith(nobody + want) and right == wrong, f"{more}: {wrong}; {right}")


@tap.test("of a stream in an open door it is said that a queue is none of its own, which levels it lacks and why, and that its queue has gone")
def _(_folder):
    _, wrong, gone = said("sentences", "1").splitlines()
    tap.true("(opencl: open) and does not know it: a door that is open knows " in wrong, wrong)
    tap.same(gone, "No such device: the stream is gone", "a queue that was released")
    for level, name, why in (("2", "gate", "opencl's door has no other here, or not for so many streams, or GPREEMPT_LEVEL leaves it out (LEVELS.md)"),
                             ("3", "interrupt", "for interrupt start the program under gpreempt run, with a gpreemptd")):
        tap.same(said("sentences", level).splitlines()[2], f"Operation not supported: this stream has no {name}; it has: throttle; {why}", name)


tap.main()
