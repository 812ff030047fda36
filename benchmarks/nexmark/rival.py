"""A policy with its memory, hosted on the windows of one job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.nexmark.experiment import MOST, RIVALS
from include.domain.graph import JobGraph
from include.settings import Planner
from models.policies.live_situation import build_live_situation
from models.policies.observations import Observations
from models.policies.protocol import Policy
from models.policies.registry import policy


class Rival:
    """Decides on one job by what is measured now; it knows no models and no forecast."""

    def __init__(self, name: str) -> None:
        catalogued, parameters = RIVALS[name]
        self._policy: Policy[Any] = policy(catalogued, parameters)
        self._memory = self._policy.first_memory()

    def decide(
        self, graph: JobGraph, running: Mapping[str, int], observations: Observations, now_s: int
    ) -> dict[str, int] | None:
        """Return the parallelism wanted; None for no change or without a window."""
        if not len(observations):
            return None
        situation = build_live_situation(
            now_s, graph, running, observations, models=None, slots_max=MOST, options=Planner(), seed=0
        )
        schedule, self._memory = self._policy.decide(situation, self._memory)
        target = schedule.decisions[0].step.parallelism_to.tolist()
        wanted = dict(zip(schedule.operators, (int(one) for one in target), strict=True))
        return None if wanted == dict(running) else wanted
