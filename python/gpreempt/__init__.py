# SPDX-License-Identifier: MIT
"""gpreempt: latency-critical GPU work takes the GPU from best-effort work, loses nothing, and gives it back.

    with gpreempt.online():                 # a request: offline work makes room
        result = model(x)

    with gpreempt.suspend(gpreempt.queues(pid=4711)):   # off the GPU; they run again after the block, whatever happens
        ...

The functions here use one context for the process, opened by the first call. Context() is one of your own. See
docs/PYTHON.md, and libgpreempt(7) for the words.
"""

import errno
from typing import Any, Callable, List, Optional, TypeVar

from gpreempt._abi import (ALL_DEVICES, Activity, Attempt, Caps, ClientClass, ClientState, EventKind, Failure, Known, PreemptType,
                           QueueKind, QueueState, Rights)
from gpreempt._context import Context, Queues
from gpreempt._errors import Error, LibraryNotFound
from gpreempt._library import library
from gpreempt._request import Request, online
from gpreempt._suspension import Suspension
from gpreempt._things import Client, Device, Event, Job, Latencies, Queue, Stats

__version__ = "0.1.0"
__all__ = [
    "ALL_DEVICES", "Activity", "Attempt", "Caps", "Client", "ClientClass", "ClientState", "Context", "Device", "Error", "Event", "EventKind",
    "Failure", "Job", "Known", "Latencies", "LibraryNotFound", "PreemptType", "Queue", "QueueKind", "QueueState", "Request", "Rights", "Stats", "Suspension",
    "clients", "context", "devices", "online", "queues", "resume", "stats", "suspend", "version",
]

# After one of these a context serves no more, or it never had a gpreemptd, which may have come by now.
_BROKEN = (errno.ECONNRESET, errno.EBADMSG, errno.EPROTO, errno.ETIMEDOUT)
_ALONE = errno.ENODEV

Answer = TypeVar("Answer")

_shared = None  # type: Optional[Context]


def version() -> str:
    """Of the library, which need not be this package's."""
    number = library().gp_version()
    return "{}.{}".format(number >> 16, number & 0xFFFF)


def context() -> Context:
    """The process's own; another after fork(), and when gpreemptd was started or started again."""
    global _shared
    one = _shared
    wrong = _wrong_with(one) if one is not None and one.is_open else errno.ECONNRESET
    if one is not None and wrong == _ALONE:
        fresh = Context()
        if _wrong_with(fresh) != _ALONE:
            one = _shared = fresh
        else:
            fresh.close()  # handles are a context's, and this one has nothing that the other has not
    elif one is None or wrong in _BROKEN:
        one = _shared = Context()  # if two threads do so at once, both are as good
    return one


def _wrong_with(one: Context) -> int:
    try:
        one.rights
    except Error as wrong:
        return wrong.errno
    return 0


def _asked(question: Callable[[Context], Answer]) -> Answer:
    """Again, if gpreemptd has gone meanwhile: it may have been started again."""
    try:
        return question(context())
    except Error as wrong:
        if wrong.errno not in _BROKEN:
            raise
    return question(context())


def devices() -> List[Device]:
    return _asked(Context.devices)


def queues(pid: Optional[int] = None, client_class: Optional[ClientClass] = None) -> List[Queue]:
    """All of them, or those of one process or class. OFFLINE is all that are not online."""
    return _asked(lambda one: one.queues(pid, client_class))


def clients() -> List[Client]:
    return _asked(Context.clients)


def stats(device: int = 0) -> Stats:
    return _asked(lambda one: one.stats(device))


def suspend(queues: Queues, **options: Any) -> Suspension:
    """As Context.suspend()."""
    return context().suspend(queues, **options)


def resume(queues: Queues) -> None:
    """Whoever suspended them."""
    context().resume(queues)
