#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Nothing that a program does with its threads, ids, limits, scheduling, signals, descriptors or end goes differently with the agent."""

import os
import signal
import subprocess

import tap

from preload import DOUBLE, Daemon, client, environment, python, run

GUEST = os.path.join(os.path.abspath(tap.BUILD), "tests", "guest")
USER = 4711


def guest(folder, part, *words, **more):
    """What a part of guest.c prints that must succeed."""
    status, out, err = run(folder, "/usr/bin/timeout", "-s", "KILL", "60", GUEST, part, *words, **more)
    tap.same((status, err), (0, ""), f"{part}: {out}")
    return out


def need_root():
    if os.geteuid() != 0:
        raise tap.Skip("needs root")


def daemon_of(user, path):
    """Who listens is whom the kernel names to those who come."""
    os.makedirs(os.path.dirname(path))
    os.chown(os.path.dirname(path), user, user)
    os.seteuid(user)
    try:
        return Daemon(path)
    finally:
        os.seteuid(0)



@tap.test("after setuid() no thread of the program has the old user, groups or capabilities")
def _(folder):
    need_root()
    os.chmod(folder, 0o755)
    tap.same(client(folder, """
create()
assert wait_for(lambda: len(threads()) == 2)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for task in os.listdir("/proc/self/task"):
    fields = dict(line.split(":", 1) for line in open(f"/proc/self/task/{task}/status"))
    print(*fields["Uid"].split(), *fields["Gid"].split(), fields["Groups"].split(), int(fields["CapPrm"], 16), int(fields["CapEff"], 16))
"""), "65534 65534 65534 65534 65534 65534 65534 65534 [] 0 0\n" * 2)


@tap.test("a root's program with a user's environment does not come to that user's gpreemptd, and nor does a root's tool")
def _(folder):
    need_root()
    os.chmod(folder, 0o755)
    path = f"{folder}/gpreempt/gpreemptd.sock"
    env = environment(folder, XDG_RUNTIME_DIR=folder)
    del env["GPREEMPT_SOCKET"]
    env["KFD_DOUBLE_LOG"] = "/dev/null"
    with daemon_of(USER, path) as daemon:
        for named in ({}, {"GPREEMPT_SOCKET": path}):
            with subprocess.Popen(python("create()\nsys.stdin.read()"), env=dict(env, **named), stdin=subprocess.PIPE):
                daemon.listener.settimeout(1)
                try:
                    daemon.accept()
                    tap.true(False, "it came")
                except (TimeoutError, AssertionError) as end:  # it may have come, and gone without a word
                    tap.true("went before" in str(end) or isinstance(end, TimeoutError), end)
        done = tap.run("list", "--socket", path)
        tap.same(done.returncode, tap.FAILED, "status of gpreempt list")
        tap.true("neither root nor you" in done.stderr, done.stderr)
        daemon.listener.settimeout(20)
        with subprocess.Popen(python("create()\nsys.stdin.read()"), env=env, stdin=subprocess.PIPE, user=USER, group=USER, extra_groups=[]):
            while True:  # past what came and went
                try:
                    daemon.accept()
                    break
                except AssertionError:
                    pass
            daemon.welcome()


@tap.test("threads that are cancelled asynchronously in calls to the driver leave no lock behind")
def _(folder):
    tap.same(guest(folder, "cancel", KFD_DOUBLE_LOG=""), "fine\n")


if not os.path.exists(DOUBLE):
    tap.skip_all("this build is instrumented: its libraries cannot be preloaded")
signal.alarm(280)
tap.main()
