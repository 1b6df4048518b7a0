#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What gpreemptd makes of a drain: it ends in time, is saved, or is left running, and the result says which."""

import contextlib
import errno
import os
import subprocess
import time

import tap
from gpreemptd import DAEMON, daemon
from protocol import (
    Items, DONE, DRAIN, HOLD, PRIVATE, RELEASE, RUN, RUNNING, SAVE, SOON, STOP, STRICT, SUSPENDED, UPDATE, WANTS,
)

MS = 1_000_000


@contextlib.contextmanager
def served(folder, *options, **who):
    """gpreemptd, an agent that it knows, and a tool. The agent goes first, so that nobody waits for it to resume."""
    with daemon(folder, *options) as d:
        agent = d.agent(**who)
        yield d, agent, d.tool()
        agent.close()


def refused(agent, status):
    """The next WANTS, answered with that error; its type and timeout."""
    items = agent.answer(agent.refuse(status))
    return items.kind, items.timeout


def drain_that_fails(tool, agent, status, **how):
    """The request's serial; the agent's queue was asked to drain, and did not."""
    serial = tool.ask(HOLD, Items(tool.handles(os.getpid()), STOP, kind=DRAIN, timeout=50 * MS, **how))
    tap.same(refused(agent, status), (DRAIN, 50 * MS), "what the agent is asked for")
    return serial


@tap.test("a queue that does not run empty in time is saved, in the same way, and the result says so once")
def _(folder):
    for way, name in ((UPDATE, "update"), (PRIVATE, "private,update")):
        with served(folder, "--ways", name, ways=UPDATE | PRIVATE) as (_, agent, tool):
            serial = drain_that_fails(tool, agent, errno.ETIMEDOUT)
            items = agent.answer()
            tap.same((items.kind, items.way, items.timeout), (SAVE, way, 50 * MS), "then")
            result = tool.result(serial)
            tap.same((result.statuses(), result.way), ([0], way), "result")
            tap.same(result.text, "did not run empty within 50 ms: saved", "text")
            tap.same((tool.queues()[0]["held"], tool.queues()[0]["state"]), (1, SUSPENDED), "held, state")


@tap.test("with strict a queue that does not run empty in time is left running, no other way is tried, and the result says so once")
def _(folder):
    for ways in ("update,private", "private,update", "update,dbg"):
        with served(folder, "--ways", ways, ways=UPDATE | PRIVATE) as (_, agent, tool):
            serial = drain_that_fails(tool, agent, errno.ETIMEDOUT, hold=STRICT)
            result = tool.result(serial)
            tap.same(result.statuses(), [-errno.ETIMEDOUT], "result")
            tap.same(result.text, "did not run empty within 50 ms, and runs on", "text")
            tap.same((tool.queues()[0]["held"], tool.queues()[0]["state"]), (0, RUNNING), "held, state")
            tap.same(agent.hears(0.2), [], "what else the agent hears")


@tap.test("a queue that cannot say whether it has finished is saved, or with strict left running, and the result says why")
def _(folder):
    with served(folder) as (_, agent, tool):
        result = tool.result(drain_that_fails(tool, agent, errno.ENODATA, hold=STRICT))
        tap.same(result.statuses(), [-errno.ENODATA], "result")
        tap.true("no completion signal" in result.text and result.text.endswith(", and runs on"), result.text)
        serial = drain_that_fails(tool, agent, errno.ENODATA)
        tap.same(agent.answer().kind, SAVE, "then")
        result = tool.result(serial)
        tap.same(result.statuses(), [0], "result")
        tap.true("no completion signal" in result.text and result.text.endswith(": saved"), result.text)


@tap.test("of several queues each goes its way: one drains, one is saved")
def _(folder):
    with served(folder, queues=2) as (_, agent, tool):
        serial = tool.ask(HOLD, Items(tool.handles(), STOP, kind=DRAIN, timeout=50 * MS))

        def obey(items):
            for item in items.list:
                item[2] = -errno.ETIMEDOUT if item[0] == 2 else 0

        tap.same(len(agent.answer(obey).list), 2, "items")
        saved = agent.answer()
        tap.same([item[0] for item in saved.list], [2], "what is saved")
        result = tool.result(serial)
        tap.same((result.statuses(), result.text), ([0, 0], "did not run empty within 50 ms: saved"), "result")


@tap.test("an agent may answer for what drains later than for the rest")
def _(folder):
    with served(folder, queues=2) as (_, agent, tool):
        serial = tool.ask(HOLD, Items(tool.handles(), STOP, kind=DRAIN, timeout=1000 * MS))
        _, asked, body = agent.wait(WANTS)
        items = Items.parse(body)
        for item in reversed(items.list):
            one = Items([item[0]], STOP, kind=DRAIN)
            agent.send(DONE, one.bytes(), asked)
        tap.same(tool.result(serial).statuses(), [0, 0], "result")


@tap.test("a save that fails after a drain goes on in the next way, as a save")
def _(folder):
    with served(folder, "--ways", "private,update", ways=UPDATE | PRIVATE) as (_, agent, tool):
        serial = drain_that_fails(tool, agent, errno.ETIMEDOUT)
        tap.same(refused(agent, errno.EIO)[0], SAVE, "then")
        items = agent.answer()
        tap.same((items.kind, items.way), (SAVE, UPDATE), "and then")
        result = tool.result(serial)
        tap.same(result.statuses(), [0], "result")
        tap.same(result.text, "did not run empty within 50 ms: saved; private failed: Input/output error; used update", "text")


@tap.test("a drain that fails for another reason goes on in the next way, as a drain")
def _(folder):
    with served(folder, "--ways", "private,update", ways=UPDATE | PRIVATE) as (_, agent, tool):
        serial = drain_that_fails(tool, agent, errno.ENOTTY)
        items = agent.answer()
        tap.same((items.kind, items.way), (DRAIN, UPDATE), "then")
        tap.same(tool.result(serial).statuses(), [0], "result")


@tap.test("somebody who wants the queue saved does not wait for another's drain")
def _(folder):
    with served(folder) as (d, agent, patient):
        urgent = d.tool()
        queues = patient.handles()
        first = patient.ask(HOLD, Items(queues, STOP, kind=DRAIN, timeout=60_000 * MS, hold=STRICT))
        _, drain, body = agent.wait(WANTS)
        begin = time.monotonic()
        second = urgent.ask(HOLD, Items(queues, STOP))
        tap.same(agent.answer().kind, SAVE, "what the agent hears")
        tap.same(urgent.result(second).statuses(), [0], "who was in a hurry")
        result = patient.result(first)
        tap.same((result.statuses(), result.text), ([0], "somebody did not want to wait for the drain: saved"), "who was not")
        tap.true(time.monotonic() - begin < 30, "it waited")
        late = Items.parse(body)
        late.list[0][2] = -errno.ECANCELED
        agent.send(DONE, late.bytes(), drain)
        tap.same((patient.hears(0.2), patient.state(queues[0])), ([], SUSPENDED), "the drain's own end is nobody's")


@tap.test("of two drains of a queue the one that ends first counts")
def _(folder):
    with served(folder) as (d, agent, patient):
        urgent = d.tool()
        queues = patient.handles()
        first = patient.ask(HOLD, Items(queues, STOP, kind=DRAIN, timeout=60_000 * MS))
        agent.wait(WANTS)
        second = urgent.ask(HOLD, Items(queues, STOP, kind=DRAIN, timeout=50 * MS))
        tap.same(refused(agent, errno.ETIMEDOUT), (DRAIN, 50 * MS), "what the agent hears")
        third = patient.ask(HOLD, Items(queues, STOP, kind=DRAIN, timeout=60_000 * MS))
        tap.same(agent.answer().kind, SAVE, "and then")
        tap.same([patient.result(first).statuses(), urgent.result(second).statuses(), patient.result(third).statuses()],
                 [[0]] * 3, "results")


@tap.test("a queue that another wants saved anyway is not left running for somebody's strict drain")
def _(folder):
    with served(folder) as (d, agent, strict):
        other = d.tool()
        queues = strict.handles()
        first = strict.ask(HOLD, Items(queues, STOP, kind=DRAIN, timeout=50 * MS, hold=STRICT))
        _, drain, body = agent.wait(WANTS)
        second = other.ask(HOLD, Items(queues, STOP, kind=DRAIN, timeout=50 * MS))
        other.queues()  # the answer comes after the request was taken
        late = Items.parse(body)
        late.list[0][2] = -errno.ETIMEDOUT
        agent.send(DONE, late.bytes(), drain)
        tap.same(agent.answer().kind, SAVE, "what the agent hears")
        tap.same((strict.result(first).statuses(), other.result(second).statuses()), ([0], [0]), "results")


@tap.test("the time that a save may take reaches the agent")
def _(folder):
    with served(folder, "--ways", "private", ways=PRIVATE) as (_, agent, tool):
        serial = tool.ask(HOLD, Items(tool.handles(), STOP, way=PRIVATE, timeout=50 * MS))
        items = agent.answer()
        tap.same((items.kind, items.timeout), (SAVE, 50 * MS), "type, timeout")
        tap.same(tool.result(serial).statuses(), [0], "result")
        serial = tool.ask(RELEASE, Items(tool.handles()))
        items = agent.answer()
        tap.same((items.list[0][1], items.timeout), (RUN, 0), "want, timeout of a resume")
        tool.result(serial)


@tap.test("a drain that does not say for how long has a second, and none has more than an hour")
def _(folder):
    with served(folder) as (_, agent, tool):
        for timeout, told in ((0, 1000 * MS), (3600_000 * MS, 3600_000 * MS), (2**63, 3600_000 * MS)):
            serial = tool.ask(HOLD, Items(tool.handles(), STOP, kind=DRAIN, timeout=timeout))
            tap.same(agent.answer().timeout, told, f"{timeout}")
            tool.result(serial)
            serial = tool.ask(RELEASE, Items(tool.handles()))
            agent.answer()
            tool.result(serial)


@tap.test("a lease that ends before the drain's timeout is refused, and nothing is asked of the agent")
def _(folder):
    with served(folder) as (_, agent, tool):
        for lease, timeout in ((49 * MS, 50 * MS), (999 * MS, 0), (3599_000 * MS, 2**63)):
            tool.ask(HOLD, Items(tool.handles(), STOP, kind=DRAIN, lease=lease, timeout=timeout))
            status, said = tool.error()
            tap.same(status, -errno.EINVAL, f"{lease} {timeout}")
            tap.true("lease" in said and "drain" in said, said)
        tap.same(agent.hears(0.2), [], "what the agent hears")
        for lease in (60_000 * MS, 0):
            serial = tool.ask(HOLD, Items(tool.handles(), STOP, kind=DRAIN, lease=lease, timeout=60_000 * MS))
            agent.answer()
            tap.same(tool.result(serial).statuses(), [0], "as long as the timeout, or none")
            serial = tool.ask(RELEASE, Items(tool.handles()))
            agent.answer()
            tool.result(serial)


def preempt(d, agent, *more):
    """What the program says and how it ends; the agent's queue does not drain, and can be saved."""
    words = ("preempt", f"{os.getpid()}:1", "--type", "drain", "--timeout", "50ms", "--socket", d.path, *more)
    with subprocess.Popen([tap.PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        refused(agent, errno.ETIMEDOUT)
        if "--strict" not in more:
            agent.answer()
        return *program.communicate(timeout=SOON), program.returncode


@tap.test("the program says which it was: left running is an error, saved a note")
def _(folder):
    with served(folder) as (d, agent, _):
        said, wrong, status = preempt(d, agent, "--strict")
        tap.same((said, status), ("", 1), "strict")
        tap.true(wrong.count("did not run empty within 50 ms, and runs on") == wrong.count("\n") == 1, wrong)
        tap.same(preempt(d, agent), ("Preempted 1 queue of 1 process, for 10s at most.\n"
                                     "Note: did not run empty within 50 ms: saved.\n", "", 0), "not strict")


if not os.path.exists(DAEMON):
    tap.skip_all("no gpreemptd here")
@tap.test("a save overtakes a drain that has not begun, because the queue is still being resumed")
def _(folder):
    with daemon(folder) as d:
        agent, tool, patient, hasty = d.agent(), d.tool(), d.tool(), d.tool()
        queues = tool.handles()
        tool.ask(HOLD, Items(queues, STOP))
        agent.answer()
        tool.result()
        tool.ask(RELEASE, Items(queues))
        _, serial, body = agent.wait(WANTS)
        patient.ask(HOLD, Items(queues, STOP, kind=DRAIN, timeout=60 * 10**9))
        hasty.ask(HOLD, Items(queues, STOP))
        time.sleep(0.1)
        items = Items.parse(body)
        agent.obey(items)
        agent.send(DONE, items.bytes(), serial)
        tap.same(agent.answer().kind, SAVE, "what the agent is asked for")
        tap.same((patient.result().statuses(), hasty.result().statuses()), ([0], [0]), "both")
        agent.close()


@tap.test("a drain of what was saved before says that it was not drained")
def _(folder):
    with served(folder) as (d, agent, tool):
        queues = tool.handles()
        tool.ask(HOLD, Items(queues, STOP))
        agent.answer()
        tool.result()
        result = d.tool().hold(queues, kind=DRAIN, hold=STRICT, timeout=50 * MS)
        tap.same(result.statuses(), [0], "status")
        tap.true("not drained" in result.text, result.text)


tap.main()
