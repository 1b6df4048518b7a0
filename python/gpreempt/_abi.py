# SPDX-License-Identifier: MIT
"""The structs and constants of <gpreempt/gpreempt.h>, and what their numbers mean here.

tests/integration/python.py compares all of them with the header, by the C compiler.
"""

import ctypes
import enum
from ctypes import c_char, c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Type, TypeVar, Union

NAME_LEN = 32
ALL_DEVICES = 0xFFFFFFFF
LATENCY_BOUNDS = 19
ATTEMPTS = 3
FAILURES = 6

HINT_DEVICE = 1 << 0
HINT_ANSWER = 1 << 1
SUSPEND_NEW_QUEUES = 1 << 0
SUSPEND_STRICT = 1 << 1
EVENT_FOLLOW = 1 << 0
EVENT_NEW = 1 << 1
STREAM_MANUAL = 1 << 0
STREAM_LAST = 1 << 1


class ClientClass(enum.IntEnum):
    """What a client is. UNKNOWN is treated as OFFLINE."""

    UNKNOWN = 0
    OFFLINE = 1
    ONLINE = 2


class Level(enum.IntEnum):
    """How a stream is held: bounded launches, at a kernel's boundary, or by saving its waves."""

    NONE = 0
    THROTTLE = 1
    GATE = 2
    INTERRUPT = 3


class QueueState(enum.IntEnum):
    RUNNING = 0
    SUSPENDING = 1
    SUSPENDED = 2
    RESUMING = 3


class Activity(enum.IntEnum):
    """Whether a queue has work, as far as anybody can tell."""

    UNKNOWN = 0
    IDLE = 1
    BUSY = 2


class QueueKind(enum.IntEnum):
    UNKNOWN = 0
    COMPUTE = 1
    SDMA = 2
    XGMI = 3


class ClientState(enum.IntEnum):
    IDLE = 0
    RUNNING = 1
    WAITING = 2
    HELD = 3


class PreemptType(enum.IntEnum):
    """What becomes of the running waves. RESET loses work, and is refused."""

    SAVE = 0
    DRAIN = 1
    RESET = 2


class EventKind(enum.IntEnum):
    SUSPEND = 0
    RESUME = 1
    FAILED = 2
    BACKOFF = 3
    EJECTED = 4
    LEASE = 5
    CLIENT = 6
    GONE = 7
    STARVED = 8
    LOST = 9
    POLICY = 10
    CLASS = 11


class Attempt(enum.IntEnum):
    """What of a queue failed: the first index of Stats.failed."""

    SUSPEND = 0
    RESUME = 1
    YIELD = 2


class Failure(enum.IntEnum):
    """Why it failed: the second one."""

    TIMEOUT = 0
    GONE = 1
    REFUSED = 2
    BUSY = 3
    CANCELED = 4
    DRIVER = 5


class Caps(enum.IntFlag):
    """What a device can do."""

    THROTTLE = 1 << 0
    GATE = 1 << 1
    INTERRUPT = 1 << 2
    BACKGROUND = 1 << 3
    BATCH = 1 << 4
    SELECTIVE = 1 << 5
    CROSS_PROCESS = 1 << 6
    RESERVE = 1 << 7
    ACTIVITY = 1 << 8
    TAKES_TURNS = 1 << 9


class Known(enum.IntFlag):
    """Which fields of a Queue mean something."""

    QUEUE_ID = 1 << 0
    RING = 1 << 1
    PRIORITY = 1 << 2
    ACTIVE = 1 << 3


class Rights(enum.IntFlag):
    """What this process may do, and why it may do no more or need not."""

    OTHERS = 1 << 0
    GIVEN_ONLINE = 1 << 1
    GIVEN_OFFLINE = 1 << 2
    IN_CONTAINER = 1 << 3
    OWN_DAEMON = 1 << 4


Number = TypeVar("Number", bound=enum.IntEnum)


def named(kind: Type[Number], number: int) -> Union[Number, int]:
    """The number itself if it is of a later release."""
    try:
        return kind(number)
    except ValueError:
        return number


class OpenOpts(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("backend", c_char_p),
        ("device", c_char_p),
        ("flags", c_uint64),
        ("socket", c_char_p),
        ("errmsg", c_void_p),
        ("errmsg_size", c_size_t),
    ]


class DeviceInfo(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char * NAME_LEN),
        ("backend", c_char * NAME_LEN),
        ("policy", c_char * NAME_LEN),
        ("device", c_uint32),
        ("caps", c_uint32),
        ("compute_units", c_uint32),
        ("queue_slots", c_uint32),
        ("online_percent", c_uint32),
        ("offline_percent", c_uint32),
        ("gpu_id", c_uint32),
        ("pci", c_char * 20),
        ("instances", c_uint32),
        ("reserved", c_uint32),
    ]


class QueueInfo(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("queue", c_uint64),
        ("client", c_uint64),
        ("client_name", c_char * NAME_LEN),
        ("device", c_uint32),
        ("priority", c_uint32),
        ("client_class", c_uint32),
        ("state", c_uint32),
        ("activity", c_uint32),
        ("held", c_uint32),
        ("ring", c_uint64),
        ("pid", c_uint32),
        ("queue_id", c_uint32),
        ("gpu_id", c_uint32),
        ("kind", c_uint32),
        ("active", c_uint32),
        ("known", c_uint32),
        ("way", c_char * NAME_LEN),
        ("rule", c_char * 96),
        ("place", c_char * 96),
        ("from", c_char * 192),
        ("local_pid", c_uint64),
    ]


class ClientInfo(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("client", c_uint64),
        ("name", c_char * NAME_LEN),
        ("pid", c_uint32),
        ("uid", c_uint32),
        ("device", c_uint32),
        ("client_class", c_uint32),
        ("weight", c_uint32),
        ("state", c_uint32),
        ("slo_ns", c_uint64),
        ("queues", c_uint32),
        ("stopped", c_uint32),
        ("hints", c_uint32),
        ("share_permille", c_uint32),
        ("hinted", c_uint64),
        ("sampled", c_uint64),
        ("rule", c_char * 96),
        ("place", c_char * 96),
        ("resuming", c_uint32),
        ("reserved", c_uint32),
    ]


class JobOpts(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("pid", c_uint32),
        ("client_class", c_uint32),
        ("start", c_uint64),
        ("slo_ns", c_uint64),
        ("weight", c_uint32),
        ("floor_permille", c_uint32),
        ("patience_ns", c_uint64),
        ("name", c_char_p),
        ("cgroup", c_char_p),
    ]


class JobInfo(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char * 64),
        ("pid", c_uint32),
        ("client_class", c_uint32),
        ("weight", c_uint32),
        ("clients", c_uint32),
        ("slo_ns", c_uint64),
        ("ran_ns", c_uint64),
        ("waits", c_uint64),
        ("waited_ns", c_uint64),
        ("requests", c_uint64),
        ("within_slo", c_uint64),
        ("with_slo", c_uint64),
        ("p50_ns", c_uint64),
        ("p99_ns", c_uint64),
        ("max_ns", c_uint64),
        ("starving_ns", c_uint64),
        ("is_starved", c_uint32),
        ("is_partial", c_uint32),
    ]


class SuspendOpts(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("lease_ns", c_uint64),
        ("flags", c_uint64),
        ("timeout_ns", c_uint64),
        ("type", c_uint32),
        ("reserved", c_uint32),
        ("way", c_char_p),
    ]


class LatenciesInfo(ctypes.Structure):
    _fields_ = [("count", c_uint64), ("sum_ns", c_uint64), ("at_most", c_uint64 * LATENCY_BOUNDS)]


class StatsInfo(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("preemptions", c_uint64),
        ("cycles", c_uint64),
        ("suspends", c_uint64),
        ("resumes", c_uint64),
        ("failures", c_uint64),
        ("suspend_p50_ns", c_uint64),
        ("suspend_p99_ns", c_uint64),
        ("suspend_max_ns", c_uint64),
        ("backoff_until_ns", c_uint64),
        ("policy_ejected", c_uint64),
        ("reason", c_char * 128),
        ("limited", c_uint64),
        ("resume_p50_ns", c_uint64),
        ("resume_p99_ns", c_uint64),
        ("resume_max_ns", c_uint64),
        ("hints", c_uint64),
        ("samples", c_uint64),
        ("device", c_uint32),
        ("reserved", c_uint32),
        ("policy", c_char * NAME_LEN),
        ("ejection", c_char * 128),
        ("yielding", c_uint32),
        ("stopped", c_uint32),
        ("slices", c_uint64),
        ("slice_failures", c_uint64),
        ("has_details", c_uint32),
        ("backing_off", c_uint32),
        ("suspend", LatenciesInfo),
        ("resume", LatenciesInfo),
        ("online", LatenciesInfo),
        ("hints_expired", c_uint64),
        ("slo_requests", c_uint64),
        ("slo_met", c_uint64),
        ("starved", c_uint64),
        ("offline_run_ns", c_uint64),
        ("offline_wait_ns", c_uint64),
        ("online_run_ns", c_uint64),
        ("online_wait_ns", c_uint64),
        ("failed", c_uint64 * FAILURES * ATTEMPTS),
        ("reason_age_ns", c_uint64),
    ]


class Hint(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("client", c_uint64),
        ("number", c_uint64),
        ("expiry_ns", c_uint64),
        ("flags", c_uint32),
        ("device", c_uint32),
    ]


class EventInfo(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("number", c_uint64),
        ("at_ns", c_uint64),
        ("kind", c_uint32),
        ("device", c_uint32),
        ("client", c_uint64),
        ("queue", c_uint64),
        ("latency_ns", c_uint64),
        ("pid", c_uint32),
        ("status", c_int32),
        ("client_name", c_char * NAME_LEN),
        ("way", c_char * NAME_LEN),
        ("text", c_char * 192),
        ("tried", c_uint32),
        ("reserved", c_uint32),
    ]


class EventOpts(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kinds", c_uint32),
        ("flags", c_uint32),
    ]


class StreamOpts(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("priority", c_uint32),
        ("level", c_uint32),
        ("flags", c_uint64),
    ]


class StreamInfo(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("levels", c_uint32),
        ("level", c_uint32),
        ("priority", c_uint32),
        ("held", c_uint32),
        ("begun", c_uint64),
        ("ended", c_uint64),
        ("length_ns", c_uint64),
        ("in_flight", c_uint32),
        ("reserved", c_uint32),
        ("queue", c_uint64),
        ("door", c_char * NAME_LEN),
    ]


Struct = TypeVar("Struct", bound=ctypes.Structure)


def sized(kind: Type[Struct], **fields: Any) -> Struct:
    """A struct that says its own size, as the library wants it; zero where nothing is given."""
    return kind(size=ctypes.sizeof(kind), **fields)


# The header's name of each.
STRUCTS = {
    "gp_open_opts": OpenOpts,
    "gp_device_info": DeviceInfo,
    "gp_queue_info": QueueInfo,
    "gp_client_info": ClientInfo,
    "gp_job": JobOpts,
    "gp_job_info": JobInfo,
    "gp_suspend_opts": SuspendOpts,
    "gp_latencies": LatenciesInfo,
    "gp_stats": StatsInfo,
    "gp_hint": Hint,
    "gp_event": EventInfo,
    "gp_event_opts": EventOpts,
    "gp_stream_opts": StreamOpts,
    "gp_stream_info": StreamInfo,
}
