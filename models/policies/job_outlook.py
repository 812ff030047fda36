"""The outlook of a situation: what the forecast, the capacities and the limits of a job mean for its planning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.utc import HOUR_S
from models.arrays import Ints
from models.policies.protocol import Situation
from models.scheduling.demand import demand, resample_to_bins
from models.scheduling.expectation import Outlook
from models.scheduling.need import job_bounds, upper_limits


@dataclass(frozen=True, slots=True)
class JobOutlook:
    """An outlook with the configuration it begins from.

    Attributes:
        outlook: demand, capacity bounds and recovery.
        current: (O,) running parallelism.
        limits: (O,) highest admissible parallelism.
    """

    outlook: Outlook
    current: Ints
    limits: Ints


def build_outlook(situation: Situation) -> JobOutlook:
    """Return the outlook of a job over the planning horizon.

    Raises:
        DemandError: the forecast cannot be used.
        GraphError: forecast and graph do not belong together.
    """
    options, graph, models = situation.options, situation.graph, situation.models
    forecast = resample_to_bins(situation.forecast, situation.as_of_s, options.bin_s, options.horizon_h * HOUR_S)
    required = demand(graph, models.edge_ratios(graph), forecast)
    limits = upper_limits(graph, situation.slots_max)
    bounds = job_bounds(graph, models.capacity, limits, options)
    current = np.array([situation.parallelism[name] for name in graph.names], np.int64)
    return JobOutlook(Outlook(required, bounds, models.recovery, options.capacity.lower_bound_z), current, limits)
