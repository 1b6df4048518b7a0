# SPDX-License-Identifier: MIT
"""What the notes watch beside a long test: the kernel's messages, and processes' CPU and memory."""

import errno
import os
import re
import time
from typing import Any, Dict, List, Optional

# Of a driver in trouble. Others' messages are none of ours.
_TROUBLE = re.compile(r"(amdgpu|kfd|NVRM).*(error|fail|hang|hung|reset|timeout|Xid)|BUG:|Oops|WARNING: CPU|blocked for more than", re.I)


class KernelLog:
    """What the kernel says from now on. why_not: it cannot be read here."""

    def __init__(self, path: str = "/dev/kmsg") -> None:
        self.why_not = None  # type: Optional[str]
        self._fd = -1
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError as wrong:
            self.why_not = "{}: {}".format(path, wrong.strerror)

    def trouble(self) -> List[str]:
        lines = []  # type: List[str]
        while self._fd >= 0:
            try:
                text = os.read(self._fd, 8192).decode("utf-8", "replace")
            except BrokenPipeError:
                continue  # some were overwritten
            except OSError as wrong:
                if wrong.errno != errno.EAGAIN:
                    self.why_not = str(wrong.strerror)
                break
            if not text:
                break
            lines += [line.partition(";")[2] for line in text.splitlines()]
        return [line for line in lines if _TROUBLE.search(line)]

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Process:
    """Samples of one process: seconds since the first, CPU seconds, KiB in memory."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.samples = []  # type: List[Dict[str, float]]
        self._began = time.monotonic()

    def look(self) -> None:
        try:
            with open("/proc/{}/stat".format(self.pid), encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return  # it has gone: who needs it notices
        ticks, pages = int(fields[11]) + int(fields[12]), int(fields[21])
        self.samples.append({"at_s": time.monotonic() - self._began, "cpu_s": ticks / os.sysconf("SC_CLK_TCK"),
                             "memory_kib": pages * (os.sysconf("SC_PAGE_SIZE") // 1024)})

    def as_dict(self) -> Dict[str, Any]:
        if len(self.samples) < 2:
            return {"pid": self.pid, "cpu_percent": None, "first_kib": None, "last_kib": None}
        first, last = self.samples[0], self.samples[-1]
        time_s = max(last["at_s"] - first["at_s"], 1e-9)
        return {"pid": self.pid, "cpu_percent": 100 * (last["cpu_s"] - first["cpu_s"]) / time_s,
                "first_kib": first["memory_kib"], "last_kib": last["memory_kib"]}

    @property
    def grew(self) -> bool:
        """More than a program at work may: what the first half of the time needed at most, a tenth, and 1 MiB."""
        half = len(self.samples) // 2
        if half < 1:
            return False
        usual = max(sample["memory_kib"] for sample in self.samples[:half])
        return self.samples[-1]["memory_kib"] > usual * 1.1 + 1024
