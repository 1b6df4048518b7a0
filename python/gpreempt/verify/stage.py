# SPDX-License-Identifier: MIT
"""Where it is verified: a simulated GPU with a gpreemptd and jobs of its own, or a process that is given."""

import ctypes
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import gpreempt
from gpreempt.verify.ways import Calls

SOON_S = 30.0  # nothing here takes that long unless it is broken
POLL_S = 0.005
IN_A_QUEUE = 2  # steps of a simulated job that are always there

PROGRAM = "GPREEMPT_PROGRAM"  # the verb says which it is
DEFAULT_SOCKETS = ("/run/gpreempt/gpreemptd.sock", "{XDG_RUNTIME_DIR}/gpreempt/gpreemptd.sock")

Device = NamedTuple("Device", [
    ("kind", str),  # "simulated", "software GPU" or "measured"
    ("name", str),
])


def device_text(device: Device) -> str:
    """What stands on every figure."""
    return ("measured on {}" if device.kind == "measured" else device.kind + " {}").format(device.name)


def described(device: gpreempt.Device) -> Device:
    is_software = os.path.exists("/sys/module/softgpu")
    return Device("simulated" if device.backend == "sim" else "software GPU" if is_software else "measured", device.name)


class Broken(Exception):
    """The stage itself failed: nothing can be said of what was to be verified."""


class Skip(Exception):
    """This stage cannot show it; the text says why."""


def until(condition: Callable[[], Any], why: str) -> None:
    end = time.monotonic() + SOON_S
    while not condition():
        if time.monotonic() > end:
            raise Broken("not in {:g} s: {}".format(SOON_S, why))
        time.sleep(POLL_S)


def _end_with_parent() -> None:
    """In a child: nothing is left behind, however this process ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        return one.connect_ex(path) == 0


class Job:
    """Offline work: its process, and the ids of its queues."""

    def __init__(self, pid: int, ids: List[int], process: Any = None) -> None:
        self.pid, self.ids = pid, ids
        self._process = process

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *why: Any) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def end(self) -> Optional[Dict[str, Any]]:
        """What the GPU did with it, in its own words; None: it is another's, and goes on."""
        if self._process is None:
            return None
        return _figures(self._process, signal.SIGINT)


def _figures(process: Any, number: Optional[int] = None) -> Dict[str, Any]:
    if number is not None and process.poll() is None:
        process.send_signal(number)
    try:
        out, errors = process.communicate(timeout=SOON_S + 100000 * (number is None))
    except subprocess.TimeoutExpired:
        process.kill()
        raise Broken("a simulated job does not end")
    if process.returncode != 0:
        raise Broken("a simulated job failed: " + errors.strip())
    return json.loads(out)


class Simulated:
    """Its own GPU and gpreemptd, in a folder that goes with them."""

    is_simulated = True

    def __init__(self) -> None:
        self.device = Device("simulated", "mi308x")
        self.pid = None
        self._program = _program()
        self._folder = tempfile.mkdtemp(prefix="gpreempt-verify-")
        self._socket = os.path.join(self._folder, "gpreemptd.sock")
        self._gpu = os.path.join(self._folder, "gpu.sock")
        self._log = open(os.path.join(self._folder, "log"), "w")
        self._processes = []  # type: List[Any]

    def __enter__(self) -> "Simulated":
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *why: Any) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def daemon_pid(self) -> Optional[int]:
        return self._processes[0].pid

    def offline(self, calls: Calls, queues: int = 1) -> Job:
        process = self._client("--offline", "--work", "train", "--queues", str(queues))
        try:
            until(lambda: process.poll() is not None or len(calls.queues(process.pid)) == queues, "gpreemptd knows a job's queues")
            if process.poll() is not None:
                _figures(process)
                raise Broken("a simulated job ended by itself")
            return Job(process.pid, calls.queues(process.pid), process)
        except BaseException:
            process.kill()
            raise

    def online(self, rate: float, requests: int) -> Any:
        """A program whose requests gpreemptd is told of; served() waits for its figures."""
        return self._client("--online", "--work", "infer-10ms", "--hints", "--rate", "{:g}".format(rate), "--requests", str(requests))

    def served(self, process: Any) -> Dict[str, Any]:
        return _figures(process)

    def _start(self) -> None:
        os.environ.update(GPREEMPT_SOCKET=self._socket, GPREEMPT_QUIET="1")
        os.environ.pop("GPREEMPT_BACKEND", None)
        empty = os.path.join(self._folder, "root")
        os.mkdir(empty)  # the machine's own GPUs are none of its business
        daemon = self._run([os.path.join(os.path.dirname(self._program), "gpreemptd"), "--config", "/dev/null", "--classes", "/dev/null",
                            "--root", empty, "--socket", self._socket])
        until(lambda: daemon.poll() is not None or _listens(self._socket), "gpreemptd listens")
        gpu = self._run([self._program, "sim-gpu", "--socket", self._gpu])
        until(lambda: gpu.poll() is not None or daemon.poll() is not None or gpreempt.devices(), "gpreemptd knows the simulated GPU")
        if daemon.poll() is not None or gpu.poll() is not None:
            self._log.flush()
            with open(self._log.name, encoding="utf-8", errors="replace") as log:
                raise Broken("the simulated GPU cannot be started: " + log.read().strip()[-500:])

    def _run(self, command: List[str], **more: Any) -> Any:
        """In a session of its own: a terminal's Ctrl-C is for this process alone."""
        options = dict(stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)  # type: Dict[str, Any]
        options.update(more)
        try:
            process = subprocess.Popen(command, preexec_fn=_end_with_parent, start_new_session=True, **options)
        except OSError as wrong:
            raise Broken("{}: {}".format(command[0], wrong.strerror))
        self._processes.append(process)
        return process

    def _client(self, *options: str) -> Any:
        return self._run([self._program, "sim-client", "--gpu", self._gpu, "--json"] + list(options), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, universal_newlines=True)


class Given:
    """Somebody's process, under this machine's gpreemptd. Nobody but gpreemptd tells what became of its queues."""

    is_simulated = False

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.device = Device("measured", "?")

    def __enter__(self) -> "Given":
        queues = gpreempt.queues(pid=self.pid)
        if not queues:
            raise Broken("process {} has no queue that gpreemptd knows; gpreempt list shows those there are".format(self.pid))
        self.device = described(next(one for one in gpreempt.devices() if one.device == queues[0].device))
        return self

    def __exit__(self, *why: Any) -> None:
        pass

    @property
    def daemon_pid(self) -> Optional[int]:
        """Who listens there."""
        folder = os.environ.get("XDG_RUNTIME_DIR", "")
        paths = [os.environ.get("GPREEMPT_SOCKET")] + [path.format(XDG_RUNTIME_DIR=folder) for path in DEFAULT_SOCKETS]
        for path in paths:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
                if path and one.connect_ex(path) == 0:
                    return struct.unpack("iII", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        return None

    def offline(self, calls: Calls, queues: int = 1) -> Job:
        ids = calls.queues(self.pid)
        if len(ids) < queues:
            raise Skip("process {} has {} of the {} queues that it needs".format(self.pid, len(ids), queues))
        return Job(self.pid, ids[:queues])

    def online(self, rate: float, requests: int) -> Any:
        raise Skip("it needs a job and requests whose figures it can read: only the simulated GPU's")

    def served(self, process: Any) -> Dict[str, Any]:
        raise Skip("nobody serves requests here")


def _program() -> str:
    found = os.environ.get(PROGRAM) or shutil.which("gpreempt")
    if not found:
        raise Broken("the program gpreempt is not in the path: it is the simulated GPU. Install it, or use gpreempt verify")
    return found
