#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs with and without the agent in them. There is no AMD GPU: a second library stands in for the driver."""

import errno
import os
import signal
import socket
import struct
import subprocess
import time

import tap

AGENT = os.path.join(os.path.abspath(tap.BUILD), "libgpreempt-agent.so")
DOUBLE = os.path.join(os.path.abspath(tap.BUILD), "tests", "libkfd_double.so")
DRIVER = "/dev/full"  # a character device that no program here opens otherwise

CREATE, DESTROY, UPDATE = 0xC0604B02, 0xC0084B03, 0x40184B07

# What a program needs to be a client of the driver.
CLIENT = f"""
import errno, fcntl, os, signal, struct, subprocess, sys, threading, time
CREATE, DESTROY, UPDATE = {CREATE:#x}, {DESTROY:#x}, {UPDATE:#x}
driver = os.open({DRIVER!r}, os.O_RDWR)

def call(request, data, fd=None):
    try:
        return fcntl.ioctl(driver if fd is None else fd, request, data, True)
    except OSError as error:
        return -error.errno

def create(priority=7):
    args = bytearray(struct.pack("=QQQQIIIIIIQQQIIII", 4096, 8192, 8200, 0, 4096, 1, 2, 100, priority, 99, 0, 0, 0, 0, 0, 0, 0))
    result = call(CREATE, args)
    return (struct.unpack_from("=I", args, 52)[0] if result == 0 else result), struct.unpack_from("=I", args, 48)[0]

def update(queue, percent):
    return call(UPDATE, bytearray(struct.pack("=QIIII", 4096, queue, 4096, percent, 7)))

def destroy(queue):
    return call(DESTROY, bytearray(struct.pack("=II", queue, 0)))

def threads(pid="self"):
    return sorted(open(f"/proc/{{pid}}/task/{{t}}/comm").read().strip() for t in os.listdir(f"/proc/{{pid}}/task"))

def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
"""


def environment(way, folder, **more):
    """way: "", "preload" or "audit"."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GPREEMPT_", "LD_", "AMD_QUEUE"))}
    env.update(GPREEMPT_KFD=DRIVER, KFD_DOUBLE_LOG=os.path.join(folder, "log"), GPREEMPT_SOCKET=os.path.join(folder, "sock"))
    env["LD_PRELOAD"] = f"{AGENT}:{DOUBLE}" if way == "preload" else DOUBLE
    if way == "audit":
        env["LD_AUDIT"] = AGENT
    env.update(more)
    return env


def run(way, folder, *command, **more):
    done = subprocess.run(command, env=environment(way, folder, **more), capture_output=True, text=True, timeout=120,
                          check=False, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def client(way, folder, script, **more):
    """What a script prints that must succeed."""
    status, out, err = run(way, folder, "/usr/bin/python3", "-c", CLIENT + script, **more)
    tap.same((status, err), (0, ""), f"{way or 'without'}: {out}")
    return out


def same_everywhere(folder, *command, **more):
    plain = run("", folder, *command, **more)
    for way in ("preload", "audit"):
        tap.same(run(way, folder, *command, **more), plain, f"{way}: {' '.join(command)[:60]}")
    return plain


@tap.test("programs that use no GPU print, fail and exit as they do without the agent")
def _(folder):
    same_everywhere(folder, "/bin/true")
    same_everywhere(folder, "/bin/false")
    same_everywhere(folder, "/bin/sh", "-c", "kill -TERM $$")
    same_everywhere(folder, "/bin/ls", "/nonexistent")
    same_everywhere(folder, "/usr/bin/python3", "-c", "import sys, json; print(json.dumps(sys.argv)); sys.exit(3)", "x")
    same_everywhere(folder, "/bin/bash", "-c", "set -o pipefail; seq 1000 | sort -rn | head -5 | tr '\\n' ,; exit $?")


@tap.test("a shell that forks hundreds of times gives the same result")
def _(folder):
    script = "for i in $(seq 150); do (echo $i | cat | (read x; echo $((x * 2)))); done | sort -n | cksum; wait; echo $?"
    tap.same(same_everywhere(folder, "/bin/bash", "-c", script)[0], 0, "status")


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
    plain = same_everywhere(folder, "/usr/bin/python3", "-c", script)
    tap.same(plain[0], 0, plain[2])
    tap.true("0xc0604b02 25" in plain[1] and "0x5401 25" in plain[1], plain[1])


@tap.test("a program without queues has no thread and no descriptor of the agent's")
def _(folder):
    for way in ("", "preload", "audit"):
        out = client(way, folder, """
print(update(0, 100), destroy(0), threads(), max(int(fd) for fd in os.listdir("/proc/self/fd")) < 10)
""")
        tap.same(out, f"{-errno.EFAULT} {-errno.EINVAL} ['python3'] True\n", way)


@tap.test("the driver sees the same calls, and the program the same results")
def _(folder):
    script = """
print(create(), create(), update(0, 50), update(0, 101), update(9, 50), destroy(0), destroy(0), create(), call(CREATE, bytearray(200), 0))
"""
    plain = client("", folder, script)
    log = os.path.join(folder, "log")
    calls = tap.read(log)
    tap.true("create 1 7" in calls and "update 0 50" in calls, calls)
    for way in ("preload", "audit"):
        os.unlink(log)
        tap.same(client(way, folder, script), plain, way)
        tap.same(tap.read(log), calls, way)


@tap.test("with its first queue a process has one thread, which blocks every signal, and descriptors out of the way")
def _(folder):
    for way in ("preload", "audit"):
        out = client(way, folder, """
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
        tap.same(out, "fine\n", way)


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
    for way in ("preload", "audit"):
        tap.same(client(way, folder, script, AMD_QUEUE_PRIORITY="2"), "7 7\n", way)
        tap.same(tap.read(folder, "log").splitlines(), ["create 0 2", "create 1 11"] + [f"create {i} 7" for i in range(2, 7)], way)
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
    for way in ("preload", "audit"):
        tap.same(client(way, folder, script), "fine\n", way)


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
    for way in ("preload", "audit"):
        tap.same(client(way, folder, script), "2\n", way)


@tap.test("a program that ends by exit, return, signal or abort ends at once")
def _(folder):
    for way in ("preload", "audit"):
        for end, want in (("sys.exit(5)", 5), ("os._exit(6)", 6), ("os.kill(0 or os.getpid(), 15)", -15), ("os.abort()", -6)):
            start = time.monotonic()
            done = run(way, folder, "/usr/bin/python3", "-c", CLIENT + f"create()\n{end}\n")
            tap.same(done[0], want, f"{way}: {end}")
            tap.true(time.monotonic() - start < 20, "it hung")


def packet(kind, body=b"", serial=0):
    return struct.pack("<IHHII", 16 + len(body), kind, 1, 0, serial) + body


@tap.test("a daemon is found when it comes, can stop and resume, and its end lets everything run")
def _(folder):
    for way in ("preload", "audit"):
        path, log = os.path.join(folder, "sock"), os.path.join(folder, "log")
        program = subprocess.Popen(["/usr/bin/python3", "-c", CLIENT + "create()\nos.environ['AMD_QUEUE_TAG'] = 'x'\nsys.stdin.read()\n"],
                                   env=environment(way, folder, AMD_QUEUE_TAG="OFFLINE_AI"), stdin=subprocess.PIPE)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
                time.sleep(0.3)
                listener.bind(path)
                listener.listen()
                listener.settimeout(20)
                daemon, _ = listener.accept()
            os.unlink(path)
            daemon.settimeout(20)
            hello = daemon.recv(65536)
            tap.same(struct.unpack_from("<HH", hello, 4), (1, 1), "HELLO")
            tap.same(struct.unpack_from("<IIII", hello, 16), (1, 1, program.pid, 1), "role, ways, pid, class")
            tap.same(hello[32:64].rstrip(b"\0"), b"python3", "name")
            tap.same(hello[64:128].rstrip(b"\0"), b"OFFLINE_AI", "tag")
            daemon.send(packet(2, struct.pack("<QII", 10**10, 0, 0)))
            queue = struct.unpack_from("<Q", daemon.recv(65536), 16)[0]
            items = struct.pack("<QQIIII", 0, 0, 1, 0, 0, 1) + bytes(192)
            daemon.send(packet(8, items + struct.pack("<QIiQ", queue, 2, 0, 0), serial=77))
            done = daemon.recv(65536)
            tap.same(struct.unpack_from("<HHII", done, 4), (9, 1, 0, 77), "DONE")
            tap.same(tap.read(log).splitlines()[-1], "update 0 0", "the driver's last call")
            daemon.close()
            end = time.monotonic() + 20
            while tap.read(log).splitlines()[-1] != "update 0 100" and time.monotonic() < end:
                time.sleep(0.01)
            tap.same(tap.read(log).splitlines()[-1], "update 0 100", "the driver's last call")
        finally:
            program.stdin.close()
            tap.same(program.wait(20), 0, "exit status")
        os.unlink(log)


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
    for way in ("preload", "audit"):
        tap.same(client(way, folder, script), "True\n", way)


@tap.test("preloaded and audited at once, it works once")
def _(folder):
    env = environment("preload", folder, LD_AUDIT=AGENT)
    script = CLIENT + "create()\nwait_for(lambda: len(threads()) > 1)\ntime.sleep(0.1)\nprint(threads())\n"
    done = subprocess.run(["/usr/bin/python3", "-c", script], env=env, capture_output=True, text=True, timeout=60, check=False)
    tap.same((done.stdout, done.stderr), ("['gpreempt-agent', 'python3']\n", ""), "threads")


if not os.path.exists(DOUBLE):
    tap.skip_all("this build is instrumented: its libraries cannot be preloaded")
signal.alarm(280)
tap.main()
