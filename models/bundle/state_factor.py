"""By how much the size of a job's state changes its downtime."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats

MOST_FACTOR = 3.0
"""The state changes an expected downtime by no more than this factor, nor do other kinds of event: beyond what was
seen nothing is known."""


def state_factor(slope: Floats, state_bytes: Floats, usual_bytes: Floats) -> Floats:
    """Return by what a downtime differs from its centre for a state of this size; 1 where a size is not known.

    >>> state_factor(np.array([0.5]), np.array([1e9, 2e9, 20e9]), np.array([1e9])).tolist()
    [1.0, 1.5, 3.0]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = 1.0 + slope * (state_bytes / usual_bytes - 1.0)
    return np.asarray(np.where(np.isfinite(factor), np.clip(factor, 1.0 / MOST_FACTOR, MOST_FACTOR), 1.0))
