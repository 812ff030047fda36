"""The profiling phase of Phoebe, Section III-C: latency of each scale-out at growing rates, and its capacity.

The phase is a pure state machine: :func:`next_task` says what to measure, :func:`record` takes the result.  So it runs
in one process (:func:`profile`) or as tasks of a DAG that store the state in between.  What runs the deployments is
behind :class:`ProfilingCluster`.

1. Deployments of the job at equally spaced scale-outs replay recorded input at one rate at a time; each step the rate
   grows, and a deployment whose latency is no longer valid is stopped.
2. Deviation (of the prototype from the paper): T_max is not taken from the last valid step but measured in a second
   run, in which every deployment works off a permanent backlog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from include.settings import Profiling
from lab.profiling.rows import CapacityPoint, Measurement, Profile

_MAJORITY = 3  # with fewer deployments no majority can be formed, and each is judged by its own past


@dataclass(frozen=True, slots=True)
class ProfilingOptions:
    """Settings; the defaults are those of the paper's evaluation (Section IV-B).

    Attributes:
        scale_out_min, scale_out_max, scale_outs: S_min, S_max and S_count.
        first_rate_per_s, rate_step_per_s: of the replay, records/s.
        settle_s, window_s: a step settles, then is measured; 7 minutes together.
        deviation: relative distance of latencies from which they do not belong together (from the prototype).
        steps_max: guard against a cluster on which no deployment ever saturates.
    """

    scale_out_min: int = 2
    scale_out_max: int = 24
    scale_outs: int = 8
    first_rate_per_s: float = 20_000.0
    rate_step_per_s: float = 20_000.0
    settle_s: int = 300
    window_s: int = 120
    deviation: float = 2.0
    steps_max: int = 100

    def __post_init__(self) -> None:
        if not 1 <= self.scale_out_min <= self.scale_out_max or self.scale_outs < 2:
            raise ValueError("1 <= scale_out_min <= scale_out_max and at least 2 scale_outs are needed")
        if not (self.first_rate_per_s > 0 and self.rate_step_per_s > 0 and self.window_s > 0 and self.settle_s >= 0):
            raise ValueError("rates and window_s must be positive, settle_s not negative")

    def samples(self) -> tuple[int, ...]:
        """Return S: equally spaced from S_min on; whole workers, so S_max itself may be left out (2, 5, ..., 23)."""
        step = max((self.scale_out_max - self.scale_out_min) // (self.scale_outs - 1), 1)
        return tuple(range(self.scale_out_min, self.scale_out_max + 1, step))[: self.scale_outs]


def profiling_options(settings: Profiling, slots_max: int, worker_load_per_s: float) -> ProfilingOptions:
    """Return scale-outs up to the slots that the job may have, and rates from the highest measured load of one worker.

    Rates grow in ``rate_steps`` steps to ``slots_max`` times that load, and on until no deployment keeps up or
    ``rate_steps_max`` is reached; so a job that was never half loaded is still driven to three times its peak.

    Deviation: the paper gives rates and scale-outs by hand.

    Args:
        settings: of the run.
        slots_max: most workers of the job.
        worker_load_per_s: highest load of the job / its workers then, records/s.

    Raises:
        ValueError: no load was measured.
    """
    if not worker_load_per_s > 0:
        raise ValueError("no load was seen, so there is nothing to replay")
    step = worker_load_per_s * slots_max / settings.rate_steps
    return ProfilingOptions(
        scale_out_min=min(settings.scale_out_min, slots_max),
        scale_out_max=slots_max,
        scale_outs=settings.scale_outs,
        first_rate_per_s=step,
        rate_step_per_s=step,
        settle_s=settings.settle_s,
        window_s=settings.window_s,
        steps_max=settings.rate_steps_max,
    )


class ProfilingCluster(Protocol):
    """A cluster for the deployments: simulated, or a real one whose jobs replay a recorded topic."""

    def deploy(self, scale_outs: Sequence[int]) -> None:
        """Start one deployment of the job per scale-out, all with the same input and otherwise the same settings."""
        ...

    def replay(self, rate_per_s: float, settle_s: int, window_s: int) -> Mapping[int, Measurement]:
        """Replay at a rate; return of every running deployment the means of the window after settling."""
        ...

    def stop(self, scale_out: int) -> None:
        """Stop one deployment and free its workers."""
        ...

    def catch_up(self, scale_outs: Sequence[int], settle_s: int, window_s: int) -> Mapping[int, float]:
        """Restart the job at each scale-out from the earliest offset; return throughputs of the window, records/s."""
        ...

    def close(self) -> None:
        """Stop every deployment that still runs; harmless when none does."""
        ...


@dataclass(frozen=True, slots=True)
class Replay:
    """A step: one rate for the running deployments."""

    rate_per_s: float
    scale_outs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The T_max run."""

    scale_outs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProfilingState:
    """State of the phase; JSON types only, so that tasks can pass it on.

    Attributes:
        steps: made so far.
        active: scale-outs that still run.
        measured: everything so far, oldest first; a deployment's last row is the one that stopped it.
        capacity: of the T_max run; empty before it.
    """

    steps: int
    active: tuple[int, ...]
    measured: tuple[Measurement, ...] = ()
    capacity: tuple[CapacityPoint, ...] = ()


def first_state(options: ProfilingOptions) -> ProfilingState:
    """Return the state before the first step."""
    return ProfilingState(0, options.samples())


def next_task(options: ProfilingOptions, state: ProfilingState) -> Replay | CatchUp | None:
    """Return what to measure next, None when the phase is over."""
    if state.active and state.steps < options.steps_max:
        return Replay(options.first_rate_per_s + state.steps * options.rate_step_per_s, state.active)
    return CatchUp(options.samples()) if not state.capacity else None


def record(options: ProfilingOptions, state: ProfilingState, measured: Mapping[int, Measurement]) -> ProfilingState:
    """Return the state after a step; deployments that were not measured (lost) count as invalid."""
    valid = valid_scale_outs(measured, state.measured, deviation=options.deviation)
    rows = (*state.measured, *(measured[scale_out] for scale_out in sorted(measured)))
    active = tuple(scale_out for scale_out in state.active if scale_out in valid)
    return replace(state, steps=state.steps + 1, active=active, measured=rows)


def record_capacity(state: ProfilingState, throughput_per_s: Mapping[int, float]) -> ProfilingState:
    """Return the state after the T_max run; throughputs that are not known or not positive are left out."""
    points = tuple(CapacityPoint(s, float(rate)) for s, rate in sorted(throughput_per_s.items()) if rate > 0)
    return replace(state, capacity=points)


def valid_scale_outs(
    measured: Mapping[int, Measurement], before: Sequence[Measurement], *, deviation: float = 2.0
) -> frozenset[int]:
    """Return the deployments that keep up: the validity rule of Section III-C as the prototype has it.

    With more than two deployments, for each the others are counted whose latency it is near (|L_i - L_j| / L_j below
    ``deviation``); those with the largest count are valid.  With fewer, each is compared with the line through its own
    earlier latencies.

    Args:
        measured: scale-out -> this step.
        before: rows of earlier steps.
        deviation: see :class:`ProfilingOptions`.
    """
    known = {s: row.latency_ms for s, row in measured.items() if np.isfinite(row.latency_ms) and row.latency_ms > 0}
    if len(known) < _MAJORITY:
        return frozenset(
            s for s, latency in known.items() if _near(latency, _extrapolate(measured[s], before), deviation)
        )
    near = {s: sum(_near(known[s], known[other], deviation) for other in known if other != s) for s in known}
    most = max(near.values())
    return frozenset(s for s, count in near.items() if count == most)


def _near(latency_ms: float, reference_ms: float, deviation: float) -> bool:
    return abs(latency_ms - reference_ms) / reference_ms < deviation


def _extrapolate(row: Measurement, before: Sequence[Measurement]) -> float:
    """Return the next latency on the line through the deployment's past; its own without a past.

    The steps stand for the prototype's time: all last as long.
    """
    past = [one for one in before if one.scale_out == row.scale_out and np.isfinite(one.latency_ms)]
    if not past:
        return row.latency_ms
    latency = np.array([one.latency_ms for one in past])
    if len(past) == 1:
        return float(latency[0])
    slope, intercept = np.polyfit(np.arange(len(past)), latency, 1)
    # a falling line may reach zero; the smallest measured latency is then the reference
    return float(max(intercept + slope * len(past), latency.min()))


def profile(
    cluster: ProfilingCluster, options: ProfilingOptions, progress: Callable[[str], None] = lambda _: None
) -> Profile:
    """Run the whole phase on a cluster, and stop every deployment however it ends.

    Args:
        cluster: where the deployments run.
        options: the settings.
        progress: called with every step.
    """
    try:
        return _run(cluster, options, progress)
    finally:
        cluster.close()


def _run(cluster: ProfilingCluster, options: ProfilingOptions, progress: Callable[[str], None]) -> Profile:
    state = first_state(options)
    cluster.deploy(state.active)
    while (task := next_task(options, state)) is not None:
        if isinstance(task, Replay):
            progress(f"profiling {len(task.scale_outs)} deployments at {task.rate_per_s:,.0f} records/s")
            measured = cluster.replay(task.rate_per_s, options.settle_s, options.window_s)
            after = record(options, state, measured)
            for scale_out in set(state.active) - set(after.active):
                cluster.stop(scale_out)
            state = after
        else:
            progress(f"profiling {len(task.scale_outs)} deployments under permanent backlog")
            result = cluster.catch_up(task.scale_outs, options.settle_s, options.window_s)
            state = record_capacity(state, result)
            if not state.capacity:
                break
    return Profile(state.measured, state.capacity)


def worker_seconds(profiled: Profile, options: ProfilingOptions) -> float:
    """Return what the phase cost: workers x seconds of every deployment in every step and in the T_max run."""
    step_s = options.settle_s + options.window_s
    workers = sum(row.scale_out for row in profiled.rows) + sum(point.scale_out for point in profiled.capacity)
    return float(workers * step_s)
