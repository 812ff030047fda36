"""End-to-end latency of simulated jobs, as a sink measures it: what the queueing model leaves out is added here."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lab.simulation.testbed import TestbedWindow
from models.arrays import Floats


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """A 95th percentile of the latency of a job.

    Attributes:
        base_ms: of a job without a backlog: buffers, the transactional sink and the way between.
        noise: relative standard deviation of a window's percentile.
    """

    base_ms: float
    noise: float

    def latency_ms(self, window: TestbedWindow, draws: np.random.Generator) -> Floats:
        """Return (J,) ms: the base, with its noise, and the age of the oldest record that waits at a source."""
        age = np.where(np.isnan(window.latency_ms), 0.0, window.latency_ms).max(axis=1)
        factor = np.maximum(1.0 + self.noise * draws.standard_normal(len(age)), 0.5)
        return np.asarray(self.base_ms * factor + age)


def with_latency(window: TestbedWindow, latency_ms: Floats) -> TestbedWindow:
    """Return the window with (J,) end-to-end latencies in place of the ages at the sources."""
    return replace(window, latency_ms=np.where(np.isnan(window.latency_ms), np.nan, latency_ms[:, None]))
