#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The bed itself: a test that goes wrong, in whatever way, fails, says why, and does no harm to the next."""

import os
import re
import resource
import signal
import subprocess
import time

import tap
from tap import Skip, same, test, true

RUN = os.path.join(tap.SOURCE, "kernel", "bed", "run")
FOLDER = os.path.join(tap.SOURCE, "tests", "kernel", "bed")
TIMEOUT = 1200


def bed(*args):
    done = tap.run(*args, program=RUN, timeout=TIMEOUT)
    true("\n1.." in done.stdout or done.returncode, done.stdout + done.stderr)
    return done


def fixture(name):
    return os.path.join(FOLDER, name + ".sh")


class Once:
    """All fixtures in one call: each machine takes its time to boot."""

    done = None

    @classmethod
    def output(cls):
        if cls.done is None:
            cls.done = bed(*map(fixture, ("endless", "flood", "short", "wrong", "splat", "locked", "crash", "good", "hang", "awake")))
        return cls.done.stdout


def cases(name):
    """{sentence: passed} of one fixture."""
    found = re.findall(rf"^(not )?ok \d+ - {name}: (.*)$", Once.output(), re.MULTILINE)
    true(found, f"{name} is not there:\n{Once.output()}")
    return {sentence: not wrong for wrong, sentence in found}


@test("a run with failures exits with 1 and counts every case")
def exit_status(_):
    text = Once.output()
    same(Once.done.returncode, 1, "exit status")
    numbers = [int(number) for number in re.findall(r"^(?:not )?ok (\d+)", text, re.MULTILINE)]
    same(numbers, list(range(1, len(numbers) + 1)), "numbers")
    true(f"\n1..{len(numbers)}\n" in text, text)


@test("tests share a machine, though one of them wants more memory; what took how long is told")
def shared(_):
    before = Once.output().partition("- wrong: ")[0]
    starts = len(re.findall(r"^# a machine started in \d+ s$", before, re.MULTILINE))
    true(starts <= 1 + before.count("once more"), before)
    true(starts and re.search(r"^# short: took \d+ s$", before, re.MULTILINE), before)


@test("a test that never ends is killed with all it started, and where it was is shown")
def endless(_):
    found = cases("endless")
    same(found, {"the first half": True, "ends within 3 s": False, "leaves a clean kernel log": True}, "cases")
    true("hrtimer_nanosleep" in Once.output(), Once.output())


@test("a test that never stops talking is ended at its limit")
def flood(_):
    same(cases("flood")["ends within 3 s"], False)


@test("a test that reports less than it planned fails")
def short(_):
    same(cases("short")["reports 2: 1 cases seen, exit status 0"], False)


@test("a test that exits with an error fails though all its cases passed")
def wrong(_):
    same(cases("wrong"), {"all is well": True, "exits with 0, not 3": False, "leaves a clean kernel log": True})


@test("a complaint of the kernel fails the test that ran, with the log around it")
def splat(_):
    found = cases("splat")
    same(found, {"the test itself saw nothing": True, "leaves a clean kernel log": False}, "cases")
    for line in ("a line before it", "circular locking", "a line after it"):
        true(re.search(rf"^# \[.*{line}", Once.output(), re.MULTILINE), line)


def shows_where(text):
    return re.search("soft lockup - CPU#|stalls? on CPU", text) and "sg_faults_write" in text


@test("a CPU that is stuck fails the test that ran, with where it was")
def locked(_):
    # On a host that has no time it may be tried again; it is stuck then too.
    same(cases("locked"), {"it goes on": True, "leaves a clean kernel log": False}, "cases")
    if not shows_where(Once.output()):  # there another complaint may have come first, of work that waits for that CPU
        again = bed(fixture("locked")).stdout
        true(shows_where(again), again)


def starve(times, *words):
    """(exit status, output) of a run whose machine stands still for as long as it asks, that many times."""
    command = [RUN, " ".join([fixture("starved"), *words])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        text = ""
        for line in run.stdout:
            text += line
            asked = re.match(r"# starved: stop (\d+)$", line)
            if asked and times:
                times -= 1
                [machine] = tap.read(f"/proc/{run.pid}/task/{run.pid}/children").split()
                os.kill(int(machine), signal.SIGSTOP)
                time.sleep(int(asked[1]))
                os.kill(int(machine), signal.SIGCONT)
    return run.returncode, text


@test("a machine that the host keeps from running for longer than the kernel waits for a CPU gets a second try, and passes")
def starved(_):
    status, text = starve(1)
    same(status, 0, text)
    true(re.search(r"^# starved: the host kept .* once more$", text, re.MULTILINE), text)
    same(len(re.findall("^# starved: stop", text, re.MULTILINE)), 2, text)


@test("a complaint about more than time is a failure at once, busy host or not")
def starved_splat(_):
    status, text = starve(1, "splat")
    same(status, 1, text)
    true("once more" not in text and "circular locking" in text, text)


@test("a test that fails in every try fails, busy host or not")
def starved_wrong(_):
    status, text = starve(3, "wrong", "18")
    same((status, text.count("once more"), text.count("- starved: it has slept")), (1, 2, 1), text)


@test("a machine that dies fails the test that ran, with the end of its console")
def crash(_):
    same(cases("crash"), {"the last word": True, "the machine goes on": False})
    true("sysrq: Trigger a crash" in Once.output(), Once.output())


@test("the next test gets a new machine and passes")
def good(_):
    same(cases("good"), {"the tree can be written to": True, "it cannot # SKIP no reason": True,
                         "leaves a clean kernel log": True})


@test("what a test writes stays in the machine")
def written(_):
    Once.output()
    true(not os.path.exists(os.path.join(tap.SOURCE, "written")), "the host's tree was written to")


@test("a hang that is known of the stock driver is a pass")
def hang(_):
    same(cases("hang")["hangs in hrtimer_nanosleep on the stock driver, as is known"], True)


@test("a hang that is known and does not come is a failure")
def awake(_):
    same(cases("awake")["hangs in hrtimer_nanosleep on the stock driver, as is known"], False)


@test("a test that is not there is named, and nothing runs")
def absent(_):
    done = bed("no_such_test")
    same((done.returncode, done.stdout), (1, ""))
    true("no_such_test" in done.stderr, done.stderr)


@test("a wish that the bed does not know is refused")
def unknown_wish(folder):
    path = tap.write(os.path.join(folder, "wish"), "#!/bin/sh\n# bed: colour=blue\n")
    os.chmod(path, 0o755)
    done = bed(path)
    same((done.returncode, done.stdout), (1, ""))
    true("colour=blue" in done.stderr, done.stderr)


@test("a clock of instructions that QEMU cannot have is refused")
def odd_clock(folder):
    path = tap.write(os.path.join(folder, "clock"), "#!/bin/sh\n# bed: instruction_ns=3\n")
    os.chmod(path, 0o755)
    done = bed(path)
    same((done.returncode, done.stdout), (1, ""))
    true("instruction_ns=3" in done.stderr, done.stderr)


@test("without a series, --patched says so")
def patched(_):
    if os.path.isdir(os.path.join(tap.SOURCE, "kernel", "series")):
        raise Skip("there is a series")
    done = bed("--patched", fixture("good"))
    same(done.returncode, 1, "exit status")
    true("kernel/series" in done.stderr, done.stderr)


@test("with nothing to build, a test is through within 30 s of time, or of processor time on a busy machine")
def quick(_):
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    same(bed(fixture("good")).returncode, 0, "exit status")
    after, took = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begin
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    tap.say(f"{took:.1f} s, {spent:.1f} s of processor time")
    true(min(took, spent) < 30, "it took longer")


tap.main()
