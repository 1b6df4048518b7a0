# SPDX-License-Identifier: MIT
"""Real training: on the GPU, or on the CPU beside a job that stands for it."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, List

import gpreempt
from gpreempt import QueueState
from gpreempt.verify.stage import POLL_S, SOON_S, Broken, Job, child_environment, comes, end_with_parent, own_program, until

STEP_S = 900.0  # for each: PyTorch is read from a cold disk before the first, and an emulated CPU that others use is slow at any
STANDS_S = SOON_S  # from when its queue was told to be off the GPU
SETTLE_S = 0.05  # a step that the GPU had ended is told by then


class _Training(Job):
    """A process that trains a small BERT: real_models. Its process is started by these words."""

    def __init__(self, before: List[str], device: str) -> None:
        super().__init__(0, [])
        self._before, self._device = before, device
        self._said = tempfile.TemporaryFile("w+")
        self._seen = 0
        self.still = 0  # times that it did nothing while it was to

    def __enter__(self) -> Any:
        import real_models  # beside this package; needs PyTorch

        command = self._before + [sys.executable, "-B", os.path.abspath(real_models.__file__), self._device]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._said, env=child_environment(),
                                         preexec_fn=end_with_parent, start_new_session=True)
        self.pid = self._process.pid
        try:
            self.come_to(1, "the first step of a training")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *why: Any) -> None:
        self._process.kill()
        self._process.wait()

    def come_to(self, steps: int, why: str) -> None:
        """Waits until it has done so many. The limit is for one: a slow machine has it again for the next."""
        seen = len(self.losses)
        while seen < steps:
            until(lambda: len(self.losses) > seen or self._process.poll() is not None, why, STEP_S)
            if len(self.losses) == seen:
                raise Broken("the training ended by itself")
            seen = len(self.losses)

    @property
    def losses(self) -> List[float]:
        """Of each step so far."""
        text = os.pread(self._said.fileno(), 1 << 24, 0).decode()
        return [float(line) for line in text.splitlines()[:text.count("\n")]]


class OnCpu(_Training):
    """Beside a simulated job: it does what gpreemptd tells of that job's queue, as the GPU's work would."""

    def __init__(self) -> None:
        super().__init__([], "cpu")

    def follow(self, pid: int) -> None:
        """From now on, while that job has queues."""
        threading.Thread(target=self._follow, args=(pid,), daemon=True).start()

    def look(self) -> None:
        """The queue that stands for it was suspended: it has to stand still by itself."""
        self._seen = len(self.losses) if comes(self._stands, STANDS_S) else -1

    def see_still(self) -> None:
        """It is to be resumed."""
        self.still += self._stands() and len(self.losses) == self._seen

    def _stands(self) -> bool:
        return os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG) is not None

    def _follow(self, pid: int) -> None:
        is_stopped, queues = False, _queues(pid)
        while queues and self._process.poll() is None:
            if is_stopped != all(queue.state == QueueState.SUSPENDED for queue in queues):
                is_stopped = not is_stopped
                self._process.send_signal(signal.SIGSTOP if is_stopped else signal.SIGCONT)
            time.sleep(POLL_S)
            queues = _queues(pid)
        if is_stopped:
            self._process.send_signal(signal.SIGCONT)


def _queues(pid: int) -> List[gpreempt.Queue]:
    try:
        return gpreempt.queues(pid=pid)
    except gpreempt.Error:
        return []  # whoever asks next is told


class OnGpu(_Training):
    """Offline work under this machine's gpreemptd, by its own queues."""

    def __init__(self) -> None:
        super().__init__([own_program(), "run", "--offline", "--"], "cuda")

    def hold(self, seconds: float) -> float:
        time.sleep(SETTLE_S)
        before = len(self.losses)
        done = super().hold(seconds)
        self.still += len(self.losses) == before
        return done
