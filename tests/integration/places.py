#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Real containers of podman, root's and a user's: what they are called, who is in them, and to whom they are containers."""

import contextlib
import json
import os
import shutil
import subprocess

import tap
from gpreemptd import NOBODY, daemon, foreign, put, tree

# Below what any machine allows, since runc may not raise a limit here; without a network nothing has to be set up for one.
LIMITS = ("--ulimit", "nofile=1000:1000", "--ulimit", "nproc=1000:1000", "--network", "none")


class Podman:
    """podman with a storage of its own, below a folder, as root or as somebody who is not."""

    def __init__(self, folder, user=0):
        self.folder, self.user = folder, user
        self.options = ["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none"]
        if user == 0:
            self.options += ["--root", f"{folder}/graph", "--runroot", f"{folder}/rungraph", "--tmpdir", f"{folder}/tmp"]
        self.env = dict(os.environ, HOME=f"{folder}/home", XDG_RUNTIME_DIR=f"{folder}/runtime")
        for name in ("home", "runtime", "fs", "fs/usr", "fs/proc", "fs/sys", "fs/dev", "fs/tmp", "fs/run", "fs/etc"):
            os.makedirs(f"{folder}/{name}", mode=0o700 if name == "runtime" else 0o755)
            os.chown(f"{folder}/{name}", user, user)
        for name in ("bin", "lib", "lib64"):
            os.symlink(f"usr/{name}", f"{folder}/fs/{name}")

    def __call__(self, *words):
        return subprocess.run(["podman", *self.options, *words], env=self.env, user=self.user, group=self.user, extra_groups=[], cwd="/",
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)

    def start(self, name):
        """A program in a container of that name: its pid, and the container's id."""
        done = self("run", "--detach", "--name", name, "--runtime", "runc", *LIMITS, "--volume", "/usr:/usr:ro",
                    "--volume", f"{os.path.abspath(tap.BUILD)}:/build:ro", "--rootfs", f"{self.folder}/fs", "/usr/bin/sleep", "600")
        if done.returncode != 0:
            raise tap.Skip(f"podman cannot run a container here: {done.stderr.strip().splitlines()[-1]}")
        return json.loads(self("inspect", name).stdout)[0]["State"]["Pid"], done.stdout.strip()

    def end(self, *names):
        self("rm", "--force", "--time", "0", *names)
        if self.user:
            self("system", "migrate")  # ends the process that holds its namespaces


@contextlib.contextmanager
def container(folder, name, user=0):
    """A machine with a made-up driver, and one real container in it whose program has a queue: its tree, pid, id and podman."""
    for program in ("podman", "runc"):
        if not shutil.which(program):
            raise tap.Skip(f"{program} is not installed")
    if os.getuid() != 0:
        raise tap.Skip("only root can be two users")
    os.chmod(folder, 0o755)
    root = tree(folder)
    os.makedirs(f"{root}/sys/fs")
    for link, target in (("proc", "/proc"), ("sys/fs/cgroup", "/sys/fs/cgroup"), ("tmp", "/tmp")):
        os.symlink(target, f"{root}/{link}")
    podman = Podman(folder, user)
    put(root, "etc/containers/storage.conf", '[storage]\ngraphroot = "/graph"\nrunroot = "/rungraph"\n')
    for link in ("graph", "rungraph"):
        os.symlink(f"{folder}/{link}", f"{root}/{link}")
    try:
        pid, id = podman.start(name)
        foreign(folder, pid, 1)
        yield root, pid, id, podman
    finally:
        podman.end(name)


def listed(root, *words, **who):
    """Class and place of the one queue."""
    queue, = json.loads(tap.good("list", "--root", root, "--json", *words, **who).stdout)["queues"]
    return queue["class"], queue["place"]


def found(folder, root, *words, **who):
    """Exit status, and the pids of the queues."""
    os.makedirs(f"{folder}/here", exist_ok=True)
    os.chmod(f"{folder}/here", 0o777)
    done = tap.run("find", *words, "--root", root, "--json", cwd=f"{folder}/here", **who)
    told = json.loads(done.stdout) if done.stdout else {"queues": []}
    return done.returncode, [queue["pid"] for process in told.get("processes", [told]) for queue in process["queues"]]


@tap.test("root's container is listed by its name, found by name and id, and one to rules")
def _(folder):
    with container(folder, "trainer") as (root, pid, id, _podman):
        tap.same(listed(root, "--rule", "online:container=trainer"), ("online", f"container trainer {id[:12]}"))
        tap.true(" trainer " in tap.good("list", "--root", root, "--container", "trainer").stdout, "PLACE")
        tap.same(listed(root, user=NOBODY)[1], f"container trainer {id[:12]}", "who may not read podman's files")
        for words in (("--container", "trainer"), ("--container", id), ("--container", id[:5]), ("1", "--container", "trainer")):
            tap.same(found(folder, root, *words), (0, [pid]), words)
        done = tap.run("find", "--container", "trainr", "--root", root)
        tap.true("did you mean trainer?" in done.stderr, done.stderr)
        tap.true(f"1 is also PID {pid} (container trainer)" in tap.run("find", "1", "--root", root).stderr, "the pid inside")


@tap.test("a user's own container has its name for that user, and is none to root or to rules")
def _(folder):
    with container(folder, "mine", NOBODY) as (root, pid, id, podman):
        user = {"user": NOBODY, "env": podman.env}
        tap.same(listed(root, "--rule", "online:container=mine", **user), ("online", f"container mine {id[:12]}"))
        tap.same(found(folder, root, "--container", "mine", **user), (0, [pid]))
        tap.same(found(folder, root, "1", "--container", "mine", **user), (0, [pid]))
        tap.same(listed(root, "--rule", "online:container=mine"), ("unknown", ""))
        tap.same(found(folder, root, "--container", "mine"), (tap.FAILED, []))


@tap.test("inside a container find says that its pids are not the host's")
def _(folder):
    with container(folder, "trainer") as (_root, _pid, _id, podman):
        done = podman("exec", "trainer", "/build/gpreempt", "find", "1")
        tap.same((done.returncode, done.stdout), (tap.FAILED, ""), done.stderr)
        tap.true("pid namespace" in done.stderr, done.stderr)


# A program that is process 1 of a pid namespace and has two queues, and looks for them: with find, and with gp_queue_find() by an
# address that a process outside has too. It prints what the tool says of itself and of another, and what the call does.
INSIDE = """
import ctypes, json, os, struct, subprocess, sys, time
from protocol import Agent
program, library, path, other = sys.argv[1:]
os.environ["GPREEMPT_SOCKET"] = path
agent = Agent(path, 2)
end = time.monotonic() + 20
while True:
    own = subprocess.run([program, "find", "1", "--json"], capture_output=True, text=True)
    if own.returncode == 0 and len(json.loads(own.stdout)["queues"]) == 2 or time.monotonic() > end:
        break
    time.sleep(0.05)
another = subprocess.run([program, "find", other], capture_output=True, text=True)
lib, ctx, info = ctypes.CDLL(library), ctypes.c_void_p(), ctypes.create_string_buffer(4096)
opts = struct.pack("NPPQPPN", 56, 0, 0, 0, 0, 0, 0)
struct.pack_into("N", info, 0, 4096)
found = lib.gp_ctx_open(opts, ctypes.byref(ctx)) or lib.gp_queue_find(ctx, 0, ctypes.c_uint64(0x7F0000010000), info)
print(json.dumps([own.returncode, own.stdout, another.returncode, another.stderr, found]))
"""


@tap.test("in a pid namespace gpreemptd tells find and gp_queue_find() a process's queues by the pid that it has there")
def _(folder):
    if os.getuid() != 0:
        raise tap.Skip("only root can make pid namespaces")
    library = os.path.join(os.path.abspath(tap.BUILD), "libgpreempt.so.0")
    if b"__asan_init" in tap.read(library, mode="rb") or b"__ubsan" in tap.read(library, mode="rb"):
        raise tap.Skip("an instrumented library does not load into Python")
    with daemon(folder) as d:
        outside = d.agent(1)
        done = tap.run("--pid", "--fork", "--mount-proc", "--kill-child", "/usr/bin/python3", "-c", INSIDE, tap.PROGRAM,
                       library, d.path, str(os.getpid()), program="unshare", cwd=folder, env=dict(os.environ, PYTHONPATH=tap.HERE))
        tap.same(done.returncode, 0, done.stderr)
        own, text, another, why, call = json.loads(done.stdout)
        tap.same((own, another, call), (0, tap.FAILED, 0), done.stdout)
        tap.same([(queue["pid"], queue["queue_id"], queue["from"]["queue_id"]) for queue in json.loads(text)["queues"]], [(1, 1, "agent"), (1, 2, "agent")])
        tap.true(f"has no queue of process {os.getpid()} here" in why, why)
        outside.close()


# Process 1 of a pid namespace; its child has a queue, and the pid in there that another with a queue has outside.
TWIN = """
import json, os, subprocess, sys, time
from protocol import Agent
program, path, other = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.environ["GPREEMPT_SOCKET"] = path
with open("/proc/sys/kernel/ns_last_pid", "w") as last:
    last.write(str(other - 1))
child = os.fork()
if child == 0:
    agent = Agent(path, 1)
    time.sleep(60)
end, twin = time.monotonic() + 20, []
while not twin and time.monotonic() < end:
    listed = json.loads(subprocess.run([program, "list", "--json"], capture_output=True, text=True).stdout)["queues"]
    twin = [q["pid"] for q in listed if q["local_pid"] == other]
    time.sleep(0.05)
done = subprocess.run([program, "suspend", "--lease", "100ms", str(other)], capture_output=True, text=True)
print(json.dumps([child, twin, done.returncode, done.stderr]))
os.kill(child, 9)
"""


@tap.test("a pid that is one process in a container and another on the host is refused, with the number to write")
def _(folder):
    if os.getuid() != 0:
        raise tap.Skip("only root can make pid namespaces")
    with daemon(folder) as d:
        outside = d.agent(1)
        done = tap.run("--pid", "--fork", "--mount-proc", "--kill-child", "/usr/bin/python3", "-c", TWIN, tap.PROGRAM, d.path, str(os.getpid()),
                       program="unshare", cwd=folder, env=dict(os.environ, PYTHONPATH=tap.HERE))
        tap.same(done.returncode, 0, done.stderr)
        pid, [twin], status, why = json.loads(done.stdout)
        tap.same((pid, status), (os.getpid(), tap.FAILED), why)
        tap.true(f"process {pid} of this container is {twin} on the host, where {pid} is another; write {twin} for the first" in why, why)
        outside.close()


tap.main()
