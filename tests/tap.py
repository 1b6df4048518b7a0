# SPDX-License-Identifier: MIT
"""What the integration tests share: a test is a function whose @test is a sentence; main() runs all, in TAP.

Not a test itself: it stands outside tests/integration, where each file is one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import traceback

BUILD = os.environ.get("GPREEMPT_BUILD", "build")
SOURCE = os.environ.get("GPREEMPT_SOURCE", ".")
PROGRAM = os.path.join(os.path.abspath(BUILD), "gpreempt")

FAILED = 1
BAD_INPUT = 2

tests = []


class Skip(Exception):
    """This machine cannot run the test; the argument says why."""


def test(sentence):
    def keep(function):
        tests.append((sentence, function))
        return function
    return keep


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


def run_one(number, sentence, function):
    folder = tempfile.mkdtemp(prefix="gpreempt-test-")
    try:
        function(folder)
        print(f"ok {number} - {sentence}")
        return True
    except Skip as why:
        print(f"ok {number} - {sentence} # SKIP {why}")
        return True
    except Exception as wrong:  # a test that breaks has failed, and the others still run
        print(f"not ok {number} - {sentence}")
        say("".join(traceback.format_tb(wrong.__traceback__)[-2:]))
        say(f"{type(wrong).__name__}: {wrong}")
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        sys.stdout.flush()


def main():
    print(f"1..{len(tests)}", flush=True)
    results = [run_one(i, *entry) for i, entry in enumerate(tests, 1)]
    sys.exit(0 if all(results) else 1)


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)
