"""Classes of load by a measured rule, chosen on the tuning traces and synthetic loads alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.replay.replay_traces import DAY_BINS
from models.arrays import Floats

RULE: Final = (
    "A load has **squares** where less than 5% of its time lies in the middle half of its range and 20% or more above "
    "it; **spikes** where 5% of the records or more come above 1.5 times the median of three hours, in less than a "
    "quarter of the time; **ramps** where the mean day has a rise within an hour by half of the range; it is **rough** "
    "where it deviates by 5% of its mean or more from that median, or has more of such peaks; **regular** otherwise."
)
_HOURS_3, _HOUR = 37, 12  # bins of five minutes; the first is odd, so that a bin is in its middle


@dataclass(frozen=True, slots=True)
class LoadMeasures:
    """What the class of a load is decided by; all are shares.

    Attributes:
        middle, above: of the time in the middle half of the range, and above it.
        peak_time, peak_records: of the time above 1.5 times the median of three hours, and of the records above it.
        deviation: mean distance from that median, over the mean load.
        rise: greatest rise within an hour, of quarter-hour means, over the range; mean over days.
    """

    middle: float
    above: float
    peak_time: float
    peak_records: float
    deviation: float
    rise: float

    @property
    def name(self) -> str:
        """Class of the load."""
        if self.middle < 0.05 and self.above >= 0.2:
            return "squares"
        peaks = self.peak_records >= 0.05
        if peaks:
            return "spikes" if self.peak_time < 0.25 else "rough"
        if self.rise >= 0.5:
            return "ramps"
        return "rough" if self.deviation >= 0.05 else "regular"


def measure_load(values: Floats) -> LoadMeasures:
    """Return the measures of a load.

    Args:
        values: (n,) means of five minutes.
    """
    mean = float(values.mean())
    low, high = np.quantile(values, [0.01, 0.99])
    width = max(float(high - low), 1e-12)
    height = (values - low) / width
    padded = np.pad(values, _HOURS_3 // 2, mode="edge")
    medians = np.median(sliding_window_view(padded, _HOURS_3), axis=1)
    limit = 1.5 * np.maximum(medians, 0.25 * mean)
    smooth = np.convolve(values, np.full(3, 1 / 3), "valid")
    rises = smooth[_HOUR:] - smooth[:-_HOUR]
    days = [rises[start : start + DAY_BINS] for start in range(0, len(rises), DAY_BINS)]
    return LoadMeasures(
        middle=float(np.mean((height > 0.25) & (height < 0.75))),
        above=float(np.mean(height >= 0.75)),
        peak_time=float(np.mean(values > limit)),
        peak_records=float(np.clip(values - limit, 0.0, None).sum() / values.sum()),
        deviation=float(np.abs(values - medians).mean() / mean),
        rise=float(np.mean([day.max() for day in days if len(day) >= DAY_BINS // 2]) / width),
    )
