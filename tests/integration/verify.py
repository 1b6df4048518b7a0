#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""gpreempt verify: the notes' test programs on a simulated GPU, and what they notice."""

import contextlib
import errno
import glob
import io
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from unittest import mock
from xml.etree import ElementTree

import tap

from gpreemptd import daemon, until
from protocol import Tool
from simulated import SOON, gpu, handles, train
from torchless import hide_torch, without_torch

PACKAGE = os.path.join(tap.SOURCE, "python")
LIBRARIES = ("libgpreempt.so.0", "libgpreempt_poc.so.0", "libgpreempt_poc_v2.so.0")
PATIENCE = 240  # s, for a machine that is busy
CHECKS = ["basic", "frequent", "edge", "latency", "throughput", "stability", "stress", "batch", "reservation", "compare", "models"]
HEAD = {"schema", "time", "command", "device", "machine", "versions"}
CHECK = {"name", "ways", "status", "reason", "did", "saw", "facts", "criteria", "figures", "parameters", "raw"}
FIGURES = {"count", "mean", "deviation", "p50", "p95", "p99", "max"}
SIMULATED = {"kind": "simulated", "name": "mi308x", "text": "simulated mi308x"}

hide_torch()
sys.path.insert(0, PACKAGE)
os.environ["GPREEMPT_LIBRARY"] = os.path.join(os.path.abspath(tap.BUILD), "libgpreempt.so.0")

import gpreempt  # noqa: E402
import gpreempt_scheduler  # noqa: E402
import simple_models  # noqa: E402
from gpreempt import EventKind  # noqa: E402
from gpreempt.verify import charts, criteria, events, files, first, queues, run, second, stage, training, watch, ways  # noqa: E402


def environment(**more):
    usual = {name: value for name, value in os.environ.items() if name != "GPREEMPT_LIBRARY"}
    return without_torch({**usual, "GPREEMPT_SOCKET": "", "LC_ALL": "C.UTF-8", **more})


def verify(*words, **more):
    return tap.run("verify", *words, timeout=PATIENCE, env=environment(**more), preexec_fn=tap.die_with_parent)


def untrue(check):
    return [fact["what"] for fact in check["facts"] if not fact["is_so"]]


@contextlib.contextmanager
def started(*words, **more):
    """A running one; what it has started must have gone with it."""
    process = subprocess.Popen([tap.PROGRAM, "verify", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment(**more), preexec_fn=tap.die_with_parent)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def children(pid):
    """By what they were started as."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if int(tap.read("/proc", name, "stat").rpartition(")")[2].split()[1]) == pid:
                found[int(name)] = tap.read("/proc", name, "cmdline").replace("\0", " ")
    return found


def runs(pid):
    with contextlib.suppress(OSError):
        return tap.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] != "Z"
    return False


def until_job(process):
    """Its GPU has a job; who its children are."""
    until(lambda: process.poll() is not None or any("sim-client" in command for command in children(process.pid).values()), "a job runs")
    tap.same(process.poll(), None, "it has ended")
    return children(process.pid)


@tap.test("all checks on a simulated GPU find that queues stop, go on and lose nothing, and each result says on what it was found", alone=True)
def _(folder):
    told = json.loads(verify("--duration", "300ms", "--json", "--out", f"{folder}/out/deep").stdout)
    tap.same((set(told), told["schema"], told["device"]), (HEAD | {"checks"}, "gpreempt-verify-1", SIMULATED), "head")
    tap.same([check["name"] for check in told["checks"]], CHECKS, "checks")
    for check in told["checks"]:
        tap.same((set(check), check["reason"], untrue(check)), (CHECK, "", []), check["name"])
        tap.true(check["facts"] and check["did"] and check["saw"], f"{check}")
        tap.true(all(set(row) == FIGURES for row in check["figures"].values()), f"{check['figures']}")
        file = json.loads(tap.read(f"{folder}/out/deep/{check['name']}.json"))
        tap.same((set(file), file["device"], file["raw"]), (HEAD | CHECK, SIMULATED, check["raw"]), check["name"])
    compared = told["checks"][CHECKS.index("compare")]
    tap.same([(one["way"], one["queues"]) for one in compared["raw"]["compared"]], [(way, n) for n in (1, 3, 10) for way in ("old", "new")], "compared")
    tap.same({len(compared["raw"][f"old_{n}_suspend_ms"]) for n in (1, 3, 10)}, {20}, "values of each")
    tap.true(any("no batch call" in line for line in compared["saw"]), f"{compared['saw']}")
    tap.true("a wait of 10 ms as online work" in compared["did"], compared["did"])
    untold = set()
    for name, every in compared["raw"]["parts_ms"].items():
        known = [(parts, took) for parts, took in zip(every, compared["raw"][name]) if parts]
        tap.true(all(abs(sum(parts) - took) < 0.01 and min(parts) >= 0 for parts, took in known), f"{name}: {known}")
        untold |= {name.rpartition("_")[0].rpartition("_")[0]} if len(known) < 15 else set()
    tap.true(len(untold) <= 1, f"{untold}: events that a busy host did not bring, of one way and count at most")
    one = told_of(told, "throughput")
    tap.same((one["ways"], {row["name"] for row in one["criteria"]}), (["old", "new"], {"lost_percent", "online_old_ms"}), "throughput: one call tells nothing of the calls' limits")
    tap.same([one["figures"][name]["count"] for name in ("old_suspend_ms", "new_fast_remap_ms")], [1, 1], "stops by each way's calls")
    steps = told_of(told, "stress")["raw"]["on_gpu"]
    tap.same(({on for _, on in steps}, steps[-1][1]), (set(range(11)), 10), "queues on the GPU")


def told_of(told, name):
    return told["checks"][CHECKS.index(name)]


@tap.test("as text each check says what it did and saw, and every figure what it was measured on")
def _(folder):
    done = verify("basic")
    tap.same((done.returncode, done.stderr), (0, ""), done.stdout)
    lines = done.stdout.splitlines()
    tap.true(any(line.split() == ["basic", "passed"] for line in lines) and any(line.startswith("  did  ") for line in lines), done.stdout)
    figures = [line for line in lines if " mean " in line]
    tap.true(len(figures) == 2 and all("simulated mi308x" in line and " deviation 0.000," in line for line in figures), done.stdout)
    tap.true("1 passed, 0 failed" in done.stdout, done.stdout)


WENT_ON = "went on and lost nothing: after the last stop each queue ended its next step"
LIAR = """
import sys
from gpreempt.verify import main, stage, ways
stage.GO_ON_S = 5
class Liar:
    def __init__(self, library):
        self.library = library
    def __getattr__(self, name):
        return (lambda *words: 0) if name == {call!r} else getattr(self.library, name)
truthful = ways.Calls.__init__
def lies(self, name):
    truthful(self, name)
    self.c = Liar(self.c)
ways.Calls.__init__ = lies
sys.exit(main.main(["basic", "--json"]))
"""


@tap.test("a suspend or resume that says it is done and does nothing makes a check fail, and so the whole")
def _(folder):
    env = environment(PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1", GPREEMPT_PROGRAM=tap.PROGRAM, GPREEMPT_LIBRARY=os.environ["GPREEMPT_LIBRARY"])
    for call, want in (("gpreempt_suspend_queues", {"its queue was inactive meanwhile", "stopped as often as asked", "off the GPU as long as held", WENT_ON}),
                       ("gpreempt_resume_queues", {"it is active afterwards", "back on it once resumed", WENT_ON})):
        done = tap.run("-c", LIAR.format(call=call), program=sys.executable, env=env, timeout=PATIENCE, preexec_fn=tap.die_with_parent)
        check = json.loads(done.stdout)["checks"][0]
        tap.same((done.returncode, check["status"], {what.partition(" (")[0] for what in untrue(check)}), (1, "failed", want), call)


class Stage:
    starts_jobs = True

    def __init__(self, kind, accounts=()):
        self.device, self.number = stage.Gpu(kind, "some"), 0
        self.accounts = list(accounts)

    def offline(self, calls, count=1):
        return contextlib.nullcontext(Told(**self.accounts.pop(0)))

    def online(self, rate, requests):
        return requests

    def served(self, requests):
        return {"submitted": requests, "completed": requests, "latency_ns": dict.fromkeys(("mean", "p50", "p95", "p99", "max"), 11 * 10 ** 6)}


class Told:
    """A job, and what it tells at its end; or its calls, of which a part fails."""

    pid, ids = 0, [1]

    def __init__(self, **account):
        self.account = account
        self.numbers = itertools.count(1)  # next() of it is whole, whatever threads do

    def goes_on(self, stops):
        return self.account.get("goes_on", True)

    def end(self):
        return self.account

    def suspend(self, ids):
        if next(self.numbers) == 3:
            raise ways.Failed("the third")

    def resume(self, ids):
        pass


def begun(kind="simulated"):
    return run.Run("some", Stage(kind), run.Options(False, None, True, False), lambda text: None)


@tap.test("a queue of many that was not stopped, or too short, or too long, a job without work, and one that does not go on are each noticed by the job's account")
def _(folder):
    well = {"stopped_share": 0.5, "elapsed_ns": 2 * 10 ** 9, "submitted": 30, "completed": 10, "stops": 20}
    for more, want in (({}, []), ({"stops": 19}, ["stopped as often as asked"]), ({"stops": 21}, ["stopped as often as asked"]),
                       ({"stopped_share": 0.4}, ["off the GPU as long as held"]), ({"stopped_share": 0.61}, ["back on it once resumed"]),
                       ({"completed": 0}, ["it had work"]), ({"goes_on": False}, ["went on and lost nothing"])):
        one = begun()
        one.see_job(Told(**{**well, **more}), 2, run.Held(1.0, 1.2), 10)
        one.settle()
        tap.same(([what.partition(" (")[0].partition(":")[0] for what in untrue(one.as_dict())], one.status), (want, "failed" if want else "passed"), f"{more}")


@tap.test("a job goes on when each of its queues has ended a step after so many stops, not after fewer; one that has ended does not")
def _(folder):
    for lines, is_running, want in (("0: 5 done, stops: 2|1: 9 done, stops: 2", True, True), ("0: 5 done, stops: 2|1: 9 done, stops: 1", True, False),
                                    ("0: 5 done, stops: 2|0: 6 done, stops: 2", True, False), ("0: 5 done, stops: 2|1: 9 done, stops: 20", True, False),
                                    ("0: 5 done, stops: 1|0: 6 done, stops: 2|1: 1 done, stops: 2", True, True), ("", False, False)):
        told = io.StringIO("".join(f"gpreempt: queue {line}\n" for line in lines.split("|")))
        with mock.patch.object(stage, "GO_ON_S", 0):
            job = stage.SimulatedJob(SimpleNamespace(pid=0, poll=lambda is_running=is_running: None if is_running else 1), told)
            job.ids = [7, 8]
            tap.same((job._errors().count("queue"), job.goes_on(2)), (lines == "", want), lines)


@tap.test("what a job says of its steps is kept in no file: a limit of their size, or a full disk, loses none of it")
def _(folder):
    def limited():
        tap.die_with_parent()
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # two dozen of steps; what gpreemptd has to say at first is less

    done = tap.run("verify", "frequent", "--duration", "6s", "--json", timeout=PATIENCE, env=environment(), preexec_fn=limited)
    check = json.loads(done.stdout)["checks"][0]
    tap.same((check["reason"], untrue(check)), ("", []), f"{check}")
    tap.true(check["raw"]["jobs"][0]["completed"] > 30, f"{check['raw']['jobs']}")


@tap.test("how long a job was off the GPU is at least from each suspend's end to the resume's begin, and at most both calls more")
def _(folder):
    cycle = ways.Cycle(suspend_ms=200, online_ms=0, resume_ms=50, held_s=1.0, began_s=0, back_s=0)
    for cycles, want in (([cycle], (1.0, 1.25)), ([cycle] * 2, (2.0, 2.5))):
        tap.same(run.held(cycles), want, f"{cycles}")


@tap.test("the notes' limits are of the mean on a GPU, and of the median where it is simulated")
def _(folder):
    for kind, want in (("measured", ("mean", 10.0)), ("simulated", ("p50", 1.0))):
        one = begun(kind)
        one.measure("suspend_ms", [1.0, 1.0, 28.0], "suspend_ms")
        tap.same((one.criteria[0]["of"], one.criteria[0]["value"]), want, kind)


class Ticks:
    """A clock that goes on by 1 s whenever it is looked at; waits are written down."""

    def __init__(self):
        self.looks, self.slept = itertools.count(), []
        self.monotonic = lambda: next(self.looks)
        self.sleep = self.slept.append


@tap.test("whenever the time for the next stop comes, also between two looks at the clock, no wait is below zero")
def _(folder):
    for gap in range(1, 20):
        clock, calls = Ticks(), SimpleNamespace(way=ways.WAYS["old"], cycle=lambda ids, work: ways.Cycle(1.0, 11.0, 1.0, 0.01, 0.0, 0.0))
        with mock.patch.object(run, "time", clock), mock.patch.object(events, "told", lambda pid, since_s: []):
            begun().repeat(calls, Told(), 0.01, lambda at, n: n >= 3, lambda gap=gap: gap / 2)
        tap.true(len(clock.slept) == 3 and min(clock.slept) >= 0, f"{gap / 2} s apart: {clock.slept}")
    tap.true(clock.slept[0] > 1, f"it does not wait at all: {clock.slept}")
    with mock.patch.object(run, "time", Ticks()), mock.patch.object(events, "told", lambda pid, since_s: []):
        tap.same(len(begun().repeat(calls, Told(), 0.01, lambda at, n: True, lambda: 1)), 1, "where the time is over before the first")


class Reserved(SimpleNamespace):
    """A device, and the calls about it; more than all of it is refused."""

    def devices(self):
        return [self]

    def reserve(self, device, online, offline):
        if online + offline > 100:
            raise gpreempt.Error(errno.EINVAL, "too much")
        tap.same(device, self.device, "device")
        self.online_percent, self.offline_percent = online, offline


@tap.test("a device's reservation is tried if it has queue slots, whether or not a queue can be reached just now; another's slots do not count")
def _(folder):
    mine, other = (Reserved(device=number, queue_slots=24, caps=gpreempt.Caps(0), online_percent=0, offline_percent=100) for number in (0, 1))
    one = run.Run("some", Stage("measured"), run.Options(False, None, False, True), lambda text: None)
    one.stage.starts_jobs, one.stage.number = False, 0
    for slots, want in ((24, [True] * 3), (0, "this device has no queue slots that could be reserved")):
        mine.queue_slots, one.facts = slots, []
        with mock.patch.object(gpreempt, "devices", lambda: [other, mine]), mock.patch.object(gpreempt, "context", lambda: mine):
            try:
                second.reservation(one, None)
                told = [fact["is_so"] for fact in one.facts]
                tap.true("accepted, not tried" in one.saw[-1], f"{one.saw}")
            except stage.Skip as why:
                told = str(why)
        tap.same(told, want, f"{slots} slots")
    tap.same((mine.online_percent, mine.offline_percent), (0, 100), "as before")


@tap.test("jobs and trainings are started without what verify has said of its own queues, and with the rest of its environment")
def _(folder):
    ours = {"AMD_QUEUE_TAG": "ONLINE_AI", "AMD_QUEUE_PRIORITY": "15", "GPREEMPT_CLASS": "online"}
    with mock.patch.dict(os.environ, GPREEMPT_PROGRAM=tap.PROGRAM, TMPDIR=folder, **ours), \
         mock.patch.dict(sys.modules, real_models=SimpleNamespace(__file__="real_models.py")), \
         mock.patch.object(subprocess, "Popen", side_effect=OSError(errno.ENOENT, "no")) as popen:
        gpu_of_its_own = stage.Simulated()
        for start in (lambda: stage.Worker("job", 1, "offline"), lambda: gpu_of_its_own._run(["job"]), training.OnCpu().__enter__, training.OnGpu().__enter__):
            with contextlib.suppress(OSError, stage.Broken):
                start()
        gpu_of_its_own.__exit__()
        want = {name: value for name, value in os.environ.items() if name not in ours}
        tap.same([call[1].get("env") == want for call in popen.call_args_list], [True] * 4, "environments")


@tap.test("a device has a batch call if it is the one that is verified, whatever others have")
def _(folder):
    for mine, other in ((True, False), (False, True)):
        one = begun()
        one.raw["compared"], one.stage.number = [], 1
        there = [SimpleNamespace(device=number, caps=gpreempt.Caps.BATCH if has else gpreempt.Caps(0)) for number, has in ((0, other), (1, mine))]
        with mock.patch.object(gpreempt, "devices", lambda there=there: there):
            second._say_batch(one)
        tap.same(one.raw["has_batch"], mine, f"{mine} {other}")


class Slots:
    """A job of 8 queues on 8 slots, of which so many at once run a step whenever they are looked at."""

    pid = 7

    def __init__(self, at_once, is_fair):
        self.at_once, self.is_fair, self.steps, self.turn = at_once, is_fair, [0] * 8, 0

    def queues(self, pid):
        running = [(self.turn + number) % 8 for number in range(self.at_once)]
        self.turn += self.is_fair
        for one in running:
            self.steps[one] += 1
        return [SimpleNamespace(state=gpreempt.QueueState(0 if one in running else 2), local_pid=pid, queue_id=one) for one in range(8)]

    def progress(self):
        return [(str(number), steps) for number, steps in enumerate(self.steps)]


@tap.test("more offline queues at once than a reservation has room for, one that never has its turn, and online work that is not served are noticed")
def _(folder):
    for at_once, is_fair, served, want in ((2, True, 5, []), (3, True, 5, ["no more offline queues run at once than it has room for"]),
                                           (2, False, 5, ["each of the offline queues has its turn"]), (2, True, 4, ["an online program beside them is served"])):
        one, job = begun("measured"), Slots(at_once, is_fair)
        one.stage.offline = lambda calls, count, job=job: contextlib.nullcontext(job)
        one.stage.served = lambda requests, served=served: {"completed": served}
        with mock.patch.multiple(gpreempt, queues=job.queues, devices=lambda: [SimpleNamespace(device=0, queue_slots=8)]), \
             mock.patch.object(second, "comes", lambda condition: any(condition() for _ in range(20))):
            second._limited(one, None)
        tap.same(untrue(one.as_dict()), want, f"{at_once} {is_fair} {served}")
        tap.true(f"of 8 offline queues at most {at_once} at once with 2 slots" in one.saw[0], one.saw[0])


@tap.test("a queue waits for its turn if the driver says so, where it keeps the reservation")
def _(folder):
    for number, text in enumerate(("active waits\n", "active\n")):
        tap.write(f"{folder}/{number}", text)
    there = [SimpleNamespace(state=gpreempt.QueueState.RUNNING, local_pid=7, queue_id=number) for number in range(3)]
    with mock.patch.object(gpreempt, "queues", lambda pid: there), mock.patch.object(second, "QUEUE_STATE", folder + "/{1}"):
        tap.same(second._at_once(7), 2, "of three, one of which has no such file")


class Model:
    def __init__(self, *words):
        self.is_on_gpu = False

    def cuda(self):
        tap.same((os.environ.get("AMD_QUEUE_TAG"), os.environ.get("AMD_QUEUE_PRIORITY")), ("ONLINE_AI", "15"), "when its queue is made")
        self.is_on_gpu = True
        return self


@tap.test("PyTorch's models are on the GPU where there is one and it is what is verified, else on the CPU")
def _(folder):
    for kind, has_gpu, want in (("measured", True, "GPU"), ("measured", False, "CPU"), ("simulated", True, "CPU"), ("software GPU", True, "CPU")):
        one, places = begun(kind), []
        one.stage.accounts = [{}, {}]
        with mock.patch.dict(os.environ), mock.patch.multiple(simple_models, HAS_TORCH=True, has_gpu=lambda has_gpu=has_gpu: has_gpu, SimpleCNN=Model, SimpleTransformer=Model), \
             mock.patch.multiple(second, _case_of_job=lambda run, case, model, *more: places.append(model.is_on_gpu), _real=lambda run, calls, n, on_gpu: places.append(on_gpu)):
            second.models(one, None)
        tap.same((places, "PyTorch, on the " + want in one.did), ([want == "GPU"] * 3, True), f"{kind} {has_gpu}: {one.did}")


@tap.test("a request that was served beside offline work, because that could not be stopped, is noticed")
def _(folder):
    for fails, want in ((None, []), (gpreempt.Error(errno.EPERM, "no"), ["case A: all 2 requests were served with offline work off the GPU"])):
        one, scheduler = begun(), mock.Mock(notify_online_task=mock.Mock(side_effect=[None, fails]))
        scheduler.statistics = SimpleNamespace(**{name: SimpleNamespace(total=ms) for name, ms in (("online", 5000.0), ("suspend", 2000.0), ("resume", 500.0))})
        one.parameters["pause_s"] = 0
        with mock.patch.object(gpreempt_scheduler, "GPreemptScheduler", lambda: scheduler), mock.patch.object(gpreempt, "queues", lambda pid: [pid]):
            off = second._case(one, "a", lambda x: x, 2, 7, [])
        tap.same((untrue(one.as_dict()), off, scheduler.register_offline_queue.call_args[0], scheduler.cleanup.called), (want, (3.0, 5.5), (7,), True), f"{fails}")


class Trained:
    """A training: each look at its losses finds one more. still: how often it stood still of those times that it was held."""

    pid = 7

    def __init__(self, losses, still):
        self._losses, self.still, self._still, self.seen = losses, 0, still, 0

    def __enter__(self):
        return self

    def __exit__(self, *why):
        pass

    @property
    def losses(self):
        self.seen = min(self.seen + 1, len(self._losses))
        return self._losses[:self.seen]

    def hold(self, seconds):
        self.still += self.still < self._still

    def come_to(self, steps, why):
        while len(self.losses) < steps:
            tap.true(self.seen < len(self._losses), f"{steps} steps: {why}")


@tap.test("a training on the GPU that moved while it was held, lost a step or did not learn is noticed; it is held as often as there are requests, by its queues")
def _(folder):
    well = [float(100 - step) for step in range(100)]
    for losses, still, want in ((well, 4, []), (well, 3, ["case C: the training stood still each time"]),
                                ([99.5 if one == 98.0 else one for one in well], 4, ["case C: nothing lost: each step has the loss of the same step undisturbed"])):
        one, held = begun("measured"), []
        trainings = [Trained(losses, still), Trained(well, 0)]
        calls = SimpleNamespace(queues=lambda pid: [pid + 1], cycle=lambda ids, work: held.append((ids, work())))
        with mock.patch.multiple(second, OnGpu=lambda: trainings.pop(0), _serve=mock.DEFAULT, _case=mock.DEFAULT, until_known=mock.DEFAULT) as patched:
            second._beside_gpu(one, calls, mock.Mock(), 4)
        tap.same((untrue(one.as_dict()), held, patched["_case"].call_args[0][4]), (want, [([8], None)] * 4, 7), f"{want}")
    one = begun()
    second._see_training(one, [1.0, 2.0], 4, 4)
    tap.same(untrue(one.as_dict()), ["case C: the training learned"], "learned")


@tap.test("a training on the GPU stands still if no step ends from when those under way were told to its resume")
def _(folder):
    with mock.patch.dict(os.environ, GPREEMPT_PROGRAM=tap.PROGRAM):
        one = training.OnGpu()

    def step(*words):
        one._said.write("1.5\n")
        one._said.flush()

    for settling, holding, want in ((None, None, 1), (step, None, 1), (None, step, 0)):
        one.still = 0
        with mock.patch.object(training, "time", SimpleNamespace(sleep=settling or (lambda seconds: None))), \
             mock.patch.object(stage.Job, "look", holding or (lambda job: None)):
            one.hold(0.001)
        tap.same(one.still, want, f"{settling} {holding}")
    tap.same((one.losses, one._before[1:], one._device), ([1.5, 1.5], ["run", "--offline", "--"], "cuda"), "its steps, and where")


@tap.test("a training has the whole limit for each step, however many it is to do, and one that ends or does none for so long is noticed")
def _(folder):
    for lines, goes_on, want in ((3, True, None), (2, False, "the training ended by itself"), (2, True, "not in 0.5 s: some")):
        one, slept = training.OnCpu(), []

        def sleep(seconds, one=one, slept=slept, lines=lines):
            slept.append(seconds)
            if len(slept) % 4 == 0 and len(slept) <= 4 * lines:
                one._said.write("1.5\n")
                one._said.flush()

        one._process = SimpleNamespace(poll=lambda slept=slept, lines=lines, goes_on=goes_on: None if goes_on or len(slept) <= 4 * lines else 1)
        clock = SimpleNamespace(monotonic=lambda slept=slept: len(slept) / 10, sleep=sleep)
        with mock.patch.object(stage, "time", clock), mock.patch.object(training, "STEP_S", 0.5):
            try:
                one.come_to(3, "some")
                told = None
            except stage.Broken as why:
                told = str(why)
        tap.same((told, len(one.losses)), (want, lines), f"{lines} {goes_on}")


TRAINS = "import time\nwhile True:\n    print(1.5, flush=True)\n    time.sleep(0.001)\n"


@tap.test("a training on the CPU stands still while gpreemptd tells that the queue which stands for it does, and else does not")
def _(folder):
    queue = SimpleNamespace(state=gpreempt.QueueState.RUNNING)
    there = [queue]
    program = SimpleNamespace(__file__=tap.write(f"{folder}/trains.py", TRAINS))
    with mock.patch.dict(sys.modules, real_models=program), mock.patch.object(stage, "THIS", os.getpid()), \
         mock.patch.object(gpreempt, "queues", lambda pid: list(there)), training.OnCpu() as one:
        one.follow(7)
        queue.state = gpreempt.QueueState.SUSPENDED
        one.look()
        one.see_still()
        tap.same(one.still, 1, "it is suspended")
        queue.state, seen = gpreempt.QueueState.RUNNING, len(one.losses)
        until(lambda: len(one.losses) > seen, "it goes on")
        with mock.patch.object(training, "STANDS_S", 0.02):
            one.look()
            one.see_still()
        tap.same(one.still, 1, "a suspend that did nothing")
        queue.state = gpreempt.QueueState.SUSPENDED
        one.look()
        there.clear()
        until(lambda: not one._stands(), "it goes on when the queue has gone")


@tap.test("one call of many threads' that fails is noticed")
def _(folder):
    one, calls = begun(), Told()
    first._concurrent_calls(one, calls, calls)
    tap.same((untrue(one.as_dict()), ", as: the third" in one.saw[0]), (["calls of several threads at once all succeed"], True), one.saw[0])


class Together:
    """Calls that know how many rounds each thread has begun, and one of whose threads is slow."""

    def __init__(self):
        self.begun, self.apart, self.lock = {}, 0, threading.Lock()

    def suspend(self, ids):
        with self.lock:
            self.begun[threading.get_ident()] = self.begun.get(threading.get_ident(), 0) + 1
            self.apart = max(self.apart, *(max(self.begun.values()) - one for one in self.begun.values()))
            is_slow = next(iter(self.begun)) == threading.get_ident()
        time.sleep(0.01 * is_slow)

    def resume(self, ids):
        pass


class Late(threading.Thread):
    def start(self):
        time.sleep(0.02)
        super().start()


@tap.test("threads that submit at once do so in each round: none begins before all are there, and none is a round ahead of another that calls")
def _(folder):
    one, calls = begun(), Together()
    with mock.patch.object(first.threading, "Thread", Late):
        first._concurrent_calls(one, calls, Told())
    tap.same((untrue(one.as_dict()), sorted(calls.begun.values()), calls.apart), ([], [10] * first.THREADS, 1), one.saw[0])


@tap.test("a thread that ends by a fault of the check is told, and the others do not wait for it")
def _(folder):
    one, calls = begun(), Told()
    calls.resume = mock.Mock(side_effect=[None, IndexError("no"), *[None] * 100])
    first._concurrent_calls(one, calls, calls)
    tap.same(untrue(one.as_dict()), ["calls of several threads at once all succeed"], one.saw[0])


class Queue:
    """One that is active until it is suspended; wrong: what its calls do besides, or do not."""

    ids = [1]

    def __init__(self, wrong):
        self.wrong, self.active = wrong, True

    def is_active(self, one):
        return self.active

    def suspend(self, ids):
        if self.wrong != "does not suspend" and (first.NO_QUEUE not in ids or self.wrong == "stops the others"):
            self.active = self.active and not ids
        if first.NO_QUEUE in ids and self.wrong != "takes any" or not ids and self.wrong == "needs one":
            raise ways.Failed("no such queue")

    def resume(self, ids):
        self.active = self.active if self.wrong == "does not resume" else True

    def cycle(self, ids, work):
        self.suspend(ids)
        work()
        self.resume(ids)
        return SimpleNamespace(suspend_ms=1.0, resume_ms=1.0)


@tap.test("the edge cases and test_batch_unmap notice calls that say one thing and do another")
def _(folder):
    for wrong, want, is_well in (("", set(), True), ("stops the others", {"an unknown queue is an error, and nothing is stopped"}, True),
                                 ("takes any", {"an unknown queue is an error, and nothing is stopped"}, True),
                                 ("needs one", {"no offline queue at all is no error"}, True),
                                 ("does not suspend", {"suspended, also twice, it is inactive"}, False), ("does not resume", {"resumed, also twice, it is active"}, False)):
        one, queue = begun(), Queue(wrong)
        first._wrong_calls(one, queue, queue)
        tap.same(set(untrue(one.as_dict())), want, wrong)
        with mock.patch.object(queues, "devices_of", lambda ids: []), mock.patch("builtins.print"):
            tap.same(queues.tried(Queue(wrong), [1]), is_well, wrong)


@tap.test("what offline work loses is of its own speed alone; a daemon that grows and a kernel in trouble are failures")
def _(folder):
    shown = []
    one = run.Run("some", Stage("simulated"), run.Options(False, 0.001, True, False), shown.append)
    one.stage.accounts = [{"per_second": 20.0}, {"per_second": 15.0}]
    with mock.patch.object(first, "_lost_by_calls"):
        first.throughput(one, None)
    tap.same(shown, ["some: alone, 0.001 s", "some: beside requests, 0.001 s"], "progress")
    tap.same([(row["name"], row["value"], row["level"]) for row in one.criteria], [("lost_percent", 25.0, "failed"), ("online_old_ms", 11.0, "must")], "lost")
    used = {"cpu_percent": 1.0, "first_kib": 1, "last_kib": 2}
    for trouble, grew, want in (([], False, []), (["BUG:"], False, ["the kernel log tells of no trouble, where it may be read"]), ([], True, ["gpreemptd's memory does not grow"])):
        one = begun()
        first._see_watch(one, SimpleNamespace(trouble=lambda trouble=trouble: trouble, why_not=None), SimpleNamespace(as_dict=lambda: used, samples=[], grew=grew))
        tap.same(untrue(one.as_dict()), want, f"{want}")
    one = begun()
    first._see_watch(one, SimpleNamespace(trouble=list, why_not=None), watch.Process(0))  # as of another PID namespace
    tap.same(([fact["what"] for fact in one.facts if "gpreemptd" in fact["what"]], "not watched" in one.saw[0]), ([], True), f"{one.saw} {one.facts}")


OWN = {"elapsed_ns": 10 ** 9, "completed": 20, "submitted": 20, "twice": 0, "error": 0, "still": 1}


def lost_by(per_second, old, new, **more):
    """throughput, with jobs of that speed: alone, beside the scheduler's requests, and by each way's own calls."""
    one = run.Run("throughput", Stage("measured"), run.Options(False, 0.001, old, new), lambda text: None)
    one.stage.accounts = [{**OWN, "per_second": each, **more} for each in per_second]
    with mock.patch.object(first, "Calls", lambda way: SimpleNamespace(way=ways.WAYS[way])), \
         mock.patch.object(run.Run, "repeat", lambda *words, **more: [ways.Cycle(1.0, 11.0, 1.0, 0.01, 0.0, 0.0)]):
        first.throughput(one, None)
    tap.same(untrue(one.as_dict()), [], "facts")
    return one


@tap.test("what offline work loses by each way's own calls is told of those ways that were asked for, and of none where the job did too little")
def _(folder):
    for per_second, asked, want in (((20.0, 15.0, 18.0, 19.0), (True, True), [("old", 10.0), ("new", 5.0)]),
                                    ((20.0, 15.0, 18.0), (True, False), [("old", 10.0)]), ((20.0, 15.0, 10.0), (False, True), [("new", 50.0)]),
                                    ((0.0, 15.0, 18.0, 19.0), (True, True), [])):
        one = lost_by(per_second, *asked)
        told = [(row["way"], round(row["lost_percent"], 9)) for row in one.raw.get("lost", [])]
        rows = [(row["way"], round(row["value"], 9)) for row in one.criteria if row["name"] == "lost_percent" and "way" in row]
        tap.same((told, rows, one.used), (want, want, one.ways), f"{per_second}")
    tap.same([row["stops"] for row in lost_by((20.0, 15.0, 18.0), True, False).raw["lost"]], [1], "stops")
    one = lost_by((20.0, 15.0, 18.0), True, False, completed=19, submitted=19)
    tap.same(("lost" in one.raw, [row for row in one.criteria if "way" in row], one.saw[-1]), (False, [], "old way: too few steps to tell what it loses"), f"{one.saw}")


@tap.test("a report has what offline work loses by each way, from one folder or two, and says nothing of it where it was not measured")
def _(folder):
    both = {"old": 10.0, "new": 5.0}
    for name, asked in (("both", "old new"), ("one", "old"), ("two", "new"), ("none", "")):
        rows = [{"way": way, "stops": 7, "alone_per_second": 20.0, "per_second": 18.0, "lost_percent": both[way]} for way in asked.split()]
        judged = [{**criteria.judged("lost_percent", both[way]), "figure": None, "of": None, "way": way} for way in asked.split()]
        result(f"{folder}/{name}", "throughput", ways=asked.split() or ["old", "new"], raw={"lost": rows} if rows else {}, criteria=judged)
    for old, new, want in (("both", "both", both), ("one", "two", both), ("one", "none", {"old": 10.0}), ("none", "none", {})):
        done = [report("--old", f"{folder}/{old}", "--new", f"{folder}/{new}", "-o", f"{folder}/r.md", *words) for words in (["--json"], [])]
        told = json.loads(done[0].stdout)
        tap.same([(row["way"], row["lost_percent"]) for row in told["lost"]], list(want.items()), f"{old} {new}")
        tap.same([(row["way"], row["room"], row["value"]) for row in told["criteria"]], [(way, way, value) for way, value in want.items()], f"{old} {new}: judged")
        text = tap.read(folder, "r.md")
        tap.same(["| {} | 7 | 20.00 | 18.00 | {:.1f} |".format(way, both[way]) in text for way in both], [way in want for way in both], text)
        tap.same(("What offline work loses" in text, "throughput lost by" in done[1].stdout), (bool(want),) * 2, done[1].stdout)
        tap.true(all(f"offline throughput lost by the {way} way: {value:.1f} %" in done[1].stdout for way, value in want.items()), done[1].stdout)


@tap.test("Ctrl-C ends the check, tells what was found until then, writes it, and ends all that was started")
def _(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        with started("--json", "--out", folder) as process:
            there = until_job(process)
            tap.same(sorted("sim-" in command for command in there.values()), [False, True, True], f"{there}")
            process.send_signal(number)
            out, errors = process.communicate(timeout=SOON)
            told = json.loads(out)
            tap.same((process.returncode, errors, [(check["name"], check["status"]) for check in told["checks"]]), (1, "", [("basic", "interrupted")]), "told")
            tap.same(json.loads(tap.read(folder, "basic.json"))["status"], "interrupted", "written")
            tap.same([pid for pid in there if runs(pid)], [], "still running")


class Interrupted:
    """Calls that suspend and resume so often; then Ctrl-C comes."""

    way = ways.WAYS["old"]

    def __init__(self, times):
        self.left = times

    def cycle(self, ids, work):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return ways.Cycle(1.0, 11.0, 2.0, 0.01, 0.0, 0.0)


@tap.test("a check that Ctrl-C ends tells of the times until then, and of what it watched; before the first there is nothing to tell")
def _(folder):
    for times, want in ((3, {"suspend_ms": (3, 1.0), "resume_ms": (3, 2.0)}), (0, {})):
        one = begun()
        one.stage.accounts, one.stage.daemon_pid = [{}], os.getpid()
        with mock.patch.object(events, "told", lambda pid, since_s: []), contextlib.suppress(KeyboardInterrupt):
            first.stress(one, Interrupted(times))
            raise AssertionError("it was not interrupted")
        tap.same({name: (row["count"], row["mean"]) for name, row in one.figures.items()}, want, f"{times}")
        tap.true(any("kernel log" in line for line in one.saw) and untrue(one.as_dict()) == [], f"{one.saw} {one.facts}")
    online = mock.Mock(last_latency_ms=7.0, inference=mock.Mock(side_effect=[None, None, KeyboardInterrupt]))
    one.parameters["pause_s"] = 0
    with contextlib.suppress(KeyboardInterrupt):
        second._serve(one, online, "a", 5)
    tap.same(one.raw["case_a_ms"], [7.0, 7.0], "requests")


@tap.test("under nohup the end of the terminal does not end it")
def _(folder):
    process = subprocess.Popen(["nohup", tap.PROGRAM, "verify", "basic", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, env=environment(), preexec_fn=tap.die_with_parent)
    try:
        until_job(process)
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=PATIENCE)
        tap.same(json.loads(out)["checks"][0]["status"], "passed", "status")
    finally:
        process.kill()
        process.communicate()


@tap.test("killed, it leaves no process behind")
def _(folder):
    with started("frequent", TMPDIR=folder) as process:  # its own folder is what it leaves
        there = until_job(process)
        process.kill()
        process.wait()
        until(lambda: not any(runs(pid) for pid in there), "its children end")


@tap.test("a child whose parent was killed before it could say that it ends with it ends by itself")
def _(folder):
    code = "import os\nfrom gpreempt.verify import stage\nstage.THIS = 1\nif not os.fork():\n stage.end_with_parent()\n print('it goes on', flush=True)\n os._exit(0)\nprint(os.wait()[1])"
    env = environment(PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1", GPREEMPT_LIBRARY=os.environ["GPREEMPT_LIBRARY"])
    for before, want in (("stage.THIS = 1", f"{1 << 8}\n"), ("", "it goes on\n0\n")):
        done = tap.run("-c", code.replace("stage.THIS = 1", before), program=sys.executable, env=env)
        tap.same((done.stdout, done.stderr), (want, ""), before or "with its parent")


@tap.test("a job that fails is told with what it said last")
def _(folder):
    with mock.patch.dict(os.environ, GPREEMPT_PROGRAM=tap.PROGRAM, TMPDIR=folder):
        there = stage.Simulated()
        with mock.patch.multiple(stage, THIS=os.getpid(), STEP="nothing"), there:
            try:
                there.offline(SimpleNamespace(queues=lambda pid: []))
                raise AssertionError("it runs")
            except stage.Broken as wrong:
                tap.true("a simulated job failed: " in str(wrong) and "nothing" in str(wrong).partition(": ")[2], str(wrong))


@tap.test("a GPU that goes away in the middle makes the check fail and say why, and it ends")
def _(folder):
    with started("frequent", "--duration", "100s", "--json") as process:
        os.kill(next(pid for pid, command in until_job(process).items() if "sim-gpu" in command), signal.SIGKILL)
        out, _ = process.communicate(timeout=PATIENCE)
        check = json.loads(out)["checks"][0]
        tap.same((process.returncode, check["status"], bool(check["reason"])), (1, "failed", True), f"{check}")


@tap.test("on a process that is given the queues of that one are stopped, what cannot be measured is skipped, and Ctrl-C resumes them")
def _(folder):
    with daemon(folder) as d, gpu(folder, socket=d.path), train(folder, socket=d.path) as client:
        handles(d, client.pid)
        there = "--pid", str(client.pid), "--json"
        edge = json.loads(verify("edge", *there, GPREEMPT_SOCKET=d.path).stdout)
        tap.same((untrue(edge["checks"][0]), edge["device"]["kind"], first.NO_REQUESTS in edge["checks"][0]["saw"]), ([], "simulated", True), "edge")
        skipped = verify("throughput", *there, GPREEMPT_SOCKET=d.path)
        check = json.loads(skipped.stdout)["checks"][0]
        tap.same((skipped.returncode, check["status"], check["did"]), (0, "skipped", ""), "throughput")
        latency = json.loads(verify("latency", *there, GPREEMPT_SOCKET=d.path).stdout)["checks"][0]
        tap.same((latency["did"], latency["saw"][-1], "online_beside_ms" in latency["figures"]),
                 ("took a job off the GPU 100 times by " + ways.said("old"), first.NO_REQUESTS, False), "latency")
        reserved = json.loads(verify("reservation", *there, GPREEMPT_SOCKET=d.path).stdout)["checks"][0]
        tap.same((reserved["status"], reserved["reason"]), ("passed", ""), "reservation")
        with started("basic", "--duration", "100s", *there, GPREEMPT_SOCKET=d.path) as process:
            with contextlib.closing(Tool(d.path)) as tool:
                until(lambda: any(is_held(tool, client)), "it is held")
                process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=SOON)
                tap.same(json.loads(out)["checks"][0]["status"], "interrupted", "status")
                tap.same(any(is_held(tool, client)), False, "held afterwards")
        tap.true(client.figures(signal.SIGTERM)["stops"] > 1, "it was never stopped")


@tap.test("Ctrl-Z does not keep a job that is given off the GPU")
def _(folder):
    with daemon(folder) as d, gpu(folder, socket=d.path), train(folder, socket=d.path) as client, contextlib.closing(Tool(d.path)) as tool:
        handles(d, client.pid)
        with started("basic", "--pid", str(client.pid), "--json", GPREEMPT_SOCKET=d.path) as process:
            until(lambda: any(is_held(tool, client)), "it is held")
            process.send_signal(signal.SIGTSTP)
            until(lambda: not any(is_held(tool, client)), "it runs again")
            out, _ = process.communicate(timeout=PATIENCE)
            tap.same(json.loads(out)["checks"][0]["status"], "passed", "status")


@tap.test("a program of --job that says something else than it must makes the check fail, and the check says what was said")
def _(folder):
    with daemon(folder) as d, gpu(folder, socket=d.path):
        for program, said in (("true", ""), ("echo", "1")):
            told = json.loads(verify("basic", "--job", program, "--json", GPREEMPT_SOCKET=d.path).stdout)
            tap.same(told["checks"][0]["reason"], f'{program} was to say "ready" and said "{said}"', program)


def refused(call):
    try:
        return call()
    except stage.Broken as wrong:
        return str(wrong)


@tap.test("what a program of --job answers is numbers, one for each queue, 0 for what was done; else it is said what it answered")
def _(folder):
    worker = stage.Worker.__new__(stage.Worker)
    worker._name, worker._queues, worker._began = "job", 2, 0.0
    for answer, want in (("7:2 3:5", [("3", 5), ("7", 2)]), ("", 'with 2 numbers and said ""'), ("1:1", 'with 2 numbers and said "1:1"'), ("1:1 2:x", 'said "1:1 2:x"')):
        worker.ask = lambda order, answer=answer: answer.split()
        told = refused(worker.progress)
        tap.true(told == want or want in told, f"{answer}: {told}")
    for answer, want in (("0", None), ("-5", 'job failed to do "idle": -5'), ("", 'job was to answer "idle" with a number and said ""')):
        worker.ask = lambda order, answer=answer: answer.split()
        tap.same(refused(lambda: worker.wait("idle")), want, answer)
    for answer, want in (("4 4 0 0", 4), ("4 4 0", 'job was to answer "end" with 4 numbers and said "4 4 0"')):
        worker.ask = lambda order, answer=answer: ["1:2", "2:2"] if order == "progress" else answer.split()
        done = refused(worker.end)
        tap.same(done["completed"] if isinstance(done, dict) else done, want, answer)


def one_by_one(told, seen):
    """A call that answers with each in turn, and then with the last one; seen: its answers."""
    def ask(pid):
        seen.append(told[min(len(seen), len(told) - 1)])
        return seen[-1]

    return ask


@tap.test("a job's queues that the driver shows before its agent has come are not stopped until it has; where it never comes the call is left to say so")
def _(folder):
    way, none = SimpleNamespace(way="update"), SimpleNamespace(way="")
    for told, patience_s, want in (([[], [none], [way, none], [way, way]], 9, ["update", "update"]), ([[none, none]], 0.02, ["", ""])):
        ids, seen = [], []
        calls = SimpleNamespace(queues=one_by_one([[], [7], [7, 8]], ids))
        with mock.patch.object(gpreempt, "queues", one_by_one(told, seen)), mock.patch.object(stage, "AGENT_S", patience_s):
            stage.until_known(calls, 5, 2, "job")
        tap.same((ids[-1], [queue.way for queue in seen[-1]]), ([7, 8], want), f"{told}")


@tap.test("a program of --job that moved while it was held, had no work at all, or lost some is noticed")
def _(folder):
    well = {"still": 2, "elapsed_ns": 10 ** 9, "submitted": 30, "completed": 30, "twice": 0, "error": 0}
    for more, want in (({}, []), ({"still": 1}, ["stood still as often as asked (2 times)"]), ({"submitted": 0, "completed": 0}, ["it had work"]),
                       ({"completed": 29}, ["nothing lost: each dispatch ended, once"]), ({"twice": 1}, ["nothing lost: each dispatch ended, once"])):
        one = begun()
        one.see_job(Told(**{**well, **more}), 2, run.Held(1.0, 1.2))
        tap.same(untrue(one.as_dict()), want, f"{more}")


def is_held(tool, client):
    return [queue["held"] for queue in tool.queues() if queue["pid"] == client.pid]


@tap.test("a folder for temporary files whose path is too long for a socket, if by one byte, is said to be, and nothing is left in it")
def _(folder):
    fits = 107 - len("/gpreempt-verify-12345678/gpreemptd.sock")
    for length, want in ((fits, ""), (fits + 1, "gpreempt: {} is too long a path for sockets: set TMPDIR to a shorter one\n")):
        there = os.path.join(folder, "x" * (length - len(folder) - 1))
        os.mkdir(there)
        done = verify("reservation", TMPDIR=there)
        tap.same((done.returncode, done.stderr, os.listdir(there)), (1 if want else 0, want.format(there), []), f"{length} bytes")


@tap.test("Ctrl-C while Python still loads it ends it without a word")
def _(folder):
    tap.write(f"{folder}/argparse.py", "import time\nprint('loads', flush=True)\ntime.sleep(100)\n")
    with started("basic", PYTHONPATH=folder) as process:
        tap.same(process.stdout.readline(), "loads\n", "output")
        process.send_signal(signal.SIGINT)
        tap.same((process.communicate(timeout=SOON), process.returncode), (("", ""), -signal.SIGINT))


@tap.test("without python3, with a process that has no queue, and with bad words it says what to do")
def _(folder):
    none = verify("basic", PATH=folder)
    tap.same((none.returncode, "no python3 in PATH" in none.stderr), (1, True), none.stderr)
    for words, code, text in ((("bazic",), 2, "no check \"bazic\""), (("--duration", "5"), 2, "--duration"), (("--pid", "x"), 2, "--pid"),
                              (("--pid", str(os.getpid())), 1, "no AMD GPU"), (("basic", "edge"), 2, "one too many"),
                              (("--job", f"{folder}/none"), 1, "no such program"), (("--job", "true", "--pid", "1"), 2, "not both")):
        done = verify(*words)
        tap.same((done.returncode, done.stdout, text in done.stderr), (code, "", True), done.stderr)


@tap.test("results that cannot be written end it, with what was found printed, the file's name, and nothing else in the folder")
def _(folder):
    os.makedirs(f"{folder}/out/reservation.json")
    done = verify("reservation", "--json", "-o", f"{folder}/out")
    tap.same((done.returncode, f"{folder}/out/reservation.json: it is there, and is no file" in done.stderr), (1, True), done.stderr)
    tap.same([check["status"] for check in json.loads(done.stdout)["checks"]], ["passed"], "found")
    tap.same(os.listdir(f"{folder}/out"), ["reservation.json"], "left")
    done = verify("reservation", "--out", "/dev/null")
    tap.same((done.returncode, done.stdout, done.stderr), (1, "", "gpreempt: /dev/null: File exists\n"), "a device")


@tap.test("with its output closed it does what it was asked for, and with a full one says so", alone=True)
def _(folder):
    for streams, code in ((">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), (">/dev/full", 1)):
        done = tap.run("-c", f"{tap.PROGRAM} verify reservation --out {folder} {streams}", program="/bin/sh", env=environment(), timeout=PATIENCE,
                       preexec_fn=tap.die_with_parent)
        tap.same((done.returncode, done.stderr), (code, "gpreempt: No space left on device\n" if code else ""), streams)
        if code == 0:
            tap.same(json.loads(tap.read(folder, "reservation.json"))["status"], "passed", streams)
            os.unlink(f"{folder}/reservation.json")


FAULTY = """
import sys
from gpreempt.verify import main
def faulty(run, calls):
    run.did = "nothing"
    [][0]
main.CHECKS = dict(list(main.CHECKS.items())[8:9], faulty=faulty)
sys.exit(main.main(["--json"]))
"""


@tap.test("a fault in a check is that one's reason, and the others' results are told")
def _(folder):
    env = environment(PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1", GPREEMPT_PROGRAM=tap.PROGRAM, GPREEMPT_LIBRARY=os.environ["GPREEMPT_LIBRARY"])
    done = tap.run("-c", FAULTY, program=sys.executable, env=env, timeout=PATIENCE, preexec_fn=tap.die_with_parent)
    told = [(check["name"], check["status"], check["reason"]) for check in json.loads(done.stdout)["checks"]]
    tap.same((done.returncode, told), (1, [("reservation", "passed", ""), ("faulty", "failed", "IndexError: list index out of range")]), done.stderr)


@tap.test("an installation finds its own package and libraries, and no module of the folder it is started in")
def _(folder):
    os.makedirs(f"{folder}/bin")
    os.makedirs(f"{folder}/lib")
    os.makedirs(f"{folder}/here/gpreempt")
    for name in ("gpreempt/__init__.py", "importlib.py", "sys.py"):
        tap.write(f"{folder}/here/{name}", "raise SystemExit('a stranger')\n")
    for name in ("gpreempt", "gpreemptd"):
        shutil.copy(os.path.join(tap.BUILD, name), f"{folder}/bin/{name}")
    for name in LIBRARIES:
        shutil.copy(os.path.join(tap.BUILD, name), f"{folder}/lib/{name}")
    shutil.copytree(PACKAGE, f"{folder}/share/gpreempt/python", ignore=shutil.ignore_patterns("__pycache__"))
    env = environment(PATH=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")  # others have imported more before they begin
    done = tap.run("verify", "reservation", "--json", program=f"{folder}/bin/gpreempt", cwd=f"{folder}/here", env=env, timeout=PATIENCE,
                   preexec_fn=tap.die_with_parent)
    tap.same((done.stderr, done.returncode), ("", 0), "errors")
    tap.same(untrue(json.loads(done.stdout)["checks"][0]), [], "it runs")


@tap.test("a number meets the strictest of the notes' limits that it is within, and one that is unknown meets none")
def _(folder):
    for key, value, want in (("batch_unmap_ms", 0.29, "best"), ("batch_unmap_ms", 0.3, "should"), ("batch_unmap_ms", 0.99, "must"), ("fast_remap_ms", 1.0, "failed"),
                             ("suspend_ms", 4.9, "must"), ("resume_ms", 5.0, "failed"), ("online_old_ms", 49, "must"), ("online_old_ms", 9, "should"),
                             ("online_old_ms", 50, "failed"), ("online_new_ms", 15, "failed"), ("online_new_ms", 14, "must"), ("online_new_ms", 4, "best"),
                             ("lost_percent", 20, "failed"), ("lost_percent", 19, "must"), ("lost_percent", 4, "best"), ("hqd_percent", 80, "failed"),
                             ("hqd_percent", 81, "must"), ("suspend_ms", None, "failed")):
        tap.same(criteria.judged(key, value)["level"], want, f"{key} {value}")
    tap.same([criteria.figures([1.0] * n)["p99"] for n in (99, 100)], [None, 1.0], "p99 of 99 and 100")
    tap.same({name: criteria.figures([1.0] * 19)[name] for name in ("p50", "p95", "p99")}, {"p50": 1.0, "p95": None, "p99": None}, "of 19")
    tap.same([criteria.figures([float(i) for i in range(1, 101)])[name] for name in ("mean", "p50", "p95", "p99", "max")], [50.5, 50, 95, 99, 100], "of 1 to 100")
    tap.same(criteria.figures([])["mean"], None, "of none")


@tap.test("a driver in trouble is seen in the kernel log from then on, others' messages are not, and memory that grows is noticed")
def _(folder):
    path = tap.write(f"{folder}/kmsg", "3,1,1,-;amdgpu: GPU reset begin\n")
    log = watch.KernelLog(path)
    with open(path, "a", encoding="utf-8") as file:
        file.write("6,2,2,-;usb 1-1: reset high-speed\n3,3,3,-;kfd kfd: amdgpu: queue hang detected\n4,4,4,-;BUG: soft lockup\n")
    tap.same(log.trouble(), ["kfd kfd: amdgpu: queue hang detected", "BUG: soft lockup"], "trouble")
    log.close()
    tap.true("No such file" in watch.KernelLog(f"{folder}/none").why_not, "why not")
    process = watch.Process(os.getpid())
    for memory, want in ((4000, False), (5300, False), (6000, True)):
        process.samples = [{"at_s": 0, "cpu_s": 0, "memory_kib": 4000}] * 4 + [{"at_s": 1, "cpu_s": 0.5, "memory_kib": memory}]
        tap.same((process.grew, process.as_dict()["cpu_percent"]), (want, 50), f"{memory} KiB")


def result(folder, name, device="simulated mi308x", **more):
    """One file, as verify writes it."""
    os.makedirs(folder, exist_ok=True)
    head = {"schema": "gpreempt-verify-1", "time": "2026-11-16T12:00:00Z", "command": ["gpreempt", "verify"], "device": {"kind": device.split()[0], "name": "", "text": device},
            "machine": {"kernel": "6.1", "cpus": 2, "python": "3.6"}, "versions": {"gpreempt": "0.1.0", "library": "0.1"}}
    check = {"name": name, "ways": ["old", "new"], "status": "passed", "reason": "", "did": "", "saw": [], "facts": [], "criteria": [], "figures": {}, "parameters": {}, "raw": {}}
    tap.write(f"{folder}/{name}.json", json.dumps({**head, **check, **more}))


def compared(folder, way, values, online_ms=12.0, parts=None, **more):
    """Of one way, with these latencies at 1, 3 and 10 queues."""
    names = ("suspend_ms", "resume_ms", "online_ms") if way == "old" else ("batch_unmap_ms", "fast_remap_ms", "online_ms")
    every = {f"{way}_{n}_{name}": values for n in (1, 3, 10) for name in names}
    row = {**criteria.judged(f"online_{way}_ms", online_ms), "figure": f"{way}_1_online_ms", "of": "mean"}
    result(folder, "compare", raw={**every, "parts_ms": parts or {}}, figures={name: criteria.figures(some) for name, some in every.items()}, criteria=[row], **more)


def report(*words):
    return tap.run("report", *words, env=environment(), preexec_fn=tap.die_with_parent)


@tap.test("a report compares the two ways: mean, tail, speed-up and what is saved, at 1, 3 and 10 queues")
def _(folder):
    compared(f"{folder}/old", "old", [2.0] * 50 + [6.0] * 50)
    compared(f"{folder}/new", "new", [1.0] * 100)
    told = json.loads(tap.good("report", "--old", f"{folder}/old", "--new", f"{folder}/new", "-o", f"{folder}/r.html", "--json", env=environment()).stdout)
    tap.same([(row["queues"], row["what"]) for row in told["compared"]],
             [(n, what) for n in (1, 3, 10) for what in ("off the GPU", "on again", "online end to end")], "rows")
    for row in told["compared"]:
        tap.same((row["old"]["mean"], row["old"]["p50"], row["old"]["p99"], row["new"]["max"], row["speed_up"], row["saved_percent"]), (4, 2, 6, 1, 2, 50), f"{row}")


@tap.test("the two ways are compared by the means where both were measured on a GPU, else by the medians, and the page says by which")
def _(folder):
    for old, new, want in (("measured", "measured", ("mean", 4, 75)), ("measured", "simulated", ("p50", 2, 50)), ("software GPU", "software GPU", ("p50", 2, 50))):
        compared(f"{folder}/old", "old", [2.0] * 50 + [6.0] * 50, device=f"{old} on it")
        compared(f"{folder}/new", "new", [1.0] * 100, device=f"{new} on it")
        done = report("--old", f"{folder}/old", "--new", f"{folder}/new", "-o", f"{folder}/r.md")
        told = json.loads(report("--old", f"{folder}/old", "--new", f"{folder}/new", "-o", f"{folder}/r.md", "--json").stdout)
        tap.same({(row["of"], row["speed_up"], row["saved_percent"]) for row in told["compared"]}, {want}, f"{old} {new}")
        waited = {"mean": 4, "p50": 2}[want[0]]
        text = tap.read(folder, "r.md")
        tap.true(f"| {want[1]:.2f} | {want[2]} | {want[0]} |" in text and f"| 1 | old | {waited}.000 | 0.000 | 100.0 | {want[0]} |" in text, text)
        tap.true(f"off the GPU of 1 queue: {want[0]} {waited}.000 ms, then 1.000 ms: {want[1]:.2f} times as fast" in done.stdout, done.stdout)


@tap.test("what gpreemptd's scheduler made room for says so in the place of a way, and which way was tried")
def _(folder):
    for way in ("old", "new"):
        compared(f"{folder}/{way}", way, [1.0])
        rows = [{**criteria.judged(f"online_{way}_ms", 11.0), "figure": "online_beside_ms", "of": "p50"}]
        result(f"{folder}/{way}", "latency", ways=[way], criteria=[*rows, {**criteria.judged("suspend_ms", 1.0), "figure": "suspend_ms", "of": "p50"}])
        result(f"{folder}/{way}", "throughput", ways=[way], criteria=[*rows, {**criteria.judged("lost_percent", 3.0), "figure": None, "of": None}])
    told = json.loads(report("--old", f"{folder}/old", "--new", f"{folder}/new", "-o", f"{folder}/r.md", "--json").stdout)
    rooms = [(row["check"], row["name"], row["way"], row["room"]) for row in told["criteria"]]
    tap.same(rooms, [row for way in ("old", "new") for row in (
        ("latency", f"online_{way}_ms", way, "scheduler"), ("latency", "suspend_ms", way, way), ("throughput", f"online_{way}_ms", way, "scheduler"),
        ("throughput", "lost_percent", way, "scheduler"), ("compare", f"online_{way}_ms", way, way))], "rooms")
    text = tap.read(folder, "r.md")
    tap.same([text.count(f"| {words} | latency |") for words in ("scheduler (old)", "old", "scheduler (new)", "new")], [1] * 4, text)


@tap.test("a report says where the time of the calls went, by their medians, which part is the longest, and of how many nothing was told")
def _(folder):
    compared(f"{folder}/old", "old", [1.0], parts={"old_3_suspend_ms": [[1, 5, 2], None, [2, 9, 3], [3, 7, 1]]})
    compared(f"{folder}/new", "new", [1.0], parts={"new_10_fast_remap_ms": [[3, 1, 2]], "new_1_batch_unmap_ms": [None]})
    for way, taken in (("old", "update"), ("new", "session")):
        whole = json.loads(tap.read(folder, way, "compare.json"))
        whole["raw"]["compared"] = [{"way": "old", "queues": 1, "taken": ["update"]}, {"way": way, "queues": 1, "taken": [taken]}]
        tap.write(f"{folder}/{way}/compare.json", json.dumps(whole))
    told = json.loads(report("--old", f"{folder}/old", "--new", f"{folder}/new", "--json").stdout)
    tap.same([(row["queues"], row["what"], row["way"], row["parts_ms"], row["longest"], row["told"], row["of"]) for row in told["bottlenecks"]],
             [(3, "off the GPU", "old", {"ask": 2, "driver": 7, "answer": 2}, "driver", 3, 4), (10, "on again", "new", {"ask": 3, "driver": 1, "answer": 2}, "ask", 1, 1)], "rows")
    page = tap.read(folder, "new/report.html")
    tap.true("stopped by update in the old way and by session in the new one" in page, "the ways taken")
    tap.true("4 of 5 calls" in page and "gpreemptd has no event that tells these apart" in page and events.TRACE_ON.replace(">", "&gt;") in page and page.count('<rect class="driver"') == 2 + 2, "the page")


@tap.test("the parts of a call are its events', and a queue is on the GPU from its resume to its suspend")
def _(folder):
    told = [events.Told(kind, at, took, queue) for kind, at, took, queue in (
        (EventKind.SUSPEND, 10.004, 2.0, 1), (EventKind.SUSPEND, 10.006, 4.0, 2), (EventKind.RESUME, 10.1, 1.0, 2), (EventKind.RESUME, 10.2, 1.0, 1))]
    found = events.split(told, EventKind.SUSPEND, 10.0, 7.0)
    tap.same([round(part, 3) for part in found], [2.0, 4.0, 1.0], "asking 2 ms, the driver 4, the answer 1")
    tap.same(events.split(told, EventKind.SUSPEND, 11.0, 7.0), None, "of a call without an event")
    tap.same([(round(at, 3), on) for at, on in events.on_gpu(told, 2)], [(0, 2), (0, 1), (0.002, 1), (0.002, 0), (0.096, 0), (0.096, 1), (0.196, 1), (0.196, 2)], "steps")


@tap.test("software cost is not judged by the notes' limits: no recommendation is made of it, and the page says what it is")
def _(folder):
    on = {"kind": "software GPU", "name": "gfx942", "text": "software GPU gfx942, software cost under emulation"}
    compared(f"{folder}/both", "old", [60.0], online_ms=70.0, ways=["old", "new"])
    whole = json.loads(tap.read(folder, "both/compare.json"))
    tap.write(f"{folder}/both/compare.json", json.dumps({**whole, "device": on}))
    told = json.loads(report("--old", f"{folder}/both", "--new", f"{folder}/both", "--json").stdout)
    tap.same((told["recommendations"][0]["verdict"], "says nothing of a GPU" in told["recommendations"][0]["text"]), ("unknown", True), f"{told['recommendations']}")
    tap.true("software cost under emulation, and say nothing of a real GPU" in tap.read(folder, "both/report.html"), "the page")


@tap.test("the recommendation is the notes' rule: enough up to 10 ms, the next stage above, failed above 50 ms")
def _(folder):
    for old, new, want in ((10.0, 50.0, ["enough", "next stage"]), (10.1, 50.1, ["next stage", "failed"])):
        compared(f"{folder}/old", "old", [1.0], online_ms=old)
        compared(f"{folder}/new", "new", [1.0], online_ms=new)
        told = json.loads(report("--old", f"{folder}/old", "--new", f"{folder}/new", "--json").stdout)
        tap.same([one["verdict"] for one in told["recommendations"]], want, f"{old} {new}")
        tap.true(os.path.exists(f"{folder}/new/report.html"), "the page")


@tap.test("what failed, was skipped or never run is among a report's problems, and that the ways were tried on two devices")
def _(folder):
    compared(f"{folder}/old", "old", [1.0], device="measured on MI308X", facts=[{"what": "nothing was lost", "is_so": False}], status="failed",
             saw=["this device has no batch call: that is no matter of the old way"])
    compared(f"{folder}/new", "new", [1.0], online_ms=20.0, saw=["this device has no batch call: and so on"])
    result(f"{folder}/new", "batch", status="skipped", reason="no <queues>", did="nothing | <b>")
    result(f"{folder}/new", "stress", saw=["kernel log: not readable (no): not watched", "gpreemptd alone tells what became of it", "and more", first.NO_REQUESTS, second.NOT_TRIED.format("why")])
    tap.write(f"{folder}/new/other.json", "[]")
    done = tap.good("report", "--old", f"{folder}/old", "--new", f"{folder}/new", "-o", f"{folder}/r.html", env=environment())
    tap.true("Wrote" in done.stdout and "next stage" in done.stdout and "what differs between them is chance" in done.stdout, done.stdout)
    page = tap.read(folder, "r.html")
    problems = page.partition("Problems and limits")[2].partition("<h2>")[0]
    tap.same([word in problems for word in ("new way, stress: kernel log: not readable", "new way, stress: gpreemptd alone", "stress: " + first.NO_REQUESTS, "not tried: why", "and more")],
             [True, True, True, True, False], problems)
    tap.true("nothing | &lt;b&gt;" in page, "a cell")
    tap.good("report", "--old", f"{folder}/old", "--new", f"{folder}/new", "-o", f"{folder}/r.md", env=environment())
    text = tap.read(folder, "r.md")
    tap.true("nothing \\| \\<b>" in text and "skipped: no \\<queues>" in text, text)
    tap.true("that is no matter of the old way" not in page, "a limit of the new way alone")
    for text in ("old way, compare: not so: nothing was lost", "new way, batch: skipped: no &lt;queues&gt;", "new way, compare: online end to end (10 ms model), new way (new 1 online, mean): 20.000 ms is not &lt; 15",
                 "old way: not run: basic, frequent, edge, latency, throughput, stability, stress, models<",
                 "not tried on the same device", "what differs between them is chance", "old way: measured on MI308X; new way: simulated mi308x", "say nothing of a real GPU"):
        tap.true(text in page, text)


@tap.test("what a result says is shown as text: it moves no cursor, ends no line, and makes no tag or column of Markdown")
def _(folder):
    compared(f"{folder}/both", "old", [1.0], device="a <b>|\x1b[2J\n# \x9b\u202eGPU")
    result(f"{folder}/both", "stress", status="skipped", reason="no\r\x07 queue", did="line\nline")
    done = report("--old", f"{folder}/both", "--new", f"{folder}/both", "-o", f"{folder}/r.md")
    text = tap.read(folder, "r.md")
    tap.true("(both ways: a <b>|?[2J?# ??GPU, simulated mi308x)" in done.stdout, done.stdout)
    tap.true("\nboth ways: a \\<b>\\|?[2J?# ??GPU, " in text and "line?line |" in text and "skipped: no?? queue" in text, text)
    tap.same([line for line in text.splitlines() if "<b>" in line.replace("\\<b>", "")], [], "lines with a tag")
    tap.same([sign for sign in done.stdout + text if not sign.isprintable() and sign != "\n"], [], "what nobody sees")


@tap.test("a report says of each way what each check did, that some do not apply to the old one, and of what figure the rule is")
def _(folder):
    for way in ("old", "new"):
        compared(f"{folder}/{way}", way, [1.0], online_ms=20.0)
        result(f"{folder}/{way}", "basic", ways=[way], did=f"stopped it by {ways.said(way)}")
    result(f"{folder}/new", "stress", ways=["new"], did=f"stopped it by {ways.said('new')}")
    result(f"{folder}/old", "edge", ways=["old"], did=f"stopped it by {ways.said('old')}")
    result(f"{folder}/new", "throughput", ways=["new"], criteria=[{**criteria.judged("lost_percent", 3.0), "figure": None, "of": None}])
    told = json.loads(report("--old", f"{folder}/old", "--new", f"{folder}/new", "--json").stdout)
    rows = {row["check"]: (row["old"], row["new"], row["did"]) for row in told["functional"]}
    tap.same((rows["basic"], rows["stress"]), (("passed", "passed", "stopped it by each way"), ("not run", "passed", f"stopped it by {ways.said('new')}")), "did")
    tap.same(rows["edge"], ("passed", "not run", f"stopped it by {ways.said('old')}"), "of the old way alone")
    tap.same((rows["batch"], rows["reservation"]), (("does not apply", "not run", ""),) * 2, "of the new way alone")
    tap.same(told["recommendations"][0]["text"], "online requests took 20.0 ms (mean of the slowest check), more than 10 ms: go on to the next stage", "text")
    tap.true("<td>offline throughput lost</td><td class=\"number\">3.000</td>" in tap.read(folder, "new/report.html"), "what was judged")


@tap.test("a report that cannot be printed says so, and is written")
def _(folder):
    for way in ("old", "new"):
        compared(f"{folder}/{way}", way, [1.0])
    command = f"exec {tap.PROGRAM} report --old old --new new >/dev/full"
    done = tap.run("-c", command, program="/bin/sh", cwd=folder, env=environment(), preexec_fn=tap.die_with_parent)
    tap.same((done.returncode, done.stderr), (1, "gpreempt: No space left on device\n"), "it says why")
    tap.true(os.path.exists(f"{folder}/new/report.html"), "the page")


@tap.test("of a folder with both ways each result counts for those it is of")
def _(folder):
    compared(f"{folder}/both", "old", [1.0], online_ms=60.0, ways=["old"])
    rows = [{**criteria.judged("online_new_ms", value), "figure": "online_beside_ms", "of": "p50"} for value in (8.0, 9.0, 7.0)]
    result(f"{folder}/both", "latency", ways=["new"], criteria=rows)
    told = json.loads(report("--old", f"{folder}/both", "--new", f"{folder}/both", "--json").stdout)
    tap.same([(one["verdict"], one["online_ms"]) for one in told["recommendations"]], [("failed", 60.0), ("enough", 9.0)], "verdicts")
    tap.same([(row["old"], row["new"]) for row in told["functional"] if row["check"] in ("latency", "compare")], [("not run", "passed"), ("passed", "not run")], "functional")
    os.unlink(f"{folder}/both/latency.json")
    done = report("--old", f"{folder}/both", "--new", f"{folder}/both")
    tap.same((done.returncode, "no result of the new way" in done.stderr), (2, True), done.stderr)


@tap.test("of a check that tried both ways and failed by one, the other has passed, and what failed is a problem of that one alone")
def _(folder):
    rows = [{**criteria.judged(f"online_{way}_ms", 20.0), "figure": f"{way}_1_online_ms", "of": "mean"} for way in ("old", "new")]
    for fact, want in (("new way, 1: nothing lost", ["passed", "failed"]), ("old way, 1: nothing lost", ["failed", "failed"]), ("something was compared", ["failed", "failed"])):
        result(f"{folder}/both", "compare", status="failed", criteria=rows, facts=[{"what": fact, "is_so": False}])
        told = json.loads(report("--old", f"{folder}/both", "--new", f"{folder}/both", "--json").stdout)
        row = next(row for row in told["functional"] if row["check"] == "compare")
        tap.same([row["old"], row["new"]], want, fact)
        tap.same([f"{way} way, compare: not so: {fact}" in told["problems"] for way in ("old", "new")], [not fact.startswith("new"), not fact.startswith("old")], fact)
    result(f"{folder}/both", "compare", status="failed", reason="gpreemptd has gone")
    told = json.loads(report("--old", f"{folder}/both", "--new", f"{folder}/both", "--json").stdout)
    tap.same([(row["old"], row["new"]) for row in told["functional"] if row["check"] == "compare"], [("failed", "failed")], "with a reason")


@tap.test("the page of a report is whole in itself and has a chart for each figure, Markdown has them beside it, and each says what it was measured on")
def _(folder):
    compared(f"{folder}/both", "old", [0.5, 1.0, 20.0], parts={"old_3_suspend_ms": [[0.1, 0.2, 0.2], None, [1, 18, 1]]})  # and nothing of the new way
    stress = {"suspend_ms": [1.0, 2.0, 1.5], "daemon": {"samples": [{"at_s": at, "cpu_s": 0, "memory_kib": 3000} for at in (0.0, 1.0, 2.0)]},
              "on_gpu": [[0.0, 10], [0.0, 9], [0.5, 9], [0.5, 10]]}
    result(f"{folder}/both", "stress", raw=stress)
    result(f"{folder}/both", "reservation", raw={"hqd": [{"time": 5.0, "percent": 80.0}, {"time": 6.0, "percent": 90.0}]})
    for name in ("r.html", "r.md"):
        tap.good("report", "--old", f"{folder}/both", "--new", f"{folder}/both", "-o", f"{folder}/deep/{name}", env=environment())
    page, text = tap.read(folder, "deep/r.html"), tap.read(folder, "deep/r.md")
    figures = 2 * 3 * 3 + 4 + 1 + 1  # histogram and distribution of three things at three counts; latency, memory, CPU and queues; slots; parts
    tap.same((page.count("<svg"), page.count(">both ways: simulated mi308x</text>")), (figures, figures), "figures")
    tap.true("@media print" in page and ".scroll { overflow: visible; }" in page, "on paper nobody can scroll")
    tap.true("h2 { break-after: avoid; }" in page and page.count("<thead>") == page.count("<table>") > 0, "on paper a heading is with what is below it, and a table's again on the next")
    tap.true("minmax(min(100%, 400px), 1fr)" in page and ".figures { grid-template-columns: 1fr 1fr; }" in page, "histogram and distribution are side by side")
    tap.same([word for word in ("<script", "src=", "href=", "@import", "nan", "inf,") if word in page], [], "what a page from disk has not")
    linked = [line.partition("](")[2][:-1] for line in text.splitlines() if line.startswith("![")]
    tap.same(sorted(linked), sorted(name for name in os.listdir(f"{folder}/deep") if name.endswith(".svg")), "linked figures")
    tap.same(len(linked), figures, "figures of the Markdown")


@tap.test("a figure that is passed on alone says what it was measured on, in sight and to who hears it read, and needs nothing that is not in it")
def _(folder):
    for old, new in (("simulated mi308x", "simulated mi308x"), ("simulated mi308x", "measured on MI308X"),
                     ("software GPU amd <gfx942>, software cost under emulation", "software GPU amd <gfx942>, software cost under emulation, " * 3)):
        compared(f"{folder}/old", "old", [1.0, 2.0], device=old)
        compared(f"{folder}/new", "new", [1.0, 2.0], device=new, parts={"new_3_batch_unmap_ms": [[1, 1, 1]]})
        result(f"{folder}/new", "stress", ways=["new"], device=new, raw={"batch_unmap_ms": [1.0, 2.0], "on_gpu": [[0.0, 10], [1.0, 9]]})
        tap.good("report", "--old", f"{folder}/old", "--new", f"{folder}/new", "-o", f"{folder}/r.md", env=environment())
        pictures = [name for name in os.listdir(folder) if name.endswith(".svg")]
        tap.true(len(pictures) > 2 * 3 * 3, f"{pictures}")
        for name in pictures:
            root = ElementTree.parse(f"{folder}/{name}").getroot()
            lines = [one for one in root if one.get("class") == "on"]
            text, height = " ".join(one.text for one in lines), float(root.get("viewBox").split()[3])
            want = f"both ways: {old}" if old == new else f"old way: {old} new way: {new.strip()}"
            tap.same((text, all(charts.HEIGHT < float(one.get("y")) < height and len(one.text) <= 78 for one in lines)), (want, True), name)
            tap.true(old in root.get("aria-label") and new in root.get("aria-label"), root.get("aria-label"))
            tap.same([word for word in ("var(", "url(", "href") if word in tap.read(folder, name)], [], "what not every program shows that shows a picture")


@tap.test("the tracepoints that a report names are those of the driver's series")
def _(folder):
    del folder
    patch = "".join(tap.read(path) for path in sorted(glob.glob(os.path.join(tap.SOURCE, "kernel", "series", "*.patch"))))
    system = re.search(r"^\+#define TRACE_SYSTEM (\w+)$", patch, re.M).group(1)
    named = re.findall(r"^\+TRACE_EVENT\((\w+),$|^\+DEFINE_EVENT\(\w+, (\w+),$", patch, re.M)
    tap.same(sorted(events.TRACEPOINTS), sorted(f"{system}:{one or other}" for one, other in named), "tracepoints")
    tap.true(f"/events/{system}/enable" in events.TRACE_ON, events.TRACE_ON)


def points(svg, way):
    """Of a way's line, as parts of the chart's width and height."""
    line = next(one for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}polyline") if one.get("class") == way)
    pairs = [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
    width, height = charts.WIDTH - charts.LEFT - charts.RIGHT, charts.HEIGHT - charts.TOP - charts.BOTTOM
    return [(round((x - charts.LEFT) / width, 2), round((charts.HEIGHT - charts.BOTTOM - y) / height, 2)) for x, y in pairs]


def columns(svg, way):
    """Heights of a way's columns in a histogram, the highest as 1, where there is one."""
    rects = [one for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect") if one.get("class") == way][1:]  # without the legend's
    heights = [float(one.get("height")) for one in rects]
    return [(index, round(height / max(heights), 2)) for index, height in enumerate(heights) if height]


@tap.test("charts have their values where they belong: a distribution climbs to all of them, a histogram counts each once, a curve goes from left to right")
def _(folder):
    both = [charts.Series("old", [1.0, 10.0, 100.0, 100.0]), charts.Series("new", [10.0])]
    look = charts.Look("", [])
    shown = charts.distribution("some", both, look)
    tap.same(points(shown, "old"), [(0, 0), (0.01, 0), (0.01, 0.25), (0.5, 0.25), (0.5, 0.5), (0.99, 0.5), (0.99, 0.75), (0.99, 0.75), (0.99, 1), (1, 1)], "distribution")
    tap.same(points(shown, "new"), [(0, 0), (0.5, 0), (0.5, 1), (1, 1)], "of one value")
    shown = charts.histogram("some", both, look)
    tap.same((columns(shown, "old"), columns(shown, "new")), ([(0, 0.5), (12, 0.5), (23, 1)], [(12, 1)]), "histogram")
    shown = charts.curve("some", [("old", [(0.0, 0.0), (5.0, 2.0), (10.0, 4.0)])], ("s", "KiB"), look)
    tap.same(points(shown, "old"), [(0, 0), (0.5, 0.5), (1, 1)], "curve")
    tap.same((charts.linear_axis(0, 100).ticks, charts.log_axis([0.6, 6.0]).ticks), ([0, 20, 40, 60, 80, 100], [1, 2, 5]), "ticks")


@tap.test("a report says how much of a request's time was waiting for the GPU")
def _(folder):
    compared(f"{folder}/both", "old", [1.0])
    file = json.loads(tap.read(folder, "both/compare.json"))
    file["figures"]["old_3_online_ms"]["p50"] = 4.0
    tap.write(f"{folder}/both/compare.json", json.dumps(file))
    tap.good("report", "--old", f"{folder}/both", "--new", f"{folder}/both", "-o", f"{folder}/r.md", env=environment())
    tap.true("| 3 | old | 1.000 | 3.000 | 25.0 | p50 |" in tap.read(folder, "r.md"), tap.read(folder, "r.md"))


@tap.test("a report without results, or of one way alone, is refused and says what to give")
def _(folder):
    for words, text in ((("--old", folder, "--new", folder), "gpreempt verify --old --out"), (("--old", folder), "give both"), ((folder, "--old", folder, "--new", folder), "one too many"),
                        (("--old",), "needs a value"), ((), "report: DIR is missing"), ((folder,), "what gpreempt verify wrote, by --old and --new")):
        done = report(*words)
        tap.same((done.returncode, done.stdout, text in done.stderr), (2, "", True), done.stderr)
    result(folder, "edge", facts=7)
    done = report("--old", folder, "--new", folder)
    tap.same((done.returncode, "verify again" in done.stderr), (2, True), done.stderr)
    for text in ("", '{"schema": "gpreempt-ver', "[" * 100000, '{"schema": NaN}', "[]", '{"schema": "gpreempt-verify-2", "name": "edge", "ways": ["old"]}'):
        tap.write(f"{folder}/edge.json", text)
        done = report("--old", folder, "--new", folder)
        tap.same((done.returncode, f"{folder}/edge.json: it is no result" in done.stderr), (2, True), f"{text[:30]}: {done.stderr}")
    os.unlink(f"{folder}/edge.json")


@tap.test("a report of numbers that no check can have found is refused in one line")
def _(folder):
    for value in (1e308, 10 ** 400, "x", []):
        compared(folder, "old", [1.0])
        file = json.loads(tap.read(folder, "compare.json"))
        file["raw"]["old_1_suspend_ms"] = [value, 1.0]
        tap.write(f"{folder}/compare.json", json.dumps(file))
        done = report("--old", folder, "--new", folder)
        tap.same((done.returncode, done.stderr.count("\n"), "verify again" in done.stderr), (2, 1, True), f"{value}: {done.stderr}")
    compared(folder, "old", [1.0])
    file = json.loads(tap.read(folder, "compare.json"))
    file["raw"]["parts_ms"] = {"old_1_suspend_ms": [[1.0]]}
    tap.write(f"{folder}/compare.json", json.dumps(file))
    done = report("--old", folder, "--new", folder)
    tap.same((done.returncode, done.stderr.count("\n"), "verify again" in done.stderr), (2, 1, True), f"parts: {done.stderr}")


@tap.test("a page takes no device's and no folder's place, is whole or not there, and may be of a folder with any name")
def _(folder):
    odd = os.fsdecode(os.fsencode(folder) + b"/caf\xe9")
    compared(odd, "old", [1.0], command=["gpreempt", "verify", "--out", odd])
    os.mkfifo(f"{folder}/pipe")
    os.mkdir(f"{folder}/page.html")
    os.symlink(f"{folder}/elsewhere", f"{folder}/r.html.new")
    for name, text in (("pipe", "it is there, and is no file"), ("page.html", "it is there, and is no file"), ("pipe/x.html", "File exists")):
        done = report("--old", odd, "--new", odd, "-o", f"{folder}/{name}")
        tap.same((done.returncode, done.stderr), (1, f"gpreempt: {folder}/{name.partition('/x')[0]}: {text}\n"), name)
    done = report("--old", odd, "--new", odd, "-o", f"{folder}/r.html")
    tap.same((done.returncode, done.stderr), (0, ""), "an odd name")
    tap.same(sorted(os.listdir(folder)), sorted([os.path.basename(odd), "page.html", "pipe", "r.html", "r.html.new"]), "files")
    mask = os.umask(0)
    os.umask(mask)
    tap.same(os.stat(f"{folder}/r.html").st_mode & 0o777, 0o666 & ~mask, "rights")


@tap.test("a file that could not be written whole is not there, nor any part of it under another name, and the one before it stays")
def _(folder):
    path = tap.write(f"{folder}/one.json", "before")

    def fail(*words):
        raise OSError(errno.ENOSPC, "No space left on device")

    with mock.patch.object(files.os, "rename", fail):
        try:
            files.write(path, "after")
            raise AssertionError("it was written")
        except OSError as why:
            tap.same((why.errno, why.filename), (errno.ENOSPC, path), "why")
    tap.same((os.listdir(folder), tap.read(path)), (["one.json"], "before"), "files")


NOTES = os.path.join(tap.SOURCE, "share", "notes")
WRITES_WORDS = """#!/bin/sh
echo "$*" >>"$WORDS"
[ "$1" = list ] && [ "$3" = bert ] && echo '{"queues": [{"pid": 4712}, {"pid": 4711, "queue_id": 2}]}'
[ "$1" = list ] && [ "$3" = two ] && echo '{"queues": [{"pid": 4711, "queue_id": 1}, {"pid": 4711, "queue_id": 2}]}'
[ "$1" != "$FAILS" ]
"""


@tap.test("test_batch_unmap and test_fast_remap take a queue off and give it back, and fail for one that is not there")
def _(folder):
    with daemon(folder) as d, gpu(folder, socket=d.path), train(folder, "--queues", "2", socket=d.path) as client:
        handles(d, client.pid, 2)
        for name in ("test_batch_unmap", "test_fast_remap"):
            program, env = os.path.join(tap.BUILD, name), environment(GPREEMPT_SOCKET=d.path, GPREEMPT_QUIET="1")
            done = tap.good("0", "1", program=program, env=env)
            tap.true("Unmapped 2 of 2" in done.stdout and "Mapped 2 of 2" in done.stdout and done.stdout.count("(simulated mi308x)") == 2 and "this host's time" in done.stdout, done.stdout)
            many = tap.good(*["0", "1"] * 50, program=program, env=env)
            tap.true("of 100 queues" in many.stdout, many.stdout)
            large = tap.run("4294967296", program=program, env=env)
            tap.same((large.returncode, large.stdout, "0 to 4294967295" in large.stderr), (2, "", True), large.stderr)
            gone = tap.run("0", "77", program=program, env=env)
            tap.same((gone.returncode, "no process has a queue with the id 77" in gone.stderr), (1, True), gone.stderr)
        with contextlib.closing(Tool(d.path)) as tool:
            tap.same(is_held(tool, client), [0, 0], "held afterwards")
        tap.same(client.figures(signal.SIGTERM)["stops"], 8, "stops")


@tap.test("test_hqd_reservation is the reservation check under the notes' name")
def _(folder):
    told = json.loads(tap.run("--json", program=os.path.join(tap.BUILD, "test_hqd_reservation"), env=environment(), timeout=PATIENCE).stdout)
    tap.same([(check["name"], untrue(check)) for check in told["checks"]], [("reservation", [])], "checks")
    done = tap.run("basic", program=os.path.join(tap.BUILD, "test_hqd_reservation"), env=environment())
    tap.same((done.returncode, "one too many" in done.stderr), (2, True), done.stderr)


@tap.test("the notes' scripts ask for the checks and reports that they stand for, and fail if these fail")
def _(folder):
    fake = tap.write(f"{folder}/gpreempt", WRITES_WORDS)
    os.chmod(fake, 0o755)
    results = f"{folder}/results"
    reports = [f"report --old {results} --new {results} --out {results}/report.{end}" for end in ("md", "html")]
    for words, want in ((("run_poc_test.sh", results), [f"verify all --out {results}", *reports]),
                        (("run_poc_test.sh", "--container", "bert", results), ["list --container bert --json", f"verify all --pid 4711 --out {results}", *reports]),
                        (("run_poc_test.sh", "--container", "two", results), ["list --container two --json", f"verify all --pid 4711 --out {results}", *reports]),
                        (("quick_test_new_api.sh", "--json"), ["verify batch --new --json", "verify reservation --new --json"]),
                        (("performance_comparison.py", "--full"), ["verify compare --full"]), (("test_real_ai_models.py",), ["verify models"]),
                        (("generate_final_report.py", "--traditional-results", "a", "--new-results", "b", "--output", "c.md"), ["report --old a --new b --out c.md"])):
        said = tap.write(f"{folder}/words", "")
        for fails in ["", *{line.split()[0] for line in want} - {"list"}]:
            done = tap.run(*words[1:], program=os.path.join(NOTES, words[0]), env=environment(GPREEMPT_PROGRAM=fake, WORDS=said, FAILS=fails))
            tap.same(done.returncode, 1 if fails else 0, f"{words} {fails}: {done.stderr}")
            if not fails:
                tap.same(tap.read(said).splitlines(), want, words[0])
            tap.same(f"what they say comes at the end, and is in {results}/log.txt\n" in done.stderr, words[0] == "run_poc_test.sh", done.stderr)
            tap.same("the first is taken, 4711;" in done.stderr, "bert" in words, f"of several processes one was taken: {done.stderr}")


SHORT = """#!/bin/sh
# The program, with the long checks made short.
[ "$1" != verify ] || set -- "$@" --duration 300ms
exec "{program}" "$@"
"""


def notes_script(name, *words, **more):
    """One of the notes' scripts, with the real program, which is found as where it is installed unless told."""
    path = f"{os.path.abspath(tap.BUILD)}:{os.environ['PATH']}"
    return tap.run(*words, program=os.path.join(NOTES, name), env=environment(PATH=path, **more), timeout=PATIENCE, preexec_fn=tap.die_with_parent)


def in_report(check, way):
    """What a report says of a check in one way."""
    if way in check["ways"]:
        return check["status"]
    return "does not apply" if way == "old" and check["name"] in second.NEW_ALONE else "not run"


def rows_compared(check, way):
    """Those that a report has of one way, as far as its medians."""
    calls = ("suspend_ms", "resume_ms") if way == "old" else ("batch_unmap_ms", "fast_remap_ms")
    for queues in second.QUEUES:
        for what, name in zip(("off the GPU", "on again", "online end to end"), [*calls, "online_ms"]):
            row = check["figures"][f"{way}_{queues}_{name}"]
            yield f"| {queues} | {what} | {way} | {row['mean']:.3f} | {row['p50']:.3f} |"


@tap.test("run_poc_test.sh does all checks on a simulated GPU and leaves log, results and reports, and generate_final_report.py makes the same report of them")
def _(folder):
    short = tap.write(f"{folder}/gpreempt", SHORT.format(program=tap.PROGRAM))
    os.chmod(short, 0o755)
    results = f"{folder}/results"
    done = notes_script("run_poc_test.sh", results, GPREEMPT_PROGRAM=short)
    found = {name: json.loads(tap.read(results, f"{name}.json")) for name in CHECKS}
    tap.same([(name, one["device"], one["reason"], untrue(one)) for name, one in found.items()], [(name, SIMULATED, "", []) for name in CHECKS], done.stderr)
    tap.same(done.returncode, int(any(one["status"] != "passed" for one in found.values())), done.stdout)  # a busy host is late for the notes' limits
    log, text, page = (tap.read(results, name) for name in ("log.txt", "report.md", "report.html"))
    tap.true(log.startswith("On: simulated mi308x. ") and done.stdout.startswith(log) and f"Wrote {results}/report.md." in done.stdout, done.stdout)
    tap.same([line.split()[:2] for line in log.splitlines() if line.split()[0] in CHECKS], [[name, one["status"]] for name, one in found.items()], "the log")
    whole = [one for one in found.values() if one["status"] == "passed" or len(one["ways"]) == 1]  # of both ways one may have failed alone
    rows = [f"| {one['name']} | {in_report(one, 'old')} | {in_report(one, 'new')} |" for one in whole]
    rows += [row for way in ("old", "new") for row in rows_compared(found["compare"], way)]
    tap.same([row for row in rows if row not in text], [], text)
    cells = {number for row in rows for number in row.split() if number[0].isdigit()}
    tap.same([cell for cell in cells if f">{cell}</td>" not in page], [], "numbers that the page lacks")
    final = notes_script("generate_final_report.py", "--traditional-results", results, "--new-results", results, "--output", f"{folder}/final.md")
    tap.same((final.returncode, final.stderr), (0, ""), final.stdout)
    tap.same(tap.read(folder, "final.md").replace("](final-", "](report-"), text, "the final report")


@tap.test("generate_final_report.py puts side by side what two runs on simulated GPUs found, each of one way, and refuses a folder without results")
def _(folder):
    found = {}
    for way in ("old", "new"):
        tap.run("verify", "compare", f"--{way}", "--out", f"{folder}/{way}", env=environment(), timeout=PATIENCE, preexec_fn=tap.die_with_parent)
        found[way] = json.loads(tap.read(folder, way, "compare.json"))
        tap.same((found[way]["ways"], untrue(found[way])), ([way], []), way)
    words = ("--traditional-results", f"{folder}/old", "--new-results", f"{folder}/new", "--output", f"{folder}/final.md")
    done = notes_script("generate_final_report.py", *words)
    text = tap.read(folder, "final.md")
    tap.same((done.returncode, done.stderr, f"Wrote {folder}/final.md." in done.stdout), (0, "", True), done.stdout)
    tap.same([row for way in found for row in rows_compared(found[way], way) if row not in text], [], text)
    for way in found:
        worst = max((row for row in found[way]["criteria"] if row["name"] == f"online_{way}_ms"), key=lambda row: row["value"])
        tap.true(f"{way} way: online requests took {worst['value']:.1f} ms (p50 of the slowest check)" in text, text)
    tap.true("\n\nboth ways: simulated mi308x\n" in text, "what it was measured on")
    os.mkdir(f"{folder}/none")
    done = notes_script("generate_final_report.py", *words[:2], "--new-results", f"{folder}/none", "--output", f"{folder}/none.md")
    tap.same((done.returncode, "no result of the new way" in done.stderr, os.path.exists(f"{folder}/none.md")), (2, True, False), done.stderr)


INTERRUPTED = """#!/bin/sh
[ "$1" = verify ] || exec echo "$1"
trap 'echo what it found; exit 1' INT
kill -s INT 0
"""


@tap.test("Ctrl-C in run_poc_test.sh ends the tests, and what they found is shown and reported")
def _(folder):
    fake = tap.write(f"{folder}/gpreempt", INTERRUPTED)
    os.chmod(fake, 0o755)
    done = tap.run(f"{folder}/results", program=os.path.join(NOTES, "run_poc_test.sh"), env=environment(GPREEMPT_PROGRAM=fake), start_new_session=True)
    tap.same((done.returncode, done.stdout), (1, "what it found\nreport\n"), done.stderr)


@tap.test("the notes' scripts say how they are called, and what is missing where gpreempt is not in the path")
def _(folder):
    for words in (["--help"], ["a", "b"], ["a"] * 10, ["a"] * 11, [""], ["--container"], ["--container", ""], ["--container", "bert", "-x"]):
        done = tap.run(*words, program=os.path.join(NOTES, "run_poc_test.sh"), cwd=folder, env=environment(GPREEMPT_PROGRAM="false"))
        tap.same((done.returncode, done.stderr.startswith("usage: run_poc_test.sh [--container NAME] [DIR]"), os.listdir(folder)), (2, True, []), f"{words}: {done.stderr}")
    for words in (["performance_comparison.py"], ["test_real_ai_models.py"],
                  ["generate_final_report.py", "--traditional-results", "a", "--new-results", "b", "--output", "c"]):
        done = tap.run(*words[1:], program=os.path.join(NOTES, words[0]), env=environment(GPREEMPT_PROGRAM="/none/gpreempt"))
        tap.same((done.returncode, done.stderr), (1, "gpreempt cannot be started (No such file or directory): install it, and see that it is in the path\n"), words[0])


@tap.test("the notes' BERT training trains so many epochs, each line says what in, and refuses what is no number of them")
def _(folder):
    program = os.path.join(NOTES, "models", "bert_training.py")
    done = tap.good("--epochs", "2", "--priority", "3", program=program, env=environment())
    tap.same(len(re.findall(r"^Training: 10 steps, .* \((?:no PyTorch: a wait of 100 ms|PyTorch on .*)\)$", done.stdout, re.M)), 2, done.stdout)
    for bad in ("-1", "0"):
        done = tap.run("--epochs", bad, program=program, env=environment())
        tap.same((done.returncode, done.stdout, done.stderr.splitlines()[-1:]),
                 (tap.BAD_INPUT, "", [f"bert_training.py: error: argument --epochs: {bad}: there must be one at least"]), done.stderr)


tap.main(jobs=2)
