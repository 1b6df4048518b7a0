#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The tests' own machinery: what tests/tap.py makes of tests that go wrong, which it runs, and how tools/check.py counts them."""

import contextlib
import glob
import os
import re
import signal
import subprocess
import sys
import time

import tap
from gpreemptd import until

sys.path.append(os.path.join(tap.SOURCE, "tools"))
import check

TESTS = """
import os, sys, time
import tap

@tap.test("a good one")
def _(folder):
    tap.say("heard")

@tap.test("one that this machine cannot run")
def _(folder):
    raise tap.Skip("there is no moon")

@tap.test("one that is skipped and does not say why")
def _(folder):
    raise tap.Skip

@tap.test("one that is wrong")
def _(folder):
    tap.same(1, 2, "numbers")

@tap.test("one whose child is wrong")
def _(folder):
    child = os.fork()
    if child == 0:
        raise KeyError("in the child")
    os.waitpid(child, 0)

@tap.test("one whose child returns")
def _(folder):
    child = os.fork()
    if child:
        os.waitpid(child, 0)

@tap.test("one that ends its process")
def _(folder):
    os._exit(0)

tap.main(jobs=2)
"""
SENTENCES = re.findall(r'@tap.test\("(.*?)"\)', TESTS)

SLOW = """
import time
import tap
for number in range(4):
    @tap.test(f"number {number}", alone=number == ALONE)
    def _(folder, number=number):
        begin = time.monotonic()
        time.sleep(0.6 - 0.1 * number)
        tap.say(f"{begin} {time.monotonic()}")
tap.main(jobs=4)
"""


def script(folder, text, *args, **more):
    """What a test file of that text prints."""
    path = tap.write(f"{folder}/tests.py", text)
    env = {**os.environ, "PYTHONPATH": os.path.join(tap.SOURCE, "tests")}
    return tap.run(path, *args, program=sys.executable, env=env, **more)


def results(text):
    """(number, is it well, sentence with directive) of each."""
    return [(int(number), not wrong, said) for wrong, number, said in re.findall(r"^(not )?ok (\d+) - (.*)$", text, re.MULTILINE)]


@tap.test("of tests side by side each result comes once and in order, a skip with its reason and a failure with its own")
def _(folder):
    done = script(folder, TESTS)
    tap.same(done.returncode, 1, done.stderr)
    tap.same([(number, well) for number, well, _ in results(done.stdout)],
             [(1, True), (2, True), (3, False), (4, False), (5, False), (6, False), (7, False)], done.stdout)
    tap.same(results(done.stdout)[1][2], f"{SENTENCES[1]} # SKIP there is no moon", "skip")
    for words in ("numbers: got 1, want 2", "In a child: .*KeyError: 'in the child'", "In a child: it returned",
                  "does not say why", "ended before its result, with 0"):
        tap.true(re.search(words, done.stdout.replace("\n# ", " ")), f"{words} in {done.stdout}")
    tap.true(done.stdout.startswith("1..7\n# heard\nok 1 - a good one\nok 2 "), done.stdout)


# As if the kernel had been round all of its numbers: every child has the same one.
AGAIN = """
import os
import tap
fork, wait = os.fork, os.wait
os.fork = lambda: min(fork(), 7)
os.wait = lambda: (7, wait()[1])
for number in range(3):
    @tap.test(f"number {number}", alone=True)
    def _(folder, number=number):
        tap.true(number != 1, "wrong")
tap.main(jobs=2)
"""


@tap.test("a test that has the process id of one that has ended gives a result of its own")
def _(folder):
    done = script(folder, AGAIN)
    tap.same([well for _, well, _ in results(done.stdout)], [True, False, True], done.stdout + done.stderr)


STARTS = """
import os, subprocess, time
import tap
@tap.test("one that starts a program and waits")
def _(folder):
    with subprocess.Popen(["/bin/sleep", "60"]) as program:
        tap.write("PID", str(program.pid))
        try:
            time.sleep(60)
        finally:
            program.kill()
@tap.test("one that fails")
def _(folder):
    while not tap.read("PID"):
        time.sleep(0.01)
    tap.true(False, "wrong")
@tap.test("one that is last", alone=True)
def _(folder):
    pass
tap.tests.insert(0, tap.tests.pop(1))
tap.main(jobs=2)
"""


@tap.test("with --stop the first failure ends the rest, and what they have started")
def _(folder):
    path = tap.write(f"{folder}/pid", "")
    done = script(folder, STARTS.replace("PID", path), "--stop")
    tap.same((done.returncode, [well for _, well, _ in results(done.stdout)]), (1, [False]), done.stdout)
    tap.true(not os.path.exists(f"/proc/{tap.read(path)}"), "its program goes on")
    done = script(folder, TESTS, "--stop", "--jobs", "1", "wrong", "3")
    tap.same([well for _, well, _ in results(done.stdout)], [False], done.stdout)


@tap.test("one after the other in one process they give the same results")
def _(folder):
    chosen = [word for word in SENTENCES if "ends its process" not in word]
    one, two = (script(folder, TESTS, "--jobs", jobs, *chosen) for jobs in ("1", "3"))
    tap.same(results(one.stdout), results(two.stdout), "results")
    tap.same(len(results(one.stdout)), 6, "tests")


@tap.test("tests are chosen by words of their sentence, in any case, or by number, and listed by --list")
def _(folder):
    tap.same(script(folder, TESTS, "--list").stdout, "".join(f"{n:3}  {said}\n" for n, said in enumerate(SENTENCES, 1)), "list")
    for args, want in ((["-k", "GOOD"], [0]), (["good", "child is"], [0, 4]), (["2"], [1]), (["-k", "good", "2"], [0, 1])):
        done = script(folder, TESTS, *args)
        tap.same([said.partition(" # ")[0] for _, _, said in results(done.stdout)], [SENTENCES[i] for i in want], args)
        tap.true(done.stdout.startswith(f"1..{len(want)}\n"), done.stdout)


@tap.test("a choice that fits no test is an error, not a success of nothing")
def _(folder):
    for args in (("-k", "no such words"), ("99",)):
        done = script(folder, TESTS, *args)
        tap.true(done.returncode != 0 and done.stdout == "" and args[-1] in done.stderr, done)


@tap.test("several tests run at a time, and one that must be alone is", alone=True)
def _(folder):
    def spans(alone):
        done = script(folder, SLOW.replace("ALONE", str(alone)))
        tap.same(done.returncode, 0, done.stdout)
        return [tuple(map(float, span)) for span in re.findall(r"^# (\S+) (\S+)$", done.stdout, re.MULTILINE)]

    together = spans(-1)
    tap.true(max(begin for begin, _ in together) < min(end for _, end in together), f"not together: {together}")
    first, second, alone, last = spans(2)
    tap.true(first[1] <= alone[0] and second[1] <= alone[0] and last[0] >= alone[1], "not alone")


ENDLESS = """
import os, time
import tap
@tap.test("it never ends")
def _(folder):
    tap.write("PID", str(os.getpid()))
    time.sleep(60)
tap.main(jobs=2)
"""


@tap.test("a file that is killed takes its tests with it")
def _(folder):
    path = tap.write(f"{folder}/pid", "")
    with contextlib.suppress(subprocess.TimeoutExpired):
        script(folder, ENDLESS.replace("PID", path), timeout=3)
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{tap.read(path)}/exe") and time.monotonic() < end:
        time.sleep(0.01)
    tap.true(tap.read(path) and not os.path.exists(f"/proc/{tap.read(path)}/exe"), "it goes on")


INTERRUPTS = """
import signal, subprocess
import tap
@tap.test("a program that it interrupts ends")
def _(folder):
    process = subprocess.Popen(["sleep", "5"])
    process.send_signal(signal.SIGINT)
    tap.same(process.wait(), -signal.SIGINT, "status")
tap.main(jobs=JOBS)
"""


@tap.test("in the background of a script, where Ctrl-C is ignored, tests may still interrupt what they start")
def _(folder):
    for jobs in ("1", "2"):
        done = script(folder, INTERRUPTS.replace("JOBS", jobs), preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        tap.same(done.returncode, 0, done.stdout + done.stderr)


@tap.test("every test file in Python can be started by its path, with nothing set, and says what it holds")
def _(folder):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GPREEMPT", "PYTHON"))}
    for path in sorted(glob.glob(f"{tap.SOURCE}/tests/integration/*.py") + glob.glob(f"{tap.SOURCE}/tests/kernel/*.py")):
        if os.path.islink(path) or "tap.main(" not in tap.read(path):
            continue
        done = tap.run("--list", program=path, env=env, cwd=folder)
        tap.same((done.returncode, done.stderr), (0, ""), path)
        tap.true(done.stdout.startswith("  1  ") or "# SKIP" in done.stdout, f"{path}: {done.stdout}")


@tap.test("what is skipped is counted as that, and the reason is told with the tests it kept from running")
def _(folder):
    tally = check.count_tap("some.py", script(folder, TESTS).stdout)
    tap.same(str(tally), "1 passed, 5 failed, 1 skipped", "counts")
    tap.same(tally.reasons(), [f"1 skipped, there is no moon: some.py: {SENTENCES[1]}"], "reasons")
    whole = check.count_test({"name": "page.py", "result": "SKIP", "stdout": "1..0 # SKIP no browser\n", "returncode": 0})
    tap.same((str(whole), whole.reasons()), ("0 passed, 0 failed, 1 skipped", ["1 skipped, no browser: all of page.py"]), "a whole file")
    tally.add(whole)
    tap.same((tally.skipped, len(tally.reasons())), (2, 2), "together")


def is_there(pid):
    """And no zombie."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return re.search(r"^State:\s+(\w)", tap.read(f"/proc/{pid}/status"), re.M)[1] not in "XZ"
    return False


@tap.test("of builds aside the first that fails is named with what was said, also by those before, and none follows it")
def _(folder):
    good, never = ["sh", "-c", "echo good"], ["touch", f"{folder}/next"]
    aside = check.Aside()
    for script_of_it in ("echo bad; exit 3", "echo bad; kill -9 $$"):
        bad = ["sh", "-c", script_of_it]
        tap.same(aside.begin([good, bad, never]).result(60)[1:], (bad, "good\nbad\n"), script_of_it)
    tap.same(aside.begin([good, good]).result(60)[1:], (None, "good\ngood\n"), "good ones")
    aside.end()
    tap.same(os.listdir(folder), [], "what followed")


@tap.test("a check that ends waits neither for a build that hears no SIGTERM nor for what one has left behind")
def _(folder):
    check.GRACE = 1  # s
    for number, text in enumerate(("trap '' TERM; echo $$ >PID; sleep 30", "setsid sleep 30 & echo $$ >PID; wait")):
        aside, pid = check.Aside(), f"{folder}/{number}"
        aside.begin([["sh", "-c", text.replace("PID", pid)]])
        until(lambda pid=pid: os.path.exists(pid) and tap.read(pid), "it builds", 60)
        begin = time.monotonic()
        aside.end()
        tap.true(time.monotonic() - begin < 20, f"{text}: it waited {time.monotonic() - begin:.0f} s")
        tap.true(not is_there(tap.read(pid).strip()), f"{text}: it goes on")


@tap.test("a check whose terminal goes, or that is told to end, ends what it builds")
def _(folder):
    os.mkdir(f"{folder}/bin")
    for name, text in (("clang", ""), ("meson", ""), ("ninja", f"echo $$ >{folder}/pid; exec sleep 60")):
        os.chmod(tap.write(f"{folder}/bin/{name}", f"#!/bin/sh\n{text}\n"), 0o755)
    env = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}")
    for number in (signal.SIGHUP, signal.SIGTERM):
        tap.write(f"{folder}/pid", "")
        with subprocess.Popen([sys.executable, check.__file__, "--build", f"{folder}/build", "clang"], env=env, stdout=subprocess.DEVNULL,
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)) as process:  # who runs us may ignore it
            until(lambda: tap.read(folder, "pid"), "it builds", 60)
            process.send_signal(number)
            tap.same(process.wait(60), 128 + number, "status")
        tap.true(not is_there(tap.read(folder, "pid").strip()), f"{number}: it goes on")


tap.main(jobs=4)
