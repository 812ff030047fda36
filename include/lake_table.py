"""One Delta table of the lake, read and appended to without Spark; a table in days is read bounded by date."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import DeltaTable, WriterProperties
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from obstore.exceptions import BaseError
from obstore.store import ObjectStore
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from include.arrow_rows import arrow_rows, arrow_schema, valid_text
from include.commit_once import commit_once, commit_path
from include.object_store import local_folder, open_store
from include.table_creation import ensure_table
from include.tables import Table

Hour = TypeVar("Hour")
_ATTEMPTS = 15
PACKED = WriterProperties(compression="ZSTD")
"""How files are written without Spark: memories of policies take two thirds of what they take by default."""
_LAST_HOUR = 23


class LakeTable:
    """A table of a lake as :mod:`include.tables` defines it, at its newest version or another; for several threads.

    Credentials of an object store come from the environment.
    """

    def __init__(self, lake: str, table: Table, version: int | None = None) -> None:
        self._version = version
        self._lake = lake
        self._path = f"{lake.rstrip('/')}/{table.relative_path}"
        self._table = table
        self._schema = arrow_schema(table)
        self._delta: DeltaTable | None = None
        self._store: ObjectStore | None = None
        self._lock = threading.RLock()

    @property
    def lake(self) -> str:
        """Folder or URI of the lake."""
        return self._lake

    def read_version(self) -> int | None:
        """Return the newest version; None when the table was never written."""
        with self._lock:
            delta = self._refresh()
            return None if delta is None else delta.version()

    def read_files(self) -> dict[date, frozenset[str]]:
        """Return the files of each date; a date whose files are the same has the same rows. Empty without a table."""
        result: dict[date, set[str]] = {}
        for path, day in self._list_files("path", "partition.date"):
            result.setdefault(day, set()).add(path)
        return {day: frozenset(paths) for day, paths in result.items()}

    def read_partitions(self) -> set[tuple[str, ...]]:
        """Return the partitions that have files, their values as text in the order of the columns."""
        with self._lock:
            delta = self._refresh()
            paths = [] if delta is None else delta.file_uris()
        columns = self._table.partition_by
        parts = [dict(part.split("=", 1) for part in path.split("/")[-1 - len(columns) : -1]) for path in paths]
        return {tuple(values[name] for name in columns) for values in parts}

    def read_files_by_hour(self) -> dict[tuple[date, int], frozenset[str]]:
        """Return the files of each date and hour; one of several hours is a file of each. Empty without a table."""
        result: dict[tuple[date, int], set[str]] = {}
        for path, day, first, last, _ in self._list_hours():
            for hour in range(first, last + 1):
                result.setdefault((day, hour), set()).add(path)
        return {key: frozenset(files) for key, files in result.items()}

    def read_adds(self, days: Collection[date]) -> list[dict[str, object]]:
        """Return path, size and partition of the files of some dates, as the log has them."""
        names = self._table.partition_by
        every = self._list_files("path", "size_bytes", "partition.date", *(f"partition.{name}" for name in names))
        return [
            {"path": path, "size": size, "partitionValues": dict(zip(names, map(str, own), strict=True))}
            for path, size, day, *own in every
            if day in days
        ]

    def count_bytes(self, start: datetime, end: datetime) -> int:
        """Return how many bytes of the files belong to the hours ``[start, end)``: of one of several hours a share.

        0 where none of them has a file.
        """
        result = 0
        for _, day, first, last, size in self._list_hours():
            wanted = sum(start <= datetime.combine(day, time(hour), UTC) < end for hour in range(first, last + 1))
            result += -(-size * wanted // (last - first + 1))
        return result

    def count_bytes_by_day(self) -> dict[date, int]:
        """Return how many bytes the files of each date have. Empty without a table."""
        result: dict[date, int] = {}
        for day, size in self._list_files("partition.date", "size_bytes"):
            result[day] = result.get(day, 0) + size
        return result

    def split_day(self, day: date, hours: Sequence[Hour], most_bytes: int) -> list[Sequence[Hour]]:
        """Return hours of a day, in order, in parts to be read at once: of few bytes all, as they may share files.

        The rows of a part have come from files of ``most_bytes`` at most; it has an hour at least.
        """
        size = max(1, self.count_bytes_by_day().get(day, 0))
        most = max(1, (_LAST_HOUR + 1) * most_bytes // size)
        return [hours[first : first + most] for first in range(0, len(hours), most)]

    def _list_hours(self) -> Iterator[tuple[str, date, int, int, int]]:
        """Return path, date, first and last hour and bytes of each file, of a table with days and hours.

        A table of an earlier release has a partition an hour, a newer one the hours in the statistics of its files;
        a file without them may have rows of the whole day.
        """
        facts = ("path", "partition.date", "partition.hour", "min.hour", "max.hour", "size_bytes")
        for path, day, own, least, most, size in self._list_files(*facts):
            first, last = (least, most) if own is None else (own, own)
            yield path, day, *((0, _LAST_HOUR) if first is None or last is None else (first, last)), size

    def _list_files(self, *facts: str) -> Iterator[tuple[Any, ...]]:
        """Return what the log says of each file, None where it does not; nothing where no file has a date."""
        with self._lock:
            delta = self._refresh()
            added = None if delta is None else pa.table(delta.get_add_actions(flatten=True))
        if added is None or "partition.date" not in added.column_names:
            return iter(())
        names, none = set(added.column_names), [None] * len(added)
        return zip(*(added[name].to_pylist() if name in names else none for name in facts), strict=True)

    def read(self, columns: Sequence[str], since: date, until: date, where: str = "") -> pa.Table:
        """Return rows of the dates from ``since`` to ``until``, both included; files of other dates stay closed.

        A table without dates is small, and read whole. A column that it does not have yet is null; ``where`` is a
        further condition, as SQL (:func:`is_in`, :func:`is_between`).
        """
        parts = list(self.read_parts(columns, since, until, where))
        return pa.concat_tables(parts) if parts else self._select(columns).empty_table()

    def read_parts(self, columns: Sequence[str], since: date, until: date, where: str = "") -> Iterator[pa.Table]:
        """Yield what :meth:`read` returns in parts of some thousand rows, in no order."""
        wanted = self._select(columns)
        with self._lock:
            delta = self._refresh()
            if delta is None:
                return
            present = {field.name for field in delta.schema().fields}
            is_in_days = "date" in self._table.columns
            dates = f"date >= '{since.isoformat()}' AND date <= '{until.isoformat()}'" if is_in_days else "true"
            # Not through pyarrow's datasets: their threads call Python to read files, also while the process ends.
            scan = delta.scan([name for name in columns if name in present], f"{dates} AND ({where or 'true'})")
        for batch in pa.RecordBatchReader.from_stream(scan):
            rows = [batch[one.name] if one.name in present else pa.nulls(len(batch), one.type) for one in wanted]
            yield pa.table(rows, names=wanted.names).cast(wanted)

    def is_empty(self, where: str) -> bool:
        """Whether no row of any date satisfies a condition."""
        return not any(len(part) for part in self.read_parts([*self._table.columns][:1], date.min, date.max, where))

    def _select(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([self._schema.field(name) for name in columns])

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows in one commit, on disk when this returns; a column that a row lacks is null."""
        self.append_arrow(arrow_rows(self._table, list(rows)))

    def append_arrow(self, made: pa.Table) -> None:
        """Append rows of :func:`arrow_rows` in one commit, on disk when this returns."""
        if not len(made):
            return
        with self._lock:
            _again()(self._append_once, made)

    def _refresh(self) -> DeltaTable | None:
        if self._delta is not None and self._version is not None:
            return self._delta
        if self._delta is not None and self._is_replaced(self._delta.version()):
            self._delta = None
        if self._delta is not None and self._is_newest(self._delta.version()):
            return self._delta
        if self._delta is not None:
            try:
                self._delta.update_incremental()
            except (DeltaError, OSError):  # its log was cleaned up meanwhile, or the table was made again
                self._delta = None
        if self._delta is None:
            with suppress(TableNotFoundError):
                self._delta = DeltaTable(self._path, version=self._version)
        return self._delta

    def _is_replaced(self, version: int) -> bool:
        """Whether the table's folder lacks a version that was read: it was removed, or restored from before.

        An update of what was read would not notice, and the next commit would leave a gap that nobody can read.
        """
        root = local_folder(self._path)
        return root is not None and not (root / commit_path(version)).exists()

    def _is_newest(self, version: int) -> bool:
        """Whether a table has no version after one that is there.

        Asking delta-rs takes ten milliseconds on a disk, and in a bucket a listing and another request instead of one.
        """
        return not self._has_commit(version + 1)

    def _has_commit(self, number: int) -> bool:
        """Whether the log has a commit; where the store does not answer delta-rs is asked, which says why."""
        root = local_folder(self._path)
        if root is not None:
            return (root / commit_path(number)).exists()
        try:
            self._open().head(commit_path(number))
        except FileNotFoundError:
            return False
        except BaseError:
            return True
        return True

    def _open(self) -> ObjectStore:
        if self._store is None:
            self._store = open_store(self._path)
        return self._store

    def replace(self, rows: pa.Table, where: str) -> None:
        """Replace the slice that a condition describes by rows, all of which must satisfy it, in one commit.

        For tables of a row per run: what grows is Spark's to write. Of a file that has other rows too these are
        written again.
        """
        # delta-rs takes a literal of a timestamp for nanoseconds, and compares those with no column.
        predicate = where.replace("TIMESTAMP '", "'")
        with self._lock:
            _again()(self._write_once, rows, mode="overwrite", predicate=predicate)

    def _append_once(self, rows: pa.Table) -> None:
        before, after = self._write_once(rows, mode="append")
        self._sync(range(before + 1, after + 1))

    def _write_once(self, rows: pa.Table, **options: Any) -> tuple[int, int]:
        """Write to the table, made with its CHECK constraints unless it is there; returns its versions around that."""
        delta = self._ensure()
        before = delta.version()
        made = _with_own_buffers(rows.cast(self._schema))
        version = commit_once(delta, self._open(), made, schema_mode="merge", writer_properties=PACKED, **options)
        if version != delta.version():  # its answer was lost
            self._delta = None
            before = version - 1
        return before, version

    def _ensure(self) -> DeltaTable:
        if self._delta is not None and not self._has_commit(self._delta.version()):
            self._delta = None  # its log was cleaned up meanwhile, and the next commit would be among those removed
        result = self._refresh()
        if result is None:
            ensure_table(self._lake, self._table)
            result = self._delta = DeltaTable(self._path)
        known = result.metadata().configuration
        missing = {name: rule for name, rule in self._table.checks.items() if f"delta.constraints.{name}" not in known}
        if missing:
            result.alter.add_constraint(missing)
        return result

    def _sync(self, versions: Iterable[int]) -> None:
        """Have the operating system write own files to disk; an object store has done so when a put returns."""
        root = Path(self._path.removeprefix("file://"))
        if not root.is_dir():
            return
        for version in versions:
            commit = root / commit_path(version)
            if not commit.exists():  # a maintenance run was quicker
                continue
            actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
            data = [root / action["add"]["path"] for action in actions if "add" in action]
            for path in (*data, *{path.parent for path in data}, commit, commit.parent):
                _sync_path(path)


def _again() -> Retrying:
    """Return what tries once more: another process may make the table or change it; then nothing was committed."""
    return Retrying(
        retry=retry_if_exception_type(CommitFailedError),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random(0.0, 0.5),
        reraise=True,
    )


def _with_own_buffers(rows: pa.Table) -> pa.Table:
    """Return a copy of rows.

    Spark sends an array without values, such as the upstream operators of jobs that have none, with offsets of no
    bytes; delta-rs reads the first one nevertheless, and fails on whatever lies there.
    """
    return rows.take(pa.array(range(rows.num_rows), pa.int64()))


def is_in(column: str, values: Iterable[str | datetime]) -> str:
    """Return the condition that a column has one of some values; without values it never has."""
    listed = ", ".join(sorted({_literal(value) for value in values}))
    return f"{column} IN ({listed})" if listed else "false"


def is_between(column: str, since: datetime, until: datetime) -> str:
    """Return the condition that a timestamp lies between two, both included."""
    return f"{column} >= {_literal(since)} AND {column} <= {_literal(until)}"


def is_after(column: str, since: datetime) -> str:
    """Return the condition that a timestamp is later than another."""
    return f"{column} > {_literal(since)}"


def _literal(value: str | datetime) -> str:
    text = value if isinstance(value, str) else value.isoformat()
    return "'" + valid_text(text).replace("'", "''") + "'"


def _sync_path(path: Path) -> None:
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def timestamp_of(epoch_s: float) -> datetime:
    """Return epoch seconds as a timestamp for a column."""
    return datetime.fromtimestamp(epoch_s, UTC)


def maybe_timestamp(epoch_s: float | None) -> datetime | None:
    """Return epoch seconds as a timestamp for a column, None for None."""
    return None if epoch_s is None else timestamp_of(epoch_s)


def date_of(epoch_s: float) -> date:
    """Return the UTC date of epoch seconds: the partition of a row."""
    return datetime.fromtimestamp(epoch_s, UTC).date()
