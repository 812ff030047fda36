"""Drawings of runs as SVG, of numbers alone: the lines of all policies over each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.live.results import RunResult

WIDTH, HEIGHT = 1000.0, 200.0
COLOURS: Mapping[str, str] = {
    "tidewise": "#12715b",
    "controller_alone": "#5ab39c",
    "flink_autoscaler": "#c2571a",
    "flink_autoscaler_tuned": "#e0a12e",
    "ds2": "#3a6ea5",
    "conttune": "#8d5fa8",
    "none": "#8a93a0",
    "constant": "#4a5361",
}
LOAD = "#e8eef4"
_AGE_MOST_S = 180.0
_STROKE = 'fill="none" vector-effect="non-scaling-stroke" stroke-linejoin="round"'


def draw_slots(runs: Sequence[RunResult]) -> str:
    """Return the slots of each run as a line over the load, which is an area."""
    seconds = _find_length(runs)
    top = 1.08 * max(line[2] for run in runs for line in run.lines)
    loads = [(line[0], line[1]) for line in runs[0].lines]
    most = 1.08 * max(rate for _, rate in loads)
    points = " ".join(_place(at, rate / most, seconds) for at, rate in loads)
    last = WIDTH * loads[-1][0] / seconds
    area = f'<polygon fill="{LOAD}" points="0,{HEIGHT:.0f} {points} {last:.1f},{HEIGHT:.0f}"/>'
    lines = [_draw_steps([(one[0], one[2] / top) for one in run.lines], seconds, run.policy) for run in runs]
    return _frame("slots of each policy over the load", [area, _draw_loss(runs, seconds), *lines])


def draw_ages(runs: Sequence[RunResult], late_after_s: float) -> str:
    """Return the age of the oldest record of each run as a line, cut off at three minutes; dashed: late."""
    seconds = _find_length(runs)
    y = HEIGHT * (1 - late_after_s / _AGE_MOST_S)
    limit = (
        f'<line x1="0" x2="{WIDTH:.0f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#a8321f" stroke-dasharray="6 5" {_STROKE}/>'
    )
    lines = [
        f'<polyline {_STROKE} stroke="{COLOURS[run.policy]}" stroke-width="2" points="'
        + " ".join(_place(one[0], min(one[3], _AGE_MOST_S) / _AGE_MOST_S, seconds) for one in run.lines)
        + '"/>'
        for run in runs
    ]
    return _frame("age of the oldest record under each policy", [limit, _draw_loss(runs, seconds), *lines])


def _find_length(runs: Sequence[RunResult]) -> float:
    return max(run.span_s[1] - run.span_s[0] for run in runs)


def _place(at_s: float, share: float, seconds: float) -> str:
    return f"{WIDTH * at_s / seconds:.1f},{HEIGHT * (1 - share):.1f}"


def _draw_steps(points: Sequence[tuple[float, float]], seconds: float, policy: str) -> str:
    places, before = [], points[0][1]
    for at_s, share in points:
        places += [_place(at_s, before, seconds), _place(at_s, share, seconds)]
        before = share
    return f'<polyline {_STROKE} stroke="{COLOURS[policy]}" stroke-width="2" points="{" ".join(places)}"/>'


def _draw_loss(runs: Sequence[RunResult], seconds: float) -> str:
    lost = [run.lost_at_s for run in runs if run.lost_at_s is not None]
    if not lost:
        return ""
    x = WIDTH * lost[0] / seconds
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT:.0f}" stroke="#c9d1da" stroke-width="2" {_STROKE}/>'


def _frame(label: str, parts: Sequence[str]) -> str:
    head = f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" preserveAspectRatio="none" role="img" aria-label="{label}">'
    return "".join([head, *parts, "</svg>"])
