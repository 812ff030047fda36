"""Few rows in the driver instead of in Spark: as Arrow, and as a frame that Spark reads without a job.

A local frame is collected without a job, as is one that filters or renames it; it takes one to broadcast it or to bring
it to the driver as Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from include.arrow_rows import arrow_schema
from include.tables import Table
from spark_jobs.lake import Lake, from_table

_JOB = ("cluster", "job")


def read_few(lake: Lake, table: Table, since: datetime, until: datetime, version: int | None = None) -> DataFrame:
    """Return the rows of the dates of two moments, both included, as a local frame; a table without dates whole.

    Spark reads the log of a table by a job of its own, and its rows by another: together a second of processor time.

    Args:
        lake: of the run.
        table: of few rows a job.
        since: first date.
        until: last date.
        version: to read it at; None for the newest.
    """
    rows = lake.few(table, version).read(list(table.columns), since.date(), until.date())
    return from_table(lake.spark, table, rows)


def read_newest(
    lake: Lake,
    table: Table,
    since: datetime,
    until: datetime,
    *,
    order: Sequence[str],
    version: int | None = None,
) -> DataFrame:
    """Return what :func:`read_newest_rows` does as a local frame."""
    rows = read_newest_rows(lake, table, since, until, order=order, version=version)
    return from_table(lake.spark, table, rows)


def read_newest_rows(
    lake: Lake,
    table: Table,
    since: datetime,
    until: datetime,
    *,
    order: Sequence[str],
    version: int | None = None,
) -> pa.Table:
    """Return of each job the rows that are newest, of those observed by ``until``.

    Args:
        lake: of the run.
        table: with ``cluster, job, observed_at`` and dates.
        since: first date.
        until: nothing later is looked at.
        order: columns that order a job's rows.
        version: of the table; None for the newest.
    """
    few, until_date = lake.few(table, version), until.date()
    where = f"observed_at <= '{until.isoformat()}'"
    newest: dict[tuple[str, str], tuple[Any, ...]] = {}
    for part in few.read_parts([*_JOB, *order], since.date(), until_date, where):
        for cluster, job, *at in zip(*part.group_by([*_JOB, *order]).aggregate([]).to_pydict().values(), strict=True):
            newest[cluster, job] = max(newest.get((cluster, job), tuple(at)), tuple(at))
    parts, known = [], [pa.array(set(column)) for column in zip(*newest.values(), strict=True)]
    for every in few.read_parts(list(table.columns), since.date(), until_date, where) if newest else ():
        part = every
        for name, values in zip(order, known, strict=True):  # most rows go here
            part = part.filter(pc.is_in(part[name], values.cast(part[name].type)))
        keys = zip(*(part[name].to_pylist() for name in (*_JOB, *order)), strict=True)
        parts.append(
            part.filter(pa.array([newest[cluster, job] == tuple(at) for cluster, job, *at in keys], pa.bool_()))
        )
    return pa.concat_tables(parts) if parts else arrow_schema(table).empty_table()
