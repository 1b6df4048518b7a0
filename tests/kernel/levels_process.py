#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=300 memory=3G param=gfx=gfx90a param=cus=4
"""Two priorities in one process of AMD's runtime, at each level, beside what the simulator says of the same; another tool in the same door."""

import json
import os
import re
import subprocess

import amd
import tap

BUILD = os.path.abspath(tap.BUILD)
PROGRAM = os.path.join(BUILD, "tests", "kernel", "two_priorities")
LEVELS = os.path.join(BUILD, "tests", "kernel", "levels")
XSCHED = os.path.join(BUILD, "tests", "kernel", "xsched_lv3")
DOOR = os.path.join(BUILD, "libgpreempt-level.so")
KERNEL_US = 40_000  # long beside what emulation takes
LONG_US = 200_000  # and beside what a call to gpreemptd takes in it
TASKS = 6
SCENARIO = f"""[scenario]
name = bed
device = mi308x
duration = 200s
throttle_depth = 5
configs = throttle gate
[online serve]
work = one
arrival = poisson
rate = 0.5
[work one]
kernels = 1
length = {8 * KERNEL_US}us
share = 0.01
[work kernel]
kernels = 1000
length = {KERNEL_US}us
share = 0.9
[offline fill]
work = kernel
"""


def run(machine, kernel_us, *level):
    environment = dict(os.environ, GPREEMPT_SOCKET=machine.socket, LD_PRELOAD=amd.AGENT, HSA_TOOLS_LIB=DOOR)
    done = subprocess.run([PROGRAM, str(kernel_us), str(TASKS), *level], env=environment, capture_output=True, text=True, check=False)
    tap.same(done.returncode, 0, f"two_priorities: {done.stdout}{done.stderr}")
    print(re.sub("^", "# ", done.stdout.strip(), flags=re.M))
    rows = {}
    for level, figures in re.findall(r"level (\w+) (.*)", done.stdout):
        words = figures.split()
        rows.setdefault(level, {}).update(zip(words[::2], map(float, words[1::2])))
    return rows, {level: float(ratio) for level, ratio in re.findall(r"alone (\w+) ratio ([\d.]+)", done.stdout)}


@tap.test("each level takes the device for the high stream, as long after the call as the simulator says, to a kernel's length")
def _(folder):
    with amd.Machine(folder) as machine:
        rows, alone = run(machine, KERNEL_US)
        (interrupt,) = run(machine, LONG_US, "interrupt")[0].values()
    tap.same(sorted(rows), ["gate", "interrupt", "none", "throttle"], "levels")
    said = json.loads(tap.good("sim", tap.write(f"{folder}/bed.ini", SCENARIO), "--json").stdout)["rows"]
    for row in said:
        want, got = row["preempt_ns"]["p50"] / 1000, rows[row["config"]]["off_us"]
        print(f"# {row['config']}: {got:.0f} us here, {want:.0f} us in the simulator")
        tap.true(abs(got - want) <= KERNEL_US, f"{row['config']}: {got:.0f} us, simulated {want:.0f} us")
    # Which a measurement of nothing does not say: a kernel's length covers all of what a gate takes.
    tap.true(rows["gate"]["off_us"] > KERNEL_US / 8, f"at the gate no running kernel was waited for: {rows}")
    tap.true(rows["throttle"]["ended"] > rows["gate"]["ended"] + 1 > 1, f"the throttle lets no more kernels end than the gate: {rows}")
    tap.true(rows["gate"]["high_us"] < rows["throttle"]["high_us"], f"a gate is not faster than a throttle: {rows}")
    tap.true(rows["gate"]["ratio"] > rows["none"]["ratio"], f"a gate gains nothing: {rows}")
    tap.true(rows["interrupt"]["beside"] == 0 < rows["gate"]["beside"] <= 1 < rows["none"]["beside"], f"low kernels that ended beside a task: {rows}")
    if interrupt["call_us"] > LONG_US / 2:
        print("# the host was too busy for a ratio at interrupt: of what is counted the calls took too much")
    else:
        tap.true(interrupt["ratio"] > 3, f"an interrupt gains too little: {interrupt}")
    for level, ratio in alone.items():
        tap.true(ratio <= 1.02, f"{level} alone: {ratio}")


def doctor_of_levels(**more):
    done = subprocess.run([tap.PROGRAM, "doctor", "--json"], env=dict(os.environ, **more), capture_output=True, text=True, check=False)
    return next((check["state"], check["detail"]) for check in json.loads(done.stdout)["checks"] if check["what"] == "levels")


@tap.test("doctor says whether the door opens, and if it is shut why")
def _(folder):
    state, detail = doctor_of_levels()
    tap.same((state, DOOR in detail), ("yes", True), detail)
    tap.same(doctor_of_levels(GPREEMPT_LEVEL="off"), ("no", "no throttle and gate in programs of ROCm: GPREEMPT_LEVEL is off"), "off")
    os.symlink("/bin/true", f"{folder}/rocminfo")  # it does not load the library
    tap.same(doctor_of_levels(PATH=folder)[0], "?", "another rocminfo")


@tap.test("XSched's HIP queue gets its Lv3: a running kernel is interrupted, stands still, and goes on")
def _(folder):
    with amd.Machine(folder) as machine:
        environment = dict(os.environ, GPREEMPT_SOCKET=machine.socket, LD_PRELOAD=amd.AGENT)
        for door in ({}, {"HSA_TOOLS_LIB": DOOR}):
            done = subprocess.run([XSCHED], env={**environment, **door}, capture_output=True, text=True, check=False)
            tap.same((done.returncode, "not ok" in done.stdout), (0, False), f"xsched_lv3 {door}: {done.stdout}{done.stderr}")


@tap.test("another tool in the same door, before ours or after, sees every launch, and so do we")
def _(folder):
    for order in ("first", "last"):
        seen = f"{folder}/{order}"
        done = subprocess.run([LEVELS, order, "tests/kernel/libother_tool.so"], env=dict(os.environ, GPREEMPT_OTHER_TOOL=seen), capture_output=True,
                              text=True, check=False)
        tap.same((done.returncode, "not ok" in done.stdout), (0, False), f"levels {order}: {done.stdout}{done.stderr}")
        tap.true(int(tap.read(seen)) > 50, f"{order}: it saw {tap.read(seen)} launches")


tap.main()
