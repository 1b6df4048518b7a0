#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Real cgroups, made by root, by a user in a folder that root gave him, and below a container: whose names rules believe, and who is chosen by them."""

import contextlib
import json
import os
import signal
import subprocess

import tap
from gpreemptd import NOBODY, AsUser, daemon, foreign, tree, until
from preload import need_preload
from simulated import SOON, gpu, handles, train
from torchless import without_torch

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


SHORT = """#!/bin/sh
# The program, with the long checks made short.
[ "$1" != verify ] || set -- "$@" --duration 300ms
exec "{program}" "$@"
"""
JOINS = 'echo $$ >"$0/cgroup.procs" && exec "$@"'


@contextlib.contextmanager
def contained_job(folder, path, socket):
    """A job on the simulated GPU, in a cgroup from its beginning on: its process, and at the end its figures."""
    job = subprocess.Popen(["sh", "-c", JOINS, path, tap.PROGRAM, "sim-client", "--gpu", f"{folder}/gpu/sock", "--json", "--offline", "--work", "train"],
                           env=dict(os.environ, GPREEMPT_SOCKET=socket), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                           preexec_fn=tap.die_with_parent)
    try:
        yield job
    finally:
        job.kill()
        job.communicate()


@tap.test("the notes' run_poc_test.sh --container tries the job in that container, by its id, and leaves the one beside it alone")
def _(folder):
    need_preload()  # Python loads the library
    short = tap.write(f"{folder}/gpreempt", SHORT.format(program=tap.PROGRAM))
    os.chmod(short, 0o755)
    machine(folder)
    script, results = os.path.join(tap.SOURCE, "share", "notes", "run_poc_test.sh"), f"{folder}/results"
    with hierarchy() as top, daemon(folder) as d, gpu(folder, socket=d.path), train(folder, socket=d.path) as beside, \
         contained_job(folder, make(f"{top}/docker-{OURS}.scope"), d.path) as job:
        handles(d, beside.pid)
        handles(d, job.pid)
        env = without_torch({**os.environ, "GPREEMPT_SOCKET": d.path, "GPREEMPT_PROGRAM": short, "GPREEMPT_QUIET": "1", "LC_ALL": "C.UTF-8"})
        until(lambda: f"container {OURS[:12]}" in tap.good("list", "--json", env=env).stdout or job.poll() is not None, "gpreemptd has looked where the job is")
        none = tap.run("--container", THEIRS[:12], results, program=script, env=env)
        tap.same((none.returncode, os.path.exists(results), "no process in container" in none.stderr), (1, False, True), none.stderr)
        done = tap.run("--container", OURS[:12], results, program=script, env=env, timeout=SOON, preexec_fn=tap.die_with_parent)
        tap.true(os.path.exists(f"{results}/models.json"), f"{done.stdout}{done.stderr}")
        found = {name: json.loads(tap.read(results, f"{name}.json")) for name in ("basic", "frequent", "latency", "compare", "throughput")}
        tap.same({name: (one["device"]["text"], [fact["what"] for fact in one["facts"] if not fact["is_so"]]) for name, one in found.items()},
                 {name: ("simulated mi308x", []) for name in found}, f"{done.stdout}{done.stderr}")
        tap.same((found["throughput"]["status"], found["basic"]["status"], found["basic"]["command"][3:5]), ("skipped", "passed", ["--pid", str(job.pid)]), done.stderr)
        tap.true("| basic | passed |" in tap.read(results, "report.md"), "the report")
        job.send_signal(signal.SIGINT)
        stops = json.loads(job.communicate(timeout=SOON)[0])["stops"]
        tap.true(stops > 100, f"latency alone stops it a hundred times: {stops}")
        tap.same(beside.figures(signal.SIGINT)["stops"], 0, "stops of the one beside it")


tap.main()
