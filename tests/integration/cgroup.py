#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Real cgroups, made by root, by a user in a folder that root gave him, and below a container: whose names rules believe."""

import contextlib
import json
import os
import subprocess

import tap
from gpreemptd import NOBODY, AsUser, foreign, tree

PLACES = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/systemd")
OURS, THEIRS, FORGED = "a1" * 32, "b2" * 32, "c3" * 32


def make(path, owner=None):
    """A cgroup; with an owner it is delegated, as systemd does it."""
    os.mkdir(path)
    for name in ("", "/cgroup.procs") if owner else ():
        os.chown(path + name, owner, owner)
    return path


def join(path, pid):
    with open(f"{path}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(pid))


@contextlib.contextmanager
def hierarchy():
    """A folder for our cgroups, empty and gone afterwards."""
    if os.getuid() != 0:
        raise tap.Skip("only root can make cgroups")
    for place in PLACES:
        path = f"{place}/gpreempt-test-{os.getpid()}"
        with contextlib.suppress(OSError):
            make(path)
            if os.path.exists(f"{path}/cgroup.procs"):
                break
            os.rmdir(path)
    else:
        raise tap.Skip("no cgroups can be made here: " + ", ".join(PLACES))
    try:
        yield path
    finally:
        for folder, _, _ in os.walk(path, topdown=False):
            os.rmdir(folder)


@contextlib.contextmanager
def process(folder):
    """Somebody's program, which the driver is made to know."""
    program = subprocess.Popen(["sleep", "600"], user=NOBODY)
    foreign(folder, program.pid, 1)
    try:
        yield program.pid
    finally:
        program.kill()
        program.wait()


def machine(folder):
    """The driver's files are made up, processes and cgroups are this machine's."""
    root = tree(folder)
    os.makedirs(f"{root}/sys/fs")
    os.symlink("/proc", f"{root}/proc")
    os.symlink("/sys/fs/cgroup", f"{root}/sys/fs/cgroup")
    return root


def judged(root, rule, **who):
    """Class and place of the one queue there."""
    listed = tap.good("list", "--json", "--root", root, "--rule", rule, **who)
    queue, = json.loads(listed.stdout)["queues"]
    return queue["class"], queue["place"]


@tap.test("a container that root made is one to rules, and so is its cgroup's path")
def _(folder):
    with hierarchy() as top, process(folder) as pid:
        root = machine(folder)
        join(make(f"{top}/docker-{OURS}.scope"), pid)
        tap.same(judged(root, f"online:container={OURS}"), ("online", f"container {OURS}"))
        tap.same(judged(root, f"online:cgroup=*/docker-{OURS}.scope"), ("online", f"container {OURS}"))


@tap.test("a user who names a cgroup of his own like a container is in none, and in no cgroup but the one that root gave him")
def _(folder):
    with hierarchy() as top, process(folder) as pid:
        root = machine(folder)
        given = make(f"{top}/user", NOBODY)
        join(given, pid)

        def forge():
            join(make(f"{given}/docker-{FORGED}.scope"), pid)
        AsUser(NOBODY, forge).end()
        tap.true(f"/user/docker-{FORGED}.scope" in tap.read(f"/proc/{pid}/cgroup"), "he is in what he made")
        tap.same(judged(root, f"online:container={FORGED}"), ("unknown", ""))
        tap.same(judged(root, f"online:cgroup=*{FORGED}*"), ("unknown", ""))
        tap.same(judged(root, "online:cgroup=*/user"), ("online", ""))
        tap.same(tap.run("find", str(pid), "--container", FORGED, "--root", root).returncode, tap.FAILED)


@tap.test("to himself his containers are containers")
def _(folder):
    with hierarchy() as top, process(folder) as pid:
        root = machine(folder)
        os.chmod(folder, 0o755)
        join(make(f"{make(f'{top}/user', NOBODY)}/libpod-{OURS}.scope", NOBODY), pid)
        tap.same(judged(root, f"online:container={OURS}", user=NOBODY), ("online", f"container {OURS}"))
        tap.same(judged(root, f"online:container={OURS}"), ("unknown", ""))


@tap.test("what a container's root makes below it is neither container nor path")
def _(folder):
    with hierarchy() as top, process(folder) as pid:
        root = machine(folder)
        make(f"{top}/docker-{THEIRS}.scope")
        join(make(f"{top}/docker-{THEIRS}.scope/docker-{FORGED}.scope"), pid)
        tap.same(judged(root, f"online:container={FORGED}"), ("unknown", f"container {THEIRS}"))
        tap.same(judged(root, f"online:cgroup=*{FORGED}*"), ("unknown", f"container {THEIRS}"))
        tap.same(judged(root, f"online:container={THEIRS}"), ("online", f"container {THEIRS}"))


tap.main()
