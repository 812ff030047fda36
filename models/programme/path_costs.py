"""The trajectory's costs step by step, as a problem whose cheapest path is the trajectory: what prices of slots act on.

With V and the costs of staying and going as in :mod:`models.programme.programme`, at the expected load and at the ages
that the trajectory passes through:

    bin(j, k) = stay_j(k) - V_{j+1}(k)        switch(j, k) = rescale + go_j(k) - stay_j(k)

The cost-to-go of that problem is V itself.  A price of slots comes on top of the bins; by what it raises the cost-to-go
of a size, it raises the costs of that size in the programme.  Deviation: at other levels of the load and other ages the
size that follows is taken to be the path's, so the price of what the programme would do there is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.programme.horizon import EXPECTED
from models.programme.problem import Costs
from models.programme.window_tables import weigh_age


@dataclass(frozen=True, slots=True)
class PathCosts:
    """Costs of a path through the sizes of a job.

    Attributes:
        bin_cost: (J, K) of a step, slots at their own price included.
        switch: (J, K) of a change to a size at the beginning of a step.
    """

    bin_cost: Floats
    switch: Floats

    @classmethod
    def of(cls, costs: Costs, ages: Floats, passed_s: Sequence[float], rescale_price: float) -> PathCosts:
        """Return the costs along a trajectory with (J,) ages of the backlog at the beginning of each step."""
        rows = []
        for step, age_s in enumerate(passed_s):
            weights = weigh_age(age_s, ages)
            known = 0 if step == 0 else EXPECTED
            rows.append([one[:, known] @ weights for one in costs[step]])
        stay, go = np.array(rows, float).transpose(1, 0, 2)
        best = np.minimum(stay, go.min(axis=1, keepdims=True) + rescale_price)
        later = np.concatenate([best[1:], np.zeros((1, best.shape[1]))])
        return cls(stay - later, rescale_price + go - stay)

    def raise_by(self, paid: Floats) -> Floats:
        """Return (J, K) by how much more it costs to go on from a size when each step of a size is paid for, (J, K)."""
        return self._solve(self.bin_cost + paid) - self._solve(self.bin_cost)

    def _solve(self, bin_cost: Floats) -> Floats:
        """Return (J, K) the cost-to-go of staying."""
        remain, ahead = np.empty_like(bin_cost), np.zeros(bin_cost.shape[1])
        for step in range(len(bin_cost) - 1, -1, -1):
            remain[step] = bin_cost[step] + ahead
            ahead = np.minimum(remain[step], (remain[step] + self.switch[step]).min())
        return remain


def charge(costs: Costs, raised: Floats) -> Costs:
    """Return the costs of the programme with what each size is paid for, (J, K)."""
    return {
        step: (stay + raised[step][:, None, None], go + raised[step][:, None, None])
        for step, (stay, go) in costs.items()
    }
