"""Slices of full hours of the tables that have ``date`` and ``hour``."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame

from include.tables import Table
from include.utc import Interval
from spark_jobs.few_rows import from_table
from spark_jobs.lake import Lake, empty

FEW_BYTES = 4 * 2**20
"""Files of so many bytes are read in the driver: as rows they are ten to twenty times as many."""
LOOKBACK = timedelta(hours=1)
"""The sample and the reply before the first of an hour stand in the hour before."""


def hours_where(hours: Interval) -> str:
    """Return an exact slice of full hours as a predicate on ``date`` and ``hour``.

    What date and hour must satisfy each for itself is said first: Delta passes over files by a condition on one of
    them alone, not where one says ``hour`` on one side of an OR and ``date`` on the other.

    >>> from datetime import UTC
    >>> hours_where(Interval(datetime(2026, 11, 20, 4, tzinfo=UTC), datetime(2026, 11, 20, 6, tzinfo=UTC)))
    "date = DATE'2026-11-20' AND hour >= 4 AND hour < 6"
    """
    start, end = hours.start, hours.end
    first, last = f"DATE'{start:%Y-%m-%d}'", f"DATE'{end:%Y-%m-%d}'"
    if start.date() == end.date():
        return f"date = {first} AND hour >= {start.hour} AND hour < {end.hour}"
    if end.hour == 0 and end - start <= timedelta(days=1):
        return f"date = {first}" + (f" AND hour >= {start.hour}" if start.hour else "")
    result = f"date >= {first} AND date {'<=' if end.hour else '<'} {last}"
    if start.hour:
        result += f" AND (date > {first} OR hour >= {start.hour})"
    if end.hour:
        result += f" AND (date < {last} OR hour < {end.hour})"
    if 0 < end.hour < start.hour and end - start < timedelta(days=1):
        result += f" AND (hour >= {start.hour} OR hour < {end.hour})"
    return result


def read_hours(lake: Lake, table: Table, start: datetime, end: datetime) -> DataFrame:
    """Read the rows of the hours ``[start, end)`` of a table that has ``date`` and ``hour``; none when it is empty.

    Delta lists the files of a slice by a Spark job, after another that reads its log: few bytes are read without one.
    """
    size = 0 if start >= end else lake.few(table).count_bytes(start, end)
    if size == 0:
        return empty(lake.spark, table.columns)
    if size <= FEW_BYTES:
        return read_few_hours(lake, table, start, end)
    return lake.read(table).where(hours_where(Interval(start, end)))


def read_few_hours(lake: Lake, table: Table, start: datetime, end: datetime) -> DataFrame:
    """Do the same without a Spark job, of a table with few rows."""
    if start >= end:
        return empty(lake.spark, table.columns)
    return from_table(lake.spark, table, read_few_rows(lake, table, Interval(start, end)))


def read_few_rows(lake: Lake, table: Table, hours: Interval) -> pa.Table:
    """Return few rows of these hours as they are in the driver."""
    return lake.few(table).read(list(table.columns), hours.start.date(), hours.end.date(), hours_where(hours))


def select_hours(rows: DataFrame, hours: Interval) -> DataFrame:
    """Return the rows of these hours."""
    return rows.where(hours_where(hours))
