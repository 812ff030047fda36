"""The slots of many configurations at once; the same as :func:`include.domain.slots.count_slots`, over arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.arrays import Ints


def widest_of_groups(configurations: Ints, groups: Sequence[str] = ()) -> Ints:
    """Return, for each operator, the largest parallelism in its slot-sharing group.

    Args:
        configurations: (..., O) parallelism.
        groups: (O,) slot-sharing group of each operator; none: all are in one.

    Returns:
        (..., O).
    """
    widest = np.broadcast_to(configurations.max(axis=-1, keepdims=True), configurations.shape).copy()
    for group in set(groups) if len(set(groups)) > 1 else ():
        members = np.array([one == group for one in groups])
        widest[..., members] = configurations[..., members].max(axis=-1, keepdims=True)
    return widest


def count_slots_of_rows(configurations: Ints, groups: Sequence[str] = ()) -> Ints:
    """Return the slots that each configuration takes: the largest parallelism of each slot-sharing group, summed.

    Args:
        configurations: (..., O) parallelism.
        groups: (O,) slot-sharing group of each operator; none: all are in one.

    Returns:
        (...).

    >>> rows = np.array([[2, 6, 3], [4, 4, 4]])
    >>> count_slots_of_rows(rows).tolist()
    [6, 4]
    >>> count_slots_of_rows(rows, ("default", "default", "own")).tolist()
    [9, 8]
    """
    firsts = [groups.index(one) for one in dict.fromkeys(groups)] or [0]
    return np.asarray(widest_of_groups(configurations, groups)[..., firsts].sum(axis=-1))
