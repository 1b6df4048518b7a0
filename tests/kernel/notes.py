#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=300 memory=3G param=cus=8
"""Programs written from the design notes' headers alone, on the stock driver."""

import os
import subprocess

import amd
import tap

PROGRAMS = os.path.join(os.path.abspath(tap.BUILD), "tests", "kernel")


def start(machine, name, *words):
    return subprocess.Popen([os.path.join(PROGRAMS, name), *map(str, words)], env=machine.environment(), text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@tap.test("from gpreempt_poc.h: finds a process's queues, suspends them, sees them suspended, resumes them; nothing is printed")
def _(folder):
    with amd.Machine(folder) as machine:
        target, other = machine.target(4), machine.target(2)
        program = start(machine, "notes_poc", target.pid)
        tap.same(program.stdout.readline(), "suspended 4 active 0\n", "what it saw")
        tap.true(target.stands_still(), "it goes on")
        other.goes_on()
        out, errors = program.communicate("\n", amd.PATIENCE)
        tap.same((program.returncode, out, errors), (0, "resumed 4 active 4\n", ""), "its end")
        target.goes_on()
        target.end()
        other.end()


@tap.test("from gpreempt_poc.h: the program is killed while it holds, and the queues go on")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(2)
        program = start(machine, "notes_poc", target.pid)
        tap.same(program.stdout.readline(), "suspended 2 active 0\n", "what it saw")
        program.kill()
        program.communicate()
        target.goes_on()
        target.end()


@tap.test("from gpreempt_poc_v2.h: unmaps and remaps, and says once that this kernel has no batch call and what it does instead")
def _(folder):
    with amd.Machine(folder, "--ways", "update") as machine:
        target = machine.target(3)
        with machine.cycles(5 * 3 * 2, least=5 * 3):
            program = start(machine, "notes_poc_v2", 5, *target.rings)
            out, errors = program.communicate(timeout=amd.PATIENCE)
        tap.same((program.returncode, out), (0, "found 3, unmapped and remapped 3, 5 times\n"), errors)
        tap.same(errors.count("\n"), 1, f"lines on stderr: {errors!r}")
        tap.true("batch" in errors and "UPDATE_QUEUE" in errors, f"stderr: {errors!r}")
        target.goes_on()
        target.end()


@tap.test("from gpreempt_poc_v2.h: a reservation of 75 and 25 percent is kept, and taken back; more than there is is refused")
def _(folder):
    with amd.Machine(folder, "--ways", "update") as machine:
        target = machine.target(8)
        slots = machine.list()["devices"][0]["queue_slots"]
        program = start(machine, "notes_poc_v2", "reserve", 0, 75, 25)
        tap.same(program.stdout.readline(), "reserved\n", "what it says")
        amd.until(lambda: list(machine.states(target).values()).count("running") == slots // 4, f"a quarter of {slots} are active")
        target.goes_on()  # all of them, in turns
        tap.same((program.communicate("", amd.PATIENCE)[0], program.returncode), ("", 0), "its end")
        amd.until(lambda: set(machine.states(target).values()) == {"running"}, "all run again")
        program = start(machine, "notes_poc_v2", "reserve", 0, 60, 50)
        _, errors = program.communicate("", amd.PATIENCE)
        tap.true(program.returncode == 1 and "Invalid argument" in errors, errors)
        tap.same(set(machine.states(target).values()), {"running"}, "states")
        target.end()


@tap.test("an id that is two processes' is refused, and nothing is stopped")
def _(folder):
    with amd.Machine(folder) as machine:
        first, second = machine.target(1), machine.target(1)
        tap.same(set(first.rings), set(second.rings), "their ids")
        program = start(machine, "notes_poc_v2", 1, *first.rings)
        _, errors = program.communicate(timeout=amd.PATIENCE)
        tap.same(program.returncode, 1, errors)
        tap.true("not unique" in errors, f"stderr: {errors!r}")
        first.goes_on()
        second.goes_on()


tap.main()
