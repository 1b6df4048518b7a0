# SPDX-License-Identifier: MIT
"""The command: which checks, on what; what they found, for people and for programs."""

import argparse
import json
import os
import platform
import re
import signal
import sys
import time
from typing import Any, Dict, List, Optional

import gpreempt
from gpreempt._gpu import SIMULATED, SOFTWARE, device_text
from gpreempt.verify import files, first, second
from gpreempt.verify.run import FAILED, INTERRUPTED, PASSED, SKIPPED, Options, Run, progress_on_terminal
from gpreempt.verify.stage import Broken, Given, Simulated, Skip, Started
from gpreempt.verify.ways import NEW, OLD, Calls, Failed

SCHEMA = "gpreempt-verify-1"
CHECKS = dict(first.CHECKS + second.CHECKS)
ALL = "all"

BAD_INPUT = 2
UNITS_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """As "10s" or "1.5min"."""
    match = re.match(r"(\d+(?:\.\d+)?)(ns|us|ms|s|min|m|h)$", text)
    if not match or not float(match.group(1)):
        raise argparse.ArgumentTypeError("\"{}\" is no time; write it as 10s or 5min".format(text))
    return float(match.group(1)) * UNITS_S[match.group(2)]


def parsed(words: List[str]) -> Any:
    parser = argparse.ArgumentParser(prog="gpreempt verify", description="See gpreempt-verify(1).")
    parser.add_argument("check", nargs="?", default=ALL, choices=list(CHECKS) + [ALL])
    parser.add_argument("--duration", type=seconds, metavar="TIME")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--old", action="store_true")
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--job", metavar="PROGRAM")
    parser.add_argument("--out", metavar="DIR")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("-o", dest="out", metavar="DIR")
    return parser.parse_args(words)


def head(stage: Any, words: List[str]) -> Dict[str, Any]:
    """What a result must say to mean something later."""
    return {"schema": SCHEMA, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "command": ["gpreempt", "verify"] + words,
            "device": {"kind": stage.device.kind, "name": stage.device.name, "text": device_text(stage.device)},
            "machine": {"kernel": platform.release(), "cpus": os.cpu_count(), "python": platform.python_version()},
            "versions": {"gpreempt": gpreempt.__version__, "library": gpreempt.version()}}


def complain(code: int, text: Any) -> int:
    """A text, or what went wrong."""
    if isinstance(text, OSError) and text.strerror:
        text = "{}: {}".format(text.filename, text.strerror) if text.filename else text.strerror
    print("gpreempt: {}".format(text), file=sys.stderr)
    return code


def done(name: str, stage: Any, options: Options) -> Run:
    """One check, to its end, whatever that is: afterwards nothing is suspended."""
    run = Run(name, stage, options, progress_on_terminal)
    calls = Calls(OLD if options.old else NEW)
    try:
        calls.open()
        CHECKS[name](run, calls)
    except Skip as why:
        run.status, run.reason, run.did = SKIPPED, str(why), ""  # it did not do that
    except KeyboardInterrupt:
        run.status, run.reason = INTERRUPTED, "it was interrupted"
    except (Broken, Failed, gpreempt.Error) as wrong:
        run.status, run.reason = FAILED, str(wrong)
    except Exception as wrong:  # of the check itself: the others' results are worth telling
        run.status, run.reason = FAILED, "{}: {}".format(type(wrong).__name__, wrong)
    finally:
        calls.close()
        progress_on_terminal("")
    run.settle()
    return run


def figure_text(name: str, row: Dict[str, Optional[float]], on: str) -> str:
    what, _, unit = name.rpartition("_")
    every = [(part, row[part]) for part in ("mean", "deviation", "p50", "p95", "p99", "max")]
    parts = ["{} {}".format(part, "-" if value is None else "{:.3f}".format(value)) for part, value in every]
    return "{}: {} {} ({} of them, {})".format(what.replace("_", " "), ", ".join(parts), unit, row["count"], on)


def verdict_text(row: Dict[str, Any]) -> str:
    limits = ["{} {} {:g}".format(name, row["sign"], row[name]) for name in ("must", "should", "best") if row[name] is not None]
    of = " by the " + row["of"] if row["of"] else ""
    return "{}: {}{}".format(", ".join(limits), "not met" if row["level"] == "failed" else row["level"] + " met", of)


def mark(is_well: bool) -> str:
    return "ok" if is_well else "FAIL"


def row_mark(run: Run, row: Dict[str, Any]) -> str:
    return mark(row["level"] != "failed") if run.limits_count else ""


def print_numbers(run: Run, on: str) -> None:
    """A figure that is judged has its verdict beside it. Each says what it was measured on."""
    rows = {row["figure"]: row for row in run.criteria if row["figure"]}
    for name, figures in run.figures.items():
        row = rows.get(name)
        print("  {:<4} {}{}".format(row_mark(run, row) if row else "", figure_text(name, figures, on),
                                    "; {}: {}".format(row["what"], verdict_text(row)) if row else ""))
    for row in (row for row in run.criteria if not row["figure"]):
        value = "unknown" if row["value"] is None else "{:.3f} {}".format(row["value"], row["unit"])
        print("  {:<4} {}: {} ({}); {}".format(row_mark(run, row), row["what"], value, on, verdict_text(row)))


def print_run(run: Run) -> None:
    """What it did, what it saw, and whether that is good."""
    print("{:<12} {}{}".format(run.name, run.status, ": " + run.reason if run.reason else ""))
    for word, lines in (("did", [run.did] if run.did else []), ("saw", run.saw)):
        for line in lines:
            print("  {}  {}".format(word, line))
    for fact in run.facts:
        print("  {:<4} {}".format(mark(fact["is_so"]), fact["what"]))
    print_numbers(run, device_text(run.stage.device))
    print(end="", flush=True)  # sys.stdout is None where it was closed


def verify(stage: Any, names: List[str], asked: Any, words: List[str]) -> List[Run]:
    """Ctrl-C ends it with what was found until then."""
    neither = not asked.old and not asked.new
    options = Options(asked.full, asked.duration, asked.old or neither, asked.new or neither)
    runs = []  # type: List[Run]
    top = head(stage, words)
    if not asked.json:
        print("On: {}. gpreempt {}, Linux {}.".format(top["device"]["text"], gpreempt.__version__, top["machine"]["kernel"]))
    try:
        for name in names:
            runs.append(done(name, stage, options))
            if asked.out:
                files.write(os.path.join(asked.out, name + ".json"), json.dumps(dict(top, **runs[-1].as_dict()), indent=1, sort_keys=True) + "\n")
            if not asked.json:
                print_run(runs[-1])
            if runs[-1].status == INTERRUPTED:
                break
    except KeyboardInterrupt:
        pass  # between two
    finally:
        if asked.json:
            print(json.dumps(dict(top, checks=[run.as_dict() for run in runs]), indent=1, sort_keys=True), flush=True)
        else:
            print_end(runs, names, top)
    return runs


def print_end(runs: List[Run], names: List[str], top: Dict[str, Any]) -> None:
    counts = ["{} {}".format(sum(1 for run in runs if run.status == status), status) for status in (PASSED, FAILED, SKIPPED, INTERRUPTED)]
    left = len(names) - len(runs)
    print("{}{}; {}.".format(", ".join(counts), ", {} not begun".format(left) if left else "", top["device"]["text"]))
    if top["device"]["kind"] == SIMULATED:
        print("The GPU was simulated, in real time: its times are the model's and this host's. With a job on a GPU: gpreempt verify --pid PID")
    if top["device"]["kind"] == SOFTWARE:
        print("The GPU was software, in a virtual machine: its times are software cost under emulation, and the notes' limits do not count.")


def interrupt(*why: Any) -> None:
    raise KeyboardInterrupt


def main(words: List[str]) -> int:
    asked = parsed(words)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:  # as by nohup
            signal.signal(number, interrupt)
    if asked.pid:
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # stopped by Ctrl-Z, this would keep the job stopped
    try:
        if asked.out:
            os.makedirs(asked.out, exist_ok=True)
        chosen = Given(asked.pid) if asked.pid else Started(asked.job) if asked.job else Simulated()  # type: Any
        with chosen as stage:
            names = list(CHECKS) if asked.check == ALL else [asked.check]
            runs = verify(stage, names, asked, words)
    except KeyboardInterrupt:
        return complain(1, "interrupted")
    except (Broken, gpreempt.Error, ImportError, OSError) as wrong:
        return complain(1, wrong)
    return 0 if len(runs) == len(names) and all(run.status in (PASSED, SKIPPED) for run in runs) else 1
