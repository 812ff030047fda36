"""Parallelisms that divide partitions and key groups evenly, where that costs no slot."""

from __future__ import annotations

import numpy as np

from include.domain.graph import JobGraph, Operator
from models.arrays import Ints
from models.scheduling.slot_counts import widest_of_groups


def align_shares(graph: JobGraph, configurations: Ints, current: Ints) -> Ints:
    """Return the configurations with operators raised to the next divisor of what their subtasks share.

    A source's subtasks share its partitions, a keyed operator's its key groups; unless their number divides them, some
    have one more than others and are full first.  Operators of a group share slots, so an operator is raised as far as
    the widest one of its group and no further.  One that keeps its parallelism, (O,) ``current``, is left.


    >>> graph = JobGraph((Operator("source", partitions=12), Operator("count", ("source",), is_keyed=True)))
    >>> align_shares(graph, np.array([[5, 9], [3, 7]]), np.array([1, 1])).tolist()
    [[6, 9], [3, 7]]
    """
    aligned = configurations.copy()
    widest = widest_of_groups(configurations, graph.slot_sharing_groups)
    for row, operator in enumerate(graph.operators):
        shared = _count_shared(operator)
        if shared is None:
            continue
        divisors = np.array([count for count in range(1, shared + 1) if shared % count == 0])
        place = np.searchsorted(divisors, configurations[:, row])
        raised = divisors[np.minimum(place, len(divisors) - 1)]
        fits = (place < len(divisors)) & (raised <= widest[:, row]) & (configurations[:, row] != current[row])
        aligned[:, row] = np.where(fits, raised, configurations[:, row])
    return aligned


def _count_shared(operator: Operator) -> int | None:
    """Return what an operator's subtasks share; None where nothing is known of it."""
    if operator.is_source:
        return operator.partitions
    return operator.max_parallelism if operator.is_keyed else None
