# SPDX-License-Identifier: MIT
"""What tests in Python share: a test is a function whose @test is a sentence; main() runs all, or those chosen, in TAP.

Not a test itself: it stands outside tests/integration, where each file is one. The links to it there and in tests/kernel let
each test be started by its path: `tests/integration/daemon.py --help` says how to choose.
"""

import argparse
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCE = os.environ.get("GPREEMPT_SOURCE", os.path.dirname(HERE))
BUILD = os.environ.get("GPREEMPT_BUILD", os.path.join(SOURCE, "build"))
PROGRAM = os.path.join(os.path.abspath(BUILD), "gpreempt")

FAILED = 1
BAD_INPUT = 2

PR_SET_PDEATHSIG = 1
STRAY = "stray"  # a file in a test's folder: what a child said that came out of the test

tests = []
sys.dont_write_bytecode = True
sys.path.append(HERE)  # for what else they share


class Skip(Exception):
    """This machine cannot run the test; the argument says why."""


def test(sentence, alone=False):
    """alone: nothing of the same file runs beside it. For what measures time, or changes what others see."""
    def keep(function):
        tests.append((sentence, function, alone))
        return function
    return keep


def die_with_parent():
    """For a child: nothing of a test is to outlive it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(*args, program=PROGRAM, timeout=120, **more):
    """The program with these arguments: stdout, stderr and returncode of it."""
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("text", True)
    if "stdout" not in more:
        more["stdout"] = subprocess.PIPE
    if "stderr" not in more:
        more["stderr"] = subprocess.PIPE
    return subprocess.run([program, *args], timeout=timeout, check=False, **more)


def good(*args, **more):
    """As run(), and it must succeed."""
    done = run(*args, **more)
    same(done.returncode, 0, f"{' '.join(args)}: {done.stderr}")
    return done


def true(what, why):
    if not what:
        raise AssertionError(why)


def same(got, want, why=""):
    if got != want:
        raise AssertionError(f"{why}: got {shorten(got)}, want {shorten(want)}")


def shorten(value):
    text = repr(value)
    return text if len(text) < 400 else text[:200] + " ... " + text[-150:]


def read(*path, mode="r"):
    with open(os.path.join(*path), mode, encoding=None if "b" in mode else "utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "wb" if isinstance(text, bytes) else "w", encoding=None if isinstance(text, bytes) else "utf-8") as file:
        file.write(text)
    return path


def say(text):
    for line in str(text).rstrip("\n").split("\n"):
        print("#", line)


def outcome(function, folder):
    """(is it well, its directive, what else is to be said)"""
    owner = os.getpid()
    result = True, "", ""
    try:
        function(folder)
    except Skip as why:
        result = (True, f" # SKIP {why}", "") if str(why) else (False, "", "It was skipped and does not say why.")
    except Exception as wrong:  # a test that breaks has failed, and the others still run
        trace = "".join(traceback.format_tb(wrong.__traceback__)[-2:])
        result = False, "", f"{trace}{type(wrong).__name__}: {wrong}"
    if os.getpid() != owner:
        stray(folder, result)
    said = read(folder, STRAY) if os.path.exists(os.path.join(folder, STRAY)) else ""
    return (False, "", f"{result[2]}\nIn a child: {said}") if said else result


def stray(folder, result):
    """A child that a test has forked must not go on with the other tests, and what went wrong in it must not be lost."""
    try:
        write(os.path.join(folder, STRAY), result[2] or result[1] or "it returned")
    finally:
        os._exit(1)


def run_one(number, sentence, function):
    folder = tempfile.mkdtemp(prefix="gpreempt-test-")
    try:
        is_ok, directive, said = outcome(function, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{'' if is_ok else 'not '}ok {number} - {sentence}{directive}")
    if said:
        say(said)
    sys.stdout.flush()
    return is_ok


class Child:
    """A test in a process of its own; what it prints waits for its turn."""

    def __init__(self, number, sentence, function):
        self.name = f"{number} - {sentence}"
        self.out = tempfile.TemporaryFile()
        self.status = None  # it runs
        self.pid = os.fork()
        if self.pid == 0:
            die_with_parent()
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what the test has started ends with it
            os.dup2(self.out.fileno(), sys.stdout.fileno())
            try:
                os._exit(0 if run_one(number, sentence, function) else 1)
            finally:
                os._exit(1)

    def end(self):
        """Shows what it printed; a child that printed no result has failed. True if all is well."""
        status = self.status
        self.out.seek(0)
        text = self.out.read().decode(errors="replace")
        self.out.close()
        if not re.search(r"^(not )?ok ", text, re.MULTILINE):
            text += f"not ok {self.name}\n# It ended before its result, with {status}.\n"
            status = status or 1
        print(text, end="", flush=True)
        return status == 0


def run_many(chosen, jobs, stop):
    """Up to so many at a time; the results in the order of the tests. True if all are well."""
    children, running, results = [], {}, []

    def wait(most):
        while len(running) > most:
            pid, status = os.wait()
            child = running.pop(pid, None)  # from here on another may have that pid
            if child:  # else it was somebody's whose parent has gone
                child.status = os.waitstatus_to_exitcode(status)
            while len(results) < len(children) and children[len(results)].status is not None:
                results.append(children[len(results)].end())
                if stop and not results[-1]:
                    end_all(running.values())

    for number, (sentence, function, alone) in enumerate(chosen, 1):
        wait(0 if alone else jobs - 1)
        children.append(Child(number, sentence, function))
        running[children[-1].pid] = children[-1]
        if alone:
            wait(0)
    wait(0)
    return all(results)


def end_all(children):
    for child in children:
        os.kill(child.pid, signal.SIGTERM)
    for child in children:
        os.waitpid(child.pid, 0)
    sys.exit(1)


def is_chosen(number, sentence, words):
    return not words or any(word == str(number) or (not word.isdigit() and word.lower() in sentence.lower()) for word in words)


def parse(jobs):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--list", action="store_true", help="the tests, with their numbers")
    parser.add_argument("--jobs", type=int, default=jobs, metavar="N", help="tests at a time; %(default)s unless given. 1: in this very process")
    parser.add_argument("--stop", action="store_true", help="end with the first that fails")
    parser.add_argument("-k", action="append", default=[], metavar="TEXT", dest="words", help="as TEXT")
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="run the tests whose sentences have one of these in them, or by number")
    return parser.parse_args()


def main(jobs=1):
    """jobs: how many of this file's tests may run at a time; more than 1 only where they share nothing."""
    options = parse(jobs)
    words = options.words + options.texts
    chosen = [(number, *entry) for number, entry in enumerate(tests, 1) if is_chosen(number, entry[0], words)]
    if not chosen:
        sys.exit(f"No test here has {' or '.join(map(repr, words))} in its sentence; --list shows them.")
    if options.list:
        print(*(f"{number:3}  {sentence}" for number, sentence, *_ in chosen), sep="\n")
        sys.exit(0)
    if not os.path.exists(PROGRAM):
        sys.exit(f"{BUILD}: nothing is built there. `make` builds; GPREEMPT_BUILD names another folder.")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's & has it ignored, and what is tested would inherit that
    print(f"1..{len(chosen)}", flush=True)
    entries = [entry[1:] for entry in chosen]
    if options.jobs > 1:
        sys.exit(0 if run_many(entries, options.jobs, options.stop) else 1)
    results = (run_one(number, sentence, function) for number, (sentence, function, _) in enumerate(entries, 1))
    sys.exit(0 if all(results if options.stop else list(results)) else 1)


def skip_all(why):
    """The whole file, in place of main()."""
    print(f"1..0 # SKIP {why}")
    sys.exit(0)
