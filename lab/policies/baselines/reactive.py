"""Flink's reactive mode under a rule on processor use: Kubernetes' pod autoscaler on task managers.

Source: the documentation of the horizontal pod autoscaler (algorithm, tolerance, stabilisation, default behaviour) and
the set-up of Phoebe's evaluation: target 35%, 1 to 24 task managers of one core each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lab.policies.baselines.baseline_options import ReactiveOptions
from models.policies.immediate_change import hold, rescale_now
from models.policies.observations import Observations
from models.policies.protocol import Schedule, Situation


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A recommendation of the rule."""

    at_s: int
    workers: int


@dataclass(frozen=True, slots=True)
class ReactiveMemory:
    """Recommendations of the stabilisation window, and workers before each recent change, oldest first."""

    recommended: tuple[Recommendation, ...] = ()
    changed_from: tuple[Recommendation, ...] = ()


class Reactive:
    """ceil(workers * use / target), held back on the way down and limited on the way up."""

    def __init__(self, options: ReactiveOptions | None = None) -> None:
        self._options = options or ReactiveOptions()

    def first_memory(self) -> ReactiveMemory:
        """Return the memory of a job that was never decided on."""
        return ReactiveMemory()

    def decide(self, situation: Situation, memory: ReactiveMemory) -> tuple[Schedule, ReactiveMemory]:
        """Return a change now or none.

        Raises:
            DemandError: the forecast cannot be used.
        """
        options, at = self._options, situation.as_of_s
        current = max(situation.parallelism.values())
        use = estimate_processor_use(situation.observations, options.use_window_s)
        if not math.isfinite(use):
            return hold(situation, "processor use is not known"), memory
        known = ReactiveMemory(
            _keep_within(memory.recommended, at - options.stabilisation_s),
            _keep_within(memory.changed_from, at - max(options.growth_period_s, options.unmeasured_s)),
        )
        unmeasured = current - min([current, *(one.workers for one in known.changed_from)])
        recommended_now = recommend(options, current, use, situation.slots_max, unmeasured)
        known = replace(known, recommended=(*known.recommended, Recommendation(at, recommended_now)))
        workers = max(recommended_now, min(current, max(one.workers for one in known.recommended)))
        # what the growth is measured from: the number of workers when the period began
        period = _keep_within(known.changed_from, at - options.growth_period_s)
        base = min([current, *(one.workers for one in period)])
        limit = max(base + options.growth_workers, math.floor(base * (1.0 + options.growth_share)))
        workers = min(workers, max(limit, current)) if workers > current else workers
        why = f"workers use {use:.0%} of their cores, the target is {options.target:.0%}: {workers} workers"
        if workers == current:
            return hold(situation, why), known
        known = replace(known, changed_from=(*known.changed_from, Recommendation(at, current)))
        return rescale_now(situation, dict.fromkeys(situation.graph.names, workers), why), known


def recommend(options: ReactiveOptions, current: int, use: float, slots_max: int, unmeasured: int = 0) -> int:
    """Return ceil(current * use / target) within 1..slots_max; ``current`` when the use is near the target.

    Args:
        options: the settings.
        current: running workers.
        use: of a worker with metrics, in cores.
        slots_max: most workers.
        unmeasured: of ``current``; idle in a scale-out, and a scale-out that they would turn into a scale-in is none.
    """
    ratio = use / options.target
    if ratio > 1.0 and unmeasured:
        ratio = max(ratio * (current - unmeasured) / current, 1.0)
    near = abs(ratio - 1.0) <= options.tolerance
    return min(max(current if near else math.ceil(current * ratio), 1), slots_max)


def estimate_processor_use(observations: Observations, window_s: int) -> float:
    """Return the share of a core that a worker used in the last windows, 0..1; NaN when it is not known.

    A worker is one slot and holds a subtask of every operator that has so many; what they were busy adds up to at most
    one core.
    """
    if not len(observations) or not observations.parallelism.shape[1]:
        return math.nan
    last = observations.window_start_s >= min(
        observations.window_start_s[-1] + observations.window_s - window_s, observations.window_start_s[-1]
    )
    busy = np.where(np.isfinite(observations.busy_share), observations.busy_share, 0.0) * observations.parallelism
    workers = observations.parallelism.max(axis=1)
    known = last & np.isfinite(observations.busy_share).any(axis=1) & (workers > 0)
    if not known.any():
        return math.nan
    return float(np.minimum(busy[known].sum(axis=1) / workers[known], 1.0).mean())


def _keep_within(past: tuple[Recommendation, ...], since_s: int) -> tuple[Recommendation, ...]:
    return tuple(one for one in past if one.at_s > since_s)
