"""Value iteration, Eq. 3 and 4 of the paper, on what a configuration is worth once it has been chosen.

Every cost but that of rescaling depends on the state only through the rate level and the configuration k' = k + a
after the action.  So with

    G(j, k') = cost(j, k') + gamma * sum over j' of p(j, j') V(j', k')

the Q function is Q((j, k), a) = G(j, k + a) + w_rcf [a != 0], and V(j, k) = min(G(j, k), w_rcf + least G within one
instance of k).  One sweep is a matrix product and two shifted minima per operator, not |S|^2 |A|^2 operations as the
paper states; nothing is approximated.

| name | meaning | shape |
| --- | --- | --- |
| J | rate levels | |
| K1, K2, ... | parallelisms of the operators that are decided together | |
| M | independent learners in one batch, the last axis when there is one | |
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.arrays import Floats

TOLERANCE = 1e-5  # of costs in units of the weights
MAX_SWEEPS = 5000


def min_over_neighbours(values: Floats, axes: Sequence[int]) -> Floats:
    """Return the least value among the neighbours that differ by at most one step along each of ``axes``.

    Actions of several operators combine freely, so the minimum over their product is taken one axis at a time.
    """
    least = values
    for axis in axes:
        before = np.moveaxis(least, axis, 0)
        least = least.copy()
        after = np.moveaxis(least, axis, 0)
        np.minimum(after[1:], before[:-1], out=after[1:])
        np.minimum(after[:-1], before[1:], out=after[:-1])
    return least


def worth(cost: Floats, probability: Floats, values: Floats, discount: float) -> Floats:
    """Return G, (J, ...): the cost of the slot and the discounted value of where the rate then is."""
    flat = values.reshape(len(values), -1)
    return np.asarray(cost + discount * (probability @ flat).reshape(values.shape), float)


def best_value(after: Floats, rescale_cost: float, axes: Sequence[int]) -> Floats:
    """Return V, (J, ...), from G: stay, or pay for the best neighbour."""
    return np.minimum(after, rescale_cost + min_over_neighbours(after, axes))


def solve(
    cost: Floats,
    probability: Floats,
    *,
    rescale_cost: float,
    discount: float,
    axes: Sequence[int] | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[Floats, int]:
    """Iterate values from 0 until they are known to ``tolerance``.

    MacQueen's bounds: if one sweep adds between low and high to every value, further sweeps add between
    gamma / (1 - gamma) times low and high; so iteration stops when these are close and adds their middle.

    Args:
        cost: (J, K1, K2, ...) of a slot that begins at a level and is run with a configuration.
        probability: (J, J).
        rescale_cost: w_rcf.
        discount: gamma, below 1.
        axes: of configurations; all but the first unless given.
        tolerance: of a value.

    Returns:
        G, shaped as ``cost``, and the number of sweeps.
    """
    along = tuple(range(1, cost.ndim)) if axes is None else axes
    further = discount / (1.0 - discount)
    values, width, sweeps = np.zeros_like(cost), np.inf, 0
    while width > tolerance and sweeps < MAX_SWEEPS:
        better = best_value(worth(cost, probability, values, discount), rescale_cost, along)
        added = better - values
        low, high = further * float(added.min()), further * float(added.max())
        width, values, sweeps = high - low, better, sweeps + 1
    return worth(cost, probability, values + (low + high) / 2.0, discount), sweeps
