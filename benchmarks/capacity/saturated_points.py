"""Points of capacity curves from windows whose operators were all saturated."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints
from models.training.operator_fits import OperatorPoints, split_points


def list_saturated(
    owner: Ints,
    parallelism: Ints,
    at_s: Floats,
    capacity_per_s: Floats,
    *,
    keep: int,
    largest: Floats,
    key_groups: Floats,
    top: int,
) -> list[OperatorPoints]:
    """Return the points of operators from windows, (n,), that each tell a capacity whatever the load was.

    Args:
        owner: operator 0..B-1 of each window, which is its name.
        parallelism: of each.
        at_s: of each; larger is later.
        capacity_per_s: of each.
        keep: K, the latest windows per parallelism that are kept.
        largest: (B,) parallelism that was observed in the operator's job.
        key_groups: (B,) NaN where they are not known.
        top: largest parallelism of the curves.
    """
    newest = np.lexsort((-at_s, parallelism, owner))
    points, back = np.unique(np.stack((owner, parallelism))[:, newest], axis=1, return_inverse=True)
    first = np.searchsorted(back, np.arange(points.shape[1]))
    recent = newest[np.arange(len(newest)) - first[back] < keep]
    order = recent[np.lexsort((capacity_per_s[recent], parallelism[recent], owner[recent]))]
    result = []
    for operator in np.unique(owner[order]).tolist():
        mine = order[owner[order] == operator]
        at, _, capacities = split_points(parallelism[mine], capacity_per_s[mine])
        known = OperatorPoints(
            ("", ""),
            str(operator),
            at,
            capacities,
            np.ones(len(at)),
            False,
            int(largest[operator]),
            float(key_groups[operator]),
            top,
        )
        result.append(known)
    return result
