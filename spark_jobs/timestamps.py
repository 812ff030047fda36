"""Times as Spark reads them: one literal for filters, slices and columns (the session's time zone is UTC)."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.utc import format_utc


def timestamp_literal(timestamp: datetime) -> str:
    """Return a SQL timestamp literal."""
    return f"TIMESTAMP '{format_utc(timestamp)}'"


def timestamp_column(timestamp: datetime) -> Column:
    """Return a timestamp as a literal column."""
    return F.expr(timestamp_literal(timestamp))


def as_of_slice(as_of: datetime) -> str:
    """Return the slice of a table, partitioned by date, that holds the rows of one as-of time."""
    return f"date = DATE '{as_of.date()}' AND as_of = {timestamp_literal(as_of)}"
