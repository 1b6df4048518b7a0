#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreemptd and its debuggers, whose part the test plays, by a clock that the test puts forward.

A library in gpreemptd starts a script for each debugger, which hands the test its end of the socket.
"""

import contextlib
import errno
import os
import signal
import socket
import struct
import subprocess

import tap
from gpreemptd import NOBODY, AsUser, daemon, foreign, put, until
from preload import DOUBLE
from protocol import (
    Agent, Gone, Items, ALL_DEVICES, BUSY, DBG, DONE, DRAIN, END, ERROR, EVENT, EVENTS, HINT, HINT_BEGIN, HOLD, PING, RELEASE, RUN,
    RUNNING, SAVE, SOON, STOP, SUSPENDED, UPDATE, WANTS, WELCOME,
)

HOUR_S = 3600

LIBRARY = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int execv(const char *path, char *const args[])
{
	(void)path;
	return execve(getenv("DEBUGGER"), args, environ);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	char text[32] = "";
	int r = (int)syscall(SYS_clock_gettime, clock, t), fd = open(getenv("AHEAD"), O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && clock == CLOCK_MONOTONIC)
		t->tv_sec += atol(text);
	if (fd >= 0)
		close(fd);
	return r;
}
"""

SCRIPT = """#!/usr/bin/python3
import signal, socket, sys
test = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
test.connect({path!r})
socket.send_fds(test, [repr((sys.argv[1:], len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))).encode()], [3, 4])
"""


class Debugger(Agent):
    """The next that is started."""

    def __init__(self, bed):
        connection, _ = bed.listener.accept()
        words, fds, _, _ = socket.recv_fds(connection, 4096, 2)
        connection.close()
        self.words, self.process = words.decode(), fds[1]
        self.socket = socket.socket(fileno=fds[0])
        self.socket.settimeout(SOON)
        self.serial = self.flags = 0
        self.stopped, self.wanted = {}, []
        bed.debuggers.append(self)

    def ready(self, *numbers):
        for number in numbers:
            self.add(number)
        self.send(END)
        return self

    def fails(self, status, said):
        self.send(ERROR, struct.pack("<i192s", -status, said.encode()))
        self.close()

    def is_let_go(self):
        try:
            while True:
                self.receive()
        except Gone:
            return True


class Bed:
    def __init__(self, d, folder, listener):
        self.d, self.folder, self.listener, self.debuggers, self.seconds = d, folder, listener, [], 0

    def pass_time(self, seconds):
        """It is later when this returns, and what was due has been done."""
        self.seconds += seconds
        tap.write(f"{self.folder}/ahead", str(self.seconds))
        tool = self.d.tool()
        tool.list()
        tool.close()

    def starts_none(self):
        self.d.tool().list()
        self.listener.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            self.listener.accept()
            raise AssertionError("a debugger is started")
        self.listener.settimeout(SOON)


@contextlib.contextmanager
def bed(folder, *options):
    if not os.path.exists(DOUBLE):
        raise tap.Skip("this build is instrumented: nothing can be preloaded into it")
    source = tap.write(f"{folder}/library.c", LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{folder}/library.so", source], check=True)
    script = tap.write(f"{folder}/debugger", SCRIPT.format(path=f"{folder}/debuggers"))
    os.chmod(script, 0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{folder}/debuggers")
        listener.listen()
        listener.settimeout(SOON)
        env = {"LD_PRELOAD": f"{folder}/library.so", "DEBUGGER": script, "AHEAD": tap.write(f"{folder}/ahead", "0")}
        words = "[scheduler]\nmax_starve = never\n"
        with daemon(folder, "--config", tap.write(f"{folder}/conf", words), *options, env=env) as d:
            one = Bed(d, folder, listener)
            yield one
            for debugger in one.debuggers:
                debugger.close()


def pid_of(fd):
    """Of a pidfd, or of a folder in /proc."""
    path = os.readlink(f"/proc/self/fd/{fd}")
    if path.startswith("/proc/"):
        return int(os.path.basename(path))
    return next(int(line.split()[1]) for line in tap.read(f"/proc/self/fdinfo/{fd}").splitlines() if line.startswith("Pid:"))


def held(b, tool, agent, *numbers):
    """A debugger that has stopped the agent's queues of these numbers for the tool."""
    queues = [q["queue"] for q in tool.queues() if q["queue_id"] in numbers]
    serial = tool.ask(HOLD, Items(queues, STOP, way=DBG))
    debugger = Debugger(b).ready(*agent.stopped)
    debugger.answer()
    tap.same(tool.result(serial).statuses(), [0] * len(numbers), "hold")
    return debugger, queues


def release(tool, debugger, queues):
    serial = tool.ask(RELEASE, Items(queues))
    debugger.answer()
    return tool.result(serial)


# From its start to its end


@tap.test("a debugger is started for a queue that only it can stop, and let go when it was not used for five seconds")
def _(folder):
    with bed(folder, "--ways", "dbg") as b:
        agent, tool = b.d.agent(), b.d.tool()
        for _ in range(2):
            serial = tool.ask(HOLD, Items(tool.handles(), STOP))
            debugger = Debugger(b)
            tap.same(debugger.words, repr((["--dbg", str(os.getpid()), "--uid", str(os.getuid())], 0)), "how it is started, signals it does not hear")
            tap.same(pid_of(debugger.process), os.getpid(), "whose handle it has")
            tap.same(struct.unpack_from("<Q", debugger.wait(WELCOME)[2])[0], 3 * 10**9, "lease")
            tap.same(debugger.ready(1).answer().way, DBG, "way")
            result = tool.result(serial)
            tap.same((result.statuses(), result.way, result.text), ([0], DBG, ""), "hold")
            b.pass_time(60)
            tap.same((debugger.hears(0.2), tool.state(tool.handles()[0])), ([], SUSPENDED), "while it is held")
            release(tool, debugger, tool.handles())
            b.pass_time(4)
            tap.same(debugger.hears(0.2), [], "a moment later")
            b.pass_time(2)
            tap.true(debugger.is_let_go(), "it is let go")
            debugger.close()
            until(lambda: tool.queues()[0]["way"] == "dbg", "another would be started")
        tap.same((b.d.log().count("debugging process"), agent.hears(0)), (2, []), "lines in the log, what the agent heard")


@tap.test("a debugger in use hears that gpreemptd is there; one that is let go hears nothing")
def _(folder):
    with bed(folder, "--ways", "dbg", "--lease", "150ms") as b:
        agent, tool = b.d.agent(), b.d.tool()
        debugger, queues = held(b, tool, agent, 1)
        for _ in range(3):
            tap.same(debugger.wait(PING)[0], PING, "heard")
        release(tool, debugger, queues)
        b.pass_time(6)
        tap.true(debugger.is_let_go(), "it is let go")


@tap.test("a queue that is wanted while its debugger is let go gets the next one")
def _(folder):
    with bed(folder, "--ways", "dbg") as b:
        agent, tool = b.d.agent(), b.d.tool()
        debugger, queues = held(b, tool, agent, 1)
        release(tool, debugger, queues)
        b.pass_time(6)
        tap.true(debugger.is_let_go(), "it is let go")
        serial = tool.ask(HOLD, Items(queues, STOP))
        b.starts_none()
        debugger.close()
        Debugger(b).ready(1).answer()
        tap.same(tool.result(serial).statuses(), [0], "hold")


@tap.test("SIGTERM resumes by the debugger, lets it go, and waits for its end")
def _(folder):
    with bed(folder, "--ways", "dbg") as b:
        agent, tool = b.d.agent(), b.d.tool()
        debugger, _ = held(b, tool, agent, 1)
        b.d.process.terminate()
        tap.same(debugger.answer().list[0][1], RUN, "want")
        tap.true(debugger.is_let_go(), "it is let go")
        tap.same(b.d.process.poll(), None, "it waits")
        debugger.close()
        tap.same(b.d.process.wait(SOON), 0, "status")


@tap.test("a release before the debugger is ready cancels the hold, and asks nothing of the debugger")
def _(folder):
    with bed(folder, "--ways", "dbg") as b:
        agent, tool, other = b.d.agent(), b.d.tool(), b.d.tool()
        hold = tool.ask(HOLD, Items(tool.handles(), STOP))
        debugger = Debugger(b)
        tap.same(other.release(other.handles()).statuses(), [0], "release")
        tap.same(tool.result(hold).statuses(), [-errno.ECANCELED], "hold")
        debugger.wait(WELCOME)
        debugger.ready(1)
        tap.same((debugger.hears(0.2), agent.hears(0)), ([], []), "what they hear")
        b.pass_time(6)
        tap.true(debugger.is_let_go(), "it is let go")


# What goes wrong


@tap.test("what a debugger says is wrong is the hold's result, and the next is started after a pause, twice as long each time")
def _(folder):
    with bed(folder, "--ways", "dbg") as b:
        agent, tool = b.d.agent(), b.d.tool()
        for pause in (1, 2, 4):
            serial = tool.ask(HOLD, Items(tool.handles(), STOP))
            Debugger(b).fails(errno.EBUSY, "rocgdb has it")
            result = tool.result(serial)
            tap.same((result.statuses(), result.text), ([-errno.EBUSY], "dbg failed: rocgdb has it"), "hold")
            until(lambda: b.d.log().count("rocgdb has it") >= 1, "in the log")
            result = tool.hold(tool.handles())
            tap.same((result.statuses(), result.text), ([-errno.EAGAIN], "dbg failed: its last debugger failed a moment ago"), "too soon")
            if pause > 1:
                b.pass_time(pause - 1)
                tap.same(tool.hold(tool.handles()).statuses(), [-errno.EAGAIN], "still too soon")
            b.pass_time(1 if pause > 1 else 2)
        debugger, queues = held(b, tool, agent, 1)
        release(tool, debugger, queues)
        b.pass_time(6)
        tap.true(debugger.is_let_go(), "it is let go")
        debugger.close()
        serial = tool.ask(HOLD, Items(queues, STOP))
        Debugger(b).fails(errno.EBUSY, "rocgdb has it")
        tool.result(serial)
        b.pass_time(2)
        held(b, tool, agent, 1)


@tap.test("a debugger that ends before it is ready fails the hold; one that is never ready, too")
def _(folder):
    with bed(folder, "--ways", "dbg", "--patience", "2s") as b:
        agent, tool = b.d.agent(), b.d.tool()
        serial = tool.ask(HOLD, Items(tool.handles(), STOP))
        Debugger(b).close()
        result = tool.result(serial)
        tap.same((result.statuses(), result.text), ([-errno.ECONNRESET], "dbg failed: the debugger ended"), "ended")
        b.pass_time(2)
        serial = tool.ask(HOLD, Items(tool.handles(), STOP))
        Debugger(b)
        b.pass_time(3)
        tap.same(tool.result(serial).statuses(), [-errno.ETIMEDOUT], "never ready")
        agent.close()


@tap.test("a stop for online work whose debugger is never ready has failed after a time, and is in the record")
def _(folder):
    with bed(folder, "--ways", "dbg") as b:
        agent, tool = Agent(b.d.path, 0), b.d.tool()
        agent.add(1, priority=11)
        agent.add(2)
        until(lambda: len(tool.queues()) == 2, "listed")
        agent.activity(1, BUSY)
        Debugger(b)
        tool.send(EVENTS, struct.pack("<II", 1, 1 << 2))
        b.pass_time(11)
        _, _, body = tool.wait(EVENT)
        tap.same(struct.unpack_from("<i", body, 52)[0], -errno.ETIMEDOUT, "status")
        tap.true(b"dbg failed: " in body, body)
        agent.close()


@tap.test("a queue that the debugger does not see is not stopped, and the result says so, now and later")
def _(folder):
    with bed(folder, "--ways", "dbg") as b:
        agent, tool = b.d.agent(queues=2), b.d.tool()
        serial = tool.ask(HOLD, Items(tool.handles(), STOP))
        debugger = Debugger(b).ready(2)
        debugger.answer()
        result = tool.result(serial)
        tap.same((result.statuses(), result.text), ([-errno.ENXIO, 0], "dbg failed: the debugger does not see this queue"), "hold")
        result = tool.hold(tool.handles()[:1])
        tap.same(result.statuses(), [-errno.EOPNOTSUPP], "again")
        tap.same(result.text, f"the debugger of process {os.getpid()} does not see this queue", "text")
        agent.close()


@tap.test("a queue whose debugger ends runs, and another debugger stops it again while the hold lasts")
def _(folder):
    with bed(folder, "--ways", "dbg") as b:
        agent, tool = b.d.agent(), b.d.tool()
        debugger, queues = held(b, tool, agent, 1)
        debugger.close()
        debugger = Debugger(b)
        tap.same(tool.state(queues[0]) == SUSPENDED, False, "it runs")
        debugger.ready(1).answer()
        until(lambda: tool.state(queues[0]) == SUSPENDED, "stopped again")
        tap.same(b.d.log().count("ended: queue"), 1, "lines in the log")
        agent.close()


@tap.test("a debugger that ends in a stop is followed by the next way; in a resume, it is resumed")
def _(folder):
    with bed(folder, "--ways", "dbg,update") as b:
        agent, tool = b.d.agent(), b.d.tool()
        queues = tool.handles()
        serial = tool.ask(HOLD, Items(queues, STOP))
        debugger = Debugger(b).ready(1)
        debugger.wait(WANTS)
        debugger.close()
        agent.answer()
        result = tool.result(serial)
        tap.same((result.statuses(), result.way, result.text), ([0], UPDATE, "dbg failed: the debugger ended; used update"), "hold")
        serial = tool.ask(RELEASE, Items(queues))
        agent.answer()
        tool.result(serial)
        debugger, _ = held(b, tool, agent, 1)
        serial = tool.ask(RELEASE, Items(queues))
        debugger.wait(WANTS)
        debugger.close()
        tap.same((tool.result(serial).statuses(), tool.state(queues[0])), ([0], RUNNING), "release")
        tap.same(agent.hears(0.2), [], "what the agent hears")


# Beside an agent


@tap.test("a stop that fails by the agent is done by the debugger, and resumed by it")
def _(folder):
    with bed(folder, "--ways", "update,dbg") as b:
        agent, tool = b.d.agent(), b.d.tool()
        serial = tool.ask(HOLD, Items(tool.handles(), STOP))
        agent.answer(agent.refuse(errno.EIO))
        debugger = Debugger(b).ready(1)
        debugger.answer()
        result = tool.result(serial)
        tap.same((result.statuses(), result.way), ([0], DBG), "hold")
        tap.same(result.text, "update failed: Input/output error; used dbg", "text")
        tap.same(release(tool, debugger, tool.handles()).statuses(), [0], "release")
        tap.same(agent.hears(0.2), [], "what the agent hears")


@tap.test("who did not stop a queue is not believed that it runs: neither a debugger of the agent's stop, nor the agent of the debugger's")
def _(folder):
    with bed(folder, "--ways", "update,dbg?") as b:
        agent, tool = b.d.agent(queues=2), b.d.tool()
        first = next(q["queue"] for q in tool.queues() if q["queue_id"] == 1)
        serial = tool.ask(HOLD, Items([first], STOP))
        agent.answer()
        tool.result(serial)
        debugger, [second] = held(b, tool, agent, 2)
        agent.add(2, stopped=0)
        tap.same((agent.hears(0.2), debugger.hears(0.2)), ([], []), "what they hear")
        tap.same((tool.state(first), tool.state(second)), (SUSPENDED, SUSPENDED), "states")
        debugger.add(2, stopped=0)
        tap.same(debugger.answer().list[0][:2], [2, STOP], "who did is believed")
        agent.close()


@tap.test("a stop by the debugger goes on though the agent goes")
def _(folder):
    foreign(folder, os.getpid(), 1)
    with bed(folder, "--ways", "dbg") as b:
        agent, tool = b.d.agent(), b.d.tool()
        serial = tool.ask(HOLD, Items(tool.handles(), STOP))
        debugger = Debugger(b).ready(1)
        _, asked, body = debugger.wait(WANTS)
        agent.close()
        until(lambda: "is gone" in b.d.log(), "it is gone")
        debugger.send(DONE, body, asked)
        tap.same(tool.result(serial).statuses(), [0], "hold")


@tap.test("who does not want to wait for a drain is heard while the debugger is being started")
def _(folder):
    with bed(folder, "--ways", "dbg") as b:
        agent, patient, hasty = b.d.agent(), b.d.tool(), b.d.tool()
        queues = patient.handles()
        first = patient.ask(HOLD, Items(queues, STOP, kind=DRAIN, timeout=60 * 10**9))
        debugger = Debugger(b)
        second = hasty.ask(HOLD, Items(queues, STOP))
        hasty.queues()  # it was taken
        tap.same(debugger.ready(1).answer().kind, SAVE, "what the debugger is asked for")
        tap.same((patient.result(first).statuses(), hasty.result(second).statuses()), ([0], [0]), "both")
        agent.close()


def descriptors(d):
    return len(os.listdir(f"/proc/{d.process.pid}/fd"))


@tap.test("whoever comes and goes leaves no descriptor behind")
def _(folder):
    os.chmod(folder, 0o755)
    put(f"{folder}/root", "etc/passwd", "nobody:x:65534:65534::/:/bin/false\n")
    for options in ((), ("--old-kernel",)):
        with bed(folder, "--ways", "dbg,update", "--scan", "50ms", "--lease", "150ms", *options) as b:
            before = descriptors(b.d)
            for number in range(3):
                put(f"{folder}/root", "etc/subuid", f"nobody:{number + 1}:1\n")
                agent, tool = b.d.agent(), b.d.tool()
                debugger, queues = held(b, tool, agent, 1)
                release(tool, debugger, queues)
                AsUser(NOBODY, lambda: b.d.agent().close()).end()
                b.d.process.send_signal(signal.SIGHUP)
                until(lambda: b.d.log().count("was read again") == number + 1, "it is read again")
                for peer in (debugger, agent, tool):
                    peer.close()
                until(lambda: not b.d.tool().list()[1], "all are gone")
                until(lambda: descriptors(b.d) <= before, f"there are {before} descriptors, as there were")
        os.unlink(f"{folder}/log")
        os.unlink(f"{folder}/debuggers")


# By the clock


@tap.test("a drain has its own time besides the time that a stop may take")
def _(folder):
    with bed(folder) as b:
        agent, tool = b.d.agent(), b.d.tool()
        serial = tool.ask(HOLD, Items(tool.handles(), STOP, kind=DRAIN, timeout=60 * 10**9))
        _, asked, body = agent.wait(WANTS)
        b.pass_time(65)
        tap.same((tool.hears(0.2), agent.hears(0)), ([], []), "what they hear meanwhile")
        agent.send(DONE, body, asked)
        tap.same(tool.result(serial).statuses(), [0], "hold")
        agent.close()


@tap.test("a hold may last a day, and ends then")
def _(folder):
    with bed(folder) as b:
        agent, tool = b.d.agent(), b.d.tool()
        serial = tool.ask(HOLD, Items(tool.handles(), STOP, lease=24 * HOUR_S * 10**9))
        agent.answer()
        tap.same(tool.result(serial).statuses(), [0], "hold")
        b.pass_time(24 * HOUR_S - 60)
        tap.same(agent.hears(0.2), [], "before")
        b.pass_time(61)
        tap.same(agent.answer().list[0][:2], [1, RUN], "then")


@tap.test("a queue that a reservation could not stop is left alone for ten seconds, and stopped then in its turn")
def _(folder):
    foreign(folder, os.getpid(), 1, 2)
    with bed(folder) as b:
        agent, tool = b.d.agent(queues=2), b.d.tool()
        tool.reserve(0, 90, 5)
        first = agent.answer(agent.refuse(errno.EIO)).list[0][0]
        agent.answer()
        b.pass_time(8)
        tap.same(agent.hears(0.2), [], "before")
        b.pass_time(3)
        tap.true([first, STOP] in [item[:2] for item in agent.answer().list], "then")
        agent.close()


@tap.test("a hint lasts an hour at the most, whatever it says")
def _(folder):
    with bed(folder) as b:
        agent, tool = Agent(b.d.path, 0), b.d.tool()
        agent.add(1, priority=11)
        agent.add(2)
        until(lambda: len(tool.queues()) == 2, "listed")
        agent.send(HINT, struct.pack("<QQQII", 0, 1, 2 * HOUR_S * 10**9, HINT_BEGIN, ALL_DEVICES), 0)
        tap.same(agent.answer().list[0][:2], [2, STOP], "wants")
        b.pass_time(HOUR_S - 60)
        tap.same(agent.hears(0.2), [], "before")
        b.pass_time(61)
        tap.same(agent.answer().list[0][:2], [2, RUN], "then")


tap.main(jobs=8)
