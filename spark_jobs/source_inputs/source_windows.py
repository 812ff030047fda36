"""The history of a source as arrays: its windows, and their mean rates in bins; loaded without Spark and the lake."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints

SERIES = ("cluster", "job", "operator")
WINDOWS = ("start_s", "window_s", "demand_per_s")
RATES = ("rate_per_s", "last_seen_s")
"""Columns of a source whose windows are averaged: an array over the bins, and the end of its last window."""


@dataclass(frozen=True, slots=True)
class HistoryFrame:
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


@dataclass(frozen=True, slots=True)
class SourceWindows:
    """Windows of one source, in any order.

    Attributes:
        start_s: epoch seconds, shape (N,).
        window_s: length of each, shape (N,).
        demand_per_s: records/s, NaN where the demand was not measured, shape (N,).
    """

    start_s: Ints
    window_s: Ints
    demand_per_s: Floats

    @classmethod
    def of(cls, start_s: object, window_s: object, demand_per_s: object) -> SourceWindows:
        """Return windows from columns of a row, where null is a rate that was not measured."""
        return cls(np.asarray(start_s, np.int64), np.asarray(window_s, np.int64), np.asarray(demand_per_s, np.float64))

    def select_measured(self, frame: HistoryFrame) -> SourceWindows:
        """Return the windows of a history whose demand was measured."""
        inside = (self.start_s >= frame.first_bin_s) & (self.start_s < frame.as_of_s) & np.isfinite(self.demand_per_s)
        return SourceWindows(self.start_s[inside], self.window_s[inside], self.demand_per_s[inside])

    @property
    def last_seen_s(self) -> float:
        """End of the last window, epoch seconds; NaN without one."""
        return float((self.start_s + self.window_s).max()) if len(self.start_s) else float("nan")

    def average_in_bins(self, frame: HistoryFrame) -> Floats:
        """Return the mean rate in each bin of a history, shape (bins,), NaN where no window lies."""
        first = (self.start_s - frame.first_bin_s) // frame.bin_s
        span = np.maximum(1, self.window_s // frame.bin_s)
        return average_in_bins(first, self.demand_per_s, span, frame.history_bins)


def average_in_bins(first: Ints, rate_per_s: Floats, span: Ints, bins: int) -> Floats:
    """Return the mean rate in each bin, shape (bins,), NaN where no window lies.

    A window shorter than a bin is one of those averaged, a longer one covers several.  Bin ``bins`` is the one that the
    as-of time cuts: it is kept only when the series has nothing older, as its last bin.

    Args:
        first: first bin of each window, 0..bins.
        rate_per_s: its rate.
        span: bins that it covers.
        bins: length of the history.
    """
    first, span = first.astype(np.int64), span.astype(np.int64)
    place = np.repeat(first, span) + _counting(span)
    rate = np.repeat(rate_per_s, span)
    order = np.lexsort((rate, place))  # one order of summation, however Spark collected the windows
    place, rate = place[order], rate[order]
    inside = place < bins
    if not inside.any():
        place = place - 1
    elif not inside.all():
        place, rate = place[inside], rate[inside]
    count = np.bincount(place, minlength=bins)[:bins]
    total = np.bincount(place, weights=rate, minlength=bins)[:bins]
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _counting(span: Ints) -> Ints:
    """Return 0..span-1 for each span, one after the other."""
    starts = np.cumsum(span) - span
    return np.asarray(np.arange(int(span.sum())) - np.repeat(starts, span), np.int64)
