"""A long history of windows as rows of Spark, for the jobs of some policies."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.settings import Planner
from spark_jobs.newest_rows import JOB
from spark_jobs.plan_inputs.windows import COLUMNS, READ
from spark_jobs.row_conditions import is_demand
from spark_jobs.timestamps import timestamp_column


def has_policy(options: Planner, policies: Collection[str]) -> Column:
    """Whether a row's job has one of the policies."""
    job = F.concat_ws("/", *JOB)
    listed = [key for key, name in options.policies.items() if name in policies]
    if options.policy not in policies:
        return job.isin(listed)
    return job.isin(listed) | ~job.isin(list(options.policies))


def windows_between(observations: DataFrame, since: datetime, as_of: datetime) -> DataFrame:
    """Return the windows that began at or after ``since`` and ended by ``as_of``, one row per operator and window.

    A target data rate that is no more than a lower bound of the demand is null: what arrived is not known.
    """
    window_end = F.timestamp_seconds(F.unix_timestamp("window_start") + F.col("window_s"))
    dates = F.col("date").between(F.lit(since.date()), F.lit(as_of.date()))
    inside = observations.where(
        dates & (F.col("window_start") >= timestamp_column(since)) & (window_end <= timestamp_column(as_of))
    )
    return inside.select(
        *JOB,
        "operator",
        F.unix_timestamp("window_start").alias("window_start_s"),
        "window_s",
        "parallelism",
        "disturbed",
        *[_measure(name).alias(name) for name in READ],
    )


def _measure(name: str) -> Column:
    column = F.col(COLUMNS.get(name, name))
    return F.when(is_demand(), column) if name == "target_data_rate_per_s" else column
