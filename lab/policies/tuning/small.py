"""The Small phase: one step of conservative Bayesian optimisation for every operator, Algorithm 2 of ContTune."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lab.policies.tuning.acquisition_functions import acquire, distance_to_observed
from lab.policies.tuning.parallelism import optimal_parallelism
from lab.policies.tuning.tuning_options import ALPHA, Acquisition
from models.policies.tuning.capacity_history import History
from models.policies.tuning.surrogate import fit_surrogate

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
