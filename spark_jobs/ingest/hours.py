"""Slices of full hours of the tables that have day and hour partitions."""

from __future__ import annotations

from datetime import datetime, timedelta

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
    """Return an exact slice of full hours as a predicate on ``date`` and ``hour``."""

    def beyond(timestamp: datetime, order: str) -> str:
        day = f"DATE'{timestamp:%Y-%m-%d}'"
        return f"(date {order[0]} {day} OR (date = {day} AND hour {order} {timestamp.hour}))"

    return f"{beyond(hours.start, '>=')} AND {beyond(hours.end, '<')}"


def read_hours(lake: Lake, table: Table, start: datetime, end: datetime) -> DataFrame:
    """Read the rows of the hours ``[start, end)`` of a table with day and hour partitions; none when it is empty.

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
    hours = Interval(start, end)
    rows = lake.few(table).read(list(table.columns), start.date(), end.date(), hours_where(hours))
    return from_table(lake.spark, table, rows)


def select_hours(rows: DataFrame, hours: Interval) -> DataFrame:
    """Return the rows of these hours."""
    return rows.where(hours_where(hours))
