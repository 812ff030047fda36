"""Fig. 2a and 2b as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.papers.mdp_rl.years import DAYS
from models.arrays import Floats


def plot_learning(path: Path, days: Floats, curves: Mapping[str, Floats]) -> None:
    """Draw the mean cost since the start over days, one curve per policy."""
    figure, axes = _figure()
    for row, curve in curves.items():
        axes.plot(days, curve, label=row)
    axes.set_xscale("log")
    axes.set_xticks(DAYS, [str(day) for day in DAYS])
    axes.set_xlabel("time (days)")
    _finish(figure, axes, path)


def plot_cost_over_operators(path: Path, costs: Mapping[str, Sequence[float]]) -> None:
    """Draw the average cost over the number of operators, one curve per policy."""
    figure, axes = _figure()
    for row, values in costs.items():
        axes.plot(range(1, len(values) + 1), values, marker="o", label=row)
    axes.set_xticks(range(1, 1 + max(map(len, costs.values()))))
    axes.set_xlabel("number of operators")
    _finish(figure, axes, path)


def _figure() -> tuple[Figure, Any]:
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _finish(figure: Figure, axes: Any, path: Path) -> None:
    axes.set_ylabel("average cost per slot")
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
