"""The Flink autoscaler as a policy over observed windows: one cycle of its rules at the end of each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from lab.policies.flink_autoscaler.autoscaler_memory import AutoscalerMemory
from lab.policies.flink_autoscaler.config import AutoscalerConfig
from lab.policies.flink_autoscaler.job_scaling import ScalingPlan, decide_from_samples
from lab.policies.flink_autoscaler.topology import JobTopology, TopologyVertex
from lab.policies.flink_autoscaler.window import MetricWindow
from lab.policies.flink_autoscaler.window_samples import latest_run, samples_of
from models.policies.immediate_change import hold, rescale_now
from models.policies.observations import Observations
from models.policies.protocol import Schedule, Situation

# Not part of a job graph: the exchange between operators. No alignment to key groups follows from this one.
_UNKNOWN_EXCHANGE = "REBALANCE"


@dataclass(frozen=True, slots=True)
class AutoscalerState:
    """Memory between two decisions.

    Attributes:
        rules: the memory of the rules.
        seen_until_s: end of the last window that led to a cycle; None before the first.
    """

    rules: AutoscalerMemory = field(default_factory=AutoscalerMemory)
    seen_until_s: float | None = None


class FlinkAutoscaler:
    """The rules with given settings.

    Deviation: of several windows that came in since the last decision only the latest can lead to a scaling; the
    others let scale-downs wait, as rule 11 wants.  A metrics window is no shorter than an observed one.  Vertices are
    not aligned to key groups, since a job graph does not hold the exchanges.

    Args:
        options: the settings; the autoscaler's own defaults when not given.
    """

    def __init__(self, options: AutoscalerConfig | None = None) -> None:
        self.config = AutoscalerConfig() if options is None else options

    def first_memory(self) -> AutoscalerState:
        """Return the memory of a job that was never decided on."""
        return AutoscalerState()

    def decide(self, situation: Situation, memory: AutoscalerState) -> tuple[Schedule, AutoscalerState]:
        """Return the scaling of the cycle at the end of the latest window, and the memory.

        Raises:
            DemandError: the forecast, from which the expectation is made, cannot be used.
        """
        running = np.array([situation.parallelism[name] for name in situation.graph.names], np.int64)
        run = latest_run(situation.observations, running)
        ends = run.window_start_s + run.window_s
        fresh = np.flatnonzero(ends > (-np.inf if memory.seen_until_s is None else memory.seen_until_s))
        if not len(fresh):
            return hold(situation, "the autoscaler has no new undisturbed window of the running parallelism"), memory
        config = self._config(situation, run)
        topology, samples = _topology(situation), samples_of(config, situation.graph, run)
        since_s = _running_since_s(config, situation.observations, run)
        plan, rules = ScalingPlan({}), memory.rules
        for row in fresh.tolist():
            until = _until(samples, row + 1)
            is_latest = row == len(run) - 1
            plan, rules = decide_from_samples(
                config, topology, until, rules, running_since_s=since_s, is_latest=is_latest
            )
        after = AutoscalerState(rules, float(ends[-1]))
        return rescale_now(situation, plan.parallelism(topology), _sentence(plan)), after

    def _config(self, situation: Situation, run: Observations) -> AutoscalerConfig:
        """Return the settings for windows of this length and for the job's slots."""
        return replace(
            self.config,
            metrics_window_s=max(self.config.metrics_window_s, float(run.window_s)),
            vertex_max_parallelism=min(self.config.vertex_max_parallelism, situation.slots_max),
            vertex_min_parallelism=min(self.config.vertex_min_parallelism, situation.slots_max),
        )


def _topology(situation: Situation) -> JobTopology:
    return JobTopology.of(
        TopologyVertex(
            one.name,
            situation.parallelism[one.name],
            one.max_parallelism,
            dict.fromkeys(one.upstream, _UNKNOWN_EXCHANGE),
        )
        for one in situation.graph.operators
    )


def _running_since_s(config: AutoscalerConfig, observations: Observations, run: Observations) -> float:
    """Return when the job began to run as it does.

    A run that begins with the history has been running for an unknown time, taken to be long enough to be stable.
    """
    first_s = float(run.window_start_s[0])
    return first_s - config.stabilization_interval_s if len(run) == len(observations) else first_s


def _until(samples: MetricWindow, row: int) -> MetricWindow:
    """Return the samples up to and with one of them."""
    cut = {name: {metric: series[: row + 1] for metric, series in of.items()} for name, of in samples.values.items()}
    return MetricWindow(samples.times_s[: row + 1], cut)


def _sentence(plan: ScalingPlan) -> str:
    if plan.changes:
        moved = ", ".join(f"{name} {one.current} -> {one.parallelism}" for name, one in plan.changes.items())
        return f"the autoscaler's rules put a vertex outside its utilisation bounds: {moved}"
    return f"the autoscaler does not scale: {plan.reason or 'no vertex asks for it'}"
