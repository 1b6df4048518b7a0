# SPDX-License-Identifier: MIT
"""Queues that are kept off their device, and run again whatever happens."""

import asyncio
import ctypes
import errno
import sys
from typing import TYPE_CHECKING, Any, List, Optional

from gpreempt import _abi
from gpreempt._errors import Error

if TYPE_CHECKING:
    from gpreempt._context import Context

_NOT_CALLED = -errno.EINPROGRESS
_GONE = (0, errno.ENOENT, errno.ESRCH)


class Suspension:
    """From Context.suspend(), for `with` and `async with`, or begin() and resume().

    All of its queues are off the device when the block begins, or none is and there is an Error. They run again when the
    block ends: by its end, an exception, Ctrl-C; when this object goes; when the process ends, even if it was killed.
    A queue that another Suspension of the same context holds too stays off until the last of them ends.
    """

    def __init__(self, context: "Context", queues: List[int], options: _abi.SuspendOpts) -> None:
        self.queues = queues
        self._context = context
        self._options = options
        self._is_over = False
        # The library writes into these: after an interrupt they tell what it had done.
        self._array = (ctypes.c_uint64 * len(queues))(*queues)
        self._statuses = (ctypes.c_int32 * len(queues))(*[_NOT_CALLED] * len(queues))

    def begin(self) -> "Suspension":
        """As the beginning of a with block; the end is resume()."""
        self.__enter__()
        return self

    def resume(self) -> None:
        """Ends it. A second time it does nothing."""
        with self._context._lock:
            self._is_over = True
            wanted = [queue for queue in self.held if queue not in self._held_by_others()]
            self._context._suspensions.discard(self)
            if wanted and self._context.is_open:  # not in a child: they are its parent's
                self._resume(wanted)
            self._forget()

    @property
    def held(self) -> List[int]:
        """Those that are suspended by it."""
        return [queue for queue, status in zip(self.queues, self._statuses) if status == 0]

    def _suspend(self) -> None:
        context = self._context
        with context._lock:
            if self._is_over:
                raise Error(errno.EINVAL, "this suspension has ended: make another")
            context._suspensions.add(self)
            r = context._library.gp_queue_suspend(context._opened(), self._array, len(self.queues), ctypes.byref(self._options),
                                                  self._statuses)
            if r < 0:
                raise self._advised(context._error(r, dict(zip(self.queues, self._statuses))))

    def _advised(self, error: Error) -> Error:
        """A process's number in the place of a queue's handle is easily written."""
        unknown = {queue for queue, status in error.statuses.items() if status == -errno.ENOENT}
        pids = unknown and unknown.intersection(queue.pid for queue in self._context.queues() if queue.pid)
        if pids:
            error.strerror = "{0} is a process, and no queue's handle: write suspend(queues(pid={0}))".format(min(pids))
        return error

    def _held_by_others(self) -> List[int]:
        return [queue for other in self._context._suspensions if other is not self for queue in other.held]

    def _resume(self, wanted: List[int]) -> None:
        """What went meanwhile need not be resumed."""
        try:
            self._context._resume(wanted)
        except Error as wrong:
            if any(-status not in _GONE for status in wrong.statuses.values()):
                raise

    def _forget(self) -> None:
        for index in range(len(self.queues)):
            self._statuses[index] = _NOT_CALLED

    def _end_whatever_comes(self) -> None:
        """An error of resuming hides none that came before; an interrupt does not keep it from being done."""
        try:
            self.resume()
        except Error:
            pass
        except BaseException:
            self.resume()
            raise

    def __enter__(self) -> List[int]:
        """The handles. Not this object: so it goes, and resumes, even if an interrupt comes before __exit__'s first line."""
        try:
            self._suspend()
            return self.held
        except BaseException:
            self._end_whatever_comes()
            raise

    def __exit__(self, kind: Optional[type], *why: Any) -> None:
        if kind is not None:
            self._end_whatever_comes()
            return
        try:
            self.resume()
        except Error:
            raise
        except BaseException:
            self.resume()
            raise

    def __del__(self) -> None:
        if getattr(self, "_statuses", None) is not None and self.held and not sys.is_finalizing():
            self._end_whatever_comes()

    async def __aenter__(self) -> List[int]:
        loop = asyncio.get_event_loop()
        try:
            return await loop.run_in_executor(None, self.__enter__)
        except BaseException:
            await _in_thread_or_here(loop, self._end_whatever_comes)
            raise

    async def __aexit__(self, *why: Any) -> None:
        await _in_thread_or_here(asyncio.get_event_loop(), self._end_whatever_comes if why[0] else self.resume)


async def _in_thread_or_here(loop: asyncio.AbstractEventLoop, call: Any) -> None:
    """Done to its end, also if the task is cancelled meanwhile, or no thread can be had any more."""
    try:
        done = loop.run_in_executor(None, call)
    except RuntimeError:
        call()
        return
    await asyncio.shield(done)
