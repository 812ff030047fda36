"""A replay as a picture: load and slots over time, and what each candidate policy cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.replay.replay_cases import FLOOR, CaseResult, ReplayCase
from benchmarks.replay.replay_tables import compute_mean

# Shown over time where they ran; the cheapest of the others fill up to SHOWN.
_FIRST = ("planner", FLOOR)
SHOWN = 4
_DAYS_DETAILED = 3.0
_SEGMENT_TITLES = {"all": "whole trace", "last_third": "last third"}


def name_plot(path: Path, trace: str, job: str, *, several: bool) -> Path:
    """Return where a picture goes; its name tells trace and job when there is more than one."""
    return path.with_name(f"{path.stem}_{trace}_{Path(job).stem}{path.suffix}") if several else path


def draw(found: CaseResult, case: ReplayCase, path: Path) -> None:
    """Draw one trace and job: all of it, its last days, and the costs."""
    figure = Figure(figsize=(13, 11), layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=[1, 1, 1.3])
    days = len(found.arrivals_per_s) * case.conditions.cadence.window_s / 86_400
    whole, detail = figure.add_subplot(grid[0, :]), figure.add_subplot(grid[1, :])
    shown = choose_shown(found)
    _draw_over_time(whole, found, case, shown, days)
    whole.set_title(f"{case.trace.name}, {case.job}: load and slots, first seed")
    _draw_over_time(detail, found, case, shown, min(days, _DAYS_DETAILED))
    detail.set_title("its last days")
    for column, segment in enumerate(_SEGMENT_TITLES):
        _draw_costs(figure.add_subplot(grid[2, column]), found, segment)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def choose_shown(found: CaseResult) -> list[str]:
    """Return the candidates that are shown over time."""
    by_cost = sorted(found.slots, key=lambda name: _find_cost(found, name, "all"))
    return [*(name for name in _FIRST if name in found.slots), *(name for name in by_cost if name not in _FIRST)][
        :SHOWN
    ]


def _find_cost(found: CaseResult, policy: str, segment: str) -> float:
    return compute_mean([row for row in found.rows if row["policy"] == policy and row["segment"] == segment], "cost")


def _draw_over_time(axes: Axes, found: CaseResult, case: ReplayCase, shown: list[str], days: float) -> None:
    window_s = case.conditions.cadence.window_s
    count = round(days * 86_400 / window_s)
    times = (case.trace.start_s + window_s * np.arange(len(found.arrivals_per_s)))[-count:] / 86_400  # days since 1970
    load = found.arrivals_per_s.sum(axis=1)[-count:]
    axes.fill_between(times, load, color="0.88", lw=0)
    axes.set_ylabel("load, records/s")
    axes.set_ylim(0, None)
    slots = axes.twinx()
    for name in shown:
        slots.step(times, found.slots[name][-count:], where="post", lw=1.0, label=name)
    slots.set_ylabel("slots")
    slots.set_ylim(0, None)
    slots.legend(loc="lower right", ncols=len(shown), fontsize=8)
    axes.xaxis_date()
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(axes.xaxis.get_major_locator()))
    axes.margins(x=0)


def _draw_costs(axes: Axes, found: CaseResult, segment: str) -> None:
    """Draw the cost of each candidate, cheapest above."""
    names = sorted(found.slots, key=lambda name: _find_cost(found, name, segment))
    costs = [_find_cost(found, name, segment) for name in names]
    least = _find_cost(found, FLOOR, segment)
    axes.barh(names, costs, color=["tab:green" if name in _FIRST else "tab:blue" for name in names])
    axes.invert_yaxis()
    # A candidate that was late all the time would hide the differences of the others.
    axes.set_xlim(0, min(max(costs), 4.0 * min(costs)) * 1.12)
    for place, cost in enumerate(costs):
        inside = min(cost, axes.get_xlim()[1] * 0.9)
        axes.text(inside, place, f" {cost / least:.2f}", va="center", fontsize=7)
    axes.tick_params(axis="y", labelsize=7)
    axes.set_title(f"cost, {_SEGMENT_TITLES[segment]} (number: / clairvoyant)", fontsize=10)
