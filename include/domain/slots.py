"""The slots that a configuration of a job takes; the one place that knows slot-sharing groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

Slots = TypeVar("Slots", int, float, "npt.NDArray[np.int64]", "npt.NDArray[np.float64]")
DEFAULT_GROUP: Final = "default"
"""Flink's group of what is in no other."""


def count_slots(parallelism: Mapping[str, int], group_of: Mapping[str, str]) -> int:
    """Return the slots that a parallelism takes: the largest of each slot-sharing group, summed.

    What is not named in ``group_of`` is in the default group.

    >>> count_slots({"source": 2, "map": 6, "sink": 3}, {})
    6
    >>> count_slots({"source": 2, "map": 6, "sink": 3}, {"sink": "own"})
    9
    """
    largest: dict[str, int] = {}
    for name, count in parallelism.items():
        group = group_of.get(name, DEFAULT_GROUP)
        largest[group] = max(largest.get(group, 0), count)
    return sum(largest.values())


def count_paid(slots: Slots, taskmanager_slots: int) -> Slots:
    """Return the slots of the TaskManagers that hold so many: what is paid.

    >>> count_paid(9, 4)
    12
    """
    return -(-slots // taskmanager_slots) * taskmanager_slots
