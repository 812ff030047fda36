"""Upkeep of one Delta table: old rows go, small files of past days are merged, files that no version needs are removed.

Each step is a Delta transaction of its own, or removes files that only versions outside the time travel need: killed
anywhere, the upkeep is run again.  Spark may write meanwhile: rows go and files are merged only in days that are over,
and a commit that loses against another is tried again on what is there then.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from include.lake_table import PACKED, is_in
from include.maintenance.retention_rules import HOURLY_TABLES, old_rows
from include.missed_hours import local_path
from include.settings import Retention
from include.tables import Table

Result = TypeVar("Result")


class LinkInTableError(RuntimeError):
    """Files that no version needs are not removed: the table's folder holds a link, and they may lie behind it."""


TRIES = 3
SMALL_FILES = 2
"""A partition with so many files or more is merged."""
MERGED_BYTES = 100 * 2**20
"""Files are merged up to so many bytes."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableMaintenance:
    """What is done, or would be done, to a table.

    Attributes:
        table: its name.
        files, size_bytes: that its present version has.
        old_before: first day that is kept; None when all are.
        old_files, old_bytes: of days before that.
        merged_files: small files of past days that become fewer.
        removed_files: files on disk that no version within the time travel needs.
    """

    table: str
    files: int
    size_bytes: int
    old_before: date | None
    old_files: int
    old_bytes: int
    merged_files: int
    removed_files: int


@dataclass(frozen=True, slots=True)
class _File:
    partition: tuple[tuple[str, str], ...]
    day: date | None
    size_bytes: int


def keep_up(path: str, table: Table, retention: Retention, now: datetime, *, applies: bool) -> TableMaintenance:
    """Do the upkeep of a table, or only say what it would be.

    Raises:
        LinkInTableError: after all but the removal of files was done.
    """
    delta = DeltaTable(path)
    files = _list_files(delta)
    old = old_rows(table, retention, now)
    closed = (now - timedelta(days=retention.compact_after_days)).date()
    gone = [one for one in files if old and one.day and one.day < old.before]
    merged = _count_mergeable([one for one in files if one not in gone], closed)
    if applies and gone and old:
        _retry(path, lambda fresh: fresh.delete(old.predicate))
    is_hourly = table.name in HOURLY_TABLES
    if applies and is_hourly and (surplus := _find_surplus(DeltaTable(path), closed)):
        _retry(path, lambda fresh: fresh.delete(surplus))
    if applies and merged:
        filters = [("date", "<", closed.isoformat())] if "date" in table.partition_by else None
        options: dict[str, Any] = {"target_size": MERGED_BYTES, "writer_properties": PACKED}
        _retry(path, lambda fresh: fresh.optimize.compact(partition_filters=filters, **options))
    if link := _find_link(path):
        raise LinkInTableError(f"{link} is a link: what no version needs is removed once it is gone")
    hours = 24 * (1 if is_hourly else retention.time_travel_days)
    removed = DeltaTable(path).vacuum(hours, dry_run=not applies, enforce_retention_duration=False, full=True)
    return TableMaintenance(
        table.name,
        len(files),
        sum(one.size_bytes for one in files),
        old.before if old else None,
        len(gone),
        sum(one.size_bytes for one in gone),
        merged,
        len(removed),
    )


def _find_surplus(delta: DeltaTable, closed: date) -> str:
    """Return the condition of rows before a day that are of no first evaluation of an hour; empty without any.

    A controller's clusters share the time of an evaluation, those of others have times of their own.
    """
    rows = pa.RecordBatchReader.from_stream(delta.scan(["date", "cluster", "at"], f"date < '{closed}'")).read_all()
    keys = [rows["date"], rows["cluster"].cast(pa.string()), pc.floor_temporal(rows["at"], unit="hour"), rows["at"]]
    times = pa.table(keys, names=["date", "cluster", "hour", "at"]).drop_null()
    firsts = set(times.group_by(["cluster", "hour"]).aggregate([("at", "min")])["at_min"].to_pylist())
    each = times.group_by(["date", "at"]).aggregate([]).to_pylist()
    days = {str(one["date"]) for one in each if one["at"] not in firsts}
    return f"{is_in('date', days)} AND NOT ({is_in('at', firsts)})" if days else ""


def _find_link(path: str) -> str:
    """Return a link below a table's folder, which Delta would follow; empty without one, or on an object store."""
    root = local_path(path)
    if root is None:
        return ""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            if Path(folder, name).is_symlink():
                return str(Path(folder, name))
    return ""


def _list_files(delta: DeltaTable) -> list[_File]:
    rows = delta.get_add_actions(flatten=True)
    columns = {name: rows.column(name).to_pylist() for name in rows.column_names}
    partitions = sorted(name for name in columns if name.startswith("partition."))
    result = []
    for place, size in enumerate(columns["size_bytes"]):
        partition = tuple((name, str(columns[name][place])) for name in partitions)
        day = columns["partition.date"][place] if "partition.date" in columns else None
        result.append(_File(partition, date.fromisoformat(str(day)) if day else None, int(size)))
    return result


def _count_mergeable(files: list[_File], closed: date) -> int:
    """Return the number of files that merging would replace: of partitions with several, in days that are over.

    Two that are too large together stay as they are: a day of a large fleet keeps several files.
    """
    partitions: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for one in files:
        if one.day is None or one.day < closed:
            partitions.setdefault(one.partition, []).append(one.size_bytes)
    fitting = (_count_fitting(sorted(sizes)) for sizes in partitions.values())
    return sum(count for count in fitting if count >= SMALL_FILES)


def _count_fitting(sizes: list[int]) -> int:
    """Return how many files of a partition fit into one with the smallest of the others; bytes in ascending order."""
    if len(sizes) < SMALL_FILES or sizes[0] + sizes[1] > MERGED_BYTES:
        return 0
    return 1 + sum(sizes[0] + size <= MERGED_BYTES for size in sizes[1:])


def _retry(path: str, change: Callable[[DeltaTable], Result]) -> Result:
    """Change a table; a commit that another writer was faster than is made again on the newer version.

    Raises:
        CommitFailedError: others were faster each time; the next upkeep tries again.
    """
    for remaining in range(TRIES - 1, -1, -1):
        try:
            return change(DeltaTable(path))
        except CommitFailedError as error:
            if not remaining:
                raise
            log.info("%s: another writer was faster (%s), once more", path, error)
    raise AssertionError("the loop returns or raises")
