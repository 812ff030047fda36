"""The gate as a figure: every criterion, and the capacity errors by the hour."""

from __future__ import annotations

from collections.abc import Sequence

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
                "result": one.lack or ("worse" if one.is_worse else "not worse"),
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
    """Draw both errors of every criterion with what the gate tolerates, and the capacity errors of the hours ahead."""
    figure = Figure(figsize=(8, 3.4 + 0.4 * len(gate.criteria)), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(max(len(gate.criteria), 3), 6))
    _draw_criteria(above, gate.criteria)
    reference = "champion_error" if any(one.against == "champion" for one in gate.criteria) else "linear_error"
    _draw_hours(below, busy_or_all(hours), reference)
    figure.suptitle(escape_dollars(shorten_text(f"gate: {gate.verdict}; {gate.detail}", 90)))
    return figure


def _draw_criteria(axis: Axes, criteria: Sequence[Criterion]) -> None:
    """Draw a line per criterion, the first on top; a mark shows up to where the gate lets a challenger pass."""
    names = []
    for place, one in enumerate(reversed(criteria)):
        names.append(plot_text(one.name, 40) + ("" if one.decides else " (shown only)"))
        colour = _WORSE if one.is_worse else CHALLENGER
        for value, mark, tint in ((100 * one.reference, "|", REFERENCE), (100 * one.challenger, "o", colour)):
            if np.isfinite(value):
                axis.plot(value, place, mark, color=tint, ms=12 if mark == "|" else 7, mew=2)
        if one.is_comparable:
            limit = 100 * (one.reference + one.tolerance + one.chance)
            axis.hlines(place, 100 * one.reference, limit, color=REFERENCE, lw=5, alpha=0.35)
            values = f"{one.challenger:.2%} against {one.reference:.2%}"
            text = f"  {values} of the {plot_text(one.against, 16)}, {one.count} rows"
        else:
            text = f"  {one.lack}"
        axis.annotate(text, (1.0, place), xycoords=("axes fraction", "data"), va="center", fontsize=8)
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.set(
        xlabel="error, % (dot: challenger; stroke: reference; bar: what is tolerated)", ylim=(-0.6, len(names) - 0.4)
    )
    axis.set_xlim(left=0)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_hours(axis: Axes, hours: pd.DataFrame, reference: str) -> None:
    for place, style in (("seen", "-"), ("unseen", "--")):
        mine = hours[hours["place"] == place]
        for column, colour, name in (("error", CHALLENGER, "challenger"), (reference, REFERENCE, "reference")):
            by_hour = mine.groupby("hour")[column].mean().dropna()
            if len(by_hour):
                axis.plot(by_hour.index, by_hour, style, color=colour, marker=".", label=f"{name}, {place}")
    axis.set_ylabel("capacity error, hourly mean")
    axis.set_ylim(bottom=0)
    if axis.lines:
        axis.legend(fontsize=8)
    else:
        axis.text(0.5, 0.5, "no hours ahead were predicted", ha="center", va="center", transform=axis.transAxes)
    axis.tick_params(labelsize=7)
