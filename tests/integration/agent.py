#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs with and without the agent in them. There is no AMD GPU: a second library stands in for the driver."""

import errno
import os
import signal
import struct
import subprocess
import time

import tap

from preload import AGENT, DOUBLE, RUN, STOP, Daemon, client, environment, last_call, python, run, same_with_and_without, wait_for


@tap.test("programs that use no GPU print, fail and exit as they do without the agent")
def _(folder):
    same_with_and_without(folder, "/bin/true")
    same_with_and_without(folder, "/bin/false")
    same_with_and_without(folder, "/bin/sh", "-c", "kill -TERM $$")
    same_with_and_without(folder, "/bin/ls", "/nonexistent")
    same_with_and_without(folder, "/usr/bin/python3", "-c", "import sys, json; print(json.dumps(sys.argv)); sys.exit(3)", "x")
    same_with_and_without(folder, "/bin/bash", "-c", "set -o pipefail; seq 1000 | sort -rn | head -5 | tr '\\n' ,; exit $?")


@tap.test("a shell that forks hundreds of times gives the same result")
def _(folder):
    script = "for i in $(seq 150); do (echo $i | cat | (read x; echo $((x * 2)))); done | sort -n | cksum; wait; echo $?"
    tap.same(same_with_and_without(folder, "/bin/bash", "-c", script)[0], 0, "status")


@tap.test("an ioctl that fails has the same errno, on any file")
def _(folder):
    script = """
import errno, fcntl, os, struct, sys
driver = os.open("/dev/full", os.O_RDWR)
null = os.open("/dev/null", os.O_RDWR)
for fd in (0, null, driver, 999):
    for request in (0x5401, 0x5413, 0xC0604B02, 0xC0084B03, 0x40184B07, 0xC0084B25, 0x4B30):
        try:
            print(fd, hex(request), fcntl.ioctl(fd, request, bytearray(200), True))
        except OSError as error:
            print(fd, hex(request), error.errno)
"""
    plain = same_with_and_without(folder, "/usr/bin/python3", "-c", script)
    tap.same(plain[0], 0, plain[2])
    tap.true("0xc0604b02 25" in plain[1] and "0x5401 25" in plain[1], plain[1])


@tap.test("a program without queues has no thread and no descriptor of the agent's")
def _(folder):
    script = "print(update(0, 100), destroy(0), threads(), max(int(fd) for fd in os.listdir('/proc/self/fd')) < 10)"
    for agent in (False, True):
        tap.same(client(folder, script, agent), f"{-errno.EFAULT} {-errno.EINVAL} ['python3'] True\n", f"agent: {agent}")


@tap.test("the driver sees the same calls, and the program the same results")
def _(folder):
    script = """
print(create(), create(), update(0, 50), update(0, 101), update(9, 50), destroy(0), destroy(0), create(), call(CREATE, bytearray(200), 0))
"""
    plain = client(folder, script, agent=False)
    log = os.path.join(folder, "log")
    calls = tap.read(log)
    tap.true("create 1 7" in calls and "update 0 50" in calls, calls)
    os.unlink(log)
    tap.same(client(folder, script), plain)
    tap.same(tap.read(log), calls)


@tap.test("with its first queue a process has one thread, which blocks every signal, and descriptors out of the way")
def _(folder):
    out = client(folder, """
before = set(os.listdir("/proc/self/fd"))
queues = [create()[0] for _ in range(3)]
assert wait_for(lambda: threads() == ["gpreempt-agent", "python3"]), threads()
time.sleep(0.1)
extra = [int(fd) for fd in set(os.listdir("/proc/self/fd")) - before if os.path.exists(f"/proc/self/fd/{fd}")]
assert all(fd >= 200 for fd in extra) and extra, extra
for task in os.listdir("/proc/self/task"):
    status = open(f"/proc/self/task/{task}/status").read()
    blocked = int(status.split("SigBlk:")[1].split()[0], 16)
    if "Name:\\tgpreempt-agent" in status:
        assert blocked & (1 << signal.SIGTERM - 1) and blocked & (1 << signal.SIGCHLD - 1) and blocked & (1 << signal.SIGSEGV - 1)
inherited = subprocess.run(["/bin/ls", "/proc/self/fd"], close_fds=False, capture_output=True, text=True).stdout.split()
assert not [fd for fd in inherited if int(fd) >= 1000], inherited
print("fine")
""")
    tap.same(out, "fine\n")


@tap.test("the environment of the program, as it is when a queue is created, gives it its priority")
def _(folder):
    script = """
first, kept = create(7)
os.environ["AMD_QUEUE_PRIORITY"] = "11"
second, also = create(7)
for text in ("16", "-1", "x", "", "3x"):
    os.environ["AMD_QUEUE_PRIORITY"] = text
    create(7)
print(kept, also)
"""
    tap.same(client(folder, script, AMD_QUEUE_PRIORITY="2"), "7 7\n")
    tap.same(tap.read(folder, "log").splitlines(), ["create 0 2", "create 1 11"] + [f"create {i} 7" for i in range(2, 7)])
    os.unlink(os.path.join(folder, "log"))


@tap.test("children begin anew, by fork and by exec, and end as ever")
def _(folder):
    script = """
create()
assert wait_for(lambda: len(threads()) == 2)
for _ in range(20):
    child = os.fork()
    if child == 0:
        ok = threads() == ["python3"] and update(0, 50) == -errno.EFAULT and create()[0] == 0
        ok = ok and wait_for(lambda: len(threads()) == 2) and update(0, 50) == 0
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
assert update(0, 60) == 0
assert subprocess.run(["/bin/true"]).returncode == 0
os.execv("/bin/echo", ["echo", "fine"])
"""
    tap.same(client(folder, script), "fine\n")


@tap.test("a program that closes every descriptor goes on, and so does the agent")
def _(folder):
    script = """
create()
wait_for(lambda: len(os.listdir("/proc/self/fd")) > 6)
for _ in range(5):
    os.closerange(3, 1100)
    driver = os.open("/dev/full", os.O_RDWR)
    queue = create()[0]
    assert queue > 0 and update(queue, 50) == 0 and destroy(queue) == 0
    time.sleep(0.1)
print(len(threads()))
"""
    tap.same(client(folder, script), "2\n")


@tap.test("a program that ends by exit, return, signal or abort ends at once")
def _(folder):
    for end, want in (("sys.exit(5)", 5), ("os._exit(6)", 6), ("os.kill(0 or os.getpid(), 15)", -15), ("os.abort()", -6)):
        start = time.monotonic()
        done = run(folder, *python(f"create()\n{end}\n"))
        tap.same(done[0], want, end)
        tap.true(time.monotonic() - start < 60, "it hung")


@tap.test("a daemon is found when it comes, can stop and resume, and its end lets everything run")
def _(folder):
    program = subprocess.Popen(python("create()\nos.environ['AMD_QUEUE_TAG'] = 'x'\nsys.stdin.read()\n"),
                               env=environment(folder, AMD_QUEUE_TAG="OFFLINE_AI"), stdin=subprocess.PIPE)
    time.sleep(0.3)
    try:
        with Daemon(f"{folder}/sock") as daemon:
            hello = daemon.accept()
            tap.same(struct.unpack_from("<HH", hello, 4), (1, 1), "HELLO")
            tap.same(struct.unpack_from("<IIII", hello, 16), (1, 1, program.pid, 1), "role, ways, pid, class")
            tap.same(hello[32:64].rstrip(b"\0"), b"python3", "name")
            tap.same(hello[64:128].rstrip(b"\0"), b"OFFLINE_AI", "tag")
            queue = daemon.welcome()
            tap.same(daemon.want(queue, STOP), 0, "status")
            tap.same(last_call(folder), "update 0 0", "the driver's last call")
            tap.same(daemon.want(queue, RUN), 0, "status")
            tap.same(last_call(folder), "update 0 100", "the driver's last call")
            tap.same(daemon.want(queue, STOP), 0, "status")
            daemon.hang_up()
            wait_for(lambda: last_call(folder) == "update 0 100", "resumed")
    finally:
        program.stdin.close()
        tap.same(program.wait(20), 0, "exit status")


@tap.test("while it looks at queues the agent's thread wakes up on time, and the program's keep their timer slack")
def _(folder):
    script = """
import ctypes
get_slack = lambda: ctypes.CDLL(None).prctl(30, 0, 0, 0, 0)
before = get_slack()
create()
print(before, flush=True)
sys.stdin.readline()
slack = []
other = threading.Thread(target=lambda: slack.append(get_slack()))
other.start()
other.join()
print(get_slack(), slack[0], flush=True)
sys.stdin.read()
"""
    program = subprocess.Popen(python(script), env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        with Daemon(f"{folder}/sock") as daemon:
            before = program.stdout.readline().strip()
            daemon.accept()
            tasks = os.listdir(f"/proc/{program.pid}/task")
            thread, = [t for t in tasks if tap.read(f"/proc/{program.pid}/task/{t}/comm") == "gpreempt-agent\n"]
            slack_file = f"/proc/{thread}/timerslack_ns"
            try:
                tap.same(tap.read(slack_file).strip(), before, "the agent's, before")
            except PermissionError as error:
                raise tap.Skip("only root may see another thread's timer slack") from error
            daemon.welcome(sample=1)
            wait_for(lambda: tap.read(slack_file).strip() == "1", "no slack")
            program.stdin.write("\n")
            program.stdin.flush()
            tap.same(program.stdout.readline().split(), [before, before], "the program's")
            daemon.hang_up()
            wait_for(lambda: tap.read(slack_file).strip() == before, "slack as it was")
    finally:
        program.stdin.close()
        tap.same(program.wait(20), 0, "exit status")
        program.stdout.close()


@tap.test("a signal of the program's is handled in the program's thread")
def _(folder):
    script = """
create()
assert wait_for(lambda: len(threads()) == 2)
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(threading.get_native_id()))
for _ in range(50):
    os.kill(os.getpid(), signal.SIGUSR1)
print(set(seen) == {os.getpid()})
"""
    tap.same(client(folder, script), "True\n")


@tap.test("the library has one symbol for programs, ioctl, and three for the levels' library; as an auditor it does nothing")
def _(folder):
    symbols = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", AGENT], capture_output=True, text=True, check=True).stdout
    tap.same([line.split()[0] for line in symbols.splitlines()], ["gpreempt_agent_queues", "gpreempt_agent_rang", "gpreempt_agent_ring", "ioctl"], "symbols")
    status, out, _ = run(folder, *python("create()\ntime.sleep(0.2)\nprint(threads())"), agent=False, LD_AUDIT=AGENT)
    tap.same((status, out), (0, "['python3']\n"), "threads")


if not os.path.exists(DOUBLE):
    tap.skip_all("this build is instrumented: its libraries cannot be preloaded")
signal.alarm(280)
tap.main()
