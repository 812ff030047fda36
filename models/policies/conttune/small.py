"""The Small phase: one step of conservative Bayesian optimisation for every operator, Algorithm 2 of ContTune."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from models.capacity.acquisition import distance_to_observed
from models.policies.conttune.acquisition import acquire
from models.policies.conttune.history import History
from models.policies.conttune.options import ALPHA, Acquisition
from models.policies.conttune.surrogate import curves
from models.topology import optimal_parallelism

How = Literal["model", "linear", "kept"]


@dataclass(frozen=True, slots=True)
class Question:
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
class Answer:
    """What to run.

    Attributes:
        parallelism: suggested.
        how: by the model (fast exploitation), linearly as DS2 (conservative exploration), or kept for want of a rate.
    """

    parallelism: int
    how: How


def propose(
    questions: Sequence[Question], *, alpha: int = ALPHA, acquisition: Acquisition = Acquisition.FEASIBLE
) -> list[Answer]:
    """Return the answer to each question; those of one job are one reconfiguration.

    p_acq is applied when it lies within alpha of an observed parallelism, p_lin of DS2 otherwise or when the model
    finds no feasible parallelism up to p_max.

    Args:
        questions: of any number of operators, of one job or of many.
        alpha: radius of the known region; 0 is DS2 with a cache of what was observed.
        acquisition: which function chooses p_acq.
    """
    if not questions:
        return []
    required = np.array([question.required_per_s for question in questions], float)
    running = np.array([question.parallelism for question in questions], np.int64)
    capacity = np.array([question.capacity_per_s for question in questions], float)
    linear = optimal_parallelism(required, capacity, running)
    acquired = np.zeros_like(linear)
    near = [False] * len(questions)
    if acquisition is not Acquisition.LINEAR:
        p_max = np.array([question.p_max for question in questions], np.int64)
        mean, sd = curves([question.history for question in questions], p_max.tolist())
        acquired = acquire(mean, sd, required, p_max, acquisition)
        near = [_near(int(p), question.history, alpha) for p, question in zip(acquired, questions, strict=True)]
    return [
        _answer(question, int(p_acq) if known else 0, int(p_lin))
        for question, p_acq, known, p_lin in zip(questions, acquired, near, linear, strict=True)
    ]


def _near(acquired: int, history: History, alpha: int) -> bool:
    if acquired < 1 or not history:
        return False
    observed = np.array([known.parallelism for known in history], np.int64)
    return int(distance_to_observed(acquired, observed)) <= alpha


def _answer(question: Question, acquired: int, linear: int) -> Answer:
    if not math.isfinite(question.required_per_s):
        return Answer(question.parallelism, "kept")
    if acquired:
        return Answer(acquired, "model")
    known = math.isfinite(question.capacity_per_s) and question.capacity_per_s > 0
    return Answer(linear, "linear") if known else Answer(question.parallelism, "kept")
