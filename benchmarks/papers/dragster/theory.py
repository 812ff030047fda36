"""Theorems 1 and 2 on the simulator: regret and fit grow slower than time and stay below their bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.dragster import dragster_plots
from benchmarks.papers.dragster.dragster_experiments import Progress, Record, make_dragsters, play
from benchmarks.papers.dragster.dragster_jobs import HIGH_PER_S, MAX_TASKS, Application, word_count
from benchmarks.papers.dragster.dragster_measures import ROWS, cell
from lab.policies.dragster.bounds import Constants, fit_bound, regret_bound
from lab.policies.dragster.dragster_options import CapacityTarget, DragsterOptions, ThroughputForm
from lab.policies.dragster.gaussian import Kernel
from lab.policies.dragster.lagrangian import SaddlePointProblem
from lab.policies.dragster.network import flow
from lab.policies.dragster.regret import dynamic_fit, dynamic_regret
from lab.simulation.spec import OperatorSpec
from models.arrays import Floats

RUNS = 10
_SLOTS = 100
_SHOWN = (10, 25, 50, 100)


def regret_and_fit(progress: Progress, out: Path) -> list[Cell]:
    """Return Reg_T / T and Fit_T / T at constant load for growing T, which must fall, and the bounds of both."""
    cells: list[Cell] = []
    curves: dict[str, Floats] = {}
    for target in CapacityTarget:
        progress(f"dragster: Theorem 1, {ROWS[target.value]}")
        cells += _of_theorem("Theorem 1", ROWS[target.value], DragsterOptions(target=target), curves, learns=False)
    for form in ThroughputForm:
        progress(f"dragster: Theorem 2, {form} functions learnt")
        row = f"{ROWS['saddle']}, h learnt, {form}"
        cells += _of_theorem("Theorem 2", row, DragsterOptions(throughput=form), curves, learns=True)
    dragster_plots.falling(out / "dragster_regret.png", curves)
    return cells


def theorem_constants(
    app: Application, offered_per_s: float, true_per_s: Floats, options: DragsterOptions
) -> Constants:
    """Return the constants of Theorem 1 for a job whose operators all have selectivity 1, under constant load.

    Args:
        app: the job.
        offered_per_s: by which everything is normalised, so that H = G = 1.
        true_per_s: (M,) capacity at the most tasks.
        options: of the tuner.
    """
    kernel = Kernel(max(options.length_scale_share * MAX_TASKS, 1.0), options.prior_deviation, options.noise)
    return Constants(
        operators=len(app.net.tuned),
        throughput_most=1.0,
        slack=float(true_per_s.min()) / offered_per_s - 1.0,
        slope_most=1.0,
        path=0.0,
        candidates=MAX_TASKS,
        kernel=kernel,
        delta=options.delta,
    )


def _of_theorem(
    table: str, row: str, options: DragsterOptions, curves: dict[str, Floats], *, learns: bool
) -> list[Cell]:
    app, at = word_count(), np.arange(1, _SLOTS + 1)
    tuners = make_dragsters(app, options, RUNS, learns=learns)
    record = play(app, np.full(_SLOTS, HIGH_PER_S), tuners, seed=4)
    throughput, excess = _throughput_and_excess(app, record)
    regret, fit = dynamic_regret(np.ones_like(throughput), throughput), dynamic_fit(excess)
    # capacity left over in one slot does not serve what another could not: the stricter reading
    only = dynamic_fit(np.maximum(excess, 0.0))
    most = np.array(
        [one.per_subtask_per_s * MAX_TASKS / (1 + one.contention * (MAX_TASKS - 1)) for one in _list_tuned(app)]
    )
    constants = theorem_constants(app, HIGH_PER_S, most, options)
    bounds = {"Reg_T": regret_bound(constants, fit), "Fit_T": np.broadcast_to(fit_bound(constants, _SLOTS), fit.shape)}
    measured = {"Reg_T / (T f*)": regret, "Fit_T / T": fit, "Fit_T / T, excess only": only}
    cells = []
    for name, values in measured.items():
        share = values / at
        curves[f"{row}: {name}"] = share.mean(axis=0)
        cells += [cell(table, row, f"{name}, T = {slot}", share[:, slot - 1], "share") for slot in _SHOWN]
    for name, values in (("Reg_T", regret), ("Fit_T", only)):
        largest = (values / bounds[name]).max(axis=1)
        column = f"{name} / its bound, largest of T = 1 to {_SLOTS}"
        cells.append(cell(table, row, column, largest, "share"))
        growth = np.log(values[:, -1] / values[:, 9]) / np.log(_SLOTS / 10)
        cells.append(cell(table, row, f"{name} grows as T to the power of, T = 10 to {_SLOTS}", growth, "1"))
    return cells


def _list_tuned(app: Application) -> list[OperatorSpec]:
    return [one for one in app.spec.operators if one.name in app.net.tuned]


def _throughput_and_excess(app: Application, record: Record) -> tuple[Floats, Floats]:
    """Return (R, T) f_t(y) / f_t(y*) and (R, M, T) l_i, of the true capacities; every operator's selectivity is 1."""
    names, offered = app.net.tuned, float(record.offered_per_s[0])
    source = dict.fromkeys(app.net.graph.sources, offered)
    problem = SaddlePointProblem(app.net, source, dict.fromkeys(names, offered))
    shape = record.capacity_per_s.shape
    throughput, excess = np.zeros(shape[:2]), np.zeros((shape[0], shape[2], shape[1]))
    for run, slot in np.ndindex(*shape[:2]):
        capacity = dict(zip(names, map(float, record.capacity_per_s[run, slot]), strict=True))
        throughput[run, slot] = flow(app.net, source, capacity).sink / offered
        excess[run, :, slot] = list(problem.excess(capacity).values())
    return throughput, excess
