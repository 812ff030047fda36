"""The Small phase: one step of conservative Bayesian optimisation for every operator, Algorithm 2 of ContTune."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from models.arrays import Floats
from models.capacity.capacity_samples import Samples, pack
from models.capacity.curves import fit_curves
from models.policies.tuning.acquisition_functions import acquire, distance_to_observed
from models.policies.tuning.capacity_history import History
from models.policies.tuning.tuning_options import ALPHA, Acquisition
from models.topology import optimal_parallelism

How = Literal["model", "linear", "kept"]


@dataclass(frozen=True, slots=True)
class OperatorProblem:
    """One operator, which is tuned on its own once its real input rate is known.

    Attributes:
        history: what was observed of it.
        required_per_s: lambda, records/s; NaN when it is not known.
        parallelism: at which it runs.
        capacity_per_s: PA there as it is measured now; NaN when it did not work.
        p_max: of its job.
    """

    history: History
    required_per_s: float
    parallelism: int
    capacity_per_s: float
    p_max: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggested parallelism.

    Attributes:
        parallelism: suggested.
        how: by the model (fast exploitation), linearly as DS2 (conservative exploration), or kept without a rate.
    """

    parallelism: int
    how: How


def propose(
    problems: Sequence[OperatorProblem], *, alpha: int = ALPHA, acquisition: Acquisition = Acquisition.FEASIBLE
) -> list[Suggestion]:
    """Return the suggestion for each problem; those of one job are one reconfiguration.

    p_acq is applied when it lies within alpha of an observed parallelism, p_lin of DS2 otherwise or when the model
    finds no feasible parallelism up to p_max.

    Args:
        problems: of any number of operators, of one job or of many.
        alpha: radius of the known region; 0 is DS2 with a cache of what was observed.
        acquisition: which function chooses p_acq.
    """
    if not problems:
        return []
    required = np.array([problem.required_per_s for problem in problems], float)
    running = np.array([problem.parallelism for problem in problems], np.int64)
    capacity = np.array([problem.capacity_per_s for problem in problems], float)
    linear = optimal_parallelism(required, capacity, running)
    acquired = np.zeros_like(linear)
    near = [False] * len(problems)
    if acquisition is not Acquisition.LINEAR:
        p_max = np.array([problem.p_max for problem in problems], np.int64)
        mean, sd = fit_surrogate([problem.history for problem in problems], p_max.tolist())
        acquired = acquire(mean, sd, required, p_max, acquisition)
        near = [
            _is_near_observed(int(p), problem.history, alpha) for p, problem in zip(acquired, problems, strict=True)
        ]
    return [
        _suggest(problem, int(p_acq) if known else 0, int(p_lin))
        for problem, p_acq, known, p_lin in zip(problems, acquired, near, linear, strict=True)
    ]


def _is_near_observed(acquired: int, history: History, alpha: int) -> bool:
    if acquired < 1 or not history:
        return False
    observed = np.array([known.parallelism for known in history], np.int64)
    return int(distance_to_observed(acquired, observed)) <= alpha


def _suggest(problem: OperatorProblem, acquired: int, linear: int) -> Suggestion:
    if not math.isfinite(problem.required_per_s):
        return Suggestion(problem.parallelism, "kept")
    if acquired:
        return Suggestion(acquired, "model")
    known = math.isfinite(problem.capacity_per_s) and problem.capacity_per_s > 0
    return Suggestion(linear, "linear") if known else Suggestion(problem.parallelism, "kept")


def fit_surrogate(histories: Sequence[History], p_max: Sequence[int]) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of PA on the grid 1..max(p_max), both (B, P) records/s.

    Deviation: the published model has a zero mean, so that it falls beyond the data and dips between distant points,
    and its optimiser ends at a length scale of nearly 0.  The project's capacity model is used: a line through the
    origin plus a Gaussian process with bounded length scale.

    Args:
        histories: of B operators; one without observations gives NaN.
        p_max: (B,) largest parallelism of the operator's job; bounds the length scale.
    """
    top = max(p_max, default=1)
    mean, sd = np.full((len(histories), top), np.nan), np.full((len(histories), top), np.nan)
    points = np.array([len(history) for history in histories], np.int64)
    # Operators observed at a single parallelism are a line; fitted separately they need no padding.
    for rows in (np.flatnonzero(points == 1), np.flatnonzero(points > 1)):
        if rows.size:
            fitted = fit_curves(_samples([histories[row] for row in rows.tolist()]), np.array(p_max, float)[rows], top)
            mean[rows], sd[rows] = fitted.mean_per_s, fitted.sd_per_s
    return mean, sd


def _samples(histories: Sequence[History]) -> Samples:
    rows = [
        (owner, known.parallelism, len(known.counted_per_s), known.capacity_per_s, _squares(known.counted_per_s))
        for owner, history in enumerate(histories)
        for known in history
    ]
    owner, parallelism, count, mean, squares = zip(*rows, strict=True)
    return pack(owner, parallelism, count, mean, squares)


def _squares(values: tuple[float, ...]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)
