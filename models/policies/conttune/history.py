"""What was observed of an operator: per parallelism the K most recent processing abilities, H_i of ContTune."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from models.policies.conttune.options import KEEP

# K is not published; the repository's README lists five samples per parallelism.


@dataclass(frozen=True, slots=True)
class Known:
    """One observed parallelism.

    Attributes:
        parallelism: at which the operator ran.
        recent_per_s: at most K processing abilities seen there, records/s, newest last.
    """

    parallelism: int
    recent_per_s: tuple[float, ...]

    @property
    def capacity_per_s(self) -> float:
        """The value used for tuning: the mean of what is kept ("mean-reversion", Sec. 7 of ContTune)."""
        return math.fsum(self.recent_per_s) / len(self.recent_per_s)


History = tuple[Known, ...]


def observe(history: History, parallelism: int, capacity_per_s: float, *, keep: int = KEEP) -> History:
    """Return the history with one more observation; the oldest at that parallelism goes when there are K already.

    Args:
        history: ascending in parallelism.
        parallelism: at which the ability was seen.
        capacity_per_s: PA, Eq. 1 of ContTune; one that is not a positive number is no observation.
        keep: K.
    """
    if parallelism < 1 or not (math.isfinite(capacity_per_s) and capacity_per_s > 0):
        return history
    recent = next((known.recent_per_s for known in history if known.parallelism == parallelism), ())
    updated = Known(parallelism, (*recent, float(capacity_per_s))[-keep:])
    others = (known for known in history if known.parallelism != parallelism)
    return tuple(sorted((*others, updated), key=lambda known: known.parallelism))


def capacity_at(history: History, parallelism: int) -> float:
    """Return the mean ability at a parallelism, NaN when it was not seen."""
    return next((known.capacity_per_s for known in history if known.parallelism == parallelism), math.nan)


def capacity_near(history: History, parallelism: int) -> float:
    """Return the ability expected at a parallelism: straight between those seen, and from none at 0; NaN without any.

    Above all that were seen it grows in proportion, as DS2 has it.
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
