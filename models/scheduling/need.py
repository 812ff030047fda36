"""Parallelism that a rate needs: the smallest whose lower capacity bound covers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Planner
from models.arrays import Bools, Floats, Ints
from models.bundle.job_models import CapacityCurve
from models.capacity.interval_calibration import half_widths
from models.scheduling.demand import Demand, quantile_at_level


@dataclass(frozen=True, slots=True)
class CapacityBounds:
    """One operator's capacity at parallelism 1..P (index p - 1), records/s.

    Attributes:
        mean_per_s, sd_per_s: (P,) the posterior.
        lower_per_s: (P,) the bound that planning trusts, never falling in p.
        tail_ratio: (P,) of the curve; None: the capacity is normal.
    """

    mean_per_s: Floats
    sd_per_s: Floats
    lower_per_s: Floats
    tail_ratio: Floats | None = None

    def index_of(self, parallelism: Ints) -> Ints:
        """Return the indices of parallelisms; one beyond P has the capacity of P: more subtasks find nothing to do."""
        return np.minimum(parallelism, len(self.mean_per_s)) - 1


@dataclass(frozen=True, slots=True)
class Need:
    """Needs of every bin.

    Attributes:
        parallelism: (O, T) smallest admissible parallelism, clipped to the operator's maximum.
        short: (O, T) whether even the maximum does not cover the bin.
        unmodelled: operators without a capacity model, which keep their parallelism.
        unknown: operators whose demand is not known, which keep it too.
    """

    parallelism: Ints
    short: Bools
    unmodelled: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def upper_limits(graph: JobGraph, slots_max: int) -> Ints:
    """Return (O,) the highest admissible parallelism: key groups, partitions, and the slots that operators share.

    >>> from include.domain.graph import JobGraph, Operator
    >>> graph = JobGraph((Operator("source", partitions=12), Operator("map", ("source",))))
    >>> upper_limits(graph, 32).tolist()
    [12, 32]
    """
    return np.minimum([operator.most_subtasks for operator in graph.operators], slots_max).astype(np.int64)


def _posterior(curve: CapacityCurve, p_max: int) -> tuple[Floats, Floats, Floats | None]:
    """Return mean, deviation and tail ratio at 1..p_max, (p_max,) each.

    Beyond the curve's grid both grow in proportion to p, as DS2 would have it; the trust region then applies.
    """
    grid = len(curve.parallelism)
    p = np.arange(1, p_max + 1)
    inside = np.minimum(p, grid) - 1
    growth = np.maximum(p / grid, 1.0)
    tail = None if curve.tail_ratio is None else curve.tail_ratio[inside]
    return curve.mean_per_s[inside] * growth, curve.sd_per_s[inside] * growth, tail


def capacity_bounds(curve: CapacityCurve, p_max: int, *, trust_region: int, z: float) -> CapacityBounds:
    """Return a capacity bound at every parallelism.

    Within ``trust_region`` (alpha of ContTune's Algorithm 2) of an observed parallelism the bound is the calibrated
    quantile of the capacity at z; outside, the smaller of that and DS2's line through the nearest observation.

    Deviation: ContTune compares the GP's mean with the rate and leaves its bounds unused (Eq. 5); a plan for a day
    ahead has no second try within minutes, so the lower bound decides.
    """
    mean, sd, tail = _posterior(curve, p_max)
    lower = mean - half_widths(z, tail) * sd
    p = np.arange(1, p_max + 1)
    if len(curve.observed):
        distance = np.abs(p[:, None] - curve.observed[None, :])  # (P, m)
        nearest = distance.argmin(axis=1)
        line = curve.observed_per_s[nearest] / curve.observed[nearest] * p
        outside = distance.min(axis=1) > trust_region
    else:
        line, outside = curve.slope_per_s * p, np.ones(p_max, dtype=bool)
    bounded = np.where(outside, np.minimum(lower, line), lower)
    # Monotone: p + 1 instances process at least what p do. Uncertainty alone must not demand more and more of them.
    return CapacityBounds(mean, sd, np.maximum.accumulate(np.maximum(bounded, 0.0)), tail)


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


def job_bounds(
    graph: JobGraph, curves: Mapping[str, CapacityCurve], limits: Ints, options: Planner
) -> dict[str, CapacityBounds]:
    """Return the bounds of every operator of a job that has a capacity model."""
    trust_region, z = options.capacity.trust_region, options.capacity.lower_bound_z
    return {
        name: capacity_bounds(curves[name], int(p_max), trust_region=trust_region, z=z)
        for name, p_max in zip(graph.names, limits, strict=True)
        if name in curves
    }


def compute_needs(
    demand: Demand, bounds: Mapping[str, CapacityBounds], current: Ints, limits: Ints, options: Planner
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
