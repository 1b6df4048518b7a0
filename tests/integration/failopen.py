#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Fail open: whoever is killed, hangs or finds the disk full, nothing stays stopped and no work is lost.

On a simulated GPU in real time: gpreemptd, an online client and two offline ones.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import time

import tap

from gpreemptd import DAEMON, daemon, until
from protocol import HINT_BEGIN, HINT_END, ONLINE, RUNNING, SUSPENDED, Tool
from simulated import LEASE_S, SOON, gpu, handles, infer, train

STEPS = 30  # of each offline client: about 8 s for both together
REQUESTS = 40
RATE = 5  # so that it is there for 8 s
OVERLOAD = 200  # per second: twice what the GPU can do
HOUR = 3600 * 10**9  # ns
AGAIN_S = 3  # within 1 s on a free machine
PAGE = 4096
CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_NODEV = 0x20000, 0x4000, 1 << 18, 4

# Only what the tests do ends a stop: no slice for who waits long, no hint that ends by itself.
CONF = "[scheduler]\nmax_starve = never\nhint_expiry = 3600s\n"


def strict(folder, *options):
    """A gpreemptd that lets offline work wait for as long as there is online work."""
    return daemon(folder, "--config", tap.write(f"{folder}/conf", CONF), *options)


class Crowd:
    """An online client and two offline ones."""

    def __init__(self, folder, path, requests, online):
        self.requests, self.online = requests, online
        self.offline = [train(folder, "--requests", str(STEPS), "--queues", str(n), socket=path) for n in (1, 2)]

    def states(self, tool):
        """Of the offline queues; None for one that gpreemptd does not know."""
        known = {(q["pid"], q["queue_id"]): q["state"] for q in tool.queues()}
        return [known.get((client.pid, queue)) for client, n in zip(self.offline, (1, 2)) for queue in range(n)]

    def are(self, tool, state):
        return self.states(tool) == 3 * [state]

    def stop(self, tool):
        """By an online request that does not end: number 1 of the online client."""
        until(lambda: self.are(tool, RUNNING), "gpreemptd knows all queues")
        until(lambda: any(q["class"] == ONLINE for q in tool.queues(self.online.pid)), "and the online one")
        tool.hint(HINT_BEGIN, self.handle(tool), expiry=HOUR)
        until(lambda: self.are(tool, SUSPENDED), "offline queues stop")

    def go_on(self, tool):
        tool.hint(HINT_END, self.handle(tool))
        until(lambda: self.are(tool, RUNNING), "offline queues run")

    def handle(self, tool):
        return tool.queues(self.online.pid)[0]["client"]

    def have_ended(self, *but):
        """All has been done, once: sim-client fails if something comes twice or not in its turn."""
        for client in [self.online, *self.offline]:
            if client not in but:
                done = client.figures()
                want = self.requests if client is self.online else STEPS
                tap.same((done["submitted"], done["completed"]), (want, want), f"{done}")
                yield done


@contextlib.contextmanager
def crowd(folder, requests=REQUESTS, rate=RATE, path=None):
    path = path or f"{folder}/gpreemptd.sock"
    with gpu(folder), infer(folder, "--rate", str(rate), "--requests", str(requests), "--hints", socket=path) as online, \
            contextlib.ExitStack() as stack:
        who = Crowd(folder, path, requests, online)
        for client in who.offline:
            stack.enter_context(client)
        yield who


def stopped_s(figures):
    return figures["stopped_share"] * figures["elapsed_ns"] / 1e9


@tap.test("a gpreemptd that is killed while an online request keeps queues stopped: they go on within the lease, and lose nothing")
def _(folder):
    with strict(folder) as d, crowd(folder) as who, contextlib.closing(Tool(d.path)) as tool:
        begin = time.monotonic()
        who.stop(tool)
        d.process.kill()
        held = time.monotonic() - begin
        for done in who.have_ended():
            tap.true(stopped_s(done) < held + LEASE_S, f"{done}")
            tap.true(done["latency_ns"] or done["stops"], f"{done}")


@tap.test("a gpreemptd that hangs: queues go on when the lease ends, and lose nothing")
def _(folder):
    with strict(folder, "--lease", "500ms") as d, crowd(folder) as who, contextlib.closing(Tool(d.path)) as tool:
        who.stop(tool)
        d.process.send_signal(signal.SIGSTOP)
        try:
            for done in who.have_ended():
                tap.true(done["latency_ns"] or done["stops"], f"{done}")
        finally:
            d.process.send_signal(signal.SIGCONT)
        until(lambda: not tool.queues(), "gpreemptd has seen them go")


@tap.test("a gpreemptd that hung and comes back stops again what is to stand still, and lets it go with the online request")
def _(folder):
    with strict(folder, "--lease", "500ms") as d, crowd(folder) as who, contextlib.closing(Tool(d.path)) as tool:
        who.stop(tool)
        d.process.send_signal(signal.SIGSTOP)
        time.sleep(1.0)  # two leases
        d.process.send_signal(signal.SIGCONT)
        until(lambda: who.are(tool, SUSPENDED), "they stop again")
        who.go_on(tool)
        for done in who.have_ended():
            tap.true(done["latency_ns"] or done["stops"] >= 2, f"{done}")


@tap.test("an online client that is killed in the middle of its requests frees the offline ones")
def _(folder):
    with strict(folder) as d, crowd(folder, 100000, OVERLOAD) as who, contextlib.closing(Tool(d.path)) as tool:
        until(lambda: who.are(tool, SUSPENDED), "offline queues stop")
        who.online.kill()
        for done in who.have_ended(who.online):
            tap.true(done["stops"] > 0, f"{done}")


@tap.test("an offline client that is killed while it is stopped is forgotten, and nobody else notices")
def _(folder):
    with strict(folder) as d, crowd(folder) as who, contextlib.closing(Tool(d.path)) as tool:
        who.stop(tool)
        killed, other = who.offline
        killed.kill()
        until(lambda: not tool.queues(killed.pid), "it is forgotten")
        tap.same({q["state"] for q in tool.queues(other.pid)}, {SUSPENDED}, "of the other")
        tool.hint(HINT_END, who.handle(tool))
        list(who.have_ended(killed))


@tap.test("a tool that is killed while it holds queues lets them go")
def _(folder):
    with strict(folder) as d, crowd(folder) as who, contextlib.closing(Tool(d.path)) as tool:
        for client, n in zip(who.offline, (1, 2)):
            handles(d, client.pid, n)
        names = [str(client.pid) for client in who.offline]
        with subprocess.Popen([tap.PROGRAM, "suspend", "--socket", d.path, *names], stdout=subprocess.PIPE, text=True) as holder:
            tap.true(holder.stdout.readline().startswith("Suspended"), "it holds")
            tap.true(who.are(tool, SUSPENDED), "they stand still")
            holder.kill()
        for done in who.have_ended():
            tap.true(done["latency_ns"] or done["stops"] > 0, f"{done}")


@tap.test("a socket that is deleted: who is connected stays, a second gpreemptd is refused, and one after a restart has all clients")
def _(folder):
    with crowd(folder) as who:
        with strict(folder) as d, contextlib.closing(Tool(d.path)) as tool:
            who.stop(tool)
            os.unlink(d.path)
            second = tap.run("--config", "/dev/null", "--socket", d.path, program=DAEMON, timeout=SOON)
            tap.same(second.returncode, tap.FAILED, "exit status of the second")
            tap.true("another gpreemptd listens" in second.stderr, second.stderr)
            who.go_on(tool)
            who.stop(tool)
        with strict(folder) as d, contextlib.closing(Tool(d.path)) as tool:
            who.stop(tool)
            who.go_on(tool)
            for done in who.have_ended():
                tap.true(done["latency_ns"] or done["stops"] >= 3, f"{done}")


@tap.test("a folder that is cleared: a second gpreemptd has the clients when the first one ends, which leaves the second one's socket")
def _(folder):
    with crowd(folder) as who, contextlib.ExitStack() as first:
        d = first.enter_context(strict(folder))
        with contextlib.closing(Tool(d.path)) as tool:
            who.stop(tool)
        os.unlink(d.path)
        os.unlink(f"{d.path}.lock")
        with strict(folder) as second:
            first.close()
            with contextlib.closing(Tool(second.path)) as tool:
                who.stop(tool)
                who.go_on(tool)
            list(who.have_ended())


@contextlib.contextmanager
def full_disk(folder):
    """A folder where not a byte can be written; nobody else sees it."""
    libc = ctypes.CDLL(None, use_errno=True)
    place = f"{folder}/small"
    os.mkdir(place)
    if libc.unshare(CLONE_NEWNS) < 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) < 0 or \
            libc.mount(b"tmpfs", place.encode(), b"tmpfs", MS_NODEV, b"size=256k") < 0:
        raise tap.Skip(f"a small disk needs root: {os.strerror(ctypes.get_errno())}")
    try:
        yield place
    finally:
        libc.umount2(place.encode(), 0)


def fill(place):
    """To the last byte; the log's next one is on a page that there is no room for."""
    os.truncate(f"{place}/log", PAGE)
    with contextlib.suppress(OSError), open(f"{place}/filler", "ab", buffering=0) as file:
        while True:
            file.write(bytes(PAGE))
    tap.same(os.statvfs(place).f_bavail, 0, "free blocks")


@tap.test("a disk that is full, the socket's and the log's: gpreemptd goes on, and so does the one that is started on it")
def _(folder):
    with full_disk(folder) as place, crowd(folder, path=f"{place}/gpreemptd.sock") as who:
        for _ in range(2):
            with strict(place) as d, contextlib.closing(Tool(d.path)) as tool:
                fill(place)
                who.stop(tool)
                who.go_on(tool)
        tap.same(os.path.getsize(f"{place}/log"), PAGE, "of the log")
        list(who.have_ended())


@tap.test("a gpreemptd that is started again, after its end or a kill, has all clients, and soon stops what is to stand still")
def _(folder):
    with crowd(folder, 1000, OVERLOAD) as who:
        for end in (signal.SIGTERM, signal.SIGKILL, None):
            with strict(folder) as d, contextlib.closing(Tool(d.path)) as tool:
                until(lambda: None not in who.states(tool) and tool.queues(who.online.pid), "all clients are back")
                until(lambda: who.are(tool, SUSPENDED), "offline queues stop", AGAIN_S)
                if end:
                    d.process.send_signal(end)
                    continue
                for done in who.have_ended():
                    tap.true(done["latency_ns"] or done["stops"] >= 3, f"{done}")


tap.main(jobs=4)
