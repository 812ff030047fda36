"""The capacity that a few observations of an operator tell: the surrogate of ContTune's Small phase."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.arrays import Floats
from models.capacity.capacity_samples import CapacitySamples, pack
from models.capacity.curves import fit_curves
from models.policies.tuning.capacity_history import History


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


def _samples(histories: Sequence[History]) -> CapacitySamples:
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
