# SPDX-License-Identifier: MIT
"""A report as text: a page that opens from disk, Markdown, a few lines for a terminal."""

from html import escape
from typing import Any, Dict, List, Optional, Sequence, Tuple

from gpreempt.verify import events
from gpreempt.verify.charts import STYLE, TEXTS, Look
from gpreempt.verify.ways import NEW, OLD

TITLE = "Old way against new"
PARTS = ("mean", "p50", "p95", "p99", "max")

PAGE_STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #222; --line: #8884; --good: #15803d; --bad: #b91c1c; }
@media (prefers-color-scheme: dark) { :root { --back: #16181d; --text: #ddd; --good: #4ade80; --bad: #f87171; } }
body { background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1160px; padding: 16px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { border-bottom: 1px solid var(--line); padding: 3px 8px; text-align: left; vertical-align: top; white-space: nowrap; }
td.long { white-space: normal; min-width: 20em; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 12px; }
h2 { break-after: avoid; } tr { break-inside: avoid; }
figure { margin: 0; break-inside: avoid; } p.on { font-size: 12px; opacity: .75; }
svg { width: 100%; height: auto; }
@media print { body { max-width: none; padding: 0; } .scroll { overflow: visible; } .figures { grid-template-columns: 1fr 1fr; }
  table { font-size: 10px; } th, td { padding: 2px 5px; } }
"""

# A word of what a figure was measured on, and what is to be said of such figures.
NOT_A_GPU = (("simulated", "The GPU was simulated: the times are the model's, and this host's, and say nothing of a real GPU."),
             ("software cost", "The GPU was software, in a virtual machine: the times are software cost under emulation, and say nothing of a real GPU. "
                              "No check fails by the notes' limits there."))

GOOD = ("passed", "enough", "best", "should", "must")
BAD = ("failed", "interrupted")

Row = Sequence[str]
Table = Tuple[Row, List[Row]]


def number(value: Optional[float], digits: int = 3) -> str:
    return "-" if value is None else "{:.{}f}".format(value, digits)


def on_lines(report: Dict[str, Any]) -> List[str]:
    """What each way was measured on."""
    old, new = (", ".join(report["devices"][way]) for way in (OLD, NEW))
    return ["both ways: " + old] if old == new else ["{} way: {}".format(OLD, old), "{} way: {}".format(NEW, new)]


def on_what(report: Dict[str, Any]) -> str:
    return "; ".join(on_lines(report))


def functional_table(report: Dict[str, Any]) -> Table:
    return ("check", "old way", "new way", "what it did"), [(row["check"], row[OLD], row[NEW], row["did"]) for row in report["functional"]]


def figure_name(row: Dict[str, Any]) -> str:
    """Of a criterion: what was judged."""
    return row["figure"].rpartition("_")[0].replace("_", " ") if row["figure"] else row["what"]


def criteria_table(report: Dict[str, Any]) -> Table:
    rows = []  # type: List[Row]
    for row in report["criteria"]:
        limits = ", ".join("{} {} {:g}".format(name, row["sign"], row[name]) for name in ("must", "should", "best") if row[name] is not None)
        rows.append((row["way"] if row["room"] == row["way"] else "{} ({})".format(row["room"], row["way"]), row["check"], figure_name(row), number(row["value"]), row["unit"], row["of"] or "", limits, row["level"]))
    return ("way", "check", "what", "value", "unit", "of", "the notes' limits", "met"), rows


def compared_table(report: Dict[str, Any]) -> Table:
    rows = []  # type: List[Row]
    for row in report["compared"]:
        for way in (OLD, NEW):
            figures = row[way] or {}
            rows.append([str(row["queues"]), row["what"], way] + [number(figures.get(part)) for part in PARTS]
                        + ([number(row["speed_up"], 2), number(row["saved_percent"], 0), row["of"]] if way == NEW else ["", "", ""]))
    return ("queues", "what", "way", "mean ms", "p50 ms", "p95 ms", "p99 ms", "max ms", "times as fast", "% saved", "by the"), rows


def lost_sections(report: Dict[str, Any]) -> List[Tuple[str, Table]]:
    """None where it was not measured."""
    rows = [(row["way"], str(row["stops"]), number(row["alone_per_second"], 2), number(row["per_second"], 2), number(row["lost_percent"], 1))
            for row in report["lost"]]  # type: List[Row]
    return [("What offline work loses", (("way", "stops", "steps a second alone", "with the stops", "% lost"), rows))] if rows else []


def parts_table(report: Dict[str, Any]) -> Table:
    """Where the time of an online request went."""
    rows = []  # type: List[Row]
    by_what = {(row["queues"], row["what"]): row for row in report["compared"]}
    for queues in sorted({row["queues"] for row in report["compared"]}):
        for way in (OLD, NEW):
            off, online, of = by_what[queues, "off the GPU"][way], by_what[queues, "online end to end"][way], by_what[queues, "off the GPU"]["of"]
            if off and online:
                rows.append((str(queues), way, number(off[of]), number(online[of] - off[of]), number(100 * off[of] / online[of], 1), of))
    return ("queues", "way", "waiting for the GPU, ms", "its work and the host's lateness, ms", "% of it waiting", "by the"), rows


def bottleneck_table(report: Dict[str, Any]) -> Table:
    rows = [(str(row["queues"]), row["what"], row["way"]) + tuple(number(row["parts_ms"][part]) for part in events.PARTS) + (TEXTS[row["longest"]],)
            for row in report["bottlenecks"]]  # type: List[Row]
    return ("queues", "what", "way") + tuple(TEXTS[part] + ", ms" for part in events.PARTS) + ("longest",), rows


def bottleneck_lines(report: Dict[str, Any]) -> List[str]:
    """What the parts are, and what they do not tell."""
    if not report["bottlenecks"]:
        return ["nothing: the results have no events of gpreemptd; verify again"]
    told, of = (sum(row[key] for row in report["bottlenecks"]) for key in ("told", "of"))
    return ["By gpreemptd's events of {} of {} calls; medians.".format(told, of),
            "Asking is the program's message, gpreemptd's decision, its order to whoever stops the queues, and the word that it is done: one time, not to be told apart.",
            "The driver's part is one call or one for each queue. Unmap, save of the waves and fence are in it when queues go, and the new run list when they "
            "come back: gpreemptd has no event that tells these apart.",
            "A driver with kernel/series has tracepoints: {}. From the first to the second are unmap, save and fence, which nothing tells apart. "
            "To have them, as root: {}; then verify compare again, and read {}.".format(
                ", ".join(events.TRACEPOINTS), events.TRACE_ON, events.TRACE),
            "The answer is from gpreemptd's event to the program's going on."]


def run_lines(report: Dict[str, Any]) -> List[str]:
    """How to do it again."""
    lines = set()
    for way, runs in report["runs"].items():
        for one in runs.values():
            lines.add("{} way: {} at {}, gpreempt {}, Linux {}".format(way, " ".join(one["command"]), one["time"], one["versions"]["gpreempt"],
                                                                     one["machine"]["kernel"]))
    return sorted(lines)


def remarks(report: Dict[str, Any]) -> List[str]:
    """What a reader must know before any number."""
    lines = []
    for word, line in NOT_A_GPU:
        if any(word in text for texts in report["devices"].values() for text in texts):
            lines.append(line)
    if all(report["taken"].values()):
        lines.append("The queues were stopped by {} in the old way and by {} in the new one (gpreempt-list(1)).".format(
            *(", ".join(report["taken"][way]) for way in (OLD, NEW))))
    if report["devices"][OLD] != report["devices"][NEW]:
        lines.append("The two ways were not tried on the same device: the difference is not theirs alone.")
    if any("no batch call" in line for line in report["problems"]):
        lines.append("The device has no batch call: the new way took the old one's there, and what differs between them is chance.")
    return lines + ["A model of 10 ms, which in compare is a wait of 10 ms, is never served in less: by the notes' rule that alone asks for the next stage. "
                    "What preemption adds is in the table of parts."]


def content(report: Dict[str, Any]) -> List[Tuple[str, Any]]:
    """Headings and what is below them: a table, or lines. Charts come after them."""
    return [("Recommendation", ["{} way: {}".format(one["way"], one["text"]) for one in report["recommendations"]] + remarks(report)),
            ("What works", functional_table(report)), ("The ways side by side", compared_table(report))] + lost_sections(report) + [
            ("Where the time of a request went", parts_table(report)), ("Where the time of a call went", bottleneck_table(report)),
            ("What these parts are", bottleneck_lines(report)), ("The notes' criteria", criteria_table(report)),
            ("Problems and limits", report["problems"] or ["none was found"])]


def summary(report: Dict[str, Any]) -> List[str]:
    lines = ["{} ({})".format(TITLE, on_what(report))]
    lines += ["  {} way: {}".format(one["way"], one["text"]) for one in report["recommendations"]] + ["  " + line for line in remarks(report)]
    for row in report["compared"]:
        if row["speed_up"] is not None:
            lines.append("  {} of {} queue{}: {} {} ms, then {} ms: {} times as fast".format(
                row["what"], row["queues"], "" if row["queues"] == 1 else "s", row["of"], number(row[OLD][row["of"]]), number(row[NEW][row["of"]]),
                number(row["speed_up"], 2)))
    lines += ["  offline throughput lost by the {} way: {} %".format(row["way"], number(row["lost_percent"], 1)) for row in report["lost"]]
    return lines + ["  {} problems and limits: see the page".format(len(report["problems"]))]


LONG = 60  # a text that may be broken


def _kind(text: str) -> str:
    if text in GOOD:
        return "good"
    if text in BAD:
        return "bad"
    is_number = text == "-" or text.replace("-", "", 1).replace(".", "", 1).isdigit()
    return "number" if is_number else "long" if len(text) > LONG else ""


def _cell(text: str) -> str:
    kind = _kind(text)
    return '<td{}>{}</td>'.format(' class="{}"'.format(kind) if kind else "", escape(text))


def _html_table(table: Table) -> str:
    head, rows = table
    body = "\n".join("<tr>{}</tr>".format("".join(_cell(text) for text in row)) for row in rows)
    return '<div class="scroll"><table><thead><tr>{}</tr></thead>\n<tbody>{}</tbody></table></div>'.format("".join("<th>{}</th>".format(escape(text)) for text in head), body)


def _html_lines(lines: List[str]) -> str:
    return "<ul>{}</ul>".format("".join("<li>{}</li>".format(escape(line)) for line in lines))


def html(report: Dict[str, Any], sections: List[Tuple[str, List[Any]]]) -> str:
    on = '<p class="on">{}</p>'.format(escape(on_what(report)))
    parts = ["<h1>{}</h1>".format(TITLE), on]
    for heading, what in content(report):
        parts += ["<h2>{}</h2>".format(escape(heading)), _html_lines(what) if isinstance(what, list) else _html_table(what) + on]
    for heading, figures in sections:
        drawn = ["<figure>{}</figure>".format(figure.draw(Look("", figure.on))) for figure in figures]
        parts += ["<h2>{}</h2>".format(heading), '<div class="figures">{}</div>'.format("\n".join(drawn) or "nothing was measured")]
    parts += ["<h2>How to do it again</h2>", _html_lines(run_lines(report))]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{}</title><style>{}{}</style>'.format(
        TITLE, PAGE_STYLE, STYLE)
    return '<!doctype html>\n<html lang="en"><head>{}</head><body>\n{}\n</body></html>\n'.format(head, "\n".join(parts))


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")


def _markdown_table(table: Table) -> str:
    head, rows = table
    lines = ["| {} |".format(" | ".join(map(_plain, row))) for row in [head] + list(rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head)] + lines[1:])


def markdown(report: Dict[str, Any], sections: List[Tuple[str, List[Any]]], base: str) -> str:
    on = _plain(on_what(report))
    parts = ["# " + TITLE, on]
    for heading, what in content(report):
        parts += ["## " + heading, "\n".join("* " + _plain(line) for line in what) if isinstance(what, list) else _markdown_table(what) + "\n\n" + on]
    for heading, figures in sections:
        parts += ["## " + heading] + ["![{0}]({1}-{0}.svg)".format(figure.name, base) for figure in figures]
    return "\n\n".join(parts + ["## How to do it again", "\n".join("* " + _plain(line) for line in run_lines(report))]) + "\n"
