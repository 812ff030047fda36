"""Slices of full hours of the tables that have day and hour partitions."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame

from include.tables import Table
from include.utc import Interval
from spark_jobs.lake import Lake

LOOKBACK = timedelta(hours=1)
"""The sample and the reply before the first of an hour stand in the hour before."""


def hours_where(hours: Interval) -> str:
    """Return an exact slice of full hours as a predicate on ``date`` and ``hour``."""

    def beyond(timestamp: datetime, order: str) -> str:
        day = f"DATE'{timestamp:%Y-%m-%d}'"
        return f"(date {order[0]} {day} OR (date = {day} AND hour {order} {timestamp.hour}))"

    return f"{beyond(hours.start, '>=')} AND {beyond(hours.end, '<')}"


def read_hours(lake: Lake, table: Table, start: datetime, end: datetime) -> DataFrame:
    """Read the rows of the hours ``[start, end)`` of a table with day and hour partitions; none when it is empty."""
    rows = lake.read(table)
    return rows.where(hours_where(Interval(start, end))) if start < end else rows.where("false")


def select_hours(rows: DataFrame, hours: Interval) -> DataFrame:
    """Return the rows of these hours."""
    return rows.where(hours_where(hours))
