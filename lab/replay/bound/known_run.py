"""What the bound knows: one stream of records through the busiest operators, and all that a seed has drawn.

A job with one source is this stream.  Of a job with several, the stream is the work that arrives at its busiest
operator.  While every source is served to an age of at most a, that work is served to an age of at most a as well, so
a job is late whenever its stream is: what is computed for the stream is no more than what the job costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.replay.conditions import Conditions, Disturbances
from lab.replay.random_draws import RandomDraws
from lab.replay.workload import Workload, compute_curves, compute_source_gains, find_limits
from models.arrays import Bools, Floats

_ALIKE = 1e-9  # relative difference of gains that rounding leaves


@dataclass(frozen=True, slots=True)
class KnownRun:
    """One stream over W windows of K steps, with at most P slots.

    Attributes:
        rates_per_s: (W K,) records that arrive.
        capacity_per_s: (W, P) the most that is processed with 1..P slots.
        failure_at_s, failure_downtime_s: (F,) ascending, seconds since the start.
        rescale_downtime_s: (W,) of a rescale that begins with the window.
        may_rescale: (W,) whether a policy is asked at the window's beginning.
        steps, step_s: K, and the length of a step.
        lag_target_s: late while the oldest unprocessed record is older.
        disturbances: checkpoints, and when a failure is noticed.
        arrived: (W K + 1,) records up to the ends of steps, the beginning first.
        ends_s: (W K + 1,) seconds since the start.
        on_time: (W K + 1,) the largest backlog at the ends of steps that is not late.
    """

    rates_per_s: Floats
    capacity_per_s: Floats
    failure_at_s: Floats
    failure_downtime_s: Floats
    rescale_downtime_s: Floats
    may_rescale: Bools
    steps: int
    step_s: float
    lag_target_s: float
    disturbances: Disturbances
    arrived: Floats
    ends_s: Floats
    on_time: Floats

    @classmethod
    def build(cls, workload: Workload, draws: RandomDraws, conditions: Conditions) -> KnownRun:
        """Return what a replay of a workload with a seed's draws is made of."""
        cadence, target_s = conditions.cadence, conditions.prices.lag_target_s
        windows = len(workload.rates_per_s) // cadence.steps
        gains, curves = compute_source_gains(workload.spec), compute_curves(workload.spec)
        rates_per_s = workload.rates_per_s[: windows * cadence.steps]
        busiest = int((rates_per_s @ gains.T / curves[:, -1]).max(axis=0).argmax())
        ratios = gains @ gains[busiest] / (gains[busiest] @ gains[busiest])
        alike = (ratios > 0) & (np.abs(gains - ratios[:, None] * gains[busiest]) <= _ALIKE).all(axis=1)
        # More slots never process less: an operator need not use them all.
        reached = np.minimum(np.arange(1, curves.shape[1]), find_limits(workload.spec)[:, None])
        most = np.maximum.accumulate(np.take_along_axis(curves, reached, axis=1), axis=1) / ratios[:, None]
        capacity = (most[alike] * draws.capacity[:, alike, None]).min(axis=1)
        stream = rates_per_s @ gains[busiest]
        arrived = np.concatenate([[0.0], np.cumsum(stream * cadence.step_s)])
        ends_s = np.asarray(cadence.step_s * np.arange(len(arrived)), float)
        began_s = workload.start_s + cadence.window_s * np.arange(windows)
        return cls(
            rates_per_s=stream,
            capacity_per_s=capacity,
            failure_at_s=draws.failure_at_s,
            failure_downtime_s=draws.failure_downtime_s,
            rescale_downtime_s=draws.rescale_downtime_s,
            may_rescale=np.asarray(began_s % cadence.tick_s == 0),
            steps=cadence.steps,
            step_s=float(cadence.step_s),
            lag_target_s=target_s,
            disturbances=conditions.disturbances,
            arrived=arrived,
            ends_s=ends_s,
            on_time=arrived - np.interp(ends_s - target_s, ends_s, arrived),
        )

    @property
    def windows(self) -> int:
        """W."""
        return len(self.capacity_per_s)

    def begin_s(self, window: int) -> float:
        """Return when a window begins, seconds since the start."""
        return window * self.steps * self.step_s

    def find_failures(self, window: int) -> range:
        """Return the places of the failures of a window."""
        first, last = np.searchsorted(self.failure_at_s, (self.begin_s(window), self.begin_s(window + 1)))
        return range(int(first), int(last))

    def find_backlog(self, window: int, age_s: Floats) -> Floats:
        """Return the records that wait at a window's beginning where the oldest is so old."""
        end = window * self.steps
        return np.asarray(self.arrived[end] - np.interp(self.ends_s[end] - age_s, self.ends_s, self.arrived))

    def find_age_s(self, window: int, backlog: Floats) -> Floats:
        """Return how old the oldest record is at a window's beginning where so many wait."""
        end = window * self.steps
        processed = self.arrived[end] - backlog
        age_s = self.ends_s[end] - np.interp(processed, self.arrived[: end + 1], self.ends_s[: end + 1])
        return np.where(backlog > 0.0, age_s, 0.0)

    def find_checkpoint_age_s(self, until_s: float, failed_s: float) -> float:
        """Return how old the state is that a failure restores, of a job that runs since ``until_s``."""
        age_s = failed_s - max(until_s, 0.0)
        interval_s, duration_s = self.disturbances.checkpoint_interval_s, self.disturbances.checkpoint_duration_s
        return age_s - max((age_s - duration_s) // interval_s, 0.0) * interval_s
