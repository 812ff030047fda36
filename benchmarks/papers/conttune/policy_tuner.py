"""Any policy of Tidewise as a tuner of ContTune's queries: Dhalion and Dragster, whose rows Table 4 has."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers.conttune.conttune_published import PUBLISHED
from benchmarks.papers.conttune.queries import SLOTS, Query
from benchmarks.papers.conttune.query_runs import PERMUTATIONS, WATCH_S, Change, Outcome, run_tuner
from benchmarks.papers.seen import nothing_learnt, situation_after
from lab.policies.dhalion.dhalion_options import DhalionOptions
from lab.policies.dhalion.dhalion_options import ScalingAmount as Growth
from lab.policies.dhalion.dhalion_policy import Dhalion
from lab.policies.dragster.dragster_options import DragsterOptions
from lab.policies.dragster.dragster_policy import Dragster
from lab.simulation.testbed import Testbed, TestbedWindow
from models.arrays import Floats, Ints
from models.policies.protocol import Policy

# A policy decides on each job alone, in Python, which takes a hundred times as long as ContTune on the whole fleet.
SEEDS = 1
ROWS = ("Dhalion", "Dhalion, one instance at a time", "Dragster")


def run_policy(query: Query, row: str, seeds: int = SEEDS) -> Outcome:
    """Tune a query through the whole workload with Dhalion or Dragster.

    As the paper describes: Dhalion with its own rule, from one window to the next without a pause (an operator grows
    with the share of time in backpressure; by one instance is the other reading in use); Dragster with the online
    saddle point, bounded by ContTune's p_max of the query, and with a memory per rate ("caches ... for the case
    that the workload has been processed").
    """
    if row != "Dragster":
        growth = Growth.FACTOR if row == "Dhalion" else Growth.ONE
        dhalion = Dhalion(DhalionOptions(change=growth, wait_s=0.0))
        tuner = PolicyTuner(query, dhalion, seeds * PERMUTATIONS, SLOTS)
    else:
        bound = int(PUBLISHED["table4b_max_cores"]["ContTune_a3"][query.name])
        policy = Dragster(DragsterOptions(slot_s=WATCH_S))
        tuner = PolicyTuner(query, policy, seeds * PERMUTATIONS, bound, has_memory_per_rate=True)
    return run_tuner(query, tuner, seeds)


class PolicyTuner:
    """A policy with a memory per job; a tuning ends when the policy keeps what is running.

    Args:
        query: whose jobs are tuned.
        policy: for all jobs.
        jobs: J.
        slots_max: most instances of an operator.
        has_memory_per_rate: whether each rate has a memory of its own, kept for when it comes again.
    """

    def __init__(
        self, query: Query, policy: Policy[Any], jobs: int, slots_max: int, *, has_memory_per_rate: bool = False
    ) -> None:
        self._spec = query.job(query.name)
        self._models = nothing_learnt(self._spec)
        self._policy, self._slots_max, self._per_rate = policy, slots_max, has_memory_per_rate
        self._memories: list[dict[int, Any]] = [{} for _ in range(jobs)]
        self._keys = [0] * jobs
        self._tuning = [True] * jobs

    def begin(self, factor: Ints) -> None:
        """Begin a tuning of every job."""
        self._tuning = [True] * len(self._tuning)
        if self._per_rate:
            self._keys = [int(one) for one in factor]

    def is_tuning(self) -> bool:
        """Return whether any job has not settled yet."""
        return any(self._tuning)

    def next(self, bed: Testbed, window: TestbedWindow, rate: Floats) -> list[Change]:
        """Let the policy decide on every job that has not settled."""
        required = bed.fleet.network.compute_load(rate)
        changes = []
        for job, key in enumerate(self._keys):
            if not self._tuning[job]:
                continue
            wanted = self._decide(job, key, window, rate[job], round(bed.time_s))
            if (wanted == window.parallelism[job]).all():
                self._tuning[job] = False
                continue
            short = bool((required[job] > window.true_in_per_s[job]).any())
            changes.append(Change(job, wanted, upward=short))
        return changes

    def _decide(self, job: int, key: int, window: TestbedWindow, rate_per_s: Floats, at_s: int) -> Ints:
        memories = self._memories[job]
        memory = memories[key] if key in memories else self._policy.first_memory()
        situation = situation_after(
            self._spec, window, job, rate_per_s, at_s=at_s, models=self._models, slots_max=self._slots_max
        )
        schedule, memories[key] = self._policy.decide(situation, memory)
        return np.asarray(schedule.decisions[0].step.parallelism_to, np.int64)
