# SPDX-License-Identifier: MIT
"""Real training: on the GPU, or on the CPU beside a job that stands for it."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, List

from gpreempt.verify.stage import Broken, Job, child_environment, end_with_parent, own_program, until

STEPS_S = 240.0  # PyTorch is read from a cold disk first, or a slow one; and a busy CPU takes long for a step
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
            until(lambda: self.losses or self._process.poll() is not None, "the first step of a training", STEPS_S)
            if self._process.poll() is not None:
                raise Broken("the training ended by itself")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *why: Any) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def losses(self) -> List[float]:
        """Of each step so far."""
        text = os.pread(self._said.fileno(), 1 << 24, 0).decode()
        return [float(line) for line in text.splitlines()[:text.count("\n")]]


class OnCpu(_Training):
    """Beside a simulated job: it stands still while that job's queue does, as the GPU's work would."""

    def __init__(self) -> None:
        super().__init__([], "cpu")

    def look(self) -> None:
        """The queue that stands for it was suspended."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self._seen = len(self.losses)

    def see_still(self) -> None:
        """It is to be resumed."""
        self.still += len(self.losses) == self._seen
        self._process.send_signal(signal.SIGCONT)


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
