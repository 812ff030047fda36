"""The history of each source as arrays: its windows, and their mean rates in bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from models.arrays import Floats, Ints

SERIES = ("cluster", "job", "operator")


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


def source_series(observations: DataFrame, frame: HistoryFrame) -> DataFrame:
    """Return one row per source: the windows of its history as arrays.

    A window of a rescale or restart counts when its rate could be measured: the load does not stop with the job.  A
    rate that is no number, or negative, is a gap; so is one that is no more than a lower bound of the demand.
    """
    start_s = F.unix_timestamp("window_start")
    rate = F.col("target_data_rate_per_s")
    usable = is_demand() & rate.isNotNull() & ~F.isnan(rate) & (rate >= 0) & (rate < F.lit(float("inf")))
    window = F.struct(
        F.floor((start_s - frame.first_bin_s) / frame.bin_s).cast("int").alias("bin"),
        rate.alias("rate_per_s"),
        F.greatest(F.lit(1), F.floor(F.col("window_s") / frame.bin_s).cast("int")).alias("span"),
    )
    in_history = (start_s >= frame.first_bin_s) & (start_s < F.lit(frame.as_of_s))
    days = F.col("date").between(
        *(F.to_date(F.timestamp_seconds(F.lit(s))) for s in (frame.first_bin_s, frame.as_of_s))
    )
    return (
        observations.where(days & in_history & F.col("is_source"))
        .groupBy(*SERIES)
        .agg(
            F.collect_list(F.when(usable, window)).alias("windows"),
            F.max(F.when(usable, start_s + F.col("window_s"))).cast("double").alias("last_seen_s"),
        )
        .select(
            *SERIES,
            F.col("windows.bin").alias("bin"),
            F.col("windows.rate_per_s").alias("rate_per_s"),
            F.col("windows.span").alias("span"),
            "last_seen_s",
        )
    )


def is_demand() -> Column:
    """Whether a window's target data rate is the demand, and no lower bound of it."""
    return ~F.coalesce("target_is_lower_bound", F.lit(False))


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
