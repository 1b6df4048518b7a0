# SPDX-License-Identifier: MIT
"""Files that are written whole or not at all."""

import contextlib
import errno
import os
import tempfile


def write(path: str, text: str) -> None:
    """In place of a file or a link, never of a folder or a device. Its folder is made. An OSError names path, or the folder."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    try:
        if os.path.lexists(path) and not os.path.islink(path) and not os.path.isfile(path):
            raise OSError(errno.EEXIST, "it is there, and is no file")
        _replace(path, text)
    except OSError as wrong:
        raise OSError(wrong.errno, wrong.strerror, path)


def _replace(path: str, text: str) -> None:
    folder, name = os.path.split(path)
    number, new = tempfile.mkstemp(prefix="." + name + ".", dir=folder or ".")  # nobody can have laid a link of that name
    try:
        with open(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            os.fchmod(number, 0o666 & ~_mask())
            file.write(text)
        os.rename(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


def _mask() -> int:
    """As open() would have it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
