"""The random draws of a replay: failures, downtimes and noise of one seed, the same for every candidate policy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.signal import lfilter

from include.utc import DAY_S
from lab.replay.conditions import DecisionSchedule, Disturbances
from models.arrays import Floats

_LEAST_FACTOR = 0.05


@dataclass(frozen=True, slots=True)
class RandomDraws:
    """Draws of one seed over W windows and O operators.

    Attributes:
        failure_at_s: (F,) ascending, seconds since the start.
        failure_downtime_s: (F,).
        rescale_downtime_s: (W,) of a rescale that begins with the window.
        measured: (W, O) factor on the true rates that a window shows.
        capacity: (W, O) factor on what operators process.
    """

    failure_at_s: Floats
    failure_downtime_s: Floats
    rescale_downtime_s: Floats
    measured: Floats
    capacity: Floats

    @classmethod
    def from_seed(
        cls, seed: int, windows: int, operators: int, cadence: DecisionSchedule, disturbances: Disturbances
    ) -> RandomDraws:
        """Draw everything that a seed decides."""
        failing, stopping, measuring, running = (np.random.default_rng([seed, stream]) for stream in range(4))
        duration_s = windows * cadence.window_s
        days = -(-duration_s // DAY_S)
        in_day = failing.uniform(0.0, 1.0, (days, disturbances.failures_per_day))
        at_s = np.sort((DAY_S * (np.arange(days)[:, None] + in_day)).ravel())
        if disturbances.failure_at_s is not None:
            at_s = np.sort(np.array(disturbances.failure_at_s, float))
        deviation = disturbances.failure_downtime_sd * failing.standard_normal(len(at_s))
        downtime_s = disturbances.failure_downtime_s * (1.0 + deviation)
        inside = (at_s >= 0) & (at_s < duration_s)
        measured = 1.0 + disturbances.measurement_noise * measuring.standard_normal((windows, operators))
        capacity = 1.0 + _draw_capacity(running, (windows, operators), cadence.window_s, disturbances)
        return cls(
            failure_at_s=at_s[inside],
            failure_downtime_s=np.maximum(downtime_s[inside], 1.0),
            rescale_downtime_s=stopping.uniform(*disturbances.rescale_downtime_s, windows),
            measured=np.maximum(measured, _LEAST_FACTOR),
            capacity=np.maximum(capacity, _LEAST_FACTOR),
        )

    def repeat(self, count: int) -> RandomDraws:
        """Return the same for windows of which so many make one."""
        of_windows = (self.rescale_downtime_s, self.measured, self.capacity)
        stops, measured, capacity = (np.repeat(one, count, axis=0) for one in of_windows)
        return replace(self, rescale_downtime_s=stops, measured=measured, capacity=capacity)


def _draw_capacity(
    generator: np.random.Generator, shape: tuple[int, int], window_s: int, disturbances: Disturbances
) -> Floats:
    """Return (W, O) relative deviations of the capacity: an AR(1) process that starts in its stationary law."""
    memory = float(np.exp(-window_s / disturbances.capacity_memory_s))
    draws = generator.standard_normal(shape) * np.sqrt(1.0 - memory**2)
    draws[:1] /= np.sqrt(1.0 - memory**2)
    return np.asarray(lfilter([disturbances.capacity_noise], [1.0, -memory], draws, axis=0))
