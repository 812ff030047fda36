"""The slots of many configurations at once; the same as :func:`include.domain.slots.count_slots`, over arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.arrays import Ints


def widest_of_groups(configurations: Ints, groups: Sequence[str] = ()) -> Ints:
    """Return (..., O) the largest parallelism in each operator's slot-sharing group; without groups all are in one."""
    widest = np.broadcast_to(configurations.max(axis=-1, keepdims=True), configurations.shape).copy()
    for group in set(groups) if len(set(groups)) > 1 else ():
        members = np.array([one == group for one in groups])
        widest[..., members] = configurations[..., members].max(axis=-1, keepdims=True)
    return widest


def count_slots_of_rows(configurations: Ints, groups: Sequence[str] = ()) -> Ints:
    """Return (...) the slots that each configuration, (..., O), takes: the largest parallelism of each group, summed.

    Without groups all operators are in one.

    >>> rows = np.array([[2, 6, 3], [4, 4, 4]])
    >>> count_slots_of_rows(rows).tolist()
    [6, 4]
    >>> count_slots_of_rows(rows, ("default", "default", "own")).tolist()
    [9, 8]
    """
    firsts = [groups.index(one) for one in dict.fromkeys(groups)] or [0]
    return np.asarray(widest_of_groups(configurations, groups)[..., firsts].sum(axis=-1))
