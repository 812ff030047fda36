"""The gate as a figure: every criterion, and the capacity errors by the hour."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from include.short_names import shorten_text
from models.training.gate import Criterion, Gate
from spark_jobs.plot_text import escape_dollars, plot_text
from spark_jobs.train.gate_criteria import busy_or_all

CHALLENGER, REFERENCE = "#2563a8", "#9ca3af"
_WORSE = "#b91c1c"


def gate_table(gate: Gate) -> pd.DataFrame:
    """Return one row per criterion, as a reviewer reads it."""
    return pd.DataFrame(
        [
            {
                "criterion": one.name,
                "result": "worse" if one.is_worse else "not worse" if one.is_comparable else "not comparable",
                "decides": one.decides,
                "challenger": one.challenger,
                "reference": one.reference,
                "against": one.against,
                "rows": one.count,
                "reason": one.reason,
            }
            for one in gate.criteria
        ]
    )


def gate_figure(gate: Gate, hours: pd.DataFrame) -> Figure:
    """Draw a panel per criterion with both errors, and below them the capacity errors of the hours ahead.

    Args:
        gate: the verdict.
        hours: ForwardScores.capacity.
    """
    figure = Figure(figsize=(2.3 * len(gate.criteria), 7), layout="constrained")
    grid = figure.add_gridspec(2, len(gate.criteria))
    for place, one in enumerate(gate.criteria):
        _draw_criterion(figure.add_subplot(grid[0, place]), one)
    reference = "champion_error" if any(one.against == "champion" for one in gate.criteria) else "linear_error"
    _draw_hours(figure.add_subplot(grid[1, :]), busy_or_all(hours), reference)
    figure.suptitle(escape_dollars(shorten_text(f"gate: {gate.verdict}", 120)))
    return figure


def _draw_criterion(axis: Axes, one: Criterion) -> None:
    values = np.nan_to_num(np.array([one.challenger, one.reference]))
    bars = axis.bar(["challenger", plot_text(one.against, 16)], values, color=[CHALLENGER, REFERENCE])
    labels = [f"{value:.1%}" if np.isfinite(value) else "none" for value in (one.challenger, one.reference)]
    axis.bar_label(bars, labels, fontsize=7)
    result = f"worse, {one.count} rows" if one.is_worse else f"{one.count} rows"
    axis.set_title(f"{one.name}\n{result}", fontsize=8, color=_WORSE if one.is_worse else "black")
    axis.tick_params(labelsize=6)
    axis.margins(y=0.15)


def _draw_hours(axis: Axes, hours: pd.DataFrame, reference: str) -> None:
    for place, style in (("seen", "-"), ("unseen", "--")):
        mine = hours[hours["place"] == place]
        for column, colour, name in (("error", CHALLENGER, "challenger"), (reference, REFERENCE, "reference")):
            by_hour = mine.groupby("hour")[column].mean().dropna()
            if len(by_hour):
                axis.plot(by_hour.index, by_hour, style, color=colour, marker=".", label=f"{name}, {place}")
    axis.set_ylabel("capacity error, mean of the hour")
    axis.set_ylim(bottom=0)
    if axis.has_data():
        axis.legend(fontsize=7)
    axis.tick_params(labelsize=7)
