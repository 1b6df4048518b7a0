#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=600 memory=3G param=cus=4
"""gpreemptd stops queues by the debugger's interface, on the stock driver with its hangs: nothing stays stopped, nothing hangs."""

import contextlib
import errno
import fcntl
import os
import signal
import socket
import struct
import subprocess
import time

import amd
import tap
from protocol import DBG, END, ERROR, HEADER, HOLD, NEW_QUEUES, RELEASE, RUNNING, STOP, SUSPENDED, UPDATE, Items, Tool

QUEUES = 3


class Target(amd.Target):
    """One with no agent in it."""

    def __init__(self, *words, preload=None, socket=""):
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        if preload:
            env.update(LD_PRELOAD=preload, GPREEMPT_SOCKET=socket)
        self.process = subprocess.Popen([amd.TARGET, str(QUEUES), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=env)
        self.pid = self.process.pid
        self.rings = self.hear_ready()

    def tracer(self):
        lines = tap.read(f"/proc/{self.pid}/status").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("TracerPid"))


class Patient(Tool):
    """Everything takes longer here."""

    def __init__(self, path):
        super().__init__(path)
        self.socket.settimeout(amd.PATIENCE)


class Bed:
    def __init__(self, folder, *options):
        self.folder, self.path = folder, f"{folder}/gpreemptd.sock"
        self.targets = []
        self.log = open(f"{folder}/log", "w+", encoding="utf-8")
        self.daemon = subprocess.Popen([amd.DAEMON, "--socket", self.path, "--classes", tap.write(f"{folder}/classes.ini", ""), *amd.PATIENT, *options],
                                       stderr=self.log)
        amd.until(lambda: os.path.exists(self.path), "gpreemptd listens")

    def target(self, *words, **more):
        target = Target(*words, **more)
        self.targets.append(target)
        return target

    def tool(self):
        return Patient(self.path)

    def handles(self, target):
        tool = self.tool()
        amd.until(lambda: len([q for q in tool.queues(target.pid) if q["way"]]) == QUEUES, f"the queues of {target.pid} are found")
        found = tool.handles(target.pid)
        tool.close()
        return found

    def said(self):
        return tap.read(self.folder, "log")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for target in self.targets:
            if target.process.poll() is None:
                target.kill()
        self.daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.daemon.wait(amd.PATIENCE)
        self.daemon.kill()
        tap.say(self.said() or "gpreemptd said nothing")
        self.log.close()


def held(bed, target, **how):
    """A tool that holds all of the target's queues, and these."""
    tool, queues = bed.tool(), bed.handles(target)
    result = tool.hold(queues, **how)
    tap.same((result.statuses(), result.way, result.text), ([0] * QUEUES, DBG, ""), "hold")
    tap.true(target.stands_still(), "the target stands still")
    return tool, queues


@tap.test("a process without an agent is stopped in one device cycle, and goes on, and nothing is lost")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target = bed.target("runtime")
        tap.same({q["way"] for q in bed.tool().queues(target.pid)} - {"dbg"}, set(), "ways")
        tool, queues = held(bed, target)
        tap.same({q["state"] for q in tool.queues(target.pid)}, {SUSPENDED}, "states")
        tap.same(tool.release(queues).statuses(), [0] * QUEUES, "release")
        target.goes_on()
        # The debugger is there now: what is left is the call itself.
        before = amd.stat("cycles")
        tap.same(tool.hold(queues).statuses(), [0] * QUEUES, "hold")
        tap.same(amd.stat("cycles") - before, 1, "device cycles")
        tap.same(tool.release(queues).statuses(), [0] * QUEUES, "release")
        target.end()
        tap.same(amd.stat("bad_restores"), 0, "bad restores")


@tap.test("one queue of three is stopped, and the others go on")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target, tool = bed.target("runtime"), bed.tool()
        queues = {q["queue_id"]: q["queue"] for q in tool.queues(target.pid)} or bed.handles(target)
        queues = {q["queue_id"]: q["queue"] for q in tool.queues(target.pid)}
        one, *others = sorted(queues)
        tap.same(tool.hold([queues[one]]).statuses(), [0], "hold")
        tap.true(target.stands_still([one]), "it goes on")
        target.goes_on(others)
        tap.same(tool.release([queues[one]]).statuses(), [0], "release")
        target.end()


@tap.test("gpreemptd is killed while it holds: the work goes on, and the target can end")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target = bed.target("runtime")
        held(bed, target)
        bed.daemon.kill()
        target.goes_on()
        amd.until(lambda: target.tracer() == 0, "nobody traces it")
        target.end()


@tap.test("gpreemptd and its debugger are killed while they hold: the work goes on")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target = bed.target("runtime")
        held(bed, target)
        tracer = target.tracer()
        bed.daemon.send_signal(signal.SIGSTOP)
        os.kill(tracer, signal.SIGKILL)
        target.goes_on()
        bed.daemon.kill()
        target.end()


@tap.test("gpreemptd hangs while it holds: the work goes on after the lease, and stops again when it wakes")
def _(folder):
    with Bed(folder, "--ways", "dbg", "--lease", amd.SOME_LEASE) as bed:
        target = bed.target("runtime")
        tool, queues = held(bed, target)
        bed.daemon.send_signal(signal.SIGSTOP)
        target.goes_on()
        bed.daemon.send_signal(signal.SIGCONT)
        amd.until(target.stands_still, "it stands still again")
        tap.same(tool.release(queues).statuses(), [0] * QUEUES, "release")
        target.end()


@tap.test("SIGTERM to gpreemptd resumes everything first")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target = bed.target("runtime")
        held(bed, target)
        bed.daemon.terminate()
        tap.same(bed.daemon.wait(amd.PATIENCE), 0, "status")
        tap.same(target.tracer(), 0, "tracer")
        target.goes_on()
        target.end()


@tap.test("a target that ends while it is debugged does not hang, neither when its queues run nor when they are stopped")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target = bed.target("runtime")
        tool, queues = held(bed, target)
        tool.release(queues)
        tap.true(target.tracer() > 0, "it is debugged")
        target.end()
        other = bed.target("runtime")
        held(bed, other)
        other.process.stdin.close()  # it ends, with its queues as they are
        other.process.wait(amd.PATIENCE)
        # The hang of the stock driver would keep every other process of its from ending, too.
        last = bed.target("runtime")
        last.goes_on()
        last.end()


@tap.test("a target that is killed while its queues are stopped is gone, and its queues with it")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target = bed.target("runtime")
        tool, _ = held(bed, target)
        target.kill()
        amd.until(lambda: tool.handles(target.pid) == [], "its queues are not listed any more")


@tap.test("a debugger lets go some seconds after the last hold")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target = bed.target("runtime")
        tool, queues = held(bed, target)
        tap.true(target.tracer() > 0, "it is debugged")
        tool.release(queues)
        amd.until(lambda: target.tracer() == 0, "it is not debugged any more")
        target.goes_on()
        held(bed, target)
        tool.release(queues)
        target.end()


@tap.test("what is created while new queues are held is stopped, too")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target = bed.target("runtime")
        tool, queues = held(bed, target, hold=NEW_QUEUES)
        target.ask("create")
        amd.until(lambda: [q["state"] for q in tool.queues(target.pid)] == [SUSPENDED] * (QUEUES + 1), "the new queue is suspended")
        tap.true(target.stands_still(), "it goes on")
        tap.same(set(tool.release(tool.handles(target.pid)).statuses()), {0}, "release")
        del queues
        target.goes_on()
        target.end()


@tap.test("signals reach a process that is debugged as if it were not")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target = bed.target("runtime")
        tool, queues = held(bed, target)
        tool.release(queues)
        os.kill(target.pid, signal.SIGSTOP)
        amd.until(lambda: state(target.pid) in "Tt", "it is stopped")
        os.kill(target.pid, signal.SIGCONT)
        amd.until(lambda: state(target.pid) in "RS", "it goes on")
        target.goes_on()
        os.kill(target.pid, signal.SIGTERM)
        tap.same(target.process.wait(amd.PATIENCE), -signal.SIGTERM, "status")


def state(pid):
    return tap.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]


@tap.test("a process that has not enabled its runtime, and one that is traced, are refused in words")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target, tool = bed.target(), bed.tool()
        result = tool.hold(bed.handles(target))
        tap.same(result.statuses(), [-errno.EOPNOTSUPP] * QUEUES, "statuses")
        tap.true("dbg failed" in result.text and "runtime" in result.text, result.text)
        target.goes_on()
        target.end()
        traced = bed.target("runtime")
        with tracing(traced.pid):
            result = tool.hold(bed.handles(traced))
            tap.same(result.statuses(), [-errno.EPERM] * QUEUES, "statuses")
            tap.true("is debugged by process" in result.text, result.text)
        traced.end()


@contextlib.contextmanager
def tracing(pid):
    """As gdb would."""
    code = f"import ctypes, time; assert ctypes.CDLL(None).ptrace(0x4206, {pid}, 0, 0) == 0; print('x', flush=True); time.sleep(60)"
    with subprocess.Popen(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE) as tracer:
        tap.same(tracer.stdout.read(1), b"x", "it traces")
        yield
        tracer.kill()


@tap.test("where the debugger cannot, the agent does, and the text says so")
def _(folder):
    with Bed(folder, "--ways", "dbg,update") as bed:
        target = bed.target(preload=amd.AGENT, socket=bed.path)
        tool, queues = bed.tool(), bed.handles(target)
        result = tool.hold(queues)
        tap.same((result.statuses(), result.way), ([0] * QUEUES, UPDATE), "hold")
        tap.true("dbg failed" in result.text and "used update" in result.text, result.text)
        tap.true(target.stands_still(), "it goes on")
        tap.same(tool.release(queues).statuses(), [0] * QUEUES, "release")
        target.end()


@tap.test("with both, a request that names the debugger gets it, and others the agent")
def _(folder):
    with Bed(folder, "--ways", "update,dbg?") as bed:
        target = bed.target("runtime", preload=amd.AGENT, socket=bed.path)
        tool, queues = bed.tool(), bed.handles(target)
        for way, gone in ((0, UPDATE), (DBG, DBG), (UPDATE, UPDATE)):
            result = tool.hold(queues, way=way)
            tap.same((result.statuses(), result.way, result.text), ([0] * QUEUES, gone, ""), f"way {way}")
            tap.true(target.stands_still(), "it goes on")
            tap.same(tool.release(queues).statuses(), [0] * QUEUES, "release")
            tap.same({q["state"] for q in tool.queues(target.pid)}, {RUNNING}, "states")
            target.goes_on()
        target.end()


@tap.test("two tools at once, and a hundred holds and releases: nothing is lost")
def _(folder):
    with Bed(folder, "--ways", "dbg") as bed:
        target, first, second = bed.target("runtime"), bed.tool(), bed.tool()
        queues = bed.handles(target)
        for i in range(50):
            one = first.ask(HOLD, Items(queues, STOP))
            two = second.ask(HOLD, Items(queues[i % QUEUES:], STOP))
            tap.same(set(first.result(one).statuses() + second.result(two).statuses()), {0}, "hold")
            one = first.ask(RELEASE, Items(queues))
            two = second.ask(RELEASE, Items(queues))
            tap.same(set(first.result(one).statuses() + second.result(two).statuses()), {0}, "release")
        time.sleep(0.1)
        target.goes_on()
        target.end()
        tap.same(amd.stat("bad_restores"), 0, "bad restores")


def debug(pid, handle, uid):
    """What a debugger says that is told to debug this number, with a handle of this process, as one of this user's."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(amd.PATIENCE)
    child = os.fork()
    if child == 0:
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs.fileno(), handle)]
        os.dup2(high[0], 3)
        os.dup2(high[1], 4)
        os.execv(amd.DAEMON, ["gpreemptd", "--dbg", str(pid), "--uid", str(uid)])
    theirs.close()
    try:
        while True:
            data = ours.recv(65536)
            kind = HEADER.unpack_from(data)[1]
            if kind == ERROR:
                return struct.unpack_from("<i", data, HEADER.size)[0]
            if kind == END:
                return 0
    finally:
        ours.close()
        os.waitpid(child, 0)


@tap.test("a debugger whose target has become another process, or another user's, lets it go untouched")
def _(folder):
    with Bed(folder) as bed:
        target = bed.target("runtime")
        dead = os.fork()
        if dead == 0:
            time.sleep(60)
        by_pidfd, by_folder = os.pidfd_open(dead), os.open(f"/proc/{dead}", os.O_PATH)
        os.kill(dead, signal.SIGKILL)
        os.waitpid(dead, 0)
        for handle in (by_pidfd, by_folder):
            tap.same(debug(target.pid, handle, 0), -errno.ESRCH, "of another process")
            tap.same(target.tracer(), 0, "tracer")
        for handle in (os.pidfd_open(target.pid), os.open(f"/proc/{target.pid}", os.O_PATH)):
            tap.same(debug(target.pid, handle, 1000), -errno.EPERM, "of another user")
            tap.same(target.tracer(), 0, "tracer")
            tap.same(debug(target.pid, handle, 0), 0, "of the right one")
            amd.until(lambda: target.tracer() == 0, "it is let go")
        target.goes_on()
        target.end()


tap.main()
