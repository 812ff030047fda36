"""Drawings of the advice as SVG, of numbers alone: no name comes into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from include.utc import DAY_S, HOUR_S
from page.charts import Area, Chart, Line

OWN = "#12715b"


def draw_week(job: Mapping[str, Any]) -> Markup:
    """Return the days of a job: its load as an area, the slots of what ran and of Tidewise as lines, hour by hour."""
    load = [value or 0.0 for value in job["load"]["hourly_per_s"]]
    lines = {kind: option.get("hourly_slots", ()) for kind, option in zip(("ran", "own"), job["options"], strict=False)}
    hours = max(len(load), *map(len, lines.values()), 1)
    top = 1.08 * max((value for line in lines.values() for value in line if value is not None), default=1.0)
    scale = top / (1.08 * max(load, default=0.0) or 1.0)
    return Chart(
        title="",
        since_s=0.0,
        until_s=HOUR_S * hours,
        now_s=-1.0,
        lines=[Line(kind, kind, list(_steps(line)), is_steps=True) for kind, line in lines.items()],
        areas=[Area("", "load", [(HOUR_S * at, HOUR_S * (at + 1), 0.0, scale * y) for at, y in enumerate(load)])],
        marks=[float(DAY_S * day) for day in range(1, -(-hours // 24))],
        top=top,
        alternative="slots of what ran and of Tidewise over the load",
    ).draw()


def _steps(values: Sequence[float | None]) -> Iterator[tuple[float, float | None]]:
    yield from ((HOUR_S * at, value) for at, value in enumerate(values))
    if values:
        yield HOUR_S * len(values), values[-1]


def calibration_svg(jobs: Sequence[Mapping[str, Any]]) -> str:
    """Return the jobs as dots: cost of what ran as predicted over what it came to; between the lines: within 10%."""
    costs = [job["calibration"]["costs"] for job in jobs]
    pairs = [(one["cost_came"], one["cost"]) for one in costs if one["cost_came"] and one["cost"]]
    if not pairs:
        return ""
    size, low, high = 300.0, min(map(min, pairs)) * 0.8, max(map(max, pairs)) * 1.25

    def place(value: float) -> float:
        return float(size * np.log(value / low) / np.log(high / low))

    def line(factor: float, style: str) -> str:
        first, last = max(low, low / factor), min(high, high / factor)
        x1, y1, x2, y2 = place(first), place(first * factor), place(last), place(last * factor)
        return f'<line x1="{x1:.1f}" y1="{size - y1:.1f}" x2="{x2:.1f}" y2="{size - y2:.1f}" stroke="{style}"/>'

    dots = "".join(
        f'<circle cx="{place(received):.1f}" cy="{size - place(reported):.1f}" r="5" fill="{OWN}" fill-opacity="0.75"/>'
        for received, reported in pairs
    )
    text = 'font-size="13" fill="#5b6675" font-family="system-ui, sans-serif"'
    return (
        f'<svg class="square" viewBox="-26 -6 {size + 40:.0f} {size + 34:.0f}" role="img" '
        'aria-label="predicted cost over measured cost, a dot for each job">'
        f'<rect width="{size:.0f}" height="{size:.0f}" fill="#f6f8fa"/>'
        f"{line(1.0, '#9aa5b1')}{line(1.1, '#c3ccd6')}{line(1 / 1.1, '#c3ccd6')}{dots}"
        f'<text x="{size / 2:.0f}" y="{size + 20:.0f}" text-anchor="middle" {text}>came</text>'
        f'<text transform="translate(-10 {size / 2:.0f}) rotate(-90)" text-anchor="middle" {text}>predicted</text>'
        "</svg>"
    )
