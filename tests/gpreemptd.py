# SPDX-License-Identifier: MIT
"""A running gpreemptd for tests, the tree it looks into, other users, and agents in processes of their own.

What the tests of gpreemptd share; not a test itself.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import time

import tap
from protocol import Agent, Items, Tool, DONE, GPU, SOON, WANTS

DAEMON = os.path.join(os.path.abspath(tap.BUILD), "gpreemptd")
SLOTS = 24
NOBODY = 65534

valgrind = os.environ.get("GPREEMPT_DAEMON_UNDER", "").split()  # to look for what the tests do not see


class Process(subprocess.Popen):
    """Knows whether the test killed it: nothing else may."""

    was_killed = False

    def send_signal(self, number):
        self.was_killed |= number == signal.SIGKILL
        super().send_signal(number)


@contextlib.contextmanager
def daemon(folder, *options, user=None, env=None, under=(), **more):
    """A running gpreemptd and its socket; it must end well, and say nothing it should not. under: what execs it."""
    path = f"{folder}/gpreemptd.sock"
    root = tree(folder)
    process = Process(
        [*under, *valgrind, DAEMON, "--config", "/dev/null", "--socket", path, "--root", root, "--classes", tap.write(f"{folder}/classes.ini", ""), *options],
        stderr=open(f"{folder}/log", "ab"), user=user, env=dict(os.environ, **(env or {})), **more)
    try:
        until(lambda: listens(path) or process.poll() is not None, "it listens")
        yield Daemon(process, path, folder)
        if process.poll() is None:
            process.terminate()
        status = process.wait(SOON)
        tap.same(status, -signal.SIGKILL if process.was_killed else 0, f"exit status; {tap.read(folder, 'log')[-3000:]}")
    finally:
        process.kill()
        process.wait()
    said = tap.read(folder, "log")
    tap.true("Sanitizer" not in said and "runtime error" not in said and "== " not in said, said[-3000:])


@contextlib.contextmanager
def unread(pair=os.pipe):
    """What daemon() needs for a stderr that is full and that nobody reads."""
    reader, writer = pair()
    try:
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 512)
        os.set_blocking(writer, True)
        # A shell may know descriptors of one digit alone.
        to_it = "import os, sys; os.dup2(int(sys.argv[1]), 2); os.execv(sys.argv[2], sys.argv[2:])"
        yield {"under": ("/usr/bin/python3", "-c", to_it, str(writer)), "pass_fds": [writer]}
    finally:
        os.close(reader)
        os.close(writer)


def listens(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        return one.connect_ex(path) == 0


class Daemon:
    def __init__(self, process, path, folder):
        self.process, self.path, self.folder = process, path, folder

    def tool(self):
        return Tool(self.path)

    def agent(self, queues=1, **who):
        """One whose queues the daemon knows by now."""
        agent = Agent(self.path, queues, **who)
        tool = self.tool()
        until(lambda: len(tool.handles(os.getpid())) >= queues, "its queues are listed")
        tool.close()
        return agent

    def log(self):
        return tap.read(self.folder, "log")

    def memory(self):
        """MiB that it has in memory, the most there ever were"""
        line = next(line for line in tap.read(f"/proc/{self.process.pid}/status").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024


def until(condition, why, patience=SOON):
    end = time.monotonic() + patience
    while not condition():
        tap.true(time.monotonic() < end, f"not in {patience:g} s: {why}")
        time.sleep(0.01)


def cpu_seconds(pid):
    return sum(int(field) for field in tap.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[11:13]) / os.sysconf("SC_CLK_TCK")


def put(root, path, data):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    tap.write(path, data)


def tree(folder):
    """A sysfs with one GPU; processes are put into it by foreign()."""
    root = f"{folder}/root"
    nodes = "sys/class/kfd/kfd/topology/nodes"
    if not os.path.exists(root):
        put(root, f"{nodes}/0/gpu_id", "0\n")
        put(root, f"{nodes}/1/gpu_id", f"{GPU}\n")
        put(root, f"{nodes}/1/name", "ip discovery\n")
        put(root, f"{nodes}/1/properties", f"cpu_cores_count 0\nsimd_count 320\nsimd_per_cu 4\nnum_cp_queues {SLOTS}\ngfx_target_version 90402\n")
    return root


def foreign(folder, pid, *queue_ids, kind=0):
    """A process without an agent, as the driver shows it."""
    root = tree(folder)
    put(root, f"sys/class/kfd/kfd/proc/{pid}/pasid", "32768\n")
    for queue_id in queue_ids:
        base = f"sys/class/kfd/kfd/proc/{pid}/queues/{queue_id}"
        put(root, f"{base}/gpuid", str(GPU))
        put(root, f"{base}/size", "4096")
        put(root, f"{base}/type", str(kind))


class AsUser:
    """Calls in a child of another user; the test must be root's. The child waits for go() if it asks wait()."""

    def __init__(self, uid, function, *args, groups=()):
        if os.getuid() != 0:
            raise tap.Skip("only root can be another user")
        self.read, write = os.pipe()
        self.waits, self.goes = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            said = "it did not end"
            try:
                os.setgroups(groups)
                os.setgid(uid)
                os.setuid(uid)
                tap.die_with_parent()  # a change of user takes that back
                os.close(self.goes)
                AsUser.wait = lambda: os.read(self.waits, 1)
                function(*args)
                said = ""
            except BaseException as wrong:  # goes to the parent
                said = f"{type(wrong).__name__}: {wrong}"
            os.write(write, said.encode() or b"well")
            os._exit(0)
        os.close(write)
        os.close(self.waits)

    def go(self):
        os.write(self.goes, b"x")

    def end(self):
        said = os.read(self.read, 4096).decode()
        os.close(self.read)
        os.close(self.goes)
        os.waitpid(self.pid, 0)
        tap.same(said, "well", "as another user")


def with_group(folder, gid):
    """What execs a gpreemptd that knows the group gpreempt by this number."""
    path = tap.write(f"{folder}/group", f"root:x:0:\ngpreempt:x:{gid}:\n")
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", f'mount --bind {path} /etc/group && exec "$0" "$@"']


class fork_agent:
    """An agent in a process of its own, which answers when it is told to."""

    def __init__(self, d, queues):
        self.heard, heard = os.pipe()
        go, self.goes = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            agent = Agent(d.path, queues)
            _, serial, body = agent.wait(WANTS)
            os.write(heard, b"x")
            os.read(go, 1)
            items = Items.parse(body)
            agent.obey(items)
            agent.send(DONE, items.bytes(), serial)
            with contextlib.suppress(Exception):
                while True:
                    agent.answer()
            os._exit(0)

    def hears_wants(self):
        tap.true(select.select([self.heard], [], [], SOON)[0], "the other agent hears of it")

    def go(self):
        os.write(self.goes, b"x")

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
