# SPDX-License-Identifier: MIT
"""The old way and the new: the notes' two C libraries, as a program of theirs calls them."""

import ctypes
import os
import time
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_int32, c_uint32, c_uint64
from typing import Any, Callable, Dict, List, NamedTuple

from gpreempt._library import library

OLD = "old"
NEW = "new"


class QueueInfo(ctypes.Structure):
    """gpreempt_queue_info_t"""

    _fields_ = [("queue_id", c_uint32), ("priority", c_uint32), ("gpu_id", c_uint32), ("process_id", c_int32), ("is_active", c_bool),
                ("queue_address", c_uint64)]


Way = NamedTuple("Way", [("name", str), ("library", str), ("suspend", str), ("resume", str), ("grace_us", int)])

WAYS = {
    OLD: Way(OLD, "libgpreempt_poc.so.0", "gpreempt_suspend_queues", "gpreempt_resume_queues", 1000),
    NEW: Way(NEW, "libgpreempt_poc_v2.so.0", "gpreempt_batch_unmap_queues", "gpreempt_fast_remap_queues", 100),
}  # type: Dict[str, Way]

Cycle = NamedTuple("Cycle", [
    ("suspend_ms", float),
    ("online_ms", float),
    ("resume_ms", float),
    ("held_s", float),
    ("began_s", float),  # the suspend, by time.time()
    ("back_s", float),  # the resume
])


class Failed(Exception):
    """A call failed; the text is the library's."""


def _loaded(name: str) -> Any:
    """From beside libgpreempt, which is in memory before it: so it is found wherever it is installed."""
    folder = os.path.dirname(library()._name)
    return ctypes.CDLL(os.path.join(folder, name) if folder else name, use_errno=True)


class Calls:
    """The calls of one way. open() and close() are the notes' init and cleanup: after close() everything runs."""

    def __init__(self, name: str) -> None:
        self.way = WAYS[name]
        self.old = _loaded(WAYS[OLD].library)
        self.c = _loaded(self.way.library)
        self.old.gpreempt_poc_errmsg.restype = c_char_p
        for call in ("gpreempt_find_queues_by_process", "gpreempt_get_queue_status"):
            getattr(self.c, call).restype = c_int

    def open(self) -> "Calls":
        self._check(self.c.gpreempt_poc_init())
        return self

    def close(self) -> None:
        self.c.gpreempt_poc_cleanup()

    def queues(self, pid: int) -> List[int]:
        """Ids, of a process."""
        found, n = POINTER(QueueInfo)(), c_uint32()
        self._check(self.c.gpreempt_find_queues_by_process(c_int32(pid), byref(found), byref(n)))
        ids = [found[index].queue_id for index in range(n.value)]
        self.c.gpreempt_free_queue_info(found)
        return ids

    def is_active(self, queue: int) -> bool:
        info = QueueInfo()
        self._check(self.c.gpreempt_get_queue_status(c_uint32(queue), byref(info)))
        return bool(info.is_active)

    def suspend(self, ids: List[int]) -> None:
        self._check(getattr(self.c, self.way.suspend)(_array(ids), c_uint32(len(ids)), c_uint32(self.way.grace_us)))

    def resume(self, ids: List[int]) -> None:
        self._check(getattr(self.c, self.way.resume)(_array(ids), c_uint32(len(ids))))

    def cycle(self, ids: List[int], work: Callable[[], float]) -> Cycle:
        """Off the GPU, online work, on again. work: returns when it was done, by time.perf_counter(); online_ms is from the request to that."""
        began, began_s = time.perf_counter(), time.time()
        try:
            self.suspend(ids)
            off = time.perf_counter()
            done = work()
        except BaseException:
            self._give_back(ids)
            raise
        back, back_s = time.perf_counter(), time.time()
        self.resume(ids)
        on = time.perf_counter()
        return Cycle((off - began) * 1e3, (done - began) * 1e3, (on - back) * 1e3, back - off, began_s, back_s)

    def _give_back(self, ids: List[int]) -> None:
        try:
            self.resume(ids)
        except Failed:
            pass  # what came before says more, and close() resumes too

    def _check(self, r: int) -> None:
        if r < 0:
            text = self.old.gpreempt_poc_errmsg() or b""
            raise Failed(text.decode("utf-8", "replace") or os.strerror(ctypes.get_errno()))


def _array(ids: List[int]) -> Any:
    return (c_uint32 * len(ids))(*ids)


def said(name: str) -> str:
    """A way, for people."""
    return "the {} way ({}())".format(name, WAYS[name].suspend)
