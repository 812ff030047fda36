"""The upper level of Dragster: which capacity every operator should have, Eq. 11 and 13-16.

Everything is normalised so that operators of different selectivity weigh alike: f by the sink's unlimited rate, an
operator's capacity and constraint by the largest output it ever had to produce.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lab.policies.dragster.network import OperatorNetwork, Rates, demand, flow

# Capacity is moved by this share of its scale to see what it does to L.
_STEP = 1e-5


@dataclass(frozen=True, slots=True)
class SaddlePointProblem:
    """OPT1 in one slot.

    Attributes:
        net: the network.
        source_per_s: source -> records/s of the slot, what must be caught up included.
        scale_per_s: operator -> normalisation, positive.
    """

    net: OperatorNetwork
    source_per_s: Rates
    scale_per_s: Rates

    def excess(self, capacity_per_s: Rates) -> dict[str, float]:
        """Return l_i = sum_j h_ij(e_i) - y_i of each operator, Eq. 11, normalised; above 0 its buffer grows."""
        offered = flow(self.net, self.source_per_s, capacity_per_s).offered
        return {name: (offered[name] - y) / self.scale_per_s[name] for name, y in capacity_per_s.items()}

    def lagrangian(self, capacity_per_s: Rates, multipliers: Mapping[str, float]) -> float:
        """Return L = f - sum_i lambda_i l_i, Eq. 13, normalised."""
        best = demand(self.net, self.source_per_s).sink
        sink = flow(self.net, self.source_per_s, capacity_per_s).sink
        penalty = sum(multipliers.get(name, 0.0) * over for name, over in self.excess(capacity_per_s).items())
        return (sink / best if best > 0 else 0.0) - penalty

    def slopes(self, capacity_per_s: Rates, multipliers: Mapping[str, float]) -> dict[str, float]:
        """Return dL/dy_i of each operator, normalised: above 0 the operator is a bottleneck.

        L has kinks where two operators limit alike.  The difference is taken downwards, so that both count as limiting.
        """
        here = self.lagrangian(capacity_per_s, multipliers)
        return {
            name: (here - self.lagrangian({**capacity_per_s, name: y - _STEP * self.scale_per_s[name]}, multipliers))
            / _STEP
            for name, y in capacity_per_s.items()
        }


def step_size(slot: int) -> float:
    """Return gamma = 1 / sqrt(t) of Theorem 1."""
    return 1.0 / math.sqrt(slot)


def multipliers_after(before: Mapping[str, float], excess: Mapping[str, float], gamma: float) -> dict[str, float]:
    """Return lambda_i = max(0, lambda_i + gamma l_i), Eq. 15; an operator without observation keeps its own.

    Deviation: line 4 of Algorithm 2 has l_i of the target y(t); here ``excess`` is of the capacity that was observed,
    since a target that no number of tasks reaches would let a multiplier grow or fall for what never ran.
    """
    moved = {name: max(0.0, before.get(name, 0.0) + gamma * over) for name, over in excess.items()}
    return {**before, **moved}


def saddle_targets(
    problem: SaddlePointProblem, multipliers: Mapping[str, float], ceiling_per_s: Rates, weight: float
) -> dict[str, float]:
    """Return the capacities of the online saddle point, Eq. 14, records/s: the demand, and more by each lambda_i.

    Deviation: where lambda is positive L grows with y for ever, and where it is 0 every y above the demand is a
    maximiser.  So half the squared distance from the demand, over ``weight``, is taken from L, as the method that the
    paper's proof follows takes a proximal term; what is left has the one maximiser y = demand + weight lambda.

    Args:
        problem: of the last slot.
        multipliers: lambda(t-1).
        ceiling_per_s: operator -> the most that it is believed to be capable of; y is not asked to be above that.
        weight: inverse of the proximal term's factor, in units of the normalisation.
    """
    needed = demand(problem.net, problem.source_per_s).offered
    return {
        name: max(
            needed[name],
            min(needed[name] + weight * multipliers.get(name, 0.0) * problem.scale_per_s[name], ceiling),
        )
        for name, ceiling in ceiling_per_s.items()
    }


def gradient_targets(
    problem: SaddlePointProblem,
    capacity_per_s: Rates,
    multipliers: Mapping[str, float],
    wanted_per_s: Rates,
    eta: float,
) -> dict[str, float]:
    """Return the capacities after one step of online gradient descent, Eq. 16, records/s.

    Deviation: L is flat above the demand, so nothing would ever be given back; a target never passes what is wanted,
    and a capacity above it goes the share eta of the way down.

    Args:
        problem: of the last slot.
        capacity_per_s: operator -> y(t-1).
        multipliers: lambda(t-1).
        wanted_per_s: operator -> the smallest capacity that would do, not below the demand.
        eta: step, in units of the normalisation.

    Returns:
        operator -> y(t), only of those that are to move: bottlenecks, and those with more than is wanted.
    """
    targets = {}
    for name, slope in problem.slopes(capacity_per_s, multipliers).items():
        y, wanted = capacity_per_s[name], wanted_per_s[name]
        if y > wanted:
            targets[name] = y + eta * (wanted - y)
        elif slope > 0:
            targets[name] = min(y + eta * slope * problem.scale_per_s[name], wanted)
    return targets
