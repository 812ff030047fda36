"""The candidate configurations: for every number of slots the one that sustains the highest load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from models.arrays import Floats, Ints
from models.scheduling.demand import LEVELS, Demand
from models.scheduling.need import CapacityBounds
from models.scheduling.slot_counts import count_slots_of_rows

MOST: Final = 64  # below it all numbers of slots; of 500 slots all up to 14, then 16, 17, 18, ... 433, 465, 500
_Q90: Final = LEVELS.index(0.9)


def list_candidates(
    demand: Demand,
    bounds: Mapping[str, CapacityBounds],
    current: Ints,
    limits: Ints,
    *,
    groups: Sequence[str] = (),
    slots_max: int | None = None,
) -> Ints:
    """Return (K, O) configurations, K <= 64, the running one first, the others by rising slots.

    Operators of a slot-sharing group share slots, so what a configuration costs is the widest operator of each group.
    Among all that cost the same, the one kept sustains the largest multiple of the horizon's peak demand, each operator
    with no more instances than that multiple needs: the distinct need-vectors of all risk levels lie on this ladder,
    and it is nested.  An operator that is at its own limit does not end the ladder: the others go on to what they need.
    An operator without a capacity model, or without a known demand, keeps its parallelism. All are (O,); without groups
    all are in one, and the limits alone bound the slots, which operators of several groups may exceed within their
    limits.
    """
    slots = _slot_levels(int(limits.max()))
    peaks = demand.rates_per_s[_Q90].max(axis=1)
    modelled = [row for row, name in enumerate(demand.operators) if name in bounds and peaks[row] > 0]
    result = np.repeat(np.minimum(current, limits)[None, :], len(slots), axis=0)
    if modelled:
        lower = {row: _rising_bound(bounds[demand.operators[row]]) for row in modelled}
        reach = _reach(slots, {row: lower[row] / peaks[row] for row in modelled}, limits)
        for row in modelled:
            wanted = np.searchsorted(lower[row], reach * peaks[row] * (1 - _ROUNDING), side="left") + 1
            result[:, row] = np.minimum(wanted, np.minimum(slots, limits[row]))
    rest = np.unique(result, axis=0)
    taken = count_slots_of_rows(rest, groups)
    order = np.lexsort((rest.sum(axis=1), taken))
    if slots_max is not None and len(set(groups)) > 1:
        order = order[taken[order] <= slots_max]
    rest = rest[order]
    return np.concatenate([current[None, :], rest[(rest != current).any(axis=1)]]).astype(np.int64)


def _reach(slots: Ints, multiples: Mapping[int, Floats], limits: Ints) -> Floats:
    """Return the multiple of the demand that each number of slots sustains, of the operators that could have more.

    Where none could, those with the highest limit decide.  An operator sustains the multiples of its peak at 1..limit.
    """
    widest = max(int(limits[row]) for row in multiples)
    each = [
        np.where((slots < limits[row]) | (limits[row] == widest), multiple[np.minimum(slots, limits[row]) - 1], np.inf)
        for row, multiple in multiples.items()
    ]
    return np.asarray(np.maximum.accumulate(np.min(each, axis=0)))


def _rising_bound(bounds: CapacityBounds) -> Floats:
    """Return the lower bound, made increasing: far beyond the observed parallelisms the expected capacity decides.

    Else a job that was observed at one instance only would have candidates with few instances only.
    """
    return bounds.lower_per_s + _EXPECTED_SHARE * np.maximum.accumulate(bounds.mean_per_s)


_EXPECTED_SHARE: Final = 1e-6  # far below the difference of two bounds
_ROUNDING: Final = 1e-12  # an operator's own bound, divided and multiplied again, must still find itself


@lru_cache(maxsize=64)
def _slot_levels(most: int) -> Ints:
    """Return the numbers of slots that are considered: all, or as many as allowed, denser where they are few."""
    if most < MOST:
        return np.arange(1, most + 1)
    steps = MOST - 1  # of these several round to one number, so that more of them are allowed
    while len(_geometric_levels(most, steps + 1)) < MOST:
        steps += 1
    return _geometric_levels(most, steps)


def _geometric_levels(most: int, steps: int) -> Ints:
    """Return the distinct whole numbers of a geometric series from 1 to ``most``."""
    return np.unique(np.round(np.geomspace(1, most, steps)).astype(np.int64))
