#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Nothing that a program does with its threads, ids, limits, scheduling, signals, descriptors or end goes differently with the agent."""

import os
import re
import signal
import subprocess
import time

import tap

from preload import DOUBLE, DRAIN, RUN, SAVE, STOP, Daemon, client, environment, last_call, python, run, wait_for

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


@tap.test("where root and the user both have a gpreemptd, the program comes to root's alone, and to the user's when that has gone")
def _(folder):
    need_root()
    places = [f"{folder}/{name}/gpreempt" for name in ("run", "user")]
    for place in places:
        os.makedirs(place)
    env = environment(folder, XDG_RUNTIME_DIR=f"{folder}/user")
    del env["GPREEMPT_SOCKET"]
    inside = ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", f'mount --bind {folder}/run /run && exec "$0" "$@"']
    if subprocess.run([*inside, "/bin/true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise tap.Skip("no mount namespaces here")
    with Daemon(f"{places[1]}/gpreemptd.sock") as users:
        with Daemon(f"{places[0]}/gpreemptd.sock") as roots:
            program = subprocess.Popen([*inside, *python("create()\nsys.stdin.read()")], env=env, stdin=subprocess.PIPE)
            roots.accept()
            roots.welcome()
            users.listener.settimeout(0.5)
            try:
                users.listener.accept()
                tap.true(False, "it came to both")
            except TimeoutError:
                pass
        users.listener.settimeout(20)
        users.accept()
        program.communicate(timeout=20)


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
        tap.true(took < 10.0, f"{part}: ended {took:.2f} s after its last thread")


@tap.test("without /proc it ends with its first thread, and the program as ever")
def _(folder):
    need_root()
    alone = f"umount -l /proc && exec timeout 20 {GUEST} leave"
    plain = run(folder, "/usr/bin/unshare", "--mount", "/bin/sh", "-c", alone, agent=False)
    if plain[0] == 1:
        raise tap.Skip("no mount namespaces here")
    tap.same(run(folder, "/usr/bin/unshare", "--mount", "/bin/sh", "-c", alone), plain)


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


@tap.test("a thread that cannot be had is tried for with the next queue, and the queue works without")
def _(folder):
    need_root()
    os.chmod(folder, 0o777)
    tap.same(client(folder, """
import resource
os.setuid(4711)
limits = {name: resource.getrlimit(name) for name in (resource.RLIMIT_NPROC, resource.RLIMIT_AS)}
used = int(open("/proc/self/statm").read().split()[0]) * 4096
for name, tight in ((resource.RLIMIT_AS, used + (128 << 10)), (resource.RLIMIT_NPROC, 1)):
    resource.setrlimit(name, (tight, limits[name][1]))
    queue = create()[0]
    result = update(queue, 50), destroy(queue), len(os.listdir("/proc/self/task"))
    resource.setrlimit(name, limits[name])
    print(queue >= 0, *result)
create()
print(wait_for(lambda: len(threads()) == 2))
"""), "True 0 0 1\nTrue 0 0 1\nTrue\n")


@tap.test("children by fork, vfork, posix_spawn and clone, from four threads at a time, end as they do without the agent")
def _(folder):
    more = {"KFD_DOUBLE_LOG": ""}
    tap.same(guest(folder, "storm", **more), "800 children, and none is left\n")
    tap.same(guest(folder, "storm", agent=False, **more), "800 children, and none is left\n")


@tap.test("alarms, timers, blocked and ignored signals, and what is not dumped are as they are without the agent")
def _(folder):
    script = """
import ctypes
libc = ctypes.CDLL(None)
create()
wait_for(lambda: len(threads()) > 1, 0.2)
print(libc.prctl(4, 0, 0, 0, 0), libc.prctl(3, 0, 0, 0, 0))
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(threading.get_native_id()))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
wait_for(lambda: len(seen) > 20)
signal.setitimer(signal.ITIMER_REAL, 0)
print(set(seen) == {os.getpid()})
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGALRM})
os.kill(os.getpid(), signal.SIGUSR1)
update(0, 40)
print(signal.sigpending(), signal.sigtimedwait({signal.SIGUSR1}, 5).si_pid == os.getpid())
signal.alarm(1)
print(signal.sigtimedwait({signal.SIGALRM}, 5).si_signo)
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
threading.Thread(target=lambda: os._exit(9)).start()
time.sleep(20)
"""
    plain = run(folder, *python(script), agent=False)
    tap.same(plain[0], 9, plain[2])
    tap.same(run(folder, *python(script)), plain)


@tap.test("after chroot() and with the driver's file out of reach the queue is stopped and resumed as before")
def _(folder):
    need_root()
    with Daemon(f"{folder}/sock") as daemon:
        env = environment(folder)
        del env["KFD_DOUBLE_LOG"]
        with subprocess.Popen(python(f"create()\nsys.stdin.readline()\nos.chroot({folder!r})\nprint('moved', flush=True)\nsys.stdin.read()"),
                              env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            daemon.accept()
            queue = daemon.welcome()
            program.stdin.write("\n")
            program.stdin.flush()
            tap.same(program.stdout.readline(), "moved\n")
            tap.same([daemon.want(queue, what) for what in (STOP, RUN, STOP)], [0, 0, 0], "statuses")
            daemon.hang_up()
            program.stdin.close()
            tap.same(program.wait(20), 0, "exit status")


HEADER = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"

# What a container of Docker's has not without more capabilities than Docker gives, on a kernel of 4.8 or newer: calls on the
# machine's modules, clock, swap, mounts, namespaces, quotas, keys, memory placement, tracing of the kernel, and its newest doors.
DOCKER_DENIES = """
    acct add_key bpf clock_adjtime clock_settime create_module delete_module fanotify_init finit_module fsconfig fsmount fsopen fspick
    get_kernel_syms get_mempolicy init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load
    kexec_load keyctl lookup_dcookie mbind mount mount_setattr move_mount move_pages nfsservctl open_by_handle_at open_tree
    perf_event_open pivot_root query_module quotactl quotactl_fd reboot request_key set_mempolicy setdomainname sethostname setns
    settimeofday swapoff swapon sysfs syslog _sysctl umount2 unshare uselib userfaultfd ustat vhangup
"""
OLD_DOCKER_DENIES = DOCKER_DENIES + "process_vm_readv process_vm_writev ptrace"


def numbers(names):
    """Of system calls, for guest.c. What this machine's headers do not know, its programs do not call."""
    known = dict(re.findall(r"#define __NR_(\w+) (\d+)", tap.read(HEADER)))
    return ",".join(known[name] for name in names if name in known)


def documented_calls():
    page = tap.read(tap.SOURCE, "man", "libgpreempt-agent.7")
    return re.findall(r"\w+", page.split(".SS System calls")[1].split(".EX\n")[1].split(".EE")[0])


def work_under(folder, filter_, names):
    """An agent that connects, stops, resumes, drains, samples, loses its daemon and ends with its program."""
    if not os.path.exists(HEADER):
        raise tap.Skip("the list of system calls is that of x86")
    env = environment(folder)
    del env["KFD_DOUBLE_LOG"]  # writing it down takes calls of its own
    with Daemon(f"{folder}/sock") as daemon:
        with subprocess.Popen([GUEST, filter_, numbers(names)], env=env, stdin=subprocess.PIPE) as program:
            while True:  # past the child's, which may come
                try:
                    hello = daemon.accept()
                    queue = daemon.welcome(sample=1)
                    break
                except (AssertionError, ConnectionError):
                    tap.same(program.poll(), None, "the program's end")
            tap.true(hello, "HELLO")
            for what, kind in ((STOP, SAVE), (RUN, SAVE), (STOP, DRAIN)):
                tap.same(daemon.want(queue, what, kind, 10**9), 0, f"want {what}, type {kind}")
            time.sleep(0.3)
            daemon.hang_up()
            tap.true(daemon.accept(), "it comes again")
            program.stdin.close()
            tap.same(program.wait(20), 0, "exit status")


@tap.test("a filter that kills for any call but those of the man page does not kill the program")
def _(folder):
    work_under(folder, "only", documented_calls())


@tap.test("the agent works under Docker's filter, today's and an old one's")
def _(folder):
    for denied in (DOCKER_DENIES, OLD_DOCKER_DENIES):
        work_under(folder, "deny", denied.split())


if not os.path.exists(DOUBLE):
    tap.skip_all("this build is instrumented: its libraries cannot be preloaded")
signal.alarm(280)
tap.main()
