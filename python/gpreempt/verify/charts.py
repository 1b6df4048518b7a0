# SPDX-License-Identifier: MIT
"""Charts as SVG text: histograms, distributions and curves, with a colour for each way, and bars, with one for each part."""

import math
import textwrap
from html import escape
from typing import Dict, List, NamedTuple, Tuple

WIDTH, HEIGHT = 480, 260
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 44, 40
ON_HEIGHT, ON_SIGNS = 13, 78  # of a line of what it was measured on
BINS = 24
TEXTS = {"old": "old way", "new": "new way", "ask": "asking", "driver": "the driver", "answer": "the answer"}  # of a colour
WIDER = 1.05  # what a range is widened by, so that its ends are seen

LIGHT = {"ink": "#222", "back": "#fff", "old": "#b45309", "new": "#2563eb", "ask": "#a16207", "driver": "#be185d", "answer": "#0f766e"}
DARK = {"ink": "#ddd", "back": "#16181d", "old": "#fbbf24", "new": "#60a5fa", "ask": "#facc15", "driver": "#f472b6", "answer": "#2dd4bf"}


def _coloured(colours: Dict[str, str]) -> str:
    """Colours by themselves: who shows a picture that stands alone may not know variables."""
    rules = ["svg {{ background: {back}; }} svg text {{ fill: {ink}; }}".format(**colours)]
    rules += ["svg rect.{0} {{ fill: {1}; }} svg polyline.{0} {{ stroke: {1}; }}".format(kind, colours[kind]) for kind in TEXTS]
    return "\n".join(rules)


STYLE = """
svg {{ font: 11px system-ui, sans-serif; }} svg .on {{ font-size: 10px; }}
svg .axis {{ stroke: #888; stroke-opacity: .4; }} svg polyline {{ fill: none; stroke-width: 1.6; }}
{}
@media (prefers-color-scheme: dark) {{ {} }}
""".format(_coloured(LIGHT), _coloured(DARK))

Points = List[Tuple[float, float]]
Series = NamedTuple("Series", [("way", str), ("values", List[float])])
Bar = NamedTuple("Bar", [("name", str), ("parts", List[Tuple[str, float]])])
Look = NamedTuple("Look", [("style", str), ("on", List[str])])  # on: what it was measured on, which goes where the picture goes
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


def _on(lines: List[str]) -> List[str]:
    return ['<text class="on" x="{}" y="{}">{}</text>'.format(LEFT, HEIGHT + ON_HEIGHT * (number + 1) - 5, escape(line)) for number, line in enumerate(lines)]


def _frame(title: str, x: Axis, y: Axis, words: Tuple[str, str], ways: List[str], parts: List[str], look: Look) -> str:
    """title, axes, legend, what is drawn, and what it was measured on."""
    bottom = HEIGHT - BOTTOM
    axes = [_line(LEFT, bottom, WIDTH - RIGHT, bottom)]
    axes += [_text(_x(x, tick), bottom + 14, "{:g}".format(tick)) for tick in x.ticks]
    for tick in y.ticks:
        axes += [_line(LEFT, _y(y, tick), WIDTH - RIGHT, _y(y, tick)), _text(LEFT - 5, _y(y, tick) + 4, "{:g}".format(tick), "end")]
    on = [line for text in look.on for line in textwrap.wrap(text, ON_SIGNS)]
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img" aria-label="{}">'.format(
        WIDTH, HEIGHT + ON_HEIGHT * len(on), escape("; ".join([title] + look.on), True))
    labels = [_text(LEFT, 14, title, "start"), _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, words[0]), _text(WIDTH - RIGHT, TOP - 9, words[1], "end")]
    inner = ["<style>{}</style>".format(look.style)] if look.style else []
    return "\n".join([head] + inner + labels + axes + _legend(ways) + parts + _on(on) + ["</svg>"])


def _polyline(way: str, points: Points, x: Axis, y: Axis) -> str:
    where = " ".join("{:.1f},{:.1f}".format(_x(x, at), _y(y, value)) for at, value in points)
    return '<polyline class="{}" points="{}"/>'.format(way, where)


def distribution(title: str, every: List[Series], look: Look) -> str:
    """How many per cent of the values are no longer than that."""
    x, y = log_axis([value for one in every for value in one.values]), Axis(0, 100, [0, 25, 50, 75, 100], False)
    parts = []
    for one in every:
        ordered = sorted(one.values)
        steps = [(x.low, 0.0)]  # type: Points
        for index, value in enumerate(ordered):
            steps += [(value, 100.0 * index / len(ordered)), (value, 100.0 * (index + 1) / len(ordered))]
        parts.append(_polyline(one.way, steps + [(x.high, 100.0)], x, y))
    return _frame(title, x, y, ("ms", "% no longer than"), [one.way for one in every], parts, look)


def counted(values: List[float], axis: Axis) -> List[int]:
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int(place(axis, value, 0, BINS)))] += 1
    return counts


def histogram(title: str, every: List[Series], look: Look) -> str:
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
    return _frame(title, x, y, ("ms", "how many"), [one.way for one in every], parts, look)


def curve(title: str, every: List[Tuple[str, Points]], words: Tuple[str, str], look: Look) -> str:
    """Over time, or over the number of the preemption."""
    points = [point for _, some in every for point in some]
    x = linear_axis(0, max(at for at, _ in points))
    y = linear_axis(0, max(value for _, value in points))
    parts = [_polyline(way, some, x, y) for way, some in every]
    return _frame(title, x, y, words, [way for way, _ in every], parts, look)


def bars(title: str, every: List[Bar], look: Look) -> str:
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
    return _frame(title, x, Axis(0, 1, [], False), ("ms", ""), [kind for kind, _ in every[0].parts], parts, look)
