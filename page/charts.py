"""Drawings as SVG without text: lines, steps and bands over one axis of time; labels stand beside them in HTML."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from markupsafe import Markup

WIDTH, HEIGHT = 1000.0, 200.0
Point = tuple[float, float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """Values over time.

    Attributes:
        points: epoch seconds and value; None where it is not known: the line has a gap there.
        is_steps: whether a value stays until the next.
    """

    name: str
    kind: str
    points: Sequence[Point]
    is_steps: bool = False


@dataclass(frozen=True, slots=True)
class Area:
    """A band over time: epoch seconds of beginning and end, lower and upper value."""

    name: str
    kind: str
    spans: Sequence[tuple[float, float, float, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """One drawing.

    Attributes:
        title: what it shows, with its unit.
        since_s, until_s: ends of the axis.
        now_s: a mark; None: outside.
        marks: times of rescales.
        top: upper end of the values' axis, from zero.
        alternative: text in the place of the drawing; empty: the words beside it are it.
    """

    title: str
    since_s: float
    until_s: float
    now_s: float
    lines: Sequence[Line] = ()
    areas: Sequence[Area] = ()
    marks: Sequence[float] = ()
    unit: str = ""
    top: float = field(default=0.0)
    alternative: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known."""
        return not any(value is not None for line in self.lines for _, value in line.points)

    @property
    def highest(self) -> float:
        """The upper end of the axis: a round number above all values."""
        values = [value for line in self.lines for _, value in line.points if value is not None]
        values += [high for area in self.areas for *_, high in area.spans]
        return self.top or round_up(1.05 * max(values, default=1.0))

    def draw(self) -> Markup:
        """Return the SVG; it holds numbers alone."""
        top = self.highest
        body = [self._hours()]
        body += [self._area(area, top) for area in self.areas]
        body += [_stroke(self._x(at), 0, self._x(at), HEIGHT, "mark") for at in self.marks if self._is_inside(at)]
        body += [self._line(line, top) for line in self.lines]
        if self._is_inside(self.now_s):
            body.append(_stroke(self._x(self.now_s), 0, self._x(self.now_s), HEIGHT, "now"))
        body.append(_stroke(0, 0, 0, HEIGHT, "cursor"))
        shown_as = f'role="img" aria-label="{self.alternative}"' if self.alternative else 'aria-hidden="true"'
        return Markup(
            f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" preserveAspectRatio="none" {shown_as}>{"".join(body)}</svg>'
        )

    def ticks(self) -> list[str]:
        """Return the labels of the axis of time: its ends and the quarters between, a new day with its date."""
        step = (self.until_s - self.since_s) / 4
        times = [datetime.fromtimestamp(self.since_s + step * place, UTC) for place in range(5)]
        dated = set({at.date(): at for at in reversed(times)}.values())  # the first of each day
        return [f"{at:%d %b %H:%M}" if at in dated else f"{at:%H:%M}" for at in times]

    def label(self, share: float) -> str:
        """Return the value at a share of the axis, with its unit."""
        value = share * self.highest
        return f"{value:,.0f}{self.unit}" if self.highest >= 10 else f"{value:.3g}{self.unit}"

    def data(self) -> str:
        """Return the values as JSON, for reading them off."""
        lines = [{"name": one.name, "steps": one.is_steps, "points": _rounded(one.points)} for one in self.lines]
        spans = [{"name": one.name, "spans": [_rounded_span(span) for span in one.spans]} for one in self.areas]
        axis = {"since": self.since_s, "until": self.until_s, "unit": self.unit}
        return json.dumps({**axis, "lines": lines, "areas": spans}, separators=(",", ":"), allow_nan=False)

    def _is_inside(self, at_s: float) -> bool:
        return self.since_s <= at_s <= self.until_s

    def _x(self, at_s: float) -> float:
        share = (at_s - self.since_s) / (self.until_s - self.since_s)
        return WIDTH * min(max(share, 0.0), 1.0)

    def _y(self, value: float, top: float) -> float:
        return HEIGHT * (1 - min(max(value / top, 0.0), 1.0)) if top > 0 else HEIGHT

    def _hours(self) -> str:
        places = [WIDTH * place / 4 for place in range(1, 4)]
        return "".join(_stroke(x, 0, x, HEIGHT, "grid") for x in places) + _stroke(
            0, HEIGHT / 2, WIDTH, HEIGHT / 2, "grid"
        )

    def _area(self, area: Area, top: float) -> str:
        boxes = []
        for since_s, until_s, low, high in area.spans:
            if until_s <= self.since_s or since_s >= self.until_s:
                continue
            x1, x2, y1, y2 = self._x(since_s), self._x(until_s), self._y(high, top), self._y(low, top)
            boxes.append(f"M{x1:.1f} {y1:.1f}H{x2:.1f}V{y2:.1f}H{x1:.1f}Z")
        return f'<path class="area {area.kind}" d="{"".join(boxes)}"/>' if boxes else ""

    def _line(self, line: Line, top: float) -> str:
        path, is_open, last_y = list[str](), False, 0.0
        wide, high = WIDTH / (self.until_s - self.since_s), HEIGHT / top if top > 0 else 0.0
        for at_s, value in line.points:
            if value is None or not math.isfinite(value):
                is_open = False
                continue
            x = min(max((at_s - self.since_s) * wide, 0.0), WIDTH)
            y = min(max(HEIGHT - value * high, 0.0), HEIGHT)
            if not is_open:
                path.append(f"M{x:.1f} {y:.1f}")
            elif line.is_steps:
                path.append(f"H{x:.1f}" if y == last_y else f"H{x:.1f}V{y:.1f}")
            else:
                path.append(f"L{x:.1f} {y:.1f}")
            is_open, last_y = True, y
        if line.is_steps and is_open and line.points:
            path.append(f"H{self._x(line.points[-1][0]):.1f}")
        if len(path) == 1 and not line.is_steps:  # a dot
            path.append(f"h2V{last_y:.1f}")
        return (
            f'<path class="line {line.kind}" vector-effect="non-scaling-stroke" d="{"".join(path)}"/>' if path else ""
        )


def round_up(value: float) -> float:
    """Return the next of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten.

    >>> round_up(0.93), round_up(17), round_up(10_200), round_up(0.53)
    (1.0, 20.0, 15000.0, 0.6)
    """
    if not math.isfinite(value) or value <= 0:
        return 1.0
    power = math.floor(math.log10(value))
    tops = (float(f"{one}e{power}") for one in (1, 1.5, 2, 3, 4, 5, 6, 8, 10))
    return next(one for one in tops if one >= value or math.isclose(one, value))


def draw_strip(slots: Iterable[tuple[float, float, int, bool]], since_s: float, until_s: float) -> Markup:
    """Return the planned slots of a day as a small drawing.

    A span has its ends, epoch seconds, its slots, and whether it is at risk of being late.
    """
    spans = [one for one in slots if one[1] > since_s and one[0] < until_s]
    if not spans:
        return Markup("")
    top, length, boxes = max(count for *_, count, _ in spans) * 1.15 or 1.0, until_s - since_s, []
    for begin_s, end_s, count, is_late in spans:
        x1 = 300 * max(begin_s - since_s, 0.0) / length
        x2 = 300 * min(end_s - since_s, length) / length
        y = 26 * (1 - count / top)
        kind = "late" if is_late else "calm"
        boxes.append(
            f'<rect class="{kind}" x="{x1:.1f}" y="{y:.1f}" width="{max(x2 - x1 - 1, 1):.1f}" height="{26 - y:.1f}"/>'
        )
        if x2 - x1 > 26:
            boxes.append(f'<text x="{x1 + 3:.1f}" y="23">{count}</text>')
    return Markup(f'<svg class="strip" viewBox="0 0 300 26" aria-hidden="true">{"".join(boxes)}</svg>')


def _stroke(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" vector-effect="non-scaling-stroke" {ends}/>'


def _rounded(points: Sequence[Point]) -> list[list[float | None]]:
    return [[round(at), None if value is None or not math.isfinite(value) else _digits(value)] for at, value in points]


def _rounded_span(span: tuple[float, float, float, float]) -> list[float]:
    since_s, until_s, low, high = span
    return [round(since_s), round(until_s), _digits(low), _digits(high)]


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
