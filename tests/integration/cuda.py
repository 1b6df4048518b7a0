#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Levels in CUDA's door: bench/h200/two_priorities.c with the library that its driver loads, on a driver of the tests' own."""

import json
import os
import subprocess

import tap

import double

BUILD = os.path.abspath(tap.BUILD)
DOOR = os.path.join(BUILD, "libgpreempt-level.so")
PROGRAM = os.path.join(BUILD, "tests", "two_priorities_cuda")
WORK = os.path.join(BUILD, "tests", "cuda_work")
CUPTI = os.path.join(BUILD, "tests", "libcupti.so.13")
KERNEL_US = 20000
IN_FLIGHT = 4


def rows(*words, door=True, **more):
    if not os.path.exists(PROGRAM):
        raise tap.Skip("no headers of CUDA's here when this was built")
    environment = {**os.environ, "GPREEMPT_CUPTI": CUPTI, **({"CUDA_INJECTION64_PATH": DOOR} if door else {}), **more}
    done = tap.run(*words, program=PROGRAM, env=environment, timeout=100)
    tap.same((done.returncode, done.stderr), (0, ""), f"{words}")
    return [json.loads(line) for line in done.stdout.splitlines()]


@tap.test("after a suspend the kernel that runs ends at the gate, and those in flight at the throttle, and no more")
def _(_folder):
    found = rows("levels", str(KERNEL_US), "5")
    off = {row["level"]: row for row in found if row["what"] == "off"}
    tap.same(sorted(off), ["gate", "throttle"])
    for level, most in (("gate", 1), ("throttle", IN_FLIGHT)):  # and one that ends while the call is made; how long it takes is this machine's business
        tap.true(off[level]["most_ended"] <= most + 1, f"{off[level]}")
    tap.same(sorted(row["level"] for row in found if row["what"] == "tasks"), ["gate", "none", "throttle"])


def side(folder, *words):
    """The low or the high thread as a process, and what it says first."""
    if not os.path.exists(PROGRAM):
        raise tap.Skip("no headers of CUDA's here when this was built")
    process = subprocess.Popen([PROGRAM, *words], env=dict(os.environ, GPREEMPT_SOCKET=f"{folder}/gpreemptd.sock"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().split()


def answer(process):
    process.stdin.write("\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


@tap.test("two processes: the low one says what it did since it was asked, the high one begins when it is told, with the other's turns")
def _(folder):
    with double.daemon(folder) as daemon:
        low, (word, turns) = side(folder, "low", str(KERNEL_US))
        tap.true(word == "ready" and float(turns) > 0, turns)
        high, said = side(folder, "high", str(KERNEL_US), "3", "0", turns)
        answer(low)
        tap.same((said, daemon.heard()["what"]), (["ready"], 0), "before it was told")
        high_us = answer(high)["high_us"]
        tap.true(high_us >= 4 * KERNEL_US * 0.9, f"a task is shorter than its kernels: {high_us}")
        tap.true(daemon.heard()["what"] != 0, "no hint")
        found = answer(low)
        tap.true(found["kernels"] > 0 and found["low_us"] > 0, f"{found}")
        for process in (low, high):
            process.stdin.close()
            process.stdout.close()
            tap.same(process.wait(20), 0, f"{process.args}")


@tap.test("one of fourteen streams is held at its gate, and one of forty before it launches: the others go on, and it goes on later")
def _(_folder):
    for streams, level in ((14, "gate"), (40, "throttle")):
        tap.same(rows("streams", str(streams), "8", CUDA_DEVICE_MAX_CONNECTIONS="32"),
                 [{"what": "streams", "level": level, "connections": "32", "streams": streams, "others_went_on": streams - 1, "others": streams - 1,
                   "above_went_on": 8, "above": 8, "held_ran": 0, "ran_later": 20}])


@tap.test("what a program does with a stream while there are too many for gates is not for good")
def _(_folder):
    if not os.path.exists(WORK):
        raise tap.Skip("not in this build")
    done = tap.run(program=WORK, env={**os.environ, "GPREEMPT_CUPTI": CUPTI, "CUDA_INJECTION64_PATH": DOOR}, timeout=100)
    tap.same((done.returncode, done.stdout, done.stderr), (0, "", ""), "")


@tap.test("at a gate no more launches wait than there is place for, kernels and graphs, and another stream's pass")
def _(_folder):
    for nodes in (0, 64):
        (found,) = rows("deep", str(nodes))
        tap.same((found["nodes"], found["went_in"]), (nodes, 128), f"{found}")
        tap.true(found["neighbour_us"] < 3e6, f"{found}")


@tap.test("without the door, where it is off, and where CUPTI is another's, the program runs and has no level")
def _(_folder):
    for more in ({"door": False}, {"GPREEMPT_LEVEL": "off"}, {"CUDA_DOUBLE_FAILS": "cuptiSubscribe"}, {"GPREEMPT_CUPTI": "/nowhere", "LD_LIBRARY_PATH": ""}):
        found = rows("levels", "1000", "1", **more)
        tap.same([(row["what"], row["level"]) for row in found], [("tasks", "none"), ("missing", "throttle"), ("missing", "gate")], f"{more}")


@tap.test("a driver whose waits or writes fail, at once or later, runs all that is launched")
def _(_folder):
    for call in ("cuStreamWaitValue32_v2", "cuStreamWriteValue32_v2", "cuMemHostRegister_v2", "cuStreamWaitValue32_v2:30", "cuStreamWriteValue32_v2:30"):
        found = rows("alone", "100", "50", CUDA_DOUBLE_FAILS=call)
        tap.true(all(row["what"] in ("alone", "missing") for row in found), f"{call}: {found}")


tap.main()
