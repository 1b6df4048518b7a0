#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""On Linux 4.18 all of it works: other tests' cases again, under a filter that has no newer system call or socket option.

docs/KERNELS.md says what newer kernels give and what is done without it.
"""

import json
import os
import platform
import re
import sys

import tap

FILTER = os.path.join(tap.SOURCE, "tests", "old_kernel.py")

# What meets a process's end, its identity, sub-ms waits, descriptors that are sent, containers.
CASES = {
    "daemon": ["tool that is killed", "outlives its connection", "dies while it is asked", "is killed lets go", "another user may not act"],
    "scheduler": ["while an online queue is busy", "hint that nobody ends", "hints end with it"],
    "trust": ["does not speak for its parent", "ends with the process that asked", "on a dead process's queue", "connects anew",
              "who made it", "that somebody sends do not keep", "in another pid or user namespace"],
    "run": ["the agent is in the program", "those that the program would have had", "with more rights than its caller"],
    "debugger": ["that only it can stop"],
}
UNIT_TESTS = ["describe", "lib", "listen", "own", "server"]

ASK = """
import json, os, socket
def call(function, *words):
    try:
        function(*words)
        return 0
    except OSError as error:
        return error.errno
one, other = socket.socketpair()
option = lambda number: call(one.getsockopt, socket.SOL_SOCKET, number, 16)
print(json.dumps([call(os.pidfd_open, os.getpid()), option(77), option(83), option(socket.SO_PEERCRED), call(os.stat, "/")]))
"""


def old(*command, **more):
    if platform.machine() != "x86_64":
        raise tap.Skip("the filter knows the numbers of x86-64 alone")
    return tap.run(*command, program=FILTER, timeout=240, **more)


@tap.test("the filter answers newer calls and options as a kernel that lacks them does, and lets others pass")
def _(_folder):
    done = old(sys.executable, "-c", ASK)
    tap.same(json.loads(done.stdout), [38, 92, 92, 0, 0], "pidfd_open, SO_PEERPIDFD, SO_PASSRIGHTS, SO_PEERCRED, stat")


def run_cases(name):
    """Each word's cases, without an error; those that this machine skips."""
    words = CASES[name]
    done = old(sys.executable, os.path.join(tap.SOURCE, "tests", "integration", f"{name}.py"), "--jobs", "4", *words)
    whole = re.match(r"1\.\.0 # SKIP (.*)", done.stdout)
    if whole:
        raise tap.Skip(f"{name}.py: {whole[1]}")
    ok = re.findall(r"^ok \d+ - (.*)$", done.stdout, re.MULTILINE)
    unmet = [word for word in words if not any(word in case for case in ok)]
    tap.true(done.returncode == 0 and not unmet, f"no case has {unmet}, or one fails:\n{done.stdout}{done.stderr}")
    return [case for case in ok if " # SKIP " in case]


def passes(*names):
    skipped = sum(map(run_cases, names), [])
    if skipped:
        raise tap.Skip(f"{len(skipped)} of its cases: {skipped[0]}")


@tap.test("gpreemptd knows who its peers are, and when they end")
def _(_folder):
    passes("daemon", "trust")


@tap.test("gpreemptd schedules, and hands processes to its debuggers")
def _(_folder):
    passes("scheduler", "debugger")


@tap.test("gpreempt run and the agent work")
def _(_folder):
    passes("run")


@tap.test("the library, and what looks at processes and sockets, pass their unit tests")
def _(_folder):
    for name in UNIT_TESTS:
        done = old(os.path.join(os.path.abspath(tap.BUILD), "tests", f"test_{name}"), env={**os.environ, "CMOCKA_MESSAGE_OUTPUT": "STDOUT"})
        tap.same(done.returncode, 0, f"{name}:\n{done.stdout}{done.stderr}")


def newer_numbers():
    """Names in src/ that are defined there with the version of a kernel after 4.18."""
    for where, _, names in os.walk(os.path.join(tap.SOURCE, "src")):
        for name in names:
            found = re.findall(r"^#define (?:SYS_)?(\w+) .*/\* Linux (\d+)\.(\d+)", tap.read(where, name), re.MULTILINE)
            yield from (word for word, *version in found if tuple(map(int, version)) > (4, 18))


@tap.test("each number of a newer kernel in src/ is in docs/KERNELS.md, with what is done without it")
def _(_folder):
    rows = re.findall(r"^\| `(\w+)` \|.*\| .+ \|$", tap.read(tap.SOURCE, "docs", "KERNELS.md"), re.MULTILINE)
    tap.same(sorted(rows), sorted(set(newer_numbers())), "rows")


tap.main()
