# SPDX-License-Identifier: MIT
"""Charts as SVG text: histograms, distributions and curves, with a colour for each way, and bars, with one for each part."""

import math
from html import escape
from typing import List, NamedTuple, Tuple

WIDTH, HEIGHT = 480, 260
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 44, 40
BINS = 24
TEXTS = {"old": "old way", "new": "new way", "ask": "asking", "driver": "the driver", "answer": "the answer"}  # of a colour
WIDER = 1.05  # what a range is widened by, so that its ends are seen

STYLE = """
svg { --ink: #222; --faint: #8886; --old: #b45309; --new: #2563eb; --ask: #a16207; --driver: #be185d; --answer: #0f766e; font: 11px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --ink: #ddd; --old: #fbbf24; --new: #60a5fa; --ask: #facc15; --driver: #f472b6; --answer: #2dd4bf; } }
svg text { fill: var(--ink); }
svg .axis { stroke: var(--faint); }
svg .old { stroke: var(--old); } svg .new { stroke: var(--new); } svg polyline { fill: none; stroke-width: 1.6; }
svg rect.old { fill: var(--old); stroke: none; } svg rect.new { fill: var(--new); stroke: none; }
svg rect.ask { fill: var(--ask); } svg rect.driver { fill: var(--driver); } svg rect.answer { fill: var(--answer); }
"""

Points = List[Tuple[float, float]]
Series = NamedTuple("Series", [("way", str), ("values", List[float])])
Bar = NamedTuple("Bar", [("name", str), ("parts", List[Tuple[str, float]])])
Axis = NamedTuple("Axis", [("low", float), ("high", float), ("ticks", List[float]), ("is_log", bool)])


def log_axis(values: List[float]) -> Axis:
    """From just below the smallest to just above the largest, with ticks at 1, 2 and 5."""
    low, high = max(min(values), 1e-6) / WIDER, max(max(values), 1e-6) * WIDER
    first, last = int(math.floor(math.log10(low))), int(math.ceil(math.log10(high)))
    every = [digit * 10.0 ** power for power in range(first, last + 1) for digit in (1, 2, 5)]
    ticks = [tick for tick in every if low <= tick <= high]
    return Axis(low, high, ticks if len(ticks) > 2 else linear_axis(low, high).ticks, True)


def linear_axis(low: float, high: float) -> Axis:
    high = high if high > low else low + 1
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    while (high - low) / step > 6:
        step *= 2.5 if str(step)[0] == "2" else 2
    first = math.ceil(low / step)
    return Axis(low, high, [(first + i) * step for i in range(int((high - low) / step) + 1) if (first + i) * step <= high * 1.0001], False)


def place(axis: Axis, value: float, start: float, end: float) -> float:
    if axis.is_log:
        part = (math.log(max(value, axis.low)) - math.log(axis.low)) / (math.log(axis.high) - math.log(axis.low))
    else:
        part = (value - axis.low) / (axis.high - axis.low)
    return start + part * (end - start)


def _x(axis: Axis, value: float) -> float:
    return place(axis, value, LEFT, WIDTH - RIGHT)


def _y(axis: Axis, value: float) -> float:
    return place(axis, value, HEIGHT - BOTTOM, TOP)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return '<line class="axis" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(x1, y1, x2, y2)


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return '<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>'.format(x, y, anchor, escape(text))


def _legend(kinds: List[str]) -> List[str]:
    parts = []
    for index, kind in enumerate(kinds):
        x = LEFT + 90 * index
        parts += ['<rect class="{}" x="{}" y="{}" width="10" height="10"/>'.format(kind, x, TOP - 18), _text(x + 14, TOP - 9, TEXTS[kind], "start")]
    return parts


def _frame(title: str, x: Axis, y: Axis, words: Tuple[str, str], ways: List[str], parts: List[str], style: str) -> str:
    """title, axes, legend, and what is drawn."""
    bottom = HEIGHT - BOTTOM
    axes = [_line(LEFT, bottom, WIDTH - RIGHT, bottom)]
    axes += [_text(_x(x, tick), bottom + 14, "{:g}".format(tick)) for tick in x.ticks]
    for tick in y.ticks:
        axes += [_line(LEFT, _y(y, tick), WIDTH - RIGHT, _y(y, tick)), _text(LEFT - 5, _y(y, tick) + 4, "{:g}".format(tick), "end")]
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img" aria-label="{}">'.format(WIDTH, HEIGHT, escape(title, True))
    labels = [_text(LEFT, 14, title, "start"), _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, words[0]), _text(WIDTH - RIGHT, TOP - 9, words[1], "end")]
    inner = ["<style>{}</style>".format(style)] if style else []
    return "\n".join([head] + inner + labels + axes + _legend(ways) + parts + ["</svg>"])


def _polyline(way: str, points: Points, x: Axis, y: Axis) -> str:
    where = " ".join("{:.1f},{:.1f}".format(_x(x, at), _y(y, value)) for at, value in points)
    return '<polyline class="{}" points="{}"/>'.format(way, where)


def distribution(title: str, every: List[Series], style: str = "") -> str:
    """How many per cent of the values are no longer than that."""
    x, y = log_axis([value for one in every for value in one.values]), Axis(0, 100, [0, 25, 50, 75, 100], False)
    parts = []
    for one in every:
        ordered = sorted(one.values)
        steps = [(x.low, 0.0)]  # type: Points
        for index, value in enumerate(ordered):
            steps += [(value, 100.0 * index / len(ordered)), (value, 100.0 * (index + 1) / len(ordered))]
        parts.append(_polyline(one.way, steps + [(x.high, 100.0)], x, y))
    return _frame(title, x, y, ("ms", "% no longer than"), [one.way for one in every], parts, style)


def counted(values: List[float], axis: Axis) -> List[int]:
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int(place(axis, value, 0, BINS)))] += 1
    return counts


def histogram(title: str, every: List[Series], style: str = "") -> str:
    x = log_axis([value for one in every for value in one.values])
    columns = [counted(one.values, x) for one in every]
    y = linear_axis(0, max(max(column) for column in columns))
    width = (WIDTH - RIGHT - LEFT) / float(BINS)
    parts = []
    for index, (one, column) in enumerate(zip(every, columns)):
        for number, count in enumerate(column):
            part = width / len(every)
            parts.append('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'.format(
                one.way, LEFT + number * width + index * part, _y(y, count), part * 0.9, HEIGHT - BOTTOM - _y(y, count)))
    return _frame(title, x, y, ("ms", "how many"), [one.way for one in every], parts, style)


def curve(title: str, every: List[Tuple[str, Points]], words: Tuple[str, str], style: str = "") -> str:
    """Over time, or over the number of the preemption."""
    points = [point for _, some in every for point in some]
    x = linear_axis(0, max(at for at, _ in points))
    y = linear_axis(0, max(value for _, value in points))
    parts = [_polyline(way, some, x, y) for way, some in every]
    return _frame(title, x, y, words, [way for way, _ in every], parts, style)


def bars(title: str, every: List[Bar], style: str = "") -> str:
    """One below the other, each with its parts from the left to the right."""
    x = linear_axis(0, max(sum(value for _, value in bar.parts) for bar in every) * WIDER)
    step = (HEIGHT - BOTTOM - TOP) / float(len(every))
    parts = []
    for index, bar in enumerate(every):
        y, at = TOP + index * step, 0.0
        parts.append(_text(LEFT - 5, y + step / 2 + 4, bar.name, "end"))
        for kind, value in bar.parts:
            parts.append('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'.format(
                kind, _x(x, at), y + step * 0.15, _x(x, at + value) - _x(x, at), step * 0.7))
            at += value
    return _frame(title, x, Axis(0, 1, [], False), ("ms", ""), [kind for kind, _ in every[0].parts], parts, style)
