#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs on NVIDIA's driver, scheduled by a real gpreemptd. There is no GPU: a second library stands in for the driver."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

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

# A context as CUDA makes one. Words on its input: one more channel, the compute group's end, another context,
# a child that has one, and how many channels the driver has disabled and groups with another slice than the usual.
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
    if line == "look\\n":
        disabled, short = ctypes.c_uint32(), ctypes.c_uint32()
        ctypes.CDLL(None).rm_double_look(ctypes.byref(disabled), ctypes.byref(short))
        print(disabled.value, short.value, flush=True)
        continue
    if line == "cuda\\n":
        cuda, stream = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        assert cuda.cuInit(0) == 0 and cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
    if line == "channel\\n":
        alloc(client, groups[0], 0xC86F)
    if line == "free\\n":
        fcntl.ioctl(driver, 0xC0104629, bytearray(struct.pack("=IIII", client, device, groups.pop(0), 99)), True)
    print("done", flush=True)
"""


class Program:
    """A process with a context, and what its driver was told."""

    def __init__(self, path, name="offline", called="/usr/bin/python3", **more):
        self.begin(path, [called, "-c", PROGRAM], executable="/usr/bin/python3", LD_PRELOAD=f"{AGENT}:{DOUBLE}", GPREEMPT_CLASS=name, **more)

    def begin(self, path, command, executable=None, **more):
        self.log = tempfile.mktemp(dir=os.path.dirname(path))
        env = dict(os.environ, GPREEMPT_NVIDIACTL=DRIVER, GPREEMPT_SOCKET=path, RM_DOUBLE_LOG=self.log, **more)
        self.process = subprocess.Popen(command, executable=executable, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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

    def looks(self):
        """To its driver: channels that are disabled, groups whose slice is not the usual one."""
        self.process.stdin.write("look\n")
        self.process.stdin.flush()
        return tuple(map(int, self.process.stdout.readline().split()))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(20)


class Run(Program):
    """The same by gpreempt run; the driver's double alone is preloaded before."""

    def __init__(self, path, *options, **more):
        self.begin(path, [tap.PROGRAM, "run", *options, "--", "/usr/bin/python3", "-c", PROGRAM + "\nsys.exit(7)"], LD_PRELOAD=DOUBLE, **more)


CUDA_TESTS = os.path.join(os.path.abspath(tap.BUILD), "tests")
DOOR = {"CUDA_INJECTION64_PATH": os.path.join(os.path.abspath(tap.BUILD), "libgpreempt-level.so"), "LD_LIBRARY_PATH": CUDA_TESTS,
        "GPREEMPT_CUPTI": f"{CUDA_TESTS}/libcupti.so.13", "CUDA_DOUBLE_ADDRESS": ADDRESS}

# A program of CUDA's, with our door and without an agent. Words on its input: launch N kernels, make another stream, how many kernels have ended.
GATED = """
import ctypes, sys
cuda, streams = ctypes.CDLL("libcuda.so.1"), []
cuda.cuda_double_kernels.restype = ctypes.c_uint64

def another():
    streams.append(ctypes.c_void_p())
    assert cuda.cuStreamCreate(ctypes.byref(streams[-1]), 1) == 0

assert cuda.cuInit(0) == 0
another()
ns, nowhere = ctypes.c_uint64(1000000), ctypes.c_uint64(0)
args = (ctypes.c_void_p * 2)(ctypes.addressof(ns), ctypes.addressof(nowhere))
print("ready", flush=True)
for line in sys.stdin:
    word, *number = line.split()
    if word == "another":
        another()
    for _ in range(int(number[0]) if word == "launch" else 0):
        assert cuda.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, streams[-1], args, None) == 0
    print(sum(cuda.cuda_double_kernels(stream) for stream in streams), flush=True)
"""


class Gated:
    def __init__(self, path, name="offline", **more):
        env = dict(os.environ, GPREEMPT_SOCKET=path, GPREEMPT_CLASS=name, **DOOR, **more)
        self.process = subprocess.Popen(["/usr/bin/python3", "-c", GATED], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        tap.same(self.process.stdout.readline(), "ready\n", "the program")

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def ran(self):
        return self.tell("look")

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

        def program(*args, kind=Program, **more):
            programs.append(kind(d.path, *args, **more))
            return programs[-1]

        yield d, program
        for one in programs:
            if one.process.poll() is None:
                tap.same(one.end(), 7 if isinstance(one, Run) else 0, "a program's end")


def listed(d):
    return json.loads(tap.good("list", "--json", "--socket", d.path).stdout)


def queues(d, program):
    return [q for q in listed(d)["queues"] if q["pid"] == program.process.pid]


def known(d, program, n=GROUPS):
    until(lambda: len(queues(d, program)) == n, f"{n} queues are listed")


def stats(d):
    return json.loads(tap.good("stats", "--json", "--socket", d.path).stdout)["devices"][0]


def findings(d, what):
    """What doctor says there, state and detail."""
    done = tap.run("doctor", "--json", env=dict(os.environ, GPREEMPT_SOCKET=d.path))
    return [(check["state"], check["detail"]) for check in json.loads(done.stdout)["checks"] if check["what"] == what]


def with_driver(folder, *words, **more):
    """The program's verb, where the driver's files are; what it printed."""
    if os.getuid() != 0:
        raise tap.Skip("only root can put files in the place of the driver's")
    os.makedirs(f"{folder}/dev", exist_ok=True)
    script = (f"mount --bind {tap.SOURCE}/tests/unit/trees/nvidia/proc/driver /proc/driver && mount -t tmpfs none {folder}/dev &&"
              f"mknod {folder}/dev/nvidiactl c 1 7 && mknod {folder}/dev/null c 1 3 && mount --bind {folder}/dev /dev && exec {tap.PROGRAM} {' '.join(words)}")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], env=dict(os.environ, **more), capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        raise tap.Skip(f"this machine does not let us: {done.stderr}")
    return done.stdout


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


@tap.test("verify takes a program off the GPU and gives it back, and skips the reservation")
def _(folder):
    with machine(folder) as (d, program):
        one = program()
        known(d, one)
        words = "--pid", str(one.process.pid), "--json"
        found = [json.loads(tap.run("verify", check, *words, env=dict(os.environ, GPREEMPT_SOCKET=d.path)).stdout) for check in ("basic", "reservation")]
        tap.same([(check["device"]["text"], check["checks"][0]["status"], check["checks"][0]["reason"]) for check in found],
                 [("measured on NVIDIA H200", "passed", ""),
                  ("measured on NVIDIA H200", "skipped", "this device has no queue slots that could be reserved")])
        tap.same([call.split()[0] for call in one.switches()], ["disable", "enable"], "what the driver was told")


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


def is_parked(program):
    return program.switches()[-1:] == [f"disable {ALL}"]


def run_free(program):
    """Its channels are enabled, and its slice is its own."""
    return not is_parked(program) and program.slices()[-1:] in ([], [f"slice {DEFAULT_SLICE}"])


@tap.test("several offline programs beside an online one run one at a time, in turns, and all together when it is gone")
def _(folder):
    with machine(folder) as (d, program):
        several = [program() for _ in range(3)]
        for one in several:
            known(d, one)
        online = program("online")
        until(lambda: sum(map(is_parked, several)) == 2, "all but one are parked")
        until(lambda: all(f"enable {ALL}" in one.calls() for one in several), "each had a turn after it was parked")
        tap.true(all("slice 1" in one.slices() for one in several), [one.calls() for one in several])
        tap.same(online.end(), 0, "the online program's end")
        until(lambda: all(map(run_free, several)), "all run as they did before")
        tap.same(online.calls(), [])


@tap.test("the one whose turn it is ends, and the next has its turn; the last one is not parked any more")
def _(folder):
    with machine(folder) as (d, program):
        several, _online = [program() for _ in range(3)], program("online")
        while several:
            until(lambda: sum(map(is_parked, several)) == len(several) - 1, "all but one are parked")
            first = next((one for one in several if not is_parked(one)), several[0])
            tap.same(first.end(), 0)
            several.remove(first)
        known(d, first, 0)


@tap.test("a killed gpreemptd leaves none of several offline programs parked or with the short slice")
def _(folder):
    with machine(folder, "--lease", "300ms") as (d, program):
        several, _online = [program() for _ in range(3)], program("online")
        until(lambda: sum(map(is_parked, several)) == 2, "all but one are parked")
        d.process.send_signal(signal.SIGKILL)
        until(lambda: all(map(run_free, several)), "their agents let all run")


def open_two(d, online):
    """Requests of one that may be about to be killed."""
    for number in ("1", "2"):
        tap.run("hint", "begin", "--client", str(online.process.pid), "--number", number, "--for", "60s", "--socket", d.path)


@tap.test("gpreemptd, online and offline programs are killed again and again, with requests open: who is left runs as it did before, once online is gone")
def _(folder):
    chance, lease = random.Random(1), ("--lease", "500ms")
    # As long as on a card; some fail, and of these some are done all the same
    driver = {"RM_DOUBLE_TAKES": f"{DISABLE_CHANNELS:#x}=600,{SET_TIMESLICE:#x}=300", "RM_DOUBLE_FAILS": f"{DISABLE_CHANNELS:#x}=50,{SET_TIMESLICE:#x}=50"}
    with machine(folder, *lease) as (d, program):
        stays, others = program(**driver), {name: program(name, **driver) for name in ("offline", "online")}
        d.process.kill()
        for _ in range(5):
            with daemon(folder, *lease) as d:
                for _ in range(6):
                    open_two(d, others["online"])
                    time.sleep(chance.uniform(0, 0.1))
                    name = chance.choice(sorted(others))
                    others[name].kill()
                    others[name] = program(name, **driver)
                d.process.kill()
            until(lambda: stays.looks() == others["offline"].looks() == (0, 0), "without gpreemptd both run as they did before")
        with daemon(folder, *lease) as d:
            for one in (stays, *others.values()):
                known(d, one)
            open_two(d, others["online"])
            until(lambda: stays.looks()[0] == others["offline"].looks()[0] == ALL, "both are parked")
            others["online"].kill()
            until(lambda: stays.looks() == others["offline"].looks() == (0, 0), "both run as they did before")
            until(lambda: (stats(d)["yielding"], stats(d)["stopped"]) == (0, 0), "stats says so too")


@tap.test("a driver that cannot disable channels is said to, and the program runs")
def _(folder):
    with machine(folder) as (d, program):
        one = program(RM_DOUBLE_REFUSES=hex(DISABLE_CHANNELS))
        known(d, one)
        done = tap.run("suspend", str(one.process.pid), "--socket", d.path)
        tap.same(done.returncode, tap.FAILED, done.stderr)
        tap.true("park failed: Operation not supported" in done.stderr + done.stdout, f"{done.stdout}{done.stderr}")
        tap.same((one.calls(), {q["state"] for q in queues(d, one)}), ([], {"running"}))


@tap.test("whose driver refuses the short slice is parked while a request is open, and events and doctor say so")
def _(folder):
    with machine(folder) as (d, program):
        offline, online = program(RM_DOUBLE_REFUSES=hex(SET_TIMESLICE)), program("online")
        known(d, online)
        until(lambda: "cannot yield" in tap.good("events", "--kind", "failed", "--socket", d.path).stdout, "it is in the record")
        doctor = tap.run("doctor", "--json", env=dict(os.environ, GPREEMPT_SOCKET=d.path))
        said = [check["detail"] for check in json.loads(doctor.stdout)["checks"] if check["what"] == "trouble"]
        tap.true(len(said) == 1 and "cannot yield: Operation not supported" in said[0], doctor.stdout)
        tap.same(offline.calls(), [])
        hint = ("--client", str(online.process.pid), "--number", "7", "--socket", d.path)
        tap.good("hint", "begin", *hint, "--for", "20s")
        until(lambda: offline.calls() == [f"disable {ALL}"], "it is parked")
        tap.good("hint", "end", *hint)
        until(lambda: offline.calls()[1:] == [f"enable {ALL}"], "it goes on")


@tap.test("several programs that the driver cannot stop all have the short slice, nobody asks again, and events, stats and doctor say why")
def _(folder):
    with machine(folder) as (d, program):
        offline = [program(RM_DOUBLE_REFUSES=hex(DISABLE_CHANNELS)) for _ in range(3)]
        online = program("online")
        known(d, online)
        said = "cannot be stopped: Operation not supported; it stays in the background instead"
        until(lambda: all(one.slices()[:1] == ["slice 1"] for one in offline), "all have the short slice")
        tap.true(said in stats(d)["reason"], stats(d))
        tap.true(said in findings(d, "trouble")[0][1], findings(d, "trouble"))
        tap.true(said in tap.good("events", "--kind", "failed", "--socket", d.path).stdout, "the record")
        until(lambda: tap.good("events", "--kind", "failed", "--socket", d.path).stdout.count(said) == 3, "each was asked, at its first turn")
        asked = stats(d)["failures"]
        time.sleep(0.6)  # two turns and more
        tap.same(stats(d)["failures"], asked, "how often it was refused")
        tap.same([one.switches() for one in offline], [[], [], []], "disabled, or enabled")
        tap.same(online.end(), 0, "the online program's end")
        until(lambda: all(one.slices()[-1] == f"slice {DEFAULT_SLICE}" for one in offline), "they have their own slices again")


@tap.test("gpreempt run brings the agent and the class, and nothing else: exit status and process are the program's own")
def _(folder):
    with machine(folder) as (d, program):
        offline = program("--offline", "--weight", "300", kind=Run)
        known(d, offline)
        online = program("--online", "--slo", "20ms", kind=Run)
        known(d, online)
        tap.same({(q["class"], q["way"]) for one in (offline, online) for q in queues(d, one)}, {("offline", "park"), ("online", "park")}, "classes")
        until(lambda: offline.slices() == ["slice 1"], "it is in the background")
        with suspended(d, offline) as said:
            tap.true(f"Suspended {GROUPS} queues" in said, said)
            tap.true(is_parked(offline), f"{offline.calls()}")
        until(lambda: not is_parked(offline), "they are enabled")
        tap.same((online.end(), online.calls()), (7, []), "the online program's end")
        until(lambda: run_free(offline), "it runs as it did before")


def refusals(d, program):
    """What the record has of calls for it that failed."""
    lines = tap.good("events", "--kind", "failed", "--socket", d.path).stdout.splitlines()
    return [line for line in lines if f" {program.process.pid} " in line]


BOTH_REFUSED = {"RM_DOUBLE_REFUSES": f"{SET_TIMESLICE:#x},{DISABLE_CHANNELS:#x}"}


@tap.test("who can neither yield nor be parked runs on beside online, nobody asks again and again, and all are told why")
def _(folder):
    with machine(folder) as (d, program):
        offline, other, online = program(**BOTH_REFUSED), program(), program("online")
        for one in (offline, other, online):
            known(d, one)
        until(lambda: len(refusals(d, offline)) >= 4, "both calls of both queues were refused")
        until(lambda: "Operation not supported" in str(findings(d, "trouble")) and "Operation not supported" in stats(d)["reason"], "doctor and stats have it")
        hint = ("--client", str(online.process.pid), "--number", "7", "--socket", d.path)
        tap.good("hint", "begin", *hint, "--for", "60s")
        until(lambda: is_parked(other), "the other one waits all the same")
        asked = stats(d)["failures"]
        time.sleep(1)
        tap.true(stats(d)["failures"] - asked <= 40, f"refused {asked} times, and within a second {stats(d)['failures']}")  # less often each time
        tap.same((offline.calls(), {q["state"] for q in queues(d, offline)}), ([], {"running"}), "it runs")
        done = tap.run("suspend", str(offline.process.pid), "--socket", d.path)
        tap.same((done.returncode, "Operation not supported" in done.stderr + done.stdout), (tap.FAILED, True), f"{done.stdout}{done.stderr}")
        tap.good("hint", "end", *hint)
        tap.same(online.end(), 0, "the online program's end")
        until(lambda: run_free(other), "the other one runs as it did before")


@tap.test("each status that the driver may refuse with is said in its own words, and the program runs")
def _(folder):
    words = {0x1B: "Operation not permitted", 0x1F: "Invalid argument", 0x0F: "No such device", 0x40: "Input/output error", 0x66: "Device or resource busy"}
    with machine(folder) as (d, program):
        for status, said in words.items():
            one = program(RM_DOUBLE_REFUSES=f"{SET_TIMESLICE:#x}={status:#x},{DISABLE_CHANNELS:#x}={status:#x}")
            known(d, one)
            done = tap.run("suspend", str(one.process.pid), "--socket", d.path)
            tap.true(done.returncode == tap.FAILED and f"park failed: {said}" in done.stdout + done.stderr, f"{status:#x}: {done.stdout}{done.stderr}")
            before, online = len(refusals(d, one)), program("online")
            until(lambda before=before, one=one: len(refusals(d, one)) > before, f"{status:#x}: it is asked to yield")
            tap.true(all(said in line for line in refusals(d, one)), f"{status:#x}: {refusals(d, one)}")
            tap.same((one.calls(), {q["state"] for q in queues(d, one)}), ([], {"running"}), f"{status:#x}")
            tap.same((online.end(), one.end()), (0, 0), f"{status:#x}: ends")


@tap.test("doctor names the driver's version, its GPUs, MIG and MPS")
def _(folder):
    os.makedirs(f"{folder}/mps")
    tap.write(f"{folder}/mps/control", "")
    found = json.loads(with_driver(folder, "doctor", "--json", CUDA_MPS_PIPE_DIRECTORY=f"{folder}/mps"))
    said = [(check["what"], check["detail"]) for check in found["checks"]]
    gpus = [detail for what, detail in said if what == "NVIDIA GPU"]
    tap.same(gpus[0], f"NVIDIA H200, {ADDRESS}, {UUID}")
    tap.true(len(gpus) == 2 and "MIG: 2 instances" in gpus[1], gpus)
    tap.true(dict(said)["NVIDIA version"].startswith("580.159.04: "), said)
    tap.true(f"{folder}/mps/control" in dict(said)["MPS"], said)
    tap.same((found["nvidia"], found["amd"], found["works"]), (True, False, True))
    tap.true("must give hints" in found["advice"] and "gpreempt suspend PID" in found["advice"], found["advice"])


@tap.test("a program that the driver cannot stop has its gates closed, and opened, also those of streams that come meanwhile")
def _(folder):
    with machine(folder) as (d, program):
        one = program(kind=Gated)
        known(d, one, 1)
        with suspended(d, one) as said:
            tap.true("Suspended 1 queue" in said, said)
            one.tell("launch 20")
            one.tell("another")
            one.tell("launch 20")
            time.sleep(0.3)
            tap.same((one.ran(), [q["state"] for q in queues(d, one)]), (0, ["suspended"]))
        until(lambda: one.ran() == 40, "all run")


@tap.test("while a request is open the gates of an offline program are closed, though it has no agent")
def _(folder):
    with machine(folder) as (d, program):
        offline, online = program(kind=Gated), program("online")
        known(d, offline, 1)
        known(d, online)
        hint = ("--client", str(online.process.pid), "--number", "7", "--socket", d.path)
        tap.good("hint", "begin", *hint, "--for", "20s")
        until(lambda: queues(d, offline)[0]["state"] == "suspended", "it is closed")
        offline.tell("launch 5")
        time.sleep(0.2)
        tap.same(offline.ran(), 0)
        tap.good("hint", "end", *hint)
        until(lambda: offline.ran() == 5, "it goes on")


@tap.test("gates open when gpreemptd is killed, and by their lease when it hangs")
def _(folder):
    for number in (signal.SIGKILL, signal.SIGSTOP):
        with machine(folder, "--lease", "300ms") as (d, program):
            one = program(kind=Gated)
            known(d, one, 1)
            tap.good("suspend", str(one.process.pid), "--lease", "60s", "--socket", d.path)
            one.tell("launch 5")
            time.sleep(0.5)
            tap.same(one.ran(), 0)
            d.process.send_signal(number)
            until(lambda: one.ran() == 5, "it goes on")
            d.process.send_signal(signal.SIGCONT)


@tap.test("whose queues the driver can stop has no gate of gpreemptd's besides")
def _(folder):
    with machine(folder) as (d, program):
        one = program(**DOOR)
        known(d, one)
        one.tell("cuda")
        time.sleep(0.5)
        tap.same(len(queues(d, one)), GROUPS)


@tap.test("doctor says whether CUDA's door opens, and if it is shut why")
def _(folder):
    if not os.path.exists(DOUBLE):
        raise tap.Skip("this build is instrumented: its libraries cannot be preloaded")
    cuda = {"LD_LIBRARY_PATH": os.path.abspath(f"{tap.BUILD}/tests")}

    def said(**more):
        found = json.loads(with_driver(folder, "doctor", "--json", **more))
        return next((check["state"], check["detail"]) for check in found["checks"] if check["what"] == "CUDA levels")

    state, detail = said(**cuda)
    tap.true(state == "yes" and "CUDA_INJECTION64_PATH=/" in detail and detail.endswith("/libgpreempt-level.so"), detail)
    tap.same(said(**cuda, GPREEMPT_LEVEL="off"), ("no", "no throttle and gate in programs of CUDA: GPREEMPT_LEVEL is off"))
    tap.same(said(**cuda, CUDA_DOUBLE_FAILS="cuptiSubscribe"),
             ("no", "no throttle and gate in programs of CUDA: a profiler or debugger has CUPTI, which lets in one alone"))
    tap.same(said(**cuda, CUDA_DOUBLE_FAILS="cuInit"), ("no", "no throttle and gate in programs of CUDA: cuInit() did not call us, and returned 100"))
    # meson has the folder with the double in it, too
    tap.same(said(LD_LIBRARY_PATH=""), ("no", "no throttle and gate in programs of CUDA: libcuda.so.1 cannot be loaded"))


@tap.test("doctor does not wait for a program that has said whether a door opens and does not end, and leaves none behind")
def _(folder):
    if not os.path.exists(DOUBLE):
        raise tap.Skip("this build is instrumented: its libraries cannot be preloaded")
    os.mkdir(f"{folder}/bin")
    hangs = f"import time; time.sleep(60); open('{folder}/ended', 'w')"
    os.chmod(tap.write(f"{folder}/bin/true", f'#!/bin/sh\necho -n $$ >{folder}/pid\nunset LD_PRELOAD\nexec {sys.executable} -c "{hangs}"\n'), 0o755)
    found = json.loads(with_driver(folder, "doctor", "--json", LD_LIBRARY_PATH=os.path.abspath(f"{tap.BUILD}/tests"), PATH=f"{folder}/bin:{os.environ['PATH']}"))
    tap.same(next(check["state"] for check in found["checks"] if check["what"] == "CUDA levels"), "yes", found)
    tap.true(not os.path.exists(f"{folder}/ended"), "doctor waited until it ended")
    pid = tap.read(f"{folder}/pid") if os.path.exists(f"{folder}/pid") else "none"  # it came to nothing before its time was up
    tap.true(not os.path.exists(f"/proc/{pid}"), f"process {pid} is still there")


@tap.test("a drain says that nobody sees when it has finished, and parks; a strict one leaves it running")
def _(folder):
    said = "on an NVIDIA GPU nobody sees whether it has finished; after 20 ms it "
    with machine(folder) as (d, program):
        one = program()
        known(d, one)
        drain = ("suspend", str(one.process.pid), "--type", "drain", "--timeout", "20ms", "--lease", "60s", "--socket", d.path)
        done = tap.run(*drain, "--strict")
        tap.true(done.returncode == tap.FAILED and said + "runs on" in done.stderr and "packet" not in done.stderr, done.stderr)
        tap.same((one.switches(), {q["state"] for q in queues(d, one)}), ([], {"running"}))
        done = tap.good(*drain)
        tap.true(said + "was parked" in done.stdout + done.stderr, f"{done.stdout}{done.stderr}")
        tap.same({q["state"] for q in queues(d, one)}, {"suspended"})


@tap.test("ways that stop nothing here are said: by gpreemptd, by stats, by doctor, and to who wants to suspend")
def _(folder):
    said = "--ways has no way for NVIDIA GPUs; add park"
    with machine(folder, "--ways", "session,update", "--scan", "20ms") as (d, program):
        one = program()
        known(d, one)
        until(lambda: said in d.log(), "it is in the log")
        tap.true(f"device 0 (NVIDIA H200): nothing here can be stopped: {said}" in d.log(), d.log())
        tap.true(said in stats(d)["reason"], stats(d))
        tap.same(findings(d, "stops")[0][0], "no")
        tap.true(said in findings(d, "stops")[0][1], findings(d, "stops"))
        done = tap.run("suspend", str(one.process.pid), "--socket", d.path)
        tap.true(done.returncode == tap.FAILED and said in done.stderr, done.stderr)
    tap.same(tap.read(folder, "log").count(said), 1, "how often it is in the log")


@tap.test("ways that reach what is here are not spoken of")
def _(folder):
    with machine(folder, "--ways", "park") as (d, program):
        known(d, program())
        tap.true("--ways" not in d.log() and stats(d)["reason"] == "", d.log())


@tap.test("stats tells how many queues yield and how many are stopped, and what was done for it")
def _(folder):
    with machine(folder) as (d, program):
        offline = program()
        known(d, offline)
        tap.same([stats(d)[key] for key in ("yielding", "stopped", "slices", "slice_failures")], [0, 0, 0, 0])
        online = program("online")
        until(lambda: stats(d)["yielding"] == 1, "the group for compute yields")
        tap.same([stats(d)[key] for key in ("stopped", "slices", "slice_failures")], [0, 1, 0])
        told = tap.good("stats", "--socket", d.path).stdout
        tap.true("now          1 queue yields, 0 are stopped" in told, told)
        with suspended(d, offline):
            tap.same((stats(d)["yielding"], stats(d)["stopped"]), (0, GROUPS))
        tap.same(online.end(), 0, "the online program's end")
        until(lambda: (stats(d)["yielding"], stats(d)["stopped"]) == (0, 0), "it has its slice again")
        tap.same(stats(d)["slices"], len(offline.slices()), "as the driver was told")


@tap.test("while requests queue stats has offline's queues as stopped, not as yielding")
def _(folder):
    with machine(folder) as (d, program):
        known(d, program())
        online = program("online")
        until(lambda: stats(d)["yielding"] == 1, "it yields")
        for number in ("1", "2"):
            tap.good("hint", "begin", "--client", str(online.process.pid), "--number", number, "--for", "60s", "--socket", d.path)
        until(lambda: (stats(d)["yielding"], stats(d)["stopped"]) == (0, GROUPS), "they are parked")


@tap.test("doctor says what agents heard from the driver: nothing yet, all is well, or what was refused")
def _(folder):
    with machine(folder) as (d, program):
        one = program()
        known(d, one)
        tap.true(findings(d, "stops")[0][0] == "?" and "no agent has tried" in findings(d, "stops")[0][1], findings(d, "stops"))
        with suspended(d, one):
            pass
        until(lambda: stats(d)["resumes"] == GROUPS, "it is resumed")
        state, detail = findings(d, "stops")[0]
        tap.same(state, "yes")
        tap.true(f"took {GROUPS} stops, {GROUPS} resumes and 0 slices from agents, and refused none" in detail, detail)


@tap.test("doctor names a slice that the driver refused, and how often")
def _(folder):
    with machine(folder) as (d, program):
        known(d, program(RM_DOUBLE_REFUSES=hex(SET_TIMESLICE)))
        program("online")
        until(lambda: stats(d)["slice_failures"] > 0, "it was tried")
        state, detail = findings(d, "stops")[0]
        tap.true(state in ("no", "?") and "Operation not supported" in detail, (state, detail))


@tap.test("a GPU with MIG says so in the list, and counts as one device")
def _(folder):
    for instance in ("gi1", "gi2", "gi3"):
        put(f"{folder}/root", f"proc/driver/nvidia/capabilities/gpu0/mig/{instance}/access", "")
    with machine(folder) as (d, _):
        tap.same([device["mig_instances"] for device in listed(d)["devices"]], [3])
        table = tap.good("list", "--socket", d.path).stdout.splitlines()
        tap.true("MIG" in table[0] and table[1].split()[table[0].replace("GPU ID", "GPU").split().index("MIG") + 1] == "3", table)


@tap.test("a program under MPS is said to be in list and ps, one beside it is not")
def _(folder):
    os.makedirs(f"{folder}/mps")
    tap.write(f"{folder}/mps/control", "")
    with machine(folder) as (d, program):
        under, beside = program(CUDA_MPS_PIPE_DIRECTORY=f"{folder}/mps"), program(CUDA_MPS_PIPE_DIRECTORY=f"{folder}/none")
        known(d, under)
        known(d, beside)
        tap.same([{q["mps"] for q in queues(d, one)} for one in (under, beside)], [{"client"}, {None}])
        clients = {c["pid"]: c["mps"] for c in json.loads(tap.good("ps", "--json", "--socket", d.path).stdout)["clients"]}
        tap.same(clients, {under.process.pid: "client", beside.process.pid: None})
        tap.true("MPS" in tap.good("ps", "--socket", d.path).stdout and "MPS" in tap.good("list", "--socket", d.path).stdout, "the columns")


@tap.test("the server of MPS is said to be it, by list, and doctor has its number")
def _(folder):
    with machine(folder) as (d, program):
        server = program(called="/usr/bin/nvidia-cuda-mps-server")
        known(d, server)
        tap.same({q["mps"] for q in queues(d, server)}, {"server"})
        said = {check["what"]: check["detail"] for check in json.loads(with_driver(folder, "doctor", "--json"))["checks"]}
        tap.true(f"its server is process {server.process.pid}" in said["MPS"], said)


@tap.test("find, which is for AMD, says where NVIDIA's queues are")
def _(folder):
    said = " ".join(with_driver(folder, "find", "1", "2>&1").split())
    tap.true("no AMD GPU here" in said and "known to gpreemptd alone: gpreempt list" in said, said)


@tap.test("selftest says that it tried nothing on the NVIDIA GPU, and what would")
def _(folder):
    said = " ".join(with_driver(folder, "selftest").split())
    tap.true("On the NVIDIA GPU nothing was tried" in said and "gpreempt suspend PID" in said, said)
    tap.same(json.loads(with_driver(folder, "selftest", "--json"))["nvidia_untried"], True)
    tap.true("NVIDIA GPU" not in with_driver(folder, "selftest", "--backend", "sim"), "one that was asked for alone")


if __name__ == "__main__":
    tap.main()
