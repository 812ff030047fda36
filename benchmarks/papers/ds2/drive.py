"""A policy that drives simulated jobs: at the end of each window it sees that window and may rescale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from include.settings import Planner
from models.arrays import Floats, Ints
from models.job_models import JobModels, LatencyModel, RecoveryModel
from models.policies.protocol import Policy, Situation
from models.scheduling.demand import LEVELS, SourceForecast
from models.simulation.spec import JobSpec
from models.simulation.testbed import Testbed, Window, observations

# The planner's expectation of a step is not used: one bin is enough for it.
_HORIZON = Planner(horizon_h=1, bin_s=3600)
_NOTHING_LEARNT = LatencyModel(np.zeros(0), np.zeros(0))


@dataclass(frozen=True, slots=True)
class Action:
    """One rescale of a job: when it was decided, and (O,) the parallelism from then on."""

    at_s: float
    parallelism: tuple[int, ...]
    reason: str


class Driver:
    """Jobs, each under a policy with a memory of its own.

    The benchmarks' generators send a fixed rate and never catch up, so that what waits is dropped after each window.

    Args:
        specs: the jobs.
        parallelism: (J, O) at the start.
        policy: for all jobs.
        window_s: from one decision to the next.
        redeploy_s: downtime of the first, second, ... rescale of a job; the last value holds for all later ones.
        step_s: of the queueing model.
        as_measured: what is reported instead of a window of the testbed; None: the window itself.
    """

    def __init__(
        self,
        specs: Sequence[JobSpec],
        parallelism: Ints,
        policy: Policy[Any],
        *,
        window_s: float,
        redeploy_s: Sequence[float],
        step_s: float = 1.0,
        as_measured: Callable[[Window], Window] | None = None,
    ) -> None:
        self.testbed = Testbed(specs, parallelism, step_s=step_s)
        self.actions: list[list[Action]] = [[] for _ in specs]
        self.memories = [policy.first_memory() for _ in specs]
        self.windows: list[Window] = []
        self._specs, self._graphs = specs, [spec.graph() for spec in specs]
        self._policy, self._window_s, self._redeploy_s = policy, window_s, redeploy_s
        self._as_measured = as_measured
        self._models = [_models(spec) for spec in specs]

    def interval(self, rate_per_s: Floats) -> None:
        """Run one window at source rates (J, O) and let every job that ran through it decide."""
        measured = self.testbed.run(rate_per_s, self._window_s)
        window = measured if self._as_measured is None else self._as_measured(measured)
        self.windows.append(window)
        for job in range(len(self._specs)):
            self.testbed.drain(job)
            if window.up[job]:
                self._decide(job, window, rate_per_s[job])

    def parallelism(self, job: int) -> tuple[int, ...]:
        """Return (O,) what a job runs with."""
        return tuple(self.testbed.state.parallelism[job, : len(self._specs[job].operators)].tolist())

    def _decide(self, job: int, window: Window, rate_per_s: Floats) -> None:
        graph, spec, running = self._graphs[job], self._specs[job], self.parallelism(job)
        at_s = round(self.testbed.time_s)
        expected = {name: np.full((len(LEVELS), 1), rate_per_s[graph.position(name)]) for name in graph.sources}
        situation = Situation(
            as_of_s=at_s,
            graph=graph,
            parallelism=dict(zip(graph.names, running, strict=True)),
            models=self._models[job],
            forecast=SourceForecast(at_s, _HORIZON.bin_s, expected),
            slots_max=spec.slots_max,
            options=_HORIZON,
            observations=observations([window], job, len(graph.operators)),
        )
        schedule, self.memories[job] = self._policy.decide(situation, self.memories[job])
        decision = schedule.decisions[0]
        wanted = tuple(decision.step.parallelism_to.tolist())
        if wanted != running:
            downtime_s = self._redeploy_s[min(len(self.actions[job]), len(self._redeploy_s) - 1)]
            padded = np.pad(np.array(wanted, np.int64), (0, self.testbed.fleet.shape[1] - len(wanted)))
            self.testbed.rescale(job, padded, downtime_s)
            self.actions[job].append(Action(self.testbed.time_s, wanted, decision.reason))


def _models(spec: JobSpec) -> JobModels:
    selectivity = {operator.name: operator.selectivity for operator in spec.operators}
    return JobModels({}, selectivity, RecoveryModel(0.0, 0.0, 0.0, 0.0, 0.0, 0), _NOTHING_LEARNT)
