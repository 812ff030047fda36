"""The acquisition functions of CBO (Eq. 5) and of its baseline CEI (Eq. 4), and the known region (Fig. 3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from lab.policies.tuning.tuning_options import Acquisition
from models.arrays import Floats, Ints


def acquire(mean_per_s: Floats, sd_per_s: Floats, required_per_s: Floats, p_max: Ints, how: Acquisition) -> Ints:
    """Return (B,) p_acq, 0 where no parallelism up to p_max is expected to suffice.

    Args:
        mean_per_s: (B, P) of the surrogate on the grid 1..P; NaN is not feasible.
        sd_per_s: (B, P) of the same.
        required_per_s: (B,) records/s.
        p_max: (B,) bound of the search.
        how: which acquisition function.
    """
    inside = np.arange(1, mean_per_s.shape[1] + 1) <= p_max[:, None]
    feasible = smallest_sufficient(np.where(inside, mean_per_s, -np.inf), required_per_s)
    if how is Acquisition.LINEAR:
        return np.zeros_like(feasible)
    if how is Acquisition.FEASIBLE:
        return feasible
    score = np.where(inside, improvement(mean_per_s, sd_per_s, required_per_s, p_max + 1), -np.inf)
    return np.where(feasible > 0, score.argmax(axis=1) + 1, 0)


def improvement(mean_per_s: Floats, sd_per_s: Floats, required_per_s: Floats, known_feasible: Ints) -> Floats:
    """Return (B, P) the constrained expected improvement (p* - p) Pr[f(p) >= lambda], Eq. 4 of ContTune.

    Args:
        mean_per_s: (B, P) of f(p), which is Gaussian.
        sd_per_s: (B, P) of the same.
        required_per_s: (B,) lambda.
        known_feasible: (B,) p*.  The paper leaves open which it is before one is known; one above p_max lets p_max
            itself be chosen.
    """
    grid = np.arange(1, mean_per_s.shape[1] + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (mean_per_s - required_per_s[:, None]) / sd_per_s
    probability = np.where(np.isnan(distance), mean_per_s >= required_per_s[:, None], ndtr(distance))
    return np.asarray((known_feasible[:, None] - grid) * probability, float)


def smallest_sufficient(capacity_per_s: Floats, required_per_s: npt.ArrayLike) -> Ints:
    """Return the smallest p whose capacity reaches the requirement, Eq. 5-6 of ContTune.

    The published argmax of (p* - p) over the feasible p is the smallest feasible p.

    Args:
        capacity_per_s: (..., P) capacity on the grid 1..P.
        required_per_s: (...) records/s.

    Returns:
        (...) parallelism, 0 where no p on the grid suffices.
    """
    feasible = capacity_per_s >= np.asarray(required_per_s, float)[..., None]
    return np.asarray(np.where(feasible.any(axis=-1), feasible.argmax(axis=-1) + 1, 0), np.int64)


def distance_to_observed(parallelism: npt.ArrayLike, observed: Ints) -> Ints:
    """Return how far each parallelism (...) is from the nearest observed one (m,): ContTune trusts up to alpha."""
    at = np.asarray(parallelism, np.int64)
    return np.asarray(np.abs(at[..., None] - observed).min(axis=-1), np.int64)
