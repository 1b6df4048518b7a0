# SPDX-License-Identifier: MIT
"""What the lists give: tuples with names, which do not change."""

import ctypes
from typing import Any, Callable, Dict, NamedTuple, Tuple, Type, TypeVar, Union

from gpreempt import _abi
from gpreempt._abi import Activity, Attempt, Caps, ClientClass, ClientState, EventKind, Known, QueueKind, QueueState

Device = NamedTuple("Device", [
    ("device", int),  # the number every other call takes
    ("name", str),
    ("backend", str),
    ("policy", str),  # what schedules it; empty: nobody does
    ("caps", Caps),
    ("compute_units", int),
    ("queue_slots", int),  # 0: none are known
    ("online_percent", int),
    ("offline_percent", int),
    ("gpu_id", int),  # the driver's; 0: it has none
    ("pci", str),
    ("instances", int),  # that MIG has made of it; 0: it is one GPU
])

Queue = NamedTuple("Queue", [
    ("queue", int),  # handle: opaque, never reused
    ("client", int),  # its process, as a handle
    ("client_name", str),
    ("device", int),
    ("priority", int),  # 0 to 15
    ("client_class", Union[ClientClass, int]),
    ("state", Union[QueueState, int]),
    ("activity", Union[Activity, int]),
    ("held", bool),  # somebody suspended it, not the scheduler
    ("ring", int),
    ("pid", int),  # as the host counts
    ("queue_id", int),  # the driver's, unique within its process alone
    ("gpu_id", int),
    ("kind", Union[QueueKind, int]),
    ("active", bool),  # the driver may run it
    ("known", Known),  # which fields mean something
    ("way", str),  # how it would be stopped; empty: nobody here can
    ("rule", str),  # what gave it its class
    ("place", str),
    ("origin", str),  # where each field came from; the C struct's "from"
    ("local_pid", int),
])

Client = NamedTuple("Client", [
    ("client", int),
    ("name", str),
    ("pid", int),
    ("uid", int),
    ("device", int),
    ("client_class", Union[ClientClass, int]),
    ("weight", int),
    ("state", Union[ClientState, int]),
    ("slo_ns", int),
    ("queues", int),
    ("stopped", int),
    ("hints", int),  # that are open
    ("share_permille", int),
    ("hinted", int),
    ("sampled", int),
    ("rule", str),
    ("place", str),
    ("resuming", int),  # of those that are stopped: they are to run, and do not yet
])

Latencies = NamedTuple("Latencies", [
    ("count", int),
    ("sum_ns", int),
    ("at_most", Tuple[int, ...]),  # how many took at most 10 us, 20 us, 50 us, 100 us and so on to 10 s
])

Job = NamedTuple("Job", [
    ("name", str),
    ("pid", int),
    ("client_class", Union[ClientClass, int]),  # at the most
    ("weight", int),
    ("clients", int),  # of its processes, now
    ("slo_ns", int),
    ("ran_ns", int),
    ("waits", int),
    ("waited_ns", int),
    ("requests", int),
    ("within_slo", int),  # of those with an objective
    ("with_slo", int),
    ("p50_ns", int),
    ("p99_ns", int),
    ("max_ns", int),
    ("starving_ns", int),
    ("is_starved", bool),
    ("is_partial", bool),  # gpreemptd was started again since
])

Stats = NamedTuple("Stats", [
    ("device", int),
    ("policy", str),
    ("preemptions", int),
    ("cycles", int),
    ("suspends", int),
    ("resumes", int),
    ("failures", int),
    ("limited", int),
    ("suspend_p50_ns", int),
    ("suspend_p99_ns", int),
    ("suspend_max_ns", int),
    ("resume_p50_ns", int),
    ("resume_p99_ns", int),
    ("resume_max_ns", int),
    ("backoff_until_ns", int),
    ("hints", int),
    ("samples", int),
    ("policy_ejected", int),
    ("reason", str),
    ("ejection", str),
    ("yielding", int),  # queues that yield by themselves, now
    ("stopped", int),  # that stand still, now
    ("slices", int),  # times a queue was made to yield or not to
    ("slice_failures", int),
    ("has_details", bool),  # False: gpreemptd is older than what follows
    ("backing_off", int),  # clients whose stops wait now, because one has failed or was refused
    ("suspend", Latencies),
    ("resume", Latencies),
    ("online", Latencies),  # requests, from the begin of their hint to its end
    ("hints_expired", int),
    ("slo_requests", int),
    ("slo_met", int),
    ("starved", int),
    ("offline_run_ns", int),
    ("offline_wait_ns", int),
    ("online_run_ns", int),
    ("online_wait_ns", int),
    ("failed", Tuple[Tuple[int, ...], ...]),  # by Attempt, then Failure
    ("reason_age_ns", int),  # 0: it is so now, or gpreemptd is older
])

Event = NamedTuple("Event", [
    ("number", int),
    ("at_ns", int),
    ("kind", Union[EventKind, int]),
    ("device", int),
    ("client", int),
    ("queue", int),
    ("latency_ns", int),
    ("pid", int),
    ("status", int),
    ("client_name", str),
    ("way", str),
    ("text", str),
    ("tried", Union[Attempt, int, None]),  # of FAILED: what was; None: gpreemptd is older
])

_MEANINGS = {
    "caps": Caps,
    "known": Known,
    "held": bool,
    "active": bool,
    "has_details": bool,
    "suspend": lambda struct: made(Latencies, struct),
    "resume": lambda struct: made(Latencies, struct),
    "online": lambda struct: made(Latencies, struct),
    "at_most": tuple,
    "failed": lambda rows: tuple(tuple(row) for row in rows),
    "is_starved": bool,
    "is_partial": bool,
    "client_class": lambda number: _abi.named(ClientClass, number),
    "activity": lambda number: _abi.named(Activity, number),
    "tried": lambda number: _abi.named(Attempt, number - 1) if number else None,
}  # type: Dict[str, Callable[[Any], Any]]

# "state" and "kind" are of the thing that has them.
_OWN_MEANINGS = {
    (Queue, "state"): QueueState,
    (Queue, "kind"): QueueKind,
    (Client, "state"): ClientState,
    (Event, "kind"): EventKind,
}

Thing = TypeVar("Thing")


def _value(kind: Type[Any], name: str, raw: Any) -> Any:
    if isinstance(raw, bytes):
        return raw.decode("utf-8", "replace")
    if (kind, name) in _OWN_MEANINGS:
        return _abi.named(_OWN_MEANINGS[kind, name], raw)
    return _MEANINGS[name](raw) if name in _MEANINGS else raw


def made(kind: Type[Thing], struct: ctypes.Structure) -> Thing:
    """A thing of this kind from what the library filled in."""
    fields = kind._fields  # type: ignore
    return kind(*(_value(kind, name, getattr(struct, "from" if name == "origin" else name)) for name in fields))
