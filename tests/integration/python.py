#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Python package gpreempt: against the header, and on a simulated GPU under gpreemptd."""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import tap

from gpreemptd import daemon, until
from simulated import SOON, gpu, handles, train

PACKAGE = os.path.join(tap.SOURCE, "python")
LIBRARY = os.path.join(os.path.abspath(tap.BUILD), "libgpreempt.so.0")
HEADER = os.path.join(tap.SOURCE, "include", "gpreempt", "gpreempt.h")

os.environ["GPREEMPT_LIBRARY"] = LIBRARY
sys.path.insert(0, PACKAGE)

import gpreempt  # noqa: E402
from gpreempt import _abi, _library  # noqa: E402

STEPS = 8  # of training: about a second
FAR_LONGER_S = 3

# What the header has and Python has not.
NOT_HERE = {"GP_API", "GP_VERSION_MAJOR", "GP_VERSION_MINOR", "GP_MAKE_VERSION", "GP_RUN", "GP_BACKGROUND", "GP_STOP", "GPREEMPT_GPREEMPT_H"}
NO_CALL = {"gp_container_attach"}  # root's, once for a container: gpreempt attach

ENUMS = {
    "GP_CLASS_": gpreempt.ClientClass, "GP_QUEUE_": gpreempt.QueueState, "GP_ACTIVITY_": gpreempt.Activity, "GP_KIND_": gpreempt.QueueKind,
    "GP_CLIENT_": gpreempt.ClientState, "GP_PREEMPT_": gpreempt.PreemptType, "GP_EVENT_": gpreempt.EventKind, "GP_CAP_": gpreempt.Caps,
    "GP_KNOWN_": gpreempt.Known,
}
SINGLE = ("NAME_LEN", "ALL_DEVICES", "HINT_DEVICE", "HINT_ANSWER", "SUSPEND_NEW_QUEUES", "SUSPEND_STRICT", "EVENT_FOLLOW", "EVENT_NEW")


def environment(socket="", **more):
    return {**os.environ, "PYTHONPATH": PACKAGE, "GPREEMPT_SOCKET": socket, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", **more}


def script(code, socket="", **more):
    """A running Python with this code; who reads must know what comes."""
    return subprocess.Popen([sys.executable, "-c", code], env=environment(socket, **more), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, preexec_fn=tap.die_with_parent)


def said(code, socket="", **more):
    """What it prints; it must succeed."""
    done = tap.run("-c", code, program=sys.executable, env=environment(socket, **more), timeout=SOON, preexec_fn=tap.die_with_parent)
    tap.same((done.returncode, done.stderr), (0, ""), "exit status and standard error")
    return done.stdout


def compiled(folder, lines):
    """Numbers that the C compiler has for these expressions."""
    compiler = shutil.which(os.environ.get("CC", "gcc"))
    if not compiler:
        raise tap.Skip("there is no C compiler")
    prints = "".join(f'\tprintf("%llu\\n", (unsigned long long)({line}));\n' for line in lines)
    source = tap.write(f"{folder}/try.c", f"#include <gpreempt/gpreempt.h>\n#include <stdio.h>\nint main(void)\n{{\n{prints}\treturn 0;\n}}\n")
    tap.good("-Wall", "-Werror", f"-I{tap.SOURCE}/include", source, "-o", f"{folder}/try", program=compiler)
    return [int(line) for line in tap.good(program=f"{folder}/try").stdout.split()]


@tap.test("every struct of the header is laid out in Python as the C compiler does, field by field")
def _(folder):
    header = tap.read(HEADER)
    tap.same(set(re.findall(r"^struct (gp_\w+) \{", header, re.M)), set(_abi.STRUCTS), "structs")
    want, have = [], []
    for name, kind in _abi.STRUCTS.items():
        fields = re.search(rf"^struct {name} \{{\n(.*?)^\}};", header, re.M | re.S).group(1)
        named = re.findall(r"(\w+)(?:\[\w+\])?;", re.sub(r"/\*.*?\*/", "", fields, flags=re.S))
        tap.same([field[0] for field in kind._fields_], named, name)
        want.append(f"sizeof(struct {name})")
        have.append(ctypes.sizeof(kind))
        for field in named:
            want += [f"offsetof(struct {name}, {field})", f"sizeof(((struct {name} *)0)->{field})"]
            have += [getattr(kind, field).offset, getattr(kind, field).size]
    tap.same(list(zip(want, have)), list(zip(want, compiled(folder, want))), "layout")


@tap.test("every constant of the header has its number in Python, and none is missing")
def _(folder):
    text = re.sub(r"/\*.*?\*/", "", tap.read(HEADER), flags=re.S)
    there = set(re.findall(r"^#define (GP\w+)", text, re.M)) | {name for body in re.findall(r"^enum gp_\w+ \{(.*?)\}", text, re.M | re.S) for name in re.findall(r"GP_\w+", body)}
    have = {prefix + name: int(value) for prefix, kind in ENUMS.items() for name, value in kind.__members__.items()}
    have.update({"GP_" + name: getattr(_abi, name) for name in SINGLE})
    have.update({("GP_RIGHT_" if name == "OTHERS" else "GP_") + name: int(value) for name, value in gpreempt.Rights.__members__.items()})
    tap.same(set(have), there - NOT_HERE, "names")
    tap.same(have, dict(zip(have, compiled(folder, have))), "numbers")


@tap.test("every call of the header can be made from Python, with as many parameters")
def _(folder):
    calls = re.findall(r"^GP_API [\w\s*]*?\b(gp_\w+)\(([^)]*)\)", tap.read(HEADER), re.M)
    want = {name: 0 if text == "void" else text.count(",") + 1 for name, text in calls if name not in NO_CALL}
    tap.same({name: len(parameters) for name, (_, parameters) in _library.CALLS.items()}, want, "calls")


@tap.test("what is for Python 3.6 is noticed when it is not")
def _(folder):
    checker = os.path.join(tap.SOURCE, "tools", "check-python.py")
    os.makedirs(f"{folder}/python")
    tap.write(f"{folder}/meson.build", "")
    bad = ("if (x := 1): pass", "from __future__ import annotations", "import dataclasses", "import asyncio\nasyncio.run(f())", "def f(a: list[int]): pass",
           "def f(a: 'x' | None): pass", "import time\ntime.monotonic_ns()", "import subprocess\nsubprocess.run([], text=True)", "def f(a, /): pass",
           "from functools import cached_property", "import asyncio\nasyncio.get_running_loop()", "from typing import Protocol")
    for text in bad:
        tap.write(f"{folder}/python/one.py", text + "\n")
        tap.same(tap.run(checker, folder, program=sys.executable).returncode, 1, text)
    tap.write(f"{folder}/python/one.py", "import subprocess\nsubprocess.run([])\nx = [1][0] | 2\n")
    tap.good(checker, folder, program=sys.executable)


@tap.test("without the library the error says where it was looked for and what to do, and a package beside a library finds it")
def _(folder):
    code = "import gpreempt\ntry:\n gpreempt.version()\nexcept ImportError as why:\n print(type(why).__name__, why)"
    text = said(code, GPREEMPT_LIBRARY="/nowhere/libgpreempt.so.0")
    tap.true(text.startswith("LibraryNotFound ") and "/nowhere/libgpreempt.so.0" in text and "set GPREEMPT_LIBRARY" in text, text)
    for place, library in (("", "gpreempt"), ("/share/gpreempt/python", "../../../lib64"), ("/share/gpreempt/python", "../../../lib/x86_64-linux-gnu")):
        package = f"{folder}/{library.count('/')}{len(library)}{place}"
        shutil.copytree(os.path.join(PACKAGE, "gpreempt"), f"{package}/gpreempt")
        os.makedirs(f"{package}/{library}", exist_ok=True)
        shutil.copy(LIBRARY, f"{package}/{library}/libgpreempt.so.0")
        found = said("import gpreempt; from gpreempt import _library; print(_library.candidates()[0], gpreempt.version())", PYTHONPATH=package, GPREEMPT_LIBRARY="")
        tap.same(os.path.realpath(found.split()[0]), os.path.realpath(f"{package}/{library}/libgpreempt.so.0"), "found")


@tap.test("without a GPU and without gpreemptd, a request is served, and what cannot be done says why")
def _(folder):
    text = said("""
import gpreempt, errno
@gpreempt.online
def serve(x):
    return x + 1
print(serve(1))
with gpreempt.online() as request:
    print(request.error.errno == errno.ENODEV)
try:
    gpreempt.devices()
except gpreempt.Error as why:
    print(why.errno == errno.ENODEV, why)
""")
    lines = text.splitlines()
    tap.same(lines[:2], ["2", "True"], text)
    tap.true(lines[2].startswith("True no AMD GPU"), text)


@tap.test("on the simulated machine errors carry the library's sentence, its number and each queue's status, and what was stopped runs again")
def _(folder):
    with gpreempt.Context(backend="sim") as context:
        offline = context.queues(client_class=gpreempt.ClientClass.OFFLINE)
        tap.same(len(offline), 4, "queues")
        try:
            with context.suspend([offline[0], 4711]):
                raise AssertionError("it began")
        except gpreempt.Error as wrong:
            tap.same((wrong.errno, wrong.statuses), (2, {offline[0].queue: 0, 4711: -2}), str(wrong))
            tap.true("queue 4711 cannot be suspended" in str(wrong), str(wrong))
        tap.same([queue.held for queue in context.queues()], [False] * 5, "held")
    try:
        gpreempt.Context(backend="nonsense")
    except gpreempt.Error as wrong:
        tap.true('no backend "nonsense"' in str(wrong) and wrong.errno == 2, str(wrong))


@tap.test("of two suspensions of a queue in one context the last that ends resumes it")
def _(folder):
    with gpreempt.Context(backend="sim") as context:
        def held():
            return [queue.queue for queue in context.queues() if queue.held]

        one, two, *_ = [queue.queue for queue in context.queues(client_class=gpreempt.ClientClass.OFFLINE)]
        outer = context.suspend([one, two]).begin()
        with context.suspend(one):
            tap.same(held(), [one, two], "both hold it")
        tap.same(held(), [one, two], "the outer one holds it")
        outer.resume()
        tap.same(held(), [], "nobody does")
        outer.resume()
        forgotten = context.suspend(one).begin()
        tap.same(held(), [one], "held")
        del forgotten
        tap.same(held(), [], "nobody has it any more")


class Interrupted:
    """The library, with a Ctrl-C in the first call of that name: before it, or after."""

    def __init__(self, library, name, after):
        self.library, self.name, self.after = library, name, after

    def __getattr__(self, name):
        call = getattr(self.library, name)
        return call if name != self.name else lambda *args: self.interrupt(call, *args)

    def interrupt(self, call, *args):
        self.name = ""
        if self.after:
            call(*args)
        raise KeyboardInterrupt


@tap.test("Ctrl-C before and after each call to the library leaves nothing held, also if somebody keeps the suspension")
def _(folder):
    for name in ("gp_queue_suspend", "gp_queue_resume"):
        for after in (False, True):
            for ends_by in (None, KeyError):
                with gpreempt.Context(backend="sim") as context:
                    kept = context.suspend(context.queues())
                    context._library = Interrupted(context._library, name, after)
                    try:
                        with kept:
                            tap.true(name == "gp_queue_resume", "the block began")
                            if ends_by:
                                raise ends_by
                        raise AssertionError("no interrupt")
                    except KeyboardInterrupt:
                        tap.same([queue.queue for queue in context.queues() if queue.held], [], f"{name} {after}")


@contextlib.contextmanager
def training(folder, *options):
    """A daemon, a simulated GPU, and STEPS of training on it."""
    with daemon(folder) as d, gpu(folder, socket=d.path), train(folder, *options, socket=d.path) as client:
        handles(d, client.pid)
        yield d, client


HOLD = """
import gpreempt, sys, time
def hold(how):
    try:
        with gpreempt.suspend(gpreempt.queues(pid=PID)) as held:
            print("held", len(held), flush=True)
            how()
    except BaseException as why:
        print(type(why).__name__, flush=True)
    print([queue.held for queue in gpreempt.queues(pid=PID)], flush=True)
    sys.stdin.read()
"""


@tap.test("training that a with block suspends makes no step, and all of them when the block has ended", alone=True)
def _(folder):
    with training(folder, "--requests", str(STEPS)) as (d, client):
        with script(f"PID = {client.pid}{HOLD}hold(sys.stdin.readline)", d.path) as holder:
            tap.same(holder.stdout.readline(), "held 1\n")
            time.sleep(FAR_LONGER_S)
            tap.same(client.poll(), None, "it has ended")
            holder.stdin.write("\n")
            holder.stdin.flush()
            tap.same(holder.stdout.readline(), "[False]\n", "held after it")
            done = client.figures()
            tap.same((done["completed"], done["submitted"], done["stops"]), (STEPS, STEPS, 1), f"{done}")
            holder.kill()


@tap.test("after an exception in the block, after Ctrl-C, and after kill -9 of its process the queues run again")
def _(folder):
    with training(folder) as (d, client):
        for how, number, want in (("lambda: 1 / 0", None, "ZeroDivisionError"), ("lambda: time.sleep(100)", signal.SIGINT, "KeyboardInterrupt"),
                                  ("lambda: time.sleep(100)", signal.SIGKILL, None)):
            with script(f"PID = {client.pid}{HOLD}hold({how})", d.path) as holder:
                tap.same(holder.stdout.readline(), "held 1\n", how)
                if number:
                    holder.send_signal(number)
                if want:
                    tap.same((holder.stdout.readline(), holder.stdout.readline()), (f"{want}\n", "[False]\n"), how)
                else:
                    holder.wait(SOON)
                    until(lambda: [queue.held for queue in queues_of(d, client)] == [False], "gpreemptd resumes them")
                holder.kill()
        tap.same(client.figures(signal.SIGTERM)["stops"], 3, "stops")


def queues_of(d, client):
    with gpreempt.Context(socket=d.path) as context:
        return context.queues(pid=client.pid)


@tap.test("Ctrl-C at any moment of suspending and resuming leaves nothing held, and comes out", alone=True)
def _(folder):
    with training(folder) as (d, client):
        code = f"""
import gpreempt, signal, sys, time
context = gpreempt.Context()
queues = context.queues(pid={client.pid})
came = 0
for i in range(150):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.00002 * i + 0.00001)
        with context.suspend(queues):
            pass
        time.sleep(0.01)
    except KeyboardInterrupt:
        came += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    if context.queues(pid={client.pid})[0].held:
        sys.exit("held after round " + str(i))
print(came)
"""
        out = said(code.replace("context =", "signal.signal(signal.SIGALRM, signal.default_int_handler)\ncontext =", 1), d.path)
        tap.true(int(out) > 100, f"interrupts: {out}")


@tap.test("a forked child that ends inside a block resumes nothing of its parent's, and has a context of its own")
def _(folder):
    with training(folder) as (d, client):
        out = said(f"""
import gpreempt, os, threading
with gpreempt.suspend(gpreempt.queues(pid={client.pid})):
    is_locked, go_on = threading.Event(), threading.Event()
    def lock():
        with gpreempt.context()._lock:
            is_locked.set()
            go_on.wait()
    other = threading.Thread(target=lock)
    other.start()
    is_locked.wait()
    sure = os.fork()
    go_on.set()
    if sure:
        os.waitpid(sure, 0)
        print([queue.held for queue in gpreempt.queues(pid={client.pid})], flush=True)
    else:
        print([queue.held for queue in gpreempt.queues(pid={client.pid})], flush=True)
print("end", flush=True)
""", d.path)
        tap.same(out.splitlines(), ["[True]", "end", "[True]", "end"], "both")


@tap.test("hints of a with block, a decorator and asyncio reach gpreemptd, which takes the training off for them", alone=True)
def _(folder):
    with training(folder) as (d, client):
        out = said("""
import asyncio, gpreempt, time
DEVICE = [one.device for one in gpreempt.devices() if one.backend == "sim"][0]
def stopped():
    return [queue.state for queue in gpreempt.queues() if queue.state == gpreempt.QueueState.SUSPENDED]
def wait(n):
    end = time.monotonic() + 20
    while len(stopped()) != n and time.monotonic() < end:
        time.sleep(0.005)
    print(len(stopped()), flush=True)
@gpreempt.online(device=DEVICE, expiry=60)
def serve():
    wait(1)
@gpreempt.online(device=DEVICE, expiry=60)
async def serve_later():
    await asyncio.sleep(0)
    wait(1)
async def both():
    async with gpreempt.online(device=DEVICE, expiry=60) as request:
        wait(1)
        assert request.error is None, request.error
    wait(0)
    await serve_later()
    wait(0)
with gpreempt.online(device=DEVICE, expiry=60):
    wait(1)
wait(0)
serve()
wait(0)
asyncio.get_event_loop_policy().new_event_loop().run_until_complete(both())
print("hints", gpreempt.stats(DEVICE).hints)
""", d.path)
        tap.same(out.split(), ["1", "0"] * 4 + ["hints", "4"], "stopped in and after each block")


@tap.test("a suspension in asyncio ends with its block, and also if its task is cancelled at any moment", alone=True)
def _(folder):
    with training(folder) as (d, client):
        out = said(f"""
import asyncio, gpreempt
context = gpreempt.Context()
queues = context.queues(pid={client.pid})
def held():
    return context.queues(pid={client.pid})[0].held
kept = []
async def hold(seconds):
    kept.append(context.suspend(queues))
    async with kept[-1]:
        assert held()
        await asyncio.sleep(seconds)
async def main():
    await hold(0)
    print(held())
    for i in range(40):
        task = asyncio.ensure_future(hold(100))
        await asyncio.sleep(0.0002 * i)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
        assert not held(), i
    print(held())
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
""", d.path)
        tap.same(out.split(), ["False", "False"], "held")


def has_both(d):
    """The device of the tree, and the simulated one."""
    with gpreempt.Context(socket=d.path) as context:
        return len(context.devices()) == 2


@tap.test("after gpreemptd was started again, lists and hints find it, and a context of the old one says what happened")
def _(folder):
    with gpu(folder, socket=f"{folder}/gpreemptd.sock"):
        with daemon(folder) as d:
            until(lambda: has_both(d), "the GPU is known")
            holder = script("""
import gpreempt, sys, errno
mine = gpreempt.Context()
with gpreempt.online(): pass
print(len(gpreempt.devices()), flush=True)
sys.stdin.readline()
print(len(gpreempt.devices()), flush=True)
try:
    mine.devices()
except gpreempt.Error as why:
    print(why.errno == errno.ECONNRESET, flush=True)
""", d.path)
            tap.same(holder.stdout.readline(), "2\n")
            d.process.kill()
        with daemon(folder) as d, holder:
            until(lambda: has_both(d), "the GPU is known again")
            out, errors = holder.communicate("\n", timeout=SOON)
            tap.same((out, errors, holder.returncode), ("2\nTrue\n", "", 0), "after it")


@tap.test("events, clients and rights are told as gpreemptd has them")
def _(folder):
    with training(folder) as (d, client), gpreempt.Context(socket=d.path) as context:
        with context.suspend(context.queues(pid=client.pid)):
            tap.same([(one.pid, one.state, one.stopped) for one in context.clients()], [(client.pid, gpreempt.ClientState.HELD, 1)], "clients")
        kinds = [event.kind for event in context.events([gpreempt.EventKind.SUSPEND, gpreempt.EventKind.RESUME])]
        tap.same(kinds, [gpreempt.EventKind.SUSPEND, gpreempt.EventKind.RESUME], "events")
        tap.true(gpreempt.Rights.OTHERS in context.rights, "rights")


tap.main(jobs=2)
