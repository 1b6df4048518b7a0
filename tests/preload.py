# SPDX-License-Identifier: MIT
"""Programs with and without the agent in them, on a second library that stands in for the driver. Not a test itself."""

import os
import socket
import struct
import subprocess
import time

import tap

AGENT = os.path.join(os.path.abspath(tap.BUILD), "libgpreempt-agent.so")
DOUBLE = os.path.join(os.path.abspath(tap.BUILD), "tests", "libkfd_double.so")
DRIVER = "/dev/full"  # a character device that no program here opens otherwise
SOON = 60.0  # s; nothing here takes that long unless it is broken

CREATE, DESTROY, UPDATE = 0xC0604B02, 0xC0084B03, 0x40184B07
HELLO, WELCOME, QUEUE, WANTS, DONE = 1, 2, 5, 8, 9
RUN, STOP = 0, 2
SAVE, DRAIN = 0, 1


def need_preload():
    if not os.path.exists(DOUBLE):
        raise tap.Skip("this build is instrumented: its libraries cannot be preloaded")


# What a Python program needs to be a client of the driver.
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

def wait_for(condition, seconds={SOON}):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
"""


def environment(folder, agent=True, **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GPREEMPT_", "LD_", "AMD_QUEUE"))}
    env.update(GPREEMPT_KFD=DRIVER, KFD_DOUBLE_LOG=os.path.join(folder, "log"), GPREEMPT_SOCKET=os.path.join(folder, "sock"))
    env["LD_PRELOAD"] = f"{AGENT}:{DOUBLE}" if agent else DOUBLE
    env.update(more)
    return env


def run(folder, *command, agent=True, **more):
    done = subprocess.run(command, env=environment(folder, agent, **more), capture_output=True, text=True, timeout=120,
                          check=False, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def python(script):
    return "/usr/bin/python3", "-c", CLIENT + script


def client(folder, script, agent=True, **more):
    """What a script prints that must succeed."""
    status, out, err = run(folder, *python(script), agent=agent, **more)
    tap.same((status, err), (0, ""), out)
    return out


def same_with_and_without(folder, *command, **more):
    plain = run(folder, *command, agent=False, **more)
    tap.same(run(folder, *command, **more), plain, " ".join(command)[:60])
    return plain


def wait_for(condition, what, seconds=SOON):
    end = time.monotonic() + seconds
    while not condition():
        tap.true(time.monotonic() < end, f"{what}: not within {seconds} s")
        time.sleep(0.01)


def last_call(folder):
    """The driver's, as the double wrote it down."""
    path = os.path.join(folder, "log")
    lines = tap.read(path).splitlines() if os.path.exists(path) else []
    return lines[-1] if lines else ""


def packet(kind, body=b"", serial=0):
    return struct.pack("<IHHII", 16 + len(body), kind, 1, 0, serial) + body


class Daemon:
    """Listens where an agent looks for gpreemptd."""

    def __init__(self, path):
        self.path = path
        self.peer = None
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen()
        self.listener.settimeout(SOON)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        if self.peer:
            self.peer.close()
        os.unlink(self.path)

    def receive(self, kind):
        """The next message of that type."""
        while True:
            data = self.peer.recv(65536)
            tap.true(data, f"the agent went before a message of type {kind}")
            if struct.unpack_from("<H", data, 4)[0] == kind:
                return data

    def accept(self):
        """The HELLO of the next agent that comes."""
        self.peer, _ = self.listener.accept()
        self.peer.settimeout(SOON)
        return self.receive(HELLO)

    def welcome(self, lease=10**10, sample=0):
        """The number of the agent's first queue."""
        self.peer.send(packet(WELCOME, struct.pack("<QII", lease, 0, sample)))
        return struct.unpack_from("<Q", self.receive(QUEUE), 16)[0]

    def want(self, queue, what, kind=0, timeout=0):
        """The status of it."""
        items = struct.pack("<QQIIII", 0, timeout, 1, kind, 0, 1) + bytes(192)
        self.peer.send(packet(WANTS, items + struct.pack("<QIiQ", queue, what, 0, 0), serial=77))
        return struct.unpack_from("<QIi", self.receive(DONE), 16 + 32 + 192)[2]

    def hang_up(self):
        self.peer.close()
        self.peer = None
