# SPDX-License-Identifier: MIT
"""Hints around a request: as a with block, a decorator, or in asyncio."""

import functools
import inspect
import itertools
import os
import threading
import time
from typing import Any, Callable, List, Optional, Tuple, TypeVar, cast, overload

from gpreempt._context import Context, nanoseconds
from gpreempt._errors import Error
from gpreempt._fork import PerProcess

Function = TypeVar("Function", bound=Callable[..., Any])

_RETRY_S = 1.0
_SAYS_CLASS = ("GPREEMPT_CLASS", "AMD_QUEUE_TAG")

_numbers = itertools.count(1 << 32)  # far from a program's own; next() of it is whole, whatever threads do


class _Hinter:
    """This process's own context for hints: opened by the first, and again in a child, or where there was no gpreemptd."""

    _lock = PerProcess(threading.Lock)

    def __init__(self) -> None:
        self._context = None  # type: Optional[Context]
        self._error = None  # type: Optional[Error]
        self._pid = 0
        self._next = 0.0

    def context(self) -> Context:
        context = self._context
        if context is not None and self._pid == os.getpid():
            return context
        if self._pid != os.getpid():
            self._pid, self._next, self._context = os.getpid(), 0.0, None
        with self._lock:
            return self._context or self._open()

    def _open(self) -> Context:
        if self._error is not None and time.monotonic() < self._next:
            raise self._error
        self._next = time.monotonic() + _RETRY_S
        _say_online()
        try:
            self._context = Context()
        except Error as wrong:
            self._error = wrong
            raise
        return self._context


def _say_online() -> None:
    """Whose requests come is online: the library tells gpreemptd what the environment says."""
    if not any(name in os.environ for name in _SAYS_CLASS):
        os.environ["GPREEMPT_CLASS"] = "online"


_hinter = _Hinter()


class Request:
    """From online(). error: the Error of the last hint that was lost, or None; a request is never kept from being served."""

    def __init__(self, device: Optional[int], expiry: Optional[float], client: int, context: Optional[Context]) -> None:
        nanoseconds(expiry)  # a wrong one is an error here, before there is a request
        self.error = None  # type: Optional[Error]
        self._device, self._expiry, self._client, self._given = device, expiry, client, context
        self._open = []  # type: List[Tuple[Optional[Context], int]]  # any thread may enter it, also while another is in it

    def begin(self) -> None:
        context, number = self._given, next(_numbers)
        try:
            context = context or _hinter.context()
            context.hint_begin(number, self._client, self._device, self._expiry)
        except Error as wrong:
            self.error = wrong
        self._open.append((context, number))

    def end(self) -> None:
        """Of a hint that is open, whichever: they are alike."""
        context, number = self._open.pop() if self._open else (None, 0)
        try:
            if context is not None:
                context.hint_end(number, self._client, self._device)
        except Error as wrong:
            self.error = wrong

    def __enter__(self) -> "Request":
        self.begin()
        return self

    def __exit__(self, *why: Any) -> None:
        self.end()

    async def __aenter__(self) -> "Request":
        self.begin()  # one message, and no answer: nothing to wait for
        return self

    async def __aexit__(self, *why: Any) -> None:
        self.end()

    def __call__(self, function: Function) -> Function:
        """As a decorator: each call of the function is a request; of a generator, from its first value to its end."""
        if not callable(function):
            raise TypeError("{!r} is no function; a device is named by online(device=...)".format(function))
        if _calls(function, inspect.iscoroutinefunction):
            @functools.wraps(function)
            async def served(*args: Any, **more: Any) -> Any:
                with self:
                    return await function(*args, **more)
        elif _calls(function, inspect.isasyncgenfunction):
            served = self._async_generator(function)
        elif _calls(function, inspect.isgeneratorfunction):
            @functools.wraps(function)
            def served(*args: Any, **more: Any) -> Any:
                with self:
                    return (yield from function(*args, **more))
        else:
            @functools.wraps(function)
            def served(*args: Any, **more: Any) -> Any:
                with self:
                    return function(*args, **more)
        return cast(Function, served)

    def _async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """There is no `yield from` for these."""
        @functools.wraps(function)
        async def served(*args: Any, **more: Any) -> Any:
            with self:
                values = function(*args, **more)
                try:
                    step = values.asend(None)
                    while True:
                        value = await step
                        try:
                            step = values.asend((yield value))
                        except GeneratorExit:
                            raise
                        except BaseException as thrown:
                            step = values.athrow(thrown)
                except StopAsyncIteration:
                    pass
                finally:
                    await values.aclose()
        return served


def _calls(function: Callable[..., Any], kind: Callable[[Any], bool]) -> bool:
    """Whether it is of this kind, or an object whose class makes it callable by one."""
    return kind(function) or kind(type(function).__call__)


@overload
def online(function: Function) -> Function:
    ...


@overload
def online(function: None = None, device: Optional[int] = None, expiry: Optional[float] = None, client: int = 0,
           context: Optional[Context] = None) -> Request:
    ...


def online(function: Optional[Callable[..., Any]] = None, device: Optional[int] = None, expiry: Optional[float] = None,
           client: int = 0, context: Optional[Context] = None) -> Any:
    """A request of this process: offline work leaves the GPU before it comes, and goes on when it is done.

    `with gpreempt.online():`, `async with gpreempt.online():`, or a decorator, with or without parentheses. The process
    becomes online by it unless its environment says what it is. Where there is no gpreemptd the block just runs.

    expiry: seconds after which a hint that was not ended ends by itself; gpreemptd's default is 1. device: for that one
    alone. client: another process's handle. context: one's own in place of the module's.
    """
    request = Request(device, expiry, client, context)
    return request if function is None else request(function)
