"""Means over the windows of a job's present configuration."""

from __future__ import annotations

import numpy as np

from include.domain.graph import JobGraph
from models.arrays import Bools, Floats
from models.observing.windows import BACKPRESSURED_ABOVE
from models.policies.observations import Observations


def mean_per_operator(values: Floats) -> Floats:
    """Return (O,) the mean of (W, O) over the windows that have a finite value, NaN where none has."""
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(finite, values, 0.0).sum(axis=0) / finite.sum(axis=0), float)


def hides_demand(observations: Observations, graph: JobGraph) -> Bools:
    """Return (W,) whether a source's demand is not known, and higher than what it took in: backpressure held it up."""
    sources = [graph.position(name) for name in graph.sources]
    with np.errstate(invalid="ignore"):
        held_up = observations.backpressured_share[:, sources] > BACKPRESSURED_ABOVE
    return np.asarray((held_up & np.isnan(observations.target_data_rate_per_s[:, sources])).any(axis=1))


def source_rates(observations: Observations) -> Floats:
    """Return (O,) records/s that arrived at each source; what it took in where arrivals are not measured; 0 if neither.

    Other operators have meaningless values.
    """
    arrived = mean_per_operator(observations.target_data_rate_per_s)
    rate = np.where(np.isfinite(arrived), arrived, mean_per_operator(observations.processing_rate_per_s))
    return np.asarray(np.where(np.isfinite(rate), np.maximum(rate, 0.0), 0.0), float)
