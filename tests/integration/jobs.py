#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What gpreemptd makes of jobs that root declares, of those who are in them, and of those who would like to be.

A stepd here is what starts a job's processes and is named as the one that the job lasts as long as, like Slurm's slurmstepd.
"""

import contextlib
import errno
import json
import os
import signal
import struct
import time

import tap
from gpreemptd import NOBODY, AsUser, daemon, until, with_group
from protocol import Agent, Gone, CLASS, END, ERROR, HINT_BEGIN, HINT_END, JOB, JOBS, JOB_INFO, OFFLINE, ONLINE, text

JOB_SAID = struct.Struct("<IIQQIIQ64s192s")
JOB_HAS = struct.Struct("<64sIIIIQ10QII")
GROUP = 4321
S, MS = 10**9, 10**6
HIERARCHIES = ("/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")


def start_of(pid):
    return int(tap.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[19])


def parent_of(pid):
    return int(tap.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[1])


def declare(tool, pid, client_class=OFFLINE, start=0, slo=0, weight=0, floor=0, patience=0, name="slurm 7.0", cgroup=""):
    """0, or the errno that it is refused with"""
    asked = tool.send(JOB, JOB_SAID.pack(pid, client_class, start, slo, weight, floor, patience, name.encode(), cgroup.encode()))
    while True:
        kind, serial, body = tool.receive()
        if serial == asked:
            return -struct.unpack_from("<i", body)[0] if kind == ERROR else 0


def jobs(tool):
    names = ("name pid class weight clients slo ran waits waited requests within with_slo p50 p99 most starving starved partial").split()
    tool.send(JOBS)
    found = {}
    while True:
        kind, _, body = tool.wait(JOB_INFO, END, ERROR)
        tap.true(kind != ERROR, f"JOBS is refused: {body}")
        if kind == END:
            return found
        values = [text(value) if isinstance(value, bytes) else value for value in JOB_HAS.unpack(body)]
        found[values[0]] = dict(zip(names, values))


def clients(d):
    """By pid, as gpreempt ps has them."""
    listed = json.loads(tap.good("ps", "--json", "--socket", d.path).stdout)["clients"]
    return {client["pid"]: client for client in listed}


def serve(path, uid, who, stays=False):
    """An agent, for as long as it is let live, or its parent."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    if not stays:
        tap.die_with_parent()
    if "slo" in who:
        who["later"] = struct.pack("<IIQ", 0, 0, who.pop("slo"))
    agent = Agent(path, 1, **who)
    with contextlib.suppress(Gone, OSError):
        while True:
            agent.answer()
    while True:
        signal.pause()


class Stepd:
    """A process of root's that starts others, as it is told; they end with it, unless they are told not to."""

    def __init__(self, d):
        self.path = d.path
        self.has_ended = False
        self.told, tell = os.pipe()
        commands, self.tells = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            tap.die_with_parent()
            os.close(self.tells)
            with os.fdopen(commands) as lines:
                for line in lines:
                    self.obey(tell, **json.loads(line))
            os._exit(0)
        os.close(tell)
        os.close(commands)

    def obey(self, tell, uid, who, through, stays, outlives, door):
        """through: how many processes are between, which end if it outlives them; stays: it does when they end later"""
        pid = os.fork()
        if pid:
            if outlives:
                os.waitpid(pid, 0)
            return
        while through:
            through -= 1
            parent = os.getpid()
            if os.fork():
                if outlives:
                    os._exit(0)
                tap.die_with_parent()
                signal.pause()
        if outlives:
            until(lambda: os.getppid() != parent, "it is another's child")
            os.setsid()
        os.write(tell, f"{os.getpid():10}".encode())
        try:
            serve(door or self.path, uid, who, stays or outlives)
        finally:
            os._exit(1)

    def task(self, uid=NOBODY, through=0, stays=False, outlives=False, door=None, **who):
        """The pid of a new process with an agent in it; door: which socket of gpreemptd's it comes by, if not everybody's"""
        os.write(self.tells, (json.dumps(dict(uid=uid, who=who, through=through, stays=stays, outlives=outlives, door=door)) + "\n").encode())
        return int(os.read(self.told, 10))

    def end(self):
        """Once: its number may be somebody else's then."""
        if not self.has_ended:
            self.has_ended = True
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


@contextlib.contextmanager
def stepd(d):
    one = Stepd(d)
    try:
        yield one
    finally:
        one.end()


def is_listed(d, pid):
    until(lambda: pid in clients(d), f"process {pid} is listed")
    return clients(d)[pid]


def has_class(d, pid, name, rule=None):
    is_listed(d, pid)
    until(lambda: clients(d).get(pid, {}).get("class") == name, f"process {pid} is {name}: {clients(d)}")
    if rule is not None:
        tap.same(clients(d)[pid]["rule"], rule, "why")


@contextlib.contextmanager
def world(folder, *options, **more):
    """gpreemptd, for all users, and a stepd; it does not scan."""
    os.chmod(folder, 0o755)
    with daemon(folder, "--scan", "0s", *options, **more) as d, stepd(d) as s:
        yield d, s, d.tool()


@tap.test("a user's process is online because root says so of its job, however far down it is, and for no other reason")
def _(folder):
    with world(folder) as (d, s, tool):
        word = s.task(seen=ONLINE, name="word")
        has_class(d, word, "offline")
        tap.same(declare(tool, s.pid, ONLINE, start_of(s.pid)), 0, "declared")
        has_class(d, word, "online", "job slurm 7.0")
        has_class(d, s.task(name="child"), "online", "job slurm 7.0")
        has_class(d, s.task(through=3, name="deep"), "online", "job slurm 7.0")
        tap.same(jobs(tool)["slurm 7.0"]["clients"], 3, "clients")
        with stepd(d) as other:
            has_class(d, other.task(seen=ONLINE), "offline")


def order(tool, client, client_class):
    """0, or the errno that it is refused with"""
    asked = tool.send(CLASS, struct.pack("<QI", client, client_class))
    while True:
        kind, serial, body = tool.receive()
        if serial == asked:
            return -struct.unpack_from("<i", body)[0] if kind == ERROR else 0


@tap.test("what root says of a client counts more than its job, its rule and its own word, for as long as its process lasts, and no other user may say it")
def _(folder):
    with world(folder, "--rule", "online:uid=0", under=with_group(folder, GROUP)) as (d, s, tool):
        user, rule = s.task(seen=OFFLINE), s.task(uid=0)
        has_class(d, rule, "online")
        has_class(d, user, "offline")
        handles = {pid: clients(d)[pid]["client"] for pid in (user, rule)}
        tap.same(order(tool, handles[user], ONLINE), 0, "online")
        has_class(d, user, "online", "by root's word")
        tap.same(order(tool, handles[rule], OFFLINE), 0, "offline")
        has_class(d, rule, "offline", "by root's word")
        tap.same(declare(tool, s.pid, OFFLINE), 0, "a job")
        has_class(d, user, "online", "by root's word")
        tap.same(order(tool, 1 << 40, ONLINE), errno.ENOENT, "nobody")
        for groups in [], [GROUP]:
            AsUser(NOBODY, lambda: tap.same(order(d.tool(), handles[user], OFFLINE), errno.EPERM, "another user"), groups=groups).end()
        has_class(d, user, "online", "by root's word")
        tap.same(order(tool, handles[user], OFFLINE), 0, "and back")
        has_class(d, user, "offline", "by root's word")


@tap.test("a process of an online job may say that it is offline")
def _(folder):
    with world(folder) as (d, s, tool):
        tap.same(declare(tool, s.pid, ONLINE), 0, "declared")
        has_class(d, s.task(seen=OFFLINE), "offline", "job slurm 7.0, less by its own word")


@tap.test("a process of an online job that comes by the socket of the offline class is offline; what the other's says of itself does not count")
def _(folder):
    with world(folder, "--class-sockets", f"{folder}/class") as (d, s, tool):
        tap.same(declare(tool, s.pid, ONLINE), 0, "declared")
        until(lambda: d.log().count("listening on") == 3, "it listens on all three")
        has_class(d, s.task(uid=0, door=f"{folder}/class/offline/gpreemptd.sock", seen=ONLINE), "offline", "job slurm 7.0, less by its own word")
        has_class(d, s.task(uid=0, door=f"{folder}/class/online/gpreemptd.sock", seen=OFFLINE), "online", "job slurm 7.0")


@tap.test("root's own process is offline in a job that root says is, with no more weight and no shorter objective than that")
def _(folder):
    with world(folder, "--rule", "online:uid=0") as (d, s, tool):
        pid = s.task(uid=0, seen=ONLINE, tag="ONLINE_AI")
        has_class(d, pid, "online")
        tap.same(declare(tool, s.pid, OFFLINE, slo=20 * MS, weight=300), 0, "declared")
        has_class(d, pid, "offline", "job slurm 7.0")
        tap.same((clients(d)[pid]["weight"], clients(d)[pid]["slo_ns"]), (300, 20 * MS), "what it did not say")


@tap.test("a weight that is larger and an objective that is shorter than the job's are cut down, others count")
def _(folder):
    with world(folder) as (d, _s, tool):
        for said, has in (((9000, 1 * MS), (300, 20 * MS)), ((50, 30 * MS), (50, 30 * MS)), ((0, 0), (300, 20 * MS))):
            waits, goes = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.read(waits, 1)
                serve(d.path, NOBODY, dict(later=struct.pack("<IIQ", 0, *said)))
            tap.same(declare(tool, pid, ONLINE, slo=20 * MS, weight=300, name=f"job {pid}"), 0, "declared")
            os.write(goes, b"x")
            has_class(d, pid, "online")
            tap.same((clients(d)[pid]["weight"], clients(d)[pid]["slo_ns"]), has, f"said {said}")
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def is_refused(d, pid, why):
    tool = d.tool()
    tap.same(declare(tool, pid, ONLINE), errno.EPERM, why)
    tool.close()


@tap.test("a user may not declare a job, not even of its own process, nor list those that are; nor may the group's members declare one")
def _(folder):
    def user():
        is_refused(d, os.getpid(), "a user's word")
        tool = d.tool()
        tool.send(JOBS)
        tap.same(tool.error()[0], -errno.EPERM, "JOBS")
    with world(folder, under=with_group(folder, GROUP)) as (d, s, tool):
        AsUser(NOBODY, user).end()
        AsUser(NOBODY, is_refused, d, s.pid, "a member's word", groups=[GROUP]).end()
        tap.same(jobs(tool), {}, "jobs")


@tap.test("a user declares jobs to a gpreemptd of its own")
def _(folder):
    def user():
        tool = d.tool()
        tap.same(declare(tool, os.getpid(), OFFLINE, name="mine"), 0, "declared")
        tap.same(list(jobs(tool)), ["mine"], "jobs")
    os.chmod(folder, 0o777)
    os.chown(folder, NOBODY, NOBODY)
    with daemon(folder, "--scan", "0s", user=NOBODY) as d:
        AsUser(NOBODY, user).end()


@tap.test("who is no process, or was one, or is another by now, has no job")
def _(folder):
    with world(folder) as (d, s, tool):
        gone = os.fork()
        if gone == 0:
            os._exit(0)
        os.waitid(os.P_PID, gone, os.WEXITED | os.WNOWAIT)
        tap.same(declare(tool, gone), errno.ESRCH, "dead, and not waited for")
        os.waitpid(gone, 0)
        tap.same(declare(tool, gone), errno.ESRCH, "gone")
        tap.same(declare(tool, s.pid, start=start_of(s.pid) + 1), errno.ESRCH, "another's number")
        tap.same(declare(tool, 0), errno.EINVAL, "nobody")
        tap.same(declare(tool, 2**32 - 1), errno.EINVAL, "no number")
        tap.same(declare(tool, s.pid, name=""), errno.EINVAL, "no name")
        tap.same(jobs(tool), {}, "jobs")
        for bad in (dict(client_class=0), dict(client_class=3), dict(weight=10001), dict(floor=1001)):
            hostile = d.tool()
            said = dict(client_class=ONLINE, weight=0, floor=0) | bad
            hostile.send(JOB, JOB_SAID.pack(s.pid, said["client_class"], 0, 0, said["weight"], said["floor"], 0, b"hostile", b""))
            tap.same(hostile.error()[0], -errno.EBADMSG, f"{bad}")
        tap.same(jobs(tool), {}, "jobs")


def with_number(pid, function):
    """A child of that number that calls it; tried until nobody else gets the number first."""
    for _ in range(200):
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
            file.write(str(pid - 1))
        child = os.fork()
        if child == 0:
            if os.getpid() == pid:
                function()
            os._exit(0)
        if child == pid:
            return
        os.waitpid(child, 0)
    raise tap.Skip("others take the number each time")


@tap.test("a job ends with its process: what is left of it is judged as anybody, and who gets the number next is not of it")
def _(folder):
    with world(folder) as (d, s, tool):
        tap.same(declare(tool, s.pid, ONLINE), 0, "declared")
        left = s.task(stays=True, seen=ONLINE)
        has_class(d, left, "online", "job slurm 7.0")
        s.end()
        try:
            until(lambda: not jobs(tool), "the job is gone")
            has_class(d, left, "offline")
        finally:
            os.kill(left, signal.SIGKILL)
        with_number(s.pid, lambda: serve(d.path, NOBODY, dict(seen=ONLINE)))
        try:
            has_class(d, s.pid, "offline")
        finally:
            os.kill(s.pid, signal.SIGKILL)
            os.waitpid(s.pid, 0)


@tap.test("a process that was seen in a job stays of it when its parents end; one that had left before is not of it")
def _(folder):
    with world(folder) as (d, s, tool):
        tap.same(declare(tool, s.pid, ONLINE), 0, "declared")
        stays = s.task(through=1, stays=True)
        left = s.task(through=1, outlives=True, seen=ONLINE)
        try:
            has_class(d, stays, "online", "job slurm 7.0")
            has_class(d, left, "offline")
            parent = parent_of(stays)
            os.kill(parent, signal.SIGKILL)
            until(lambda: parent_of(stays) not in (parent, s.pid), "it is another's child")
            tap.same(declare(tool, os.getpid(), OFFLINE, name="another"), 0, "everybody is looked at again")
            has_class(d, stays, "online", "job slurm 7.0")
        finally:
            os.kill(stays, signal.SIGKILL)
            os.kill(left, signal.SIGKILL)


@contextlib.contextmanager
def cgroup(*names):
    top = next((path for path in HIERARCHIES if os.access(f"{path}/cgroup.procs", os.W_OK)), None)
    if not top:
        raise tap.Skip("no cgroup can be made here")
    base = f"gpreempt-test-{os.getpid()}"
    made = [f"{top}/{base}", *(f"{top}/{base}/{name}" for name in names)]
    try:
        for path in made:
            os.makedirs(path, exist_ok=True)
        yield f"/{base}", made[1:]
    finally:
        for path in reversed(made):
            with contextlib.suppress(OSError):
                os.rmdir(path)


def move(pid, folder):
    with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(pid))


@tap.test("of a job with a cgroup is what is in it and below it, wherever its parents are; what only begins like it is not")
def _(folder):
    with cgroup("job_1", "job_1/step_0", "job_12") as (base, (job, step, like)), world(folder) as (d, s, tool), stepd(d) as elsewhere:
        tap.same(declare(tool, s.pid, ONLINE, cgroup=f"{base}/job_1"), 0, "declared")
        has_class(d, s.task(seen=ONLINE, name="beside"), "offline")
        for where, name in ((job, "online"), (step, "online"), (like, "offline")):
            move(elsewhere.pid, where)
            has_class(d, elsewhere.task(), name)
            left = elsewhere.task(through=1, outlives=True)
            try:
                has_class(d, left, name)
            finally:
                os.kill(left, signal.SIGKILL)
        until(lambda: jobs(tool)["slurm 7.0"]["clients"] == 2, "both, and those who left are gone")
        elsewhere.end()
        s.end()


@tap.test("the next gpreemptd knows the jobs that go on, with all that was said of them, and not those that ended meanwhile")
def _(folder):
    with world(folder) as (d, s, tool), stepd(d) as gone:
        tap.same(declare(tool, s.pid, ONLINE, slo=20 * MS, weight=300, floor=50, patience=600 * S), 0, "declared")
        tap.same(declare(tool, gone.pid, ONLINE, name="gone", cgroup="/a b"), 0, "declared")
        before = jobs(tool)
        tap.same(before["slurm 7.0"]["partial"], 0, "partial")
        d.process.kill()
        d.process.wait()
        gone.end()
        with daemon(folder, "--scan", "0s") as again:
            tool = again.tool()
            now = jobs(tool)
            tap.same(list(now), ["slurm 7.0"], "jobs")
            same = ("pid", "class", "weight", "slo")
            tap.same([now["slurm 7.0"][key] for key in same], [before["slurm 7.0"][key] for key in same], "what was said")
            tap.same(now["slurm 7.0"]["partial"], 1, "partial")
            has_class(again, s.task(), "online", "job slurm 7.0")
            again.process.terminate()
            again.process.wait()
            said = tap.read(folder, "gpreemptd.sock.jobs")
            tap.same(said, f"{s.pid} 2 {start_of(s.pid)} {20 * MS} 300 50 {600 * S}\tslurm 7.0\t-\n", "the file")


@tap.test("what somebody else could have written beside the socket is not believed")
def _(folder):
    def begin(mode, owner):
        path = tap.write(f"{folder}/gpreemptd.sock.jobs", f"{os.getpid()} 2 {start_of(os.getpid())} 0 0 0 0\tforged\t-\n")
        os.chmod(path, mode)
        os.chown(path, owner, owner)
        with daemon(folder, "--scan", "0s") as d:
            return list(jobs(d.tool()))
    tap.same((begin(0o666, 0), begin(0o600, NOBODY), begin(0o600, 0)), ([], [], ["forged"]), "all may write; another's; ours")


@tap.test("a job has what its processes waited and what their requests took, also of those that have ended")
def _(folder):
    with world(folder) as (d, s, tool), stepd(d) as service:
        tap.same(declare(tool, s.pid, OFFLINE, name="train"), 0, "declared")
        tap.same(declare(tool, service.pid, ONLINE, slo=3600 * S, name="serve"), 0, "declared")
        first = s.task()
        is_listed(d, first)
        user = service.task()
        has_class(d, user, "online")
        handle = next(q["client"] for q in tool.queues(user))
        for number in range(3):
            tool.hint(HINT_BEGIN, handle, number + 1, 5 * S)
            until(lambda number=number: jobs(tool)["train"]["waits"] == number + 1, "it is told to wait")
            tool.hint(HINT_END, handle, number + 1)
            until(lambda: clients(d)[first]["state"] == "running", "it runs again")
        has = jobs(tool)
        tap.same((has["serve"]["requests"], has["serve"]["within"], has["serve"]["with_slo"]), (3, 3, 3), "requests")
        tap.true(0 < has["serve"]["p50"] <= has["serve"]["most"] and has["train"]["waited"] > 0 and has["train"]["ran"] > 0, f"{has}")
        tap.true(has["serve"]["most"] <= has["train"]["waited"] + has["serve"]["most"] < 60 * S, f"{has}")
        os.kill(first, signal.SIGKILL)
        until(lambda: jobs(tool)["train"]["clients"] == 0, "it has ended")
        tap.true(jobs(tool)["train"]["waits"] == 3 and jobs(tool)["train"]["waited"] >= has["train"]["waited"], "what it waited stays")


@tap.test("what a process had before its job was declared is not the job's, and what it has since then stays when others are")
def _(folder):
    def wait_once():
        had = sum(job["waits"] for job in jobs(tool).values())
        tool.hint(HINT_BEGIN, handle, 1, 5 * S)
        until(lambda: clients(d)[train]["state"] == "waiting", "it is told to wait")
        tool.hint(HINT_END, handle, 1)
        until(lambda: clients(d)[train]["state"] == "running", "it runs again")
        return sum(job["waits"] for job in jobs(tool).values()) - had
    with world(folder) as (d, s, tool), stepd(d) as service:
        tap.same(declare(tool, service.pid, ONLINE, name="serve"), 0, "declared")
        train, user = s.task(), service.task()
        has_class(d, train, "offline")
        has_class(d, user, "online")
        handle = next(q["client"] for q in tool.queues(user))
        tap.same(wait_once(), 0, "of nobody's job")
        time.sleep(0.5)
        begun = time.monotonic_ns()
        tap.same(declare(tool, s.pid, OFFLINE, name="train"), 0, "declared")
        has = jobs(tool)["train"]
        tap.true(has["waits"] == 0 and has["ran"] <= time.monotonic_ns() - begun, f"before: {has}")
        tap.same(wait_once(), 1, "of its own")
        tap.same(declare(tool, os.getpid(), OFFLINE, name="another"), 0, "another is declared")
        tap.same(jobs(tool)["train"]["waits"], 1, "it stays")


@tap.test("a request is in time if its job's objective says so, however long the process says that it may take; without one its own counts, or nothing is said")
def _(folder):
    long = dict(slo=3600 * S)
    with world(folder) as (d, _s, tool):
        for name, slo, said, want in (("none", 0, {}, (2, 0, 0)), ("never", 1, {}, (2, 2, 0)), ("always", 3600 * S, {}, (2, 2, 2)), ("says more", 1, long, (2, 2, 0)),
                                      ("own", 0, long, (2, 2, 2))):
            with stepd(d) as service:
                tap.same(declare(tool, service.pid, ONLINE, slo=slo, name=name), 0, "declared")
                user = service.task(**said)
                has_class(d, user, "online")
                handle = next(q["client"] for q in tool.queues(user))
                for number in 1, 2:
                    tool.hint(HINT_BEGIN, handle, number, 5 * S)
                    tool.hint(HINT_END, handle, number)
                until(lambda name=name: jobs(tool)[name]["requests"] == 2, "both have ended")
                has = jobs(tool)[name]
                tap.same((has["requests"], has["with_slo"], has["within"]), want, name)


@tap.test("a job that has work and gets none of a GPU is said to starve, and to be starved after its patience")
def _(folder):
    with world(folder, "--config", tap.write(f"{folder}/conf", "[scheduler]\nmax_starve = never\n")) as (d, s, tool), stepd(d) as service:
        tap.same(declare(tool, s.pid, OFFLINE, floor=300, patience=1 * S, name="train"), 0, "declared")
        tap.same(declare(tool, service.pid, ONLINE, name="serve"), 0, "declared")
        is_listed(d, s.task())
        user = service.task()
        has_class(d, user, "online")
        until(lambda: not jobs(tool)["train"]["starving"], "it has its share")
        tool.hint(HINT_BEGIN, next(q["client"] for q in tool.queues(user)), 1, 3600 * S)
        until(lambda: jobs(tool)["train"]["starved"], "it is starved", 60)
        tap.true(jobs(tool)["train"]["starving"] >= 1 * S, "for as long as it was said")
        tap.same((jobs(tool)["serve"]["starving"], jobs(tool)["serve"]["starved"]), (0, 0), "the other")
        tool.hint(HINT_END, next(q["client"] for q in tool.queues(user)), 1)
        until(lambda: not jobs(tool)["train"]["starved"], "it has its share again", 60)


@tap.test("a second word about a job takes the place of the first, for those that are there")
def _(folder):
    with world(folder) as (d, s, tool):
        tap.same(declare(tool, s.pid, ONLINE), 0, "declared")
        pid = s.task()
        has_class(d, pid, "online")
        tap.same(declare(tool, s.pid, OFFLINE, name="less"), 0, "declared again")
        has_class(d, pid, "offline", "job less")
        tap.same(declare(tool, s.pid, ONLINE, start=start_of(s.pid) + 1), errno.ESRCH, "of another that had the number")
        has_class(d, pid, "offline", "job less")
        tap.same(list(jobs(tool)), ["less"], "jobs")
        tap.same(tap.read(folder, "gpreemptd.sock.jobs"), f"{s.pid} 1 {start_of(s.pid)} 0 0 0 0\tless\t-\n", "the file")


@tap.test("a job ends with its process also where there are no pidfds")
def _(folder):
    with world(folder, "--old-kernel", "--lease", "900ms") as (d, s, tool):
        tap.same(declare(tool, s.pid, ONLINE), 0, "declared")
        pid = s.task(stays=True)
        try:
            has_class(d, pid, "online")
            s.end()
            until(lambda: not jobs(tool), "the job is gone")
            has_class(d, pid, "offline")
        finally:
            os.kill(pid, signal.SIGKILL)


def sleeper():
    pid = os.fork()
    if pid == 0:
        tap.die_with_parent()
        signal.pause()
    return pid


@tap.test("1024 jobs are kept, and another when one of them has ended")
def _(folder):
    pids = [sleeper() for _ in range(1025)]
    try:
        with daemon(folder, "--scan", "0s") as d:
            tool = d.tool()
            tap.same([declare(tool, pid, name=f"job {pid}") for pid in pids], [0] * 1024 + [errno.ENOSPC], "declared")
            os.kill(pids[0], signal.SIGKILL)
            until(lambda: len(jobs(tool)) == 1023, "one has ended")
            tap.same(declare(tool, pids[-1], name="the last"), 0, "there is room")
            tap.same(len(tap.read(folder, "gpreemptd.sock.jobs").splitlines()), 1024, "lines of the file")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


if os.getuid() != 0:
    tap.skip_all("only root can declare what others are")
tap.main(jobs=4)
