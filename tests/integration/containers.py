#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Containers: the socket that root mounted into one decides its class, and nobody in it acts outside of it."""

import contextlib
import errno
import os
import signal
import struct

import tap
from gpreemptd import AsUser, daemon, until
from protocol import Agent, Gone, Items, Peer, Tool, ALL_DEVICES, HOLD, OFFLINE, ONLINE, POLICY, STOP

ANNA = 20001
CLASSES = {"online": ONLINE, "offline": OFFLINE}


def door(d, name):
    return f"{d.folder}/class/{name}/gpreemptd.sock"


@contextlib.contextmanager
def with_doors(folder, *options):
    before = tap.read(folder, "log").count("listening on") if os.path.exists(f"{folder}/log") else 0
    with daemon(folder, "--class-sockets", f"{folder}/class", *options) as d:
        until(lambda: d.log().count("listening on") == before + 3, "it listens on all three")
        yield d


def told(d, pid, n=1):
    """class and rule of each queue of a process, once there are n"""
    tool = d.tool()
    until(lambda: len(tool.queues(pid)) == n, "its queues are listed")
    return [(q["class"], q["rule"]) for q in tool.queues(pid)]


class Elsewhere:
    """An agent in a child that has another root folder by now."""

    def __init__(self, path, root):
        self.ready, ready = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            tap.die_with_parent()
            agent = Agent(path)
            os.chroot(root)
            os.write(ready, b"x")
            with contextlib.suppress(Gone, OSError):
                while True:
                    agent.answer()
            os._exit(0)
        os.read(self.ready, 1)

    def end(self):
        os.close(self.ready)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def need_root():
    if os.geteuid() != 0:
        raise tap.Skip("needs root")


@tap.test("who comes by a class's socket is of that class, whatever tag, environment, priority and rules say")
def _(folder):
    lies = {"online": {"tag": "OFFLINE_AI", "seen": OFFLINE}, "offline": {"tag": "ONLINE_AI", "seen": ONLINE}}
    priorities = {"online": 0, "offline": 15}
    with with_doors(folder, "--rule", f"offline:pid={os.getpid()}") as d:
        for name in ("online", "offline", "online"):
            agent = Agent(door(d, name), 0, **lies[name])
            agent.add(1, priority=priorities[name])
            tap.same(told(d, os.getpid()), [(CLASSES[name], f"socket {name}")], name)
            agent.close()
            tool = d.tool()
            until(lambda: not tool.handles(os.getpid()), "it has gone")
        agent = d.agent(tag="ONLINE_AI")
        tap.same(told(d, os.getpid())[0][0], OFFLINE, "by everybody's socket rules say")
        agent.close()


@tap.test("a rule that makes a process online does not do so for one that came by the socket offline, also after a reload")
def _(folder):
    with with_doors(folder, "--rule", f"online:pid={os.getpid()}") as d:
        agent = Agent(door(d, "offline"))
        d.process.send_signal(signal.SIGHUP)
        until(lambda: "read again" in d.log(), "it reads again")
        tap.same(told(d, os.getpid()), [(OFFLINE, "socket offline")])
        agent.close()


@tap.test("by a class's socket nobody has rights over others, not even root")
def _(folder):
    need_root()
    with with_doors(folder) as d:
        tap.same(d.tool().rights, 1, "root's, by everybody's socket")
        for name in CLASSES:
            tool = Tool(door(d, name))
            tap.same(tool.rights, 0, name)
            tool.send(POLICY, struct.pack("<I32s", ALL_DEVICES, b"fifo"))
            tap.same(tool.error()[0], -errno.EPERM, f"policy by {name}")


@tap.test("a tool that came by a class's socket holds what is in its own root folder, and nothing in another")
def _(folder):
    need_root()
    with with_doors(folder) as d:
        other = Elsewhere(door(d, "online"), folder)
        agent = Agent(door(d, "offline"))
        try:
            [theirs], [own] = ([q["queue"] for q in d.tool().queues(pid)] for pid in (other.pid, os.getpid()) if told(d, pid))
            for name in CLASSES:
                tap.same(Tool(door(d, name)).hold([theirs]).statuses(), [-errno.EPERM], f"another's, by {name}")
            tool = Tool(door(d, "offline"))
            asked = tool.ask(HOLD, Items([own], STOP))
            agent.answer()
            tap.same(tool.result(asked).statuses(), [0], "its own")
            tap.same(d.tool().hold([theirs]).statuses(), [0], "root's, by everybody's socket")
        finally:
            other.end()


@tap.test("a user reaches a class's socket by no path of the host, and by its folder where that is mounted, without a group")
def _(folder):
    need_root()
    os.chmod(folder, 0o755)

    def anna(d, inner):
        for name in CLASSES:
            try:
                Peer(door(d, name))
                raise AssertionError("it is there for everybody")
            except PermissionError:
                pass
        agent = Agent(f"/proc/self/fd/{inner}/gpreemptd.sock")
        AsUser.wait()
        agent.close()

    with with_doors(folder) as d:
        inner = os.open(f"{folder}/class/online", os.O_PATH)
        child = AsUser(ANNA, anna, d, inner)
        tap.same(told(d, child.pid), [(ONLINE, "socket online")])
        child.go()
        child.end()


@tap.test("the folder of a class outlives gpreemptd, and has the next one's socket")
def _(folder):
    with with_doors(folder):
        inner = os.open(f"{folder}/class/offline", os.O_PATH)
    for _ in range(2):
        with with_doors(folder) as d:
            tap.same(os.listdir(f"/proc/self/fd/{inner}/"), ["gpreemptd.sock"], "what who mounts it sees")
            agent = Agent(f"/proc/self/fd/{inner}/gpreemptd.sock")
            tap.same(told(d, os.getpid()), [(OFFLINE, "socket offline")])
            agent.close()
        tap.same(os.listdir(f"/proc/self/fd/{inner}/"), [], "when it has ended")


@tap.test("hints by a class's socket count for online alone")
def _(folder):
    with with_doors(folder) as d:
        for name, want in (("online", True), ("offline", False)):
            tool = Tool(door(d, name))
            try:
                tool.hint(1)
                counted = True
            except AssertionError:
                counted = False
            tap.same(counted, want, name)
            tool.close()
            everybody = d.tool()
            until(lambda: not everybody.handles(os.getpid()), "it has gone")


@tap.test("with none, and with another socket, there is no class's socket; a folder of another user is refused")
def _(folder):
    need_root()
    for options in ((), ("--class-sockets", "none")):
        with daemon(folder, *options) as d:
            tap.same(d.log().count("listening on"), 1, "sockets")
        os.remove(f"{folder}/log")
    os.mkdir(f"{folder}/theirs")
    os.chown(f"{folder}/theirs", ANNA, ANNA)
    done = tap.run("--config", "/dev/null", "--socket", f"{folder}/sock", "--class-sockets", f"{folder}/theirs",
                   program=os.path.join(os.path.abspath(tap.BUILD), "gpreemptd"))
    tap.same(done.returncode, 1, "exit status")
    tap.true(f"is user {ANNA}'s; choose another place by --class-sockets" in done.stderr, done.stderr)


signal.alarm(280)
tap.main()
