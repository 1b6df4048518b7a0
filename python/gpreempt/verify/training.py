# SPDX-License-Identifier: MIT
"""Real training, on the CPU, beside a simulated job: it stands still while that job's queue does, as the GPU's work would."""

import os
import signal
import subprocess
import sys
import tempfile
from typing import Any, List

from gpreempt.verify.stage import Broken, end_with_parent, until


class Training:
    """A process that trains a small BERT: real_models."""

    def __init__(self) -> None:
        self._said = tempfile.TemporaryFile("w+")
        self._process = None  # type: Any
        self._seen = 0
        self.still = 0  # times that it did nothing while it was to

    def __enter__(self) -> "Training":
        import real_models  # beside this package; needs PyTorch

        program = os.path.abspath(real_models.__file__)
        self._process = subprocess.Popen([sys.executable, "-B", program], stdin=subprocess.DEVNULL, stdout=self._said, preexec_fn=end_with_parent,
                                         start_new_session=True)
        try:
            until(lambda: self.losses or self._process.poll() is not None, "the first step of a training")
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

    def look(self) -> None:
        """The queue that stands for it was suspended."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self._seen = len(self.losses)

    def see_still(self) -> None:
        """It is to be resumed."""
        self.still += len(self.losses) == self._seen
        self._process.send_signal(signal.SIGCONT)
