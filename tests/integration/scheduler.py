#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreemptd decides: who is stopped for whom, by hints and by what queues show, and what it says of it.

One agent has the queues of both classes: 1 is online by its priority, the others are offline.
"""

import errno
import json
import os
import select
import signal
import struct
import subprocess
import time

import tap
from gpreemptd import DAEMON, NOBODY, AsUser, daemon, foreign, fork_agent, unread, until
from protocol import (
    Agent, Items, Peer, Tool, held, ACTIVITY, CLIENTS, CLIENT_INFO, DEVICE, DEVICE_INFO, DONE, DRAIN, END, ERROR, EVENT, EVENTS, GPU, HINT, HOLD, LIST,
    PING, POLICY, QUEUE_INFO, RELEASE, RESERVE, RESULT, RUN, RUNNING, SAVE, STATS, STATS_INFO, STOP, SUSPENDED, TOOL, WANTS, text,
)

UNKNOWN, IDLE, BUSY = range(3)
OFFLINE, ONLINE = 1, 2
BEGIN, OVER = 1, 2
ALL = 0xFFFFFFFF
CLIENT = struct.Struct("<Q32sIIIIIIQIIIIQQ96s96s")
STATISTICS = struct.Struct("<10Q128s6QII32s128s")
HAPPENED = struct.Struct("<QQIIQQQIi32s32s192s")
SUSPEND, RESUME, FAILED, BACKOFF, EJECTED, LEASE, CAME, GONE_, STARVED, LOST = range(10)


def client(d, offline=1, **who):
    """Queue 1 is online, 2 and on are not."""
    agent = Agent(d.path, 0, **who)
    for number in range(1, 2 + offline):
        agent.add(number, priority=11 if number == 1 else 7)
    tool = d.tool()
    until(lambda: len(tool.handles(os.getpid())) == 1 + offline, "its queues are listed")
    return agent, tool


def activity(agent, number, what):
    agent.send(ACTIVITY, struct.pack("<QQQI", number, 0, 0, what))


def hint(peer, what, number=0, expiry=0, client=0, device=ALL, serial=0):
    return peer.send(HINT, struct.pack("<QQQII", client, number, expiry, what, device), serial)


def wants(agent):
    """The next WANTS, done: (queue, want) of each item."""
    return sorted((item[0], item[1]) for item in agent.answer().list)


def answer(peer, serial):
    """0, or what ERROR says."""
    kind, got, body = peer.wait(RESULT, ERROR)
    tap.same(got, serial, "serial")
    if kind == RESULT:
        return 0, ""
    status, said = struct.unpack_from("<i192s", body)
    return status, text(said)


def clients(tool, asking=b""):
    asked, found = tool.send(CLIENTS, asking), []
    while True:
        kind, serial, body = tool.wait(CLIENT_INFO, END)
        tap.same(serial, asked, "serial")
        if kind == END:
            return found
        names = "client name pid uid device class weight state slo queues stopped hints share hinted sampled rule place".split()
        values = CLIENT.unpack_from(body + bytes(CLIENT.size))
        found.append({name: text(value) if isinstance(value, bytes) else value for name, value in zip(names, values)})


def statistics(tool, device=0):
    tool.send(STATS, struct.pack("<I", device))
    _, _, body = tool.wait(STATS_INFO)
    names = ("preemptions cycles suspends resumes failures suspend_p50 suspend_p99 suspend_max backoff ejected reason limited "
             "resume_p50 resume_p99 resume_max hints samples device reserved policy ejection")
    values = STATISTICS.unpack_from(body + bytes(STATISTICS.size))
    return {name: text(value) if isinstance(value, bytes) else value for name, value in zip(names.split(), values)}


def set_policy(tool, name, device=ALL):
    return answer(tool, tool.send(POLICY, struct.pack("<I32s", device, name.encode())))


def event(body):
    names = "number at kind device client queue latency pid status name way text".split()
    values = HAPPENED.unpack_from(body + bytes(HAPPENED.size))
    return {name: text(value) if isinstance(value, bytes) else value for name, value in zip(names, values)}


def kept_events(tool, kinds=0):
    asked, found = tool.send(EVENTS, struct.pack("<II", 0, kinds)), []
    while True:
        kind, serial, body = tool.wait(EVENT, END)
        tap.same(serial, asked, "serial")
        if kind == END:
            return found
        found.append(event(body))


def configured(folder, words):
    return ("--config", tap.write(f"{folder}/conf", words))


def patient(folder, *options):
    """A gpreemptd whose clients may wait for ever: a test may take longer than a second."""
    return daemon(folder, *configured(folder, "[scheduler]\nmax_starve = never\n"), *options)


# Who is stopped for whom


@tap.test("while an online queue is busy offline ones are stopped, in one message, and then given back")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d, offline=3)
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(2, STOP), (3, STOP), (4, STOP)], "wants")
        tap.same(agent.hears(0.2), [], "while it is busy")
        tap.same(sorted(q["state"] for q in tool.queues()), [RUNNING] + 3 * [SUSPENDED], "states")
        activity(agent, 1, IDLE)
        tap.same(wants(agent), [(2, RUN), (3, RUN), (4, RUN)], "wants")
        until(lambda: all(q["state"] == RUNNING for q in tool.queues()), "all run")


@tap.test("a hint stops offline work before any online work is there, with no answer, and its end gives it back")
def _(folder):
    with patient(folder) as d:
        agent, _ = client(d)
        hint(agent, BEGIN, 7)
        tap.same(wants(agent), [(2, STOP)], "wants")
        hint(agent, BEGIN, 8)
        hint(agent, OVER, 7)
        tap.same(agent.hears(0.2), [], "one of two requests is open")
        hint(agent, OVER, 8)
        tap.same(wants(agent), [(2, RUN)], "wants")


@tap.test("a hint that nobody ends expires, when it says or after a second")
def _(folder):
    with patient(folder) as d:
        agent, _ = client(d)
        for expiry, least, most in ((100_000_000, 0.09, 0.9), (0, 0.9, 5)):
            begin = time.monotonic()
            hint(agent, BEGIN, 1, expiry)
            tap.same(wants(agent), [(2, STOP)], "wants")
            tap.same(wants(agent), [(2, RUN)], "wants")
            tap.true(least < time.monotonic() - begin < most, f"{time.monotonic() - begin:.2f} s")


@tap.test("a program's hints stop offline work before its first queue, and end with the connection that gave them")
def _(folder):
    with patient(folder) as d:
        other, tool = fork_agent(d, 1), d.tool()
        until(lambda: len(tool.queues()) == 1, "an offline program")
        giver = Peer(d.path).hello(TOOL, name="serve", seen=ONLINE)
        tap.same(answer(giver, hint(giver, BEGIN, 1, 60_000_000_000, serial=9)), (0, ""), "hint")
        tap.same([(c["class"], c["queues"], c["device"]) for c in clients(tool) if c["name"] == "serve"], [(ONLINE, 0, 0)], "client")
        other.hears_wants()
        other.go()
        until(lambda: [q["state"] for q in tool.queues()] == [SUSPENDED], "it is stopped")
        agent = Agent(d.path, 1, seen=ONLINE)
        until(lambda: sorted(q["state"] for q in tool.queues()) == [RUNNING, SUSPENDED], "and stays so for the first queue")
        giver.close()
        until(lambda: {q["state"] for q in tool.queues()} == {RUNNING}, "and runs")
        agent.close()
        other.end()


@tap.test("hints of who may not give them are refused, if somebody waits for the answer, and do nothing")
def _(folder):
    os.chmod(folder, 0o755)
    with patient(folder) as d:
        agent, tool = client(d)
        handle = tool.queues()[0]["client"]
        tap.same(answer(tool, hint(tool, BEGIN, client=handle + 1000, serial=1)), (-errno.ENOENT, "there is no such client"), "unknown")
        tap.same(answer(agent, hint(agent, OVER, 5, serial=2)), (-errno.EALREADY, "no such hint is open"), "not open")

        def stranger():
            other = Peer(d.path).hello(TOOL, seen=ONLINE)
            status, said = answer(other, hint(other, BEGIN, client=handle, serial=3))
            tap.true(status == -errno.EPERM and "other users' clients" in said, said)
            status, said = answer(other, hint(other, BEGIN, serial=4))
            tap.true(status == -errno.EPERM and "not online" in said, said)
            hint(other, BEGIN)
            tap.same(other.told(), [], "unanswered")

        AsUser(NOBODY, stranger).end()
        tap.same(agent.told(), [], "what the agent is told")


@tap.test("somebody with the rights gives hints for another's client, and they outlive the tool")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d)
        handle = tool.queues()[0]["client"]
        other = d.tool()
        tap.same(answer(other, hint(other, BEGIN, 3, 60_000_000_000, handle, serial=1)), (0, ""), "begin")
        other.close()
        tap.same(wants(agent), [(2, STOP)], "wants")
        tap.same(agent.hears(0.2), [], "the tool is gone")
        tap.same(answer(tool, hint(tool, OVER, 3, client=handle, serial=2)), (0, ""), "end")
        tap.same(wants(agent), [(2, RUN)], "wants")


@tap.test("more hints than a client may have open are refused, and all end with it")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d)
        for number in range(1, 65):
            tap.same(answer(agent, hint(agent, BEGIN, number, serial=number))[0], 0, "hint")
            if number == 1:
                wants(agent)
        tap.same(answer(agent, hint(agent, BEGIN, 65, serial=65))[0], -errno.EBUSY, "one more")
        agent.close()
        until(lambda: not clients(tool), "it is gone")


@tap.test("of several hints each ends at its own time, whichever came first")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d)
        for number, expiry in ((1, 60_000_000_000), (2, 100_000_000), (3, 120_000_000_000)):
            hint(agent, BEGIN, number, expiry)
        tap.same(wants(agent), [(2, STOP)], "wants")
        until(lambda: [c["hints"] for c in clients(tool) if c["class"] == ONLINE] == [2], "the second has expired")
        hint(agent, OVER, 1)
        tap.same(agent.hears(0.2), [], "one is open")
        hint(agent, OVER, 3)
        tap.same(wants(agent), [(2, RUN)], "wants")


@tap.test("a hint for longer than can be counted lasts")
def _(folder):
    with patient(folder) as d:
        agent, _ = client(d)
        hint(agent, BEGIN, 1, 2**64 - 1)
        tap.same(wants(agent), [(2, STOP)], "wants")
        tap.same(agent.hears(0.3), [], "while it is open")


@tap.test("an agent's hints end with it, although the driver still shows its queue")
def _(folder):
    foreign(folder, os.getpid(), 1)
    with patient(folder) as d:
        other, tool = fork_agent(d, 1), d.tool()
        agent = d.agent(seen=ONLINE)
        until(lambda: tool.queues(other.pid), "an offline program")
        hint(agent, BEGIN, 1, 60_000_000_000)
        other.hears_wants()
        other.go()
        until(lambda: tool.queues(other.pid)[0]["state"] == SUSPENDED, "it is stopped")
        agent.close()
        until(lambda: tool.queues(other.pid)[0]["state"] == RUNNING, "it runs")
        tap.same(len(tool.queues(os.getpid())), 1, "queues that the driver shows")
        other.end()


@tap.test("a program that gave hints and has nothing else is forgotten with its last connection")
def _(folder):
    with patient(folder, "--scan", "0s", "--lease", "60s") as d:
        tool = d.tool()

        def giver():
            one = Peer(d.path).hello(TOOL, name="serve", seen=ONLINE)
            for number in (1, 2):
                tap.same(answer(one, hint(one, BEGIN, number, serial=number)), (0, ""), "hint")
            return one

        first, second = giver(), giver()
        [before] = clients(tool)
        first.close()
        tap.same(answer(second, hint(second, BEGIN, 3, serial=3)), (0, ""), "of the other")
        tap.same([c["client"] for c in clients(tool)], [before["client"]], "one is there")
        second.close()
        until(lambda: not clients(tool), "it is not listed")
        third = giver()
        tap.true(clients(tool)[0]["client"] != before["client"], "it was not forgotten")
        third.close()


@tap.test("who a client is its agent says, not a tool of the same process that gives hints")
def _(folder):
    with patient(folder) as d:
        agent, tool = d.agent(name="agent", seen=ONLINE, later=struct.pack("<IIQ", 0, 300, 0)), d.tool()
        giver = Peer(d.path).hello(TOOL, name="giver", seen=OFFLINE)
        tap.same(answer(giver, hint(giver, BEGIN, 1, serial=1)), (0, ""), "hint")
        tap.same([(c["name"], c["class"], c["weight"]) for c in clients(tool)], [("agent", ONLINE, 300)], "client")
        agent.close()


@tap.test("an offline queue that was seen idle is stopped all the same, unless the policy asks to know")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d)
        activity(agent, 2, IDLE)
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(2, STOP)], "wants")
        activity(agent, 1, IDLE)
        tap.same(wants(agent), [(2, RUN)], "wants")
        tap.same(set_policy(tool, "fair"), (0, ""), "policy")
        activity(agent, 1, BUSY)
        tap.same(agent.told(), [], "one alone has work")


def obeys(path, seconds, flees):
    """The part of the time in which its queue runs; one that flees has another one after each 20 ms."""
    agent, number, ran = Agent(path), 1, 0
    end = seconds + (since := time.monotonic())
    while (now := time.monotonic()) < end:
        was_stopped = agent.stopped[number]
        if select.select([agent.socket], [], [], 0.005)[0]:
            kind, serial, body = agent.receive()
            if kind == WANTS:
                items = Items.parse(body)
                agent.obey(items)
                agent.send(DONE, items.bytes(), serial)
        if flees and not was_stopped and now - since > 0.02:
            agent.remove(number)
            number, since = number + 1, now
            agent.add(number)
        elif agent.stopped[number] != was_stopped:
            ran += 0 if was_stopped else now - since
            since = now
    return (ran + (0 if agent.stopped[number] else now - since)) / seconds


def share_beside(d, n, flee):
    """Of one that stays, beside so many of another user."""
    others = [AsUser(NOBODY, obeys, d.path, 4, flee) for _ in range(n)]
    tool = d.tool()
    until(lambda: len({q["pid"] for q in tool.queues()} & {other.pid for other in others}) == n, "they are there")
    share = obeys(d.path, 3, False)
    for other in others:
        other.end()
    tool.close()
    return share


@tap.test("under fair, programs that leave and come back at the end of each slice take nothing from another user", alone=True)
def _(folder):
    os.chmod(folder, 0o755)
    with patient(folder) as d:
        tap.same(set_policy(d.tool(), "fair"), (0, ""), "policy")
        due, share = share_beside(d, 1, False), share_beside(d, 4, True)
        tap.true(share > 0.85 * due, f"{share:.0%} of the time; beside one that stays, {due:.0%}")


@tap.test("what a person holds stays stopped when online work ends; what a person lets go stays while it lasts")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d, offline=2)
        queue = next(q["queue"] for q in tool.queues() if q["queue_id"] == 2)
        serial = tool.ask(HOLD, Items([queue], STOP))
        tap.same(wants(agent), [(2, STOP)], "wants")
        tap.same(tool.result(serial).statuses(), [0], "hold")
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(3, STOP)], "the other")
        result = tool.result(tool.ask(RELEASE, Items([queue])))
        tap.same((result.statuses(), result.text), ([0], "stopped for online work"), "release")
        tap.same(agent.told(), [], "wants")
        activity(agent, 1, IDLE)
        tap.same(wants(agent), [(2, RUN), (3, RUN)], "wants")


@tap.test("a queue that comes while online work is there is stopped, and one that turns online is let go")
def _(folder):
    rules = tap.write(f"{folder}/more.ini", "")
    with patient(folder, "--classes", rules) as d:
        agent, tool = client(d)
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(2, STOP)], "wants")
        agent.add(3, priority=7)
        tap.same(wants(agent), [(3, STOP)], "wants")
        agent.add(3, priority=11, stopped=1)  # the same queue, now like this
        tap.same(wants(agent), [(3, RUN)], "wants")
        tap.same(sorted(q["class"] for q in tool.queues()), [OFFLINE, ONLINE, ONLINE], "classes")


@tap.test("one that waits for long gets a slice, and the record says who")
def _(folder):
    with daemon(folder, *configured(folder, "[scheduler]\nmax_starve = 200ms\nstarve_slice = 50ms\n")) as d:
        agent, tool = client(d)
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(2, STOP)], "wants")
        tap.same(wants(agent), [(2, RUN)], "its slice")
        tap.same(wants(agent), [(2, STOP)], "is over")
        tap.same([(e["pid"], e["name"]) for e in kept_events(tool, 1 << STARVED)][:1], [(os.getpid(), "test")], "in the record")


@tap.test("a queue that moves to another device while it is stopped or held is let go when it may run")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d)
        queue = next(q["queue"] for q in tool.queues() if q["queue_id"] == 2)
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(2, STOP)], "wants")
        agent.add(2, gpu=5, stopped=1)
        tap.same(agent.told(), [], "while online work is there")
        activity(agent, 1, IDLE)
        tap.same(wants(agent), [(2, RUN)], "then")
        serial = tool.ask(HOLD, Items([queue], STOP))
        tap.same(wants(agent), [(2, STOP)], "held")
        tap.same(tool.result(serial).statuses(), [0], "hold")
        agent.add(2, gpu=GPU, stopped=1)
        tap.same((agent.told(), tool.state(queue)), ([], SUSPENDED), "while it is held")
        tool.ask(RELEASE, Items([queue]))
        tap.same(wants(agent), [(2, RUN)], "released")


@tap.test("a held queue that comes back on another device is stopped there")
def _(folder):
    with patient(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = held(agent, tool)
        agent.close()
        until(lambda: not tool.handles(), "it is gone")
        agent = Agent(d.path, 0)
        agent.add(1, gpu=5)
        tap.same(wants(agent), [(1, STOP)], "wants")
        tap.same(tool.handles(), queues, "handle")


@tap.test("a queue that somebody holds gently and online work needs at once is saved, not drained")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d)
        queue = next(q["queue"] for q in tool.queues() if q["queue_id"] == 2)
        hint(agent, BEGIN, 1)
        tap.same(wants(agent), [(2, STOP)], "wants")
        hint(agent, OVER, 1)
        _, resume, body = agent.wait(WANTS)
        serial = tool.ask(HOLD, Items([queue], STOP, kind=DRAIN, timeout=60 * 10**9))
        tool.queues()  # it was taken
        activity(agent, 1, BUSY)
        agent.send(DONE, body, resume)
        items = agent.answer()
        tap.same((items.list[0][:2], items.kind), ([2, STOP], SAVE), "what the agent is asked for")
        tap.same(tool.result(serial).statuses(), [0], "hold")


@tap.test("SDMA queues stop with the others, unless the configuration says no; a person may stop them all the same")
def _(folder):
    for word, stopped in (("yes", [(2, STOP), (3, STOP)]), ("no", [(2, STOP)])):
        with daemon(folder, *configured(folder, f"[scheduler]\nsdma = {word}\nmax_starve = never\n")) as d:
            agent, tool = client(d)
            agent.add(3, kind=2)
            until(lambda: len(tool.handles()) == 3, "listed")
            activity(agent, 1, BUSY)
            tap.same(wants(agent), stopped, word)
            if word == "no":
                sdma = next(q["queue"] for q in tool.queues() if q["queue_id"] == 3)
                serial = tool.ask(HOLD, Items([sdma], STOP))
                tap.same(wants(agent), [(3, STOP)], "held")
                tap.same(tool.result(serial).statuses(), [0], "hold")


# Policies


@tap.test("a policy is changed while it works: fifo stops nobody, priority does again")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d)
        tap.same(set_policy(tool, "fifo", 0), (0, ""), "fifo")
        tap.same(statistics(tool)["policy"], "fifo", "policy")
        activity(agent, 1, BUSY)
        tap.same(agent.told(), [], "fifo")
        tap.same(set_policy(tool, "priority"), (0, ""), "priority")
        tap.same(wants(agent), [(2, STOP)], "wants")
        tap.same(set_policy(tool, "fifo"), (0, ""), "fifo again")
        tap.same(wants(agent), [(2, RUN)], "wants")


@tap.test("a policy that is not there, a device that is not there, a user who may not: each says so")
def _(folder):
    os.chmod(folder, 0o755)
    with patient(folder) as d:
        tool = d.tool()
        status, said = set_policy(tool, "best")
        tap.true(status == -errno.ENOENT and "fifo priority fair deadline" in said, said)
        tap.same(set_policy(tool, "fifo", 9), (-errno.ENODEV, "no such device"), "device")
        tool.send(STATS, struct.pack("<I", 9))
        tap.same(tool.error(), (-errno.ENODEV, "no such device"), "statistics")

        def stranger():
            status, said = set_policy(d.tool(), "fifo")
            tap.true(status == -errno.EPERM and "group gpreempt" in said, said)

        AsUser(NOBODY, stranger).end()
        tap.same(statistics(tool)["policy"], "priority", "policy")


@tap.test("by deadline a request with time to spare costs nobody a stop, once it is known how long one takes")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d, later=struct.pack("<IIQ", 0, 0, 600_000_000_000))
        tap.same(set_policy(tool, "deadline"), (0, ""), "policy")
        hint(agent, BEGIN, 1)
        tap.same(wants(agent), [(2, STOP)], "the first, of which nobody knows")
        hint(agent, OVER, 1)
        tap.same(wants(agent), [(2, RUN)], "wants")
        hint(agent, BEGIN, 2)
        tap.same(agent.hears(0.3), [], "the second has ten minutes")


@tap.test("a policy in the configuration is the device's, also after SIGHUP, and one set by hand stays until the file changes")
def _(folder):
    path = tap.write(f"{folder}/conf", "[device 0]\npolicy = fair\n")
    with daemon(folder, "--config", path) as d:
        tool = d.tool()
        tap.same(statistics(tool)["policy"], "fair", "of the device")
        set_policy(tool, "deadline")
        d.process.send_signal(signal.SIGHUP)
        until(lambda: "read again" in d.log(), "read again")
        tap.same(statistics(tool)["policy"], "deadline", "by hand")
        tap.write(path, "[scheduler]\npolicy = fifo\n")
        d.process.send_signal(signal.SIGHUP)
        until(lambda: statistics(tool)["policy"] == "fifo", "the new one")


LOOPS = """
#include <gpreempt/policy.h>
#include <time.h>
static uint64_t decide(struct gp_policy *p, uint64_t now)
{
	struct timespec t, end;
	(void)p;
	(void)now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	end.tv_sec += %d;
	end.tv_nsec += %d;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec < end.tv_sec || (t.tv_sec == end.tv_sec && t.tv_nsec < end.tv_nsec));
	return GP_NEVER;
}
const struct gp_policy_ops gp_policy = { .size = sizeof(gp_policy), .abi = GP_POLICY_ABI, .name = "slow", .decide = decide };
"""


def slow_policy(folder, seconds, nanoseconds):
    """Options for a gpreemptd that has it."""
    source = tap.write(f"{folder}/slow.c", LOOPS % (seconds, nanoseconds))
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{tap.SOURCE}/include", "-o", f"{folder}/slow.so", source], check=True)
    return configured(folder, f"[scheduler]\nload = {folder}/slow.so\nmax_starve = never\n")


@tap.test("a policy from a file that returns late is ejected, and fifo goes on")
def _(folder):
    with daemon(folder, *slow_policy(folder, 0, 50_000_000)) as d:
        agent, tool = client(d)
        tap.same(set_policy(tool, "slow"), (0, ""), "policy")
        until(lambda: statistics(tool)["policy"] == "fifo", "ejected")
        tap.same(statistics(tool)["ejection"], "policy slow ejected: returned late", "why")
        tap.true("ejected: returned late; fifo goes on" in d.log(), d.log())
        tap.same([e["text"] for e in kept_events(tool, 1 << EJECTED)], ["policy slow ejected: returned late"], "in the record")
        tap.same(agent.hears(0.1), [], "nobody is stopped")


@tap.test("what a policy had stopped goes on at once when it is ejected")
def _(folder):
    with daemon(folder, *slow_policy(folder, 0, 50_000_000), "--scan", "0s", "--lease", "60s") as d:
        agent, tool = client(d)
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(2, STOP)], "wants")
        tool.send(POLICY, struct.pack("<I32s", ALL, b"slow"))
        tap.same(wants(agent), [(2, RUN)], "with no other message")


@tap.test("a policy that never returns ends gpreemptd, and the next one begins with fifo")
def _(folder):
    options = slow_policy(folder, 1000, 0)
    with daemon(folder, *options) as d:
        agent, tool = client(d)
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(2, STOP)], "wants")
        tool.send(POLICY, struct.pack("<I32s", ALL, b"slow"))
        tap.same(d.process.wait(60), 70, "exit status")
        d.process.was_killed = True
        d.process.returncode = -signal.SIGKILL
        tap.true(d.log().endswith("a policy does not return; it ends, and the next one begins with fifo\n"), d.log())
    for policy in ("fifo", "priority"):
        with daemon(folder, *options) as d:
            tap.same(statistics(d.tool())["policy"], policy, "of the next, and the one after")


@tap.test("a policy that never returns ends gpreemptd also where nobody reads what it says")
def _(folder):
    with unread() as stderr, daemon(folder, *slow_policy(folder, 1000, 0), **stderr) as d:
        agent, tool = client(d)
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(2, STOP)], "wants")
        tool.send(POLICY, struct.pack("<I32s", ALL, b"slow"))
        tap.same(d.process.wait(60), 70, "exit status")
        d.process.was_killed = True
        d.process.returncode = -signal.SIGKILL


@tap.test("a policy's file that others can write, or that is none, is not loaded")
def _(folder):
    options = slow_policy(folder, 0, 0)
    os.chmod(f"{folder}/slow.so", 0o666)
    words = [DAEMON, "--check", *options]
    done = subprocess.run(words, capture_output=True, text=True)
    tap.true(done.returncode == 1 and "or its folder can be written by others; chown them to root and chmod go-w" in done.stderr, done.stderr)
    os.chmod(f"{folder}/slow.so", 0o644)
    tap.same(subprocess.run(words, capture_output=True).returncode, 0, "now")
    for what, why in (("slow.so", "write the whole path"), (f"{folder}/none.so", "No such file"), (f"{folder}/conf", "")):
        done = subprocess.run([DAEMON, "--check", *configured(folder, f"[scheduler]\nload = {what}\n")], capture_output=True, text=True)
        tap.true(done.returncode == 1 and why in done.stderr, done.stderr)


# What it says of it


@tap.test("clients are listed with class and why, weight, SLO, state and share")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d, name="both", later=struct.pack("<IIQ", 0, 300, 20_000_000))
        activity(agent, 1, BUSY)
        wants(agent)
        until(lambda: tool.queues()[1]["state"] == SUSPENDED, "stopped")
        online, offline = sorted(clients(tool), key=lambda c: -c["class"])
        tap.same((online["class"], online["state"], online["sampled"], online["hinted"]), (ONLINE, 1, 1, 0), "online")
        tap.same((offline["class"], offline["state"], offline["queues"], offline["stopped"]), (OFFLINE, 2, 1, 1), "offline")
        for one in (online, offline):
            tap.same((one["name"], one["pid"], one["uid"], one["device"]), ("both", os.getpid(), os.getuid(), 0), "who")
            tap.same((one["weight"], one["slo"]), (300, 20_000_000), "weight, SLO")
        tap.true("priority 11" in online["rule"] and "priority 7" in offline["rule"], f"{online['rule']}, {offline['rule']}")
        time.sleep(1)
        tap.true(clients(tool)[0]["share"] > 0, "share")


@tap.test("a client that says no weight has 100, and an agent without a queue is a client, as long as it is there")
def _(folder):
    with patient(folder, "--lease", "150ms", "--scan", "50ms") as d:
        agent, tool = Agent(d.path, 0, name="early"), d.tool()
        agent.send(PING)
        for _ in range(4):
            agent.wait(PING)
        tap.same([(c["name"], c["queues"], c["weight"]) for c in clients(tool)], [("early", 0, 100)], "before its first queue")
        agent.add(1)
        until(lambda: tool.queues(), "it has a queue")
        tap.same([(c["name"], c["queues"], c["weight"]) for c in clients(tool)], [("early", 1, 100)], "with it")
        agent.close()


@tap.test("what was done is counted, by device, with latencies, hints and looks apart")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d, offline=2)
        for number in range(3):
            hint(agent, BEGIN, number + 1)
            wants(agent)
            hint(agent, OVER, number + 1)
            wants(agent)
        activity(agent, 1, BUSY)
        wants(agent)
        s = statistics(tool)
        tap.same((s["preemptions"], s["suspends"], s["resumes"], s["failures"]), (4, 8, 6, 0), "counts")
        tap.same((s["hints"], s["samples"]), (3, 1), "hints, samples")
        tap.true(0 < s["suspend_p50"] <= s["suspend_p99"] <= s["suspend_max"], "latencies")


@tap.test("a client whose stops fail is left alone for longer each time, and the reason is shown")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d)
        activity(agent, 1, BUSY)
        for _ in range(5):
            agent.answer(agent.refuse(errno.EIO))
        agent.answer()
        until(lambda: statistics(tool)["suspends"] == 1, "stopped at last")
        s = statistics(tool)
        tap.same(s["failures"], 5, "failures")
        tap.true("Input/output error" in s["reason"], s["reason"])
        failed = kept_events(tool, 1 << FAILED)
        tap.same([(e["status"], e["pid"], e["way"]) for e in failed], 5 * [(-errno.EIO, os.getpid(), "update")], "in the record")
        tap.same(len(kept_events(tool, 1 << BACKOFF)), 5, "back-offs in the record")


@tap.test("what happens is told as it happens, and what happened before")
def _(folder):
    with patient(folder) as d:
        follower = d.tool()
        follower.send(EVENTS, struct.pack("<II", 1, 0))
        agent, tool = client(d)
        hint(agent, BEGIN, 1)
        wants(agent)
        hint(agent, OVER, 1)
        wants(agent)
        until(lambda: all(q["state"] == RUNNING for q in tool.queues()), "it runs")
        agent.close()
        seen = [event(follower.wait(EVENT)[2]) for _ in range(4)]
        tap.same([e["kind"] for e in seen], [CAME, SUSPEND, RESUME, GONE_], "kinds")
        tap.same({e["pid"] for e in seen}, {os.getpid()}, "pid")
        tap.true(abs(seen[0]["at"] / 1e9 - time.time()) < 60, "time")
        tap.true(seen[1]["latency"] > 0 and seen[1]["way"] == "update" and seen[1]["device"] == 0, f"{seen[1]}")
        tap.same(kept_events(tool), seen, "kept")
        newcomer = d.tool()
        newcomer.send(EVENTS, struct.pack("<III", 1, 0, 1))
        d.agent(name="later").close()
        tap.same([event(newcomer.wait(EVENT)[2])["kind"] for _ in range(2)], [CAME, GONE_], "those to come alone")
        seen += [event(follower.wait(EVENT)[2]) for _ in range(2)]
        follower.send(EVENTS, struct.pack("<II", 1, 0))
        tap.same(follower.error(), (-errno.EBUSY, "it is told of events already"), "twice")


CHANGES_KEPT, FLOOD = 2048, 80


def unlimited(folder):
    """Nor is any stop put off."""
    return daemon(folder, *configured(folder, "[scheduler]\nmax_starve = never\nmax_stops_per_s = 1000000\n"))


def flood(agent, tool, queues=32):
    """Stops and resumes, FLOOD of each queue: more than are kept."""
    before = statistics(tool)["resumes"]
    for number in range(FLOOD):
        hint(agent, BEGIN, number + 1)
        wants(agent)
        hint(agent, OVER, number + 1)
        wants(agent)
    until(lambda: statistics(tool)["resumes"] == before + FLOOD * queues, "all is done")
    return 2 * FLOOD * queues


@tap.test("thousands of stops and resumes drive no rare event out of the record, and it says how many it does not keep")
def _(folder):
    with unlimited(folder) as d:
        agent, tool = client(d, offline=32)
        lost = flood(agent, tool) - CHANGES_KEPT
        kept = kept_events(tool)
        tap.same([e["kind"] for e in kept[:2]], [CAME, LOST], "first")
        tap.same(kept[1]["text"], f"{lost} earlier events are not kept: suspend, resume", "of those")
        tap.same({e["kind"] for e in kept[2:]}, {SUSPEND, RESUME}, "after it")
        tap.same([e["number"] for e in kept[1:]], list(range(kept[1]["number"], kept[1]["number"] + CHANGES_KEPT + 1)), "numbers, in order")
        tap.true(kept[0]["at"] < kept[1]["at"] <= kept[2]["at"], "times, in order")
        [only] = kept_events(tool, 1 << CAME)
        tap.same(only, kept[0], "without what was not asked for, nothing is missing")
        resumes = kept_events(tool, 1 << RESUME)
        tap.same(resumes[0]["text"], f"{FLOOD * 32 - len(resumes) + 1} earlier events are not kept: resume", "of one kind")
        [loss] = kept_events(tool, 1 << LOST)
        tap.same(loss, kept[1], "that some are lost, alone")


def printed(d, *words):
    done = tap.run("events", "--socket", d.path, *words)
    tap.same(done.returncode, 0, done.stderr)
    return done


@tap.test("gpreempt events says how many earlier ones are not kept, if they were asked for")
def _(folder):
    with unlimited(folder) as d:
        agent, tool = client(d, offline=32)
        said = f"{flood(agent, tool) - CHANGES_KEPT} earlier events are not kept: suspend, resume"
        for words in ((), ("--since", "all"), ("--since", "3600s"), ("--kind", "suspend,resume")):
            done = printed(d, *words)
            tap.same((done.stderr, "lost" in done.stdout), (f"gpreempt: {said}\n", False), f"{words}")
        for words in (("--since", "0s"), ("--kind", "client"), ("--kind", "client,lost")):
            tap.same(printed(d, *words).stderr, "", f"{words}")
        tap.same(printed(d, "--kind", "lost").stderr, f"gpreempt: {said}\n", "of those alone")
        done = printed(d, "--json")
        losses = [line for line in map(json.loads, done.stdout.splitlines()) if line["event"] == "lost"]
        tap.same((done.stderr, [line["text"] for line in losses]), ("", [said]), "JSON")


@tap.test("who reads events slowly misses some, is told how many, and costs gpreemptd nothing")
def _(folder):
    with unlimited(folder) as d:
        follower, (agent, tool) = d.tool(), client(d, offline=32)
        follower.send(EVENTS, struct.pack("<II", 1, 0))
        number = 1  # that the agent came
        seen, lost = [], []
        for times in (1, 2):
            number += flood(agent, tool) + flood(agent, tool)
            while not seen or seen[-1]["number"] < number:
                seen.append(event(follower.wait(EVENT)[2]))
            lost = [int(e["text"].split()[0]) for e in seen if e["kind"] == LOST]
            tap.true(len(lost) >= times, f"{len(seen)} events")
            tap.same(sum(lost) + len(seen) - len(lost), number, "told of, or told that they were lost")
        tap.true(len(kept_events(tool)) > CHANGES_KEPT, "kept")


@tap.test("who asks for its own process alone hears of no other, and of none if it is no client")
def _(folder):
    with patient(folder) as d:
        other = fork_agent(d, 1)
        agent, tool = client(d)
        until(lambda: len(clients(tool)) == 3, "both, one of them online and offline")
        own, everybody = struct.pack("<I", 1), struct.pack("<I", 0)
        for asks in (agent, tool):
            tap.same([c["pid"] for c in clients(asks, own)], 2 * [os.getpid()], "its own")
            tap.same({c["pid"] for c in clients(asks, everybody)}, {os.getpid(), other.pid}, "all")
        agent.close()
        until(lambda: clients(tool, own) == [], "none")
        other.end()


@tap.test("who asked is answered before those who follow the record are told, and all are told in the end")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d, offline=32)
        others = [d.tool() for _ in range(10)]
        for follower in (tool, *others):
            follower.send(EVENTS, struct.pack("<II", 1, 1 << SUSPEND))
        asked = tool.ask(HOLD, Items(tool.handles(), STOP))
        tap.same(len(wants(agent)), 33, "stopped")
        tap.same([tool.wait(RESULT, EVENT)[:2]], [(RESULT, asked)], "first")
        for follower in (tool, *others):
            numbers = [event(follower.wait(EVENT)[2])["number"] for _ in range(33)]
            tap.same(numbers, list(range(numbers[0], numbers[0] + 33)), "told in order")


@tap.test("a hold that ends with its lease is in the record, and one that is released is not")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d)
        queue = next(q["queue"] for q in tool.queues() if q["queue_id"] == 2)
        held(agent, tool, [queue], lease=100_000_000)
        tap.same(wants(agent), [(2, RUN)], "its lease is over")
        until(lambda: [e["queue"] for e in kept_events(tool, 1 << LEASE)] == [queue], "in the record")
        held(agent, tool, [queue])
        serial = tool.ask(RELEASE, Items([queue]))
        wants(agent)
        tool.result(serial)
        tap.same(len(kept_events(tool, 1 << LEASE)), 1, "released")


@tap.test("stops that are too many are put off, until when is shown while they are, and why")
def _(folder):
    with daemon(folder, *configured(folder, "[scheduler]\nmax_starve = never\nmax_stops_per_s = 1\n")) as d:
        agent, tool = client(d)
        tap.same(statistics(tool)["backoff"], 0, "before")
        for number in range(2):
            hint(agent, BEGIN, number + 1, 60_000_000_000)
            if number == 0:
                wants(agent)
                hint(agent, OVER, number + 1)
                wants(agent)
        until(lambda: statistics(tool)["limited"], "put off")
        asked, s = time.monotonic_ns(), statistics(tool)
        if s["suspends"] == 1:  # on a busy machine the second may have passed
            tap.true(asked < s["backoff"] < asked + 10**9, f"{s['backoff'] - asked} ns")
        tap.true("capped at 1 cycles per second" in s["reason"], s["reason"])
        tap.same(wants(agent), [(2, STOP)], "a second later")
        until(lambda: statistics(tool)["suspends"] == 2, "it is done")
        tap.same(statistics(tool)["backoff"], 0, "afterwards")


@tap.test("a hold whose stop fails does not keep the scheduler from the client")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d)
        queue = next(q["queue"] for q in tool.queues() if q["queue_id"] == 2)
        for _ in range(5):
            serial = tool.ask(HOLD, Items([queue], STOP))
            agent.answer(agent.refuse(errno.EIO))
            tap.same(tool.result(serial).statuses(), [-errno.EIO], "hold")
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(2, STOP)], "wants")
        tap.same((statistics(tool)["limited"], len(kept_events(tool, 1 << BACKOFF))), (0, 0), "put off")


# Simulated devices


def simulated(path, gpu, name=b"mi300x", backend=b"sim", queues=1, key=(0, 0)):
    agent = Agent(path, 0, name="simulated")
    agent.send(DEVICE, DEVICE_INFO.pack(name, backend, b"", gpu, 4, 304, 24) + struct.pack("<III20sQQ", 0, 0, 0, b"", *key))
    for number in range(queues):
        agent.add(number + 1, gpu=gpu)
    return agent


@tap.test("a simulated device is there as long as an agent of it is, with its own number and policy")
def _(folder):
    with patient(folder) as d:
        tool = d.tool()
        agent = simulated(d.path, 0x80000010)
        until(lambda: len(tool.queues()) == 1, "listed")
        devices, queues = tool.list()
        tap.same([(x["device"], x["backend"], x["name"], x["cus"]) for x in devices][1:], [(1, "sim", "mi300x", 304)], "devices")
        tap.same(queues[0]["device"], 1, "of its queue")
        tap.same(set_policy(tool, "fifo", 1), (0, ""), "policy")
        tap.same((statistics(tool, 0)["policy"], statistics(tool, 1)["policy"]), ("priority", "fifo"), "policies")
        agent.close()
        until(lambda: len(tool.list()[0]) == 1, "gone")
        agent = simulated(d.path, 0x80000020)
        until(lambda: len(tool.list()[0]) == 2, "another")
        tap.same(statistics(tool, 1)["policy"], "priority", "a new one has nothing of the old")


@tap.test("who knows the key of a simulated device is on it, whatever user; who knows its number alone, or another key, is on another")
def _(folder):
    os.chmod(folder, 0o755)
    key, gpu = (2**64 - 1, 7), 0x80000010

    def comes(key, device, name):
        agent, tool = simulated(f"{folder}/gpreemptd.sock", gpu, name=b"renamed", key=key), Tool(f"{folder}/gpreemptd.sock")
        until(lambda: tool.queues(os.getpid()), "listed")
        tap.same(tool.queues(os.getpid())[0]["device"], device, f"key {key}")
        tap.same(next(x["name"] for x in tool.list()[0] if x["device"] == device), name)
        agent.close()

    with patient(folder) as d:
        agent, tool = simulated(d.path, gpu, key=key), d.tool()
        until(lambda: len(tool.queues()) == 1, "listed")
        for told, device, name in ((key, 1, "mi300x"), ((0, 0), 2, "renamed"), ((2**64 - 1, 8), 2, "renamed"), ((7, 2**64 - 1), 2, "renamed")):
            AsUser(NOBODY, comes, told, device, name).end()
            until(lambda: len(tool.list()[0]) == 2, "it has gone")
        tap.true(struct.pack("<QQ", *key) not in b"".join(devices_told(tool)), "the key is told to nobody")


def devices_told(tool):
    tool.send(LIST)
    while (message := tool.wait(DEVICE, QUEUE_INFO, END))[0] != END:
        yield message[2]


@tap.test("nothing can be reserved on a simulated device, and nobody says that it can")
def _(folder):
    with patient(folder) as d:
        agent, tool = simulated(d.path, 0x80000010), d.tool()
        until(lambda: len(tool.queues()) == 1, "listed")
        tap.same(tool.list()[0][1]["caps"] & 128, 0, "reserve among what it can")
        tool.send(RESERVE, struct.pack("<III", 1, 100, 0))
        status, said = tool.error()
        tap.true(status == -errno.EOPNOTSUPP and "simulated" in said, said)
        agent.close()


@tap.test("an agent tells of simulated devices alone, and of one")
def _(folder):
    with patient(folder) as d:
        agent = simulated(d.path, 7, backend=b"kfd")
        tap.same(agent.error(), (-errno.EINVAL, "only simulated devices are told of"), "a real one")
        agent.send(DEVICE, DEVICE_INFO.pack(b"one", b"sim", b"", 8, 4, 304, 24))
        agent.send(DEVICE, DEVICE_INFO.pack(b"two", b"sim", b"", 9, 4, 304, 24))
        tap.same(agent.error(), (-errno.EEXIST, "it has told of its device"), "a second one")


class SimulatedElsewhere:
    """An agent of a simulated device, in a process of its own; status is 0, or what ERROR says."""

    def __init__(self, d, gpu, uid=0):
        said, write = os.pipe()
        self.child = AsUser(uid, self.stay, d.path, gpu, write)
        os.close(write)
        self.status = int(os.read(said, 16) or b"1")
        os.close(said)

    @staticmethod
    def stay(path, gpu, write):
        agent = simulated(path, gpu, queues=0)
        asked = agent.send(DEVICE, DEVICE_INFO.pack(b"", b"sim", b"", gpu, 4, 304, 24))
        kind, serial, body = agent.wait(ERROR)  # to one of the two: an agent tells of one device
        os.write(write, b"0" if serial == asked else b"%d" % struct.unpack_from("<i", body))
        AsUser.wait()

    def end(self):
        self.child.go()
        self.child.end()


@tap.test("a simulated device that comes back is one more: of no more than eight")
def _(folder):
    os.chmod(folder, 0o755)
    with patient(folder) as d:
        tool = d.tool()
        # A number between the user's own: the last of these is remembered when that one is free again.
        there = [SimulatedElsewhere(d, gpu) for gpu in range(1, 8)]
        other, last = SimulatedElsewhere(d, 1, uid=NOBODY), SimulatedElsewhere(d, 8)
        tap.same([one.status for one in (*there, other, last)], 9 * [0], "eight, and somebody else's")
        last.end()
        other.end()
        until(lambda: len(tool.list()[0]) == 8, "two are gone")
        there.append(SimulatedElsewhere(d, 9))
        again = SimulatedElsewhere(d, 8)
        tap.same((there[-1].status, again.status), (0, -errno.ENOSPC), "the eighth, and the ninth")
        for one in (*there, again):
            one.end()


@tap.test("queues that the driver does not show are stopped, and nobody waits for the cycles of their stops")
def _(folder):
    foreign(folder, os.getpid(), 1, 2)
    with daemon(folder, *configured(folder, "[scheduler]\nmax_starve = never\nmax_stops_per_s = 1\n")) as d:
        inventor = fork_agent(d, 5)
        agent, tool = client(d)
        until(lambda: len(tool.handles(inventor.pid)) == 5, "its queues are listed")
        hint(agent, BEGIN, 1)
        tap.same(wants(agent), [(2, STOP)], "what is shown")
        inventor.hears_wants()
        inventor.go()
        until(lambda: statistics(tool)["suspends"] == 6, "all are stopped")
        tap.same(statistics(tool)["limited"], 0, "stops that were put off")
        inventor.end()


def tells(path, gpu):
    agent = simulated(path, gpu, queues=0)
    AsUser.wait()
    agent.close()


def refused(path, gpu):
    tap.same(simulated(path, gpu, queues=0).error(), (-errno.ENOSPC, "too many simulated devices"), "told of")


@tap.test("a user tells of no more than eight simulated devices, all users of no more than sixteen, and root of eight besides")
def _(folder):
    os.chmod(folder, 0o755)
    with patient(folder) as d:
        tool, children = d.tool(), []

        def told(uid, number):
            children.append(AsUser(uid, tells, d.path, number))
            until(lambda: len(tool.list()[0]) == 1 + len(children), "there is one more")

        for uid in (20001, 20002):
            for number in range(1, 9):
                told(uid, number)
            AsUser(uid, refused, d.path, 9).end()
        tap.same([one["device"] for one in tool.list()[0]], list(range(17)), "numbers")
        AsUser(20003, refused, d.path, 1).end()
        of_root = [SimulatedElsewhere(d, number) for number in range(1, 10)]
        tap.same([one.status for one in of_root], 8 * [0] + [-errno.ENOSPC], "root's")
        for one in of_root:
            one.end()
        until(lambda: len(tool.list()[0]) == 17, "root's are gone")
        one = children.pop()
        one.go()
        one.end()
        until(lambda: len(tool.list()[0]) == 16, "one goes")
        told(20003, 1)
        for one in children:
            one.go()
            one.end()


@tap.test("a queue that the driver shows is on the real device, whatever its agent says that its GPU is")
def _(folder):
    foreign(folder, os.getpid(), 1)
    with patient(folder) as d:
        agent, tool = simulated(d.path, GPU, queues=2), d.tool()
        until(lambda: len(tool.queues()) == 2, "listed")
        tap.same([(q["queue_id"], q["device"]) for q in tool.queues()], [(1, 0), (2, 1)], "devices")
        agent.close()


# Agents that lie, or go at the wrong time


@tap.test("a queue that a reservation was about to stop when its agent went runs when the reservation is over")
def _(folder):
    foreign(folder, os.getpid(), 1)
    with patient(folder) as d:
        agent, tool = d.agent(1), d.tool()
        tool.reserve(0, 50, 0)
        agent.wait(WANTS)
        agent.close()
        until(lambda: not tool.queues()[0]["way"], "it is gone")
        agent = d.agent(1)
        tap.same(wants(agent), [(1, STOP)], "back")
        tool.reserve(0, 0, 0)
        tap.same(wants(agent), [(1, RUN)], "nothing is reserved any more")


def last_words(d, agent, status):
    """The agent answers what it is asked for, and is gone before anybody has read that. Both may be read at once, or one by one."""
    _, serial, body = agent.wait(WANTS)
    items = Items.parse(body)
    items.list[0][2] = -status
    d.process.send_signal(signal.SIGSTOP)
    agent.send(DONE, items.bytes(), serial)
    agent.close()
    d.process.send_signal(signal.SIGCONT)


@tap.test("a stop that was done as its agent went is undone with it, and done again when the agent is back")
def _(folder):
    foreign(folder, os.getpid(), 1)
    with patient(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = tool.handles()
        serial = tool.ask(HOLD, Items(queues, STOP))
        last_words(d, agent, 0)
        [status] = tool.result(serial).statuses()
        until(lambda: tool.state(queues[0]) == RUNNING, "it runs")
        kinds = [e["kind"] for e in kept_events(tool)]
        tap.true((status, kinds) in ((-errno.ESRCH, [CAME, GONE_, FAILED]), (0, [CAME, SUSPEND, GONE_, LEASE])), f"{status}, in the record {kinds}")
        again = Agent(d.path, 1)
        tap.same(again.answer().list[0][1], STOP, "want")
        until(lambda: tool.state(queues[0]) == SUSPENDED, "it is stopped again")


@tap.test("a resume that failed as its agent went is done: the driver has resumed what was the agent's")
def _(folder):
    foreign(folder, os.getpid(), 1)
    with patient(folder) as d:
        agent, tool = d.agent(), d.tool()
        queues = held(agent, tool)
        serial = tool.ask(RELEASE, Items(queues))
        last_words(d, agent, errno.EBUSY)
        [status] = tool.result(serial).statuses()
        until(lambda: tool.state(queues[0]) == RUNNING, "it runs")
        tap.true((status, d.log().count("cannot resume")) in ((0, 0), (-errno.EBUSY, 1)), f"{status}; {d.log()}")


@tap.test("an agent that says it is still at it has ended, and failed")
def _(folder):
    with patient(folder) as d:
        agent, tool = client(d)
        activity(agent, 1, BUSY)
        wants(agent)
        activity(agent, 1, IDLE)
        agent.answer(agent.refuse(errno.EINPROGRESS))
        tap.same(wants(agent), [(2, RUN)], "tried again")
        until(lambda: all(q["state"] == RUNNING for q in tool.queues()), "it runs")


@tap.test("a queue is on the device that the driver shows, whatever its agent says")
def _(folder):
    foreign(folder, os.getpid(), 2)
    with patient(folder) as d:
        agent = Agent(d.path, 0)
        agent.add(1, priority=11)
        agent.add(2, gpu=5)
        tool = d.tool()
        until(lambda: len(tool.queues()) == 2, "listed")
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(2, STOP)], "wants")


# The end, and a new beginning


@tap.test("SIGTERM resumes what is stopped for online work, and nothing is stopped any more")
def _(folder):
    with patient(folder) as d:
        agent, _ = client(d)
        activity(agent, 1, BUSY)
        tap.same(wants(agent), [(2, STOP)], "wants")
        d.process.terminate()
        tap.same(wants(agent), [(2, RUN)], "wants")
        tap.same(d.process.wait(10), 0, "exit status")


@tap.test("a new gpreemptd takes the clients over, and stops what is to be stopped")
def _(folder):
    for _ in range(2):
        with patient(folder) as d:
            agent, _ = client(d)
            activity(agent, 1, BUSY)
            tap.same(wants(agent), [(2, STOP)], "wants")
            d.process.kill()
            d.process.wait()
            agent.close()


tap.main(jobs=8)
