"""A policy with its memory, hosted on the windows of one job."""

from __future__ import annotations

from collections.abc import Mapping

from include.domain.graph import JobGraph
from include.settings import Planner
from models.hosting.host import HostMemory, evaluate_hosted, host_policy
from models.policies.job_snapshot import Snapshot
from models.policies.observations import Observations


class Rival:
    """Decides on one job by what is measured now; it knows no models and no forecast.

    Args:
        name: of the catalogue.
        parameters: of the policy.
        slots_max: the most that the job may take.
    """

    def __init__(self, name: str, parameters: Mapping[str, object], slots_max: int) -> None:
        self._hosted = host_policy(name, parameters)
        self._memory = HostMemory()
        self._slots_max, self._options = slots_max, Planner()

    def decide(
        self, graph: JobGraph, running: Mapping[str, int], observations: Observations, now_s: int
    ) -> dict[str, int] | None:
        """Return the parallelism wanted; None for no change or without a window."""
        job = Snapshot(now_s, graph, running, True, observations, self._slots_max, self._options)
        decision, self._memory = evaluate_hosted(self._hosted, self._memory, now_s, job, None)
        return None if decision.wanted is None or dict(decision.wanted) == dict(running) else dict(decision.wanted)
