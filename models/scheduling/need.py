"""Bounds of parallelism, and of the capacity at each, that planning trusts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Planner
from models.arrays import Floats, Ints
from models.bundle.job_models import CapacityCurve
from models.capacity.interval_calibration import half_widths


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
