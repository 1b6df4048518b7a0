#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreemptd on a driver with scheduling sessions, whose part a library in gpreemptd plays: what is asked of it in one call, and what is made of its answers."""

import contextlib
import errno
import os
import signal
import subprocess
import time

import tap
from gpreemptd import daemon, foreign, put, tree, until
from preload import DOUBLE
from protocol import (
    Agent, Items, BUSY, DRAIN, GPU, HOLD, IDLE, NEW_QUEUES, ONLINE, RELEASE, RUNNING, STOP, STRICT, SUSPENDED, UPDATE,
)

SESSION, PARK = 8, 16  # ways
BACKGROUND = 1 << 3
BATCH = 1 << 4
ALL = 0xFFFFFFFF
COMPUTE_ONLY = 1
NOT_FOUND, NO_CHANGE, BUSY_QUEUE, WAS_RESET, FAILED = 0, 1, 4, 6, 7  # statuses

# Every call is a line in the file: "set PID,QUEUE,WANT,FLAGS,START,GPU ...", "create LEASE", "class PID CLASS",
# "reserve ONLINE OFFLINE" or "background ENABLE".
LIBRARY = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend/kfd/session_uapi.h"

static int has(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", getenv("DRIVER"), name);
	return access(path, F_OK) == 0;
}

static int take(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", getenv("DRIVER"), name);
	return unlink(path) == 0;
}

static unsigned number(const char *name, unsigned usual)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", getenv("DRIVER"), name);
	f = fopen(path, "re");
	if (f && fscanf(f, "%u", &usual) != 1)
		usual = 0;
	if (f)
		fclose(f);
	return usual;
}

static void note(const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/calls", getenv("DRIVER"));
	f = fopen(path, "ae");
	fputs(text, f);
	fclose(f);
}

static int set(struct kfd_session_queue *q, unsigned n)
{
	static char text[1 << 20];
	size_t used = (size_t)snprintf(text, sizeof(text), "set");

	for (unsigned i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %u,%u,%u,%u,%llu,%u", q[i].pid, q[i].queue_id, q[i].want,
					 q[i].flags, (unsigned long long)q[i].start_time, q[i].gpu_id);
	snprintf(text + used, sizeof(text) - used, "\\n");
	note(text);
	while (has("hangs"))
		usleep(5000);
	for (unsigned i = 0; i < n; i++)
		q[i].status = number("status", 2);
	return 0;
}

static int setting(const struct kfd_session_args *args)
{
	char text[64];

	if (args->op == KFD_SESSION_SET_CLASS)
		snprintf(text, sizeof(text), "class %u %u\\n", args->class.pid, args->class.class);
	else if (args->op == KFD_SESSION_SET_RESERVATION)
		snprintf(text, sizeof(text), "reserve %u %u\\n", args->reservation.online_percent, args->reservation.offline_percent);
	else
		snprintf(text, sizeof(text), "background %u\\n", args->background.enable);
	note(text);
	errno = take("lost") ? ESTALE : number("refused", 0);
	return errno ? -1 : 0;
}

static int session(int fd, struct kfd_session_args *args)
{
	struct kfd_session_queue *q = (void *)args->set.queues;
	char text[64];

	if (args->op == KFD_SESSION_CREATE) {
		snprintf(text, sizeof(text), "create %llu\\n", (unsigned long long)args->create.lease_ns);
		note(text);
		args->create.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		args->create.rights = has("denied") ? 0 : KFD_SESSION_RIGHT_ALL;
		return 0;
	}
	if (take("stale")) {
		errno = ESTALE;
		return -1;
	}
	if (args->op == KFD_SESSION_SET) {
		args->set.cycles = 1;
		return set(q, args->set.n);
	}
	if (args->op != KFD_SESSION_QUERY)
		return setting(args);
	note("renew\\n");
	while (has("deaf"))
		usleep(5000);
	q->status = KFD_SESSION_NOT_FOUND;
	return 0;
}

static int open_as(const char *path, int flags, int mode)
{
	return (int)syscall(SYS_openat, AT_FDCWD, strcmp(path, "/dev/kfd") ? path : "/dev/null", flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list list;
	int mode;

	va_start(list, flags);
	mode = va_arg(list, int);
	va_end(list);
	return open_as(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list list;
	int mode;

	va_start(list, flags);
	mode = va_arg(list, int);
	va_end(list);
	return open_as(path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *args;

	va_start(list, request);
	args = va_arg(list, void *);
	va_end(list);
	return request == KFD_IOC_SESSION ? session(fd, args) : (int)syscall(SYS_ioctl, fd, request, args);
}
"""


class Driver:
    def __init__(self, folder):
        self.folder = folder
        self.library = f"{folder}/library.so"
        source = tap.write(f"{folder}/library.c", LIBRARY)
        subprocess.run(["cc", "-shared", "-fPIC", f"-I{tap.SOURCE}/src", "-o", self.library, source], check=True)
        tap.write(f"{folder}/calls", "")

    def set(self, name, value=""):
        tap.write(f"{self.folder}/{name}", str(value))

    def unset(self, name):
        os.unlink(f"{self.folder}/{name}")

    def calls(self):
        """Each as a list of (queue, want, flags)."""
        lines = [line.split()[1:] for line in tap.read(self.folder, "calls").splitlines() if line.startswith("set")]
        return [[tuple(map(int, entry.split(",")))[1:4] for entry in line] for line in lines]

    def told(self):
        """All of that: which calls they came with is by chance where nobody waits for them."""
        return [entry for call in self.calls() for entry in call]

    def entries(self):
        """(pid, start, GPU) of all, each once."""
        words = [word.split(",") for line in tap.read(self.folder, "calls").splitlines() if line.startswith("set") for word in line.split()[1:]]
        return {(int(word[0]), int(word[4]), int(word[5])) for word in words}

    def settings(self):
        """What it was told besides."""
        return [line for line in tap.read(self.folder, "calls").splitlines() if line.split()[0] in ("class", "reserve", "background")]

    def opened(self):
        return [int(line.split()[1]) for line in tap.read(self.folder, "calls").splitlines() if line.startswith("create")]

    def renewals(self):
        return tap.read(self.folder, "calls").count("renew")

    def forget(self):
        tap.write(f"{self.folder}/calls", "")


@contextlib.contextmanager
def served(folder, *options, queues=3, conf="", without=(), refused=0, **who):
    """gpreemptd on such a driver, an agent that it knows, and a tool."""
    if not os.path.exists(DOUBLE):
        raise tap.Skip("this build is instrumented: nothing can be preloaded into it")
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":
        raise tap.Skip("gpreemptd uses no sessions where it does not see the machine's process numbers")
    os.makedirs(f"{folder}/driver", exist_ok=True)
    driver = Driver(f"{folder}/driver")
    for name in without:
        driver.set(name)
    if refused:
        driver.set("refused", refused)
    put(tree(folder), "sys/class/kfd/kfd/sched_version", "1\n")
    words = f"[scheduler]\nmax_starve = never\n{conf}"
    env = {"LD_PRELOAD": driver.library, "DRIVER": driver.folder}
    with daemon(folder, "--config", tap.write(f"{folder}/conf", words), *options, env=env) as d:
        agent, tool = d.agent(queues, **who), d.tool()
        if not without:
            until(lambda: tool.list()[0][0]["caps"] & BATCH, "its session is open")
        yield d, driver, agent, tool
        agent.close()


def stops(*queues):
    return [(queue, 1, 0) for queue in queues]


def runs(*queues):
    return [(queue, 0, 0) for queue in queues]


def start_time():
    return int(tap.read("/proc/self/stat").rpartition(")")[2].split()[19])


@tap.test("all queues of a request are one call, by process, start time and GPU; the agent is told nothing, and a resume is one more")
def _(folder):
    with served(folder) as (_, driver, agent, tool):
        queues = tool.handles()
        tap.same({q["way"] for q in tool.queues()}, {"session"}, "ways")
        result = tool.hold(queues)
        tap.same((result.statuses(), result.way, result.text), ([0, 0, 0], SESSION, ""), "result")
        tap.same(driver.calls(), [stops(1, 2, 3)], "calls")
        tap.same(driver.entries(), {(os.getpid(), start_time(), GPU)}, "whose")
        tap.same({q["state"] for q in tool.queues()}, {SUSPENDED}, "states")
        tool.release(queues)
        tap.same(driver.calls()[1:], [runs(1, 2, 3)], "calls")
        tap.same([message[0] for message in agent.told()], [], "what the agent heard")


@tap.test("an agent that says it has another driver's way is stopped by the session all the same")
def _(folder):
    with served(folder, queues=1, ways=PARK) as (_, driver, _, tool):
        tap.same((tool.hold(tool.handles()).way, driver.calls()), (SESSION, [stops(1)]), "way and calls")


@tap.test("what was stopped already is not asked for again, and one queue of several goes alone")
def _(folder):
    with served(folder) as (_, driver, _, tool):
        first, *others = tool.handles()
        tool.hold([first])
        tool.hold([first, *others])
        tool.release([others[0]])
        tap.same(driver.calls(), [stops(1), stops(2, 3), runs(2)], "calls")


class Online:
    """An agent with a queue that is online, in a process of its own, busy or idle as it is told."""

    def __init__(self, d):
        read, self.orders = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            tap.die_with_parent()
            os.close(self.orders)
            agent = Agent(d.path, 1, seen=ONLINE)
            while order := os.read(read, 1):
                agent.activity(1, BUSY if order == b"b" else IDLE)
            os._exit(0)
        os.close(read)

    def tell(self, order):
        os.write(self.orders, order)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.orders)
        os.waitpid(self.pid, 0)


@tap.test("for online work an offline process is stopped as a whole, and runs as a whole")
def _(folder):
    for conf, flags in (("", 0), ("sdma = no\n", COMPUTE_ONLY)):
        with served(folder, conf=f"linger = 1ms\n{conf}") as (d, driver, _, tool), Online(d) as serves:
            serves.tell(b"b")
            until(lambda: {q["state"] for q in tool.queues(os.getpid())} == {SUSPENDED}, "it is suspended")
            tap.same(driver.calls(), [[(ALL, 1, flags), *stops(1, 2, 3)]], "calls")
            driver.forget()
            serves.tell(b"i")
            until(lambda: {q["state"] for q in tool.queues(os.getpid())} == {RUNNING}, "it runs")
            tap.same(driver.calls(), [[(ALL, 0, flags), *runs(1, 2, 3)]], "calls")


def whole(tool):
    """Its queues, which stand still with all that their process creates."""
    queues = tool.handles()
    tap.same(tool.hold(queues, hold=NEW_QUEUES).statuses(), [0] * len(queues), "hold")
    return queues


@tap.test("of a process that was stopped as a whole one queue runs again, and the others stand still on")
def _(folder):
    with served(folder) as (_, driver, _, tool):
        queues = whole(tool)
        tool.release(queues[:1])
        tap.same(driver.calls(), [[(ALL, 1, 0), *stops(1, 2, 3)], [(ALL, 0, 0), *stops(2, 3), *runs(1)]], "calls")


@tap.test("a queue that its process creates while it is stopped as a whole is stopped, and the process stays so")
def _(folder):
    with served(folder) as (_, driver, agent, tool):
        whole(tool)
        driver.forget()
        agent.add(4)
        until(lambda: [q["state"] for q in tool.queues()] == [SUSPENDED] * 4, "it is suspended too")
        tap.same(driver.calls(), [[(ALL, 1, 0), *stops(4)]], "calls")


@tap.test("a process whose queues have gone while it was stopped as a whole is let go, and so is one whose agent has")
def _(folder):
    with served(folder, "--lease", "300ms") as (_, driver, agent, tool):
        whole(tool)
        driver.forget()
        for number in (1, 2, 3):
            agent.remove(number)
        until(lambda: (ALL, 0, 0) in driver.told(), "the whole runs")
        tap.true(set(runs(1, 2, 3)) < set(driver.told()), f"who goes is let go: {driver.told()}")
        agent.add(4)
        until(lambda: len(tool.handles()) == 1, "another queue")
        whole(tool)
        driver.forget()
        agent.close()
        until(lambda: (4, 0, 0) in driver.told(), "its queue runs")
        tap.same(driver.told(), [(ALL, 0, 0), *runs(4)], "what is told")


@tap.test("what another session has stopped is stopped by the agent, and the result says why")
def _(folder):
    with served(folder, queues=1) as (_, driver, agent, tool):
        driver.set("status", BUSY_QUEUE)
        serial = tool.ask(HOLD, Items(tool.handles(), STOP))
        agent.answer()
        result = tool.result(serial)
        tap.same((result.statuses(), result.way), ([0], UPDATE), "result")
        tap.same(result.text, "session failed: another scheduling session has stopped it; used update", "text")


@tap.test("a GPU that does not answer: the stop has failed, and what the driver may have done is undone")
def _(folder):
    with served(folder, "--ways", "session", queues=1) as (_, driver, _, tool):
        driver.set("status", FAILED)
        result = tool.hold(tool.handles())
        tap.same((result.statuses(), result.text), ([-errno.EIO], "session failed: the GPU did not answer"), "result")
        driver.unset("status")
        until(lambda: tool.queues()[0]["state"] == RUNNING, "it runs")
        tap.same(driver.calls()[0], stops(1), "the stop")
        tap.same(driver.told()[-1], (1, 0, 0), "what comes last")


@tap.test("a queue that is gone, or that was reset, is told as it is")
def _(folder):
    for status, want, said in ((NOT_FOUND, -errno.ENOENT, "session failed: the driver has no such queue"),
                               (WAS_RESET, 0, "the queue was reset, and runs no more"), (NO_CHANGE, 0, "")):
        with served(folder, queues=1) as (_, driver, _, tool):
            driver.set("status", status)
            result = tool.hold(tool.handles())
            driver.unset("status")
            tap.same((result.statuses(), result.text), ([want], said), f"status {status}")


@tap.test("a session whose lease has ended is opened again with the same lease, and what is to stand still is stopped again")
def _(folder):
    with served(folder, "--lease", "300ms") as (d, driver, _, tool):
        queues = tool.handles()
        tool.hold(queues)
        driver.forget()
        driver.set("stale")
        until(driver.calls, "they are stopped again")
        tap.same(driver.opened(), [300_000_000], "leases")
        tap.same(driver.calls(), [stops(1, 2, 3)], "calls")
        until(lambda: {q["state"] for q in tool.queues()} == {SUSPENDED}, "they stand still")
        tap.true("the scheduling session has ended" in d.log(), d.log())


@tap.test("a session keeps the lease that it was opened with, and is renewed in time, though the configuration has a longer one by now")
def _(folder):
    with served(folder, conf="[daemon]\nlease = 300ms\n") as (d, driver, agent, _):
        agent.close()  # it would keep its own
        until(lambda: "is gone" in d.log(), "it is gone")
        tap.write(f"{folder}/conf", "[daemon]\nlease = 3600s\n")
        d.process.send_signal(signal.SIGHUP)
        until(lambda: "read again" in d.log(), "it has read it")
        driver.forget()
        until(lambda: driver.renewals() >= 3, "it is renewed")


@tap.test("a call that lasts keeps nobody waiting but those who asked; when patience ends it is told, and undone when the GPU answers")
def _(folder):
    with served(folder, "--ways", "session", "--patience", "500ms", queues=2) as (_, driver, _, tool):
        first, second = tool.handles()
        driver.set("hangs")
        serial = tool.ask(HOLD, Items([first], STOP))
        until(driver.calls, "the call is under way")
        other = driver_free(tool, second)
        tap.same(tool.result(serial).statuses(), [-errno.ETIMEDOUT], "result")
        tap.true(other, "gpreemptd did not answer meanwhile")
        driver.unset("hangs")
        until(lambda: (1, 0, 0) in driver.told(), "it is undone")
        until(lambda: {q["state"] for q in tool.queues()} == {RUNNING}, "all run")


@tap.test("four GPUs that do not answer when gpreemptd ends are waited for together")
def _(folder):
    for node in (2, 3, 4):
        put(tree(folder), f"sys/class/kfd/kfd/topology/nodes/{node}/gpu_id", f"{GPU + node}\n")
        put(tree(folder), f"sys/class/kfd/kfd/topology/nodes/{node}/properties", "simd_count 320\nsimd_per_cu 4\nnum_cp_queues 24\ngfx_target_version 90402\n")
    with served(folder, "--lease", "300ms", queues=1) as (d, driver, _, _):
        until(lambda: len(driver.opened()) == 4, "there are four sessions")
        driver.set("deaf")
        driver.forget()
        until(lambda: driver.renewals() == 4, "each has a call under way")
        begin = time.monotonic()
        d.process.terminate()
        d.process.wait(60)
        took = time.monotonic() - begin
        tap.true(took < 15, f"{took:.1f} s; for one after the other it would have been 20")


def driver_free(tool, handle):
    """Another connection is answered."""
    other = type(tool)(tool.socket.getpeername())
    found = handle in other.handles()
    other.close()
    return found


@tap.test("what is asked for while a call lasts goes with the next one, all together")
def _(folder):
    with served(folder, queues=4) as (d, driver, _, tool):
        queues = tool.handles()
        driver.set("hangs")
        serials = [tool.ask(HOLD, Items([queue], STOP)) for queue in queues[:1]]
        until(driver.calls, "the call is under way")
        serials += [tool.ask(HOLD, Items([queue], STOP)) for queue in queues[1:]]
        d.tool().list()  # it has taken them
        driver.unset("hangs")
        for serial in serials:
            tap.same(tool.result(serial).statuses(), [0], "hold")
        tap.same(driver.calls(), [stops(1), stops(2, 3, 4)], "calls")


@tap.test("a resume overtakes a stop that the GPU has not answered, and the queue runs")
def _(folder):
    with served(folder, queues=1) as (_, driver, _, tool):
        queues = tool.handles()
        driver.set("hangs")
        tool.ask(HOLD, Items(queues, STOP))
        until(driver.calls, "the call is under way")
        other = type(tool)(tool.socket.getpeername())
        serial = other.ask(RELEASE, Items(queues))
        driver.unset("hangs")
        tap.same(other.result(serial).statuses(), [0], "release")
        tap.same(driver.told()[-1], (1, 0, 0), "what comes last")
        until(lambda: tool.queues()[0]["state"] == RUNNING, "it runs")


@tap.test("a drain goes by the agent; with no other way it is saved at once, or refused where it must not be")
def _(folder):
    with served(folder, queues=1) as (_, driver, agent, tool):
        serial = tool.ask(HOLD, Items(tool.handles(), STOP, kind=DRAIN))
        tap.same(agent.answer().kind, DRAIN, "what the agent is asked for")
        tap.same((tool.result(serial).statuses(), driver.calls()), ([0], []), "result, calls")
    with served(folder, "--ways", "session", queues=1) as (_, driver, _, tool):
        result = tool.hold(tool.handles(), kind=DRAIN, hold=STRICT)
        tap.same(result.statuses(), [-errno.EOPNOTSUPP], "strict")
        result = tool.hold(tool.handles(), kind=DRAIN)
        tap.same((result.statuses(), result.text), ([0], "no agent is there to drain: saved"), "result")


@tap.test("a session that reaches gpreemptd's own queues alone is not used: agents are, and the log says why, once")
def _(folder):
    with served(folder, "--lease", "100ms", queues=1, without=["denied"]) as (d, driver, agent, tool):
        until(lambda: "no scheduling session" in d.log(), "the log says so")
        tap.same((tool.queues()[0]["way"], tool.list()[0][0]["caps"] & BATCH), ("update", 0), "way, capability")
        serial = tool.ask(HOLD, Items(tool.handles(), STOP, way=SESSION))
        agent.answer()
        said = f"process {os.getpid()} cannot be stopped by session: gpreemptd lacks CAP_SYS_NICE; used update"
        tap.same(tool.result(serial).text, said, "text")
        time.sleep(0.5)
        tap.same((d.log().count("CAP_SYS_NICE"), len(driver.opened())), (1, 1), "lines in the log, sessions opened")


@tap.test("a gpreemptd whose ways leave sessions out opens none, and one without another way says what is missing")
def _(folder):
    with served(folder, "--ways", "update", queues=1, without=["unused"]) as (_, driver, agent, tool):
        tap.same((tool.queues()[0]["way"], driver.opened()), ("update", []), "way, sessions")
        result = tool.ask(HOLD, Items(tool.handles(), STOP, way=SESSION))
        tap.same(tool.error()[0], -errno.EOPNOTSUPP, f"error {result}")
    with served(folder, "--ways", "session", queues=1, without=["denied"]) as (d, _, _, tool):
        until(lambda: "no scheduling session" in d.log(), "the log says so")
        result = tool.hold(tool.handles())
        tap.same(result.statuses(), [-errno.EOPNOTSUPP], "status")
        tap.same(result.text, f"no scheduling session for process {os.getpid()}: gpreemptd lacks CAP_SYS_NICE", "text")


def settings(driver, n):
    until(lambda: len(driver.settings()) >= n, "the driver is told")
    return driver.settings()


@tap.test("a reservation is told the driver, after the classes, and gpreemptd stops nothing for it; both are taken back with it")
def _(folder):
    foreign(folder, os.getpid(), 1, 2, 3)
    with served(folder) as (d, driver, _, tool), Online(d) as serves:
        until(lambda: tool.queues(serves.pid), "online is known")
        tool.reserve(0, 95, 5)
        tap.same(settings(driver, 3), [f"class {os.getpid()} 2", f"class {serves.pid} 1", "reserve 95 5"], "what it is told")
        until(lambda: "the driver keeps the reservation" in d.log(), "the log says so")
        time.sleep(0.1)  # for a look or two at who runs
        tap.same((driver.calls(), {q["state"] for q in tool.queues()}), ([], {RUNNING}), "calls and states")
        driver.forget()
        tool.reserve(0, 0, 0)
        tap.same(settings(driver, 3), [f"class {os.getpid()} 0", f"class {serves.pid} 0", "reserve 0 0"], "what it is told")


@tap.test("a reservation that the driver refuses is gpreemptd's to keep, and the log says why")
def _(folder):
    for error, why in ((errno.EPERM, "gpreemptd lacks CAP_SYS_ADMIN"), (errno.EBUSY, "another scheduling session does")):
        foreign(folder, os.getpid(), 1, 2, 3)
        with served(folder) as (d, driver, _, tool):
            driver.set("refused", error)
            tool.reserve(0, 95, 5)
            until(lambda: [q["state"] for q in tool.queues()].count(SUSPENDED) == 2, "one of three runs")
            until(lambda: f"the driver does not keep the reservation: {why}" in d.log(), "the log says so")
            driver.unset("refused")
            tool.reserve(0, 90, 5)
            until(lambda: {q["state"] for q in tool.queues()} == {RUNNING}, "the driver keeps another, and all run")


@tap.test("what a session that has ended was told is told the next one")
def _(folder):
    foreign(folder, os.getpid(), 1, 2, 3)
    with served(folder) as (_, driver, _, tool):
        tool.reserve(0, 95, 5)
        settings(driver, 2)
        driver.forget()
        driver.set("lost")
        tool.reserve(0, 90, 5)
        want = [f"class {os.getpid()} 2", "reserve 90 5"]
        until(lambda: driver.settings()[-2:] == want, f"the next one is told {want}")
        until(lambda: {q["state"] for q in tool.queues()} == {RUNNING}, "gpreemptd stops nothing")


@tap.test("a process that the driver did not know is told of again when it has another queue")
def _(folder):
    with served(folder) as (_, driver, agent, tool):
        driver.set("refused", errno.ESRCH)
        tool.reserve(0, 95, 5)
        settings(driver, 2)
        driver.unset("refused")
        agent.add(4)
        until(lambda: driver.settings().count(f"class {os.getpid()} 2") >= 2, "it is told again")


@tap.test("driver_watches = yes: the driver is told once, the device has the capability, and for online work nothing is stopped")
def _(folder):
    with served(folder, conf="linger = 1ms\ndriver_watches = yes\n") as (d, driver, _, tool), Online(d) as serves:
        until(lambda: tool.list()[0][0]["caps"] & BACKGROUND, "the capability")
        until(lambda: f"class {serves.pid} 1" in driver.settings(), "online is known")
        serves.tell(b"b")
        until(lambda: next(q for q in tool.queues(serves.pid))["activity"] == BUSY, "online is busy")
        time.sleep(0.1)
        tap.same({q["state"] for q in tool.queues()}, {RUNNING}, "states")
        tap.true(all(want == 0 for _, want, _ in driver.told()), f"nothing is stopped: {driver.told()}")
        tap.same(driver.settings().count("background 1"), 1, "how often it is told")
        tap.same([one for one in driver.settings() if one.startswith("class")], [f"class {os.getpid()} 2", f"class {serves.pid} 1"], "classes")


@tap.test("a driver that cannot look for online work itself says why, and gpreemptd goes on as without")
def _(folder):
    with served(folder, conf="linger = 1ms\ndriver_watches = yes\n", refused=errno.EPERM) as (d, driver, _, tool), Online(d) as serves:
        until(lambda: "the driver does not look for online work itself: gpreemptd lacks CAP_SYS_ADMIN" in d.log(), "the log says so")
        serves.tell(b"b")
        until(lambda: {q["state"] for q in tool.queues(os.getpid())} == {SUSPENDED}, "it is suspended")


tap.main(jobs=4)
