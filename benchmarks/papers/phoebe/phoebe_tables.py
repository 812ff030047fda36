"""Rows of Phoebe's tables: ours beside the published figures.

A recovery of more than six minutes, "6m+" in the paper, counts as 360 s on both sides.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.phoebe import phoebe_measures, phoebe_plots, phoebe_setup
from benchmarks.papers.phoebe.phoebe_runs import ALGORITHM_1, LOOSER, PROTOTYPE, SYSTEMS, Bench, Runs
from benchmarks.papers.phoebe.phoebe_setup import Experiment
from include.utc import DAY_S
from lab.policies.phoebe.capacity_profile import CapacityRegression, LatencyClasses
from lab.policies.phoebe.twres import SustainableThroughput
from lab.profiling.profiling import ProfilingOptions, profile, worker_seconds
from lab.profiling.rows import Profile
from lab.simulation.profiling_adapter import SimulatedProfiling
from models.arrays import Floats, Ints

_TABLE = {"TSW": "II(a)", "YSB": "II(b)"}
_PROFILE = phoebe_setup.DATA.parent / "cases" / "phoebe_profile_cars.csv"
_UNDER_BACKLOG = "1"
# Long enough that no recovery is cut off, and shorter than the time between failures.
_LONGEST_RECOVERY_S = 1800.0
# Readings of the paper that are compared with the same published row, among them Phoebe as its text evaluates.
_PUBLISHED_ROW = {"Reactive80": "Reactive", ALGORITHM_1: PROTOTYPE, LOOSER: PROTOTYPE, "Phoebe600": PROTOTYPE}
_PHOEBES = (PROTOTYPE, ALGORITHM_1, LOOSER)


def tables(progress: Callable[[str], None], out: Path) -> list[Cell]:
    """Return every cell, and write the plots to ``out``."""
    published = json.loads((phoebe_setup.DATA / "phoebe.json").read_text())
    cells = _profile_cells(published["profile_reference"])
    recorded = []
    for experiment in (phoebe_setup.tsw(), phoebe_setup.ysb()):
        progress(f"phoebe: {experiment.name}, profiling")
        profiles = run_profiling(experiment, phoebe_setup.REPETITIONS)
        runs = Bench(experiment, profiles).run(progress)
        recorded.append((experiment, runs))
        cells += _recovery_cells(experiment, runs, published)
        cells += _summary_cells(experiment, runs, profiles, published)
    out.mkdir(parents=True, exist_ok=True)
    phoebe_plots.recovery_per_failure(recorded, published, out / "phoebe_recovery.png")
    phoebe_plots.workers_over_time(recorded, out / "phoebe_workers.png")
    return cells


def run_profiling(experiment: Experiment, repetitions: int) -> list[Profile]:
    """Return a profile per repetition: the profiling phase is run for each."""
    return [
        profile(
            SimulatedProfiling(
                experiment.job, phoebe_setup.END_TO_END, capacity_deviation=phoebe_setup.CAPACITY_DEVIATION, seed=number
            ),
            ProfilingOptions(),
        )
        for number in range(repetitions)
    ]


def _cell(
    table: str, row: str, column: str, values: Floats | Ints | Sequence[float], published: float | None, *, unit: str
) -> Cell:
    """Return mean and spread over repetitions; the spread is None for a single value."""
    several = np.asarray(values, float)
    spread = float(several.std(ddof=1)) if len(several) > 1 else None
    return Cell("phoebe", table, row, column, float(several.mean()), published, unit, len(several), spread)


def _profile_cells(reference: dict[str, Any]) -> list[Cell]:
    """Return the models of the published profile beside a reference fit."""
    with _PROFILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    backlog = [row for row in rows if row["isBckPres"] == _UNDER_BACKLOG]
    workers = [float(row["scaleOut"]) for row in backlog]
    capacity = [float(row["avgThr"]) for row in backlog]
    latency = np.array([float(row["avgLat"]) for row in rows if row["isBckPres"] != _UNDER_BACKLOG])
    ridge, nnls = CapacityRegression.fit(workers, capacity), SustainableThroughput.fit(workers, capacity)
    abnormal = int(LatencyClasses.fit(latency).classify(latency).sum())
    result = {
        "ridge_slope_per_s": ridge.slope_per_s,
        "ridge_intercept_per_s": ridge.intercept_per_s,
        "nnls_constant_per_s": float(nnls.weights[0]),
        "nnls_slope_per_s": float(nnls.weights[1]),
        "normal": float(len(latency) - abnormal),
        "abnormal": float(abnormal),
    }
    units = {"normal": "rows", "abnormal": "rows"}
    return [
        _cell("profile", "TSW", name, [value], float(reference[name]), unit=units.get(name, "records/s"))
        for name, value in result.items()
    ]


def _recovery_cells(experiment: Experiment, runs: Runs, published: dict[str, Any]) -> list[Cell]:
    """Return one table: recovery per failure, reconfigurations, and the mean distance of a row from the published."""
    recovered = phoebe_measures.recovery_s(runs, experiment.normal_ms)
    table, cells = _TABLE[experiment.name], []
    for system in SYSTEMS:
        mine = runs.of(system.name)
        row = _PUBLISHED_ROW.get(system.name, system.name)
        known = [
            phoebe_setup.SIX_MINUTES_S if s is None else float(s) for s in published["recovery_s"][experiment.name][row]
        ]
        for number, theirs in enumerate(known):
            cells.append(
                _cell(table, system.name, f"#{number + 1}", recovered[mine, number], theirs, unit="s (360: 6m+)")
            )
        changes = published["reconfigurations"][experiment.name].get(row)
        if changes is not None:
            cells.append(_cell(table, system.name, "reconfigurations", runs.reconfigurations[mine], changes, unit="1"))
        ours = recovered[mine].mean(axis=0)
        apart = 100.0 * float(np.mean(np.abs(ours - known) / known))
        cells.append(_cell(table, system.name, "mean distance from the published row", [apart], None, unit="%"))
    return cells


def _summary_cells(
    experiment: Experiment, runs: Runs, profiles: Sequence[Profile], published: dict[str, Any]
) -> list[Cell]:
    """Return savings, latencies and prediction errors of Section IV-E."""
    name, cells = experiment.name, []
    saving, near = phoebe_measures.saving_percent(runs), phoebe_measures.near_optimal_percent(runs)
    shares = published["near_optimal_latency_percent"][name]
    for system in SYSTEMS:
        mine = runs.of(system.name)
        row = _PUBLISHED_ROW.get(system.name, system.name)
        cells.append(
            _cell("6(c,d)", f"{name} {system.name}", "near-optimal latency", near[mine], shares.get(row), unit="%")
        )
        if system.name not in {*_PHOEBES, "Static24"}:
            cells.append(_cell("6(e,f)", f"{name} {system.name}", "saving", saving[mine], None, unit="%"))
    for system_name in _PHOEBES:
        cells += _phoebe_cells(experiment, system_name, runs, profiles, published)
    return cells


def _phoebe_cells(
    experiment: Experiment, system: str, runs: Runs, profiles: Sequence[Profile], published: dict[str, Any]
) -> list[Cell]:
    """Return what Section IV-E says of Phoebe, for one reading of it."""
    name, cells, mine = experiment.name, [], runs.of(system)
    saving, known = phoebe_measures.saving_percent(runs), published["saving_percent"][experiment.name]
    cost = np.array([worker_seconds(one, ProfilingOptions()) for one in profiles])
    static = phoebe_setup.WORKERS_MAX * np.array([phoebe_setup.DURATION_S, DAY_S], float)
    row = f"{name} {system}"
    cells.append(_cell("IV-E", row, "saving", saving[mine], known["runtime"], unit="%"))
    # The paper does not say how it counts profiling; here every deployment's workers count for as long as it runs.
    for column, length, key in (("with profiling", 0, "with_profiling"), ("after a day", 1, "first_day")):
        remaining = saving[mine] - 100.0 * cost / static[length]
        cells.append(_cell("IV-E", row, f"saving {column}", remaining, known[key], unit="%"))
    whole = phoebe_measures.recovery_s(runs, experiment.normal_ms, _LONGEST_RECOVERY_S)[mine]
    error = published["recovery_error_percent"][name]
    for column, expected in (
        ("recovery error", runs.expected_recovery_s),
        ("recovery error of the last evaluation", runs.evaluated_recovery_s),
    ):
        off = phoebe_measures.prediction_error_percent(expected[mine], whole)
        cells.append(_cell("IV-E", row, column, off, error if column == "recovery error" else None, unit="%"))
    return cells
