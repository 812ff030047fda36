"""Histories of capacities, made point by point."""

from __future__ import annotations

import math

from models.policies.tuning import KEEP
from models.policies.tuning.capacity_history import History, add_observations


def add_observation(
    history: History,
    parallelism: int,
    capacity_per_s: float,
    *,
    keep: int = KEEP,
    busy: float = math.nan,
    at_s: float = 0.0,
    is_limit: bool = False,
) -> History:
    """Return the history with one more observation."""
    return add_observations(history, [(parallelism, capacity_per_s, busy, at_s, is_limit)], keep)
