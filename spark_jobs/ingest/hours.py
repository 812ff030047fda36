"""Slices of full hours of the tables that have day and hour partitions."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame

from include.tables import Table
from spark_jobs.lake import Lake

# The sample and the reply before the first of an hour stand in the hour before.
LOOKBACK = timedelta(hours=1)


def hours_where(start: datetime, end: datetime) -> str:
    """Return the exact slice ``[start, end)`` (full hours, UTC) as a predicate on ``date`` and ``hour``."""

    def beyond(timestamp: datetime, order: str) -> str:
        day = f"DATE'{timestamp:%Y-%m-%d}'"
        return f"(date {order[0]} {day} OR (date = {day} AND hour {order} {timestamp.hour}))"

    return f"{beyond(start, '>=')} AND {beyond(end, '<')}"


def read_hours(lake: Lake, table: Table, start: datetime, end: datetime) -> DataFrame:
    """Read the rows of the hours ``[start, end)`` of a table with day and hour partitions."""
    return lake.read(table).where(hours_where(start, end))


def write_hours(lake: Lake, table: Table, rows: DataFrame, start: datetime, end: datetime) -> None:
    """Replace the hours ``[start, end)`` of a table."""
    lake.replace(table, rows, hours_where(start, end))
