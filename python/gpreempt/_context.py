# SPDX-License-Identifier: MIT
"""A context: one connection to a machine's GPUs."""

import ctypes
import errno
import operator
import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Type, TypeVar, Union

from gpreempt import _abi, _things
from gpreempt._abi import ALL_DEVICES, ClientClass, EventKind, PreemptType, Rights, sized
from gpreempt._errors import Error
from gpreempt._fork import PerProcess
from gpreempt._library import library
from gpreempt._suspension import Suspension
from gpreempt._things import Client, Device, Event, Job, Queue, Stats

Queues = Union[Queue, int, Iterable[Union[Queue, int]]]
Thing = TypeVar("Thing")

_ERRMSG_SIZE = 512
_MORE = 8  # entries that may come between counting and listing
_LONGEST_S = 2 ** 64 / 1e9  # that the library can be told


def handles(queues: Queues) -> List[int]:
    """Of queues as the lists give them, or of handles; one or many."""
    if isinstance(queues, (Queue, int)):
        queues = [queues]
    elif hasattr(queues, "_fields"):  # its numbers are no handles
        raise TypeError("a {} is no queue".format(type(queues).__name__))
    return [queue.queue if isinstance(queue, Queue) else operator.index(queue) for queue in queues]


def nanoseconds(seconds: Optional[float]) -> int:
    if seconds is not None and not 0 <= seconds < _LONGEST_S:
        raise ValueError("{} seconds: no such time can be asked for".format(seconds))
    return int(seconds * 1e9) if seconds else 0


def _encoded(text: Optional[str]) -> Optional[bytes]:
    return None if text is None else text.encode()


class Context:
    """Any thread may use it: calls wait for each other. Not hints: on AMD GPUs these wait for hints alone, and these take no time.

    A child after fork() needs a context of its own: calls on its parent's fail with EPERM.
    """

    _lock = PerProcess(threading.RLock)  # of calls
    _hint_lock = PerProcess(threading.RLock)

    def __init__(self, backend: Optional[str] = None, device: Optional[str] = None, socket: Optional[str] = None) -> None:
        self._library = library()
        self._pid = os.getpid()
        self._pointer = ctypes.c_void_p()
        self._suspensions = weakref.WeakSet()  # type: Any  # of Suspension
        self._hints_wait = _is_simulated(backend, device)
        message = ctypes.create_string_buffer(_ERRMSG_SIZE)
        options = sized(_abi.OpenOpts, backend=_encoded(backend), device=_encoded(device), socket=_encoded(socket),
                        errmsg=ctypes.addressof(message), errmsg_size=_ERRMSG_SIZE)
        r = self._library.gp_ctx_open(ctypes.byref(options), ctypes.byref(self._pointer))
        if r < 0:
            raise Error(-r, message.value.decode("utf-8", "replace") or self._name(r))

    def close(self) -> None:
        """What this context suspended runs again. A second time it does nothing."""
        with self._lock, self._hint_lock:
            pointer, self._pointer = self._pointer, ctypes.c_void_p()
            self._library.gp_ctx_close(pointer)

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *why: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) and not sys.is_finalizing():  # then a thread may be in a call for ever; the end closes too
            self.close()

    @property
    def is_open(self) -> bool:
        """And this process's."""
        return bool(self._pointer) and self._pid == os.getpid()

    @property
    def notice(self) -> str:
        """What there is to say of the open, suspend, resume or hints before it though they went well; or empty."""
        with self._lock:
            return self._text(self._library.gp_ctx_notice(self._opened()))

    @property
    def rights(self) -> Rights:
        """What gpreemptd lets this process do."""
        bits = ctypes.c_uint32()
        self._call(self._library.gp_ctx_rights, ctypes.byref(bits))
        return Rights(bits.value)

    def devices(self) -> List[Device]:
        return self._listed(self._library.gp_device_list, _abi.DeviceInfo, Device)

    def queues(self, pid: Optional[int] = None, client_class: Optional[ClientClass] = None) -> List[Queue]:
        """All of them, or those of one process or class. OFFLINE is all that are not online."""
        found = self._listed(self._library.gp_queue_list, _abi.QueueInfo, Queue)
        if pid is not None:
            found = [queue for queue in found if queue.pid == pid]
        if client_class is not None:
            online = client_class == ClientClass.ONLINE
            found = [queue for queue in found if (queue.client_class == ClientClass.ONLINE) == online]
        return found

    def clients(self) -> List[Client]:
        """One entry for each client and device."""
        return self._listed(self._library.gp_client_list, _abi.ClientInfo, Client)

    def jobs(self) -> List[Job]:
        """Those that were declared, as by Slurm's plug-in; for root and group gpreempt."""
        return self._listed(self._library.gp_job_list, _abi.JobInfo, Job)

    def find_queue(self, ring: int, pid: int = 0) -> Queue:
        """The queue whose ring is at this address in a process; 0: in this one."""
        info = sized(_abi.QueueInfo)
        self._call(self._library.gp_queue_find, pid, ring, ctypes.byref(info))
        return _things.made(Queue, info)

    def stats(self, device: int = 0) -> Stats:
        info = sized(_abi.StatsInfo)
        self._call(self._library.gp_device_stats, device, ctypes.byref(info))
        return _things.made(Stats, info)

    def suspend(self, queues: Queues, lease: Optional[float] = None, drain: Optional[float] = None, strict: bool = False,
                new_queues: bool = False, way: Optional[str] = None) -> Suspension:
        """Keeps queues off their device while a with block lasts: see Suspension.

        lease, drain: seconds; a drain lets running waves end first. strict: what has not ended by then runs on, and is an
        error. new_queues: also what their processes create meanwhile.
        """
        flags = (_abi.SUSPEND_STRICT if strict else 0) | (_abi.SUSPEND_NEW_QUEUES if new_queues else 0)
        kind = PreemptType.SAVE if drain is None else PreemptType.DRAIN
        options = sized(_abi.SuspendOpts, lease_ns=nanoseconds(lease), timeout_ns=nanoseconds(drain), flags=flags,
                        type=int(kind), way=_encoded(way))
        return Suspension(self, handles(queues), options)

    def resume(self, queues: Queues) -> None:
        """Whoever suspended them. What a with block holds needs no call: its end resumes."""
        with self._lock:
            self._resume(handles(queues))

    def reserve(self, device: int, online_percent: int, offline_percent: int) -> None:
        """Of a device's queue slots. Both 0: nothing is reserved any more."""
        self._call(self._library.gp_device_reserve, device, online_percent, offline_percent)

    def set_policy(self, name: str, device: int = ALL_DEVICES) -> None:
        self._call(self._library.gp_device_set_policy, device, name.encode())

    def set_class(self, client: int, client_class: ClientClass) -> None:
        """As long as its process lasts, whatever rules say. gpreemptd takes it from root, or from the user who runs it."""
        self._call(self._library.gp_client_set_class, client, int(client_class))

    def hint_begin(self, number: int = 0, client: int = 0, device: Optional[int] = None, expiry: Optional[float] = None,
                   answer: bool = False) -> None:
        """A request is on its way. answer: wait for what gpreemptd says to it, so that a wrong hint is an error."""
        self._hint(self._library.gp_hint_begin, _hint(number, client, device, expiry, answer), answer)

    def hint_end(self, number: int = 0, client: int = 0, device: Optional[int] = None, answer: bool = False) -> None:
        """It is done."""
        self._hint(self._library.gp_hint_end, _hint(number, client, device, None, answer), answer)

    def events(self, kinds: Iterable[EventKind] = (), follow: bool = False, new: bool = False,
               timeout: Optional[float] = None) -> Iterator[Event]:
        """What gpreemptd did, oldest first. follow: also what comes, until none came for timeout seconds; new: only that."""
        flags = (_abi.EVENT_FOLLOW if follow else 0) | (_abi.EVENT_NEW if new else 0)
        options = sized(_abi.EventOpts, kinds=sum(1 << int(kind) for kind in set(kinds)), flags=flags)
        self._call(self._library.gp_event_open, ctypes.byref(options))
        return self._following(follow, timeout)

    def _following(self, follow: bool, timeout: Optional[float]) -> Iterator[Event]:
        step = 0.1 if timeout is None else timeout  # Ctrl-C is noticed between two calls
        while True:
            info = sized(_abi.EventInfo)
            if self._call(self._library.gp_event_next, nanoseconds(step), ctypes.byref(info)):
                yield _things.made(Event, info)
            elif not follow or timeout is not None:
                return

    def _hint(self, call: Callable[..., int], hint: _abi.Hint, answer: bool) -> None:
        if self._hints_wait or answer:
            self._call(call, ctypes.byref(hint))
            return
        with self._hint_lock:  # who closes must not free what is in use
            r = call(self._opened(), ctypes.byref(hint))
        if r < 0:
            raise Error(-r, self._name(r))

    def _opened(self) -> ctypes.c_void_p:
        if not self._pointer:
            raise Error(errno.EBADF, "the context is closed")
        return self._pointer

    def _call(self, call: Callable[..., int], *arguments: Any) -> int:
        with self._lock:
            r = call(self._opened(), *arguments)
            if r < 0:
                raise self._error(r)
            return r

    def _listed(self, call: Callable[..., int], struct: Any, kind: Type[Thing]) -> List[Thing]:
        with self._lock:
            n = self._call(call, None, 0)
            while True:
                room = n + _MORE
                infos = (struct * room)()
                infos[0].size = ctypes.sizeof(struct)
                n = self._call(call, infos, room)
                if n <= room:
                    return [_things.made(kind, info) for info in infos[:n]]

    def _resume(self, wanted: List[int]) -> None:
        queues = (ctypes.c_uint64 * len(wanted))(*wanted)
        statuses = (ctypes.c_int32 * len(wanted))()
        r = self._library.gp_queue_resume(self._opened(), queues, len(wanted), statuses)
        if r < 0:
            raise self._error(r, dict(zip(wanted, statuses)))

    def _error(self, r: int, statuses: Optional[Dict[int, int]] = None) -> Error:
        """Of the call that failed just now, under the same lock."""
        return Error(-r, self._text(self._library.gp_ctx_errmsg(self._pointer)) or self._name(r), statuses)

    def _name(self, r: int) -> str:
        return self._text(self._library.gp_strerror(r))

    @staticmethod
    def _text(text: Optional[bytes]) -> str:
        return (text or b"").decode("utf-8", "replace")


def _is_simulated(backend: Optional[str], device: Optional[str]) -> bool:
    """By gp_ctx_open(3)'s rule: whether the context is a simulated machine of its own."""
    if backend in (None, "auto"):
        backend = os.environ.get("GPREEMPT_BACKEND") or ("sim" if device else "kfd")
    return backend != "kfd"


def _hint(number: int, client: int, device: Optional[int], expiry: Optional[float], answer: bool) -> _abi.Hint:
    flags = (0 if device is None else _abi.HINT_DEVICE) | (_abi.HINT_ANSWER if answer else 0)
    return sized(_abi.Hint, client=client, number=number, expiry_ns=nanoseconds(expiry), flags=flags, device=device or 0)
