# SPDX-License-Identifier: MIT
"""The design notes' GPreemptScheduler and HQDResourceMonitor, over gpreempt."""

import threading
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Set

import gpreempt
from gpreempt._fork import PerProcess
from gpreempt._gpu import Gpu, described
from gpreempt.notes import (AnyQueue, Finder, OfflineQueues, QueueInfo, Statistics, all_queues, checked_priority, ids, measured, of_gpus,
                            say)

__all__ = ["GPreemptScheduler", "HQDResourceMonitor", "QueueInfo", "Statistics"]

KEPT_SAMPLES = 36000


class Monitor:
    """A thread that looks every so often, until stop(); it keeps no process alive."""

    _stopping = PerProcess(threading.Event)

    def __init__(self, check_interval_ms: float) -> None:
        if check_interval_ms <= 0:
            raise ValueError("check_interval_ms must be more than 0")
        self.check_interval_ms = check_interval_ms
        self.last_error = None  # type: Optional[gpreempt.Error]
        self._thread = None  # type: Optional[threading.Thread]

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        if self.is_running:
            return
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Also without start()."""
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *why: Any) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopping.wait(self.check_interval_ms / 1e3):
            try:
                self._look()
            except gpreempt.Error as wrong:
                self.last_error = wrong  # gpreemptd may come again

    def _look(self) -> None:
        raise NotImplementedError


class GPreemptScheduler(Monitor, Finder):
    """Offline queues are off the GPU while an online task is announced, or a registered online queue has work.

    notify_online_task() returns when they are off. Every one needs its online_task_complete().
    """

    _lock = PerProcess(threading.RLock)

    def __init__(self, check_interval_ms: float = 1) -> None:
        super().__init__(check_interval_ms)
        self.statistics = Statistics()
        self.online_queues = {}  # type: Dict[int, int]  # first handle, priority
        self._offline = OfflineQueues(self.statistics)
        self._announced = []  # type: List[float]  # when each open task was
        self._is_seen = False  # a registered online queue has work

    @property
    def offline_queues(self) -> Dict[int, int]:
        return self._offline.handles

    def start(self) -> None:
        super().start()
        say("Scheduler started: checks every {:g} ms".format(self.check_interval_ms), "调度器已启动：检查间隔 {:g} ms".format(self.check_interval_ms))

    def stop(self) -> None:
        """Ends the thread and resumes everything."""
        was_running = self.is_running
        super().stop()
        with self._lock:
            del self._announced[:]
            self._is_seen = False
            self._offline.give_back()
        if was_running:
            say("Scheduler stopped", "调度器已停止")

    def cleanup(self) -> None:
        self.stop()

    def register_online_queue(self, queue: AnyQueue, priority: int = 15) -> None:
        with self._lock:
            self.online_queues[ids.handle(queue)] = checked_priority(priority)

    def register_offline_queue(self, queue: AnyQueue, priority: int = 2) -> None:
        """What is registered while offline work is stopped is stopped the next time."""
        with self._lock:
            self._offline.handles[ids.handle(queue)] = checked_priority(priority)

    def unregister_queue(self, queue: AnyQueue) -> None:
        """If it was stopped it runs again, with the others, when the open tasks are complete."""
        with self._lock:
            handle = ids.known_handle(queue)
            self.online_queues.pop(handle, None)
            self._offline.handles.pop(handle, None)

    def notify_online_task(self) -> float:
        """Returns when offline work is off the GPU: in how many ms that was done."""
        with self._lock:
            self._announced.append(time.perf_counter())
            try:
                return self._offline.stop()
            except BaseException:
                self._announced.pop()
                self._settle()
                raise

    def online_task_complete(self) -> None:
        """The last open task's gives the GPU back. One too many does nothing."""
        with self._lock:
            if self._announced:
                self.statistics.record_online((time.perf_counter() - self._announced.pop(0)) * 1e3)
            self._settle()

    def measure_latency(self, repeats: int = 100, pause_ms: float = 10) -> Dict[str, Any]:
        """Suspend, wait, resume, so many times, of the registered offline queues; figures in ms, and what they are of."""
        with self._lock:
            handles = dict(self.offline_queues)
        return measured(handles, repeats, pause_ms)  # others' tasks do not wait for that

    def log_statistics(self, path: Optional[str] = None) -> None:
        self.statistics.log(path)

    def print_statistics(self) -> None:
        self.statistics.print_summary()

    def _look(self) -> None:
        if not self.online_queues and not self._is_seen:
            return
        busy = any(queue.is_busy for queue in all_queues() if ids.handle(queue) in self.online_queues)
        with self._lock:
            self._is_seen = busy and not self._stopping.is_set()
            self._settle()

    def _settle(self) -> None:
        if self._announced or self._is_seen:
            self._offline.stop()
        else:
            self._offline.give_back()


class HQDResourceMonitor(Monitor):
    """How many of a device's hardware queue slots have an active queue, over time. HQD: such a slot."""

    def __init__(self, check_interval_ms: float = 100, device: int = 0) -> None:
        super().__init__(check_interval_ms)
        self.device = device
        self.samples = deque(maxlen=KEPT_SAMPLES)  # type: Deque[Dict[str, float]]
        self._gpus = set()  # type: Set[Gpu]  # that the samples are of

    def get_usage(self) -> Dict[str, float]:
        """Now: active queues, slots, and percent of them."""
        found = [one for one in gpreempt.devices() if one.device == self.device]
        self._gpus.update(map(described, found))
        slots = found[0].queue_slots if found else 0
        active = sum(1 for queue in gpreempt.queues() if queue.device == self.device and queue.active)
        return {"time": time.time(), "active": active, "slots": slots, "percent": 100.0 * min(active, slots) / slots if slots else 0.0}

    @property
    def mean_percent(self) -> float:
        samples = list(self.samples)
        return sum(sample["percent"] for sample in samples) / len(samples) if samples else 0.0

    def print_summary(self) -> None:
        """Without a sample yet, of one that is taken now."""
        if not self.samples:
            self._look()
        samples = list(self.samples)
        slots, most = samples[-1]["slots"], max(sample["active"] for sample in samples)
        say("HQD use: mean {:.1f} %, at most {:g} of {:g} slots, {} sample{}".format(self.mean_percent, most, slots, len(samples), "" if len(samples) == 1 else "s"),
            "HQD 使用率：平均 {:.1f} %，最多 {:g}/{:g} 个，{} 个样本".format(self.mean_percent, most, slots, len(samples)), of_gpus(self._gpus))

    def _look(self) -> None:
        self.samples.append(self.get_usage())
