"""What the calibrated intervals of capacities cover, forward in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from models.capacity.conformal import LEVELS, Z
from models.capacity.interval_calibration import SupportRegion
from models.training.calibration import Residuals, scale_intervals
from models.training.operator_fits import OperatorFit

_MIN_ROWS = 30  # of both halves of the hours ahead


def measure_coverage(fitted: Sequence[OperatorFit], residuals: Residuals) -> pd.DataFrame:
    """Return what intervals cover that were calibrated on the earlier half of the hours ahead, in the later half.

    One row per place and level: ``place``, ``level``, ``covered`` (NaN with too few windows), ``windows``.
    """
    middle = float(np.median(residuals.start_s)) if len(residuals.start_s) else 0.0
    earlier, later = residuals.take(residuals.start_s < middle), residuals.take(residuals.start_s >= middle)
    scale = scale_intervals(earlier, fitted)
    absolute, place = np.abs(later.residual), later.place
    enough = min(len(earlier.place), len(later.place)) >= _MIN_ROWS
    rows = []
    for column, level in enumerate(LEVELS):
        inside = absolute <= (scale[:, column] * Z[column])[place]
        for name, mine in (("all", place >= 0), *((one.name.lower(), place == one) for one in SupportRegion)):
            covered = float(inside[mine].mean()) if enough and mine.any() else float("nan")
            rows.append({"place": name, "level": level, "covered": covered, "windows": int(mine.sum())})
    return pd.DataFrame(rows)


def coverage_measures(coverage: pd.DataFrame) -> dict[str, float]:
    """Return rows of :func:`measure_coverage` by names of metrics."""
    levels, places = coverage["level"].to_numpy(float), coverage["place"]
    names = [f"coverage_{100.0 * level:.0f}_{place}" for level, place in zip(levels, places, strict=True)]
    return dict(zip(names, coverage["covered"].to_numpy(float).tolist(), strict=True))


def coverage_figure(coverage: pd.DataFrame) -> Figure:
    """Draw what intervals cover beside what they promise, apart for the places."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    names = list(dict.fromkeys(coverage["place"]))
    for offset, (level, colour) in enumerate(zip(LEVELS, ("#2563a8", "#d1495b"), strict=True)):
        mine = coverage[coverage["level"] == level].set_index("place").loc[names]
        bars = axis.bar(np.arange(len(names)) + 0.4 * offset - 0.2, mine["covered"].fillna(0.0), 0.36, color=colour)
        axis.bar_label(bars, [_text(value) for value in mine["covered"]], fontsize=8)
        axis.axhline(level, color=colour, lw=0.8, ls="--", label=f"promised {level:.0%}")
    windows = coverage[coverage["level"] == LEVELS[0]].set_index("place").loc[names, "windows"]
    axis.set_xticks(np.arange(len(names)), [f"{name}\n{count:,} windows" for name, count in windows.items()])
    axis.set(ylim=(0, 1.1), ylabel="share of the hours ahead inside the interval")
    axis.legend(loc="lower right")
    return figure


def _text(covered: float) -> str:
    return "unknown" if np.isnan(covered) else f"{covered:.1%}"
