#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs on NVIDIA's driver, scheduled by a real gpreemptd. There is no GPU: a second library stands in for the driver."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile

import tap

from gpreemptd import daemon, put, until
from preload import AGENT

DOUBLE = os.path.join(os.path.abspath(tap.BUILD), "tests", "librm_double.so")
DRIVER = "/dev/full"  # a character device that no program here opens otherwise
ADDRESS, GPU = "0000:41:00.0", 0x4100
UUID = "GPU-6d5b3a1c-2f60-4a9e-8f0e-1b2c3d4e5f60"
DISABLE_CHANNELS, SET_TIMESLICE = 0x2080110B, 0xA06C0103
GROUPS, CHANNELS = 2, 8  # of a context: one group for compute, one to copy
ALL = GROUPS * CHANNELS
DEFAULT_SLICE = 2048  # us

# A context as CUDA makes one. Words on its input: one more channel, the compute group's end, another context, a child that has one.
PROGRAM = f"""
import ctypes, fcntl, os, struct, sys
driver = os.open({DRIVER!r}, os.O_RDWR)

def alloc(client, parent, kind, *words):
    params = ctypes.create_string_buffer(struct.pack(f"={{len(words)}}I", *words), 64)
    args = bytearray(struct.pack("=IIIIQQIIII", client, parent, 0, kind, ctypes.addressof(params), 0, 0, 0, 99, 0))
    fcntl.ioctl(driver, 0xC030462B, args, True)
    assert struct.unpack_from("=I", args, 40)[0] == 0, args
    return struct.unpack_from("=I", args, 8)[0]

def context():
    client = alloc(0, 0, 0x41)
    device = alloc(client, client, 0x80, {GPU})
    alloc(client, device, 0x2080, 0)
    groups = [alloc(client, device, 0xA06C, 0, 0, 0, engine) for engine in (1, 9)]
    for group in groups:
        for _ in range({CHANNELS}):
            alloc(client, group, 0xC86F)
    return client, device, groups

client, device, groups = context()
print("ready", flush=True)
for line in sys.stdin:
    if line == "context\\n":
        context()
    if line == "fork\\n" and os.fork() == 0:
        context()
        os.read(0, 1)  # until the program ends
        os._exit(0)
    if line == "channel\\n":
        alloc(client, groups[0], 0xC86F)
    if line == "free\\n":
        fcntl.ioctl(driver, 0xC0104629, bytearray(struct.pack("=IIII", client, device, groups.pop(0), 99)), True)
    print("done", flush=True)
"""


class Program:
    """A process with a context, and what its driver was told."""

    def __init__(self, path, name="offline", **more):
        self.log = tempfile.mktemp(dir=os.path.dirname(path))
        env = dict(os.environ, LD_PRELOAD=f"{AGENT}:{DOUBLE}", GPREEMPT_NVIDIACTL=DRIVER, GPREEMPT_SOCKET=path, RM_DOUBLE_LOG=self.log,
                   GPREEMPT_CLASS=name, **more)
        self.process = subprocess.Popen(["/usr/bin/python3", "-c", PROGRAM], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        tap.same(self.process.stdout.readline(), "ready\n", "the program")

    def calls(self):
        return tap.read(self.log).splitlines() if os.path.exists(self.log) else []

    def switches(self):
        return [call for call in self.calls() if "able" in call]

    def slices(self):
        return [call for call in self.calls() if "slice" in call]

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        tap.same(self.process.stdout.readline(), "done\n", word)

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(20)


@contextlib.contextmanager
def machine(folder, *options):
    """With one NVIDIA GPU and gpreemptd."""
    if not os.path.exists(DOUBLE):
        raise tap.Skip("this build is instrumented: its libraries cannot be preloaded")
    put(f"{folder}/root", f"proc/driver/nvidia/gpus/{ADDRESS}/information",
        f"Model: \t\t NVIDIA H200\nIRQ:   \t\t 99\nGPU UUID: \t {UUID}\nBus Location: \t {ADDRESS}\nDevice Minor: \t 0\n")
    with daemon(folder, *options) as d:
        programs = []

        def program(*args, **more):
            programs.append(Program(d.path, *args, **more))
            return programs[-1]

        yield d, program
        for one in programs:
            if one.process.poll() is None:
                tap.same(one.end(), 0, "a program's end")


def listed(d):
    return json.loads(tap.good("list", "--json", "--socket", d.path).stdout)


def queues(d, program):
    return [q for q in listed(d)["queues"] if q["pid"] == program.process.pid]


def known(d, program, n=GROUPS):
    until(lambda: len(queues(d, program)) == n, f"{n} queues are listed")


@contextlib.contextmanager
def suspended(d, program, *options):
    with subprocess.Popen([tap.PROGRAM, "suspend", str(program.process.pid), "--socket", d.path, *options], stdout=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT) as tool:
        try:
            yield tool.stdout.readline()
        finally:
            tool.send_signal(signal.SIGINT)
            tool.wait(20)


@tap.test("a program's channel groups are listed, with their GPU, kind and way")
def _(folder):
    with machine(folder) as (d, program):
        one = program()
        known(d, one)
        device = listed(d)["devices"][0]
        tap.same((device["name"], device["pci"], device["backend"]), ("NVIDIA H200", ADDRESS, "nvrm"))
        found = sorted((q["kind"], q["device"], q["gpu_id"]) for q in queues(d, one))
        tap.same(found, sorted([("compute", device["device"], GPU), ("SDMA", device["device"], GPU)]))


@tap.test("queue slots cannot be reserved, and it is said where they can")
def _(folder):
    with machine(folder) as (d, _):
        done = tap.run("reserve", "0", "50", env=dict(os.environ, GPREEMPT_SOCKET=d.path))
        tap.true(done.returncode == 1 and "reserved on AMD GPUs alone" in done.stderr, done.stderr)


@tap.test("suspend parks all channels in one call, and the end of it enables them")
def _(folder):
    with machine(folder) as (d, program):
        one, other = program(), program()
        known(d, one)
        with suspended(d, one) as said:
            tap.true(f"Suspended {GROUPS} queues" in said, said)
            tap.same(one.switches(), [f"disable {ALL}"])
            one.tell("channel")
            tap.same(one.switches()[1:], ["disable 1"])
        until(lambda: one.switches()[2:] == [f"enable {ALL + 1}"], "they are enabled")
        tap.same(other.calls(), [])


@tap.test("all contexts of a program are parked, and those of its child are another's")
def _(folder):
    with machine(folder) as (d, program):
        one = program()
        one.tell("context")
        known(d, one, 2 * GROUPS)
        one.tell("fork")
        until(lambda: len(listed(d)["queues"]) == 3 * GROUPS, "the child's queues are listed")
        with suspended(d, one) as said:
            tap.true(f"Suspended {2 * GROUPS} queues" in said, said)
            tap.same(one.switches(), 2 * [f"disable {ALL}"])
            states = [q["state"] for q in listed(d)["queues"] if q["pid"] != one.process.pid]
            tap.same(states, GROUPS * ["running"])
        until(lambda: one.switches()[2:] == 2 * [f"enable {ALL}"], "they are enabled")


@tap.test("a killed gpreemptd leaves nobody parked")
def _(folder):
    with machine(folder, "--lease", "300ms") as (d, program):
        one = program()
        known(d, one)
        with suspended(d, one):
            until(lambda: one.switches() == [f"disable {ALL}"], "it is parked")
            d.process.send_signal(signal.SIGKILL)
            until(lambda: one.switches()[1:] == [f"enable {ALL}"], "its agent enables them")


@tap.test("a gpreemptd that hangs leaves nobody parked for longer than the lease")
def _(folder):
    with machine(folder, "--lease", "300ms") as (d, program):
        one = program()
        known(d, one)
        with suspended(d, one):
            until(lambda: one.switches() == [f"disable {ALL}"], "it is parked")
            d.process.send_signal(signal.SIGSTOP)
            until(lambda: one.switches()[1:] == [f"enable {ALL}"], "its agent enables them")
            d.process.send_signal(signal.SIGCONT)


@tap.test("a group that is freed while it is parked is gone, and so is a program that is killed then")
def _(folder):
    with machine(folder) as (d, program):
        one = program()
        known(d, one)
        with suspended(d, one):
            until(lambda: one.switches() == [f"disable {ALL}"], "it is parked")
            one.tell("free")
            known(d, one, GROUPS - 1)
            one.process.kill()
            one.process.wait()
            known(d, one, 0)


@tap.test("offline runs with the short slice while an online program is there, and gets its own back")
def _(folder):
    with machine(folder) as (d, program):
        offline = program()
        known(d, offline)
        tap.same(offline.calls(), [])
        online = program("online")
        until(lambda: offline.slices() == ["slice 1"], "the compute group is in the background")
        tap.same(online.end(), 0, "the online program's end")
        until(lambda: offline.slices() == ["slice 1", f"slice {DEFAULT_SLICE}"], "it has its own slice again")
        tap.same((online.calls(), offline.switches()), ([], []))


@tap.test("a killed gpreemptd leaves nobody with the short slice, and the next one sets it again")
def _(folder):
    with machine(folder, "--lease", "300ms") as (d, program):
        offline, _online = program(), program("online")
        until(lambda: offline.slices() == ["slice 1"], "it is in the background")
        d.process.send_signal(signal.SIGKILL)
        until(lambda: offline.slices()[1:] == [f"slice {DEFAULT_SLICE}"], "it has its own slice again")
        d.process.wait()
        with daemon(folder):
            until(lambda: offline.slices()[2:] == ["slice 1"], "it is in the background again")


@tap.test("a gpreemptd that hangs leaves nobody with the short slice, and sets it again when it goes on")
def _(folder):
    with machine(folder, "--lease", "300ms") as (d, program):
        offline, _online = program(), program("online")
        until(lambda: offline.slices() == ["slice 1"], "it is in the background")
        d.process.send_signal(signal.SIGSTOP)
        until(lambda: offline.slices()[1:] == [f"slice {DEFAULT_SLICE}"], "it has its own slice again")
        d.process.send_signal(signal.SIGCONT)
        until(lambda: offline.slices()[2:] == ["slice 1"], "it is in the background again")


@tap.test("a driver that cannot disable channels is said to, and the program runs")
def _(folder):
    with machine(folder) as (d, program):
        one = program(RM_DOUBLE_REFUSES=hex(DISABLE_CHANNELS))
        known(d, one)
        done = tap.run("suspend", str(one.process.pid), "--socket", d.path)
        tap.same(done.returncode, tap.FAILED, done.stderr)
        tap.true("park failed: Operation not supported" in done.stderr + done.stdout, f"{done.stdout}{done.stderr}")
        tap.same((one.calls(), {q["state"] for q in queues(d, one)}), ([], {"running"}))


@tap.test("doctor names the driver's version, its GPUs, MIG and MPS")
def _(folder):
    if os.getuid() != 0:
        raise tap.Skip("only root can put files in the place of the driver's")
    os.makedirs(f"{folder}/dev")
    os.makedirs(f"{folder}/mps")
    tap.write(f"{folder}/mps/control", "")
    script = (f"mount --bind {tap.SOURCE}/tests/unit/trees/nvidia/proc/driver /proc/driver && mount -t tmpfs none {folder}/dev &&"
              f"mknod {folder}/dev/nvidiactl c 1 7 && mknod {folder}/dev/null c 1 3 && mount --bind {folder}/dev /dev && exec {tap.PROGRAM} doctor --json")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], env=dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=f"{folder}/mps"), capture_output=True,
                          text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        raise tap.Skip(f"this machine does not let us: {done.stderr}")
    said = [(check["what"], check["detail"]) for check in json.loads(done.stdout)["checks"]]
    gpus = [detail for what, detail in said if what == "NVIDIA GPU"]
    tap.same(gpus[0], f"NVIDIA H200, {ADDRESS}, {UUID}")
    tap.true(len(gpus) == 2 and "MIG: 2 instances" in gpus[1], gpus)
    tap.true(dict(said)["NVIDIA version"].startswith("580.159.04: "), said)
    tap.true(f"{folder}/mps/control" in dict(said)["MPS"], said)


if __name__ == "__main__":
    tap.main()
