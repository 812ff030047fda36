"""Models over the scale-out: of a profile, or those that the pipeline trains every night where there is no profile.

Deviation: Phoebe always profiles.  Here a job that was not profiled is judged by its operators' capacity curves, with
every operator at the same parallelism, and by its latency curve; a latency is abnormal where the load is not below the
capacity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.policies.phoebe.capacity_profile import CapacityRegression
from lab.policies.phoebe.latency_model import LatencyRegression as ProfiledModel
from models.arrays import Floats, Ints
from models.bundle.job_models import LatencyModel
from models.policies.protocol import Situation
from models.scheduling.demand import MEDIAN, demand
from models.scheduling.need import job_bounds, upper_limits

NO_CAPACITY = "nothing is known yet about the capacity of any operator"
"""Reason for no change where :meth:`LearnedModels.of` returns None."""


@dataclass(frozen=True, slots=True)
class ProfiledModels:
    """Ridge and M_L of the profiling phase; see :class:`lab.policies.phoebe.optimiser.ScaleOutModels`."""

    capacity: CapacityRegression
    latency_model: ProfiledModel

    def capacity_per_s(self, scale_outs: Sequence[int]) -> Floats:
        """Return (n,) T_max, records/s."""
        return self.capacity.per_s(scale_outs)

    def latency(self, scale_outs: Sequence[int], load_per_s: float) -> tuple[Floats, Ints]:
        """Return (n,) latencies in ms and (n,) classes; unknown and normal when the load is not known."""
        if not np.isfinite(load_per_s):
            return np.full(len(scale_outs), np.nan), np.zeros(len(scale_outs), np.int64)
        return self.latency_model.predict(scale_outs, load_per_s)


@dataclass(frozen=True, slots=True)
class LearnedModels:
    """The pipeline's models over a scale-out of the whole job.

    Attributes:
        limit_per_s: (P,) source records/s that the job sustains with every operator at 1..P.
        latency_model: over utilisation.
    """

    limit_per_s: Floats
    latency_model: LatencyModel

    @classmethod
    def of(cls, situation: Situation) -> LearnedModels | None:
        """Return the models of a situation; None when no operator has a capacity model that the forecast reaches."""
        graph, slots = situation.graph, situation.slots_max
        limits = upper_limits(graph, slots)
        bounds = job_bounds(graph, situation.models.capacity, limits, situation.options)
        required = demand(graph, situation.models.edge_ratios(graph), situation.forecast)
        load = float(required.load_per_s[MEDIAN].mean())
        sustained = np.full(slots, np.inf)
        for row, name in enumerate(required.operators):
            rate = float(required.rates_per_s[MEDIAN, row].mean())
            if name in bounds and rate > 0:
                mean = bounds[name].mean_per_s
                at = np.minimum(np.arange(slots), len(mean) - 1)
                sustained = np.minimum(sustained, np.maximum(mean[at], 0.0) * load / rate)
        return cls(sustained, situation.models.latency) if np.isfinite(sustained).all() else None

    def capacity_per_s(self, scale_outs: Sequence[int]) -> Floats:
        """Return (n,) source records/s."""
        return self.limit_per_s[np.asarray(scale_outs, np.int64) - 1]

    def latency(self, scale_outs: Sequence[int], load_per_s: float) -> tuple[Floats, Ints]:
        """Return (n,) latencies in ms and (n,) classes."""
        capacity = self.capacity_per_s(scale_outs)
        is_late = ~(load_per_s < capacity)
        utilisation = np.divide(load_per_s, capacity, out=np.ones(len(capacity)), where=~is_late & (capacity > 0))
        return self.latency_model.latency_ms(utilisation), is_late.astype(np.int64)
