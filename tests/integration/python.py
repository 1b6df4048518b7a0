#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Python package gpreempt: against the header, and on a simulated GPU under gpreemptd."""

import asyncio
import contextlib
import ctypes
import errno
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from unittest import mock

import tap
import protocol

from gpreemptd import daemon, until
from simulated import SOON, gpu, handles, train
from torchless import hide_torch, without_torch

PACKAGE = os.path.join(tap.SOURCE, "python")
LIBRARY = os.path.join(os.path.abspath(tap.BUILD), "libgpreempt.so.0")
PYTHON = os.environ.get("GPREEMPT_PYTHON", sys.executable)  # what runs the scripts: another version, to try it
HEADER = os.path.join(tap.SOURCE, "include", "gpreempt", "gpreempt.h")

os.environ["GPREEMPT_LIBRARY"] = LIBRARY
sys.path.insert(0, PACKAGE)
hide_torch()

import gpreempt  # noqa: E402
import ai_model_wrapper  # noqa: E402
import gpreempt_scheduler  # noqa: E402
import smart_queue_scheduler  # noqa: E402
from gpreempt import _abi, _context, _gpu, _library, notes as notes_module  # noqa: E402

STEPS = 16  # of training: about two seconds
FAR_LONGER_S = 4
PATIENCE = 20  # s, that only a fault takes

# What the header has and Python has not.
NOT_HERE = {"GP_API", "GP_VERSION_MAJOR", "GP_VERSION_MINOR", "GP_MAKE_VERSION", "GP_RUN", "GP_BACKGROUND", "GP_STOP", "GPREEMPT_GPREEMPT_H"}
NO_CALL = {"gp_container_attach", "gp_job_declare"}  # root's, once for a container or a job: gpreempt attach, Slurm's plug-in

ENUMS = {
    "GP_CLASS_": gpreempt.ClientClass, "GP_QUEUE_": gpreempt.QueueState, "GP_ACTIVITY_": gpreempt.Activity, "GP_KIND_": gpreempt.QueueKind,
    "GP_CLIENT_": gpreempt.ClientState, "GP_PREEMPT_": gpreempt.PreemptType, "GP_EVENT_": gpreempt.EventKind, "GP_CAP_": gpreempt.Caps,
    "GP_KNOWN_": gpreempt.Known, "GP_ATTEMPT_": gpreempt.Attempt, "GP_FAILURE_": gpreempt.Failure, "GP_LEVEL_": _abi.Level,
}
SINGLE = ("NAME_LEN", "ALL_DEVICES", "HINT_DEVICE", "HINT_ANSWER", "SUSPEND_NEW_QUEUES", "SUSPEND_STRICT", "EVENT_FOLLOW", "EVENT_NEW", "LATENCY_BOUNDS",
          "ATTEMPTS", "FAILURES", "STREAM_MANUAL", "STREAM_LAST")


def environment(socket="", **more):
    return {**os.environ, "PYTHONPATH": PACKAGE, "GPREEMPT_SOCKET": socket, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", **more}


def script(code, socket="", **more):
    """A running Python with this code; who reads must know what comes."""
    return subprocess.Popen([PYTHON, "-c", code], env=environment(socket, **more), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, preexec_fn=tap.die_with_parent)


def said(code, socket="", is_quiet=True, **more):
    """What it prints; it must succeed, and say nothing else."""
    done = tap.run("-c", code, program=PYTHON, env=environment(socket, **more), timeout=SOON, preexec_fn=tap.die_with_parent)
    tap.same((done.returncode, done.stderr if is_quiet else ""), (0, ""), f"exit status and standard error; {done.stderr}")
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
        named = re.findall(r"(\w+)(?:\[\w+\])*;", re.sub(r"/\*.*?\*/", "", fields, flags=re.S))
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


@tap.test("the package has the version of the build, and its library's is the same")
def _(folder):
    version = re.search(r"^  version: '(.*)'", tap.read(tap.SOURCE, "meson.build"), re.M).group(1)
    tap.same((gpreempt.__version__, gpreempt.version()), (version, version.rpartition(".")[0]), "version")


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
    for place in ("examples", "share/notes/models"):
        os.makedirs(f"{folder}/{place}")
        tap.write(f"{folder}/{place}/one.py", bad[0] + "\n")
        tap.same(tap.run(checker, folder, program=sys.executable).returncode, 1, place)
        os.unlink(f"{folder}/{place}/one.py")


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


@tap.test("another library of the name, or of an older release, is refused with its name and what it has not")
def _(folder):
    other = f"{folder}/libgpreempt.so.0"
    source = tap.write(f"{folder}/other.c", "unsigned gp_version(void)\n{\n\treturn 1;\n}\n")
    tap.good("-shared", "-fPIC", source, "-o", other, program=shutil.which(os.environ.get("CC", "gcc")))
    code = "import gpreempt\nfor i in range(2):\n try:\n  gpreempt.version()\n except gpreempt.LibraryNotFound as why:\n  print(why)"
    text = said(code, GPREEMPT_LIBRARY=other)
    tap.true(text.count(other) >= 2 and text.count("gp_strerror") == 2, text)


@tap.test("times below zero, and what is no queue, are refused before the library is asked")
def _(folder):
    with gpreempt.Context(backend="sim") as context:
        for call in (lambda: context.suspend(context.queues(), lease=-1), lambda: context.suspend(context.queues(), drain=-0.5), lambda: gpreempt.online(expiry=-1),
                     lambda: context.hint_begin(expiry=float("inf")), lambda: context.suspend(context.queues(), lease=1e30)):
            try:
                call()
                raise AssertionError("it was taken")
            except ValueError as why:
                tap.true("seconds" in str(why), str(why))
        for bad in ("4711", [1.5], [None], context.devices(), context.devices()[0]):
            try:
                context.suspend(bad)
                raise AssertionError(f"{bad} was taken")
            except TypeError:
                pass
        tap.same(len(context.suspend(queue for queue in context.queues()).queues), 5, "of an iterator")


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


@tap.test("where there is no gpreemptd the process's context stays what it is, whose handles it gave, until there is one")
def _(_folder):
    class Made(gpreempt.Context):
        alone = True

        def __init__(self):
            self._pid, self._pointer = os.getpid(), 1
            self.is_alone = Made.alone

        def close(self):
            self._pointer = 0

        @property
        def rights(self):
            if self.is_alone:
                raise gpreempt.Error(errno.ENODEV, "no gpreemptd")
            return 0

    real, gpreempt.Context = gpreempt.Context, Made
    try:
        first = gpreempt.context()
        tap.true(gpreempt.context() is first and first.is_open, "another came while nothing did")
        Made.alone = False
        second = gpreempt.context()
        tap.true(second is not first and not second.is_alone and gpreempt.context() is second, "gpreemptd came")
    finally:
        gpreempt.Context, gpreempt._shared = real, None


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


class Heard:
    """The library; it keeps what calls were told, and makes them."""

    def __init__(self, library):
        self.library, self.calls = library, []

    def __getattr__(self, name):
        call = getattr(self.library, name)
        return call if name in ("gp_ctx_errmsg", "gp_ctx_close") else lambda *args: self.calls.append((name, args)) or call(*args)

    def told(self, name):
        """The options of the last call of that name, by their fields that are not 0."""
        args = next(args for one, args in reversed(self.calls) if one == name)
        struct = next(arg._obj for arg in args if hasattr(arg, "_obj"))
        return {field[0]: getattr(struct, field[0]) for field in struct._fields_ if getattr(struct, field[0]) and field[0] != "size"}


@tap.test("options of a suspension, a hint and of events reach the library as its header has them")
def _(folder):
    with gpreempt.Context(backend="sim") as context:
        context._library = heard = Heard(context._library)
        queues = context.queues()[:1]
        for options, want in (({}, {}), ({"lease": 0.5}, {"lease_ns": 500000000}), ({"drain": 0.25}, {"timeout_ns": 250000000, "type": 1}), ({"drain": 0}, {"type": 1}),
                              ({"strict": True, "drain": 1}, {"flags": 2, "timeout_ns": 10 ** 9, "type": 1}), ({"new_queues": True}, {"flags": 1}),
                              ({"way": "update"}, {"way": b"update"})):
            with contextlib.suppress(gpreempt.Error):
                context.suspend(queues, **options).begin().resume()
            tap.same(heard.told("gp_queue_suspend"), want, f"{options}")
        for options, want in (({"number": 7}, {"number": 7}), ({"client": 3}, {"client": 3}), ({"expiry": 2.5}, {"expiry_ns": 2500000000}), ({"device": 1}, {"flags": 1, "device": 1}),
                              ({"device": 0, "answer": True}, {"flags": 3})):
            with contextlib.suppress(gpreempt.Error):
                context.hint_begin(**options)
            tap.same(heard.told("gp_hint_begin"), want, f"{options}")
        for options, want in (({"follow": True}, {"flags": 1}), ({"new": True}, {"flags": 2}), ({"kinds": [gpreempt.EventKind.RESUME, gpreempt.EventKind.FAILED]}, {"kinds": 6})):
            with contextlib.suppress(gpreempt.Error):
                context.events(**options)
            tap.same(heard.told("gp_event_open"), want, f"{options}")
        with gpreempt.online(client=3, device=1, expiry=2.5, context=context):
            told = heard.told("gp_hint_begin")
        tap.same({name: told[name] for name in ("client", "device", "expiry_ns")}, {"client": 3, "device": 1, "expiry_ns": 2500000000}, "online()")
        tap.same({**heard.told("gp_hint_end"), "number": 0}, {"client": 3, "device": 1, "flags": 1, "number": 0}, "its end")


@tap.test("a list that grew while it was read is read again whole, and what has no class is offline")
def _(folder):
    with gpreempt.Context(backend="sim") as context:
        every = context.queues()

        class Grown(Heard):
            def __getattr__(self, name):
                call = getattr(self.library, name)
                return (lambda ctx, infos, room: call(ctx, infos, room) if infos else 0) if name == "gp_queue_list" else call

        with mock.patch.object(_context, "_MORE", 2):
            context._library = Grown(context._library)
            tap.same(context.queues(), every, "all of them")
        unknown = [queue._replace(client_class=gpreempt.ClientClass.UNKNOWN) for queue in every[:2]] + every[2:]
        online = [queue for queue in unknown if queue.client_class == gpreempt.ClientClass.ONLINE]
        with mock.patch.object(context, "_listed", lambda *words: unknown):
            tap.same(context.queues(client_class=gpreempt.ClientClass.ONLINE), online, "online")
            tap.same(context.queues(client_class=gpreempt.ClientClass.OFFLINE), [queue for queue in unknown if queue not in online], "all others")


@tap.test("hints of a simulated machine wait for its other calls, as its library asks; those to gpreemptd do not")
def _(folder):
    def is_sent(context):
        with context._lock:
            thread = threading.Thread(target=gpreempt.online(context=context).begin, daemon=True)
            thread.start()
            thread.join(0.5)
            return not thread.is_alive()

    with daemon(folder) as d, gpreempt.Context(backend="sim", device="mi308x") as simulated, gpreempt.Context(socket=d.path) as real:
        tap.same((is_sent(simulated), is_sent(real)), (False, True), "sent")


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


@tap.test("a process's number in the place of a queue is refused with what to write")
def _(folder):
    with training(folder) as (d, client), gpreempt.Context(socket=d.path) as context:
        try:
            with context.suspend(client.pid):
                raise AssertionError("it began")
        except gpreempt.Error as wrong:
            tap.same((wrong.errno, wrong.statuses), (2, {client.pid: -2}), str(wrong))
            tap.same(str(wrong), f"{client.pid} is a process, and no queue's handle: write suspend(queues(pid={client.pid}))")


@tap.test("training that a with block suspends makes no step, and all of them when the block has ended", alone=True)
def _(folder):
    late = f"{HOLD}print(\"here\", flush=True)\nPID = int(sys.stdin.readline())\nhold(sys.stdin.readline)"
    with script(late, f"{folder}/gpreemptd.sock") as holder:  # which a busy machine would start when the training has ended
        tap.same(holder.stdout.readline(), "here\n")
        with training(folder, "--requests", str(STEPS)) as (_, client):
            holder.stdin.write(f"{client.pid}\n")
            holder.stdin.flush()
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


@tap.test("closing a context resumes what it suspended, and it can be asked nothing more")
def _(folder):
    with training(folder) as (d, client):
        context = gpreempt.Context(socket=d.path)
        kept = context.suspend(context.queues(pid=client.pid)).begin()
        tap.same([queue.held for queue in queues_of(d, client)], [True], "held")
        context.close()
        tap.same([queue.held for queue in queues_of(d, client)], [False], "held after it")
        context.close()
        kept.resume()
        for call in (context.devices, context.suspend([1]).begin, context.hint_begin, lambda: context.notice):
            try:
                call()
                raise AssertionError("it answered")
            except gpreempt.Error as why:
                tap.same(str(why), "the context is closed")


@tap.test("a suspension that has ended begins no more, and needs not resume what has gone")
def _(folder):
    with training(folder) as (d, client), gpreempt.Context(socket=d.path) as context:
        held = context.suspend(context.queues(pid=client.pid)).begin()
        client.kill()
        client.wait()
        until(lambda: not context.queues(pid=client.pid), "its queue has gone")
        held.resume()
        try:
            held.begin()
            raise AssertionError("it began")
        except gpreempt.Error as why:
            tap.true("make another" in str(why), str(why))


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
        out = said(code.replace("context =", "signal.signal(signal.SIGALRM, signal.default_int_handler)\ncontext =", 1), d.path,
                   is_quiet=False)  # Python says there of an interrupt that came while it removed an object, and drops it
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
""", d.path, PYTHONWARNINGS="ignore")
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
@gpreempt.online(device=DEVICE, expiry=60)
def stream():
    yield wait(1)
    return 7
@gpreempt.online(device=DEVICE, expiry=60)
async def stream_later():
    try:
        yield 8
        yield 9
    finally:
        print("closed")
async def both():
    async with gpreempt.online(device=DEVICE, expiry=60) as request:
        wait(1)
        assert request.error is None, request.error
    wait(0)
    await serve_later()
    wait(0)
    values = stream_later()
    assert [await values.__anext__(), await values.__anext__()] == [8, 9]
    wait(1)
    await values.aclose()
    wait(0)
with gpreempt.online(device=DEVICE, expiry=60):
    wait(1)
wait(0)
serve()
wait(0)
def streams():
    assert (yield from stream()) == 7
for _ in streams():
    wait(1)
wait(0)
asyncio.get_event_loop_policy().new_event_loop().run_until_complete(both())
print("hints", gpreempt.stats(DEVICE).hints)
""", d.path)
        tap.same(out.split(), ["1", "0"] * 2 + ["1", "1", "0"] + ["1", "0"] * 2 + ["1", "closed", "0"] + ["hints", "6"], "stopped in and after each block")


class Counted:
    """In place of a context: how many hints are open."""

    def __init__(self):
        self.open = 0

    def hint_begin(self, *words):
        self.open += 1

    def hint_end(self, *words):
        self.open -= 1


def finished(coroutine):
    """What it returns."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


@tap.test("a request of an object whose call is a coroutine or a generator lasts as long as that runs")
def _(folder):
    context = Counted()

    class Model:
        async def __call__(self, x):
            await asyncio.sleep(0)
            return x, context.open

    class Stream:
        def __call__(self, n):
            for _ in range(n):
                yield context.open

    class Later:
        async def __call__(self, n):
            for _ in range(n):
                yield context.open

    async def listed(values):
        return [value async for value in values]

    tap.same(finished(gpreempt.online(Model(), context=context)(7)), (7, 1), "a coroutine")
    tap.same(list(gpreempt.online(Stream(), context=context)(2)), [1, 1], "a generator")
    tap.same(finished(listed(gpreempt.online(Later(), context=context)(2))), [1, 1], "an async generator")
    tap.same(type(gpreempt.online(Model, context=context)()).__name__, "Model", "its class makes one at once")
    tap.same(context.open, 0, "open")


@tap.test("a device's number in the place of a function is refused with what to write")
def _(folder):
    for call in (lambda: gpreempt.online(5), lambda: gpreempt.online()("model"), lambda: gpreempt.online(0)):
        try:
            call()
            raise AssertionError("it was taken")
        except TypeError as why:
            tap.true("no function" in str(why) and "online(device=" in str(why), str(why))


@tap.test("an async generator that is a request takes what is sent and thrown into it, and ends as it would without")
def _(folder):
    context = Counted()

    async def echo():
        told = []
        try:
            while len(told) < 3:
                try:
                    told.append((yield told[-1:]))
                except KeyError as why:
                    told.append(why)
        finally:
            await asyncio.sleep(0)
            seen.append(told)

    async def tried(values, wrong):
        seen.append((await values.asend(None), await values.asend("sent"), await values.athrow(wrong), context.open))
        async for _ in values:
            seen.append("one more")

    async def closed(values):
        await values.__anext__()
        await values.aclose()

    async def failed(values):
        await values.__anext__()
        try:
            await values.athrow(ValueError("thrown"))
        except ValueError as why:
            seen.append(str(why))

    wrong = KeyError()
    for call, want in ((lambda values: tried(values, wrong), [([], ["sent"], [wrong], 1), ["sent", wrong, None]]), (closed, [[]]), (failed, [[], "thrown"])):
        seen = []
        finished(call(gpreempt.online(echo, context=context)()))
        tap.same((seen, context.open), (want, 0), "told")


@tap.test("hints find a gpreemptd that came later, do not look for it each time, and a forked child's go by its own connection")
def _(folder):
    with script("""
import gpreempt, os, sys
from gpreempt import _request
opened, real = [], _request.Context
_request.Context = lambda: opened.append(1) or real()
_request._RETRY_S = 3600
def error():
    with gpreempt.online(device=0) as request:
        return request.error
print(error() is not None, error() is not None, len(opened), flush=True)
sys.stdin.readline()
_request._hinter._next = 0
print(error(), len(opened), flush=True)
if not os.fork():
    print(error(), len(opened), flush=True)
    os._exit(0)
os.wait()
""", f"{folder}/gpreemptd.sock", PYTHONWARNINGS="ignore") as process:
        tap.same(process.stdout.readline(), "True True 1\n", "without it")
        with daemon(folder) as d:
            tap.same(d.path, f"{folder}/gpreemptd.sock", "socket")
            out, errors = process.communicate("\n", timeout=SOON)
            tap.same((out, errors), ("None 2\nNone 3\n", ""), "with it, and in the child")


@tap.test("a suspension in asyncio is resumed also when no thread can be had any more")
def _(folder):
    with training(folder) as (d, client):
        out = said(f"""
import asyncio, gpreempt
from concurrent.futures import ThreadPoolExecutor
def held():
    return gpreempt.queues(pid={client.pid})[0].held
async def main(loop, executor):
    kept = gpreempt.suspend(gpreempt.queues(pid={client.pid}))
    async with kept:
        print(held())
        executor.shutdown()
    print(held())
loop, executor = asyncio.new_event_loop(), ThreadPoolExecutor(1)
loop.set_default_executor(executor)
loop.run_until_complete(main(loop, executor))
""", d.path)
        tap.same(out.split(), ["True", "False"], "held")


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


@tap.test("a context that is closed while other threads hint ends neither the process nor their calls")
def _(folder):
    with training(folder) as (d, client):
        out = said("""
import errno, gpreempt, threading, time
def hint(context, ended):
    while not ended:
        try:
            context.hint_begin(1)
        except gpreempt.Error as why:
            ended += [str(why)] * (why.errno != errno.EAGAIN)  # more than gpreemptd reads
for i in range(50):
    context, ended = gpreempt.Context(), []
    threads = [threading.Thread(target=hint, args=(context, ended)) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.002)
    context.close()
    for thread in threads:
        thread.join()
    assert set(ended) == {"the context is closed"}, ended
print("end")
""", d.path)
        tap.same(out, "end\n")


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
        events = list(context.events([gpreempt.EventKind.SUSPEND, gpreempt.EventKind.RESUME]))
        tap.same([(event.kind, event.tried) for event in events], [(gpreempt.EventKind.SUSPEND, None), (gpreempt.EventKind.RESUME, None)], "events")
        with contextlib.closing(d.agent(1)) as agent, contextlib.closing(d.tool()) as tool:
            tool.send(protocol.HOLD, protocol.Items(tool.handles(os.getpid()), protocol.STOP).bytes())
            agent.answer(agent.refuse(errno.EIO))
            tool.result()
        failed = [(event.pid, event.status, event.tried) for event in context.events([gpreempt.EventKind.FAILED])]
        tap.same(failed, [(os.getpid(), -errno.EIO, gpreempt.Attempt.SUSPEND)], "what failed")
        thread = threading.Thread(target=lambda: list(context.events(follow=True, new=True, timeout=0.1)), daemon=True)
        thread.start()
        thread.join(SOON)
        tap.same(thread.is_alive(), False, "still following, though none came")
        tap.true(gpreempt.Rights.OTHERS in context.rights, "rights")
        context.set_class(context.clients()[0].client, gpreempt.ClientClass.ONLINE)
        tap.same([one.client_class for one in context.queues(pid=client.pid)], [gpreempt.ClientClass.ONLINE], "its class")



# The classes of the design notes, in a process of its own each time. PID: of the training.
NOTES = """
import gpreempt, threading, time
from gpreempt_scheduler import GPreemptScheduler, HQDResourceMonitor, QueueInfo
from smart_queue_scheduler import SmartQueueScheduler, Statistics
def held():
    return [queue.held for queue in gpreempt.queues(pid=PID)]
def wait(want):
    end = time.monotonic() + 20
    while held() != want and time.monotonic() < end:
        time.sleep(0.005)
    print(held(), flush=True)
def show(*words):
    print(*words, flush=True)
"""


def notes(client, d, code, **more):
    return said(f"PID = {client.pid if client else 0}{NOTES}{code}", d.path if d else "", **more).splitlines()


@tap.test("GPreemptScheduler keeps offline work off while tasks are announced, gives it back with the last, and ends with stop")
def _(folder):
    with training(folder) as (d, client):
        lines = notes(client, d, """
scheduler = GPreemptScheduler(check_interval_ms=1)
scheduler.start()
queue = scheduler.get_process_queues(PID)[0]
scheduler.register_offline_queue(queue.queue_id, 2)
took = scheduler.notify_online_task()
show(held(), took > 0)
scheduler.notify_online_task()
scheduler.online_task_complete()
show(held())
scheduler.online_task_complete()
scheduler.online_task_complete()
show(held(), scheduler.statistics.online_count, scheduler.statistics.suspend_count, scheduler.statistics.resume_count)
scheduler.notify_online_task()
scheduler.stop()
show(held(), threading.active_count())
scheduler.unregister_queue(queue)
show(scheduler.notify_online_task(), held())
GPreemptScheduler().cleanup()
""")
        tap.same(lines, ["Scheduler started: checks every 1 ms", "[True] True", "[True]", "[False] 2 1 1", "Scheduler stopped", "[False] 1", "0.0 [False]"], "lines")
        tap.same(client.figures(signal.SIGTERM)["stops"], 2, "stops")


@tap.test("SmartQueueScheduler returns when offline work is off the GPU, resumes it by itself, and begins anew after cleanup")
def _(folder):
    with training(folder) as (d, client):
        lines = notes(client, d, """
scheduler = SmartQueueScheduler(online_slice_ms=1500)
for queue in scheduler.discover_queues_by_priority(min_prio=0, max_prio=15):
    scheduler.register_offline_queue(queue)
for i in range(2):
    scheduler.handle_online_request()
    show(held())
    wait([False])
    scheduler.cleanup()
    show(threading.active_count())
scheduler.online_slice_ms = 100000
scheduler.handle_online_request()
scheduler.cleanup()
show(held(), scheduler.statistics.online_count, scheduler.statistics.suspend_count)
SmartQueueScheduler().cleanup()
""")
        tap.true(lines[0].startswith("Queue 0: process ") and lines[1] == "Queues with priority 0 to 15: 1", f"{lines}")
        tap.same(lines[2:], ["[True]", "[False]", "1"] * 2 + ["[False] 3 3"], "lines")


@tap.test("what a scheduler had stopped is stopped anew when gpreemptd was started again, and by a forked child for its own tasks")
def _(folder):
    path = f"{folder}/gpreemptd.sock"
    with gpu(folder, socket=path), train(folder, socket=path) as client, script(f"PID = {client.pid}{NOTES}" + """
import os, sys
scheduler = GPreemptScheduler()
sys.stdin.readline()
scheduler.register_offline_queue(0)
scheduler.notify_online_task()
show(held())
sys.stdin.readline()
show(scheduler.notify_online_task() > 0, held(), scheduler.notify_online_task(), held())
ours, parents = os.pipe()
child = os.fork()
if not child:
    show(scheduler.notify_online_task() > 0, held())
    os.read(ours, 1)
    show(held())
    os._exit(0)
scheduler.stop()
os.write(parents, b"x")
os.wait()
wait([False])
""", path, PYTHONWARNINGS="ignore") as process:
        def go_on():
            handles(d, client.pid)
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline()

        with daemon(folder) as d:
            tap.same(go_on(), "[True]\n", "stopped")
            d.process.kill()
        with daemon(folder) as d:
            tap.same(go_on(), "True [True] 0.0 [True]\n", "by the next gpreemptd, and once")
            tap.same(process.communicate(timeout=SOON), ("True [True]\n[True]\n[False]\n", ""), "by the child too, and by nobody any more")


@contextlib.contextmanager
def restarted(folder, code):
    """The code, which says a line and then waits; another gpreemptd since, to which one of two in training has come, and how the first comes."""
    path = f"{folder}/gpreemptd.sock"
    with gpu(folder, socket=path), train(folder, socket=path) as first, train(folder, socket=path) as other:
        with daemon(folder) as d, script(f"PID, OTHER = {first.pid}, {other.pid}{NOTES}{RESTARTED}{code}", path) as process:
            handles(d, first.pid)
            handles(d, other.pid)
            process.stdin.write("\n")
            process.stdin.flush()
            tap.same(process.stdout.readline(), "registered\n", "before")
            first.send_signal(signal.SIGSTOP)
            d.process.kill()
            d.process.wait()
            with daemon(folder) as d:
                def come():
                    first.send_signal(signal.SIGCONT)
                    handles(d, first.pid)

                handles(d, other.pid)
                yield process, come
                come()


RESTARTED = """
import os, signal, sys
def of(pid):
    return [queue.held for queue in gpreempt.queues(pid=pid)]
def turn(line=""):
    if line:
        show(line)
    sys.stdin.readline()
def again():
    try:
        gpreempt.context().devices()
    except gpreempt.Error:
        pass  # gpreemptd has gone: the context knows by now
turn()
scheduler, smart = GPreemptScheduler(), SmartQueueScheduler(completion="activity")
"""


@tap.test("when gpreemptd was started again schedulers stop and watch their own queues, whichever came first, and an id means its queue")
def _(folder):
    with restarted(folder, """
own, watched = scheduler.get_process_queues(PID)[0], gpreempt.queues(pid=OTHER)[0]
scheduler.register_offline_queue(own)
smart.register_offline_queue(gpreempt.queues(pid=PID)[0])
smart.register_online_queue(watched)
turn("registered")
again()
scheduler.notify_online_task()
show(of(PID), of(OTHER))
scheduler.online_task_complete()
show(smart._offline.stop() > 0, of(PID), of(OTHER), smart._is_busy())
smart.cleanup()
now = scheduler.get_process_queues(PID)[0]
show(now.queue_id == own.queue_id, now.handle != own.handle)
scheduler.unregister_queue(own.queue_id)
smart.unregister_queue(now)
smart.unregister_queue(gpreempt.queues(pid=OTHER)[0])
show(scheduler.offline_queues, smart._offline.handles, smart._online)
""") as (process, come):
        come()
        tap.same(process.communicate("\n", timeout=SOON), ("[True] [False]\nTrue [True] [False] True\nTrue True\n{} {} {}\n", ""), "after")


@tap.test("a queue that comes late to a gpreemptd that was started again is not forgotten, and stopped from then on; one that went is")
def _(folder):
    with restarted(folder, """
for pid in (PID, OTHER):
    scheduler.register_offline_queue(scheduler.get_process_queues(pid)[0])
smart.register_offline_queue(gpreempt.queues(pid=PID)[0])
turn("registered")
again()
scheduler.notify_online_task()
show(of(PID), of(OTHER), smart._offline.stop(), smart.statistics.suspend_count)
scheduler.online_task_complete()
turn()
scheduler.notify_online_task()
show(of(PID), of(OTHER))
scheduler.online_task_complete()
show(smart._offline.stop() > 0, of(PID))
os.kill(OTHER, signal.SIGKILL)
while of(OTHER):
    time.sleep(0.005)
scheduler.notify_online_task()
show(len(scheduler.offline_queues))
""") as (process, come):
        process.stdin.write("\n")
        process.stdin.flush()
        tap.same(process.stdout.readline(), "[] [True] 0.0 0\n", "before it comes")
        come()
        tap.same(process.communicate("\n", timeout=SOON), ("[True] [True]\nTrue [True]\n1\n", ""), "when it has come, and the other has gone")


@tap.test("a queue is known again in the next context alone, by all of its process, GPU, id and ring, and soon; nothing is asked where nothing changed")
def _(folder):
    with gpreempt.Context(backend="sim") as context:
        one = context.queues()[0]._replace(queue=11, pid=7, local_pid=os.getpid(), queue_id=5, gpu_id=3, ring=4096, known=gpreempt.Known.QUEUE_ID | gpreempt.Known.RING)
    others = [one._replace(**{field: gpreempt.Known(1)}) for field in ("pid", "local_pid", "gpu_id", "queue_id", "ring", "known")]
    there = []  # what is listed
    asked = mock.Mock(side_effect=lambda: there)

    def after(*queues):
        """What queue 11 is in the next context, which has these."""
        own = notes_module.QueueIds()
        own.handle(one)
        there[:] = [queue._replace(queue=number) for number, queue in enumerate(queues, 21)]
        with mock.patch.object(gpreempt, "_shared", object()):
            return own.now([11])

    with mock.patch.object(gpreempt, "queues", asked):
        tap.same(after(*others, one), {27: 11}, "among others")
        tap.same([after(*queues) for queues in [[other] for other in others] + [[one, one]]], [{}] * 7, "nothing is sure")
        own = notes_module.QueueIds()
        asked.reset_mock()
        with mock.patch.object(gpreempt, "_shared", object()):
            own.handle(one)
            own.handle(one._replace(queue=12))
            tap.same((own.now([11, 12]), asked.call_count), ({11: 11, 12: 12}, 0), "in the same context it is another")
        there[:] = [one._replace(queue=21)]
        with mock.patch.object(gpreempt, "_shared", object()):
            tap.same([own.now([11, 12]) for _ in range(2)], [{11: 11, 21: 12}] * 2, "the last that was so in the next")
            tap.same(asked.call_count, 1, "lists")
            own.infos([])
        there[:] = [one._replace(queue=22)]
        with mock.patch.object(gpreempt, "_shared", object()):
            tap.same((own.now([12]), own.handle(there[0])), ({21: 12}, 22), "what had gone before is another too")
        with mock.patch.object(gpreempt, "_shared", object()):
            there[:] = [one._replace(queue=31)]
            tap.same(own.handle(there[0]), 22, "where nobody has listed yet")
        there.clear()
        with mock.patch.object(gpreempt, "_shared", object()), mock.patch.object(time, "monotonic", side_effect=[100, 129, 131]):
            tap.same([own.now([22]) for _ in range(2)], [{}, {31: 22}], "it may come, and has gone")


@tap.test("SmartQueueScheduler resumes also in a forked child, and when its thread could not be started the first time")
def _(folder):
    with training(folder) as (d, client):
        lines = notes(client, d, """
import os
scheduler = SmartQueueScheduler(online_slice_ms=200)
scheduler.register_offline_queue(0)
start = threading.Thread.start
def fail(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = fail
try:
    scheduler.handle_online_request()
except RuntimeError as why:
    show(why, held())
threading.Thread.start = start
scheduler.handle_online_request()
wait([False])
if not os.fork():
    for i in range(2):
        scheduler.handle_online_request()
        wait([False])
    os._exit(0)
os.wait()
scheduler.cleanup()
""", PYTHONWARNINGS="ignore")
        tap.same(lines, ["can't start new thread [False]"] + ["[False]"] * 3, "lines")
        tap.same(client.figures(signal.SIGTERM)["stops"], 3, "stops")


@tap.test("a child forked while another thread is inside each lock of the classes has these locks free")
def _(folder):
    with training(folder) as (d, client):
        lines = notes(client, d, """
import os, signal
from gpreempt import notes
smart, scheduler = SmartQueueScheduler(online_slice_ms=100), GPreemptScheduler(check_interval_ms=1)
locks = [smart._changed, smart.statistics._lock, scheduler._lock, scheduler.statistics._lock, scheduler._stopping._cond, notes.ids._lock]
is_locked, go_on = threading.Event(), threading.Event()
def lock():
    for one in locks:
        one.acquire()
    is_locked.set()
    go_on.wait()
    for one in reversed(locks):
        one.release()
other = threading.Thread(target=lock)
other.start()
is_locked.wait()
if not os.fork():
    signal.alarm(20)
    scheduler.register_offline_queue(0)
    scheduler.notify_online_task()
    show(held())
    scheduler.stop()
    smart.register_offline_queue(0)
    smart.handle_online_request()
    show(held())
    smart.cleanup()
    show(held(), smart.statistics.as_dict()["online_ms"]["count"])
    os._exit(0)
show(os.wait()[1])
go_on.set()
other.join()
smart.handle_online_request()
smart.cleanup()
""", PYTHONWARNINGS="ignore")
        tap.same(lines, ["[True]", "[True]", "[False] 1", "0"], "lines")


@tap.test("a process whose schedulers nobody stopped ends by itself, and what they held runs")
def _(folder):
    with training(folder) as (d, client):
        lines = notes(client, d, """
smart, scheduler, monitor = SmartQueueScheduler(online_slice_ms=100000), GPreemptScheduler(), HQDResourceMonitor(check_interval_ms=1)
scheduler.start()
monitor.start()
smart.register_offline_queue(0)
smart.handle_online_request()
show(held(), threading.active_count())
""")
        tap.same(lines[1:], ["[True] 4"], "lines")
        until(lambda: [queue.held for queue in queues_of(d, client)] == [False], "it runs again")


@tap.test("a process ends though a thread never leaves a call, and what it held runs")
def _(folder):
    with training(folder) as (d, client):
        lines = notes(client, d, """
kept = gpreempt.suspend(gpreempt.queues(pid=PID)).begin()
other = threading.Thread(target=gpreempt.context()._lock.acquire)
other.start()
other.join()
show("end")
""")
        tap.same(lines, ["end"], "lines")
        until(lambda: [queue.held for queue in queues_of(d, client)] == [False], "it runs again")


@tap.test("offline work is off while a registered online queue has work, and after a slice not before it has none")
def _(folder):
    with daemon(folder, "--sample") as d, gpu(folder, socket=d.path), train(folder, socket=d.path) as client, train(folder, socket=d.path) as busy:
        for one in (client, busy):
            handles(d, one.pid)
        lines = notes(client, d, f"""
import os, signal
online = gpreempt.queues(pid={busy.pid})[0]
offline = gpreempt.queues(pid=PID)[0]
with GPreemptScheduler() as scheduler:
    scheduler.register_offline_queue(offline)
    scheduler.register_online_queue(online)
    wait([True])
    scheduler.unregister_queue(online)
    wait([False])
with SmartQueueScheduler(online_slice_ms=1, completion="activity") as smart:
    smart.register_offline_queue(offline)
    smart.register_online_queue(online)
    smart.handle_online_request()
    time.sleep(0.5)
    show(held())
    os.kill({busy.pid}, signal.SIGKILL)
    wait([False])
""")
        tap.same(lines, ["Scheduler started: checks every 1 ms", "[True]", "[False]", "Scheduler stopped", "[True]", "[False]"], "lines")


@tap.test("an id that two processes' queues have is refused, those that a search returns name one each, and one that has gone is forgotten")
def _(folder):
    with training(folder) as (d, client), train(folder, socket=d.path) as other:
        handles(d, other.pid)
        with script(f"PID = {client.pid}{NOTES}" + """
import errno, os, signal, sys
scheduler = GPreemptScheduler()
for bad, number in ((0, errno.ENOTUNIQ), (4711, errno.ENOENT)):
    try:
        scheduler.register_offline_queue(bad, 2)
    except gpreempt.Error as why:
        show(why.errno == number, why)
found = scheduler.scan_queues(0, 15)
show(sorted(queue.queue_id for queue in found), sorted(scheduler.scan_queues()) == sorted(found), scheduler.find_queues_by_priority(min_prio=14, max_prio=15))
for queue in found:
    scheduler.register_offline_queue(queue.queue_id)
show([len(scheduler.get_process_queues(pid)) for pid in (PID, 1)], [len(queues) for _, queues in sorted(scheduler.classify_queues().items())])
show([len(scheduler.find_queues_by_tag(tag)) for tag in ("OFFLINE_AI", "ONLINE_AI")])
sys.stdin.readline()
scheduler.notify_online_task()
show(held(), len(scheduler.offline_queues))
scheduler.cleanup()
""", d.path) as process:
            lines = [process.stdout.readline().rstrip("\n") for _ in range(5)]
            other.kill()
            other.wait()
            until(lambda: not queues_of(d, other), "it has gone")
            out, errors = process.communicate("\n", timeout=SOON)
        tap.true(lines[0].startswith("True 2 queues have the id 0: search") and lines[1].startswith("True there is no queue with the id 4711"), f"{lines}{errors}")
        tap.same(lines[2:] + out.splitlines(), ["[1000000, 1000001] True []", "[1, 0] [2, 0]", "[2, 0]", "[True] 1"], errors)


@tap.test("an id that was given to a queue is no later queue's, though the driver gives it again")
def _(folder):
    with gpreempt.Context(backend="sim") as context:
        one = context.queues()[0]._replace(queue_id=5, known=gpreempt.Known.QUEUE_ID)
    first, second, third = (one._replace(queue=number) for number in (11, 12, 13))
    own = notes_module.QueueIds()
    tap.same([info.queue_id for info in own.infos([first])], [5], "the driver's")
    tap.same([info.queue_id for info in own.infos([second])], [notes_module.FIRST_OWN_ID], "of the next, when the first has gone")
    tap.same([info.queue_id for info in own.infos([first, second, third])], [5, notes_module.FIRST_OWN_ID, notes_module.FIRST_OWN_ID + 1], "of all")
    tap.same([own.handle(number) for number in (5, notes_module.FIRST_OWN_ID)], [11, 12], "what they mean")


@tap.test("an id is unregistered as the queue that it meant when it was registered, also if another has it now or that has gone")
def _(folder):
    with training(folder) as (d, client), script(f"PID = {client.pid}{NOTES}" + """
import errno, sys
first, second = GPreemptScheduler(), SmartQueueScheduler()
def counts():
    return [len(scheduler._offline.handles) for scheduler in (first, second)]
def refusal(call, number):
    try:
        call(number)
    except gpreempt.Error as why:
        return why.errno
for scheduler in (first, second):
    scheduler.register_offline_queue(0)
show(counts())
sys.stdin.readline()
show(refusal(first.register_offline_queue, 0) == errno.ENOTUNIQ)
first.unregister_queue(0)
second.unregister_queue(QueueInfo(0))
show(counts())
sys.stdin.readline()
for scheduler in (first, second):
    scheduler.register_offline_queue(0)
show(counts())
sys.stdin.readline()
for scheduler in (first, second):
    scheduler.unregister_queue(0)
show(counts(), refusal(first.unregister_queue, 4711) == errno.ENOENT)
""", d.path) as process:
        def go_on():
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline()

        def end(one):
            one.kill()
            one.wait()
            until(lambda: not queues_of(d, one), "its queue has gone")

        tap.same(process.stdout.readline(), "[1, 1]\n", "registered")
        with train(folder, socket=d.path) as other:
            handles(d, other.pid)
            tap.same((go_on(), process.stdout.readline()), ("True\n", "[0, 0]\n"), "with another that has the id")
            end(client)
            tap.same(go_on(), "[1, 1]\n", "the other")
            end(other)
        tap.same(process.communicate("\n", timeout=SOON), ("[0, 0] True\n", ""), "when it has gone")


@tap.test("a search for priorities that ROCm does not use says so, and every line is Chinese under a Chinese locale")
def _(folder):
    with training(folder) as (d, client):
        code = """
scheduler = SmartQueueScheduler()
scheduler.discover_queues_by_priority(14, 15)
statistics = Statistics()
for ms in range(1, 101):
    statistics.record_suspend(ms)
statistics.print_summary()
scheduler = GPreemptScheduler()
scheduler.start()
scheduler.stop()
"""
        english = notes(client, d, code)
        tap.same(english[0], "Queues with priority 14 to 15: 0")
        tap.true(english[1].startswith("ROCm gives queues the priorities 0, 7 and 11"), f"{english}")
        tap.same(english[3], "Suspends: 100, mean 50.500 ms, p99 99.000 ms, max 100.000 ms (of which GPU is not known)", "two GPUs are there")
        chinese = notes(client, d, code, LC_ALL="zh_CN.UTF-8", PYTHONIOENCODING="utf-8")
        tap.same(len(chinese), len(english), f"{chinese}")
        tap.same([line for line in chinese if not re.search("[\u4e00-\u9fff]", line) or re.search("[:,]", line)], [], "not Chinese, or not by its signs")
        tap.same([re.findall(r"[\d.]+", line)[-4:] for line in chinese[2:5]], [re.findall(r"[\d.]+", line)[-4:] for line in english[2:5]], "numbers")
        tap.same(notes(client, d, code, LC_ALL="zh_CN", PYTHONIOENCODING="ascii"), english, "where Chinese cannot be written")


FIGURES = r"\d+, mean [\d.]+ ms, p99 [\d.]+ ms, max [\d.]+ ms"


@tap.test("each line with figures of the notes' classes says which GPU it is of, in both languages, also when gpreemptd has gone")
def _(folder):
    with training(folder) as (d, client):
        code = f"""
import os, signal
scheduler = GPreemptScheduler()
scheduler.register_offline_queue(scheduler.get_process_queues(PID)[0])
scheduler.notify_online_task()
scheduler.online_task_complete()
scheduler.print_statistics()
smart = SmartQueueScheduler()
for queue in smart.discover_queues_by_priority(0, 7):
    smart.register_offline_queue(queue)
smart.handle_online_request()
smart.cleanup()
os.kill({d.process.pid}, signal.SIGTERM) if IS_LAST else None
smart.print_statistics()
"""
        chinese = notes(client, d, "\nIS_LAST = False" + code, LC_ALL="zh_CN.UTF-8", PYTHONIOENCODING="utf-8")
        english = notes(client, d, "\nIS_LAST = True" + code)
        tap.same([re.sub(r"\d+: process \d+, priority \d+, GPU \d+", "Q", re.sub(FIGURES, "N", line)) for line in english],
                 ["Online requests: N (simulated mi308x)", "Suspends: N (simulated mi308x)", "Resumes: N (simulated mi308x)", "Queue Q (simulated mi308x)",
                  "Queues with priority 0 to 7: 1", "Online requests: N (simulated mi308x)", "Suspends: N (simulated mi308x)", "Resumes: N (simulated mi308x)"])
        tap.same([line.endswith("（模拟的 mi308x）") for line in chinese], [True] * 4 + [False] + [True] * 3, f"{chinese}")


@tap.test("figures of a software GPU and of a real one say so, and of several GPUs nobody knows which a program's own are of")
def _(folder):
    with gpreempt.Context(backend="sim") as context:
        simulated = context.devices()[0]
    amd = simulated._replace(device=1, backend="kfd", name="MI308X")
    for devices, sign, want in (([amd], "/nowhere", "measured on MI308X"), ([amd], "/", "software GPU MI308X, software cost under emulation"),
                                ([simulated], "/", "simulated mi308x"), ([simulated, amd], "/nowhere", "of which GPU is not known"),
                                ([], "/nowhere", "of which GPU is not known")):
        statistics = notes_module.Statistics()
        with mock.patch.object(gpreempt, "devices", lambda devices=devices: devices), mock.patch.object(_gpu, "SOFTWARE_SIGN", sign):
            tap.same(statistics.as_dict()["on"], want, "a program's own")
            statistics._record_gpus([_gpu.described(amd)])
            tap.true("MI308X" in statistics.as_dict()["on"] and "simulated" not in statistics.as_dict()["on"], "of the queue's")
    with mock.patch.object(gpreempt, "devices", side_effect=gpreempt.LibraryNotFound("none")):
        tap.same(notes_module.Statistics().as_dict()["on"], "of which GPU is not known", "without the library")


@tap.test("figures are of all latencies and their tail of the last; a priority, a tag and a class of the notes are what they say")
def _(folder):
    last = notes_module.Latencies(3)
    for ms in (50.0, 3.0, 1.0, 2.0):
        last.add(ms)
    tap.same([last.figures()[name] for name in ("count", "mean", "p50", "p99", "max")], [4, 14.0, 2.0, 3.0, 50.0], "figures")
    with gpreempt.Context(backend="sim") as context:
        one = context.queues()[0]._replace(client_class=gpreempt.ClientClass.UNKNOWN, known=gpreempt.Known.PRIORITY, rule="")
    queues = [one._replace(queue=number, priority=priority, rule=rule) for number, (priority, rule) in enumerate(((9, "tag=BERT"), (10, "rule 3: tag BERT"), (11, "")), 1)]
    with mock.patch.object(gpreempt, "queues", lambda *words: queues):
        found = notes_module.Finder()
        tap.same([queue.handle for queue in found.classify_queues()["online"]], [2, 3], "online by priority")
        tap.same([queue.handle for queue in found.find_queues_by_tag("BERT")], [1, 2], "by tag")


@tap.test("the slice of a request is counted from when offline work is off the GPU, however long that took")
def _(folder):
    smart = smart_queue_scheduler.SmartQueueScheduler(online_slice_ms=100000)
    offs = []

    def stop():
        time.sleep(0.05)
        offs.append(time.perf_counter())
        return 50.0

    with smart, mock.patch.object(smart._offline, "stop", stop):
        tap.same(smart.handle_online_request(), 50.0, "it took")
        tap.true(smart._due >= offs[0] + 100, f"{smart._due - offs[0]} s from then on")


@tap.test("a task that could not be announced is not open, nor completed by the model that served it; no queue has priority 16")
def _(folder):
    def fail():
        raise gpreempt.Error(19, "no gpreemptd")

    scheduler, smart = gpreempt_scheduler.GPreemptScheduler(), smart_queue_scheduler.SmartQueueScheduler()
    for one, bad in itertools.product((scheduler, smart), (16, -1)):
        for register in (one.register_offline_queue, one.register_online_queue):
            try:
                register(notes_module.QueueInfo(1, handle=1), bad)
                raise AssertionError("it was taken")
            except ValueError as why:
                tap.true("0 to 15" in str(why), str(why))
        one.register_offline_queue(notes_module.QueueInfo(1, handle=1), 15)
        one.unregister_queue(notes_module.QueueInfo(1, handle=1))
    completed = []
    with mock.patch.object(scheduler._offline, "stop", fail), mock.patch.object(scheduler, "online_task_complete", lambda: completed.append(1)), mock.patch.dict(os.environ):
        model = ai_model_wrapper.OnlineAIModel(lambda x: x, scheduler)
        tap.same((model.inference(7), str(model.last_error), completed, scheduler._announced), (7, "no gpreemptd", [], []), "served")


@tap.test("a request that could not be announced is none: it is not counted, and what it held runs; one that is open stays so")
def _(folder):
    smart = smart_queue_scheduler.SmartQueueScheduler(online_slice_ms=100000)
    given_back = []

    def fail():
        raise gpreempt.Error(errno.ENODEV, "no gpreemptd")

    def handle():
        with contextlib.suppress(gpreempt.Error):
            smart.handle_online_request()

    with mock.patch.object(smart._offline, "give_back", lambda: given_back.append(1)):
        with mock.patch.object(smart._offline, "stop", fail):
            handle()
            tap.same((smart._began, given_back), (None, [1]), "the first")
        smart.handle_online_request()
        with mock.patch.object(smart._offline, "stop", fail):
            handle()
            tap.same((smart._began is None, given_back), (False, [1]), "beside one that is open")
        smart.cleanup()
    tap.same((smart.statistics.online_count, given_back), (1, [1, 1]), "requests")


@tap.test("tasks and requests of other threads do not wait while latencies are measured")
def _(folder):
    scheduler, smart = gpreempt_scheduler.GPreemptScheduler(), smart_queue_scheduler.SmartQueueScheduler()
    for module, one, announce in ((gpreempt_scheduler, scheduler, scheduler.notify_online_task), (smart_queue_scheduler, smart, smart.handle_online_request)):
        one.register_offline_queue(notes_module.QueueInfo(1, handle=1))

        def measured(handles, repeats, pause_ms, announce=announce):
            other = threading.Thread(target=announce, daemon=True)
            other.start()
            other.join(PATIENCE)
            return handles, repeats, pause_ms, other.is_alive()

        with mock.patch.object(module, "measured", measured), mock.patch.object(one._offline, "stop", lambda: 0.0):
            tap.same(one.measure_latency(7, 3), ({1: 2}, 7, 3, False), module.__name__)
        one.cleanup()


@tap.test("latencies are measured by suspending and resuming so many times, and statistics are logged as JSON", alone=True)
def _(folder):
    with training(folder) as (d, client):
        lines = notes(client, d, f"""
import json
scheduler = GPreemptScheduler()
scheduler.register_offline_queue(scheduler.scan_queues()[0])
figures = scheduler.measure_latency(repeats=5, pause_ms=1)
for key in ("suspend_ms", "resume_ms"):
    row = figures[key]
    show(row["count"], 0 < row["p50"] <= row["p95"] <= row["p99"] <= row["max"], 0 < row["mean"] < row["max"])
show(held())
scheduler.notify_online_task()
scheduler.online_task_complete()
scheduler.log_statistics("{folder}/log.json")
scheduler.log_statistics("{folder}/log.json")
show([json.loads(line)["suspend_ms"]["count"] for line in open("{folder}/log.json")])
show(figures["on"], [json.loads(line)["on"] for line in open("{folder}/log.json")])
""")
        tap.same(lines, ["5 True True"] * 2 + ["[False]", "[1, 1]", "simulated mi308x ['simulated mi308x', 'simulated mi308x']"], "lines")
        tap.same(client.figures(signal.SIGTERM)["stops"], 6, "stops")


@tap.test("the monitor of queue slots counts what is active, and its thread ends with stop")
def _(folder):
    with training(folder) as (d, client):
        lines = notes(client, d, """
device = [one.device for one in gpreempt.devices() if one.backend == "sim"][0]
with HQDResourceMonitor(check_interval_ms=1, device=device) as monitor:
    while len(monitor.samples) < 3:
        time.sleep(0.001)
show(threading.active_count(), monitor.samples[-1]["active"], monitor.samples[-1]["slots"])
with gpreempt.suspend(gpreempt.queues()):
    show(monitor.get_usage()["active"])
monitor.print_summary()
HQDResourceMonitor(device=device).print_summary()
""")
        tap.same(lines[3:], ["HQD use: mean 4.2 %, at most 1 of 24 slots, 1 sample (simulated mi308x)"], "without start()")
        tap.same(lines[:2], ["1 1 24", "0"], f"{lines}")
        tap.true(lines[2].startswith("HQD use: mean 4.2 %, at most 1 of 24 slots, ") and lines[2].endswith(" samples (simulated mi308x)"), lines[2])


MODELS = """
import gpreempt, os, simple_models, sys, threading
from ai_model_wrapper import OfflineAIModel, OnlineAIModel
from gpreempt_scheduler import GPreemptScheduler
from smart_queue_scheduler import SmartQueueScheduler
"""


@tap.test("models return their results and take as long as they say; who has no gpreemptd serves all the same")
def _(folder):
    out = said(MODELS + """
online = OnlineAIModel(latency_ms=20)
print(os.environ["AMD_QUEUE_TAG"], os.environ["AMD_QUEUE_PRIORITY"], online.inference("x"), 20 <= online.last_latency_ms, online.requests)
print(OnlineAIModel(lambda x: x * 2).inference(21))
scheduler = SmartQueueScheduler()
scheduler._offline.handles[1] = 2
served = OnlineAIModel(lambda x: x * 2, scheduler)
print(served.inference(21), served.last_error)
offline = OfflineAIModel(step_ms=5)
print(os.environ["AMD_QUEUE_TAG"], os.environ["AMD_QUEUE_PRIORITY"], offline.train_loop(4), offline.steps, 5 <= offline.last_step_ms)
endless = OfflineAIModel(lambda batch: batch)
threading.Timer(0.1, endless.stop).start()
print(endless.train_loop(10 ** 12) > 0)
""", **without_torch({"PYTHONPATH": PACKAGE})).splitlines()
    tap.same(out[:3], ["Online model: simulated (no PyTorch: a wait of 20 ms)", "ONLINE_AI 15 x True 1", "42"], f"{out}")
    tap.true(out[3].startswith("42 no AMD GPU"), out[3])
    tap.same(out[4], "Offline model: simulated (no PyTorch: a wait of 5 ms)", "no model")
    tap.true(re.fullmatch(r"Training: 4 steps, [\d.]+ per second \(no PyTorch: a wait of 5 ms\)", out[5]), out[5])
    tap.same(out[6], "OFFLINE_AI 2 4 4 True")
    tap.true(re.fullmatch(r"Training: \d+ steps, [\d.]+ per second", out[7]) and out[8] == "True", f"a model of one's own is what it is: {out}")


@tap.test("what tests hide of PyTorch is hidden, wherever the machine has it")
def _(folder):
    tap.write(f"{folder}/torch.py", "class nn:\n    Module = object\n")
    with_it = {"PYTHONPATH": f"{folder}:{PACKAGE}"}
    hidden = f"import sys; sys.path.append({tap.HERE!r}); import torchless; torchless.hide_torch(); "
    for before, places, want in (("", with_it, "True"), ("", without_torch(with_it), "False"), (hidden, with_it, "False")):
        tap.same(said(before + "import simple_models; print(simple_models.HAS_TORCH)", **places), want + "\n", f"{before} {places}")


# What the wrappers use of PyTorch; it says what is called.
TORCH = """
import os
log = []
class Noted:
    def __init__(self, *args, **more): pass
    def __getattr__(self, name): return lambda *args, **more: log.append(name) or True
def noted_place():
    log.append(" ".join(["cuda", os.environ.get("AMD_QUEUE_TAG", "-"), os.environ.get("AMD_QUEUE_PRIORITY", "-")]))
class nn:
    class Module:
        def cuda(self): noted_place(); return self
        def __call__(self, x): log.append("forward"); return x
        def eval(self): log.append("eval")
        def parameters(self): return []
for name in ("AdaptiveAvgPool2d", "Conv2d", "Flatten", "Linear", "MaxPool2d", "ReLU", "Sequential", "TransformerEncoder", "TransformerEncoderLayer"):
    setattr(nn, name, Noted)
class no_grad:
    def __enter__(self): log.append("no_grad")
    def __exit__(self, *why): log.append("grad")
class cuda:
    is_available = staticmethod(lambda: True)
    synchronize = staticmethod(lambda: log.append("synchronize"))
class optim:
    SGD = Noted
class Loss:
    def __init__(self, value): self.value = value
    def backward(self): log.append("backward")
    def item(self): log.append("item"); return self.value
"""


@tap.test("a PyTorch model's result is waited for on the GPU; inference learns nothing, and a step of training does")
def _(folder):
    os.makedirs(f"{folder}/with")
    tap.write(f"{folder}/with/torch.py", TORCH)
    out = said(MODELS + """
import torch
model = torch.nn.Module()
print(OnlineAIModel(model).inference(7), *torch.log)
torch.log.clear()
print(OfflineAIModel(model, loss=torch.Loss).train_step(0.5), *torch.log)
""", PYTHONPATH=f"{folder}/with:{PACKAGE}").splitlines()
    tap.same(out, ["7 eval no_grad forward grad synchronize", "0.5 forward zero_grad backward step item synchronize"], "calls")


@tap.test("the line of a training says where PyTorch ran it: on which GPU, or on the CPU")
def _(folder):
    os.makedirs(f"{folder}/with")
    tap.write(f"{folder}/with/torch.py", TORCH)
    for kind, want in (("cuda", "PyTorch on a GPU of its own"), ("cpu", "PyTorch on the CPU")):
        out = said(MODELS + f"""
import torch, types
torch.cuda.get_device_name = lambda device: "a GPU of its own"
model = torch.nn.Module()
model.parameters = lambda: iter([types.SimpleNamespace(device=types.SimpleNamespace(type="{kind}"))])
OfflineAIModel(model, loss=torch.Loss).train_loop(2, 0.5)
""", PYTHONPATH=f"{folder}/with:{PACKAGE}")
        tap.true(re.fullmatch(r"Training: 2 steps, [\d.]+ per second \({}\)\n".format(want), out), out)


@tap.test("the wrappers' own models are on PyTorch's GPU, and its queue is made when it is marked; a model that is given stays where it is")
def _(folder):
    os.makedirs(f"{folder}/with")
    tap.write(f"{folder}/with/torch.py", TORCH)
    for is_there, want in (("True", [["cuda ONLINE_AI 15", "eval"], ["cuda OFFLINE_AI 3"], ["eval"]]), ("False", [["eval"], [], ["eval"]])):
        out = said(MODELS + f"""
import torch
torch.cuda.is_available = lambda: {is_there}
def show():
    print(torch.log)
    torch.log.clear()
OnlineAIModel()
show()
OfflineAIModel(priority=3)
show()
OnlineAIModel(torch.nn.Module())
show()
""", PYTHONPATH=f"{folder}/with:{PACKAGE}").splitlines()
        tap.same(out, [str(one) for one in want], f"GPU: {is_there}")


# PyTorch until a model is brought to the GPU: then it says what the agent would read.
TORCH_ENDS = """
import os
class Any:
    def __init__(self, *args, **more): pass
    def __getattr__(self, name): return Any()
    def __call__(self, *args, **more): return Any()
    def __lt__(self, other): return Any()
class Module:
    def register_buffer(self, *words): pass
    def cuda(self, *words):
        print(os.environ.get("AMD_QUEUE_TAG"), os.environ.get("AMD_QUEUE_PRIORITY"), flush=True)
        os._exit(0)
    to = cuda
nn = Any()
nn.Module = Module
class cuda:
    is_available = staticmethod(lambda: True)
def __getattr__(name):
    return Any()
"""


@tap.test("the trainings mark their process before the model goes to the GPU")
def _(folder):
    os.makedirs(f"{folder}/with")
    tap.write(f"{folder}/with/torch.py", TORCH_ENDS)
    for words, want in (((os.path.join(tap.SOURCE, "share", "notes", "models", "bert_training.py"), "--priority", "3"), "OFFLINE_AI 3\n"),
                        ((os.path.join(PACKAGE, "real_models.py"), "cuda"), "OFFLINE_AI 2\n")):
        done = tap.run(*words, program=PYTHON, env=environment(PYTHONPATH=f"{folder}/with:{PACKAGE}"), timeout=SOON, preexec_fn=tap.die_with_parent)
        tap.same((done.returncode, done.stdout), (0, want), f"{words}: {done.stderr}")


@tap.test("inference takes offline work off the GPU by hints or by a scheduler, and gives it back also if the model fails")
def _(folder):
    with training(folder) as (d, client):
        out = notes(client, d, MODELS + """
device = [one.device for one in gpreempt.devices() if one.backend == "sim"][0]
def states():
    return [queue.state.name for queue in gpreempt.queues(pid=PID)]
def model(x):
    end = time.monotonic() + 20
    while states() != ["SUSPENDED"] and time.monotonic() < end:
        time.sleep(0.005)
    return x / (1 if states() == ["SUSPENDED"] else 0)
hinted = OnlineAIModel(model, device=device)
OfflineAIModel()
show(hinted.inference(7))
scheduler = GPreemptScheduler()
scheduler.register_offline_queue(0)
online = OnlineAIModel(model, scheduler)
show(online.inference(7), held())
try:
    online.inference("no number")
except TypeError:
    show(held())
""", **without_torch({"PYTHONPATH": PACKAGE}))
        tap.same(out, ["Offline model: simulated (no PyTorch: a wait of 100 ms)", "7.0", "7.0 [False]", "[False]"], "results")
        until(lambda: queues_of(d, client)[0].state == gpreempt.QueueState.RUNNING, "it runs again")


@tap.test("a request that was served is answered though gpreemptd has gone meanwhile")
def _(folder):
    with training(folder) as (d, client):
        out = notes(client, d, MODELS + f"""
def model(x):
    os.kill({d.process.pid}, 15)
    while True:
        try:
            gpreempt.Context()
        except gpreempt.Error:
            return x * 2
scheduler = GPreemptScheduler()
scheduler.register_offline_queue(0)
online = OnlineAIModel(model, scheduler)
show(online.inference(21), online.last_error is not None)
""", **without_torch({"PYTHONPATH": PACKAGE}))
        tap.same(out, ["42 True"], "results")


def archive_of_build(folder):
    """As make dist names and fills it, of this build."""
    version = gpreempt.__version__
    path = f"{folder}/gpreempt-{version}-x86_64.tar.xz"
    build = os.path.abspath(tap.BUILD)
    files = {f"lib/{name}.so.{version}": f"{build}/{name}.so.{version}" for name in ("libgpreempt", "libgpreempt_poc", "libgpreempt_poc_v2")}
    files.update({"share/doc/gpreempt/LICENSE": f"{tap.SOURCE}/LICENSE", "share/doc/gpreempt/docs/PYTHON.md": f"{tap.SOURCE}/docs/PYTHON.md",
                  "VERSION": tap.write(f"{folder}/VERSION", version + "\n")})
    for place, folders, names in os.walk(PACKAGE):
        folders[:] = [name for name in folders if name != "__pycache__"]
        files.update({f"share/gpreempt/python/{os.path.relpath(os.path.join(place, name), PACKAGE)}": os.path.join(place, name) for name in names})
    with tarfile.open(path, "w:xz", preset=0) as archive:
        for name, source in files.items():
            archive.add(source, f"gpreempt-{version}-x86_64/{name}")
    return path


@tap.test("what a wheel holds works with nothing else of ours: the package, the notes' modules, and verify by both of the notes' libraries")
def _(folder):
    made = tap.good(archive_of_build(folder), f"{folder}/made", program=os.path.join(tap.SOURCE, "tools", "wheel.py")).stdout.strip()
    with zipfile.ZipFile(made) as wheel:
        wheel.extractall(f"{folder}/site")
    places = {"PYTHONPATH": f"{folder}/site", "PATH": "/usr/bin:/bin"}
    code = """
import sys, gpreempt, gpreempt_scheduler, smart_queue_scheduler, ai_model_wrapper, simple_models
print(len(gpreempt.Context(backend="sim").queues()) > 0, [name for name in sys.modules if name.startswith("gpreempt.verify")])
print({line.split()[-1] for line in open("/proc/self/maps") if "libgpreempt" in line})
"""
    with training(folder) as (d, client), mock.patch.dict(os.environ):
        del os.environ["GPREEMPT_LIBRARY"]
        tap.same(said(code, **places).splitlines(), ["True []", str({f"{folder}/site/gpreempt/libgpreempt.so.0"})], "the package")
        for way in ("old", "new"):
            done = tap.run("-m", "gpreempt.verify", "frequent", f"--{way}", "--pid", str(client.pid), "--duration", "300ms", "--json", program=PYTHON, cwd=folder,
                           env=environment(d.path, **places), timeout=SOON, preexec_fn=tap.die_with_parent)
            check = json.loads(done.stdout)["checks"][0]
            # Not the status: on a busy host calls miss the notes' limits.
            tap.same((check["reason"], [row["count"] > 0 for row in check["figures"].values()]), ("", [True] * 2), done.stderr)
        shutil.rmtree(f"{folder}/site/gpreempt/verify")
        tap.same(said(code, **places).splitlines()[0], "True []", "without verify")
    with zipfile.ZipFile(made) as wheel:
        tap.same(sorted(name for name in wheel.namelist() if ".so" in name),
                 ["gpreempt/libgpreempt.so.0", "gpreempt/libgpreempt_poc.so.0", "gpreempt/libgpreempt_poc_v2.so.0"], "libraries")


@tap.test("every example of docs/PYTHON.md runs")
def _(folder):
    blocks = re.findall(r"^```python\n(.*?)^```", tap.read(tap.SOURCE, "docs", "PYTHON.md"), re.M | re.S)
    tap.true(len(blocks) >= 6, f"{len(blocks)} blocks")
    with training(folder) as (d, client):
        for block in blocks:
            said(block.replace("4711", str(client.pid)), d.path)


tap.main(jobs=2)
