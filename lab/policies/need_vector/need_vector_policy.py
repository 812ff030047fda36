"""The project's own policy: cover every bin's need, with as few rescales as they are worth."""

from __future__ import annotations

from lab.policies.need_vector.division import divide
from lab.policies.need_vector.need_vector_options import NeedVectorOptions
from lab.policies.need_vector.needs import compute_needs
from lab.scheduling.planner_settings import PlannerSettings
from lab.scheduling.quantiles import quantile_at_level
from lab.scheduling.reason import explain_step
from lab.scheduling.step_placing import JobConditions, place_steps
from models.policies.job_outlook import build_outlook
from models.policies.protocol import Decision, Schedule, Situation


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
        job = derive_conditions(situation)
        segments = divide(
            job.need.parallelism,
            job.current,
            job.limits,
            bin_s=job.options.bin_s,
            min_step_s=self._options.min_step_s,
            rescale_cost_slot_s=self._options.rescale_cost_slot_s,
        )
        load = quantile_at_level(job.outlook.demand.load_per_s, job.options.load_quantile)
        steps = place_steps(segments, job)
        since = [0, *(step.begin for step in steps[:-1])]
        reasons = (explain_step(step, first, job, load) for step, first in zip(steps, since, strict=True))
        return Schedule(situation.graph.names, tuple(map(Decision, steps, reasons))), memory


def derive_conditions(situation: Situation) -> JobConditions:
    """Derive demand, capacity bounds and needs of a job."""
    job = build_outlook(situation)
    outlook, options = job.outlook, PlannerSettings.of(situation.options)
    need = compute_needs(outlook.demand, outlook.bounds, job.current, job.limits, options)
    return JobConditions(
        job.current, job.limits, need, outlook, situation.as_of_s, options, operators=situation.graph.operators
    )
