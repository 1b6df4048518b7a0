# SPDX-License-Identifier: MIT
"""Finds libgpreempt.so.0 and says what its calls take."""

import ctypes
import glob
import os
import threading
from ctypes import POINTER, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import List, Optional

from gpreempt import _abi
from gpreempt._errors import LibraryNotFound

NAME = "libgpreempt.so.0"
VARIABLE = "GPREEMPT_LIBRARY"

# Results and parameters. A context is a void pointer: nobody here looks into it.
CALLS = {
    "gp_version": (c_uint32, []),
    "gp_strerror": (c_char_p, [c_int]),
    "gp_ctx_open": (c_int, [POINTER(_abi.OpenOpts), POINTER(c_void_p)]),
    "gp_ctx_close": (c_void_p, [c_void_p]),
    "gp_ctx_errmsg": (c_char_p, [c_void_p]),
    "gp_ctx_notice": (c_char_p, [c_void_p]),
    "gp_ctx_rights": (c_int, [c_void_p, POINTER(c_uint32)]),
    "gp_device_list": (c_int, [c_void_p, POINTER(_abi.DeviceInfo), c_size_t]),
    "gp_queue_list": (c_int, [c_void_p, POINTER(_abi.QueueInfo), c_size_t]),
    "gp_client_list": (c_int, [c_void_p, POINTER(_abi.ClientInfo), c_size_t]),
    "gp_job_list": (c_int, [c_void_p, POINTER(_abi.JobInfo), c_size_t]),
    "gp_queue_find": (c_int, [c_void_p, c_uint32, c_uint64, POINTER(_abi.QueueInfo)]),
    "gp_queue_suspend": (c_int, [c_void_p, POINTER(c_uint64), c_size_t, POINTER(_abi.SuspendOpts), POINTER(c_int32)]),
    "gp_queue_resume": (c_int, [c_void_p, POINTER(c_uint64), c_size_t, POINTER(c_int32)]),
    "gp_device_reserve": (c_int, [c_void_p, c_uint32, c_uint32, c_uint32]),
    "gp_device_set_policy": (c_int, [c_void_p, c_uint32, c_char_p]),
    "gp_device_stats": (c_int, [c_void_p, c_uint32, POINTER(_abi.StatsInfo)]),
    "gp_hint_begin": (c_int, [c_void_p, POINTER(_abi.Hint)]),
    "gp_hint_end": (c_int, [c_void_p, POINTER(_abi.Hint)]),
    "gp_event_open": (c_int, [c_void_p, POINTER(_abi.EventOpts)]),
    "gp_event_next": (c_int, [c_void_p, c_uint64, POINTER(_abi.EventInfo)]),
    "gp_stream_open": (c_int, [c_void_p, c_void_p, POINTER(_abi.StreamOpts), POINTER(c_void_p)]),
    "gp_stream_close": (c_void_p, [c_void_p]),
    "gp_stream_query": (c_int, [c_void_p, POINTER(_abi.StreamInfo)]),
    "gp_stream_set_level": (c_int, [c_void_p, c_uint32]),
    "gp_stream_nlaunch": (c_int, [c_void_p, c_uint32]),
    "gp_stream_sync": (c_int, [c_void_p, c_uint64]),
    "gp_stream_suspend": (c_int, [c_void_p]),
    "gp_stream_resume": (c_int, [c_void_p]),
    "gp_stream_deactivate": (c_int, [c_void_p]),
    "gp_stream_reactivate": (c_int, [c_void_p]),
    "gp_stream_interrupt": (c_int, [c_void_p]),
    "gp_stream_restore": (c_int, [c_void_p]),
    "gp_client_set_class": (c_int, [c_void_p, c_uint64, c_uint32]),
}

_lock = threading.Lock()
_loaded = None  # type: Optional[ctypes.CDLL]


def _installed(here: str) -> List[str]:
    """Where an installation has it whose PREFIX/share/gpreempt/python/gpreempt this folder is."""
    above = os.path.dirname(here)
    if not above.endswith("/share/gpreempt/python"):
        return []
    prefix = above[: -len("/share/gpreempt/python")]
    return sorted(glob.glob(prefix + "/lib*/" + NAME) + glob.glob(prefix + "/lib/*-linux-gnu/" + NAME))


def candidates() -> List[str]:
    """What is tried, in this order. A name without a folder is looked for by the loader."""
    given = os.environ.get(VARIABLE)
    if given:
        return [given]
    here = os.path.dirname(os.path.abspath(__file__))
    return [path for path in [os.path.join(here, NAME)] + _installed(here) if os.path.exists(path)] + [NAME]


def _open() -> ctypes.CDLL:
    tried = []
    for path in candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as why:
            tried.append("{}: {}".format(path, why))
    raise LibraryNotFound(
        "libgpreempt cannot be loaded ({}). Install gpreempt, or set {} to the path of {}.".format("; ".join(tried), VARIABLE, NAME))


def _typed(found: ctypes.CDLL) -> ctypes.CDLL:
    for name, (result, parameters) in CALLS.items():
        try:
            call = getattr(found, name)
        except AttributeError:
            raise LibraryNotFound("{} has no {}: it is older than this package, or another's. Install gpreempt, or set {} to the path of {}.".format(
                found._name, name, VARIABLE, NAME))
        call.restype, call.argtypes = result, parameters
    return found


def library() -> ctypes.CDLL:
    """The loaded library, with the types of its calls."""
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _typed(_open())
    return _loaded
