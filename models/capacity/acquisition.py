"""ContTune's choice of a parallelism from a capacity curve: Eq. 5-6 and the conservative rule of its Algorithm 2."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Ints


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
