"""Samples of a metrics window, and the rate or mean of one metric over it.

Samples are taken after the stabilisation interval and no older than the metrics window.  A value that is missing in a
sample is NaN, and one missing value never spoils the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lab.policies.flink_autoscaler.config import AutoscalerConfig
from models.arrays import Floats

LAG = "lag"
LOAD = "load"
RECORDS_IN = "num_records_in"
RECORDS_IN_PER_S = "num_records_in_per_second"
RECORDS_OUT = "num_records_out"
OBSERVED_TPR = "observed_tpr"
ACCUMULATED_BUSY_MS = "accumulated_busy_time"
METRICS = (LAG, LOAD, RECORDS_IN, RECORDS_IN_PER_S, RECORDS_OUT, OBSERVED_TPR, ACCUMULATED_BUSY_MS)


class WindowError(ValueError):
    """Samples that do not fit together."""


@dataclass(frozen=True, slots=True)
class MetricWindow:
    """Samples of a job.

    Attributes:
        times_s: (T,) ascending.
        values: vertex -> metric (see ``METRICS``) -> (T,); records and busy time are counters, load is a share 0..1,
            observed_tpr is what :func:`lab.policies.flink_autoscaler.true_rates.observed_rate` saw.
    """

    times_s: Floats
    values: Mapping[str, Mapping[str, Floats]]

    def __post_init__(self) -> None:
        if not len(self.times_s):
            raise WindowError("a metrics window needs at least one sample")
        if np.any(np.diff(self.times_s) <= 0):
            raise WindowError("the samples of a metrics window must stand in order of time, each at another time")
        for vertex, metrics in self.values.items():
            for metric, series in metrics.items():
                if metric not in METRICS:
                    raise WindowError(f"{vertex!r} has an unknown metric {metric!r}; known are {list(METRICS)}")
                if series.shape != self.times_s.shape:
                    raise WindowError(f"{metric!r} of {vertex!r} must have one value for each of the samples")

    def series(self, vertex: str, metric: str) -> Floats:
        """Return (T,) values of a metric, NaN where it was not sampled."""
        return self.values.get(vertex, {}).get(metric, np.full(self.times_s.shape, np.nan))

    def rate_per_s(self, vertex: str, metric: str) -> float:
        """Return (last - first) / time of a counter or level; NaN without two samples.

        Deviation: a counter that restarted at zero gives no rate (the autoscaler drops its window on a restart).
        """
        series = self.series(vertex, metric)
        known = np.flatnonzero(~np.isnan(series))
        if len(known) < 2:
            return math.nan
        first, last = known[0], known[-1]
        change = float(series[last]) - float(series[first])  # of floats: two infinities give NaN without a warning
        if metric != LAG and change < 0:
            return math.nan
        return change / max(float(self.times_s[last] - self.times_s[first]), 1e-3)

    def mean(self, vertex: str, metric: str, *, least: int = 1) -> float:
        """Return the mean of the finite samples; NaN with fewer than ``least``, infinite if all are infinite."""
        series = self.series(vertex, metric)
        finite = series[np.isfinite(series)]
        if not len(finite):
            return math.inf if np.any(np.isinf(series)) else math.nan
        return float(finite.mean()) if len(finite) >= least else math.nan

    def latest(self, vertex: str, metric: str, default: float = math.nan) -> float:
        """Return the value in the last sample."""
        value = float(self.series(vertex, metric)[-1])
        return default if math.isnan(value) else value

    def recent(self, config: AutoscalerConfig, running_since_s: float) -> MetricWindow | None:
        """Return the samples that may be used, None while there are none.

        Those are taken after the stabilisation interval, and in the last metrics window.
        """
        oldest = max(
            float(self.times_s[-1]) - config.metrics_window_s, running_since_s + config.stabilization_interval_s
        )
        used = self.times_s >= oldest
        if not used.any():
            return None
        cut = {vertex: {name: series[used] for name, series in of.items()} for vertex, of in self.values.items()}
        return MetricWindow(self.times_s[used], cut)

    def is_full(self, config: AutoscalerConfig, running_since_s: float) -> bool:
        """Return whether a whole metrics window has passed since the job became stable."""
        stable = self.times_s[self.times_s >= running_since_s + config.stabilization_interval_s]
        return bool(len(stable)) and float(stable[-1] - stable[0]) >= config.metrics_window_s
