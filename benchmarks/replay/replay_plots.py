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


def draw(result: CaseResult, case: ReplayCase, path: Path) -> None:
    """Draw one trace and job: all of it, its last days, and the costs."""
    figure = Figure(figsize=(13, 11), layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=[1, 1, 1.3])
    days = len(result.arrivals_per_s) * case.conditions.cadence.window_s / 86_400
    whole, detail = figure.add_subplot(grid[0, :]), figure.add_subplot(grid[1, :])
    shown = choose_shown(result)
    _draw_over_time(whole, result, case, shown, days)
    whole.set_title(f"{case.trace.name}, {case.job}: load and slots, first seed")
    _draw_over_time(detail, result, case, shown, min(days, _DAYS_DETAILED))
    detail.set_title("its last days")
    for column, segment in enumerate(_SEGMENT_TITLES):
        _draw_costs(figure.add_subplot(grid[2, column]), result, segment)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def choose_shown(result: CaseResult) -> list[str]:
    """Return the candidates that are shown over time."""
    by_cost = sorted(result.slots, key=lambda name: _find_cost(result, name, "all"))
    return [*(name for name in _FIRST if name in result.slots), *(name for name in by_cost if name not in _FIRST)][
        :SHOWN
    ]


def _find_cost(result: CaseResult, policy: str, segment: str) -> float:
    return compute_mean([row for row in result.rows if row["policy"] == policy and row["segment"] == segment], "cost")


def _draw_over_time(axes: Axes, result: CaseResult, case: ReplayCase, shown: list[str], days: float) -> None:
    window_s = case.conditions.cadence.window_s
    count = round(days * 86_400 / window_s)
    times = (case.trace.start_s + window_s * np.arange(len(result.arrivals_per_s)))[-count:] / 86_400  # days since 1970
    load = result.arrivals_per_s.sum(axis=1)[-count:]
    axes.fill_between(times, load, color="0.88", lw=0)
    axes.set_ylabel("load, records/s")
    axes.set_ylim(0, None)
    slots = axes.twinx()
    for name in shown:
        slots.step(times, result.slots[name][-count:], where="post", lw=1.0, label=name)
    slots.set_ylabel("slots")
    slots.set_ylim(0, None)
    slots.legend(loc="lower right", ncols=len(shown), fontsize=8)
    axes.xaxis_date()
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(axes.xaxis.get_major_locator()))
    axes.margins(x=0)


def _draw_costs(axes: Axes, result: CaseResult, segment: str) -> None:
    """Draw the cost of each candidate, cheapest above."""
    names = sorted(result.slots, key=lambda name: _find_cost(result, name, segment))
    costs = [_find_cost(result, name, segment) for name in names]
    least = _find_cost(result, FLOOR, segment)
    axes.barh(names, costs, color=["tab:green" if name in _FIRST else "tab:blue" for name in names])
    axes.invert_yaxis()
    # A candidate that was late all the time would hide the differences of the others.
    axes.set_xlim(0, min(max(costs), 4.0 * min(costs)) * 1.12)
    for place, cost in enumerate(costs):
        inside = min(cost, axes.get_xlim()[1] * 0.9)
        axes.text(inside, place, f" {cost / least:.2f}", va="center", fontsize=7)
    axes.tick_params(axis="y", labelsize=7)
    axes.set_title(f"cost, {_SEGMENT_TITLES[segment]} (number: / clairvoyant)", fontsize=10)
