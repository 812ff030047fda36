"""Observations of an operator: for each parallelism the K most recent capacities, H_i of ContTune."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from models.policies.conttune.conttune_options import KEEP

# K is not published; the repository's README lists five samples per parallelism.


@dataclass(frozen=True, slots=True)
class ObservedCapacity:
    """One observed parallelism.

    Attributes:
        parallelism: at which the operator ran.
        recent_per_s: at most K capacities observed there, records/s, newest last.
    """

    parallelism: int
    recent_per_s: tuple[float, ...]

    @property
    def capacity_per_s(self) -> float:
        """The value used for tuning: the mean of what is kept ("mean-reversion", Sec. 7 of ContTune)."""
        return math.fsum(self.recent_per_s) / len(self.recent_per_s)


History = tuple[ObservedCapacity, ...]


def add_observation(history: History, parallelism: int, capacity_per_s: float, *, keep: int = KEEP) -> History:
    """Return the history with one more observation; the oldest at that parallelism goes when there are K already.

    Args:
        history: ascending in parallelism.
        parallelism: at which the capacity was observed.
        capacity_per_s: PA, Eq. 1 of ContTune; one that is not a positive number is no observation.
        keep: K.
    """
    if parallelism < 1 or not (math.isfinite(capacity_per_s) and capacity_per_s > 0):
        return history
    recent = next((known.recent_per_s for known in history if known.parallelism == parallelism), ())
    updated = ObservedCapacity(parallelism, (*recent, float(capacity_per_s))[-keep:])
    others = (known for known in history if known.parallelism != parallelism)
    return tuple(sorted((*others, updated), key=lambda known: known.parallelism))


def capacity_at(history: History, parallelism: int) -> float:
    """Return the mean capacity at a parallelism, NaN when it was not observed."""
    return next((known.capacity_per_s for known in history if known.parallelism == parallelism), math.nan)


def capacity_near(history: History, parallelism: int) -> float:
    """Return the expected capacity: linear between the observed parallelisms and from 0 at 0; NaN without any.

    Above the largest observed parallelism it grows in proportion, as in DS2.
    """
    if not history:
        return math.nan
    seen = [0, *(known.parallelism for known in history)]
    capacities = [0.0, *(known.capacity_per_s for known in history)]
    within = float(np.interp(parallelism, seen, capacities))
    return within * max(parallelism / seen[-1], 1.0)


def largest(histories: Iterable[History]) -> int:
    """Return p_max: the largest parallelism in any history of a job, 0 without observations."""
    return max((history[-1].parallelism for history in histories if history), default=0)
