"""The frontier: what each policy takes in slot-hours and stops for how many late minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.replay.cost_rows import BETWEEN, is_rival
from benchmarks.replay.cost_summary import AFTER, DEFAULT
from benchmarks.replay.evidence.frontier_forms import split_point
from benchmarks.replay.evidence.study_tables import Cells
from benchmarks.replay.replay_cases import Row
from fleet.frontier import FrontierPoint

_DAILY = ("slot_hours", "late_minutes_per_day", "rescales_per_day")
_LEAST_LATE = 0.1  # minutes a day: the axis is logarithmic


def build_curves(rows: Sequence[Row], traces: Sequence[str]) -> dict[str, list[FrontierPoint]]:
    """Return policy -> its points that every trace has, means of the traces, by late minutes.

    Args:
        rows: of the study of the frontier.
        traces: of which the means are taken.
    """
    points: dict[str, list[Row]] = {}
    for row in rows:
        if row["segment"] == AFTER and row["trace"] in traces and BETWEEN in str(row["policy"]):
            points.setdefault(str(row["policy"]), []).append(row)
    result: dict[str, list[FrontierPoint]] = {}
    for name, own in points.items():
        if {row["trace"] for row in own} == set(traces):
            policy, label = split_point(name)
            means = [float(np.mean([_read_daily(row, column) for row in own])) for column in _DAILY]
            result.setdefault(policy, []).append(FrontierPoint(label, *means))
    return {policy: sorted(each, key=lambda one: one.late_minutes) for policy, each in result.items()}


def _read_daily(row: Row, column: str) -> float:
    value = float(str(row[column]))
    return value / (float(str(row["days"])) - 1.0) if column == "slot_hours" else value


def interpolate_slot_hours(curve: Sequence[FrontierPoint], late_minutes: float) -> float | None:
    """Return the slot-hours a day of a policy at some late minutes a day; None outside of its curve.

    A policy that has fewer late minutes for fewer slot-hours at another point takes that point.
    """
    least: list[tuple[float, float]] = []
    for point in curve:
        if not least or point.slot_hours < least[-1][1]:
            least.append((point.late_minutes, point.slot_hours))
    lates, hours = zip(*least, strict=True)
    if late_minutes < lates[0]:
        return None
    return float(np.interp(late_minutes, lates, hours))


def build_equal_lateness(rows: Sequence[Row], groups: Mapping[str, Sequence[str]]) -> Cells:
    """Return per group of traces the slot-hours a day of the default, and its share of others' at equal late minutes.

    Args:
        rows: of the study of the frontier.
        groups: name -> traces.
    """
    headings = ["traces", "late min / day", "slot-hours / day", "best rival at as many", "over it", "controller alone"]
    cells: Cells = [headings]
    for name, traces in groups.items():
        curves = build_curves(rows, traces)
        own = {point.label: point for point in curves.get(DEFAULT, [])}
        if "late x1" not in own:
            continue
        point = own["late x1"]
        at = {other: interpolate_slot_hours(curve, point.late_minutes) for other, curve in curves.items()}
        rivals = {other: hours for other, hours in at.items() if hours is not None and is_rival(other)}
        best = min(rivals, key=rivals.__getitem__, default=None)
        alone = at.get("controller_alone")
        cells.append(
            [
                *(name, f"{point.late_minutes:.1f}", f"{point.slot_hours:.0f}"),
                *((best, f"{point.slot_hours / rivals[best]:.3f}") if best else ("none is as punctual", "-")),
                f"{point.slot_hours / alone:.3f}" if alone else "-",
            ]
        )
    return cells


def draw_frontier(rows: Sequence[Row], traces: Sequence[str], path: Path) -> None:
    """Draw late minutes against slot-hours and against rescales, a curve per policy."""
    curves = build_curves(rows, traces)
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    for policy, points in sorted(curves.items(), key=lambda item: (item[0] != DEFAULT, item[0])):
        lates = [max(point.late_minutes, _LEAST_LATE) for point in points]
        own = policy == DEFAULT
        style = {"marker": "o", "markersize": 5 if own else 3.5, "linewidth": 2.6 if own else 1.2, "label": policy}
        left.plot(lates, [point.slot_hours for point in points], **style)
        right.plot(lates, [point.rescales for point in points], **style)
    left.set_ylabel("slot-hours a day")
    right.set_ylabel("rescales a day")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("late minutes a day")
        axes.grid(alpha=0.3)
    right.legend(fontsize=8)
    figure.suptitle(f"{len(traces)} test traces: less and further left is better")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100, metadata={"Software": None})
