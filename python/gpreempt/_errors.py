# SPDX-License-Identifier: MIT
"""What goes wrong, as exceptions."""

from typing import Dict, Optional


class Error(OSError):
    """A call of libgpreempt failed. errno is a positive number of the module errno, str() is the library's sentence.

    statuses: of a suspend or resume, each queue's handle and 0 or its negative errno.
    """

    def __init__(self, number: int, message: str, statuses: Optional[Dict[int, int]] = None) -> None:
        super().__init__(number, message)
        self.statuses = statuses or {}  # type: Dict[int, int]

    def __str__(self) -> str:
        return str(self.strerror)


class LibraryNotFound(ImportError):
    """libgpreempt.so.0 is nowhere; the text says where it was looked for."""
