"""Merging the needs of the bins into few configurations, each kept long enough to be worth its rescale.

Slots of a job are the highest parallelism of its operators (slot sharing), and a segment's configuration is the
elementwise maximum of its bins' needs.  The maximum over operators and the maximum over bins commute, so the slots of a
segment are the maximum of the bins' slots, and the cheapest division into segments is found exactly:

    minimise  sum over segments of slots x seconds  +  rescale cost x number of rescales

by dynamic programming over the ends of segments, O(T^2) for T bins.
"""

from __future__ import annotations

import numpy as np

from lab.scheduling.segments import Segment
from models.arrays import Floats, Ints

_HOLD = -1
_LEAST_RESCALE_COST_SLOT_S = 1.0  # never free: among equals the division with fewer rescales wins


def count_held_bins(need: Ints, current: Ints, limits: Ints) -> int:
    """Return how many bins from the first on the running configuration covers.

    0 when it exceeds a limit itself: then it may not go on.

    >>> count_held_bins(np.array([[1, 2, 5, 1]]), np.array([3]), np.array([8]))
    2
    """
    if (current > limits).any():
        return 0
    uncovered = (need > current[:, None]).any(axis=0)
    return int(uncovered.argmax()) if uncovered.any() else need.shape[1]


def divide(
    need: Ints, current: Ints, limits: Ints, *, bin_s: float, min_step_s: float, rescale_cost_slot_s: float
) -> list[Segment]:
    """Divide the horizon into segments.

    Every bin's need is covered.  No segment is shorter than ``min_step_s`` but the one that is already running and the
    last, whose end lies beyond the horizon.  No rescale saves less than it costs.  Among equals the latest ends win:
    an increase begins at the bin that needs it, a decrease waits for the end of the need.

    Args:
        need: (O, T) parallelism that each bin needs, within the limits.
        current: (O,) running parallelism.
        limits: (O,) highest admissible parallelism.
        bin_s: length of a bin, s.
        min_step_s: shortest time that a new configuration is kept, s.
        rescale_cost_slot_s: price of a rescale, slot-seconds.

    Returns:
        Segments in order, without gaps; the first may be held.

    >>> need = np.array([[2, 2, 6, 6, 2, 2]])
    >>> found = divide(need, np.array([2]), np.array([8]), bin_s=600, min_step_s=600, rescale_cost_slot_s=1200)
    >>> [(one.begin, one.end, one.parallelism.tolist(), one.held) for one in found]
    [(0, 2, [2], True), (2, 4, [6], False), (4, 6, [2], False)]
    """
    bins = need.shape[1]
    held_until = count_held_bins(need, current, limits)
    hold_cost = np.where(np.arange(bins + 1) <= held_until, current.max() * bin_s * np.arange(bins + 1), np.inf)
    shortest = int(np.ceil(min_step_s / bin_s))
    price = max(rescale_cost_slot_s, _LEAST_RESCALE_COST_SLOT_S)
    parent = _find_cheapest(need.max(axis=0), hold_cost, max(shortest, 1), bin_s, price)
    segments: list[Segment] = []
    end = bins
    while end > 0:
        begin = int(parent[end])
        if begin == _HOLD:
            segments.append(Segment(0, end, current.copy(), held=True))
            break
        segments.append(Segment(begin, end, need[:, begin:end].max(axis=1), held=False))
        end = begin
    return segments[::-1]


def _find_cheapest(slots: Ints, hold_cost: Floats, shortest: int, bin_s: float, rescale_cost: float) -> Ints:
    """Return (T + 1,) for each end the begin of the last segment of the cheapest division, ``_HOLD`` for none.

    Args:
        slots: (T,) of each bin.
        hold_cost: (T + 1,) slot-seconds of keeping the running configuration until then; infinite when it may not.
        shortest: bins that a segment must have, unless it is the last.
        bin_s: length of a bin, s.
        rescale_cost: slot-seconds.
    """
    bins = len(slots)
    best = hold_cost.copy()
    parent = np.full(bins + 1, _HOLD, dtype=np.int64)
    for end in range(1, bins + 1):
        latest = end - 1 if end == bins else end - shortest
        if latest < 0:
            continue
        backwards = np.maximum.accumulate(slots[:end][::-1])[::-1]  # highest of [begin, end) for every begin
        begins = np.arange(latest + 1)
        cost = best[begins] + rescale_cost + backwards[begins] * (bin_s * (end - begins))
        begin = latest - int(cost[::-1].argmin())  # the latest among equals
        if cost[begin] < best[end]:
            best[end], parent[end] = cost[begin], begin
    return parent
