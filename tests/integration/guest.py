#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Nothing that a program does with its threads, ids, limits, scheduling, signals, descriptors or end goes differently with the agent."""

import os
import signal
import subprocess
import time

import tap

from preload import DOUBLE, STOP, Daemon, client, environment, last_call, python, run, wait_for

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


@tap.test("a program whose threads end one by one ends with the last of them, as it does without the agent")
def _(folder):
    for part, takes in (("leave", 0.0), ("outlived", 0.5), ("exit7", 0.0)):
        plain = run(folder, GUEST, part, agent=False)
        begin = time.monotonic()
        tap.same(run(folder, "/usr/bin/timeout", "20", GUEST, part), plain, part)
        took = time.monotonic() - begin - takes
        tap.true(took < 1.0, f"{part}: ended {took:.2f} s after its last thread")


class Program:
    """A part of guest.c that runs until it is told to end."""

    def __init__(self, folder, part, *words, **more):
        self.process = subprocess.Popen([GUEST, part, *words], env=environment(folder, **more), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.process.stdin.close()
            tap.same(self.process.wait(20), 0, "exit status")
        finally:
            self.process.kill()
            self.process.stdout.close()

    def say(self, text=""):
        self.process.stdin.write(text + "\n")


@tap.test("queues are stopped and resumed, and updates seen, while the first thread has gone and others have not")
def _(folder):
    with Daemon(f"{folder}/sock") as daemon, Program(folder, "zombie") as program:
        daemon.accept()
        queue = daemon.welcome()
        wait_for(lambda: "State:\tZ" in tap.read(f"/proc/{program.process.pid}/status"), "the first thread goes")
        tap.same(daemon.want(queue, STOP), 0, "stop")
        program.say()
        tap.same(program.process.stdout.readline(), "update: 0\n")
        tap.same(last_call(folder), "update 0 0", "the driver's last call, of a queue that is stopped")
        daemon.hang_up()
        wait_for(lambda: last_call(folder) == "update 0 70", "resumed with what the program asked for")


@tap.test("whatever limit on descriptors a program has, its agent takes less than a thousandth of a core")
def _(folder):
    for limit in ("", "0", "1"):
        tap.true(int(guest(folder, "idle", *filter(None, [limit]))) < 1000000, f"limit {limit}")
        with Daemon(f"{folder}/sock") as daemon, Program(folder, "idle", *filter(None, [limit])) as program:
            daemon.accept()
            daemon.welcome()
            took = int(program.process.stdout.readline())
            tap.true(took < 1000000, f"connected, limit {limit}: {took} ns in a second")


@tap.test("a program that spins in real time on the CPU it chose is resumed while it spins")
def _(folder):
    need_root()
    with Daemon(f"{folder}/sock") as daemon, Program(folder, "spin") as program:
        daemon.accept()
        queue = daemon.welcome()
        tap.same(daemon.want(queue, STOP), 0, "stop")
        program.say()
        time.sleep(0.2)
        daemon.hang_up()
        wait_for(lambda: last_call(folder) == "update 0 100", "resumed", 1.5)


if not os.path.exists(DOUBLE):
    tap.skip_all("this build is instrumented: its libraries cannot be preloaded")
signal.alarm(280)
tap.main()
