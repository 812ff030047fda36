"""Pictures of the reconfigurations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.papers.cells import Cell
from benchmarks.papers.conttune.conttune_published import QUERIES
from benchmarks.papers.conttune.query_runs import Outcome

mpl.use("Agg")
_COLOURS = {"DS2": "tab:blue", "ContTune_a0": "tab:orange", "ContTune_a3": "tab:green"}


def reconfigurations(file: Path, cells: Sequence[Cell], real: Sequence[Cell]) -> None:
    """Draw Table 4a and Fig. 7: ours as bars, the published figures as marks."""
    figure = Figure(figsize=(13, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    known = {(cell.row, cell.column): cell for cell in cells if cell.table == "4a"}
    jobs = list(dict.fromkeys(cell.row.split(", ")[0] for cell in real))
    totals = {tuple(cell.row.split(", ")): cell for cell in real if cell.column == "reconfigurations"}
    for place, (method, colour) in enumerate(_COLOURS.items()):
        _bars(left, [known[method, name] for name in QUERIES], place, method, colour)
        _bars(right, [totals[name, method] for name in jobs], place, method, colour)
    left.set(ylabel="reconfigurations per tuning", title="Synthetic workloads (Table 4a)")
    left.set_xticks(range(len(QUERIES)), QUERIES)
    right.set(ylabel="reconfigurations", title="Real jobs (Fig. 7)")
    right.set_xticks(range(len(jobs)), jobs)
    left.legend()
    figure.savefig(file, dpi=120)


def _bars(axes: mpl.axes.Axes, cells: Sequence[Cell], place: int, label: str, colour: str) -> None:
    at = np.arange(len(cells)) + 0.27 * (place - 1)
    spread = [cell.spread or 0.0 for cell in cells]
    axes.bar(at, [cell.ours for cell in cells], 0.25, yerr=spread, label=label, color=colour, alpha=0.8)
    published = [np.nan if cell.published is None else cell.published for cell in cells]
    axes.plot(at, published, "k_", markersize=11, label="published" if place == 0 else None)


def course(file: Path, query: str, outcomes: dict[str, Outcome]) -> None:
    """Draw reconfigurations and cores over the tunings of one permutation, as Fig. 6 does."""
    figure = Figure(figsize=(10, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for method, colour in _COLOURS.items():
        one = outcomes[method]
        tunings = np.arange(1, one.factor.shape[2] + 1)
        upper.plot(
            tunings, one.cores[0, 0], color=colour, marker="o", markersize=3, drawstyle="steps-mid", label=method
        )
        lower.plot(tunings, one.reconfigurations[0, 0].cumsum(), color=colour, marker="o", markersize=3)
    rate = upper.twinx()
    rate.plot(tunings, outcomes["DS2"].factor[0, 0], color="0.7", drawstyle="steps-mid", zorder=0)
    rate.set_ylabel("rate, workload units")
    upper.set(ylabel="cores", title=f"{query}, first permutation")
    upper.legend()
    lower.set(xlabel="tuning", ylabel="reconfigurations so far")
    lower.set_xticks(tunings)
    figure.savefig(file, dpi=120)
