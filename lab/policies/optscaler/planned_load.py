"""The proactive module, Section 4.1, as what it hands on: the highest load of each interval ahead.

Deviation: the paper's forecast is a network of Fourier series and attention, trained daily and asked at every decision.
Here it is the pipeline's, made with every plan; what has happened since, its short-term block, is the load of the last
window, which the first interval has at least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.scheduling.quantiles import quantile_at_level
from models.scheduling.demand import SourceForecast


@dataclass(frozen=True, slots=True)
class ForecastLoad:
    """Load of all sources that a plan expects.

    Attributes:
        start_s: epoch seconds at which the first bin begins.
        bin_s: length of a bin.
        per_s: records/s of each; empty without a plan.
    """

    start_s: int = 0
    bin_s: int = 1
    per_s: tuple[float, ...] = ()

    @classmethod
    def of(cls, forecast: SourceForecast, level: float) -> ForecastLoad:
        """Return the load of a forecast at a quantile's level."""
        total = sum(quantile_at_level(values, level) for values in forecast.quantiles.values())
        return cls(forecast.start_s, forecast.bin_s, tuple(np.asarray(total, float).tolist()))

    def list_peaks(self, now_s: int, interval_s: int, count: int, measured_per_s: float) -> list[float]:
        """Return (count,) the highest load of each interval from now on; the last bin goes on after the end.

        Args:
            now_s: epoch seconds.
            interval_s: length of an interval.
            count: of intervals.
            measured_per_s: load of the last window; all that is known without a plan.
        """
        if not self.per_s:
            return [measured_per_s] * count
        edges = now_s + interval_s * np.arange(count + 1) - self.start_s
        first = np.clip(edges[:-1] // self.bin_s, 0, len(self.per_s) - 1)
        after = np.clip(-(-edges[1:] // self.bin_s), first + 1, len(self.per_s))
        peaks = [max(self.per_s[begin:end]) for begin, end in zip(first.tolist(), after.tolist(), strict=True)]
        return [max(peaks[0], measured_per_s), *peaks[1:]]
