"""Observations of an operator: for each parallelism the K most recent capacities, H_i of ContTune.

Deviation: of windows whose busy share is known, those count that are busy enough to tell the capacity, by the rule of
``models/capacity/busy_windows.py``: a lightly loaded window never takes the place of a busy one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from models.capacity.busy_windows import BUSY_ENOUGH, HELD_S, OF_BUSIEST, light_load_sd
from models.policies.tuning.tuning_options import KEEP

# K is not published; the repository's README lists five samples per parallelism.


@dataclass(frozen=True, slots=True)
class ObservedCapacity:
    """One observed parallelism.

    Attributes:
        parallelism: at which the operator ran.
        recent_per_s: at most K capacities observed there, records/s, newest last.
        recent_busy: busy share of each; empty where it is not known, as in a history of an earlier release.
        busiest_share: highest busy share that was seen there; 0 where none is known.
        busiest_at_s: when it was last about as busy, epoch seconds.
        is_limit: whether it was held to its limit while its mean subtask was idle at times: what it did is what it can
            do, and what a lighter load makes of its busy share is too high.
    """

    parallelism: int
    recent_per_s: tuple[float, ...]
    recent_busy: tuple[float, ...] = ()
    busiest_share: float = 0.0
    busiest_at_s: float = 0.0
    is_limit: bool = False

    @property
    def capacity_per_s(self) -> float:
        """The value used for tuning: the mean of what is kept ("mean-reversion", Sec. 7 of ContTune)."""
        return math.fsum(self.recent_per_s) / len(self.recent_per_s)


History = tuple[ObservedCapacity, ...]


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
    """Return the history with one more observation; the oldest at that parallelism goes when there are K already.

    With a busy share only observations that are busy enough beside the others of that parallelism are kept; those
    without one go when the first with one comes, and are none from then on.

    Args:
        history: ascending in parallelism.
        parallelism: at which the capacity was observed.
        capacity_per_s: PA, Eq. 1 of ContTune; one that is not a positive number is no observation.
        keep: K.
        busy: busy share with which it was observed, above 0; NaN when it is not known.
        at_s: when, epoch seconds; matters with a busy share only.
        is_limit: see :class:`ObservedCapacity`; such an observation takes the place of all others.
    """
    if parallelism < 1 or not (math.isfinite(capacity_per_s) and capacity_per_s > 0):
        return history
    empty = ObservedCapacity(parallelism, ())
    there = next((known for known in history if known.parallelism == parallelism), empty)
    if math.isfinite(busy) and busy > 0:
        if there.is_limit and not is_limit and at_s - there.busiest_at_s <= HELD_S:
            return history
        # Whoever stands still holds up others, too: one that does less than usual says nothing of its limit.
        is_limit = is_limit and (there.is_limit or capacity_per_s * busy >= OF_BUSIEST * _mean_rate(there))
        if is_limit and not there.is_limit:
            there = empty
        updated = _add(there, float(capacity_per_s), float(busy), at_s, keep, is_limit=is_limit)
    elif there.recent_busy:
        return history
    else:
        updated = ObservedCapacity(parallelism, (*there.recent_per_s, float(capacity_per_s))[-keep:])
    if len(history) == 1 and history[0].parallelism == parallelism:  # as most are: a plan adds some hundred to each
        return (updated,)
    others = (known for known in history if known.parallelism != parallelism)
    return tuple(sorted((*others, updated), key=lambda known: known.parallelism))


def _add(
    known: ObservedCapacity, capacity_per_s: float, busy: float, at_s: float, keep: int, *, is_limit: bool
) -> ObservedCapacity:
    """Return the known observations with one more of a known busy share, if it is busy enough beside them."""
    if not known.recent_busy or at_s - known.busiest_at_s > HELD_S:
        return ObservedCapacity(known.parallelism, (capacity_per_s,), (busy,), busy, at_s, is_limit)
    usual = _mean_rate(known)
    busiest, busiest_at_s = known.busiest_share, known.busiest_at_s
    if busy >= OF_BUSIEST * busiest and capacity_per_s * busy >= OF_BUSIEST * usual:  # not a stall
        busiest, busiest_at_s = max(busiest, busy), at_s
    least = min(BUSY_ENOUGH, OF_BUSIEST * busiest)  # of least_busy_share, without an array
    rows = [*zip(known.recent_per_s, known.recent_busy, strict=True), (capacity_per_s, busy)]
    retained = [row for row in rows if row[1] >= least][-keep:]
    per_s, shares = zip(*retained, strict=True)
    return ObservedCapacity(known.parallelism, per_s, shares, busiest, busiest_at_s, is_limit)


def _mean_rate(known: ObservedCapacity) -> float:
    """Return what was processed in the windows that are kept, records/s; 0 where no busy share is known."""
    rates = [per_s * busy for per_s, busy in zip(known.recent_per_s, known.recent_busy, strict=False)]
    return math.fsum(rates) / len(rates) if rates else 0.0


def capacity_at(history: History, parallelism: int) -> float:
    """Return the mean capacity at a parallelism, NaN when it was not observed."""
    return next((known.capacity_per_s for known in history if known.parallelism == parallelism), math.nan)


def most_capacity_at(history: History, parallelism: int) -> float:
    """Return the most that the capacity at a parallelism may be, by two standard deviations of what light use leaves
    in doubt; the mean where it was seen at a high load, or its busy share is not known; NaN when it was not observed.
    """
    known = next((one for one in history if one.parallelism == parallelism), None)
    if known is None:
        return math.nan
    doubt = float(light_load_sd(np.array(known.busiest_share))) if known.busiest_share > 0 else 0.0
    return known.capacity_per_s * math.exp(2.0 * doubt)


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


def largest(histories: Iterable[History]) -> int:
    """Return p_max: the largest parallelism in any history of a job, 0 without observations."""
    return max((history[-1].parallelism for history in histories if history), default=0)
