"""Drawings of the advice as SVG, of numbers alone: no name comes into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from models.arrays import Floats

WIDTH, HEIGHT = 1000.0, 200.0
RAN, OWN, LOAD = "#b0b7c3", "#12715b", "#e8eef4"
_STROKE = 'fill="none" vector-effect="non-scaling-stroke"'


def week_svg(job: Mapping[str, Any]) -> str:
    """Return the days of a job: its load as an area, the slots of what ran and of Tidewise as lines, hour by hour."""
    load = np.array(job["load"]["hourly_per_s"], float)
    ran, own = (np.array(option.get("hourly_slots", ()), float) for option in job["options"][:2])
    hours = max(len(load), len(ran), len(own), 1)
    top = max([float(line.max()) for line in (ran, own) if len(line)] + [1.0]) * 1.08
    days = "".join(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT:.0f}" stroke="#dfe5ec" {_STROKE}/>'
        for x in (WIDTH * 24 * day / hours for day in range(1, -(-hours // 24)))
    )
    parts = [
        f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" preserveAspectRatio="none" role="img" '
        'aria-label="slots of what ran and of Tidewise over the load">',
        _area(load, float(load.max()) * 1.08 if len(load) else 1.0, hours),
        days,
        _steps(ran, top, hours, f'stroke="{RAN}" stroke-width="2"'),
        _steps(own, top, hours, f'stroke="{OWN}" stroke-width="2"'),
        "</svg>",
    ]
    return "".join(parts)


def _area(values: Floats, top: float, hours: int) -> str:
    if not len(values) or top <= 0:
        return ""
    points = " ".join(f"{WIDTH * (at + 0.5) / hours:.1f},{HEIGHT * (1 - y / top):.1f}" for at, y in enumerate(values))
    last = WIDTH * (len(values) - 0.5) / hours
    return f'<polygon fill="{LOAD}" points="{WIDTH * 0.5 / hours:.1f},{HEIGHT:.0f} {points} {last:.1f},{HEIGHT:.0f}"/>'


def _steps(values: Floats, top: float, hours: int, style: str) -> str:
    if not len(values):
        return ""
    points = []
    for at, value in enumerate(values):
        y = HEIGHT * (1 - value / top)
        points += [f"{WIDTH * at / hours:.1f},{y:.1f}", f"{WIDTH * (at + 1) / hours:.1f},{y:.1f}"]
    return f'<polyline {_STROKE} {style} points="{" ".join(points)}"/>'


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
