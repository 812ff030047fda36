"""Plots of Phoebe's evaluation: recovery per failure, workers over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.papers.phoebe import phoebe_measures, phoebe_setup
from benchmarks.papers.phoebe.phoebe_runs import Runs
from benchmarks.papers.phoebe.phoebe_setup import Experiment

_COMPARED = ("Static24", "Static12", "Phoebe", "TWRES", "Reactive")
_SCALING = ("Phoebe", "TWRES", "Reactive")
_TARGET_S = 180.0


def recovery_per_failure(recorded: Sequence[tuple[Experiment, Runs]], published: dict[str, Any], path: Path) -> None:
    """Draw means and ranges over repetitions as bars, the published figures as crosses; 360 s stands for 6m+."""
    figure, panels = plt.subplots(len(recorded), 1, figsize=(11, 7), layout="constrained")
    numbers, width = np.arange(1, phoebe_setup.FAILURES + 1), 0.8 / len(_COMPARED)
    for panel, (experiment, runs) in zip(np.atleast_1d(panels), recorded, strict=True):
        recovered = phoebe_measures.recovery_s(runs, experiment.normal_ms)
        for place, name in enumerate(_COMPARED):
            mine = recovered[runs.of(name)]
            mean = mine.mean(axis=0)
            at = numbers + (place - (len(_COMPARED) - 1) / 2) * width
            reach = np.stack([mean - mine.min(axis=0), mine.max(axis=0) - mean])
            panel.bar(at, mean, width, yerr=reach, label=name, error_kw={"linewidth": 0.8})
            theirs = [
                phoebe_setup.SIX_MINUTES_S if s is None else s for s in published["recovery_s"][experiment.name][name]
            ]
            panel.plot(at, theirs, "kx", markersize=4, label="published" if place == 0 else None)
        panel.axhline(_TARGET_S, color="grey", linewidth=0.8, linestyle="--")
        panel.set(title=experiment.name, xlabel="failure", ylabel="recovery, s (360: 6m+)", xticks=numbers)
    handles, labels = np.atleast_1d(panels)[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=len(labels), fontsize="small", loc="outside upper center")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def workers_over_time(recorded: Sequence[tuple[Experiment, Runs]], path: Path) -> None:
    """Draw the workload, and the workers of the systems that scale in the first repetition; failures as grey lines."""
    figure, panels = plt.subplots(len(recorded), 1, figsize=(11, 7), layout="constrained")
    for panel, (experiment, runs) in zip(np.atleast_1d(panels), recorded, strict=True):
        hours = runs.end_s / 3600.0
        load = panel.twinx()
        seconds = np.arange(0, phoebe_setup.DURATION_S, 60)
        load.plot(seconds / 3600.0, experiment.rate_per_s[seconds] / 1000.0, color="lightgrey", label="workload")
        load.set_ylabel("workload, 1000 records/s")
        for name in _SCALING:
            panel.step(hours, runs.workers[:, runs.of(name)[0]], where="pre", linewidth=1.0, label=name)
        for at in phoebe_setup.failure_times_s():
            panel.axvline(at / 3600.0, color="grey", linewidth=0.6, linestyle=":")
        panel.set(title=experiment.name, xlabel="hour", ylabel="workers", ylim=(0, phoebe_setup.WORKERS_MAX + 1))
        panel.set_zorder(load.get_zorder() + 1)
        panel.patch.set_visible(False)
    np.atleast_1d(panels)[0].legend(loc="upper left", fontsize="small")
    figure.savefig(path, dpi=120)
    plt.close(figure)
