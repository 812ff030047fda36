"""The history of a source in bins; loaded without Spark and the lake."""

from __future__ import annotations

from dataclasses import dataclass

SERIES = ("cluster", "job", "operator")
RATES = ("rate_per_s", "last_seen_s")
"""Columns of a source: an array over the bins, and the end of its last window."""


@dataclass(frozen=True, slots=True)
class HistoryBins:
    """Which bins a history has.

    Attributes:
        as_of_s: time of the forecast, seconds since 1970.
        first_bin_s: start of the first bin.
        bin_s: length of a bin.
        history_bins: number of bins; a forecast starts after them.
    """

    as_of_s: float
    first_bin_s: int
    bin_s: int
    history_bins: int
