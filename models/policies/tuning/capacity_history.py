"""Observations of an operator: for each parallelism the K most recent capacities, H_i of ContTune.

Deviation: of windows whose busy share is known, those count that are busy enough to tell the capacity, by the rule of
``models/capacity/busy_windows.py``: a lightly loaded window never takes the place of a busy one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from models.capacity.busy_windows import HELD_S, OF_BUSIEST, SLOW, TRUSTED, least_share_beside, light_load_sd
from models.policies.tuning import KEEP


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
    def counted_per_s(self) -> tuple[float, ...]:
        """What counts of what is kept, records/s: the median alone, or the two about it, of a lightly used operator.

        In others of its windows a neighbour had the processor.
        """
        if not 0.0 < self.busiest_share < TRUSTED or self.is_limit:
            return self.recent_per_s
        outer = (len(self.recent_per_s) - 1) // 2
        return tuple(sorted(self.recent_per_s)[outer : len(self.recent_per_s) - outer])

    @property
    def capacity_per_s(self) -> float:
        """The value used for tuning: the mean of what counts ("mean-reversion", Sec. 7 of ContTune)."""
        return math.fsum(self.counted_per_s) / len(self.counted_per_s)


History = tuple[ObservedCapacity, ...]


def add_observations(
    history: History, observed: Iterable[tuple[int, float, float, float, bool]], keep: int = KEEP
) -> History:
    """Return the history with more observations; the oldest at a parallelism goes when there are K already.

    With a busy share only observations that are busy enough beside the others of that parallelism are kept; those
    without one go when the first with one comes, and are none from then on.

    Args:
        history: ascending in parallelism.
        observed: one after the other, of each:
            the parallelism at which the capacity was observed;
            the capacity, PA, Eq. 1 of ContTune; one that is not a positive number is no observation;
            the busy share with which it was observed, above 0; NaN when it is not known;
            when, epoch seconds; matters with a busy share only;
            whether it is a limit, see :class:`ObservedCapacity`; such an observation takes the place of all others.
        keep: K.
    """
    known = {one.parallelism: _Observations(one) for one in history}
    for parallelism, capacity_per_s, busy, at_s, is_limit in observed:
        if parallelism < 1 or not (math.isfinite(capacity_per_s) and capacity_per_s > 0):
            continue
        if parallelism not in known:
            known[parallelism] = _Observations(ObservedCapacity(parallelism, ()))
        if math.isfinite(busy) and busy > 0:
            known[parallelism].add_busy(float(capacity_per_s), float(busy), at_s, keep, is_limit=is_limit)
        else:
            known[parallelism].add(float(capacity_per_s), keep)
    return tuple(known[parallelism].freeze() for parallelism in sorted(known))


class _Observations:
    """An observed parallelism while observations are added: a plan adds some hundred to each."""

    __slots__ = ("busiest_at_s", "busiest_share", "is_limit", "parallelism", "rows")

    def __init__(self, known: ObservedCapacity) -> None:
        self.parallelism = known.parallelism
        shares = known.recent_busy or (math.nan,) * len(known.recent_per_s)
        # Busy share, capacity and what was processed of each, the latter in records/s.
        self.rows = [(busy, per_s, per_s * busy) for per_s, busy in zip(known.recent_per_s, shares, strict=True)]
        self.busiest_share, self.busiest_at_s = known.busiest_share, known.busiest_at_s
        self.is_limit = known.is_limit

    def freeze(self) -> ObservedCapacity:
        """Return it as it is kept."""
        shares = tuple(row[0] for row in self.rows) if self._is_busy() else ()
        per_s = tuple(row[1] for row in self.rows)
        return ObservedCapacity(self.parallelism, per_s, shares, self.busiest_share, self.busiest_at_s, self.is_limit)

    def _is_busy(self) -> bool:
        return bool(self.rows) and not math.isnan(self.rows[0][0])

    def _mean_rate(self) -> float:
        """Return what was processed in the windows that are kept, records/s; 0 where no busy share is known."""
        return math.fsum([row[2] for row in self.rows]) / len(self.rows) if self._is_busy() else 0.0

    def add(self, capacity_per_s: float, keep: int) -> None:
        """Add an observation of which no busy share is known."""
        if not self._is_busy():
            self.rows = [*self.rows, (math.nan, capacity_per_s, math.nan)][-keep:]

    def add_busy(self, capacity_per_s: float, busy: float, at_s: float, keep: int, *, is_limit: bool) -> None:
        """Add an observation of a known busy share, if it is busy enough beside the others."""
        is_recent = at_s - self.busiest_at_s <= HELD_S
        if self.is_limit and not is_limit and is_recent:
            return
        usual, rate = self._mean_rate(), capacity_per_s * busy
        # Whoever stands still holds up others, too: one that does less than usual says nothing of its limit.
        is_limit = is_limit and (self.is_limit or rate >= OF_BUSIEST * usual)
        begins = not self._is_busy() or not is_recent or (is_limit and not self.is_limit)
        self.is_limit = is_limit
        if begins:
            self.rows, self.busiest_share, self.busiest_at_s = [(busy, capacity_per_s, rate)], busy, at_s
            return
        is_stall = rate < OF_BUSIEST * usual
        is_slow = rate <= usual / OF_BUSIEST and capacity_per_s < SLOW * statistics.median(row[1] for row in self.rows)
        if busy >= OF_BUSIEST * self.busiest_share and not (is_stall or is_slow):
            self.busiest_share, self.busiest_at_s = max(self.busiest_share, busy), at_s
        is_quiet = self.busiest_share < TRUSTED and not is_limit
        least = 0.0 if is_quiet else least_share_beside(self.busiest_share)
        self.rows.append((busy, capacity_per_s, rate))
        self.rows = [row for row in self.rows if row[0] >= least][-keep:]


def most_capacity_at(history: History, parallelism: int) -> float:
    """Return the most that the capacity at a parallelism may be, by two standard deviations of what light use leaves
    in doubt; the mean where it was seen at a high load, or its busy share is not known; NaN when it was not observed.
    """
    known = next((one for one in history if one.parallelism == parallelism), None)
    if known is None:
        return math.nan
    doubt = float(light_load_sd(np.array(known.busiest_share))) if known.busiest_share > 0 else 0.0
    return known.capacity_per_s * math.exp(2.0 * doubt)
