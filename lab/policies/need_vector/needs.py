"""Parallelism that each bin of a horizon needs: the smallest whose lower capacity bound covers it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lab.scheduling.planner_settings import PlannerSettings
from lab.scheduling.quantiles import quantile_at_level
from lab.scheduling.step_placing import Need
from models.arrays import Bools, Floats, Ints
from models.scheduling.demand import Demand
from models.scheduling.need import CapacityBounds


def smallest_parallelism(required_per_s: Floats, lower_per_s: Floats) -> tuple[Ints, Bools]:
    """Return the smallest p whose bound covers each rate, clipped to P, and where P does not suffice.

    Args:
        required_per_s: (T,) records/s to be covered.
        lower_per_s: (P,) bound at p = 1..P, never falling.

    >>> needed, short = smallest_parallelism(np.array([150.0, 900.0]), np.array([100.0, 200.0, 300.0]))
    >>> needed.tolist(), short.tolist()
    ([2, 3], [False, True])
    """
    index = np.searchsorted(lower_per_s, required_per_s, side="left")
    short = index >= len(lower_per_s)
    return np.minimum(index, len(lower_per_s) - 1).astype(np.int64) + 1, short


def compute_needs(
    demand: Demand, bounds: Mapping[str, CapacityBounds], current: Ints, limits: Ints, options: PlannerSettings
) -> Need:
    """Return the need-vector of every bin at the planning quantile and the target utilisation.

    Args:
        demand: rates of O operators over T bins; an operator whose demand is not known keeps its parallelism.
        bounds: capacity per operator; an operator that is missing keeps its parallelism.
        current: (O,) running parallelism.
        limits: (O,) highest admissible parallelism.
        options: the planner's settings.
    """
    required = quantile_at_level(demand.rates_per_s, options.load_quantile) / options.capacity.target_utilisation
    parallelism = np.repeat(np.minimum(current, limits)[:, None], demand.bins, axis=1)
    short = np.zeros(parallelism.shape, dtype=bool)
    known = demand.is_known
    for row, name in enumerate(demand.operators):
        if name in bounds and known[row]:
            parallelism[row], short[row] = smallest_parallelism(required[row], bounds[name].lower_per_s)
    unmodelled = tuple(name for name in demand.operators if name not in bounds)
    return Need(parallelism, short, unmodelled, demand.unknown)
