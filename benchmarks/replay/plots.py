"""A replay as a picture: load and slots over time, and what each candidate policy cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.replay.replay_cases import FLOOR, Found, Run
from benchmarks.replay.table import mean

# Shown over time where they ran; the cheapest of the others fill up to SHOWN.
_FIRST = ("planner", FLOOR)
SHOWN = 4
_DAYS_DETAILED = 3.0
_SEGMENT_TITLES = {"all": "whole trace", "last_third": "last third"}


def path_of(path: Path, trace: str, job: str, *, several: bool) -> Path:
    """Return where a picture goes; its name tells trace and job when there is more than one."""
    return path.with_name(f"{path.stem}_{trace}_{Path(job).stem}{path.suffix}") if several else path


def draw(found: Found, run: Run, path: Path) -> None:
    """Draw one trace and job: all of it, its last days, and the costs."""
    figure = Figure(figsize=(13, 11), layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=[1, 1, 1.3])
    days = len(found.arrivals_per_s) * run.conditions.cadence.window_s / 86_400
    whole, detail = figure.add_subplot(grid[0, :]), figure.add_subplot(grid[1, :])
    shown = shown_of(found)
    _over_time(whole, found, run, shown, days)
    whole.set_title(f"{run.trace.name}, {run.job}: load and slots, first seed")
    _over_time(detail, found, run, shown, min(days, _DAYS_DETAILED))
    detail.set_title("its last days")
    for column, segment in enumerate(_SEGMENT_TITLES):
        _costs(figure.add_subplot(grid[2, column]), found, segment)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def shown_of(found: Found) -> list[str]:
    """Return the candidate policies that are shown over time."""
    by_cost = sorted(found.slots, key=lambda name: _cost(found, name, "all"))
    return [*(name for name in _FIRST if name in found.slots), *(name for name in by_cost if name not in _FIRST)][
        :SHOWN
    ]


def _cost(found: Found, policy: str, segment: str) -> float:
    return mean([row for row in found.rows if row["policy"] == policy and row["segment"] == segment], "cost")


def _over_time(axes: Axes, found: Found, run: Run, shown: list[str], days: float) -> None:
    window_s = run.conditions.cadence.window_s
    count = round(days * 86_400 / window_s)
    times = (run.trace.start_s + window_s * np.arange(len(found.arrivals_per_s)))[-count:] / 86_400  # days since 1970
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


def _costs(axes: Axes, found: Found, segment: str) -> None:
    """Draw the cost of each candidate policy in its parts, cheapest above."""
    names = sorted(found.slots, key=lambda name: _cost(found, name, segment))
    costs = [_cost(found, name, segment) for name in names]
    least = _cost(found, FLOOR, segment)
    axes.barh(names, costs, color=["tab:green" if name in _FIRST else "tab:blue" for name in names])
    axes.invert_yaxis()
    # A candidate policy that was late all the time would squeeze all the others.
    axes.set_xlim(0, min(max(costs), 4.0 * min(costs)) * 1.12)
    for place, cost in enumerate(costs):
        inside = min(cost, axes.get_xlim()[1] * 0.9)
        axes.text(inside, place, f" {cost / least:.2f}", va="center", fontsize=7)
    axes.tick_params(axis="y", labelsize=7)
    axes.set_title(f"cost, {_SEGMENT_TITLES[segment]} (number: / clairvoyant)", fontsize=10)
