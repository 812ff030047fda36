"""Theorem 1 on the simulator: regret and fit grow slower than time; and what the unpublished settings change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.dragster import dragster_plots
from benchmarks.papers.dragster.dragster_experiments import (
    Progress,
    Record,
    Tuner,
    is_near,
    make_dragsters,
    play,
    slots_to_converge,
)
from benchmarks.papers.dragster.dragster_jobs import HIGH_PER_S, Application, word_count
from benchmarks.papers.dragster.dragster_measures import ROWS, cell
from models.arrays import Floats
from models.policies.dragster.dragster_options import Bonus, Options, Target
from models.policies.dragster.lagrangian import Problem
from models.policies.dragster.network import flow
from models.policies.dragster.regret import dynamic_fit, dynamic_regret

RUNS = 10
_SLOTS = 100
_SHOWN = (10, 25, 50, 100)

VARIANTS = {
    "as used": Options(),
    "kernel deviation 0.1": Options(prior_deviation=0.1),
    "kernel deviation 0.2": Options(prior_deviation=0.2),
    "kernel deviation 0.5": Options(prior_deviation=0.5),
    "kernel deviation 1": Options(prior_deviation=1.0),
    "zero prior mean": Options(linear_prior=False),
    "zero prior mean, kernel deviation 1": Options(linear_prior=False, prior_deviation=1.0),
    "sqrt(beta) sigma": Options(bonus=Bonus.DEVIATION),
    "sqrt(beta) sigma, zero prior mean, kernel deviation 1": Options(
        bonus=Bonus.DEVIATION, linear_prior=False, prior_deviation=1.0
    ),
}


def regret_and_fit(progress: Progress, out: Path) -> list[Cell]:
    """Return Reg_T / T and Fit_T / T at constant load for growing T, which must fall."""
    app, cells, curves = word_count(), [], {}
    for target in Target:
        progress(f"dragster: Theorem 1, {ROWS[target.value]}")
        record = play(app, np.full(_SLOTS, HIGH_PER_S), make_dragsters(app, Options(target=target), RUNS), seed=4)
        throughput, excess = _throughput_and_excess(app, record)
        measured = {
            "Reg_T / (T f*)": dynamic_regret(np.ones_like(throughput), throughput),
            "Fit_T / T": dynamic_fit(excess),
            # capacity left over in one slot does not serve what another could not: the stricter reading
            "Fit_T / T, excess only": dynamic_fit(np.maximum(excess, 0.0)),
        }
        for name, values in measured.items():
            share = values / np.arange(1, _SLOTS + 1)
            curves[f"{ROWS[target.value]}: {name}"] = share.mean(axis=0)
            cells += [
                cell("Theorem 1", ROWS[target.value], f"{name}, T = {at}", share[:, at - 1], "share") for at in _SHOWN
            ]
    dragster_plots.falling(out / "dragster_regret.png", curves)
    return cells


def sensitivity(progress: Progress) -> list[Cell]:
    """Return the slots to convergence of WordCount under other readings of what the paper leaves open."""
    progress("dragster: settings that the paper leaves open")
    app, cells = word_count(), []
    tuners: list[Tuner] = []
    keys = [(name, target) for name in VARIANTS for target in Target]
    for name, target in keys:
        tuners += make_dragsters(app, replace(VARIANTS[name], target=target), RUNS)
    record = play(app, np.full(20, HIGH_PER_S), tuners, seed=5)
    good = is_near(record.rate_per_s, HIGH_PER_S)
    converged = np.array([slots_to_converge(row) for row in good]).reshape(len(keys), RUNS)
    for (name, target), values in zip(keys, converged, strict=True):
        cells.append(cell("open settings", f"{ROWS[target.value]}, {name}", "slots to converge", values, "slots"))
    return cells


def _throughput_and_excess(app: Application, record: Record) -> tuple[Floats, Floats]:
    """Return (R, T) f_t(y) / f_t(y*) and (R, M, T) l_i, of the true capacities; every operator's selectivity is 1."""
    names, offered = app.net.tuned, float(record.offered_per_s[0])
    source = dict.fromkeys(app.net.graph.sources, offered)
    problem = Problem(app.net, source, dict.fromkeys(names, offered))
    shape = record.capacity_per_s.shape
    throughput, excess = np.zeros(shape[:2]), np.zeros((shape[0], shape[2], shape[1]))
    for run, slot in np.ndindex(*shape[:2]):
        capacity = dict(zip(names, map(float, record.capacity_per_s[run, slot]), strict=True))
        throughput[run, slot] = flow(app.net, source, capacity).sink / offered
        excess[run, :, slot] = list(problem.excess(capacity).values())
    return throughput, excess
