"""The project's own policy: cover every bin's need, with as few rescales as they are worth."""

from __future__ import annotations

import numpy as np

from models.policies.protocol import Decision, Schedule, Situation
from models.scheduling.demand import demand, quantile_at_level, resample_to_bins
from models.scheduling.expectation import Outlook
from models.scheduling.need import compute_needs, job_bounds, upper_limits
from models.scheduling.reason import explain_step
from models.scheduling.rescale_timing import JobConditions, place_steps
from models.scheduling.segments import divide


class NeedVector:
    """Forecast quantile through the graph, against the lower capacity bound; it remembers nothing."""

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
            min_step_s=options.min_step_s,
            rescale_cost_slot_s=options.rescale_cost_slot_s,
        )
        load = quantile_at_level(job.outlook.demand.load_per_s, options.load_quantile)
        steps = place_steps(segments, job)
        since = [0, *(step.begin for step in steps[:-1])]
        reasons = (explain_step(step, first, job, load) for step, first in zip(steps, since, strict=True))
        return Schedule(situation.graph.names, tuple(map(Decision, steps, reasons))), memory


def circumstances(situation: Situation) -> JobConditions:
    """Derive demand, capacity bounds and needs of a job."""
    options, graph = situation.options, situation.graph
    forecast = resample_to_bins(situation.forecast, situation.as_of_s, options.bin_s, options.horizon_h * 3600)
    required = demand(graph, situation.models.selectivity, forecast)
    limits = upper_limits(graph, situation.slots_max)
    current = np.array([situation.parallelism[name] for name in graph.names], dtype=np.int64)
    bounds = job_bounds(graph, situation.models.capacity, limits, options)
    need = compute_needs(required, bounds, current, limits, options)
    outlook = Outlook(required, bounds, situation.models.recovery, options.capacity_z)
    return JobConditions(current, limits, need, outlook, situation.as_of_s, options)
