"""The windows of each source, read by Spark."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.tables import SOURCE_LOADS
from spark_jobs.lake import Lake
from spark_jobs.source_inputs.source_loads import update_source_loads
from spark_jobs.source_inputs.source_windows import SERIES, WINDOWS, HistoryFrame


def read_source_loads(lake: Lake, frame: HistoryFrame) -> DataFrame:
    """Return rows of silver.source_loads of the dates of a history, after bringing those up to date."""
    since, until = (datetime.fromtimestamp(s, UTC).date() for s in (frame.first_bin_s, frame.as_of_s))
    update_source_loads(lake.root, since, until)
    return lake.read(SOURCE_LOADS).where(F.col("date").between(F.lit(since), F.lit(until)))


def source_series(loads: DataFrame, frame: HistoryFrame) -> DataFrame:
    """Return one row per source: the windows of the hours of its history as arrays.

    Args:
        loads: rows of silver.source_loads, of the dates of the history.
        frame: of the history; a source without any window in it has no row.
    """
    in_history = F.exists("start_s", lambda s: (s >= frame.first_bin_s) & (s < F.lit(frame.as_of_s)))
    hours = F.collect_list(F.struct(*WINDOWS)).alias("hours")
    gathered = loads.where(in_history).groupBy(*SERIES).agg(hours)
    return gathered.select(*SERIES, *[F.flatten(f"hours.{name}").alias(name) for name in WINDOWS])


def is_demand() -> Column:
    """Whether a window's target data rate is the demand, and no lower bound of it."""
    return ~F.coalesce("target_is_lower_bound", F.lit(False))
