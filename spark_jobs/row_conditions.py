"""Conditions on rows of jobs and sources."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.newest_rows import JOB


def is_chosen(pattern: str | None) -> Column:
    """Return whether a regular expression matches ``cluster/job`` from the beginning; true of all jobs without one."""
    return F.lit(True) if pattern is None else F.concat_ws("/", *JOB).rlike(f"^(?:{pattern})")


def is_demand() -> Column:
    """Return whether a window's target data rate is the demand, and no lower bound of it."""
    return ~F.coalesce("target_is_lower_bound", F.lit(False))
