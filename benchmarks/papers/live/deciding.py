"""A policy with its memory, asked in the same way about a real and a simulated job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.papers.live.experiment import (
    SLOTS_MAX,
    PaperPolicy,
    Trial,
    assume_models,
    describe_job,
    set_planner,
)
from include.domain.graph import JobGraph
from lab.local_flink.load import ENRICH
from models.policies.job_snapshot import Snapshot
from models.policies.observations import Observations
from models.policies.protocol import Policy, Situation
from models.policies.registry import policy
from models.policies.situations import assume_untrained
from models.scheduling.demand import LEVELS, SourceForecast

BUSY_SHARE = 0.5  # below it a window says little of a capacity


class Decider:
    """Decides on one job; a forecast holds the load of the last window.

    Args:
        paper: whose policy.
        graph: of the job.
        trial: to which the capacities that windows show are added.
    """

    def __init__(self, paper: PaperPolicy, graph: JobGraph, trial: Trial) -> None:
        self._graph, self._options, self._trial = graph, set_planner(), trial
        self._policy: Policy[Any] = policy(paper.name, paper.parameters)
        self._memory = self._policy.first_memory()
        untrained = assume_untrained(graph, Observations.nothing(len(graph.names)))
        self._models = assume_models(describe_job(paper.paper)) if paper.reads_models else untrained

    def decide(self, running: Mapping[str, int], observations: Observations, now_s: int) -> dict[str, int] | None:
        """Return the parallelism wanted; None without a window that tells the load, or for no change."""
        self._note_capacity(observations)
        load_per_s = self._find_load(observations)
        if load_per_s is None:
            return None
        held = {name: np.full((len(LEVELS), 1), one) for name, one in load_per_s.items()}
        job = Snapshot(now_s, self._graph, running, True, observations, SLOTS_MAX, self._options, models=self._models)
        situation = Situation(job, SourceForecast(now_s, 3600, held))
        schedule, self._memory = self._policy.decide(situation, self._memory)
        target = schedule.decisions[0].step.parallelism_to.tolist()
        wanted = dict(zip(schedule.operators, (int(one) for one in target), strict=True))
        return None if wanted == dict(running) else wanted

    def _note_capacity(self, observations: Observations) -> None:
        """Keep what one subtask of ``enrich`` processed in the last window, if it was busy and undisturbed."""
        place = self._graph.position(ENRICH)
        if not len(observations) or observations.disturbed[-1] or not observations.busy_share[-1, place] > BUSY_SHARE:
            return
        whole = observations.true_processing_rate_per_s[-1, place]
        self._trial.capacities_per_s.append(float(whole / observations.parallelism[-1, place]))

    def _find_load(self, observations: Observations) -> dict[str, float] | None:
        """Return source -> records/s of the last window that tells it."""
        places = {name: self._graph.position(name) for name in self._graph.sources}
        reported = observations.target_data_rate_per_s[:, list(places.values())]
        known = np.flatnonzero(np.isfinite(reported).all(axis=1) & ~observations.disturbed)
        return dict(zip(places, reported[known[-1]].tolist(), strict=True)) if len(known) else None
