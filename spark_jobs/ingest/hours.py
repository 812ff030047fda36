"""Slices of full hours of the tables that have ``date`` and ``hour``."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame

from include.tables import Table
from include.utc import Interval
from spark_jobs.lake import Lake

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
    """Read the rows of the hours ``[start, end)`` of a table that has ``date`` and ``hour``; none when it is empty."""
    return lake.scan(table, start, end).where(hours_where(Interval(start, end)))


def has_files(lake: Lake, table: Table, start: datetime, end: datetime) -> bool:
    """Whether a file of a table may have rows of the hours ``[start, end)``."""
    return start < end and lake.few(table).count_bytes(start, end) > 0


def select_hours(rows: DataFrame, hours: Interval) -> DataFrame:
    """Return the rows of these hours."""
    return rows.where(hours_where(hours))
