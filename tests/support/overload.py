"""How likely a job is overloaded, whatever another size of it would avoid."""

from __future__ import annotations

import numpy as np

from lab.scheduling.cost_model import limiting_operators, overload_of_operator
from models.arrays import Floats, Ints
from models.scheduling.expectation import Outlook


def overload_probability(outlook: Outlook, configurations: Ints, tolerance: float = 0.0) -> Floats:
    """Return (T, K) the probability that some operator gets more than it can process.

    All operators' rates rise together, so the likeliest to be overloaded decides.

    Args:
        outlook: demand and capacity.
        configurations: (K, O) candidates.
        tolerance: share by which load may exceed capacity: a slight excess takes longer than a bin to make a job late,
            and bins above the median are followed by others below it.
    """
    worst = np.zeros((outlook.demand.bins, len(configurations)))
    for row, bounds in limiting_operators(outlook):
        used, back = np.unique(bounds.index_of(configurations[:, row]), return_inverse=True)
        worst = np.maximum(worst, overload_of_operator(outlook.demand, row, bounds, used, tolerance)[:, back])
    return worst
