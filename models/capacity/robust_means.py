"""From single windows to one point per parallelism, without windows that are far from the others.

A gross error (a stuck counter, a pause that no event tells of) would otherwise move a curve: five windows are averaged.
A window is left out when it is further from the median of its parallelism than REJECT_SD standard deviations, which
come from the median absolute deviation of all windows of the operator (Hampel's rule: Davies and Gather 1993).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.arrays import Bools, Floats, Ints

REJECT_SD: Final = 4.0
LEAST_SD: Final = 0.01  # of a share of capacity: identical windows must not reject every other
LEAST_WINDOWS: Final = 3  # with fewer there is no telling which one is wrong
_SD_PER_MAD: Final = 1.4826 * 1.25  # of a normal distribution; deviations from the median of five are too small


def find_outliers(point: Ints, owner: Ints, capacity_per_s: Floats) -> Bools:
    """Return (n,) which windows to leave out; (operator, parallelism) and operator ascend, capacities are positive."""
    if not len(point):
        return np.zeros(0, bool)
    logs = np.log(capacity_per_s)
    away = np.abs(logs - find_medians(point, logs)[point])
    enough = np.bincount(point)[point] >= LEAST_WINDOWS
    spread = np.zeros(int(owner.max()) + 1)
    if enough.any():
        retained, place = np.unique(owner[enough], return_inverse=True)
        spread[retained] = find_medians(place, away[enough])
    allowed = REJECT_SD * np.maximum(_SD_PER_MAD * spread, LEAST_SD)
    return np.asarray(enough & (away > allowed[owner]))


def find_medians(group: Ints, values: Floats) -> Floats:
    """Return the median of each group 0..n-1, none of which is empty."""
    order = np.lexsort((values, group))
    sizes = np.bincount(group)
    first = np.cumsum(sizes) - sizes
    ranked = values[order]
    return np.asarray(0.5 * (ranked[first + (sizes - 1) // 2] + ranked[first + sizes // 2]), float)


def select_recent(owner: Ints, parallelism: Ints, timestamp: Floats, keep: int) -> Ints:
    """Return the indices of the K most recent windows of each (operator, parallelism): ContTune's mean reversion."""
    order = np.lexsort((-timestamp, parallelism, owner))
    point = _number(owner[order], parallelism[order])
    first = np.flatnonzero(np.diff(point, prepend=-1))
    age = np.arange(len(order)) - first[point] if len(order) else np.zeros(0, np.int64)
    return np.asarray(order[age < keep], np.int64)


def reduce_windows(owner: Ints, parallelism: Ints, capacity_per_s: Floats) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Return owner, parallelism, count, mean and squared deviations of each (operator, parallelism) of (n,) windows."""
    order = np.lexsort((capacity_per_s, parallelism, owner))
    owner, parallelism, values = owner[order], parallelism[order], capacity_per_s[order]
    point = _number(owner, parallelism)
    retained = ~find_outliers(point, owner, values)
    owner, parallelism, values = owner[retained], parallelism[retained], values[retained]
    point = _number(owner, parallelism)
    first = np.flatnonzero(np.diff(point, prepend=-1))
    count = np.bincount(point).astype(np.int64) if len(point) else np.zeros(0, np.int64)
    mean = np.bincount(point, values, minlength=len(count)) / np.maximum(count, 1)
    squares = np.bincount(point, (values - mean[point]) ** 2, minlength=len(count))
    return owner[first], parallelism[first], count, np.asarray(mean, float), np.asarray(squares, float)


def number_points(owner: Ints, parallelism: Ints) -> Ints:
    """Return (n,) the number of each window's (operator, parallelism), in their ascending order."""
    order = np.lexsort((parallelism, owner))
    result = np.empty(len(order), np.int64)
    result[order] = _number(owner[order], parallelism[order])
    return result


def _number(owner: Ints, parallelism: Ints) -> Ints:
    new = (np.diff(owner, prepend=-1) != 0) | (np.diff(parallelism, prepend=-1) != 0)
    return np.asarray(np.cumsum(new) - 1, np.int64)
