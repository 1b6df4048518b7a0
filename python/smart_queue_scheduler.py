# SPDX-License-Identifier: MIT
"""The design notes' SmartQueueScheduler, over gpreempt."""

import threading
import time
from typing import Any, Dict, List, Optional, Tuple

import gpreempt
from gpreempt._fork import PerProcess
from gpreempt._gpu import MEASURED, described
from gpreempt.notes import (AnyQueue, Finder, OfflineQueues, QueueInfo, Statistics, all_queues, checked_priority, ids, measured, of_gpus,
                            say)

__all__ = ["QueueInfo", "SmartQueueScheduler", "Statistics"]

POLL_S = 0.001


def _of_no_gpu() -> Dict[int, Tuple[str, str]]:
    """What is to be said of a queue, by its handle, that is not on a real GPU."""
    gpus = {one.device: described(one) for one in gpreempt.devices()}
    return {queue.queue: of_gpus([gpus[queue.device]]) for queue in gpreempt.queues()
            if queue.device in gpus and gpus[queue.device].kind != MEASURED}


class SmartQueueScheduler(Finder):
    """handle_online_request() returns once the registered offline queues are off the GPU; they are resumed by themselves.

    completion: "slice", after online_slice_ms without another request; "activity", besides that not before the registered
    online queues have no work. Its thread ends with cleanup(), and keeps no process alive.
    """

    _changed = PerProcess(threading.Condition)

    def __init__(self, online_slice_ms: float = 10, completion: str = "slice") -> None:
        if completion not in ("slice", "activity"):
            raise ValueError("completion is \"slice\" or \"activity\"")
        self.online_slice_ms = online_slice_ms
        self.completion = completion
        self.statistics = Statistics()
        self.last_error = None  # type: Optional[gpreempt.Error]
        self._offline = OfflineQueues(self.statistics)
        self._online = {}  # type: Dict[int, int]  # first handle, priority
        self._began = None  # type: Optional[float]  # of the first request that offline work waits for
        self._due = 0.0
        self._thread = None  # type: Optional[threading.Thread]

    def discover_queues_by_priority(self, min_prio: int = 0, max_prio: int = 5) -> List[QueueInfo]:
        found = self.scan_queues(min_prio, max_prio)
        of = _of_no_gpu()
        for queue in found:
            say("Queue {}: process {}, priority {}, GPU {}".format(queue.queue_id, queue.process_id, queue.priority, queue.gpu_id),
                "队列 {}：进程 {}，优先级 {}，GPU {}".format(queue.queue_id, queue.process_id, queue.priority, queue.gpu_id), of.get(queue.handle))
        say("Queues with priority {} to {}: {}".format(min_prio, max_prio, len(found)), "优先级 {} 到 {} 的队列：{} 个".format(min_prio, max_prio, len(found)))
        if not found:
            say("ROCm gives queues the priorities 0, 7 and 11, and 7 to who asks for none: search 0 to 7, by process or by tag",
                "ROCm 只使用优先级 0、7、11，未设置时为 7：请搜索 0 到 7，或按进程、标签查找")
        return found

    def register_offline_queue(self, queue: AnyQueue, priority: int = 2) -> None:
        with self._changed:
            self._offline.handles[ids.handle(queue)] = checked_priority(priority)

    def register_online_queue(self, queue: AnyQueue, priority: int = 15) -> None:
        with self._changed:
            self._online[ids.handle(queue)] = checked_priority(priority)

    def unregister_queue(self, queue: AnyQueue) -> None:
        with self._changed:
            handle = ids.known_handle(queue)
            self._online.pop(handle, None)
            self._offline.handles.pop(handle, None)

    def handle_online_request(self) -> float:
        """Returns when offline work is off the GPU: in how many ms that was done."""
        with self._changed:
            now, is_first = time.perf_counter(), self._began is None
            self._began = now if is_first else self._began
            self._due = now + self.online_slice_ms / 1e3
            try:
                self._start()
                took = self._offline.stop()
            except BaseException:
                if is_first:  # it was no request, and nobody waits for its end
                    self._began = None
                    self._give_back()
                raise
            self._due = time.perf_counter() + self.online_slice_ms / 1e3
            self._changed.notify_all()
            return took

    def print_statistics(self) -> None:
        self.statistics.print_summary()

    def log_statistics(self, path: Optional[str] = None) -> None:
        self.statistics.log(path)

    def measure_latency(self, repeats: int = 100, pause_ms: float = 10) -> Dict[str, Any]:
        """Suspend, wait, resume, so many times, of the registered offline queues; figures in ms, and what they are of."""
        with self._changed:
            handles = dict(self._offline.handles)
        return measured(handles, repeats, pause_ms)  # others' requests do not wait for that

    def cleanup(self) -> None:
        """Resumes everything and ends the thread; the next request begins anew."""
        with self._changed:
            thread, self._thread = self._thread, None
            self._give_back()
            self._changed.notify_all()
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join()

    def __enter__(self) -> "SmartQueueScheduler":
        return self

    def __exit__(self, *why: Any) -> None:
        self.cleanup()

    def _start(self) -> None:
        """Also after fork(), which takes no thread along, and where there was none to be had: who stops must resume."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="SmartQueueScheduler", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with self._changed:
            while self._thread is threading.current_thread():
                wait = self._due - time.perf_counter()
                if self._began is None:
                    self._changed.wait()
                elif wait > 0:
                    self._changed.wait(wait)
                elif self._is_busy():
                    self._changed.wait(POLL_S)
                else:
                    self._give_back()

    def _is_busy(self) -> bool:
        if self.completion == "slice" or not self._online:
            return False
        try:
            return any(queue.is_busy for queue in all_queues() if ids.handle(queue) in self._online)
        except gpreempt.Error as wrong:
            self.last_error = wrong
            return False

    def _give_back(self) -> None:
        began, self._began = self._began, None
        try:
            self._offline.give_back()
        except gpreempt.Error as wrong:
            self.last_error = wrong
        if began is not None:
            self.statistics.record_online((time.perf_counter() - began) * 1e3)
