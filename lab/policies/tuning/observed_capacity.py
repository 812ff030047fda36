"""The capacity of an operator at a parallelism, as its observations tell it."""

from __future__ import annotations

import math

import numpy as np

from models.policies.tuning.capacity_history import History


def capacity_at(history: History, parallelism: int) -> float:
    """Return the mean capacity at a parallelism, NaN when it was not observed."""
    return next((known.capacity_per_s for known in history if known.parallelism == parallelism), math.nan)


def capacity_near(history: History, parallelism: int) -> float:
    """Return the expected capacity: linear between the observed parallelisms and from 0 at 0; NaN without any.

    Above the largest observed parallelism it grows in proportion, as in DS2.
    """
    if not history:
        return math.nan
    observed = [0, *(known.parallelism for known in history)]
    capacities = [0.0, *(known.capacity_per_s for known in history)]
    within = float(np.interp(parallelism, observed, capacities))
    return within * max(parallelism / observed[-1], 1.0)
