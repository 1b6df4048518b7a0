#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=600 memory=3G param=cus=8
"""On a stock driver, through gpreemptd and the agents: what is suspended stands still, what is resumed goes on, nothing is lost."""

import contextlib
import os
import signal
import subprocess
import threading
import time

import amd
import tap

LEASE = "120s"
FOR_EVER = 600_000  # ms; whoever has it on its queue is killed in the end
FAULTS = "/sys/kernel/debug/softgpu/0/faults"


def pids(targets):
    return [str(target.pid) for target in targets]


def suspends_and_resumes(folder, processes, queues, way="update"):
    """That a debugger attaches and lets go costs cycles too: there only what costs none is counted."""
    by_debugger = way == "dbg"
    with amd.Machine(folder, "--ways", way) as machine:
        targets = [machine.target(queues, *(["runtime"] if by_debugger else [])) for _ in range(processes)]
        saved = amd.stat("waves_saved")
        with contextlib.nullcontext() if by_debugger else machine.cycles(processes * queues):
            machine.good("suspend", *pids(targets), "--lease", LEASE)
        for target in targets:
            tap.same(set(machine.states(target).values()), {"suspended"}, "states")
            tap.true(target.stands_still(), f"{target.pid} goes on")
        tap.same(amd.stat("active"), 0, "queues in the run list")
        tap.true(amd.stat("waves_saved") > saved, "no wave was saved")
        with machine.cycles(0):
            machine.good("suspend", *pids(targets), "--lease", LEASE)
        machine.good("resume", *pids(targets))
        for target in targets:
            tap.same(set(machine.states(target).values()), {"running"}, "states")
            target.goes_on()
        with contextlib.nullcontext() if by_debugger else machine.cycles(0):
            machine.good("resume", *pids(targets))
        for target in targets:
            tap.true(target.end() > 0, "it had nothing to do")
        tap.same(amd.stat("waves_saved"), amd.stat("waves_restored"), "waves restored")
        tap.same(amd.stat("bad_restores"), 0, "bad restores")


@tap.test("one queue is suspended, once, and resumed, once; one device cycle, and nothing is lost")
def _(folder):
    suspends_and_resumes(folder, 1, 1)


@tap.test("four queues of a process: four device cycles, and nothing is lost")
def _(folder):
    suspends_and_resumes(folder, 1, 4)


@tap.test("24 queues in four processes: 24 device cycles, and nothing is lost")
def _(folder):
    suspends_and_resumes(folder, 4, 6)


for shape in ((1, 1), (1, 4), (4, 6)):
    tap.test(f"by the debugger's interface: {shape[0]} x {shape[1]} queues stand still, go on, and nothing is lost")(
        lambda folder, shape=shape: suspends_and_resumes(folder, *shape, way="dbg"))


@tap.test("one queue of four stands still while the others go on")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(4)
        first, *others = target.rings
        machine.good("suspend", f"{target.pid}:{first}", "--lease", LEASE)
        tap.true(target.stands_still([first]), "it goes on")
        target.goes_on(others)
        machine.good("resume", f"{target.pid}:{first}")
        target.goes_on()
        target.end()


@tap.test("what the application sets while its queue is suspended comes with the resume, and not before")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(2)
        first, second = target.rings
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        target.tell(f"update {first} 100 11")
        target.tell(f"update {second} 0 7")
        tap.true(target.stands_still(), "the application's update resumed it")
        machine.good("resume", str(target.pid))
        target.goes_on([first])
        tap.true(target.stands_still([second]), "the resume undid the application's own 0 percent")
        priority = {queue["queue_id"]: queue["priority"] for queue in machine.queues(target)}
        tap.same(priority, {first: 11, second: 7}, "priorities")
        target.tell(f"update {second} 100 7")
        target.goes_on()
        target.end()


@tap.test("a queue that is created while its process is suspended stands still, and goes on with it")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(1)
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        target.ask("create")
        amd.until(lambda: list(machine.states(target).values()) == ["suspended"] * 2, "the new queue is suspended too")
        tap.true(target.stands_still(), "it goes on")
        machine.good("resume", str(target.pid))
        target.goes_on()
        target.end()


@tap.test("a lease that ends resumes what it held")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(2)
        machine.good("suspend", str(target.pid), "--lease", "2s")
        tap.true(set(machine.states(target).values()) <= {"suspended", "running"}, "states")
        target.goes_on()
        target.end()


def holder(machine, target):
    """gpreempt suspend, as long as it runs."""
    process = subprocess.Popen([tap.PROGRAM, "suspend", str(target.pid)], env=machine.environment(),
                               stdout=subprocess.PIPE, text=True)
    amd.until(lambda: set(machine.states(target).values()) == {"suspended"}, "it is suspended")
    return process


@tap.test("kill -9 of the program that holds a suspension resumes the queues")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(3)
        process = holder(machine, target)
        tap.true(target.stands_still(), "it goes on")
        process.kill()
        process.wait()
        target.goes_on()
        target.end()


@tap.test("Ctrl-C of the program that holds a suspension resumes the queues, and is no error")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(2)
        process = holder(machine, target)
        process.send_signal(signal.SIGINT)
        tap.same(process.wait(amd.PATIENCE), 0, "its exit")
        target.goes_on()
        target.end()


@tap.test("kill -9 of gpreemptd resumes the queues, and a new one serves the same processes")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(3)
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        machine.daemon.kill()
        machine.daemon.wait()
        target.goes_on()
        machine.start()
        amd.until(lambda: len(machine.queues(target)) == 3, "the agent has come back")
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        tap.true(target.stands_still(), "it goes on")
        machine.good("resume", str(target.pid))
        target.goes_on()
        target.end()


@tap.test("a gpreemptd that hangs: the agents' leases end, and the queues go on")
def _(folder):
    with amd.Machine(folder, "--lease", "1s") as machine:
        target = machine.target(2)
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        machine.daemon.send_signal(signal.SIGSTOP)
        target.goes_on()
        machine.daemon.send_signal(signal.SIGCONT)
        target.goes_on()
        amd.until(lambda: len(machine.queues(target)) == 2, "the agent has come back")
        machine.good("resume", str(target.pid))
        target.goes_on()
        target.end()


@tap.test("a process that is killed while it is being suspended, again and again, leaves gpreemptd well")
def _(folder):
    with amd.Machine(folder) as machine:
        witness = machine.target(1)
        for i in range(6):
            target = machine.target(4)
            timer = threading.Timer(i * 0.005, os.kill, (target.pid, signal.SIGKILL))
            timer.start()
            done = machine.run("suspend", str(target.pid), "--lease", LEASE)
            timer.join()
            target.process.wait()
            tap.true(done.returncode in (0, 1), f"exit {done.returncode}: {done.stderr}")
            amd.until(lambda: not machine.queues(target), "its queues are gone from the list")
        witness.goes_on()
        machine.good("suspend", str(witness.pid), "--lease", LEASE)
        tap.true(witness.stands_still(), "it goes on")
        machine.good("resume", str(witness.pid))
        witness.end()


@tap.test("a program that creates and destroys queues in a loop, suspended and resumed meanwhile, ends as it would alone")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(2)
        stop = threading.Event()

        def preempt():
            while not stop.is_set():
                machine.run("suspend", str(target.pid), "--lease", LEASE)
                machine.run("resume", str(target.pid))
                time.sleep(0.05)

        thread = threading.Thread(target=preempt)
        thread.start()
        try:
            target.tell("churn 30")
        finally:
            stop.set()
            thread.join()
        machine.run("resume", str(target.pid))
        target.goes_on()
        target.end()


@tap.test("a process that calls exec while suspended has no queue left to resume, and the new program's run")
def _(folder):
    with amd.Machine(folder) as machine:
        target = machine.target(2)
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        target.process.stdin.write("exec\n")
        target.process.stdin.flush()
        target.hear_ready()
        machine.run("resume", str(target.pid))
        target.goes_on()
        target.end()


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
    with amd.Machine(folder) as machine:
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
