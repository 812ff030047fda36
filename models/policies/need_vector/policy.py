"""The project's own policy: cover every bin's need, with as few rescales as they are worth."""

from __future__ import annotations

import numpy as np

from models.policies.need_vector.options import NeedVectorOptions
from models.policies.protocol import Decision, Schedule, Situation
from models.scheduling.demand import at_level, demand, on_bins
from models.scheduling.expectation import Outlook
from models.scheduling.need import job_bounds, needs, upper_limits
from models.scheduling.reason import sentence
from models.scheduling.rescale_timing import Circumstances, place
from models.scheduling.segments import divide


class NeedVector:
    """Forecast quantile through the graph, against the lower capacity bound; it remembers nothing.

    Args:
        options: the settings.
    """

    def __init__(self, options: NeedVectorOptions | None = None) -> None:
        self._options = options or NeedVectorOptions()

    def first_memory(self) -> None:
        """Return no memory."""

    def decide(self, situation: Situation, memory: None) -> tuple[Schedule, None]:
        """Return the steps of the horizon.

        Raises:
            DemandError: the forecast cannot be used.
            GraphError: forecast and graph do not belong together.
        """
        job = circumstances(situation)
        options = situation.options
        segments = divide(
            job.need.parallelism,
            job.current,
            job.limits,
            bin_s=options.bin_s,
            min_step_s=self._options.min_step_s,
            rescale_cost_slot_s=self._options.rescale_cost_slot_s,
        )
        load = at_level(job.outlook.demand.load_per_s, options.load_quantile)
        steps = place(segments, job)
        since = [0, *(step.begin for step in steps[:-1])]
        reasons = (sentence(step, first, job, load) for step, first in zip(steps, since, strict=True))
        return Schedule(situation.graph.names, tuple(map(Decision, steps, reasons))), memory


def circumstances(situation: Situation) -> Circumstances:
    """Derive demand, capacity bounds and needs of a job."""
    options, graph = situation.options, situation.graph
    forecast = on_bins(situation.forecast, situation.as_of_s, options.bin_s, options.horizon_h * 3600)
    asked = demand(graph, situation.models.selectivity, forecast)
    limits = upper_limits(graph, situation.slots_max)
    current = np.array([situation.parallelism[name] for name in graph.names], dtype=np.int64)
    bounds = job_bounds(graph, situation.models.capacity, limits, options)
    need = needs(asked, bounds, current, limits, options)
    outlook = Outlook(asked, bounds, situation.models.recovery, options.capacity.lower_bound_z)
    return Circumstances(current, limits, need, outlook, situation.as_of_s, options)
