"""What the appraisal of a job is made from beside its load and what ran."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include import tables
from include.settings import Settings
from include.utc import Interval
from spark_jobs.lake import Lake
from spark_jobs.newest_rows import JOB
from spark_jobs.timestamps import timestamp_column


def count_history(lake: Lake, settings: Settings, end: datetime) -> dict[str, object]:
    """Return from when to when the history reaches, for the page."""
    since = end - timedelta(days=settings.training.lookback_days)
    of_days = F.col("date").between(F.lit(since.date()), F.lit(end.date()))
    rows = lake.read(tables.OBSERVATIONS).where(of_days & (F.col("window_start") < timestamp_column(end)))
    result = rows.agg(F.min("window_start").alias("first"), F.max("window_start").alias("last")).first()
    return {} if result is None else result.asDict()


def measure_capacity(lake: Lake, settings: Settings, days: Interval) -> DataFrame:
    """Return per job ``capacity``: what each operator could process at each parallelism in the appraised days."""
    usable = (
        F.col("date").between(F.lit(days.start.date()), F.lit(days.end.date()))
        & (F.col("window_start") >= timestamp_column(days.start))
        & (F.col("window_start") < timestamp_column(days.end))
        & ~F.coalesce(F.col("disturbed"), F.lit(False))
        & (F.col("busy_share") >= settings.training.min_busy_share)
        & (F.col("true_processing_rate_per_s") > 0)
    )
    mean = F.avg("true_processing_rate_per_s").alias("mean_per_s")
    observed = lake.read(tables.OBSERVATIONS).where(usable)
    points = observed.groupBy(*JOB, "operator", "parallelism").agg(mean, F.count(F.lit(1)).alias("windows"))
    one = F.struct("operator", "parallelism", "mean_per_s", "windows")
    return points.groupBy(*JOB).agg(F.collect_list(one).alias("capacity"))
