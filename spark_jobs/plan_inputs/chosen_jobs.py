"""Jobs that are chosen by a regular expression."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.newest_rows import JOB


def is_chosen(pattern: str | None) -> Column:
    """Return whether a regular expression matches ``cluster/job`` from the beginning; true of all jobs without one."""
    return F.lit(True) if pattern is None else F.concat_ws("/", *JOB).rlike(f"^(?:{pattern})")
