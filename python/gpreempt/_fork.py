# SPDX-License-Identifier: MIT
"""What a child of fork() must not have of its parent."""

import os
from typing import Any, Callable, Optional


class PerProcess:
    """A lock, as a class has it: each object gets its own, and another after fork().

    A thread that the child has not may have had its parent's, and would never give it back.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, one: Any, owner: Optional[type] = None) -> Any:
        key = "{} of {}".format(self._name, os.getpid())
        made = vars(one).get(key)
        return vars(one).setdefault(key, self._make()) if made is None else made  # whole, whatever threads do
