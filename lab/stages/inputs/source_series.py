"""The windows of each source as arrays, read by Spark, and their mean rates in bins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import SOURCE_LOADS
from models.arrays import Floats, Ints
from spark_jobs.lake import Lake
from spark_jobs.source_inputs.source_loads import update_source_loads
from spark_jobs.source_inputs.source_windows import SERIES, HistoryBins

WINDOWS = ("start_s", "window_s", "demand_per_s")


def read_source_loads(lake: Lake, frame: HistoryBins) -> DataFrame:
    """Return rows of silver.source_loads of the dates of a history, after bringing those up to date."""
    since, until = (datetime.fromtimestamp(s, UTC).date() for s in (frame.first_bin_s, frame.as_of_s))
    update_source_loads(lake.root, since, until, partial(lake.replace, SOURCE_LOADS))
    return lake.read(SOURCE_LOADS).where(F.col("date").between(F.lit(since), F.lit(until)))


def source_series(loads: DataFrame, frame: HistoryBins) -> DataFrame:
    """Return one row per source: the windows of the hours of its history as arrays.

    Args:
        loads: rows of silver.source_loads, of the dates of the history.
        frame: of the history; a source without any window in it has no row.
    """
    in_history = F.exists("start_s", lambda s: (s >= frame.first_bin_s) & (s < F.lit(frame.as_of_s)))
    hours = F.collect_list(F.struct(*WINDOWS)).alias("hours")
    gathered = loads.where(in_history).groupBy(*SERIES).agg(hours)
    return gathered.select(*SERIES, *[F.flatten(f"hours.{name}").alias(name) for name in WINDOWS])


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

    def select_measured(self, frame: HistoryBins) -> SourceWindows:
        """Return the windows of a history whose demand was measured."""
        inside = (self.start_s >= frame.first_bin_s) & (self.start_s < frame.as_of_s) & np.isfinite(self.demand_per_s)
        return SourceWindows(self.start_s[inside], self.window_s[inside], self.demand_per_s[inside])

    @property
    def last_seen_s(self) -> float:
        """End of the last window, epoch seconds; NaN without one."""
        return float((self.start_s + self.window_s).max()) if len(self.start_s) else float("nan")

    def average_in_bins(self, frame: HistoryBins) -> Floats:
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
