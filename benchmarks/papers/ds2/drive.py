"""A policy that drives simulated jobs: at the end of each window it sees that window and may rescale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.papers.seen import nothing_learnt, situation_after
from lab.simulation.spec import JobSpec
from lab.simulation.testbed import Testbed, TestbedWindow
from models.arrays import Floats, Ints
from models.policies.protocol import Policy


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
        as_measured: Callable[[TestbedWindow], TestbedWindow] | None = None,
    ) -> None:
        self.testbed = Testbed(specs, parallelism, step_s=step_s, has_buffers=False)
        self.actions: list[list[Action]] = [[] for _ in specs]
        self.memories = [policy.first_memory() for _ in specs]
        self.windows: list[TestbedWindow] = []
        self._specs = specs
        self._policy, self._window_s, self._redeploy_s = policy, window_s, redeploy_s
        self._as_measured = as_measured
        self._models = [nothing_learnt(spec) for spec in specs]

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

    def _decide(self, job: int, window: TestbedWindow, rate_per_s: Floats) -> None:
        spec, running = self._specs[job], self.parallelism(job)
        at_s = round(self.testbed.time_s)
        situation = situation_after(
            spec, window, job, rate_per_s, at_s=at_s, models=self._models[job], slots_max=spec.slots_max
        )
        schedule, self.memories[job] = self._policy.decide(situation, self.memories[job])
        decision = schedule.decisions[0]
        wanted = tuple(decision.step.parallelism_to.tolist())
        if wanted != running:
            downtime_s = self._redeploy_s[min(len(self.actions[job]), len(self._redeploy_s) - 1)]
            padded = np.pad(np.array(wanted, np.int64), (0, self.testbed.fleet.shape[1] - len(wanted)))
            self.testbed.rescale(job, padded, downtime_s)
            self.actions[job].append(Action(self.testbed.time_s, wanted, decision.reason))
