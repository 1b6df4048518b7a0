# SPDX-License-Identifier: MIT
"""What holds of suspended queues whichever way they are stopped: by agents or a session on the driver, or on a simulated GPU.

Not a test itself: a test adds the cases for each way that it is about.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time

import amd
import tap

LEASE = "120s"
SHAPES = ((1, 1), (1, 4), (4, 6))  # processes, and queues of each


class Waves:
    """What the software GPU counts from here on."""

    def __init__(self):
        self.saved, self.away = amd.stat("waves_saved"), waves_away()

    def are_off(self):
        tap.same(amd.stat("active"), 0, "queues in the run list")
        tap.true(amd.stat("waves_saved") > self.saved, "no wave was saved")

    def are_back(self):
        tap.same(waves_away(), self.away, "waves that did not come back")
        tap.same(amd.stat("bad_restores"), 0, "bad restores")


class Way:
    """cycles: of the device, for a suspend of so many processes with so many queues each; None: nobody counts them."""

    waves = Waves
    changes_queues = True  # programs create, update and destroy queues as they run

    def __init__(self, name, cycles=None, words=(), agent=True, options=()):
        self.name, self.cycles, self.words, self.agent, self.options = name, cycles, words, agent, options

    def machine(self, folder, *options):
        return amd.Machine(folder, "--ways", self.name, *self.options, *options)

    def target(self, machine, queues):
        return machine.target(queues, *self.words, agent=self.agent)

    def costs(self, machine, *shape):
        return machine.cycles(self.cycles(*shape)) if self.cycles else contextlib.nullcontext()

    def costs_nothing(self, machine):
        return machine.cycles(0) if self.cycles else contextlib.nullcontext()


    def serve_again(self, machine):
        """A new gpreemptd, after the old one is gone."""
        machine.start("--ways", self.name)


cases = []


def case(sentence, changes_queues=False):
    def keep(function):
        cases.append((sentence, changes_queues, function))
        return function
    return keep


def add_cases(way):
    add_shapes(way)
    for sentence, changes_queues, function in cases:
        if changes_queues and not way.changes_queues:
            continue
        tap.test(f"{way.name}: {sentence}")(lambda folder, function=function: function(folder, way))


def add_shapes(way):
    for shape in SHAPES:
        tap.test(f"{way.name}: {shape[0]} x {shape[1]} queues are suspended, once, and resumed, once; they stand still, go on, and nothing is lost")(
            lambda folder, shape=shape: suspends_and_resumes(folder, way, *shape))


def pids(targets):
    return [str(target.pid) for target in targets]


def waves_away():
    """Saved and not restored: of those too that ended while they were stopped, in tests before."""
    return amd.stat("waves_saved") - amd.stat("waves_restored")


def suspends_and_resumes(folder, way, processes, queues):
    with way.machine(folder) as machine:
        targets = [way.target(machine, queues) for _ in range(processes)]
        waves = way.waves()
        with way.costs(machine, processes, queues):
            machine.good("suspend", *pids(targets), "--lease", LEASE)
        for target in targets:
            tap.same(set(machine.states(target).values()), {"suspended"}, "states")
            tap.true(target.stands_still(), f"{target.pid} goes on")
        waves.are_off()
        with machine.cycles(0):
            machine.good("suspend", *pids(targets), "--lease", LEASE)
        machine.good("resume", *pids(targets))
        for target in targets:
            tap.same(set(machine.states(target).values()), {"running"}, "states")
            target.goes_on()
        with way.costs_nothing(machine):
            machine.good("resume", *pids(targets))
        for target in targets:
            tap.true(target.end() > 0, "it had nothing to do")
        waves.are_back()


@case("one queue of four stands still while the others go on")
def _(folder, way):
    with way.machine(folder) as machine:
        target = way.target(machine, 4)
        first, *others = target.rings
        machine.good("suspend", f"{target.pid}:{first}", "--lease", LEASE)
        tap.true(target.stands_still([first]), "it goes on")
        target.goes_on(others)
        machine.good("resume", f"{target.pid}:{first}")
        target.goes_on()
        target.end()


@case("what the application sets while its queue is suspended comes with the resume, and not before", changes_queues=True)
def _(folder, way):
    with way.machine(folder) as machine:
        target = way.target(machine, 2)
        first, second = target.rings
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        target.tell(f"update {first} 100 11")
        target.tell(f"update {second} 0 7")
        tap.true(target.stands_still(), "the application's update resumed it")
        machine.good("resume", str(target.pid))
        target.goes_on([first])
        tap.true(target.stands_still([second]), "the resume undid the application's own 0 percent")
        amd.until(lambda: {queue["queue_id"]: queue["priority"] for queue in machine.queues(target)} == {first: 11, second: 7}, "priorities are told")
        target.tell(f"update {second} 100 7")
        target.goes_on()
        target.end()


@case("a queue that is created while its process is suspended stands still, and goes on with it", changes_queues=True)
def _(folder, way):
    with way.machine(folder) as machine:
        target = way.target(machine, 1)
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        target.ask("create")
        amd.until(lambda: list(machine.states(target).values()) == ["suspended"] * 2, "the new queue is suspended too")
        tap.true(target.stands_still(), "it goes on")
        machine.good("resume", str(target.pid))
        target.goes_on()
        target.end()


@case("a lease that ends resumes what it held")
def _(folder, way):
    with way.machine(folder) as machine:
        target = way.target(machine, 2)
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


@case("kill -9 of the program that holds a suspension resumes the queues")
def _(folder, way):
    with way.machine(folder) as machine:
        target = way.target(machine, 3)
        process = holder(machine, target)
        tap.true(target.stands_still(), "it goes on")
        process.kill()
        process.wait()
        target.goes_on()
        target.end()


@case("Ctrl-C of the program that holds a suspension resumes the queues, and is no error")
def _(folder, way):
    with way.machine(folder) as machine:
        target = way.target(machine, 2)
        process = holder(machine, target)
        process.send_signal(signal.SIGINT)
        tap.same(process.wait(amd.PATIENCE), 0, "its exit")
        target.goes_on()
        target.end()


@case("kill -9 of gpreemptd resumes the queues, and a new one serves the same processes")
def _(folder, way):
    with way.machine(folder) as machine:
        target = way.target(machine, 3)
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        machine.daemon.kill()
        machine.daemon.wait()
        target.goes_on()
        way.serve_again(machine)
        amd.until(lambda: len(machine.queues(target)) == 3, "it is known again")
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        tap.true(target.stands_still(), "it goes on")
        machine.good("resume", str(target.pid))
        target.goes_on()
        target.end()


@case("a gpreemptd that hangs: the lease ends, and the queues go on")
def _(folder, way):
    with way.machine(folder, "--lease", amd.SOME_LEASE) as machine:
        target = way.target(machine, 2)
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        machine.daemon.send_signal(signal.SIGSTOP)
        target.goes_on()
        machine.daemon.send_signal(signal.SIGCONT)
        target.goes_on()
        amd.until(lambda: len(machine.queues(target)) == 2, "it is known again")
        machine.good("resume", str(target.pid))
        target.goes_on()
        target.end()


@case("a process that is killed while it is being suspended, again and again, leaves gpreemptd well")
def _(folder, way):
    with way.machine(folder) as machine:
        witness = way.target(machine, 1)
        for i in range(6):
            target = way.target(machine, 4)
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


@case("a program that creates and destroys queues in a loop, suspended and resumed meanwhile, ends as it would alone", changes_queues=True)
def _(folder, way):
    with way.machine(folder) as machine:
        target = way.target(machine, 2)
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


@case("a process that calls exec while suspended has no queue left to resume, and the new program's run", changes_queues=True)
def _(folder, way):
    with way.machine(folder) as machine:
        target = way.target(machine, 2)
        machine.good("suspend", str(target.pid), "--lease", LEASE)
        target.process.stdin.write("exec\n")
        target.process.stdin.flush()
        target.hear_ready()
        machine.run("resume", str(target.pid))
        target.goes_on()
        target.end()
