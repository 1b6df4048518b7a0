# SPDX-License-Identifier: MIT
"""A running sim-gpu for tests, programs on it, and what gpreemptd knows of them.

What the tests on a simulated GPU share; not a test itself.
"""

import contextlib
import json
import os
import signal
import subprocess

import tap
from gpreemptd import until
from protocol import Tool

SOON = 120.0  # s; nothing here takes that long unless it is broken
LEASE_S = 3  # gpreemptd's default


@contextlib.contextmanager
def gpu(folder, *options, socket=""):
    """A running one; it must end well. socket: gpreemptd's, to whom it makes itself known."""
    path = f"{folder}/gpu/sock"
    os.makedirs(f"{folder}/gpu", exist_ok=True)
    with open(f"{folder}/gpu.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen([tap.PROGRAM, "sim-gpu", "--socket", path, "--verbose", *options],
                                   env=dict(os.environ, GPREEMPT_SOCKET=socket), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   preexec_fn=tap.die_with_parent)
    try:
        until(lambda: "Ctrl-C" in said(folder) or process.poll() is not None, "the GPU is ready")
        yield process
        if process.poll() is None:
            process.terminate()
            tap.same(process.wait(SOON), 0, f"exit status of sim-gpu; {said(folder)}")
            tap.true(not os.path.exists(path), "the socket is left behind")
    finally:
        process.kill()
        process.wait()


def said(folder):
    return tap.read(folder, "gpu.log")


class Client(subprocess.Popen):
    """A program on the GPU; its figures, when it has ended."""

    def __init__(self, folder, *options, socket=""):
        self.folder = folder
        super().__init__([tap.PROGRAM, "sim-client", "--gpu", f"{folder}/gpu/sock", "--json", *options],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=dict(os.environ, GPREEMPT_SOCKET=socket), preexec_fn=tap.die_with_parent)

    def runs(self):
        """The GPU has its queues by now."""
        until(lambda: f"(process {self.pid}): o" in said(self.folder) or self.poll() is not None, "the client runs")
        return self

    def figures(self, number=None):
        if number:
            self.send_signal(number)
        out, errors = self.communicate(timeout=SOON)
        tap.same(self.returncode, 0, f"exit status of a client; {errors}")
        return json.loads(out)

    def __exit__(self, *why):
        self.kill()
        super().__exit__(*why)


def train(folder, *options, **more):
    return Client(folder, "--offline", "--work", "train", *options, **more).runs()


def infer(folder, *options, **more):
    return Client(folder, "--online", "--work", "infer-10ms", "--rate", "20", *options, **more).runs()


def handles(d, pid, n=1):
    """The daemon's, of all queues of a client."""
    with contextlib.closing(Tool(d.path)) as tool:
        until(lambda: len(tool.handles(pid)) == n, "gpreemptd knows its queues")
        return tool.handles(pid)


@contextlib.contextmanager
def suspended(d, *names):
    with subprocess.Popen([tap.PROGRAM, "suspend", "--socket", d.path, *names], stdout=subprocess.PIPE, text=True,
                          preexec_fn=tap.die_with_parent) as tool:
        try:
            line = tool.stdout.readline()
            tap.true(line.startswith("Suspended"), line)
            yield line
            tool.send_signal(signal.SIGINT)
            tap.same(tool.wait(SOON), 0, "exit status of suspend")
        finally:
            tool.kill()
