"""Where an operator is short although it is as wide as it may be."""

from __future__ import annotations

import numpy as np

from lab.scheduling.quantiles import quantile_at_level
from models.arrays import Bools, Ints
from models.scheduling.expectation import Outlook


def find_short(outlook: Outlook, chosen: Ints, limits: Ints, level: float) -> Bools:
    """Return (O, T) where an operator at its limit gets more than its expected capacity, at a quantile of the load.

    Args:
        outlook: demand and capacity.
        chosen: (O, T) parallelism.
        limits: (O,) highest admissible parallelism.
        level: of the quantile.
    """
    rates = quantile_at_level(outlook.demand.rates_per_s, level)
    capacity = np.full(len(limits), np.inf)
    for row, name in enumerate(outlook.demand.operators):
        if name in outlook.bounds:
            capacity[row] = outlook.bounds[name].mean_per_s[-1]
    return np.asarray((rates > capacity[:, None]) & (chosen >= limits[:, None]))
