"""Few rows in the driver instead of in Spark: as Arrow, and as a frame that Spark reads without a job.

A local frame is collected without a job, as is one that filters or renames it; it takes one to broadcast it or to bring
it to the driver as Arrow.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, datetime

import pyarrow as pa
from pyspark.sql import DataFrame

from include.lake_table import LakeTable, is_in
from include.tables import Table
from spark_jobs.by_job import Job, join_parts, list_keys
from spark_jobs.lake import Lake, from_table

Span = tuple[date, date, str]
"""First and last date of rows, and a further condition as SQL."""
_JOB = ("cluster", "job")


def read_few(lake: Lake, table: Table, since: datetime, until: datetime, columns: Sequence[str] = ()) -> DataFrame:
    """Return the rows of the dates of two moments, both included, as a local frame; a table without dates whole.

    Spark reads the log of a table by a job of its own, and its rows by another: together a second of processor time.
    """
    rows = lake.few(table).read(list(columns or table.columns), since.date(), until.date())
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
    """Return of each job the rows that are newest by ``order``, of those observed from a date on and by ``until``.

    The table has ``cluster, job, observed_at`` and dates; it is read at its newest version without another.
    """
    span = since.date(), until.date(), f"observed_at <= '{until.isoformat()}'"
    return find_newest(lake.few(table, version), list(table.columns), order, span)


def find_newest(
    table: LakeTable, columns: Sequence[str], order: Sequence[str], *spans: Span, jobs: Collection[Job] | None = None
) -> pa.Table:
    """Return of each job the rows that are newest: their keys are read first, then they alone.

    The table has ``cluster, job``; columns of ``order``, the first one a date or a time, are among those to read.
    """
    names = [*_JOB, *order]
    keys = [part.group_by(names).aggregate([]) for one in spans for part in table.read_parts(names, *one)]
    none = table.read(columns, date.min, date.max, "false")
    if not keys:
        return none
    ordered = pa.concat_tables(keys).sort_by([(name, "ascending") for name in order])
    lasts = ordered.group_by([*_JOB], use_threads=False).aggregate([(name, "last") for name in order])
    newest = lasts.select([*_JOB, *(f"{name}_last" for name in order)]).rename_columns(names)
    if jobs is not None:
        newest = newest.filter(pa.array([job in jobs for job in list_keys(newest)], pa.bool_()))
    known = {one.isoformat() for one in newest[order[0]].to_pylist()}
    parts = [none]
    for since, until, where in spans:
        chosen = table.read_parts(columns, since, until, f"({where}) AND {is_in(order[0], known)}")
        for part in join_parts(chosen):
            at = part.select(names).append_column("at", pa.array(range(len(part)), pa.int64()))
            parts.append(part.take(at.join(newest, names, join_type="left semi")["at"].combine_chunks().sort()))
    return pa.concat_tables(parts)
