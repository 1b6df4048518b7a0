# SPDX-License-Identifier: MIT
"""Old way against new, from the files that gpreempt verify --out wrote: numbers, charts, a recommendation."""

import argparse
import glob
import json
import os
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from gpreempt._gpu import MEASURED, SOFTWARE
from gpreempt.verify import charts, criteria, files, pages
from gpreempt.verify.charts import Bar, Series
from gpreempt.verify.criteria import FAILED as NOT_MET
from gpreempt.verify.events import PARTS
from gpreempt.verify.first import BESIDE, NO_REQUESTS
from gpreempt.verify.main import BAD_INPUT, CHECKS, SCHEMA, complain
from gpreempt.verify.run import FAILED, INTERRUPTED, PASSED, SKIPPED
from gpreempt.verify.second import NEW_ALONE, QUEUES
from gpreempt.verify.ways import NEW, OLD, said

REPORT_SCHEMA = "gpreempt-verify-report-1"
SCHEDULER = "scheduler"
NEXT_STAGE_MS, FAILED_MS = 10, 50  # the notes' rule, of an online request from its arrival to its end

# What is compared: a name for people, the old way's figure, the new way's.
COMPARED = [("off the GPU", "suspend_ms", "batch_unmap_ms"), ("on again", "resume_ms", "fast_remap_ms"), ("online end to end", "online_ms", "online_ms")]

LIMITS = ("not watched", "not tried", "gpreemptd alone", NO_REQUESTS)  # in what a check saw: of what it could show

MOST_STEPS = 400  # of a curve with two for each stop and each resume

Results = Dict[str, Dict[str, Any]]  # by check


class BadInput(Exception):
    """What was given is no result; the text says what to give."""


def read(folder: str, way: str) -> Results:
    """What one run, or several into one folder, found of a way."""
    results = {}  # type: Results
    for path in filter(os.path.isfile, sorted(glob.glob(os.path.join(glob.escape(folder), "*.json")))):
        one = _result(path)
        if one and way in one["ways"]:
            results[one["name"]] = _own(one, way) if len(one["ways"]) > 1 else one
    if not results:
        raise BadInput("{0}: there is no result of the {1} way in it; write one by gpreempt verify --{1} --out {0}".format(folder, way))
    return results


def _result(path: str) -> Optional[Dict[str, Any]]:
    """None: it is another's file. One that should be a result and is not would be missed in silence."""
    try:
        with open(path, encoding="utf-8") as file:
            one = json.load(file, parse_constant=_refuse)
        if one["schema"] == SCHEMA and one["name"] in CHECKS and isinstance(one["ways"], list):
            return dict(_visible(one))
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    if os.path.basename(path)[:-len(".json")] in CHECKS:
        raise BadInput("{}: it is no result of this release's gpreempt verify, or not whole; verify again, or remove it".format(path))
    return None


def _visible(told: Any) -> Any:
    """With a question mark for each sign that nobody sees: a terminal obeys some of them, and a new line ends a table's row."""
    if isinstance(told, str):
        return "".join(sign if sign.isprintable() else "?" for sign in told)
    if isinstance(told, list):
        return [_visible(one) for one in told]
    return {name: _visible(one) for name, one in told.items()} if isinstance(told, dict) else told


def _own(one: Dict[str, Any], way: str) -> Dict[str, Any]:
    """What a check that tried both ways says of one. Its facts and figures begin with the way's name, and other criteria say which it is, unless they
    are of both."""
    other = NEW if way == OLD else OLD
    facts = [fact for fact in one["facts"] if not fact["what"].startswith(other + " way")]
    rows = [row for row in one["criteria"] if row["name"] != "online_{}_ms".format(other) and row.get("way") != other
            and not (row["figure"] or "").startswith(other + "_")]
    is_well = all(fact["is_so"] for fact in facts) and all(row["level"] != NOT_MET for row in rows)
    failed_by_other = one["status"] == FAILED and not one["reason"] and is_well
    return dict(one, facts=facts, criteria=rows, status=PASSED if failed_by_other else one["status"])


def _refuse(word: str) -> None:
    raise ValueError(word + " is no number of ours")


def devices(results: Results) -> List[str]:
    return sorted({one["device"]["text"] for one in results.values()})


def ratio(old: Optional[Dict[str, Any]], new: Optional[Dict[str, Any]], of: str) -> Tuple[Optional[float], Optional[float]]:
    """Speed-up and per cent saved, of that figure."""
    if not old or not new or not old[of] or not new[of]:
        return None, None
    return old[of] / new[of], 100 * (1 - new[of] / old[of])


def compared_of(both: Dict[str, Results]) -> str:
    """The figure that the two are compared by."""
    return criteria.counted(all(results["compare"]["device"]["kind"] == MEASURED for results in both.values() if "compare" in results))


def side_by_side(both: Dict[str, Results]) -> List[Dict[str, Any]]:
    rows, of = [], compared_of(both)
    for queues in QUEUES:
        for what, old_name, new_name in COMPARED:
            old, new = (both[way].get("compare", {}).get("figures", {}).get("{}_{}_{}".format(way, queues, name))
                        for way, name in ((OLD, old_name), (NEW, new_name)))
            speed_up, saved = ratio(old, new, of)
            if old or new:
                rows.append({"queues": queues, "what": what, OLD: old, NEW: new, "of": of, "speed_up": speed_up, "saved_percent": saved})
    return rows


def taken(way: str, results: Results) -> List[str]:
    """The ways of gpreemptd that stopped the queues, as gpreempt list has them."""
    rows = results.get("compare", {}).get("raw", {}).get("compared") or []
    return sorted({word for row in rows if row["way"] == way for word in row.get("taken", [])})


def median(values: List[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]


def bottlenecks(both: Dict[str, Results]) -> List[Dict[str, Any]]:
    """Where the time of a suspend or resume went, by gpreemptd's events: medians of each part, in ms, and which is the longest."""
    rows = []
    for queues in QUEUES:
        for what, names in (one[:1] + (dict(zip((OLD, NEW), one[1:])),) for one in COMPARED[:2]):
            for way in (OLD, NEW):
                every = both[way].get("compare", {}).get("raw", {}).get("parts_ms", {}).get("{}_{}_{}".format(way, queues, names[way])) or []
                told = [one for one in every if one]
                if told:
                    parts = {part: median([one[index] for one in told]) for index, part in enumerate(PARTS)}
                    rows.append({"queues": queues, "what": what, "way": way, "parts_ms": parts, "longest": max(PARTS, key=lambda part: parts[part]),
                                 "told": len(told), "of": len(every)})
    return rows


def functional(both: Dict[str, Results]) -> List[Dict[str, Any]]:
    """Each check, and what became of it in each way."""
    return [{"check": name, OLD: _status(both[OLD], name, name in NEW_ALONE), NEW: _status(both[NEW], name, False), "did": _did(both, name)} for name in CHECKS]


def _status(results: Results, name: str, is_others: bool) -> str:
    return results[name]["status"] if name in results else "does not apply" if is_others else "not run"


def _did(both: Dict[str, Results], name: str) -> str:
    """Of the way that has one; of two, which differ by the way's name, of each."""
    old, new = (both[way].get(name, {}).get("did", "") for way in (OLD, NEW))
    return new.replace(said(NEW), "each way") if old and new and old != new else new or old


def judged(both: Dict[str, Results]) -> List[Dict[str, Any]]:
    """room: who made room for what was measured, the way's calls or gpreemptd's scheduler."""
    rows = []
    for way, results in both.items():
        for name in (name for name in CHECKS if name in results):
            rows += [dict(row, way=way, check=name, room=SCHEDULER if _is_scheduled(row) else way) for row in results[name]["criteria"]]
    return rows


def _is_scheduled(row: Dict[str, Any]) -> bool:
    return row["figure"] == BESIDE or (row["name"] == "lost_percent" and "way" not in row)


def lost(both: Dict[str, Results]) -> List[Dict[str, Any]]:
    """What offline work lost by each way's own calls, where that was measured."""
    return [row for way in (OLD, NEW) for row in _raw(both[way], "throughput", "lost") if row["way"] == way]


def problems(both: Dict[str, Results]) -> List[str]:
    """What was not as it must be, and what could not be found out."""
    found = []
    for way, results in both.items():
        for name in (name for name in CHECKS if name in results):
            one, head = results[name], "{} way, {}: ".format(way, name)
            found += [head + "not so: " + fact["what"] for fact in one["facts"] if not fact["is_so"]]
            found += [head + _not_met(row) for row in one["criteria"] if row["level"] == NOT_MET]
            found += [head + line for line in one["saw"] if ("no batch call" in line and way == NEW) or any(words in line for words in LIMITS)]
            if one["status"] in (SKIPPED, INTERRUPTED) or (one["status"] == FAILED and one["reason"]):
                found.append(head + "{}: {}".format(one["status"], one["reason"]))
    left = {way: [name for name in CHECKS if name not in both[way] and not (way == OLD and name in NEW_ALONE)] for way in both}
    return found + ["{} way: not run: {}".format(way, ", ".join(names)) for way, names in left.items() if names]


def _not_met(row: Dict[str, Any]) -> str:
    of = " ({}, {})".format(pages.figure_name(row), row["of"]) if row["of"] else ""
    return "{}{}: {} is not {} {:g}".format(row["what"], of, _number(row["value"], row["unit"]), row["sign"], row["must"])


def _number(value: Optional[float], unit: str) -> str:
    return "unknown" if value is None else "{:.3f} {}".format(value, unit)


def recommended(way: str, results: Results) -> Dict[str, Any]:
    """By the notes' rule, of the slowest online figure that was judged."""
    key = "online_{}_ms".format(way)
    rows = [row for one in results.values() for row in one["criteria"] if row["name"] == key and row["value"] is not None]
    if not rows:
        return {"way": way, "online_ms": None, "verdict": "unknown", "text": "no online request was measured"}
    worst = max(rows, key=lambda row: row["value"])
    verdict, text = _ruled(worst["value"], any(one["device"]["kind"] == SOFTWARE for one in results.values()))
    took = "online requests took {:.1f} ms ({} of the slowest check)".format(worst["value"], worst["of"])
    return {"way": way, "online_ms": worst["value"], "verdict": verdict, "text": took + text}


def _ruled(ms: float, is_software: bool) -> Tuple[str, str]:
    if is_software:
        return "unknown", " of software cost: that says nothing of a GPU, and the notes' rule is of one"
    if ms > FAILED_MS:
        return "failed", ", more than {} ms: this way has failed".format(FAILED_MS)
    if ms > NEXT_STAGE_MS:
        return "next stage", ", more than {} ms: go on to the next stage".format(NEXT_STAGE_MS)
    return "enough", ": this way is enough"


def _raw(results: Results, check: str, name: str) -> List[Any]:
    return results.get(check, {}).get("raw", {}).get(name) or []


def _both_raw(both: Dict[str, Results], check: str, names: Dict[str, str]) -> List[Series]:
    every = [Series(way, _raw(both[way], check, names[way])) for way in (OLD, NEW)]
    return [one for one in every if one.values]


Figure = NamedTuple("Figure", [("name", str), ("draw", Any), ("on", List[str])])


def latency_figures(both: Dict[str, Results], on: List[str]) -> List[Figure]:
    found = []
    for queues in QUEUES:
        for what, old_name, new_name in COMPARED:
            every = _both_raw(both, "compare", {OLD: "old_{}_{}".format(queues, old_name), NEW: "new_{}_{}".format(queues, new_name)})
            title = "{}, {} queue{}".format(what, queues, "" if queues == 1 else "s")
            for word, draw in (("histogram", charts.histogram), ("distribution", charts.distribution)):
                if every:
                    found.append(Figure("{}-{}-{}".format(word, what.replace(" ", "-"), queues),
                                        lambda look, draw=draw, title=title, every=every: draw(title, every, look), on))
    return found


def bottleneck_figures(rows: List[Dict[str, Any]], on: List[str]) -> List[Figure]:
    """A bar for each way and number of queues."""
    found = []
    for what in (one[0] for one in COMPARED[:2]):
        every = [Bar("{} {}".format(row["way"], row["queues"]), [(part, row["parts_ms"][part]) for part in PARTS]) for row in rows if row["what"] == what]
        if every:
            found.append(Figure("parts-" + what.replace(" ", "-"),
                                lambda look, what=what, every=every: charts.bars("{}: way and queues, median of each part".format(what), every, look), on))
    return found


def _numbered(values: List[float]) -> charts.Points:
    return [(float(number), value) for number, value in enumerate(values)]


def _samples(results: Results, check: str) -> List[Dict[str, float]]:
    return results.get(check, {}).get("raw", {}).get("daemon", {}).get("samples", [])


def _memory(results: Results, check: str) -> charts.Points:
    return [(sample["at_s"], sample["memory_kib"]) for sample in _samples(results, check)]


def _cpu(results: Results, check: str) -> charts.Points:
    """Per cent of a CPU, between two samples."""
    samples = _samples(results, check)
    return [(after["at_s"], 100 * (after["cpu_s"] - before["cpu_s"]) / (after["at_s"] - before["at_s"]))
            for before, after in zip(samples, samples[1:]) if after["at_s"] > before["at_s"]]


def _on_gpu(results: Results, check: str) -> charts.Points:
    """The last changes, from the first of them on."""
    steps = _raw(results, check, "on_gpu")[-MOST_STEPS:]
    return [(at - steps[0][0], on) for at, on in steps]


def _curve(name: str, title: str, every: List[Tuple[str, charts.Points]], words: Tuple[str, str], on: List[str]) -> List[Figure]:
    shown = [(way, points) for way, points in every if len(points) > 1]
    return [Figure(name, lambda look: charts.curve(title, shown, words, look), on)] if shown else []


def stability_figures(both: Dict[str, Results], on: List[str]) -> List[Figure]:
    found = []
    for check in ("stability", "stress"):
        latencies = [(way, _numbered(_raw(both[way], check, "suspend_ms" if way == OLD else "batch_unmap_ms"))) for way in (OLD, NEW)]
        found += _curve(check + "-latency", check + ": off the GPU, one after the other", latencies, ("number", "ms"), on)
        for name, title, points, unit in (("memory", "gpreemptd's memory", _memory, "KiB"), ("cpu", "gpreemptd's CPU", _cpu, "% of one"),
                                          ("slots", "queues on the GPU (HQD use), the last changes", _on_gpu, "queues")):
            found += _curve("{}-{}".format(check, name), "{}: {}".format(check, title), [(way, points(both[way], check)) for way in (OLD, NEW)], ("s", unit), on)
    samples = [(way, both[way].get("reservation", {}).get("raw", {}).get("hqd") or []) for way in (OLD, NEW)]
    use = [(way, [(one["time"] - some[0]["time"], one["percent"]) for one in some]) for way, some in samples]
    return found + _curve("hqd", "hardware queue slots (HQDs) in use", use, ("s", "%"), on)


def made(both: Dict[str, Results]) -> Dict[str, Any]:
    return {"schema": REPORT_SCHEMA, "devices": {way: devices(results) for way, results in both.items()}, "taken": {way: taken(way, results) for way, results in both.items()}, "functional": functional(both),
            "criteria": judged(both), "compared": side_by_side(both), "lost": lost(both), "bottlenecks": bottlenecks(both), "problems": problems(both),
            "recommendations": [recommended(way, results) for way, results in both.items()],
            "runs": {way: {name: {key: one[key] for key in ("time", "command", "machine", "versions")} for name, one in results.items()}
                     for way, results in both.items()}}


def publish(path: str, report: Dict[str, Any], sections: List[Tuple[str, List[Figure]]]) -> None:
    """By its ending: Markdown with its figures beside it, else one page."""
    if not path.endswith(".md"):
        files.write(path, pages.html(report, sections))
        return
    base = path[:-len(".md")]
    for figure in (figure for _, figures in sections for figure in figures):
        files.write("{}-{}.svg".format(base, figure.name), figure.draw(charts.Look(charts.STYLE, figure.on)))
    files.write(path, pages.markdown(report, sections, os.path.basename(base)))


def parsed(words: List[str]) -> Any:
    parser = argparse.ArgumentParser(prog="gpreempt report", description="See gpreempt-report(1).")
    parser.add_argument("--old", metavar="DIR", required=True)
    parser.add_argument("--new", metavar="DIR", required=True)
    parser.add_argument("-o", "--out", metavar="FILE")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(words)


def tell(report: Dict[str, Any], path: str, is_json: bool) -> None:
    print(json.dumps(report, indent=1, sort_keys=True) if is_json else "\n".join(pages.summary(report)))
    print("\nWrote {}.".format(path), file=sys.stderr if is_json else sys.stdout, flush=True)


def main(words: List[str]) -> int:
    asked = parsed(words)
    try:
        both = {OLD: read(asked.old, OLD), NEW: read(asked.new, NEW)}
        report = made(both)
        on = pages.on_lines(report)
        path = asked.out or os.path.join(asked.new, "report.html")
        publish(path, report, [("Bottlenecks", bottleneck_figures(report["bottlenecks"], on)), ("Latency", latency_figures(both, on)),
                               ("Stability", stability_figures(both, on))])
        tell(report, path, asked.json)
    except BadInput as wrong:
        return complain(BAD_INPUT, wrong)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as wrong:
        return complain(BAD_INPUT, "a result is not as gpreempt verify writes it ({}: {}): verify again".format(type(wrong).__name__, wrong))
    except OSError as wrong:
        return complain(1, wrong)
    return 0


