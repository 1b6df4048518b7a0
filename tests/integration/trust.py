#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What peers without rights, or who are not who they seem, cannot do to gpreemptd and to each other."""

import contextlib
import ctypes
import errno
import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import time

import tap
from gpreemptd import DAEMON, NOBODY, AsUser, cpu_seconds, daemon, foreign, put, tree, until, with_group
from protocol import (
    Agent, Gone, Items, Peer, Tool, AGENT, DBG, DONE, DRAIN, END, ERROR, EVENT, EVENTS, HEADER, HELLO, HOLD, IN_CONTAINER, LIST, NEW_QUEUES, PING,
    RELEASE, RESERVE, RUN, RUNNING, SOON, STOP, SUSPENDED, TOOL, UPDATE, WANTS,
)

ANNA, BERT = 20001, 20002
CLONE_NEWUSER, CLONE_NEWPID = 0x10000000, 0x20000000
CAP_SYS_ADMIN = 21
libc = ctypes.CDLL(None, use_errno=True)


def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def drop_capability(number):
    """From the effective set; uid 0 stays uid 0."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    call(libc.capget(header, data))
    data[3 * (number // 32)] &= ~(1 << number % 32)
    call(libc.capset(header, data))


class Child:
    """Calls in a child that stays as it is: root's. What it says is looked at in end()."""

    def __init__(self, function, *args):
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            tap.die_with_parent()
            said = "well"
            try:
                function(*args)
            except BaseException as wrong:
                said = f"{type(wrong).__name__}: {wrong}"
            os.write(write, said.encode())
            os._exit(0)
        os.close(write)

    def end(self):
        said = os.read(self.read, 4096).decode()
        os.close(self.read)
        os.waitpid(self.pid, 0)
        tap.same(said, "well", "in a child")


def sees_no_wants(agent, seconds):
    return [kind for kind, _, _ in agent.hears(seconds) if kind == WANTS]


def dropped(peer):
    try:
        while True:
            peer.receive()
    except (Gone, ConnectionResetError, BrokenPipeError):
        return True
    except socket.timeout:
        return False


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def processor_ms(d):
    """of gpreemptd, since it began"""
    return int(tap.read(f"/proc/{d.process.pid}/schedstat").split()[0]) / 1e6


def root_requests(d, seconds, agent, tool):
    """Root's own HOLD and RELEASE, 100 a second: ms that each takes, and ms that gpreemptd works meanwhile."""
    [queue] = tool.handles(os.getpid())
    begin = time.monotonic()
    took, worked = [], []
    for i in range(100 * seconds):
        due = begin + i / 100
        time.sleep(max(0, due - time.monotonic()))
        kind, want = ((HOLD, STOP), (RELEASE, RUN))[i % 2]
        before = processor_ms(d)
        tool.ask(kind, Items([queue], want))
        agent.answer()
        tap.same(tool.result().statuses(), [0], "root's request")
        worked.append(processor_ms(d) - before)
        took.append(1000 * (time.monotonic() - due))
    return took, worked


def judge_flood(folder, flood, seconds):
    """
    How long a request takes also depends on who else uses this machine; how much gpreemptd does
    for others before it is done with root's does not.
    """
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        child = AsUser(ANNA, flood, d, seconds)
        took, worked = root_requests(d, seconds, agent, tool)
        child.end()
        work = percentile(worked, 0.99)
        tap.say(f"p99 of root's requests: {percentile(took, 0.99):.1f} ms, {work:.1f} ms of work in it; {d.memory():.0f} MiB")
        if "ASAN_OPTIONS" not in os.environ:  # which keeps what was freed
            tap.true(d.memory() < 64, f"{d.memory():.0f} MiB")
        tap.true(work < 50, f"{work:.1f} ms of work before a request of root's is answered")


# Reservations


def two_users(folder, d, of_anna, is_real, stopped, same_id=False):
    """ANNA's queues cannot be stopped; BERT has six that can, and there are six places. How many of BERT's are stopped."""
    def anna():
        AsUser.wait()
        agent = Agent(d.path, 0, ways=0)
        for number in range(1, of_anna + 1):
            agent.add(number, queue_id=1 if same_id else number)
        AsUser.wait()
        del agent

    def bert():
        AsUser.wait()
        agent = Agent(d.path, 6)
        AsUser.wait()
        told = []
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            for kind, serial, body in agent.hears(0.1):
                told.append(Items.parse(body))
                agent.obey(told[-1])
                agent.send(DONE, told[-1].bytes(), serial)
        tap.same(max([0] + [sum(agent.stopped.values())]), stopped, f"of BERT's queues stopped, after {len(told)} messages")

    first, second = AsUser(ANNA, anna), AsUser(BERT, bert)
    foreign(folder, second.pid, *range(1, 7))
    if is_real:
        foreign(folder, first.pid, *([1] if same_id else range(1, of_anna + 1)))
    tool = d.tool()
    first.go()
    second.go()
    until(lambda: len(tool.handles(second.pid)) == 6 and len(tool.handles(first.pid)) == of_anna, "all are listed")
    tool.reserve(0, 75, 25)
    second.go()
    second.end()
    first.go()
    first.end()


@tap.test("queues that an agent makes up take no place of a reservation")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        two_users(folder, d, of_anna=40, is_real=False, stopped=0)


@tap.test("a user's queues that cannot be stopped take that user's places, and nobody else's")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        two_users(folder, d, of_anna=12, is_real=True, stopped=3)


@tap.test("one queue that an agent tells of again and again takes one place")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder, "--scan", "0s") as d:
        two_users(folder, d, of_anna=40, is_real=True, stopped=1, same_id=True)


@tap.test("a real queue that its agent calls a copy engine's counts as what the driver says it is")
def _(folder):
    foreign(folder, os.getpid(), 1, 2)
    with daemon(folder) as d:
        agent = d.agent(queues=0)
        agent.add(1, kind=2)
        agent.add(2, kind=2, gpu=7)
        tool = d.tool()
        until(lambda: len(tool.handles()) == 2, "listed")
        tool.reserve(0, 90, 5)
        agent.answer()
        tap.same(sum(agent.stopped.values()), 1, "stopped")


# Memory, time, places


def flood_with_requests(d, seconds):
    """They never end: the agent does not answer."""
    del seconds
    own, looker, asker = Agent(d.path, 1024), d.tool(), d.tool()
    until(lambda: len(looker.handles(os.getpid())) == 1024, "listed")
    body = Items(looker.handles(os.getpid()), STOP, kind=DRAIN, timeout=3600 * 10**9).bytes()
    asker.socket.settimeout(0.01)
    for _ in range(12000):
        with contextlib.suppress(socket.timeout):
            asker.send(HOLD, body)
        with contextlib.suppress(BlockingIOError, socket.timeout):
            asker.socket.recv(65536, socket.MSG_DONTWAIT)
    own.close()


def flood_with_leases(d, seconds):
    """Each of another connection's, which ends at once."""
    own, looker = Agent(d.path, 1024), d.tool()
    until(lambda: len(looker.handles(os.getpid())) == 1024, "listed")
    body = Items(looker.handles(os.getpid()), STOP, lease=3600 * 10**9).bytes()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        askers = [d.tool() for _ in range(110)]
        for asker in askers:
            asker.send(HOLD, body)
            if select.select([own.socket], [], [], 0)[0]:
                own.socket.recv(65536)
        for asker in askers:
            asker.close()


@tap.test("12,000 requests that never end take no memory, and root's own are answered within 50 ms meanwhile", alone=True)
def _(folder):
    judge_flood(folder, flood_with_requests, 6)


@tap.test("leases whose connections end do not pile up, and root's own requests are answered within 50 ms meanwhile", alone=True)
def _(folder):
    judge_flood(folder, flood_with_leases, 8)


@tap.test("a lease of more than a day is refused, one of a day is not")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        for lease in (2**64 - 1, 2**63, 25 * 3600 * 10**9):
            tool.ask(HOLD, Items(tool.handles(), STOP, lease=lease))
            status, said = tool.error()
            tap.same(status, -errno.EINVAL, f"{lease}")
            tap.true("day" in said, said)
        tool.ask(HOLD, Items(tool.handles(), STOP, lease=24 * 3600 * 10**9))
        agent.answer()
        tap.same(tool.result().statuses(), [0], "a day")


def number_from(pipe):
    """What a child says; one that went wrong says nothing."""
    tap.true(select.select([pipe], [], [], 3 * SOON)[0], "nothing came from a child")
    return struct.unpack("<I", os.read(pipe, 4))[0]


def enter_namespace():
    """A user namespace in which this user is who it is."""
    uid, gid = os.geteuid(), os.getegid()
    call(libc.unshare(CLONE_NEWUSER))
    call(libc.prctl(4, 1, 0, 0, 0))  # PR_SET_DUMPABLE: its files in /proc are its own
    tap.write("/proc/self/uid_map", f"{uid} {uid} 1\n")
    tap.write("/proc/self/setgroups", "deny")
    tap.write("/proc/self/gid_map", f"{gid} {gid} 1\n")


def sit(d, n, **more):
    """As many connections as one gets, of n, held until told to go."""
    peers = []
    for _ in range(n):
        with contextlib.suppress(Gone, OSError, AssertionError):
            peers.append(Tool(d.path))
    os.write(more["told"], struct.pack("<I", len(peers)))
    AsUser.wait()
    return peers


def sitters(d, uids, n):
    """Users that take what places they get: (the users, how many each has)"""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    heard, told = os.pipe()
    users, got = [], []
    for uid in uids:
        users.append(AsUser(uid, lambda: sit(d, n, told=told)))
        got.append(number_from(heard))
    return users, got


def leave(users):
    for user in users:
        user.go()
    for user in users:
        user.end()


@tap.test("five users who take all places they can get leave root's and those of a sixth", alone=True)
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        users, got = sitters(d, range(30001, 30006), 140)
        tap.same((max(got), min(got[:3])), (128, 128), f"places of each: {got}")
        tap.true(sum(got) <= 640, f"{got}")
        d.tool().list()
        d.agent()

        def sixth():
            for _ in range(20):
                one = Tool(d.path)
                one.list()
                one.close()
            kept = [Tool(d.path) for _ in range(20)]
            [one.list() for one in kept]

        AsUser(30010, sixth).end()
        taken = len(os.listdir(f"/proc/{d.process.pid}/fd"))
        tap.true(taken < 2 * 512 + 100, f"{taken} descriptors")
        leave(users)


@tap.test("subuids count as the user that they are lent to")
def _(folder):
    os.chmod(folder, 0o755)
    put(tree(folder), "etc/subuid", f"nobody-here:1:2\n{ANNA}:200000:65536\nnobody-here:300000:9\nnobody-here:400000:9\n")
    with daemon(folder) as d:
        users, got = sitters(d, (200000, 200001, 265535, ANNA), 60)
        tap.same(got, [60, 60, 8, 0], "places of each")
        others, theirs = sitters(d, (265536, BERT), 60)
        tap.same(theirs, [60, 60], "places of others")
        nameless, got = sitters(d, (300000, 400000), 100)
        tap.same(got, [100, 28], "places of one whose name nobody knows")
        leave(users + others + nameless)


@tap.test("whoever is in a user namespace counts as the one who made it")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        heard, told = os.pipe()

        def inside():
            call(libc.unshare(CLONE_NEWUSER))
            sit(d, 100, told=told)

        first = AsUser(ANNA, inside)
        tap.same(number_from(heard), 100, "of the first namespace")
        second = AsUser(ANNA, inside)
        tap.same(number_from(heard), 28, "of the second")
        d.tool().list()
        leave([first, second])


@tap.test("namespaces in namespaces count as the one who made the outermost")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        heard, told = os.pipe()

        def deep(levels):
            for _ in range(levels):
                enter_namespace()
            sit(d, 100, told=told)

        users, got = [], []
        for levels in (3, 2):
            users.append(AsUser(ANNA, deep, levels))
            got.append(number_from(heard))
        tap.same(got, [100, 28], "places")
        leave(users)


@tap.test("uid 0 without CAP_SYS_ADMIN is one user, however many namespaces it makes, in a container or out of one")
def _(folder):
    with daemon(folder) as d:
        for in_container in (False, True):
            heard, told = os.pipe()
            waits, goes = os.pipe()

            def sits():
                call(libc.unshare(CLONE_NEWUSER))
                AsUser.wait = lambda: os.read(waits, 1)
                sit(d, 100, told=told)

            def capless():
                if in_container:
                    call(libc.unshare(CLONE_NEWPID))

                def root():
                    drop_capability(CAP_SYS_ADMIN)
                    inside = [Child(sits) for _ in range(2)]
                    [one.end() for one in inside]

                Child(root).end()

            child = Child(capless)
            got = sum(number_from(heard) for _ in range(2))
            tap.same(got, 128, f"places, in_container={in_container}")
            os.write(goes, b"xx")
            child.end()
            until(lambda: len(os.listdir(f"/proc/{d.process.pid}/fd")) < 40, "their places are free")


@tap.test("what a uid in a container has is not counted against that uid outside")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        heard, told = os.pipe()
        waits, goes = os.pipe()

        def container():
            call(libc.unshare(CLONE_NEWPID))
            user = AsUser(ANNA, lambda: sit(d, 140, told=told))
            os.read(waits, 1)
            leave([user])

        child = Child(container)
        tap.same(number_from(heard), 128, "inside")
        users, got = sitters(d, [ANNA], 100)
        tap.same(got, [100], "outside")
        leave(users)
        os.write(goes, b"x")
        child.end()


@tap.test("4,096 queues of one user's agents are taken in, and no more; another's still are")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        def tell(n):
            agent = Agent(d.path, 0)
            for number in range(n):
                agent.add(number + 1)
            agent.send(LIST)
            agent.error()
            AsUser.wait()

        users = [AsUser(ANNA, tell, 1000) for _ in range(5)]
        tool = d.tool()
        until(lambda: len(tool.handles()) == 4096, "as many as may")
        users.append(AsUser(BERT, tell, 10))
        until(lambda: len(tool.handles()) == 4106, "another's")
        leave(users)
        until(lambda: not tool.handles(), "all gone")
        again = AsUser(ANNA, tell, 10)
        until(lambda: len(tool.handles()) == 10, "there is room again")
        leave([again])


@tap.test("no more than 8,192 holds are one user's, and those that ended make room")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        def greedy():
            agent = Agent(d.path, 1024)
            looker = d.tool()
            until(lambda: len(looker.handles(os.getpid())) == 1024, "listed")
            queues = looker.handles(os.getpid())
            tools = [d.tool() for _ in range(9)]
            tools[0].ask(HOLD, Items(queues, STOP))
            agent.answer()
            tools[0].result()
            for tool in tools[1:8]:
                tap.same(set(tool.hold(queues).statuses()), {0}, "holds")
            result = tools[8].hold(queues[:2])
            tap.same(result.statuses(), [-errno.ENOSPC] * 2, "one more")
            tap.true("too many" in result.text, result.text)
            tools[3].close()
            until(lambda: tools[8].hold(queues[:2]).statuses() == [0, 0], "there is room again")

        AsUser(ANNA, greedy).end()


@tap.test("requests of one user wait for 8,192 queues together at the most")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        def greedy():
            agent, tool = Agent(d.path, 1024), d.tool()
            until(lambda: len(d.tool().handles(os.getpid())) == 1024, "listed")
            queues = tool.handles(os.getpid())
            for _ in range(8):
                tool.ask(HOLD, Items(queues, STOP))
            tool.ask(HOLD, Items(queues[:1], STOP))
            tap.same(tool.error()[0], -errno.EBUSY, "one more")
            del agent

        AsUser(ANNA, greedy).end()


@tap.test("out of descriptors, it listens again on each of its sockets when some are free", alone=True)
def _(folder):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    with daemon(folder, "--lease", "600ms", "--class-sockets", f"{folder}/class", preexec_fn=few) as d:
        doors = [d.path, *(f"{folder}/class/{name}/gpreemptd.sock" for name in ("online", "offline"))]
        until(lambda: d.log().count("listening on") == len(doors), "it listens")
        peers = []
        for number in range(90):
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            peer.connect(doors[number % len(doors)])
            peers.append(peer)
        until(lambda: len(os.listdir(f"/proc/{d.process.pid}/fd")) >= 38, "they are used up")
        time.sleep(0.5)
        used = cpu_seconds(d.process.pid)
        time.sleep(1)
        tap.true(cpu_seconds(d.process.pid) - used < 0.5, "it spins")
        for peer in peers:
            peer.close()
        for path in doors:
            until(lambda at=path: can_list(at), f"it answers at {path}")


def can_list(path):
    with contextlib.suppress(Gone, OSError, AssertionError):
        Tool(path).list()
        return True
    return False


# Who it is


WAYS_TO_KNOW = ((), ("--old-kernel",))
SO_PEERPIDFD = 77  # Linux 6.5, include/uapi/asm-generic/socket.h


def has_pidfds():
    """Linux 5.3."""
    with contextlib.suppress(OSError):
        os.close(os.pidfd_open(os.getpid()))
        return True
    return False


def has_peers_pidfds():
    one, other = socket.socketpair()
    with one, other, contextlib.suppress(OSError):
        os.close(one.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD))
        return True
    return False


@tap.test("a child that kept the connection does not speak for its parent")
def _(folder):
    for options in WAYS_TO_KNOW:
        with daemon(folder, *options) as d:
            tool = d.tool()
            child = os.fork()
            if child == 0:
                tool.send(LIST)
                time.sleep(0.5)
                os._exit(0)
            os.waitpid(child, 0)
            tap.same(tool.error()[0], -errno.EPERM, "answer")
            tap.true(dropped(tool), "dropped")


@tap.test("a program that became another user speaks no more for the one it was")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        def changes():
            tool = d.tool()
            tap.same(tool.rights, 1, "root's rights")
            os.setresuid(ANNA, ANNA, ANNA)
            tool.send(LIST)
            tap.same(tool.error()[0], -errno.EPERM, "answer")
            tap.true(dropped(tool), "dropped")

        Child(changes).end()


@tap.test("what is said before WELCOME is not believed")
def _(folder):
    with daemon(folder) as d:
        peer = Peer(d.path)
        hello = struct.pack("<IIII32s64s", TOOL, 0, 0, 0, b"early", b"")
        d.process.send_signal(signal.SIGSTOP)
        peer.send(HELLO, hello)
        peer.send(LIST)
        d.process.send_signal(signal.SIGCONT)
        tap.same(peer.error()[0], -errno.EPROTO, "answer")
        tap.true(dropped(peer), "dropped")


@tap.test("a hold ends with the process that asked for it, whoever else has the connection")
def _(folder):
    for options in WAYS_TO_KNOW:
        with daemon(folder, "--lease", "900ms" if options or not has_pidfds() else "3600s", *options) as d:
            agent, tool = d.agent(), d.tool()
            [queue] = tool.handles()
            heir, ready = os.pipe()
            asker = os.fork()
            if asker == 0:
                held = d.tool()
                if os.fork() == 0:
                    os.close(ready)
                    os.read(heir, 1)  # for as long as the test has the other end
                    os._exit(0)
                held.ask(HOLD, Items([queue], STOP))
                held.result()
                os._exit(0)
            agent.answer()
            os.waitpid(asker, 0)
            start = time.monotonic()
            tap.same(agent.answer().list[0][1], RUN, "want")
            lasted = time.monotonic() - start
            tap.true(lasted < 30, f"{options}: {lasted:.2f} s")
            until(lambda: tool.state(queue) == RUNNING, "it runs")
            os.write(ready, b"x")
            os.close(heir)
            os.close(ready)


@tap.test("what a tool said last counts, though it ended before it was read")
def _(folder):
    if not has_peers_pidfds():
        raise tap.Skip("the kernel does not say who a dead peer was: SO_PEERPIDFD is of Linux 6.5")
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        [queue] = tool.handles()
        tool.ask(HOLD, Items([queue], STOP, lease=3600 * 10**9))
        agent.answer()
        tool.result()
        asker = os.fork()
        if asker == 0:
            last = d.tool()
            d.process.send_signal(signal.SIGSTOP)
            last.ask(RELEASE, Items([queue]))
            os._exit(0)
        os.waitpid(asker, 0)
        d.process.send_signal(signal.SIGCONT)
        tap.same(agent.answer().list[0][1], RUN, "want")


def with_pid(pid, function):
    """A child that has just this pid; the machine must be quiet enough."""
    for _ in range(200):
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
            file.write(str(pid - 1))
        child = os.fork()
        if child == 0:
            if os.getpid() == pid:
                with contextlib.suppress(BaseException):
                    function()
            os._exit(0)
        if child == pid:
            return child
        os.waitpid(child, 0)
    raise tap.Skip("pids cannot be chosen here")


@tap.test("a process that has another's number is not the other: it has neither its holds nor its connection", alone=True)
def _(folder):
    for number, options in enumerate(WAYS_TO_KNOW):
        place = f"{folder}/{number}"
        os.mkdir(place)
        waits, goes = os.pipe()
        heard, says = os.pipe()
        first = os.fork()
        if first == 0:
            os.close(goes)
            os.read(waits, 1)
            agent = Agent(f"{place}/gpreemptd.sock", 1)
            agent.answer()
            os.read(waits, 1)
            if os.fork() == 0:  # keeps the connection
                os.read(waits, 1)
            os._exit(0)
        foreign(place, first, 1)  # the driver shows it, and the one look at that is not repeated
        with daemon(place, "--lease", "60s", "--scan", "0s", *options) as d:
            tool = d.tool()
            os.write(goes, b"x")
            until(lambda: [q for q in tool.queues(first) if q["way"]], "its agent is there")
            [old] = tool.handles(first)
            tap.same(tool.hold([old]).statuses(), [0], "held")
            os.write(goes, b"x")
            os.waitpid(first, 0)

            def second():
                agent = Agent(d.path, 1)
                os.write(says, b"n" if sees_no_wants(agent, 1) else b"y")

            child = with_pid(first, second)
            tap.true(select.select([heard], [], [], 3 * SOON)[0], "nothing came from the second")
            tap.same(os.read(heard, 1), b"y", f"{options}: it is left alone")
            os.waitpid(child, 0)
            os.write(goes, b"x")
        for fd in (waits, goes, heard, says):
            os.close(fd)


@tap.test("a hold on a dead process's queue ends, whoever holds it")
def _(folder):
    for options in WAYS_TO_KNOW:
        with daemon(folder, "--lease", "300ms", "--scan", "0s", *options) as d:
            tool = d.tool()
            waits, goes = os.pipe()
            child = os.fork()
            if child == 0:
                agent = Agent(d.path, 1)
                agent.answer()
                os.read(waits, 1)
                os._exit(0)
            until(lambda: tool.handles(child), "listed")
            [queue] = tool.handles(child)
            tap.same(tool.hold([queue]).statuses(), [0], "held")
            os.write(goes, b"x")
            os.waitpid(child, 0)
            os.close(waits)
            os.close(goes)
            time.sleep(1)  # three heartbeats, without a word from anybody
            tap.same(tool.release([queue]).statuses(), [-errno.ENOENT], "it is forgotten")


@tap.test("an agent that connects anew, as after exec, takes the old one's place")
def _(folder):
    with daemon(folder) as d:
        old = d.agent()
        tool = d.tool()
        before = tool.handles()
        new = Agent(d.path, 0)
        new.add(9, ring=0x7F7777770000, queue_id=9)
        until(lambda: tool.handles() not in ([], before), "the new one's queue")
        tap.same(len(tool.handles()), 1, "queues")
        tap.true(dropped(old), "the old connection has ended")


@tap.test("a peer that will hear no more is dropped")
def _(folder):
    with daemon(folder, "--lease", "300ms") as d:
        agent, tool = d.agent(), d.tool()
        agent.socket.shutdown(socket.SHUT_RD)
        until(lambda: not tool.handles(), "its queues are gone")


@tap.test("whose queues these are counts when something is done to them: a program that became root's is root's")
def _(folder):
    os.chmod(folder, 0o755)
    sleep = f"{folder}/sleep"
    shutil.copy("/bin/sleep", sleep)
    os.chmod(sleep, 0o4755)
    with daemon(folder) as d:
        tool = d.tool()
        target = os.fork()
        if target == 0:
            os.setgroups([])
            os.setgid(ANNA)
            os.setuid(ANNA)
            agent = Agent(d.path, 1)
            os.set_inheritable(agent.socket.fileno(), True)
            agent.send(LIST)
            agent.error()
            os.execv(sleep, ["sleep", "60"])
        try:
            until(lambda: tap.read(f"/proc/{target}/comm").strip() == "sleep" and tool.handles(target), "it is root's")
            if "\t0\t" not in next(line for line in tap.read(f"/proc/{target}/status").splitlines() if line.startswith("Uid:")):
                raise tap.Skip("setuid programs have no effect in the temporary folder")
            queues = tool.handles(target)

            def owner():
                mine = d.tool()
                tap.same(mine.hold(queues).statuses(), [-errno.EPERM], "hold")
                tap.same(mine.queues(target)[0]["ring"], 0, "ring")

            AsUser(ANNA, owner).end()
        finally:
            os.kill(target, signal.SIGKILL)
            os.waitpid(target, 0)


def keep_capabilities(uid):
    """This uid in all four ids, with the right to take another."""
    call(libc.prctl(8, 1, 0, 0, 0))  # PR_SET_KEEPCAPS
    os.setresuid(uid, uid, uid)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    call(libc.capget(header, data))
    data[0], data[3] = data[1], data[4]
    call(libc.capset(header, data))


@tap.test("who held a program's queues does not hold those of the other user that it has become")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        waits, goes = os.pipe()
        heard, says = os.pipe()
        target = os.fork()
        if target == 0:
            tap.die_with_parent()
            keep_capabilities(ANNA)
            first = Agent(d.path, 1)
            first.answer()
            os.read(waits, 1)
            os.setresuid(BERT, BERT, BERT)
            first.close()
            second = Agent(d.path, 2)
            os.write(says, str(len(sees_no_wants(second, 1))).encode())
            os._exit(0)

        def owner():
            tool = d.tool()
            until(lambda: tool.handles(target), "listed")
            tap.same(tool.hold(tool.handles(target), lease=3600 * 10**9, hold=NEW_QUEUES).statuses(), [0], "held")

        AsUser(ANNA, owner).end()
        os.write(goes, b"x")
        tap.true(select.select([heard], [], [], 3 * SOON)[0], "nothing came from the target")
        tap.same(os.read(heard, 9), b"0", "stops that the other's agent hears of")
        os.waitpid(target, 0)


# Root and the group


def strangers_at(d, queues, rights=0):
    """What somebody without rights over others sees."""
    tool = d.tool()
    tap.same(tool.rights, rights, "rights")
    tap.same(tool.hold(queues).statuses(), [-errno.EPERM] * len(queues), "hold")
    tool.send(RESERVE, struct.pack("<III", 0, 50, 50))
    tap.same(tool.error()[0], -errno.EPERM, "reserve")


@tap.test("uid 0 without CAP_SYS_ADMIN in another pid namespace, as in a container, has no rights over others")
def _(folder):
    for options in WAYS_TO_KNOW:
        with daemon(folder, *options) as d:
            agent, tool = d.agent(), d.tool()
            queues = tool.handles()

            def container():
                call(libc.unshare(CLONE_NEWPID))

                def root():
                    drop_capability(CAP_SYS_ADMIN)
                    strangers_at(d, queues, IN_CONTAINER)
                    os.setgroups([12345])  # any that it likes
                    strangers_at(d, queues, IN_CONTAINER)

                Child(root).end()

            Child(container).end()
            tap.same(sees_no_wants(agent, 0.1), [], "what the agent is told")


@tap.test("a user's programs in another pid namespace are not that user's to stop, from inside nor from outside")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        heard, told = os.pipe()
        waits, goes = os.pipe()

        def agent(answers):
            one = Agent(d.path)
            os.write(told, b"x")
            for _ in range(answers):
                one.answer()
            os.read(waits, 1)

        def hold(queues, status):
            tap.same(Tool(d.path).hold(queues).statuses(), [status], "to act on it")

        def container(function, *args):
            call(libc.unshare(CLONE_NEWPID))
            AsUser(ANNA, function, *args).end()

        def strangers_and_itself(start, here, there):
            """start: makes the agent; here, there: start a tool where it is, and where it is not."""
            child = start()
            os.read(heard, 1)
            until(lambda: len(d.tool().handles()) == 1, "its queue is listed")
            queues = d.tool().handles()
            there(hold, queues, -errno.EPERM)
            here(hold, queues, 0)
            os.write(goes, b"x")
            child.end()
            until(lambda: not d.tool().handles(), "it is gone")

        def inside(*args):
            Child(container, *args).end()

        def outside(*args):
            AsUser(ANNA, *args).end()

        strangers_and_itself(lambda: AsUser(ANNA, agent, 1), outside, inside)
        strangers_and_itself(lambda: Child(container, agent, 0), lambda *_: None, outside)


@tap.test("root of a user namespace has no rights over others")
def _(folder):
    with daemon(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = tool.handles()

        def inside():
            uid = os.getuid()
            call(libc.unshare(CLONE_NEWUSER))
            tap.write("/proc/self/uid_map", f"0 {uid} 1\n")
            tap.same(os.getuid(), 0, "it is root there")
            strangers_at(d, queues, IN_CONTAINER)

        Child(inside).end()
        tap.same(sees_no_wants(agent, 0.1), [], "what the agent is told")


@tap.test("members of group gpreempt have rights over others, by either kind of membership; others have none")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder, under=with_group(folder, 23456)) as d:
        agent = d.agent()

        def member():
            tool = d.tool()
            tap.same(tool.rights, 1, "rights")
            tool.send(RESERVE, struct.pack("<III", 0, 50, 50))
            tool.result()

        AsUser(ANNA, member, groups=[5, 23456]).end()
        AsUser(23456, member).end()
        queues = d.tool().handles()
        AsUser(ANNA, strangers_at, d, queues, groups=[5, 23457]).end()
        agent.close()


@tap.test("a group counts for nothing in another pid or user namespace, and below another root folder")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder, under=with_group(folder, 23456)) as d:
        agent = d.agent()
        queues = d.tool().handles()

        def container():
            call(libc.unshare(CLONE_NEWPID))
            AsUser(ANNA, strangers_at, d, queues, IN_CONTAINER, groups=[23456]).end()

        def namespace():
            call(libc.unshare(CLONE_NEWUSER))
            strangers_at(d, queues, IN_CONTAINER)

        def below():
            os.chroot(folder)
            d.path = "/gpreemptd.sock"
            AsUser(ANNA, strangers_at, d, queues, IN_CONTAINER, groups=[23456]).end()

        Child(container).end()
        AsUser(ANNA, namespace, groups=[23456]).end()
        Child(below).end()
        agent.close()


@tap.test("a user does not resume what root has suspended")
def _(folder):
    os.chmod(folder, 0o755)
    root = os.getpid()
    with daemon(folder) as d:
        tool = d.tool()

        def owner():
            agent = Agent(d.path, 1)
            agent.answer()
            mine = d.tool()
            result = mine.release(mine.handles(os.getpid()))
            tap.same((result.statuses(), result.text), ([0], f"still held by root, process {root}"), "release")
            tap.same(sees_no_wants(agent, 0.2), [], "what its agent is told")

        child = AsUser(ANNA, owner)
        until(lambda: tool.handles(child.pid), "listed")
        tap.same(tool.hold(tool.handles(child.pid)).statuses(), [0], "root's hold")
        child.end()


@tap.test("a user resumes all that the same user left suspended")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        def owner():
            agent, first, second = Agent(d.path, 1), d.tool(), d.tool()
            until(lambda: first.handles(os.getpid()), "listed")
            queues = first.handles(os.getpid())
            first.ask(HOLD, Items(queues, STOP, lease=3600 * 10**9))
            agent.answer()
            first.result()
            first.close()
            until(lambda: second.queues()[0]["from"].endswith(f"held=user {ANNA}"), "whose it is then")
            second.ask(RELEASE, Items(queues))
            tap.same(agent.answer().list[0][1], RUN, "want")
            tap.same(second.result().statuses(), [0], "release")

        AsUser(ANNA, owner).end()


# What else


@tap.test("a debugger that fails is not started again and again at somebody's word")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder, "--ways", "update,dbg?") as d:
        def asks():
            agent = Agent(d.path, 1, ways=0)
            tool = d.tool()
            until(lambda: tool.handles(os.getpid()), "listed")
            queues = tool.handles(os.getpid())
            texts = []
            end = time.monotonic() + 1.8  # the second is due after 1 s, the third after 2 s more
            while time.monotonic() < end:
                texts.append(tool.hold(queues, way=DBG).text)
            started = [text for text in texts if "moment" not in text and "too" not in text]
            tap.true(len(texts) > 50 and len(started) == 2, f"{len(started)} of {len(texts)}: {set(texts)}")
            del agent

        AsUser(ANNA, asks).end()


@tap.test("processes without end do not make debuggers without end")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder, "--ways", "update,dbg?") as d:
        def asks():
            texts = []
            for _ in range(60):
                heard, says = os.pipe()
                child = os.fork()
                if child == 0:
                    peers = Agent(d.path, 1, ways=0), d.tool()
                    until(lambda: peers[1].handles(os.getpid()), "listed")
                    os.write(says, peers[1].hold(peers[1].handles(os.getpid()), way=DBG).text.encode() or b"?")
                    os._exit(0)
                texts.append(os.read(heard, 400).decode())
                os.waitpid(child, 0)
                os.close(heard)
                os.close(says)
            refused = [text for text in texts if "too often" in text]
            tap.true(len(refused) >= 30, f"{len(refused)} of {len(texts)}: {set(texts)}")

        AsUser(ANNA, asks).end()


@tap.test("of too many connections a user's own gpreemptd says so too, and not that they are forbidden")
def _(folder):
    os.chown(folder, ANNA, ANNA)
    with daemon(folder, user=ANNA) as d:
        def owner():
            kept = [d.tool() for _ in range(128)]
            one = Peer(d.path)
            one.send(HELLO, struct.pack("<IIII32s64s", TOOL, 0, 0, 0, b"", b""))
            status, said = one.error()
            tap.same(status, -errno.EBUSY, said)
            del kept

        AsUser(ANNA, owner).end()


@tap.test("a user who is dropped again and again does not fill the log")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        def rude(times):
            for _ in range(times):
                peer = Peer(d.path)
                peer.socket.send(b"x")
                with contextlib.suppress(Gone, OSError):
                    peer.receive()
                peer.close()

        AsUser(ANNA, rude, 500).end()
        tap.true(d.log().count("\n") < 60, f"{d.log().count(chr(10))} lines")
        time.sleep(1)
        AsUser(ANNA, rude, 1).end()
        until(lambda: "were left out" in d.log(), "it says how many were left out")


def slow_to_close(seconds):
    """A socket whose last owner waits that long to close it."""
    listener = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(listener.getsockname())
    other, _ = listener.accept()
    listener.close()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))
    one.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            one.send(bytes(65536))
    return one, other


def descriptors_of(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except FileNotFoundError:  # it has ended
        return 0


def descriptors_of_children(d):
    pid = d.process.pid
    return [descriptors_of(child) for child in tap.read(f"/proc/{pid}/task/{pid}/children").split()]


@tap.test("descriptors that somebody sends do not keep gpreemptd, though to close them takes long")
def _(folder):
    os.chmod(folder, 0o755)
    for options in WAYS_TO_KNOW:
        with daemon(folder, *options) as d:
            tool = d.tool()

            def hostile():
                others = []
                for _ in range(3):
                    one, other = slow_to_close(6)
                    others.append(other)  # it does not read, and it does not end
                    peer = Peer(d.path)
                    try:
                        socket.send_fds(peer.socket, [HEADER.pack(16, PING, 1, 0, 0)], [one.fileno()])
                        one.close()
                    except PermissionError:  # the kernel refused it for gpreemptd
                        others.append(one)
                    peer.close()
                put(folder, "sent", "")
                AsUser.wait()
                for one in others:  # to close them here would take as long
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))

            if os.path.exists(f"{folder}/sent"):
                os.unlink(f"{folder}/sent")
            os.chmod(folder, 0o777)
            d.process.send_signal(signal.SIGSTOP)  # so that the copy it gets is the last
            child = AsUser(ANNA, hostile)
            until(lambda: os.path.exists(f"{folder}/sent"), "they are sent")
            d.process.send_signal(signal.SIGCONT)
            start = time.monotonic()
            if options:  # else the kernel may have refused them
                until(lambda: 0 < max(descriptors_of_children(d), default=0) <= 2, "who closes them has nothing else open")
            for _ in range(20):
                tool.list()
                d.tool().close()
                time.sleep(0.02)
            tap.true(time.monotonic() - start < 4, f"{options}: {time.monotonic() - start:.1f} s")
            child.go()
            child.end()


@tap.test("however many processes there are, to look at them uses a small part of a processor")
def _(folder):
    for pid in range(400):
        foreign(folder, 4_000_000 + pid, 1, 2, 3, 4)
    with daemon(folder, "--scan", "10ms") as d:
        tool = d.tool()
        until(lambda: len(tool.handles()) == 1600, "all are found")
        tool.close()
        time.sleep(0.5)  # what the list cost, and the first look
        begin, used = time.monotonic(), cpu_seconds(d.process.pid)
        time.sleep(2)
        used = (cpu_seconds(d.process.pid) - used) / (time.monotonic() - begin)
        tap.true(used < 0.1, f"{100 * used:.0f} % of a processor")


@tap.test("a user's gpreemptd in a folder of another's says that nobody comes, and who comes is told why not")
def _(folder):
    os.chmod(folder, 0o1777)
    path, root = f"{folder}/own.sock", tree(folder)
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    with subprocess.Popen([DAEMON, "--config", "/dev/null", "--root", root, "--socket", path], stderr=subprocess.PIPE, text=True, **as_nobody) as process:
        try:
            version, listening, said = (process.stderr.readline() for _ in range(3))
            done = subprocess.run([tap.PROGRAM, "ps", "--socket", path], stderr=subprocess.PIPE, text=True, check=False, **as_nobody)
        finally:
            process.terminate()
    tap.true("version" in version and "listening" in listening, version + listening)
    tap.true("folder is user 0's" in said and "--socket" in said, said)
    tap.true("its folder is another user's" in done.stderr and "neither" not in done.stderr, done.stderr)


def follows(path):
    """How many connections of one user may follow events; others may ask for those that are kept."""
    tools = [Tool(path) for _ in range(9)]
    heard = [tool.send(EVENTS, struct.pack("<II", 1, 0)) and tool.receive()[0] for tool in tools]
    tap.same(heard, 8 * [EVENT] + [ERROR], "what each hears")
    tools[8].send(EVENTS, struct.pack("<II", 0, 0))
    tools[8].wait(END)
    tools.pop(0).close()
    until(lambda: tools[7].send(EVENTS, struct.pack("<II", 1, 0)) and tools[7].wait(EVENT, ERROR)[0] == EVENT, "one has gone")


@tap.test("eight of a user's connections may follow events, so that there is time for others' too")
def _(folder):
    os.chmod(folder, 0o755)
    with daemon(folder) as d:
        agent = d.agent()
        AsUser(NOBODY, follows, d.path).end()
        agent.close()


@tap.test("the run folder is made where it is missing, and no other")
def _(folder):
    for path, made in (f"{folder}/gpreempt/a.sock", True), (f"{folder}/typo/a.sock", False), (f"{folder}/typo/gpreempt/a.sock", False):
        process = subprocess.Popen([DAEMON, "--config", "/dev/null", "--root", tree(folder), "--socket", path], stderr=subprocess.PIPE, text=True)
        until(lambda: os.path.exists(path) or process.poll() is not None, "it listens, or does not")
        process.terminate()
        _, said = process.communicate(timeout=SOON)
        tap.same(process.returncode == 0, made, said)
        if not made:
            tap.true("typo" in said and "--socket" in said, said)
            tap.true(not os.path.exists(f"{folder}/typo"), "no other is made")


@tap.test("an agent whose statuses are no statuses is dropped")
def _(folder):
    with daemon(folder) as d:
        for status in (-2**31, -4096, 1, 2**31 - 1):
            agent, tool = d.agent(), d.tool()
            tool.ask(HOLD, Items(tool.handles(), STOP))
            _, serial, body = agent.wait(WANTS)
            items = Items.parse(body)
            items.list[0][2] = status
            agent.send(DONE, items.bytes(), serial)
            tap.same(tool.result().statuses(), [-errno.ESRCH], f"{status}")
            tap.true(dropped(agent), f"{status}: dropped")
            until(lambda: not d.tool().handles(), "gone")


@tap.test("an agent that gpreemptd cannot see is told so, and no other is harmed by it")
def _(folder):
    # A gpreemptd in a pid namespace of its own; we are outside.
    under = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with daemon(folder, under=under) as d:
        for role in (AGENT, TOOL):
            peer = Peer(d.path)
            with contextlib.suppress(OSError):
                peer.send(HELLO, struct.pack("<IIII32s64s", role, UPDATE, 0, 0, b"outside", b""))
            status, said = peer.error()
            tap.same(status, -errno.ESRCH, "status")
            tap.true("pid namespace" in said, said)
            tap.true(dropped(peer), "dropped")
        subprocess.run(["pkill", "-P", str(d.process.pid), "-TERM"], check=True)
        d.process.wait(SOON)


@tap.test("a hold that waits for a resume is answered when the resume fails: the queue stands still")
def _(folder):
    with daemon(folder) as d:
        agent, tool, other = d.agent(), d.tool(), d.tool()
        queues = tool.handles()
        tool.ask(HOLD, Items(queues, STOP))
        agent.answer()
        tool.result()
        tool.ask(RELEASE, Items(queues))
        _, serial, body = agent.wait(WANTS)
        asked = other.ask(HOLD, Items(queues, STOP))
        time.sleep(0.1)
        items = Items.parse(body)
        agent.refuse(errno.EBUSY)(items)
        agent.send(DONE, items.bytes(), serial)
        start = time.monotonic()
        tap.same(other.result(asked).statuses(), [0], "the hold")
        tap.true(time.monotonic() - start < 8, "before patience ends")
        tap.same(tool.queues()[0]["state"], SUSPENDED, "state")
        tap.same(sees_no_wants(agent, 1.5), [], "it is not resumed")


if os.getuid() != 0:
    tap.skip_all("only root can be another user")
tap.main(jobs=6)
