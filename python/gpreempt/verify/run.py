# SPDX-License-Identifier: MIT
"""One check while it runs: what it did, what it saw, its numbers."""

import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from gpreempt import EventKind
from gpreempt._gpu import MEASURED, SOFTWARE
from gpreempt.verify import criteria, events
from gpreempt.verify.stage import Job
from gpreempt.verify.ways import NEW, OLD, Calls, Cycle

CLOCK_S = 1e-3  # that two readings of clocks may differ by

PASSED = "passed"
FAILED = "failed"
SKIPPED = "skipped"
INTERRUPTED = "interrupted"

Options = NamedTuple("Options", [
    ("full", bool),  # the notes' own counts and times
    ("duration_s", Optional[float]),
    ("old", bool),  # whether that way is wanted
    ("new", bool),
])


Held = NamedTuple("Held", [
    ("least_s", float),  # from when the suspends returned to when the resumes began
    ("most_s", float),  # from when the suspends began to when the resumes returned
])


def held(cycles: List[Cycle]) -> Held:
    """For how long a job was off the GPU, all in all."""
    least_s = sum(cycle.held_s for cycle in cycles)
    return Held(least_s, least_s + sum(cycle.suspend_ms + cycle.resume_ms for cycle in cycles) / 1e3)


class Run:
    """What a check is given, and what it leaves."""

    def __init__(self, name: str, stage: Any, options: Options, progress: Callable[[str], None]) -> None:
        self.name, self.stage, self.options = name, stage, options
        self.did = ""
        self.saw = []  # type: List[str]
        self.facts = []  # type: List[Dict[str, Any]]
        self.criteria = []  # type: List[Dict[str, Any]]
        self.figures = {}  # type: Dict[str, criteria.Figures]
        self.raw = {}  # type: Dict[str, Any]
        self.parameters = {}  # type: Dict[str, Any]
        self.reason = ""
        self.status = PASSED
        self.used = [self.way]  # what it says something of
        self._progress = progress

    @property
    def of(self) -> str:
        """What is judged and compared."""
        return criteria.counted(self.stage.device.kind == MEASURED)

    @property
    def way(self) -> str:
        """Of a program that knows one: the first notes' is the old one."""
        return OLD if self.options.old else NEW

    @property
    def ways(self) -> List[str]:
        return [name for name, is_wanted in ((OLD, self.options.old), (NEW, self.options.new)) if is_wanted]

    def chosen(self, name: str, short: Any, notes: Any) -> Any:
        """A parameter: the short one, or the notes' own."""
        self.parameters[name] = notes if self.options.full else short
        return self.parameters[name]

    def duration(self, short_s: float, notes_s: float) -> float:
        value = self.options.duration_s or (notes_s if self.options.full else short_s)
        self.parameters["duration_s"] = value
        return value

    def fact(self, what: str, is_so: bool) -> None:
        """Something that must be so."""
        self.facts.append({"what": what, "is_so": bool(is_so)})

    def judge(self, key: str, value: Optional[float], way: str = "") -> None:
        """way: whose calls it is of, where a check tried several."""
        row = dict(criteria.judged(key, value), figure=None, of=None)
        if way:
            row.update(way=way, what="{}, by the {} way's calls".format(row["what"], way))
        self.criteria.append(row)

    def judge_figure(self, key: str, figure: str) -> None:
        self.criteria.append(dict(criteria.judged(key, self.figures[figure][self.of]), figure=figure, of=self.of))

    def measure(self, name: str, values: List[float], key: Optional[str] = None) -> None:
        """Raw values and their figures; key: the criterion that these must meet."""
        self.raw[name] = values
        self.figures[name] = criteria.figures(values)
        if key:
            self.judge_figure(key, name)

    def _measure_cycles(self, cycles: List[Cycle], way: str, job: Job, before: str, is_judged: bool) -> None:
        """before: what the figures' names begin with."""
        names = ("batch_unmap_ms", "fast_remap_ms") if way == NEW else ("suspend_ms", "resume_ms")
        self.measure(before + names[0], [cycle.suspend_ms for cycle in cycles], names[0] if is_judged else None)
        self.measure(before + names[1], [cycle.resume_ms for cycle in cycles], names[1] if is_judged else None)
        told = events.told(job.pid, cycles[0].began_s)
        self.raw.setdefault("parts_ms", {}).update({
            before + names[0]: [events.split(told, EventKind.SUSPEND, cycle.began_s, cycle.suspend_ms) for cycle in cycles],
            before + names[1]: [events.split(told, EventKind.RESUME, cycle.back_s, cycle.resume_ms) for cycle in cycles]})

    def see_job(self, job: Job, cycles: int, off: Held, queues: int = 1, what: str = "") -> None:
        """Ends it: whether the GPU did what the calls said, by the job's own account. what: which job, if there are several."""
        goes_on = job.goes_on(cycles)
        done = job.end()
        if done is None:
            self.saw.append(what + "gpreemptd alone tells what became of the queues: the job is not ours")
            return
        self.raw.setdefault("jobs", []).append(done)
        if "still" in done:
            self._see_own(done, cycles, what)
        else:
            self._see_simulated(done, cycles, off, queues, what)
            self.fact("{}went on and lost nothing: after the last stop each queue ended its next step".format(what), goes_on)

    def _see_own(self, done: Dict[str, Any], cycles: int, what: str) -> None:
        """By the account of a program that counts what it began and what ended, and was looked at while it was held."""
        self.saw.append("{}{} dispatches ended in {:.2f} s; held {}, and none ended meanwhile {}".format(
            what, done["completed"], done["elapsed_ns"] / 1e9, times(cycles), times(done["still"])))
        self.fact("{}stood still as often as asked ({})".format(what, times(cycles)), done["still"] == cycles)
        self.fact("{}it had work".format(what), done["completed"] > 0)  # else to stand still shows nothing
        self.fact("{}nothing lost: each dispatch ended, once".format(what),
                  done["completed"] == done["submitted"] and done["twice"] == done["error"] == 0)

    def _see_simulated(self, done: Dict[str, Any], cycles: int, off: Held, queues: int, what: str) -> None:
        stopped_s = done["stopped_share"] * done["elapsed_ns"] / 1e9
        open_steps = done["submitted"] - done["completed"]
        self.saw.append("{}the GPU stopped {} {}, {:.2f} s of {:.2f} s; {} steps done, {} under way".format(
            what, "the queue" if queues == 1 else "{} queues".format(queues), times(done["stops"] // queues), stopped_s,
            done["elapsed_ns"] / 1e9, done["completed"], open_steps))
        self.fact("{}stopped as often as asked ({})".format(what, times(cycles)), done["stops"] == cycles * queues)
        self.fact("{}off the GPU as long as held ({:.2f} s)".format(what, off.least_s), stopped_s >= 0.9 * off.least_s)
        self.fact("{}back on it once resumed (off at most {:.2f} s)".format(what, off.most_s), stopped_s <= off.most_s + CLOCK_S)
        self.fact("{}it had work".format(what), done["completed"] > 0)  # else to be stopped shows nothing

    def repeat(self, calls: Calls, job: Job, hold_s: float, is_over: Callable[[float, int], bool],
               gap_s: Callable[[], float], each: Callable[[], None] = lambda: None, before: str = "", is_judged: bool = True) -> List[Cycle]:
        """Suspends and resumes by the clock, once at least, until it is over: told the seconds and the number so far. Measures them, also if it is
        interrupted."""
        cycles = []  # type: List[Cycle]
        began = due = time.monotonic()
        try:
            while not cycles or not is_over(time.monotonic() - began, len(cycles)):
                cycles.append(calls.cycle(job.ids, lambda: job.hold(hold_s)))
                each()
                due = max(due + gap_s(), time.monotonic())
                self.progress("{}, {:.0f} s".format(times(len(cycles)), time.monotonic() - began))
                time.sleep(max(0.0, due - time.monotonic()))
        finally:
            if cycles:
                self._measure_cycles(cycles, calls.way.name, job, before, is_judged)
        return cycles

    def progress(self, text: str) -> None:
        self._progress("{}: {}".format(self.name, text))

    @property
    def limits_count(self) -> bool:
        """What software costs under emulation is shown beside the notes' limits, and is no failure."""
        return self.stage.device.kind != SOFTWARE

    def settle(self) -> None:
        """The status, from what was seen."""
        is_within = all(row["level"] != criteria.FAILED for row in self.criteria) or not self.limits_count
        is_well = all(fact["is_so"] for fact in self.facts) and is_within
        if self.status == PASSED and not is_well:
            self.status = FAILED

    def as_dict(self) -> Dict[str, Any]:
        return {"name": self.name, "ways": self.used, "status": self.status, "reason": self.reason, "did": self.did, "saw": self.saw, "facts": self.facts,
                "criteria": self.criteria, "figures": self.figures, "parameters": self.parameters, "raw": self.raw}


def times(n: int) -> str:
    return "once" if n == 1 else "{} times".format(n)


def progress_on_terminal(text: str) -> None:
    if sys.stderr and sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text[:79])
        sys.stderr.flush()
