# SPDX-License-Identifier: MIT
"""What the classes of the design notes share: queues by the notes' ids, figures, lines in the reader's language.

New programs should use gpreempt itself; these classes are here so that programs written to the notes run.
"""

import errno
import json
import logging
import os
import statistics
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple, Union

import gpreempt
from gpreempt import Activity, ClientClass, Error, Known, Queue
from gpreempt._fork import PerProcess
from gpreempt._gpu import Gpu, described, device_chinese, device_text

HIGHEST_PRIORITY = 15
ONLINE_FROM = 10  # where nothing else gives a queue its class
UNKNOWN_PRIORITY = 0xFFFFFFFF
FIRST_OWN_ID = 1000000
COMING_S = 30  # at the most, until the queues there were have come to a gpreemptd that was started again
KEPT = 10000  # latencies, for the percentiles; the means are of all

_TAGS = {"ONLINE_AI": "--online (GPREEMPT_CLASS)", "OFFLINE_AI": "--offline (GPREEMPT_CLASS)"}


def is_chinese() -> bool:
    words = [os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG")]
    return next((word for word in words if word), "").startswith("zh")


def say(english: str, chinese: str, of: Optional[Tuple[str, str]] = None) -> None:
    """One line, in the reader's language. of: what its figures are of, in both."""
    if of:
        english, chinese = "{} ({})".format(english, of[0]), "{}（{}）".format(chinese, of[1])
    try:
        print(chinese if is_chinese() else english, flush=True)
    except UnicodeEncodeError:
        print(english, flush=True)


def of_gpus(gpus: Iterable[Gpu]) -> Tuple[str, str]:
    """What stands on figures of these, in both languages."""
    every = sorted(set(gpus))
    if not every:
        return "of which GPU is not known", "哪个 GPU 未知"
    return "; ".join(map(device_text, every)), "；".join(map(device_chinese, every))


def gpus_there() -> List[Gpu]:
    """None, where nobody can be asked."""
    try:
        return [described(one) for one in gpreempt.devices()]
    except (Error, ImportError):
        return []


class QueueInfo(NamedTuple):
    """A queue by the notes' fields, and what gpreempt knows of it."""

    queue_id: int
    priority: int = UNKNOWN_PRIORITY
    gpu_id: int = 0
    process_id: int = 0
    is_active: bool = True
    queue_address: int = 0
    handle: int = 0
    is_online: bool = False
    is_busy: bool = False


AnyQueue = Union[QueueInfo, Queue, int]
Sure = Tuple[int, ...]


class QueueIds:
    """The driver's ids are unique within a process alone: an id that was given names its queue for ever.

    It is the driver's where no other queue has it, else a number from 1000000 on. Others are looked up as the driver's.

    Within a context a queue is known by its handle. In the next one (gpreemptd was started again, or the process forked) it is
    known again by what _sure() says, or it has gone; here and in the schedulers it goes by its first handle for ever.
    """

    _lock = PerProcess(threading.Lock)

    def __init__(self) -> None:
        self._context = None  # type: Optional[gpreempt.Context]  # that of the last list
        self._first = {}  # type: Dict[int, int]  # by handle
        self._now = {}  # type: Dict[int, int]  # by first handle, where it is another
        self._known = {}  # type: Dict[Sure, int]  # first handles of the queues there are
        self._awaited = set()  # type: Set[int]  # those of them that are not known in this context yet
        self._until = 0.0
        self._ids = {}  # type: Dict[int, int]  # by first handle
        self._handles = {}  # type: Dict[int, int]  # by id
        self._meant = {}  # type: Dict[int, int]  # by id: the handle that it was last taken for
        self._next = FIRST_OWN_ID

    def infos(self, queues: Optional[List[Queue]] = None) -> List[QueueInfo]:
        """Of all queues there are."""
        with self._lock:
            queues = self._listed(queues)
            return [_info(queue, self._id(queue, queues)) for queue in queues]

    def now(self, firsts: Iterable[int]) -> Dict[int, int]:
        """First handles, by those that they are now. Queues that may come yet are left out."""
        with self._lock:
            if self._is_another() or not self._awaited.isdisjoint(firsts):
                self._listed()
            return {self._now.get(first, first): first for first in firsts if first not in self._awaited}

    def handle(self, queue: AnyQueue) -> int:
        """The first, of a queue as a search gave it, or of an id."""
        if isinstance(queue, QueueInfo):
            return self._first.get(queue.handle, queue.handle) or self.handle(queue.queue_id)
        with self._lock:
            if isinstance(queue, Queue):
                if queue.queue not in self._first and (self._is_another() or self._awaited):
                    self._listed()
                return self._noted(queue)
            self._meant[queue] = self._handles[queue] if queue in self._handles else self._look_up(queue)
            return self._meant[queue]

    def known_handle(self, queue: AnyQueue) -> int:
        """Of one that was asked for before: then another may have its id now, or it may have gone."""
        number = queue.queue_id if isinstance(queue, QueueInfo) and not queue.handle else queue
        with self._lock:
            meant = self._meant.get(number) if isinstance(number, int) else None
        return self.handle(queue) if meant is None else meant

    def _is_another(self) -> bool:
        if not self._known:
            self._context = gpreempt._shared
        return self._context is not gpreempt._shared

    def _listed(self, queues: Optional[List[Queue]] = None) -> List[Queue]:
        """All there are: what is not among them has gone, unless it may come yet."""
        queues = gpreempt.queues() if queues is None else queues
        if self._is_another():
            self._context, self._until = gpreempt._shared, time.monotonic() + COMING_S
            self._awaited = set(self._known.values())
        if self._awaited:
            self._know_again([queue for queue in queues if queue.queue not in self._first])
        there = {self._first.get(queue.queue) for queue in queues}
        self._awaited = self._awaited - there if time.monotonic() < self._until else set()
        self._known = {sure: first for sure, first in self._known.items() if first in there or first in self._awaited}
        return queues

    def _know_again(self, queues: List[Queue]) -> None:
        sures = [_sure(queue) for queue in queues]
        for queue, sure in zip(queues, sures):
            if sure and sures.count(sure) == 1 and self._known.get(sure) in self._awaited:
                self._first[queue.queue] = self._known[sure]
                self._now[self._known[sure]] = queue.queue

    def _noted(self, queue: Queue) -> int:
        if queue.queue not in self._first:
            self._first[queue.queue] = queue.queue
            sure = _sure(queue)
            if sure:
                self._known[sure] = queue.queue
        return self._first[queue.queue]

    def _id(self, queue: Queue, queues: List[Queue]) -> int:
        first = self._noted(queue)
        if first not in self._ids:
            same = [other for other in queues if other.queue_id == queue.queue_id and Known.QUEUE_ID in other.known]
            number = queue.queue_id
            if len(same) != 1 or Known.QUEUE_ID not in queue.known or number in self._handles:
                number, self._next = self._next, self._next + 1
            self._ids[first], self._handles[number] = number, first
        return self._ids[first]

    def _look_up(self, number: int) -> int:
        found = [queue for queue in self._listed() if queue.queue_id == number and Known.QUEUE_ID in queue.known]
        if len(found) == 1:
            return self._noted(found[0])
        if found:
            raise Error(errno.ENOTUNIQ, "{} queues have the id {}: search, and use the ids that the search returns".format(len(found), number))
        raise Error(errno.ENOENT, "there is no queue with the id {}; gpreempt list shows those there are".format(number))


def _sure(queue: Queue) -> Optional[Sure]:
    """What tells a queue from all others in any context: its process, GPU, driver's id and ring. None: nothing does for sure."""
    if Known.QUEUE_ID not in queue.known or Known.RING not in queue.known:
        return None
    try:
        with open("/proc/{}/stat".format(queue.local_pid), "rb") as file:  # there is no process 0
            start = int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return None
    return queue.pid, start, queue.gpu_id, queue.queue_id, queue.ring


def _info(queue: Queue, number: int) -> QueueInfo:
    known = queue.known
    return QueueInfo(
        number, queue.priority if Known.PRIORITY in known else UNKNOWN_PRIORITY, queue.gpu_id, queue.pid, queue.active,
        queue.ring if Known.RING in known else 0, queue.queue, _is_online(queue), queue.activity == Activity.BUSY)


def _is_online(queue: Queue) -> bool:
    if queue.client_class == ClientClass.UNKNOWN:
        return Known.PRIORITY in queue.known and queue.priority >= ONLINE_FROM
    return queue.client_class == ClientClass.ONLINE


ids = QueueIds()  # the process's


def all_queues() -> List[QueueInfo]:
    return ids.infos()


def checked_priority(priority: int) -> int:
    if not 0 <= priority <= HIGHEST_PRIORITY:
        raise ValueError("priority {}: queues have 0 to {}".format(priority, HIGHEST_PRIORITY))
    return priority


class Finder:
    """Searches, as the notes name them."""

    def scan_queues(self, min_prio: int = 0, max_prio: int = HIGHEST_PRIORITY) -> List[QueueInfo]:
        return [queue for queue in all_queues() if min_prio <= queue.priority <= max_prio]

    def find_queues_by_priority(self, min_prio: int, max_prio: int) -> List[QueueInfo]:
        return self.scan_queues(min_prio, max_prio)

    def get_process_queues(self, pid: int) -> List[QueueInfo]:
        return [queue for queue in all_queues() if queue.process_id == pid]

    def find_queues_by_tag(self, tag: str) -> List[QueueInfo]:
        """By what gave a queue its class: ONLINE_AI, OFFLINE_AI, or a tag that a rule of gpreempt-classes(5) names."""
        rules = {queue.queue: queue.rule for queue in gpreempt.queues()}
        words = ["tag " + tag, "tag=" + tag] + ([_TAGS[tag]] if tag in _TAGS else [])
        return [queue for queue in all_queues() if any(word in rules.get(queue.handle, "") for word in words)]

    def classify_queues(self) -> Dict[str, List[QueueInfo]]:
        """By gpreemptd's rules; where they say nothing, priority 10 and more is online."""
        found = all_queues()
        return {"online": [queue for queue in found if queue.is_online], "offline": [queue for queue in found if not queue.is_online]}


class Latencies:
    """Count, mean, and the tail of the last ones, in ms. kept: how many these are; None: all."""

    def __init__(self, kept: Optional[int] = KEPT) -> None:
        self.count = 0
        self.total = 0.0
        self.max = 0.0
        self._last = deque(maxlen=kept)  # type: Deque[float]

    def add(self, ms: float) -> None:
        self.count += 1
        self.total += ms
        self.max = max(self.max, ms)
        self._last.append(ms)

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    def percentile(self, part: float) -> float:
        """The smallest that so much of the last ones do not exceed."""
        ordered = sorted(self._last)
        return ordered[max(0, -int(-len(ordered) * part // 100) - 1)] if ordered else 0.0

    def figures(self) -> Dict[str, float]:
        deviation = statistics.pstdev(self._last) if self._last else 0.0
        return {"count": self.count, "mean": self.mean, "deviation": deviation, "p50": self.percentile(50), "p95": self.percentile(95),
                "p99": self.percentile(99), "max": self.max}


class Statistics:
    """Counts and latencies of online requests, suspends and resumes, and which GPUs they are of."""

    _lock = PerProcess(threading.Lock)

    def __init__(self) -> None:
        self.online = Latencies()
        self.suspend = Latencies()
        self.resume = Latencies()
        self._gpus = set()  # type: Set[Gpu]

    def _record_gpus(self, gpus: Iterable[Gpu]) -> None:
        with self._lock:
            self._gpus.update(gpus)

    def record_online(self, ms: float) -> None:
        with self._lock:
            self.online.add(ms)

    def record_suspend(self, ms: float) -> None:
        with self._lock:
            self.suspend.add(ms)

    def record_resume(self, ms: float) -> None:
        with self._lock:
            self.resume.add(ms)

    @property
    def online_count(self) -> int:
        return self.online.count

    @property
    def suspend_count(self) -> int:
        return self.suspend.count

    @property
    def resume_count(self) -> int:
        return self.resume.count

    def _known_gpus(self) -> Set[Gpu]:
        """Whose queues were stopped; of latencies that a program recorded itself the only one there is, else none."""
        with self._lock:
            known = set(self._gpus)
        there = known or set(gpus_there())
        return there if known or len(there) == 1 else set()

    def as_dict(self) -> Dict[str, Any]:
        on = of_gpus(self._known_gpus())[0]
        with self._lock:
            return {"online_ms": self.online.figures(), "suspend_ms": self.suspend.figures(), "resume_ms": self.resume.figures(), "on": on}

    def print_summary(self) -> None:
        of, rows = of_gpus(self._known_gpus()), self.as_dict()
        for english, chinese, key in (("Online requests", "在线请求", "online_ms"), ("Suspends", "挂起", "suspend_ms"), ("Resumes", "恢复", "resume_ms")):
            row = rows[key]
            numbers = row["count"], row["mean"], row["p99"], row["max"]
            say("{}: {}, mean {:.3f} ms, p99 {:.3f} ms, max {:.3f} ms".format(english, *numbers),
                "{}：{} 次，平均 {:.3f} ms，p99 {:.3f} ms，最大 {:.3f} ms".format(chinese, *numbers), of)

    def log(self, path: Optional[str] = None) -> None:
        """One line of JSON: at the end of a file, or to the logger "gpreempt"."""
        line = json.dumps(dict(time=time.time(), **self.as_dict()), sort_keys=True)
        if path is None:
            logging.getLogger("gpreempt").info(line)
            return
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


class OfflineQueues:
    """Those of a scheduler: stopped and given back together. For one thread at a time."""

    def __init__(self, figures: Statistics, handles: Optional[Dict[int, int]] = None) -> None:
        self.handles = dict(handles or {})  # type: Dict[int, int]  # the first, and their priorities
        self._figures = figures
        self._suspension = None  # type: Optional[gpreempt.Suspension]
        self._context = None  # type: Optional[gpreempt.Context]  # the suspension's
        self._stopped = {}  # type: Dict[int, int]  # by the suspension: first handles
        self._noted = set()  # type: Set[int]  # of them, those whose GPU the figures have

    @property
    def is_stopped(self) -> bool:
        """By this process, and by the gpreemptd that is there: one that has gone, or a parent before fork(), stops nothing for it."""
        if self._suspension is None or self._context is None:
            return False
        try:
            self._context.devices()  # nothing but a call tells that gpreemptd has gone
        except Error:
            return False
        return True

    def stop(self) -> float:
        """In how many ms; 0 if they were stopped already, or there are none."""
        if self.is_stopped or not self.handles:
            return 0.0
        began = time.perf_counter()
        self._suspension = self._suspended()
        if self._suspension is None:
            return 0.0
        took = (time.perf_counter() - began) * 1e3
        self._figures.record_suspend(took)
        return took

    def give_back(self) -> float:
        if self._suspension is None:
            return 0.0
        began = time.perf_counter()
        suspension, self._suspension = self._suspension, None
        suspension.resume()
        took = (time.perf_counter() - began) * 1e3
        self._figures.record_resume(took)
        self._note_gpus()
        return took

    def _note_gpus(self) -> None:
        """Here, because nobody waits for it, and no offline work; of each queue once."""
        if self._context is None or self._noted.issuperset(self._stopped.values()):
            return
        try:
            devices = {queue.device for queue in self._context.queues() if queue.queue in self._stopped}
            self._figures._record_gpus(described(one) for one in self._context.devices() if one.device in devices)
        except Error:
            return  # the next time
        self._noted.update(self._stopped.values())

    def _suspended(self) -> Optional["gpreempt.Suspension"]:
        """Queues that went are forgotten, and those that may come yet are not; the others are stopped."""
        while self.handles:
            context = gpreempt.context()
            now = ids.now(self.handles)
            if not now:
                break
            try:
                suspension = context.suspend(list(now)).begin()
                self._context, self._stopped = context, now
                return suspension
            except Error as wrong:
                gone = [queue for queue, status in wrong.statuses.items() if -status in (errno.ENOENT, errno.ESRCH)]
                if not gone:
                    raise
                for queue in gone:
                    self.handles.pop(now[queue], None)
        return None


def measured(handles: Dict[int, int], repeats: int, pause_ms: float) -> Dict[str, Any]:
    """Suspend, wait, resume, so many times: the notes' latency test."""
    figures = Statistics()
    offline = OfflineQueues(figures, handles)
    for _ in range(repeats):
        try:
            offline.stop()
            time.sleep(pause_ms / 1e3)
        finally:
            offline.give_back()
    return figures.as_dict()
