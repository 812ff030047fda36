"""Pictures of the experiments, as the paper draws them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.papers.dragster.dragster_experiments import Record
from benchmarks.papers.dragster.dragster_measures import ROWS, SLOT_MIN
from models.arrays import Floats

mpl.use("Agg")
_COLOURS = {"Dhalion": "tab:blue", "saddle": "tab:purple", "gradient": "tab:orange"}


def search_paths(file: Path, rates: Floats, free: Mapping[str, Record], tight: Mapping[str, Record]) -> None:
    """Draw Fig. 4: the configurations of the first run on the throughput map, without and with the budget.

    Args:
        file: to write.
        rates: (10, 10) throughput per Map and Shuffle tasks, records/s.
        free: scheme -> its record without a budget.
        tight: scheme -> its record with it.
    """
    figure = Figure(figsize=(13, 8.5), layout="constrained")
    axes = figure.subplots(2, 3)
    for row, (kind, records) in enumerate((("no budget", free), ("budget of 8 pods", tight))):
        for panel, name in zip(axes[row], ROWS, strict=True):
            image = panel.imshow(
                rates / 1e3, origin="lower", extent=(0.5, 10.5, 0.5, 10.5), cmap="gray", aspect="equal"
            )
            path = records[name].tasks[0]
            panel.plot(path[:, 1], path[:, 0], color=_COLOURS[name], marker="o", markersize=4, linewidth=1.2)
            observed: set[tuple[int, ...]] = set()
            for slot, point in enumerate(path, start=1):
                if (key := tuple(map(int, point))) not in observed:
                    observed.add(key)
                    panel.annotate(
                        str(slot), (point[1], point[0]), xytext=(4, 4), textcoords="offset points", color="red"
                    )
            panel.set(title=f"{ROWS[name]}, {kind}", xlabel="Shuffle tasks", ylabel="Map tasks")
        figure.colorbar(image, ax=axes[row], label="1,000 records/s", shrink=0.8)
    figure.savefig(file, dpi=110)


def over_time(file: Path, records: Mapping[str, Record], title: str) -> None:
    """Draw throughput and pods over time, of the first run of every scheme."""
    figure = Figure(figsize=(11, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for name, record in records.items():
        minutes = SLOT_MIN * np.arange(record.rate_per_s.shape[1])
        upper.step(minutes, record.rate_per_s[0] / 1e3, where="post", label=ROWS[name], color=_COLOURS[name])
        lower.step(minutes, record.pods[0], where="post", color=_COLOURS[name])
    upper.step(minutes, record.offered_per_s / 1e3, where="post", label="offered", color="black", linestyle=":")
    upper.set(title=title, ylabel="throughput, 1,000 records/s")
    upper.legend(loc="lower right")
    lower.set(xlabel="minutes", ylabel="pods")
    figure.savefig(file, dpi=110)


def bars(file: Path, minutes: Mapping[str, Mapping[str, Floats]]) -> None:
    """Draw Fig. 5: mean minutes to convergence per workload and scheme."""
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    panel = figure.subplots()
    at = np.arange(len(minutes))
    for index, (name, row) in enumerate(ROWS.items()):
        height = [float(each[name].mean()) for each in minutes.values()]
        panel.bar(at + 0.27 * (index - 1), height, 0.25, label=row, color=_COLOURS[name])
    panel.set_xticks(at, list(minutes), rotation=30, ha="right")
    panel.set(ylabel="minutes to convergence", title="Convergence of the workloads (Fig. 5)")
    panel.legend()
    figure.savefig(file, dpi=110)


def falling(file: Path, curves: Mapping[str, Floats]) -> None:
    """Draw regret and fit per slot over the number of slots."""
    figure = Figure(figsize=(10, 5), layout="constrained")
    panel = figure.subplots()
    for name, values in curves.items():
        panel.plot(np.arange(1, len(values) + 1), values, label=name)
    panel.axhline(0.0, color="black", linewidth=0.5)
    panel.set(
        xlabel="T, slots", ylabel="per slot, share of the load", title="Dynamic regret and fit per slot (Theorem 1)"
    )
    panel.legend(fontsize="small")
    figure.savefig(file, dpi=110)
