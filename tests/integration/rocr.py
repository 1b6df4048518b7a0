#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Levels in ROCr's door, in a program on a runtime of the tests' own: what the agent is told, and what doctor says of it."""

import json
import os
import statistics
import struct
import subprocess
import time

import tap

import preload

BUILD = os.path.abspath(tap.BUILD)
DOOR = os.path.join(BUILD, "libgpreempt-level.so")
WORK = os.path.join(BUILD, "tests", "rocr_work")
ACTIVITY = 7
IDLE, BUSY = 1, 2
REST = 0.1  # s: between two looks of an agent that a door rings for


def activity_of(daemon):
    return struct.unpack_from("<I", daemon.receive(ACTIVITY), 16 + 24)[0]


class Work:
    """The program, with agent and door, and its daemon, which has heard that its queue is idle."""

    def __init__(self, folder, daemon, agent=True):
        self.daemon = daemon
        self.process = subprocess.Popen([WORK], env=preload.environment(folder, agent, HSA_TOOLS_LIB=DOOR), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.said = self.process.stdout.readline().split()
        if agent:
            daemon.accept()
            daemon.welcome(sample=1)
            tap.same(activity_of(daemon), IDLE, "at first")

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def until_told(self, word):
        """Seconds from the word until the agent says that the queue is busy; it is idle again then."""
        since = time.monotonic()
        self.say(word)
        tap.same(activity_of(self.daemon), BUSY, word)
        took = time.monotonic() - since
        self.say("take")
        tap.same(activity_of(self.daemon), IDLE, word)
        return took

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(preload.SOON)


@tap.test("a queue that is made through the door is known to it by the ring that the agent saw, and without an agent by its handle alone")
def _(folder):
    preload.need_preload()
    with preload.Daemon(os.path.join(folder, "sock")) as daemon:
        with Work(folder, daemon) as work:
            tap.same(work.said[1:], ["found"])
        with Work(folder, daemon, agent=False) as work:
            tap.same(work.said[1:], ["not", "found"])
            work.say("ring")
        tap.same(work.process.returncode, 0, "a ring that nobody hears")


@tap.test("a ring and a copy's call reach the agent at once, which looks ten times a second since the first; what rings for nobody waits for that")
def _(folder):
    preload.need_preload()
    took = {"ring": [], "copy": [], "write": []}
    with preload.Daemon(os.path.join(folder, "sock")) as daemon, Work(folder, daemon) as work:
        work.until_told("ring")
        for _turn in range(9):  # in turns: what else the machine does is the same for all
            for word, times in took.items():
                time.sleep(REST / 5)  # so that it falls into no look; the next one is far
                times.append(work.until_told(word))
    middle = {word: statistics.median(times) for word, times in took.items()}
    tap.true(max(middle["ring"], middle["copy"]) < middle["write"] / 2, f"medians in s: {middle}")


@tap.test("the queue of a thread's last launch can be opened without its handle, which HIP does not tell; before there was one, -ENODEV")
def _(folder):
    preload.need_preload()
    with preload.Daemon(os.path.join(folder, "sock")) as daemon, Work(folder, daemon, agent=False) as work:
        for word, said in (("last", "-22 -19 - 0"), ("ring", None), ("last", "-22 0 rocr 2")):
            work.say(word)
            if said:
                tap.same(work.process.stdout.readline().strip(), said, "the result with a stream too, the result, door and level")


# A device of that name that is no driver: nothing can be stopped by it, and the door needs none.
DEVICES = 'm=/usr/bin/mknod; /usr/bin/mount -t tmpfs none /dev && $m -m 666 /dev/null c 1 3 && $m -m 666 /dev/kfd c 1 7 && exec "$@"'


def said_of(folder, tables, path=""):
    """What doctor says of levels, where rocminfo is a program on a ROCr with these tables."""
    if os.getuid() != 0:
        raise tap.Skip("only root can put a device there")
    if not os.path.exists(WORK):
        raise tap.Skip("this build is instrumented: its libraries cannot be loaded by a program that is not")
    os.makedirs(f"{folder}/bin", exist_ok=True)
    if not os.path.lexists(f"{folder}/bin/rocminfo"):
        os.symlink(WORK, f"{folder}/bin/rocminfo")
    environment = {**os.environ, "PATH": path or f"{folder}/bin:{os.environ['PATH']}", "ROCR_WORK_TABLES": tables}
    done = tap.run("-m", "--propagation", "private", "/bin/sh", "-c", DEVICES, "sh", tap.PROGRAM, "doctor", "--json", program="/usr/bin/unshare",
                   env=environment)
    return next((check["state"], check["detail"]) for check in json.loads(done.stdout)["checks"] if check["what"] == "levels")


@tap.test("doctor says of a ROCr that nobody knows which versions and sizes its tables have, and which are known")
def _(folder):
    known = "known are those of ROCm 5.2 and of 6 and later"
    for tables, versions in (("4 3 3 125 90", "versions 4, 3 and 3 with 125 and 90"), ("1 1 1 125 49", "versions 1, 1 and 1 with 125 and 49"),
                             ("3 2 2 125 39", "versions 3, 2 and 2 with 125 and 39")):
        state, detail = said_of(folder, tables)
        tap.same((state, detail), ("no", f"no throttle and gate in programs of ROCm: ROCr's tables have {versions} entries; {known}"), tables)


@tap.test("doctor says of a known ROCr how to open the door, and where there is no rocminfo that it could not try")
def _(folder):
    for tables in ("1 1 1 125 48", "3 2 2 125 68", "3 2 2 126 84"):
        tap.same(said_of(folder, tables), ("yes", f"throttle and gate in programs of ROCm: HSA_TOOLS_LIB={DOOR}"), tables)
    os.makedirs(f"{folder}/empty")
    tap.same(said_of(folder, "3 2 2 125 68", f"{folder}/empty"), ("?", "no rocminfo here to try throttle and gate with"))


tap.main(jobs=2)
