"""The cheapest path through the configurations of a horizon, exact, by dynamic programming over (bin, configuration).

    minimise  sum over bins of bin_cost(t, k_t) + price(t) x slots(k_t)  +  sum over changes of switch(t, k_t)

A change costs what its target costs, wherever it comes from, so a bin takes O(K) instead of O(K^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """Solutions of J dynamic programmes.

    Attributes:
        choice: (J, T) index of the candidate in every bin.
        cost: (J,) of the whole horizon.
    """

    choice: Ints
    cost: Floats


def drop_dominated(own: Floats, switch: Floats, slots: Ints) -> Ints:
    """Return the indices, rising, of the candidates that can be on a cheapest path under any prices of slots.

    A candidate is left out when another with no more slots is cheaper in every bin, even where a change to it costs
    more: in any path it can take that one's place.  The first candidate, which runs, always stays. Costs of a bin,
    slots at their own price included, and of a change are (T, K).

    >>> own = np.array([[1.0, 2.0, 4.0], [3.0, 2.0, 4.0]])
    >>> drop_dominated(own, np.zeros((2, 3)), np.array([4, 5, 6])).tolist()
    [0, 1]
    """
    rivals = np.unique(np.append(own.argmin(axis=1), own.sum(axis=0).argmin()))
    extra_switch = np.maximum(switch[:, rivals, None] - switch[:, None, :], 0.0)  # (T, R, K)
    is_dominated = (own[:, rivals, None] + extra_switch + _MIN_DIFFERENCE < own[:, None, :]).all(axis=0) & (
        slots[rivals, None] <= slots
    )
    is_dominated[:, 0] = False
    return np.flatnonzero(~is_dominated.any(axis=0))


_MIN_DIFFERENCE: Final = 1e-5  # tables may be kept with single precision: a difference as small as that is none


def find_shortest_paths(bin_cost: Floats, switch: Floats, start: Ints) -> ShortestPaths:
    """Solve J dynamic programmes at once, each from its candidate before the first bin, (J,).

    Among equals a path that changes later, or not at all, wins. Costs of bins, infinite where there is no such
    candidate, and of changing to one at the begin of a bin are (J, T, K).

    >>> bins = np.array([[[1.0, 3.0], [6.0, 3.0], [6.0, 3.0], [1.0, 3.0]]])
    >>> found = find_shortest_paths(bins, np.full((1, 4, 2), 0.5), np.zeros(1, np.int64))
    >>> found.choice.tolist(), found.cost.tolist()
    ([[0, 1, 1, 0]], [9.0])
    """
    jobs, bins, count = bin_cost.shape
    rows = np.arange(jobs)
    ahead = np.zeros((jobs, count))
    leaves = np.zeros((jobs, bins, count), dtype=bool)
    target = np.zeros((jobs, bins), dtype=np.int64)
    for t in range(bins - 1, -1, -1):
        remain = bin_cost[:, t] + ahead
        change = remain + switch[:, t]
        target[:, t] = change.argmin(axis=1)
        cheapest = change[rows, target[:, t]][:, None]
        leaves[:, t] = cheapest < remain
        ahead = np.minimum(remain, cheapest)
    choice = np.empty((jobs, bins), dtype=np.int64)
    at = start.astype(np.int64)
    for t in range(bins):
        at = np.where(leaves[rows, t, at], target[:, t], at)
        choice[:, t] = at
    return ShortestPaths(choice, ahead[rows, start])
