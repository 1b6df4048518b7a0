#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=600 memory=3G param=cus=8
"""On a stock driver, through gpreemptd and the agents: what is suspended stands still, what is resumed goes on, nothing is lost."""

import contextlib

import amd
import tap
import suspended  # after tap, which finds it

LEASE = suspended.LEASE
FOR_EVER = 600_000  # ms; whoever has it on its queue is killed in the end
FAULTS = "/sys/kernel/debug/softgpu/0/faults"

# A queue is a call of its own, and each a device cycle.
suspended.add_cases(suspended.Way("update", cycles=lambda processes, queues: processes * queues))
# That a debugger attaches and lets go costs cycles too: only what costs none is counted.
suspended.add_shapes(suspended.Way("dbg", words=["runtime"]))


@tap.test("without gpreemptd a program under the agent runs as it would alone, and takes it up when it comes")
def _(folder):
    target = amd.Target(2, f"{folder}/gpreemptd.sock")
    target.goes_on()
    with amd.Machine(folder) as machine:
        amd.until(lambda: len(machine.queues(target)) == 2, "the agent finds gpreemptd")
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        tap.true(target.stands_still(), "it goes on")
    target.goes_on()
    target.end()


@tap.test("with no more rights than its service has, gpreemptd stops and resumes queues by agents and by its debugger")
def _(folder):
    for way in ("update", "dbg"):
        with amd.Machine(folder, "--ways", way, before=amd.service_rights()) as machine:
            target = machine.target(2, "runtime", agent=way == "update")
            machine.good("suspend", str(target.pid), "--lease", LEASE)
            tap.true(target.stands_still(), f"{way}: it goes on")
            machine.good("resume", str(target.pid))
            target.goes_on()
            target.end()


@contextlib.contextmanager
def early_pointers():
    """The read pointer moves when a packet is taken, as hardware may have it: an empty ring is not an idle queue."""
    tap.write(FAULTS, "early-rptr")
    try:
        yield
    finally:
        tap.write(FAULTS, "none")


def drained(machine, target, *more):
    """The result of a drain, and whether waves were saved for it."""
    saved = amd.stat("waves_saved")
    done = machine.run("preempt", f"{target.pid}:{next(iter(target.rings))}", "--type", "drain", "--lease", LEASE, *more)
    return done, amd.stat("waves_saved") > saved


def comes_back(machine, target):
    restored = amd.stat("waves_restored")
    machine.good("resume", str(target.pid))
    amd.until(lambda: amd.stat("waves_restored") > restored, "its waves are restored")
    tap.same(amd.stat("bad_restores"), 0, "bad restores")


def drains(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(1)
        target.tell("long 6000")
        done, has_saved = drained(machine, target, "--timeout", "60s")
        tap.same((done.returncode, has_saved), (0, False), f"exit, whether waves were saved ({done.stdout}{done.stderr})")
        tap.same(set(machine.states(target).values()), {"suspended"}, "states")
        machine.good("resume", str(target.pid))
        target.tell("busy")
        target.goes_on()
        target.end()


@tap.test("a drain waits for what is under way, and saves nothing")
def _(folder):
    drains(folder)


@tap.test("a drain waits for the last kernel though the read pointer has moved past its packet, and saves nothing")
def _(folder):
    with early_pointers():
        drains(folder)


@tap.test("a queue that never runs empty is saved when its drain's time is over, and nothing is lost")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(1)
        target.tell(f"long {FOR_EVER} 2")
        done, has_saved = drained(machine, target, "--timeout", "300ms")
        tap.same((done.returncode, has_saved), (0, True), f"exit, whether waves were saved ({done.stderr})")
        tap.true("Note: did not run empty within 300 ms: saved.\n" in done.stdout, done.stdout)
        tap.same(set(machine.states(target).values()), {"suspended"}, "states")
        comes_back(machine, target)


@tap.test("with --strict a queue whose last kernel does not end in time is left as it is")
def _(folder):
    with amd.Machine(folder) as machine, early_pointers():
        target = machine.target(1)
        target.tell(f"long {FOR_EVER}")
        done, has_saved = drained(machine, target, "--timeout", "300ms", "--strict")
        tap.same((done.returncode, has_saved), (1, False), f"exit, whether waves were saved ({done.stdout})")
        tap.same(done.stderr.count("did not run empty within 300 ms"), 1, done.stderr)
        tap.same(set(machine.states(target).values()), {"running"}, "states")


@tap.test("where nothing says whether the last kernel has ended, a drain saves it at the end of its time, or leaves it")
def _(folder):
    with amd.Machine(folder) as machine, early_pointers():
        target = machine.target(1)
        target.tell(f"mute {FOR_EVER}")
        done, has_saved = drained(machine, target, "--timeout", "300ms", "--strict")
        tap.same((done.returncode, has_saved), (1, False), f"exit, whether waves were saved ({done.stdout})")
        tap.true("no completion signal" in done.stderr, done.stderr)
        done, has_saved = drained(machine, target, "--timeout", "300ms")
        tap.same((done.returncode, has_saved), (0, True), f"exit, whether waves were saved ({done.stderr})")
        tap.true("no completion signal" in done.stdout and ": saved" in done.stdout, done.stdout)
        comes_back(machine, target)


@tap.test("a reset is refused, and the queue goes on")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(1)
        done = machine.run("preempt", str(target.pid), "--type", "reset")
        tap.true(done.returncode != 0 and "los" in done.stderr, f"reset: {done.returncode} {done.stderr}")
        target.goes_on()
        target.end()


@tap.test("a reservation keeps at most its share of offline queues active, and each gets its turn")
def _(folder):
    with amd.Machine(folder, "--ways", "update") as machine:  # with a session it would be the driver's to keep
        target = machine.target(4)
        slots = machine.list()["devices"][0]["queue_slots"]
        percent = -(-2 * 100 // slots)  # two of them
        machine.good("reserve", "0", str(100 - percent), str(percent))
        amd.until(lambda: list(machine.states(target).values()).count("suspended") == 2, "two of four are suspended")
        target.goes_on()  # all of them, in turns
        machine.good("reserve", "0", "0", "0")
        amd.until(lambda: set(machine.states(target).values()) == {"running"}, "all run again")
        target.end()


tap.main()
