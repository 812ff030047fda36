"""The projection of Eq. 18 of Dragster on a budget: the best configuration of at most B tasks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lab.policies.dragster.network import OperatorNetwork, Rates, demand
from models.arrays import Floats

_BISECTIONS = 40


def project(
    net: OperatorNetwork, source_per_s: Rates, capacity_per_s: Mapping[str, Floats], budget: int
) -> dict[str, int]:
    """Return the tasks that send the largest share of the source rates through the job within a budget.

    Deviation: the paper does not say how integers are projected, and the sum of -|mu - y| is indifferent to balance: it
    gives a budget to any operator alike, although the job is as fast as its slowest.  So f is maximised instead: a
    share of the source rates needs a capacity of every operator, hence a number of tasks, and the largest share that
    the budget can pay is searched.  What a job of a single source does is its f exactly; several sources share
    alike, as backpressure lets them.

    Args:
        net: the network.
        source_per_s: source -> records/s.
        capacity_per_s: operator -> (n,) capacity with 1, ..., n tasks, output units; it need not be monotone.
        budget: B, tasks of all operators together.

    Returns:
        operator -> tasks, the fewest that reach that share; one each when the budget does not even pay that.
    """
    low, high = 0.0, 1.0
    best = dict.fromkeys(capacity_per_s, 1)
    full = _tasks(net, source_per_s, capacity_per_s, high)
    if full and sum(full.values()) <= budget:
        return full
    for _ in range(_BISECTIONS):
        share = (low + high) / 2
        result = _tasks(net, source_per_s, capacity_per_s, share)
        if result and sum(result.values()) <= budget:
            low, best = share, result
        else:
            high = share
    return best


def _tasks(net: OperatorNetwork, source_per_s: Rates, capacity: Mapping[str, Floats], share: float) -> dict[str, int]:
    """Return the fewest tasks whose capacity passes on a share of the source rates; empty when there are none."""
    needed = demand(net, {name: share * rate for name, rate in source_per_s.items()}).offered
    enough = {name: np.flatnonzero(values >= needed[name]) for name, values in capacity.items()}
    return {name: int(result[0]) + 1 for name, result in enough.items()} if all(map(len, enough.values())) else {}
