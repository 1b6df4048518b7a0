# SPDX-License-Identifier: MIT
"""What the design notes ask for, as data, and what becomes of a number under it."""

from typing import Any, Dict, List, NamedTuple, Optional, Union

from gpreempt.notes import Latencies

Criterion = NamedTuple("Criterion", [
    ("what", str),
    ("unit", str),
    ("sign", str),  # "<" or ">": which side of a limit is good
    ("must", float),
    ("should", Optional[float]),
    ("best", Optional[float]),
])

CRITERIA = {
    "batch_unmap_ms": Criterion("batch unmap", "ms", "<", 1, 0.5, 0.3),
    "fast_remap_ms": Criterion("fast remap", "ms", "<", 1, 0.5, 0.3),
    "suspend_ms": Criterion("suspend call", "ms", "<", 5, None, None),
    "resume_ms": Criterion("resume call", "ms", "<", 5, None, None),
    "online_old_ms": Criterion("online end to end (10 ms model), old way", "ms", "<", 50, 10, None),
    "online_new_ms": Criterion("online end to end (10 ms model), new way", "ms", "<", 15, 10, 5),
    "lost_percent": Criterion("offline throughput lost", "%", "<", 20, 10, 5),
    "hqd_percent": Criterion("HQD use", "%", ">", 80, None, None),
}

LEVELS = ("best", "should", "must")  # the strictest first
FAILED = "failed"

# Fewer values tell nothing of that part of them.
ENOUGH = {"p95": 20, "p99": 100}

Figures = Dict[str, Optional[float]]


def counted(is_measured: bool) -> str:
    """Which figure of many values counts: on a GPU the mean, as the notes have it; else the median, since means have in them how late a busy host was."""
    return "mean" if is_measured else "p50"


def figures(values: List[float]) -> Figures:
    """The notes' mean and deviation, and the tail; None where there are too few values."""
    all_of_them = Latencies(None)
    for value in values:
        all_of_them.add(value)
    row = all_of_them.figures()  # type: Dict[str, Any]
    return {name: row[name] if values and len(values) >= ENOUGH.get(name, 0) else None for name in row}


def is_met(criterion: Criterion, value: float, limit: float) -> bool:
    return value < limit if criterion.sign == "<" else value > limit


def level(criterion: Criterion, value: Optional[float]) -> str:
    """The strictest that is met; nothing known has failed."""
    for name in LEVELS:
        limit = getattr(criterion, name)
        if value is not None and limit is not None and is_met(criterion, value, limit):
            return name
    return FAILED


def judged(key: str, value: Optional[float]) -> Dict[str, Union[str, float, None]]:
    """As it stands in a result."""
    criterion = CRITERIA[key]
    return dict(criterion._asdict(), name=key, value=value, level=level(criterion, value))
