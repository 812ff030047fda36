"""A simulated cluster for Phoebe's profiling phase: every deployment is a job of one fleet.

It fits :class:`lab.profiling.profiling.ProfilingCluster`; an adapter for a real cluster has the same
methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lab.profiling.rows import Measurement
from lab.simulation.end_to_end import EndToEnd
from lab.simulation.randomness import job_generator
from lab.simulation.spec import JobSpec
from lab.simulation.testbed import Testbed
from models.arrays import Floats

WINDOW_S = 10
# A backlog that no deployment works off during a run: this many times what all of its subtasks can emit.
_BACKLOG_FACTOR = 10.0


class SimulatedProfiling:
    """Deployments of one job at several scale-outs.

    Args:
        spec: the job; all of its operators run at the scale-out.
        latency: end-to-end latency of a deployment.
        capacity_deviation: relative standard deviation of a deployment's capacity from the job's curve: deployments
            land on different machines.
        seed: of all noise.
    """

    def __init__(self, spec: JobSpec, latency: EndToEnd, *, capacity_deviation: float = 0.0, seed: int = 0) -> None:
        self._spec = spec
        self._latency = latency
        self._deviation = capacity_deviation
        self._seed = seed
        self._draws = job_generator(seed, spec.name, "profiling")
        self._scale_outs: tuple[int, ...] = ()
        self._running: set[int] = set()
        self._testbed: Testbed | None = None

    def deploy(self, scale_outs: Sequence[int]) -> None:
        """Start one deployment per scale-out, without a backlog."""
        self._scale_outs = tuple(scale_outs)
        self._running = set(scale_outs)
        self._testbed = self._fleet()

    def replay(self, rate_per_s: float, settle_s: int, window_s: int) -> Mapping[int, Measurement]:
        """Replay at a rate; return of every running deployment the means of the window after settling."""
        testbed = self._require_testbed()
        rates = self._rates(np.full(len(self._scale_outs), rate_per_s))
        if settle_s:
            testbed.run(rates, settle_s)
        windows = [testbed.run(rates, WINDOW_S) for _ in range(max(window_s // WINDOW_S, 1))]
        latency = np.mean([self._latency.latency_ms(window, self._draws) for window in windows], axis=0)
        throughput = np.mean([self._sum_emitted(testbed, window.in_per_s) for window in windows], axis=0)
        return {
            scale_out: Measurement(scale_out, float(throughput[row]), float(latency[row]))
            for row, scale_out in enumerate(self._scale_outs)
            if scale_out in self._running
        }

    def stop(self, scale_out: int) -> None:
        """Stop a deployment; its input ends and its backlog is dropped."""
        self._running.discard(scale_out)
        self._require_testbed().drain(self._scale_outs.index(scale_out))

    def catch_up(self, scale_outs: Sequence[int], settle_s: int, window_s: int) -> Mapping[int, float]:
        """Restart the job at each scale-out with a backlog that never ends; return throughputs, records/s."""
        self.deploy(scale_outs)
        testbed = self._require_testbed()
        highest = testbed.fleet.curves.max(axis=(1, 2)) * _BACKLOG_FACTOR
        rates = self._rates(highest)
        if settle_s:
            testbed.run(rates, settle_s)
        window = testbed.run(rates, max(window_s, 1))
        throughput = self._sum_emitted(testbed, window.in_per_s)
        return dict(zip(self._scale_outs, throughput.tolist(), strict=True))

    def close(self) -> None:
        """Forget the deployments."""
        self._running.clear()

    def _fleet(self) -> Testbed:
        """Return fresh deployments; a scale-out keeps its deviation, since it keeps its machines."""
        specs = []
        for scale_out in self._scale_outs:
            own = job_generator(self._seed, f"{self._spec.name}@{scale_out}", "machines")
            factor = max(1.0 + self._deviation * float(own.standard_normal()), 0.1)
            operators = tuple(
                replace(
                    operator,
                    per_subtask_per_s=operator.per_subtask_per_s * factor,
                    measured_per_s=tuple(factor * rate for rate in operator.measured_per_s),
                )
                for operator in self._spec.operators
            )
            specs.append(replace(self._spec, name=f"{self._spec.name}@{scale_out}", operators=operators))
        width = len(self._spec.operators)
        parallelism = np.repeat(np.array(self._scale_outs, np.int64)[:, None], width, axis=1)
        return Testbed(specs, parallelism, seed=self._seed)

    def _require_testbed(self) -> Testbed:
        if self._testbed is None:
            raise RuntimeError("deploy must be called before anything is measured")
        return self._testbed

    def _rates(self, per_job_per_s: Floats) -> Floats:
        """Return (J, O) rates, shared equally by a job's sources; nothing for a deployment that was stopped."""
        sources = self._require_testbed().fleet.is_source
        runs = np.array([scale_out in self._running for scale_out in self._scale_outs])
        share = np.where(runs, per_job_per_s, 0.0) / sources.sum(axis=1)
        return np.asarray(np.where(sources, share[:, None], 0.0))

    @staticmethod
    def _sum_emitted(testbed: Testbed, in_per_s: Floats) -> Floats:
        return np.asarray(np.where(testbed.fleet.is_source, in_per_s, 0.0).sum(axis=1))
