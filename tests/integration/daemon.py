#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreemptd, with agents and tools that were written from docs/PROTOCOL.md alone (tests/protocol.py)."""

import contextlib
import errno
import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import time

import tap
from gpreemptd import DAEMON, NOBODY, SLOTS, AsUser, cpu_seconds, daemon, foreign, fork_agent, put, until
from protocol import (
    Agent, Gone, Items, Peer, Tool, held, info, ACTIVITY, ALL_DEVICES, BUSY, DBG, DONE, DRAIN, END, ERROR, GONE, GPU, HEADER, HELLO, HOLD, LIST,
    NEW_QUEUES, ONLINE, OWN_DAEMON, PING, POLICY, PRIVATE, PROXY, QUEUE, QUEUE_INFO, RELEASE, RESERVE, RESET, RUN, RUNNING, SOON, STOP,
    SUSPENDED, TOOL, UPDATE, WANTS, WELCOME,
)


# Registration


@tap.test("a queue that an agent tells of is listed with where each field came from")
def _(folder):
    with daemon(folder) as d:
        agent = d.agent(queues=0, name="train.py")
        agent.add(5, ring=0x7F1200340000, queue_id=3, priority=11)
        tool = d.tool()
        until(lambda: len(tool.queues()) == 1, "the queue is listed")
        devices, queues = tool.list()
        tap.same(devices, [{"name": devices[0]["name"], "backend": "kfd", "device": 0, "caps": 4 | 64 | 128 | 256, "cus": 80, "slots": SLOTS}], "devices")
        q = queues[0]
        tap.same((q["ring"], q["queue_id"], q["priority"], q["gpu_id"], q["kind"]), (0x7F1200340000, 3, 11, GPU, 1), "queue")
        tap.same((q["pid"], q["name"], q["way"], q["device"], q["state"], q["held"]), (os.getpid(), "train.py", "update", 0, RUNNING, 0), "of it")
        tap.same(q["known"], 15, "known fields")
        for field in ("queue_id=agent", "ring=agent", "priority=agent"):
            tap.true(field in q["from"], f"{field} in {q['from']}")


@tap.test("a queue without an agent is found, and nobody can stop it unless the debugger may")
def _(folder):
    foreign(folder, 4242, 7)
    with daemon(folder) as d:
        tool = d.tool()
        until(lambda: len(tool.queues()) == 1, "it is found")
        q = tool.queues()[0]
        tap.same((q["pid"], q["queue_id"], q["way"]), (4242, 7, ""), "queue")
        result = tool.hold([q["queue"]])
        tap.same(result.statuses(), [-errno.EOPNOTSUPP], "status")
        tap.true("no agent in process 4242" in result.text and "dbg" in result.text, result.text)
        tap.same(tool.queues()[0]["held"], 0, "held")


@tap.test("who cannot stop a queue because it did not name the way is told so")
def _(folder):
    foreign(folder, 4242, 7)
    with daemon(folder, "--ways", "update,dbg?") as d:
        tool = d.tool()
        until(lambda: len(tool.queues()) == 1, "it is found")
        result = tool.hold(tool.handles())
        tap.same(result.statuses(), [-errno.EOPNOTSUPP], "status")
        tap.true(result.text.startswith("no agent in process 4242") and result.text.endswith("dbg is for requests that name it"), result.text)
        agent = d.agent(ways=PRIVATE)
        result = tool.hold(tool.handles(os.getpid()))
        tap.same(result.text, f"the agent in process {os.getpid()} has none of the ways in --ways", "with an agent")
        agent.close()


@tap.test("queues are listed on the device that they are on, by the driver's word and by an agent's; a device that goes is not")
def _(folder):
    foreign(folder, 4242, 7)
    node = "sys/class/kfd/kfd/topology/nodes/2"
    put(f"{folder}/root", f"{node}/gpu_id", "99\n")
    put(f"{folder}/root", f"{node}/properties", "simd_count 8\nsimd_per_cu 4\ngfx_target_version 90402\n")
    put(f"{folder}/root", "sys/class/kfd/kfd/proc/4242/queues/8/gpuid", "99")
    with daemon(folder, "--scan", "100ms") as d:
        agent, tool = Agent(d.path, 0), d.tool()
        agent.add(1, gpu=99)
        agent.add(2)
        agent.add(3, gpu=5)
        until(lambda: len(tool.queues()) == 5, "listed")
        found = {(q["pid"], q["queue_id"]): q["device"] for q in tool.queues()}
        tap.same(found, {(4242, 7): 0, (4242, 8): 1, (os.getpid(), 1): 1, (os.getpid(), 2): 0, (os.getpid(), 3): ALL_DEVICES}, "devices")
        subprocess.run(["rm", "-r", f"{folder}/root/{node}"], check=True)
        until(lambda: [one["device"] for one in tool.list()[0]] == [0], "one device goes")
        tap.same(sorted(q["device"] for q in tool.queues(4242)), [0, ALL_DEVICES], "devices")


@tap.test("of more GPUs than there are numbers the first 64 are there")
def _(folder):
    for number in range(1, 70):
        node = f"sys/class/kfd/kfd/topology/nodes/{number}"
        put(f"{folder}/root", f"{node}/gpu_id", f"{number}\n")
        put(f"{folder}/root", f"{node}/properties", f"simd_count {4 * number}\nsimd_per_cu 4\ngfx_target_version 90402\n")
    with daemon(folder, "--scan", "100ms") as d:
        tool = d.tool()
        for _ in range(3):
            tap.same([(one["device"], one["cus"]) for one in tool.list()[0]], [(n, n + 1) for n in range(64)], "devices")
            time.sleep(0.15)


@tap.test("a queue that is found first and told of then is one queue, with one handle")
def _(folder):
    foreign(folder, os.getpid(), 3)
    with daemon(folder, "--scan", "100ms") as d:
        tool = d.tool()
        until(lambda: len(tool.queues()) == 1, "it is found")
        before = tool.handles()
        agent = Agent(d.path, 0)
        agent.add(1, queue_id=3)
        until(lambda: tool.queues()[0]["way"] == "update", "and told of")
        time.sleep(0.3)
        tap.same(tool.handles(), before, "handles")
        agent.remove(1)
        put(folder, "gone", "")
        subprocess.run(["rm", "-r", f"{folder}/root/sys/class/kfd/kfd/proc/{os.getpid()}"], check=True)
        until(lambda: tool.handles() == [], "and gone")


@tap.test("two queues that had the same id after each other have two handles")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        first = tool.handles()
        agent.remove(1)
        agent.add(2, queue_id=1, ring=0x7F0099990000)
        until(lambda: len(tool.handles()) == 1 and tool.handles() != first, "a new handle")


# Scans that take long


class SlowScans:
    """Each scan waits, once it has read sysfs, until it may go on: it takes long, and uses no CPU time."""

    def __init__(self, folder):
        self.path = f"{folder}/root/sys/kernel/debug/kfd/rls"
        self.writer = None
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        os.mkfifo(self.path)

    def is_at_it(self):
        with contextlib.suppress(OSError):  # nobody reads
            self.writer = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
        return self.writer is not None

    def wait(self):
        """Until one has read sysfs; what the last one found is known."""
        until(self.is_at_it, "a scan")

    def go_on(self, *, is_last=False):
        os.unlink(self.path)
        if not is_last:
            os.mkfifo(self.path)  # another one: the scan that ends may still read the first
        os.close(self.writer)
        self.writer = None

    def next(self):
        self.go_on()
        self.wait()


@contextlib.contextmanager
def scanning(folder, *options):
    """A gpreemptd that is in its second scan: in the first one nobody knew yet that they take long."""
    scans = SlowScans(folder)
    with daemon(folder, "--scan", "100ms", *options) as d:
        scans.wait()
        time.sleep(0.05)
        scans.next()
        try:
            yield d, scans
        finally:
            scans.go_on(is_last=True)


@tap.test("no handle of the next gpreemptd is one that a queue had before: who kept it stops nobody else's queue")
def _(folder):
    handles = []
    for _ in range(2):
        with daemon(folder) as d:
            agent, tool = d.agent(queues=3), d.tool()
            handles.append(tool.handles())
            for queue in sum(handles[:-1], []):
                tap.same(tool.hold([queue]).statuses(), [-errno.ENOENT], "a handle of before")
            agent.close()
    tap.true(max(handles[0]) < min(handles[1]), f"{handles}")


@tap.test("while a scan takes long everybody is served, and the configuration read again")
def _(folder):
    foreign(folder, 4242, 7)
    with scanning(folder) as (d, scans):
        tool, agent = d.tool(), d.agent()
        foreign(folder, 4242, 8)
        held(agent, tool, tool.handles(os.getpid()))
        d.process.send_signal(signal.SIGHUP)
        until(lambda: "was read again" in d.log(), "it is read again")
        tap.same(len(tool.queues(4242)), 1, "as of the first scan")
        scans.next()
        scans.next()
        tap.same(len(tool.queues(4242)), 2, "as of the third")


@tap.test("a queue that goes after a scan saw it does not come back, and the others stay")
def _(folder):
    foreign(folder, os.getpid(), 3, 4)
    with scanning(folder) as (d, scans):
        tool, agent = d.tool(), Agent(d.path, 0)
        agent.add(1, queue_id=3)
        until(lambda: sorted(q["way"] for q in tool.queues()) == ["", "update"], "told of")
        subprocess.run(["rm", "-r", f"{folder}/root/sys/class/kfd/kfd/proc/{os.getpid()}/queues/3"], check=True)
        agent.remove(1)
        until(lambda: len(tool.queues()) == 1, "gone")
        scans.next()
        tap.same([q["queue_id"] for q in tool.queues()], [4], "after the scan")


@tap.test("an agent that tells of one queue over and over, and that it is gone, hides no other one")
def _(folder):
    with scanning(folder) as (d, scans):
        foreign(folder, os.getpid(), 3, 4)
        scans.next()
        tool, agent = d.tool(), Agent(d.path, 0)
        for number in range(1, 9):
            agent.add(number, queue_id=3)
            agent.remove(number)
        agent.add(9, queue_id=3)
        until(lambda: [q["queue_id"] for q in tool.queues()] == [3], "told of")
        scans.next()
        tap.same(sorted(q["queue_id"] for q in tool.queues()), [3, 4], "after the scan")


def ends_in_scan(folder, leave):
    """An agent's process comes, a scan reads that it is there, and it ends before the scan does."""
    with scanning(folder) as (d, scans):
        child, tool = AsUser(0, has_one_queue, d.path, scans, leave), d.tool()
        foreign(folder, child.pid, 3)
        until(lambda: len(tool.queues(child.pid)) == 1, "told of")
        scans.next()
        subprocess.run(["rm", "-r", f"{folder}/root/sys/class/kfd/kfd/proc/{child.pid}"], check=True)
        child.go()
        child.end()
        scans.next()
        tap.same(len(tool.queues(child.pid)), 0, "queues after the scan")


def has_one_queue(path, scans, leave):
    os.close(scans.writer)  # the scan waits for all who have it
    agent = Agent(path, 0)
    agent.add(1, queue_id=3)
    AsUser.wait()
    leave(agent)


@tap.test("a process that ends while a scan reads is not listed when the scan has ended")
def _(folder):
    ends_in_scan(folder, lambda agent: None)


@tap.test("nor is one that has told before that its queue is gone")
def _(folder):
    ends_in_scan(folder, lambda agent: agent.remove(1))


@tap.test("a scan that uses much CPU time is not taken for a policy that does not return")
def _(folder):
    with scanning(folder, "--lease", "60s") as (d, scans):  # with a PING it would show that it lives
        os.set_blocking(scans.writer, True)
        while cpu_seconds(d.process.pid) < 5:  # where 3 are too many for a policy
            os.write(scans.writer, b"x\n" * 32768)


# Holding and releasing


@tap.test("a hold stops the queue and a release lets it go on, each with one message to the agent")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        [queue] = tool.handles()
        serial = tool.ask(HOLD, Items([queue], STOP))
        agent.answer()
        result = tool.result(serial)
        tap.same((result.statuses(), result.way, result.text), ([0], UPDATE, ""), "hold")
        tap.same(result.list[0][3], 1234, "latency")
        tap.same((tool.state(queue), tool.queues()[0]["held"]), (SUSPENDED, 1), "state, held")
        serial = tool.ask(RELEASE, Items([queue]))
        agent.answer()
        tap.same(tool.result(serial).statuses(), [0], "release")
        tap.same(agent.wanted, [(1, STOP, UPDATE), (1, RUN, UPDATE)], "what the agent was told")
        tap.same(tool.state(queue), RUNNING, "state")


@tap.test("holding twice and releasing twice change nothing and ask nothing of the agent")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = held(agent, tool)
        result = tool.hold(queues)
        tap.same((result.statuses(), result.way, result.text), ([0], UPDATE, ""), "second hold")
        serial = tool.ask(RELEASE, Items(queues))
        agent.answer()
        tool.result(serial)
        tap.same(tool.release(queues).statuses(), [0], "second release")
        tap.same(agent.told(), [], "what the agent hears")


ME = "root" if os.geteuid() == 0 else f"user {os.getuid()}"


@tap.test("a queue of two holders goes on when the last lets go, and everybody sees who the first is")
def _(folder):
    with daemon(folder) as d:
        agent, first, second = d.agent(), d.tool(), d.tool()
        queues = held(agent, first)
        tap.same(second.hold(queues).statuses(), [0], "the second's hold")
        result = first.release(queues)
        tap.same((result.statuses(), result.text), ([0], f"still held by {ME}, process {os.getpid()}"), "the first lets go")
        tap.same({q["from"].partition("held=")[2] for q in first.queues()}, {f"{ME}, process {os.getpid()}"}, "who holds it")
        tap.same(agent.told(), [], "what the agent hears")
        serial = second.ask(RELEASE, Items(queues))
        agent.answer()
        tap.same(second.result(serial).statuses(), [0], "the second lets go")


@tap.test("a release by one who holds nothing ends everybody's hold")
def _(folder):
    with daemon(folder) as d:
        agent, first, second, admin = d.agent(), d.tool(), d.tool(), d.tool()
        queues = held(agent, first)
        second.hold(queues)
        serial = admin.ask(RELEASE, Items(queues + queues))
        agent.answer()
        tap.same(admin.result(serial).statuses(), [0, 0], "release")
        tap.same(agent.stopped, {1: 0}, "stopped")


@tap.test("a queue that is released twice in one list is let go by its own holder alone")
def _(folder):
    with daemon(folder) as d:
        agent, first, second = d.agent(), d.tool(), d.tool()
        queues = held(agent, first)
        second.hold(queues)
        tap.same(second.release(queues + queues).statuses(), [0, 0], "release")
        tap.same((agent.told(), agent.stopped), ([], {1: 1}), "the first still holds it")


@tap.test("a tool that is killed releases what it held")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = tool.handles()
        child = os.fork()
        if child == 0:
            victim = d.tool()
            victim.ask(HOLD, Items(queues, STOP))
            time.sleep(60)
        agent.answer()
        until(lambda: tool.state(queues[0]) == SUSPENDED, "it is held")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        tap.same(agent.answer().list[0][1], RUN, "want")
        until(lambda: tool.state(queues[0]) == RUNNING, "it runs")


@tap.test("a hold with a lease outlives its connection and ends by itself")
def _(folder):
    with daemon(folder) as d:
        agent, tool, looker = d.agent(), d.tool(), d.tool()
        queues = held(agent, tool, lease=4_000_000_000)
        start = time.monotonic()
        tool.close()
        tap.same(agent.hears(0.3), [], "what the agent hears meanwhile")
        tap.same(looker.state(queues[0]), SUSPENDED, "state")
        agent.answer()
        lasted = time.monotonic() - start
        tap.true(3.8 < lasted < 30, f"it lasted {lasted:.2f} s")
        tap.same(agent.stopped, {1: 0}, "stopped")


@tap.test("a hold with a lease ends although its connection lasts, unless it is renewed")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = held(agent, tool, lease=3_000_000_000)
        for _ in range(4):
            time.sleep(1)
            tap.same(tool.hold(queues, lease=3_000_000_000).statuses(), [0], "renewed")
        tap.same(agent.hears(0), [], "what the agent heard")
        agent.answer()
        tap.same(agent.stopped, {1: 0}, "stopped")


@tap.test("a new queue of a client whose new queues are held is stopped, until one of them is released")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = held(agent, tool, hold=NEW_QUEUES)
        agent.add(2)
        tap.same([item[:2] for item in agent.answer().list], [[2, STOP]], "wants")
        serial = tool.ask(RELEASE, Items(tool.handles()))
        agent.answer()
        tap.same(tool.result(serial).statuses(), [0, 0], "release")
        agent.add(3)
        tap.same(agent.told(), [], "a third one runs")


@tap.test("agents are told all at once, and the result comes when all have answered")
def _(folder):
    with daemon(folder) as d:
        agent = d.agent(queues=3)
        other = fork_agent(d, queues=2)
        tool = d.tool()
        until(lambda: len(tool.handles()) == 5, "all are listed")
        serial = tool.ask(HOLD, Items(tool.handles(), STOP))
        other.hears_wants()
        _, wants, body = agent.wait(WANTS)
        tap.same(len(Items.parse(body).list), 3, "items of one message")
        other.go()
        tap.same(tool.told(), [], "no result while one has not answered")
        items = Items.parse(body)
        agent.obey(items)
        agent.send(DONE, items.bytes(), wants)
        tap.same(tool.result(serial).statuses(), [0] * 5, "result")
        other.end()


@tap.test("1,024 queues of one agent are held and released, each in one message")
def _(folder):
    with daemon(folder) as d:
        agent = d.agent(queues=1024)
        tool = d.tool()
        queues = tool.handles()
        tap.same(len(set(queues)), 1024, "handles")
        for kind, want in ((HOLD, STOP), (RELEASE, RUN)):
            serial = tool.ask(kind, Items(queues, want))
            tap.same(len(agent.answer().list), 1024, "items")
            result = tool.result(serial)
            tap.same((set(result.statuses()), [i[0] for i in result.list]), ({0}, queues), "result")
        agent.add(2000)
        tap.same(agent.error()[0], -errno.ENOSPC, "one more")


@tap.test("of no items the result is empty; of unknown ones it says so; of one twice both say the same")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        [queue] = tool.handles()
        tap.same(tool.hold([]).list, [], "nothing")
        tap.same(tool.release([]).list, [], "nothing")
        tap.same(tool.hold([0, 999999, 2**64 - 1]).statuses(), [-errno.ENOENT] * 3, "unknown")
        serial = tool.ask(HOLD, Items([queue, 999999, queue], STOP))
        tap.same(len(agent.answer().list), 1, "items for the agent")
        tap.same(tool.result(serial).statuses(), [0, -errno.ENOENT, 0], "twice")
        tap.same(agent.told(), [], "the agent is told once")


@tap.test("what is refused is refused as a whole, and says why")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = tool.handles()
        for how, status, word in (({"kind": RESET}, errno.EOPNOTSUPP, "kills"), ({"hold": 8}, errno.EINVAL, "flags"),
                                  ({"way": DBG}, errno.EOPNOTSUPP, "dbg"), ({"way": 3}, errno.EOPNOTSUPP, "--ways")):
            tool.ask(HOLD, Items(queues, STOP, **how))
            got, said = tool.error()
            tap.same(got, -status, f"{how}")
            tap.true(word in said, said)
        tap.same(agent.told(), [], "the agent hears nothing of it")


@tap.test("a drain and its timeout reach the agent")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        tool.ask(HOLD, Items(tool.handles(), STOP, kind=DRAIN, timeout=250_000_000))
        items = agent.answer()
        tap.same((items.kind, items.timeout), (DRAIN, 250_000_000), "kind, timeout")
        tap.same(tool.result().statuses(), [0], "result")


@tap.test("a release while the stop is under way is sent at once, and the hold is told that it was cancelled")
def _(folder):
    with daemon(folder) as d:
        agent, tool, admin = d.agent(), d.tool(), d.tool()
        queues = tool.handles()
        hold = tool.ask(HOLD, Items(queues, STOP))
        _, first, body = agent.wait(WANTS)
        admin.ask(RELEASE, Items(queues))
        tap.same(tool.result(hold).statuses(), [-errno.ECANCELED], "hold")
        _, second, later = agent.wait(WANTS)
        tap.same(Items.parse(later).list[0][1], RUN, "want")
        agent.send(DONE, body, first)
        tap.same(admin.told(), [], "the first answer is nobody's")
        agent.send(DONE, later, second)
        tap.same(admin.result().statuses(), [0], "release")


def suspending(d):
    """gpreempt suspend of our own queues."""
    return subprocess.Popen([tap.PROGRAM, "suspend", str(os.getpid())], env=dict(os.environ, GPREEMPT_SOCKET=d.path),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@tap.test("who keeps queues suspended is told when somebody else resumes them, and when they have gone")
def _(folder):
    with daemon(folder) as d:
        agent, admin = d.agent(queues=2), d.tool()
        queues = admin.handles()
        keeper = suspending(d)
        agent.answer()
        tap.true("Suspended 2 queues" in keeper.stdout.readline(), "what it says first")
        admin.ask(RELEASE, Items(queues[:1]))
        agent.answer()
        admin.result()
        agent.remove(2)
        out, said = keeper.communicate(timeout=SOON)
        tap.same((keeper.returncode, out), (1, ""), said)
        tap.true(f"{os.getpid()}:1: runs again: somebody else resumed it\n" in said and f"{os.getpid()}:2: has gone\n" in said, said)


# What goes wrong


@tap.test("a stop that fails is reported, and the queue is not held")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        serial = tool.ask(HOLD, Items(tool.handles(), STOP))
        agent.answer(agent.refuse(errno.EIO))
        result = tool.result(serial)
        tap.same((result.statuses(), result.text), ([-errno.EIO], "update failed: Input/output error"), "result")
        tap.same((tool.queues()[0]["held"], tool.queues()[0]["state"]), (0, RUNNING), "held, state")


@tap.test("what fails in one way is tried in the next one, and the text says so")
def _(folder):
    with daemon(folder, "--ways", "private,update") as d:
        agent, tool = d.agent(ways=UPDATE | PRIVATE), d.tool()
        queues = tool.handles()
        tap.same(tool.queues()[0]["way"], "private", "way")
        serial = tool.ask(HOLD, Items(queues, STOP))
        agent.answer(agent.refuse(errno.EPERM))
        agent.answer()
        result = tool.result(serial)
        tap.same((result.statuses(), result.way), ([0], UPDATE), "result")
        tap.same(result.text, "private failed: Operation not permitted; used update", "text")
        serial = tool.ask(RELEASE, Items(queues))
        agent.answer()
        tool.result(serial)
        tap.same(agent.wanted, [(1, STOP, PRIVATE), (1, STOP, UPDATE), (1, RUN, UPDATE)], "a resume goes the way of its stop")


@tap.test("a process that the debugger cannot take is stopped by its agent")
def _(folder):
    with daemon(folder, "--ways", "dbg,update") as d:
        agent, tool = d.agent(), d.tool()
        serial = tool.ask(HOLD, Items(tool.handles(), STOP))
        agent.answer()
        result = tool.result(serial)
        tap.same((result.statuses(), result.way), ([0], UPDATE), "result")
        tap.true(result.text.startswith("dbg failed: ") and result.text.endswith("; used update"), result.text)


@tap.test("a way with a question mark is used only for requests that name it")
def _(folder):
    with daemon(folder, "--ways", "update,private?") as d:
        agent, tool = d.agent(ways=UPDATE | PRIVATE), d.tool()
        queues = tool.handles()
        serial = tool.ask(HOLD, Items(queues, STOP))
        agent.answer(agent.refuse(errno.EIO))
        tap.same(tool.result(serial).statuses(), [-errno.EIO], "not named")
        serial = tool.ask(HOLD, Items(queues, STOP, way=PRIVATE))
        agent.answer()
        result = tool.result(serial)
        tap.same((result.statuses(), result.way), ([0], PRIVATE), "named")


@tap.test("who names the private way is told that the agent does not offer it, and what was used instead")
def _(folder):
    with daemon(folder, "--ways", "update,private?") as d:
        agent, tool = d.agent(ways=UPDATE), d.tool()
        serial = tool.ask(HOLD, Items(tool.handles(), STOP, way=PRIVATE))
        agent.answer()
        result = tool.result(serial)
        tap.same((result.statuses(), result.way), ([0], UPDATE), "result")
        tap.same(result.text, f"the agent in process {os.getpid()} does not offer private: start it with GPREEMPT_WAYS=private; used update", "text")


@tap.test("a queue that is gone is not tried in another way")
def _(folder):
    with daemon(folder, "--ways", "private,update") as d:
        agent, tool = d.agent(ways=UPDATE | PRIVATE), d.tool()
        serial = tool.ask(HOLD, Items(tool.handles(), STOP))
        agent.answer(agent.refuse(errno.ENOENT))
        tap.same(tool.result(serial).statuses(), [-errno.ENOENT], "result")
        tap.same(agent.told(), [], "what the agent hears")


@tap.test("a resume that fails is reported and tried again until it works")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = held(agent, tool)
        serial = tool.ask(RELEASE, Items(queues))
        agent.answer(agent.refuse(errno.EBUSY))
        result = tool.result(serial)
        tap.same(result.statuses(), [-errno.EBUSY], "release")
        tap.true("tried again" in result.text, result.text)
        start = time.monotonic()
        for _ in range(11):
            tap.same(agent.answer(agent.refuse(errno.EBUSY)).list[0][1], RUN, "again")
        tap.true(1 < time.monotonic() - start < 30, "later each time, up to a second")
        agent.answer()
        until(lambda: tool.state(queues[0]) == RUNNING, "it runs")
        tap.same(d.log().count("cannot resume"), 1, "lines in the log")


@tap.test("gpreempt suspend says once, and in words, that somebody resumed what it was about to suspend")
def _(folder):
    with daemon(folder) as d:
        agent, admin = d.agent(), d.tool()
        queues = admin.handles()
        with subprocess.Popen([tap.PROGRAM, "suspend", "--socket", d.path, str(os.getpid())], stderr=subprocess.PIPE, text=True) as suspend:
            agent.wait(WANTS)
            admin.ask(RELEASE, Items(queues))
            tap.same((suspend.wait(SOON), suspend.stderr.read()),
                     (1, f"gpreempt: {os.getpid()}:1: cannot be suspended: Operation canceled: somebody resumed it, or its lease ended, before it stood still\n"), "suspend")


def told(d, *verb):
    return json.loads(tap.good(*verb, "--json", "--socket", d.path).stdout)


@tap.test("a client whose resume fails is shown by ps, top and stats as one that stands still, and so is what is wrong with whom, and since when")
def _(folder):
    with daemon(folder, "--lease", "60s", "--patience", "60s") as d:
        agent, tool = d.agent(name="train"), d.tool()
        tool.ask(RELEASE, Items(held(agent, tool)))
        agent.answer(agent.refuse(errno.EBUSY))
        agent.wait(WANTS)  # it is tried again, and that has no end
        client, stats = told(d, "ps")["clients"][0], told(d, "stats")["devices"][0]
        tap.same((client["state"], client["queues"], client["stopped"], client["resuming"]), ("resuming", 1, 1, 1), "ps")
        tap.same((stats["stopped"], stats["reason"]), (1, f"train {os.getpid()} was not resumed: Device or resource busy"), "stats")
        top = tap.good("top", "--once", "--interval", "100ms", "--socket", d.path).stdout
        tap.same(top.splitlines()[1].split()[6], "1", top)
        tap.true(re.search(r"(?m)^ *[0-9]+ .* train .* resuming ", top), top)
        until(lambda: told(d, "stats")["devices"][0]["reason_age_ns"] >= 1_000_000_000, "it is a while ago")
        for verb in ("stats", "doctor"):
            out = tap.run(verb, env=dict(os.environ, GPREEMPT_SOCKET=d.path)).stdout
            tap.true(re.search(rf"[1-9][0-9]?s ago: train {os.getpid()} was not resumed: Device", " ".join(out.split())), out)


@tap.test("a resume of a queue or a process that is not there any more has ended, and is not tried again")
def _(folder):
    for status in (errno.ENOENT, errno.ESRCH):
        with daemon(folder) as d:
            agent, tool = d.agent(), d.tool()
            queues = held(agent, tool)
            serial = tool.ask(RELEASE, Items(queues))
            agent.answer(agent.refuse(status))
            tap.same(tool.result(serial).statuses(), [0], "release")
            tap.same((tool.state(queues[0]), agent.hears(0.2)), (RUNNING, []), "then")


@tap.test("an agent that never answers times out, is told to resume, and holds nothing up")
def _(folder):
    with daemon(folder, "--patience", "600ms") as d:
        agent, tool = d.agent(), d.tool()
        queues = tool.handles()
        start = time.monotonic()
        result = tool.hold(queues)
        lasted = time.monotonic() - start
        tap.same(result.statuses(), [-errno.ETIMEDOUT], "status")
        tap.true(0.5 < lasted < 30, f"{lasted:.2f} s")
        tap.same([Items.parse(agent.wait(WANTS)[2]).list[0][1] for _ in range(2)], [STOP, RUN], "wants")
        tap.same(tool.queues()[0]["held"], 0, "held")


@tap.test("a hold that waits for a resume which nobody answers times out, too")
def _(folder):
    with daemon(folder, "--patience", "600ms") as d:
        agent, tool, other = d.agent(), d.tool(), d.tool()
        queues = held(agent, tool)
        tool.ask(RELEASE, Items(queues))
        agent.wait(WANTS)
        time.sleep(0.1)  # so that the resume's time is up well before the hold's
        tap.same(other.hold(queues).statuses(), [-errno.ETIMEDOUT], "hold")
        tap.same(tool.result().statuses(), [0], "release: somebody else wanted it, meanwhile")
        while agent.answer().list[0][1] != RUN:
            pass
        until(lambda: tool.state(queues[0]) == RUNNING, "it runs")


@tap.test("an agent that dies while it is asked ends the request, and its queues go")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = tool.handles()
        serial = tool.ask(HOLD, Items(queues, STOP))
        agent.wait(WANTS)
        agent.close()
        tap.same(tool.result(serial).statuses(), [-errno.ESRCH], "status")
        until(lambda: tool.handles() == [], "its queues are gone")


@tap.test("an agent that comes back with its queue is stopped again while the hold lasts")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = held(agent, tool)
        agent.close()
        until(lambda: tool.handles() == [], "its queue is not listed")
        again = Agent(d.path, 1)
        tap.same(again.answer().list[0][1], STOP, "want")
        until(lambda: tool.handles() == queues, "the same handle")
        serial = tool.ask(RELEASE, Items(queues))
        again.answer()
        tap.same(tool.result(serial).statuses(), [0], "release")


@tap.test("an agent that comes back with another queue, which has the old one's id, is left alone")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = held(agent, tool)
        agent.close()
        again = Agent(d.path, 0)
        again.add(1, ring=0x7F5555550000)
        until(lambda: tool.handles() not in ([], queues), "a new handle")
        tap.same(again.told(), [], "what it hears")


@tap.test("an agent that comes back after the hold is left alone")
def _(folder):
    with daemon(folder) as d:
        agent, tool, other = d.agent(), d.tool(), d.tool()
        held(agent, tool)
        agent.close()
        tool.close()
        until(lambda: other.handles() == [], "its queue is gone")
        again = d.agent()
        tap.same(again.told(), [], "what it hears")


@tap.test("an agent that resumed by itself is told again what is wanted")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        held(agent, tool)
        agent.add(1, stopped=0)
        tap.same(agent.answer().list[0][1], STOP, "want")
        agent.add(1, stopped=1)
        tap.same(agent.told(), [], "one that is stopped as it should be is left alone")


@tap.test("a queue that its agent says is stopped, and nobody wants stopped, is resumed")
def _(folder):
    with daemon(folder) as d:
        agent = Agent(d.path, 0)
        agent.add(1, stopped=1)
        tap.same(agent.answer().list[0][1], RUN, "want")


@tap.test("an agent hears a PING every third of the lease", alone=True)
def _(folder):
    with daemon(folder, "--lease", "3s") as d:
        agent = d.agent()
        tap.same(agent.lease, 3_000_000_000, "lease")
        times = []
        while len(times) < 5:
            tap.same(agent.receive()[0], PING, "message")
            times.append(time.monotonic())
        gap = (times[-1] - times[0]) / 4
        tap.true(0.9 < gap < 2, f"{gap:.3f} s apart")


# Rights


@tap.test("another user may not act on our queues, nor see their rings, nor reserve")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = tool.handles()
        tap.same(tool.rights, 1, "root's rights")

        def stranger():
            other = d.tool()
            tap.same(other.rights, 0, "rights")
            [q] = other.queues()
            tap.same((q["queue"], q["ring"], q["known"] & 2), (queues[0], 0, 0), "what it sees")
            tap.true("ring" not in q["from"], q["from"])
            result = other.hold(queues)
            tap.same(result.statuses(), [-errno.EPERM], "hold")
            tap.true("gpreempt" in result.text, result.text)
            tap.same(other.release(queues).statuses(), [-errno.EPERM], "release")
            other.send(RESERVE, struct.pack("<III", 0, 50, 50))
            tap.same(other.error()[0], -errno.EPERM, "reserve")

        AsUser(NOBODY, stranger).end()
        tap.same(agent.told(), [], "what the agent hears")


@tap.test("a user may hold queues of that user's own processes")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        def alone():
            agent, tool = d.agent(), d.tool()
            held(agent, tool, tool.handles(os.getpid()))
            tap.true(tool.queues(os.getpid())[0]["ring"], "own ring")

        AsUser(NOBODY, alone).end()


@tap.test("a user's own daemon serves that user alone, on a socket nobody else may open")
def _(folder):
    if os.getuid() != 0:
        raise tap.Skip("only root can be another user")
    os.chown(folder, NOBODY, NOBODY)
    with daemon(folder, user=NOBODY) as d:
        tap.same(os.stat(d.path).st_mode & 0o777, 0o600, "mode")

        def owner():
            agent, tool = d.agent(), d.tool()
            tap.same(tool.rights, 1 | OWN_DAEMON, "rights")
            held(agent, tool)

        def stranger():
            try:
                Tool(d.path)
            except PermissionError:
                return
            raise AssertionError("it was let in")

        AsUser(NOBODY, owner).end()
        AsUser(NOBODY - 1, stranger).end()


def doctor(**env):
    """What it tells somebody who is in no group: {check: (state, detail)}, and the advice."""
    kept = {key: value for key, value in os.environ.items() if key not in ("GPREEMPT_SOCKET", "XDG_RUNTIME_DIR")}
    found = json.loads(tap.good("doctor", "--json", user=NOBODY, group=NOBODY, extra_groups=[], env=dict(kept, **env)).stdout)
    return {check["what"]: (check["state"], check["detail"]) for check in found["checks"]}, found["advice"]


@tap.test("to whom runs a gpreemptd of their own doctor says so, and advises no group; without one it names both places")
def _(folder):
    if os.getuid() != 0:
        raise tap.Skip("only root can be another user")
    if os.path.exists("/run/gpreempt/gpreemptd.sock"):
        raise tap.Skip("root's gpreemptd may run")
    os.chown(folder, NOBODY, NOBODY)
    checks, advice = doctor(XDG_RUNTIME_DIR=folder)
    tap.same(checks["gpreemptd"][1], f"it does not run: nobody listens at /run/gpreempt/gpreemptd.sock, nor at {folder}/gpreempt/gpreemptd.sock")
    tap.true("usermod -aG gpreempt" in advice, advice)
    os.mkdir(f"{folder}/gpreempt")
    os.chown(f"{folder}/gpreempt", NOBODY, NOBODY)
    with daemon(f"{folder}/gpreempt", user=NOBODY):
        checks, advice = doctor(XDG_RUNTIME_DIR=folder)
        tap.same(checks["gpreemptd"], ("yes", "it runs, not root's but a user's own, and knows 0 queues"))
        tap.true(checks["rights"][0] == "own" and "all that this user's gpreemptd knows" in checks["rights"][1], checks["rights"])
        tap.true("gpreempt $USER" not in advice, advice)


@tap.test("a user's own daemon serves root, and not uid 0 without root's rights")
def _(folder):
    if os.getuid() != 0:
        raise tap.Skip("only root can be another user")
    os.chown(folder, NOBODY, NOBODY)
    script = (f"import sys; sys.path[:0] = {sys.path!r}; from protocol import *; p = Peer(sys.argv[1]); "
              "p.send(HELLO, struct.pack('<IIII32s64s', TOOL, 0, 0, 0, b'', b'')); print(p.wait(WELCOME, ERROR)[0])")
    with daemon(folder, user=NOBODY) as d:
        for change, heard in (("--bounding-set=+all", WELCOME), ("--bounding-set=-sys_admin", ERROR)):
            done = tap.run(change, "/usr/bin/python3", "-c", script, d.path, program="setpriv")
            tap.same(done.stdout, f"{heard}\n", f"{change}: {done.stderr}")


@tap.test("a tag makes a trusted process online; of another user it is not believed")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        def tagged(path):
            agent = d.agent(tag="ONLINE_AI")
            return agent, [(q["class"], q["rule"]) for q in Tool(path).queues(os.getpid())]

        def stranger():
            [(kind, rule)] = tagged(d.path)[1]
            tap.true(kind != 2, f"class {kind} by {rule}")

        agent, [(kind, rule)] = tagged(d.path)
        tap.same(kind, 2, f"root's class, by {rule}")
        agent.close()
        AsUser(NOBODY, stranger).end()


# Hostile peers


@tap.test("what is not a message is answered, and its sender dropped")
def _(folder):
    ping = HEADER.pack(16, PING, 1, 0, 9)
    with daemon(folder) as d:
        for packet, status in ((b"x", errno.EBADMSG), (b"GET / HTTP/1.1\r\n\r\n", errno.EBADMSG), (ping[:-1], errno.EBADMSG),
                               (HEADER.pack(16, PING, 2, 0, 9), errno.EPROTO), (HEADER.pack(16, PING, 1, 4, 9), errno.EBADMSG),
                               (HEADER.pack(40000, PING, 1, 0, 9) + bytes(39984), errno.EBADMSG), (b"\xff" * 32768, errno.EBADMSG)):
            peer = Peer(d.path)
            peer.socket.send(packet)
            tap.same(peer.error()[0], -status, repr(packet[:24]))
            try:
                peer.receive()
            except (Gone, ConnectionResetError):
                continue
            raise AssertionError("not dropped")
        d.tool().list()


@tap.test("a type nobody knows is skipped")
def _(folder):
    with daemon(folder) as d:
        tool = d.tool()
        tool.send(999, b"from the future")
        tool.list()


@tap.test("who says nothing, or not HELLO, is dropped after a second or two; who says it twice is told so")
def _(folder):
    with daemon(folder) as d:
        silent = Peer(d.path)
        start = time.monotonic()
        try:
            silent.receive()
        except Gone:
            pass
        tap.true(0.8 < time.monotonic() - start < 30, "silent")
        rude = Peer(d.path)
        rude.send(LIST)
        tap.same(rude.error()[0], -errno.EINVAL, "LIST before HELLO")
        tool = d.tool()
        tool.send(HELLO, struct.pack("<IIII32s64s", TOOL, 0, 0, 0, b"", b""))
        tap.same(tool.error()[0], -errno.EINVAL, "twice")
        tool.list()


@tap.test("a daemon that was kept from its work for long does not blame those who spoke meanwhile")
def _(folder):
    with daemon(folder) as d:
        agent = d.agent()
        peer = Peer(d.path)
        time.sleep(0.2)
        d.process.send_signal(signal.SIGSTOP)
        for _ in range(20):  # more than one is ready when it wakes, and another comes first
            agent.add(1)
        peer.send(HELLO, struct.pack("<IIII32s64s", TOOL, 0, 0, 0, b"", b""))
        time.sleep(1.5)
        d.process.send_signal(signal.SIGCONT)
        tap.same(peer.receive()[0], WELCOME, "answer")


@tap.test("who reads a list is not blamed when gpreemptd itself was slow to send it")
def _(folder):
    with daemon(folder, "--patience", "1s") as d:
        agent, tool = d.agent(queues=1000), d.tool()
        for _ in range(2):
            tool.send(LIST)
            found = 0
            while True:
                kind, _, _ = tool.receive()
                found += kind == QUEUE_INFO
                if kind == END:
                    break
                if found == 100:
                    d.process.send_signal(signal.SIGSTOP)
                    while tool.hears(0.02):
                        pass
                    time.sleep(1.2)
                    d.process.send_signal(signal.SIGCONT)
        agent.close()


@tap.test("nobody comes as a proxy, and nobody says what is not theirs to say")
def _(folder):
    with daemon(folder) as d:
        peer = Peer(d.path)
        peer.send(HELLO, struct.pack("<IIII32s64s", PROXY, DBG, 1, 0, b"", b""))
        tap.same(peer.error()[0], -errno.EPERM, "proxy")
        agent, tool = d.agent(), d.tool()
        agent.send(HOLD, Items(tool.handles(), STOP).bytes())
        tap.same(agent.error()[0], -errno.EINVAL, "HOLD of an agent")
        tool.send(QUEUE, struct.pack("<QQQIIIIII", 1, 0, 0, 0, 0, 0, 0, 0, 0))
        tap.same(tool.error()[0], -errno.EINVAL, "QUEUE of a tool")


@tap.test("an answer that was not asked for means nothing")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        items = Items([1, 77, 2**63], STOP)
        for serial in (0, 1, 2, 2**32 - 1):
            agent.send(DONE, items.bytes(), serial)
        agent.send(GONE, struct.pack("<Q", 4711))
        agent.send(ACTIVITY, struct.pack("<QQQI", 4711, 0, 0, 2))
        tap.same([q["state"] for q in tool.queues()], [RUNNING], "state")


@tap.test("a peer that does not read for too long is dropped, and nobody else is kept waiting")
def _(folder):
    with daemon(folder, "--patience", "1s") as d:
        agent = d.agent(queues=1000)
        deaf, tool = d.tool(), d.tool()
        deaf.send(LIST)
        start = time.monotonic()
        tap.same(len(tool.queues()), 1000, "another's list")
        tap.true(time.monotonic() - start < 30, "kept waiting")
        until(lambda: "does not read" in d.log(), "dropped")
        agent.close()


@tap.test("a peer that asks and asks and never reads is dropped before it fills the memory")
def _(folder):
    with daemon(folder, "--patience", "60s") as d:
        agent = d.agent(queues=1000)
        deaf, tool = d.tool(), d.tool()
        sent = 0
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while sent < 100000:
                deaf.send(LIST)
                sent += 1
        tap.true(sent < 100000, "it goes on for ever")
        until(lambda: "does not read" in d.log(), "dropped")
        tap.same(len(tool.queues()), 1000, "another's list")
        agent.close()


@tap.test("a list that is read slowly is whole, and a second one meanwhile is refused")
def _(folder):
    with daemon(folder) as d:
        agent = d.agent(queues=1024)
        tool, other = d.tool(), d.tool()
        first, second = tool.send(LIST), tool.send(LIST)
        time.sleep(0.3)
        agent.add(2000)  # too many, and means nothing
        agent.remove(1024)
        until(lambda: len(other.handles()) == 1023, "one goes")
        found, errors = [], []
        while True:
            kind, serial, body = tool.receive()
            if kind == QUEUE_INFO:
                found.append(info(body)["queue"])
            if kind == ERROR:
                errors.append((serial, struct.unpack_from("<i", body)[0]))
            if kind == END:
                break
        tap.same((serial, errors), (first, [(second, -errno.EBUSY)]), "END, errors")
        tap.same((len(found), found), (1023, other.handles()), "queues")


@tap.test("an agent that does not read is dropped: it resumes by itself")
def _(folder):
    with daemon(folder, "--patience", "300ms", "--lease", "60ms") as d:
        agent, tool = d.agent(queues=1000), d.tool()
        queues = tool.handles()
        while queues:
            tap.same(set(tool.hold(queues).statuses()) - {-errno.ETIMEDOUT, -errno.ESRCH, -errno.ENOENT}, set(), "statuses")
            queues = tool.handles()
        tap.true("does not read" in d.log(), d.log()[-300:])
        agent.close()


@tap.test("600 connections of one user do not shut the others out")
def _(folder):
    os.chmod(folder, 0o755)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with daemon(folder) as d:
        tool = d.tool()

        def flood():
            peers = []
            for _ in range(600):
                with contextlib.suppress(Gone, OSError):
                    peers.append(d.tool())
            tap.same(len(peers), 128, "connections")
            time.sleep(1)

        child = AsUser(NOBODY, flood)
        until(lambda: "too many" in d.log(), "one is refused")
        tool.list()
        d.tool().list()
        child.end()


@tap.test("an online agent that goes while its queue is busy, and leaves the queue behind, keeps nobody from the device")
def _(folder):
    foreign(folder, os.getpid(), 1)
    with daemon(folder, "--config", tap.write(f"{folder}/conf", "[scheduler]\nmax_starve = never\n")) as d:
        other = fork_agent(d, 1)
        tool, online = d.tool(), d.agent(seen=ONLINE)
        until(lambda: tool.queues(other.pid), "the other is known")
        online.activity(1, BUSY)
        other.hears_wants()
        other.go()
        until(lambda: tool.queues(other.pid)[0]["state"] == SUSPENDED, "it stops")
        online.close()
        until(lambda: tool.queues(other.pid)[0]["state"] == RUNNING, "it goes on")
        tap.same([q["activity"] for q in tool.queues(os.getpid())], [0], "of the queue without an agent")
        other.end()


@tap.test("who changed a policy, and on which device, is in the log")
def _(folder):
    with daemon(folder) as d:
        tool = d.tool()
        tool.policy("fifo", 0)
        tool.policy("fair")
        for line in ("policy fifo on device 0, by user", "policy fair on every device, by user"):
            tap.true(line in d.log(), d.log())


# Beginning and end


@tap.test("a second daemon is refused, a socket that was left behind is replaced, a file is left alone")
def _(folder):
    with daemon(folder) as d:
        second = tap.run("--socket", d.path, program=DAEMON)
        tap.same(second.returncode, 1, "second")
        tap.true("another gpreemptd listens" in second.stderr, second.stderr)
        tap.same(second.stderr.count("\n"), 1, second.stderr)
        d.tool().list()
        d.process.kill()
        d.process.wait()
        tap.true(os.path.exists(d.path), "left behind")
    with daemon(folder) as d:
        d.tool().list()
    tap.true(not os.path.exists(d.path), "and removed in the end")
    path = tap.write(f"{folder}/file", "mine")
    tap.same(tap.run("--socket", path, program=DAEMON).returncode, 1, "a file")
    tap.same(tap.read(path), "mine", "the file")


@tap.test("SIGTERM resumes everything and ends with 0")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(queues=2), d.tool()
        held(agent, tool, lease=3600 * 10**9)
        d.process.terminate()
        tap.same([item[1] for item in agent.answer().list], [RUN, RUN], "wants")
        tap.same(d.process.wait(SOON), 0, "status")
        try:
            agent.wait(WANTS)
        except Gone:
            return
        raise AssertionError("the connection lasts")


@tap.test("SIGTERM ends in time although an agent does not answer, and tools are told no")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        held(agent, tool)
        d.process.terminate()
        agent.wait(WANTS)
        tool.ask(HOLD, Items([1], STOP))
        tap.same(tool.error()[0], -errno.ESHUTDOWN, "hold")
        tool.send(POLICY, struct.pack("<I32s", 0, b"fifo"))
        tap.same(tool.error(), (-errno.ESHUTDOWN, "gpreemptd is ending"), "policy")
        tap.same(d.process.wait(SOON), 0, "status")


@tap.test("a daemon that is killed lets go: the connection ends")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        held(agent, tool)
        d.process.kill()
        try:
            agent.wait(WANTS)
        except (Gone, ConnectionResetError):
            return
        raise AssertionError("the connection lasts")


@tap.test("systemd hears that it is ready, alive and ending")
def _(folder):
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(f"{folder}/notify")
    notify.settimeout(SOON)
    with daemon(folder, env={"NOTIFY_SOCKET": f"{folder}/notify", "WATCHDOG_USEC": "200000"}) as d:
        heard = set()
        while heard < {b"READY=1", b"WATCHDOG=1"}:
            heard.add(notify.recv(64))
        d.process.terminate()
        while b"STOPPING=1" not in heard:
            heard.add(notify.recv(64))


# A socket that systemd keeps


def kept_socket(path):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.bind(path)
    one.listen(8)
    return one


def lent(*kept, said=None, to="$$"):
    """As systemd starts it: sd_listen_fds(3). said: so many, it says; to: this process."""
    numbers = [str(one.fileno()) for one in kept]
    moved = "; ".join(f"exec {3 + i}<&{10 + i}" for i in range(len(kept)))
    high = "; ".join(f"exec {10 + i}<&{number}" for i, number in enumerate(numbers))
    script = f'{high}; {moved}; export LISTEN_PID={to} LISTEN_FDS={len(kept) if said is None else said}; exec "$0" "$@"'
    return {"under": ("bash", "-c", script), "pass_fds": [one.fileno() for one in kept]}


@tap.test("who comes while systemd keeps the socket and no gpreemptd runs is served by the next, and the socket outlives that one")
def _(folder):
    path = f"{folder}/gpreemptd.sock"
    with contextlib.closing(kept_socket(path)) as kept:
        for _ in range(2):
            with contextlib.ExitStack() as stack:
                early = Peer(path)
                early.greet(TOOL, name="early")
                d = stack.enter_context(daemon(folder, **lent(kept)))
                early.wait(WELCOME)
                early.send(LIST)
                early.wait(END)
                tap.same(d.tool().queues(), [], "queues")
                until(lambda: f"listening on {path}" in d.log(), "it says where it listens")
            tap.true(os.path.exists(path), "the socket is gone")


def listener(path):
    """Who listens there, as the kernel tells those who come: its process and the name of that."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.connect(path)
        pid = struct.unpack("iII", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    return pid, tap.read(f"/proc/{pid}/comm").strip()


@tap.test("who comes to a socket that systemd keeps is told by the kernel that gpreemptd listens, and of each that follows")
def _(folder):
    path = f"{folder}/gpreemptd.sock"
    with contextlib.closing(kept_socket(path)) as kept:
        tap.same(listener(path)[0], os.getpid(), "before there is a gpreemptd")
        for _ in range(2):
            with daemon(folder, **lent(kept)) as d:
                tap.same(d.tool().queues(), [], "queues")
                tap.same(listener(path), (d.process.pid, "gpreemptd"), "who listens")


@tap.test("a socket that systemd keeps where gpreemptd is not to listen is closed to everybody, and a line says so")
def _(folder):
    elsewhere = f"{folder}/elsewhere.sock"
    with contextlib.closing(kept_socket(elsewhere)) as kept, daemon(folder, **lent(kept)) as d:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
            tap.same(one.connect_ex(elsewhere), errno.ECONNREFUSED, "who comes there")
        tap.true(f"systemd listens on {elsewhere}, and gpreemptd does not" in d.log(), d.log())
        tap.same(d.tool().queues(), [], "queues")


@tap.test("a socket that was kept for another process is left alone")
def _(folder):
    elsewhere = f"{folder}/elsewhere.sock"
    with contextlib.closing(kept_socket(elsewhere)) as kept, daemon(folder, **lent(kept, to="1")) as d:
        tap.same(d.tool().queues(), [], "queues")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
            tap.same(one.connect_ex(elsewhere), 0, "who comes there")


@tap.test("who says that there are more sockets than there are costs gpreemptd no descriptor of its own, and no lines")
def _(folder):
    path = f"{folder}/gpreemptd.sock"
    for said in ("40", "2000000000", "99999999999999999999"):
        with contextlib.closing(kept_socket(path)) as kept, daemon(folder, **lent(kept, said=said)) as d:
            tap.same(d.tool().queues(), [], "queues")
            until(lambda: f"listening on {path}" in d.log(), "it says where it listens")
            tap.true("systemd listens on" not in d.log(), d.log()[-1000:])
        os.remove(path)


@tap.test("a socket of another kind than gpreemptd's is refused, and what to write instead is said")
def _(folder):
    path = f"{folder}/gpreemptd.sock"
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as kept:
        kept.bind(path)
        kept.listen(8)
        more = lent(kept)
        done = tap.run(*more["under"][1:], DAEMON, "--config", "/dev/null", "--socket", path, program="bash", pass_fds=more["pass_fds"])
        tap.same((done.returncode, "ListenSequentialPacket=" in done.stderr, os.path.exists(path)), (1, True, True), done.stderr)


@tap.test("a log that may grow no more does not end it")
def _(folder):
    with daemon(folder, under=["prlimit", "--fsize=0", "--"]) as d:
        tap.same(len(d.tool().handles()), 0, "queues")
        with Agent(d.path, 1).socket:
            until(lambda: len(d.tool().handles()) == 1, "it serves")
    tap.same(d.log(), "", "its log")


@tap.test("the log begins with the version that runs, which may not be the installed one")
def _(folder):
    with daemon(folder) as d:
        until(lambda: "listening on" in d.log(), "it says where it listens")
        tap.same(d.log().splitlines()[0].split(" ", 2)[2], tap.good("--version", program=DAEMON).stdout.strip().replace("gpreemptd ", "gpreemptd: version "), "first line")


@tap.test("bad options are one line and exit 2; --help and --version are 0")
def _(folder):
    del folder
    for args, word in ((("--ways", "updat"), "updat"), (("--ways", "dbg,dbg"), "twice"), (("--ways", ""), "no way"), (("--lease", "3"), "unit"),
                       (("--lease", "0s"), "from 30ms"), (("--scan", "-1s"), "time"), (("--lease", "99999999999999999999s"), "time"), (("extra",), "too many"),
                       (("--socket", "x" * 200), "--socket"), (("--classes", "/nonexistent"), "/nonexistent"),
                       (("--dbg", "x"), "itself"), (("--dbg", ""), "itself"), (("--dbg", "1x"), "itself"), (("--dbg", "2147483648"), "itself"), (("--uid", "4294967296"), "itself")):
        done = tap.run(*args, program=DAEMON)
        tap.same(done.returncode, 2, f"{args}: {done.stderr}")
        tap.true(word in done.stderr and done.stderr.count("\n") == 1, f"{args}: {done.stderr!r}")
        tap.same(done.stdout, "", "stdout")
    tap.true("--ways" in tap.good("--help", program=DAEMON).stdout, "help")
    tap.true(tap.good("--version", program=DAEMON).stdout.startswith("gpreemptd "), "version")


# Reservation


@tap.test("a reservation keeps as many offline queues active as it says, and they take turns")
def _(folder):
    foreign(folder, os.getpid(), *range(1, 7))
    with daemon(folder) as d:
        agent, tool = d.agent(queues=6), d.tool()
        tap.same(tool.reserve(0, 80, 20).list, [], "24 slots, 20 percent: 4.8, so 4")
        ran = {}
        agent.answer()
        tap.same(sum(agent.stopped.values()), 2, "stopped")
        begin = time.monotonic()
        for _ in range(4):
            stops = agent.answer()
            tap.true(len(stops.list) <= 4, "changes")
            tap.same(sum(agent.stopped.values()), 2, "stopped")
            for number, stopped in agent.stopped.items():
                ran[number] = ran.get(number, 0) + (not stopped)
        tap.true(time.monotonic() - begin > 2.5, "a turn lasts a second")
        tap.same(set(ran), set(range(1, 7)), "queues")
        tap.true(all(count > 0 for count in ran.values()), f"everybody ran: {ran}")
        tool.send(RESERVE, struct.pack("<III", 0, 0, 0))
        agent.answer()
        tap.same(sum(agent.stopped.values()), 0, "stopped after its end")
        tap.same(agent.hears(1.3), [], "turns after its end")


@tap.test("a reservation leaves online queues, copies and held queues out of its count")
def _(folder):
    foreign(folder, os.getpid(), 1, 3, 4)
    foreign(folder, os.getpid(), 2, kind=1)
    with daemon(folder, "--rule", "online:priority>=10") as d:
        agent = d.agent(queues=0)
        agent.add(1, priority=11)
        agent.add(2, kind=2)
        agent.add(3)
        agent.add(4)
        tool = d.tool()
        until(lambda: len(tool.handles()) == 4, "listed")
        tool.reserve(0, 90, 8)
        agent.answer()
        tap.same((agent.stopped[1], agent.stopped[2], agent.stopped[3] + agent.stopped[4]), (0, 0, 1), "one of 3 and 4")
        running = 3 if agent.stopped[4] else 4
        handle = tool.handles()[running - 1]
        tool.ask(HOLD, Items([handle], STOP))
        wants = agent.answer()
        while sum(agent.stopped.values()) != 1 or not agent.stopped[running]:
            wants = agent.answer()
        del wants
        tap.same((agent.stopped[running], agent.stopped[7 - running]), (1, 0), "the other has its place")


@tap.test("a reservation that cannot be is refused")
def _(folder):
    with daemon(folder) as d:
        tool = d.tool()
        for device, online, offline, status in ((0, 60, 50, errno.EINVAL), (0, 2**32 - 1, 2, errno.EINVAL), (1, 50, 50, errno.ENODEV), (2**32 - 1, 50, 50, errno.ENODEV)):
            tool.send(RESERVE, struct.pack("<III", device, online, offline))
            tap.same(tool.error()[0], -status, f"{device} {online} {offline}")


@tap.test("a queue that a reservation cannot stop keeps running, and another is stopped for it")
def _(folder):
    foreign(folder, os.getpid(), 1, 2)
    with daemon(folder) as d:
        agent, tool = d.agent(queues=2), d.tool()
        tool.reserve(0, 90, 5)
        first = agent.answer(agent.refuse(errno.EIO)).list[0][0]
        second = agent.answer().list[0][0]
        tap.same({first, second}, {1, 2}, "queues")
        tap.same(agent.hears(0.5), [], "what the agent hears")


tap.main(jobs=8)
