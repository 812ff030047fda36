"""The control log as Arrow: a few columns of all rows of some days, and whole last rows of jobs.

A day whose files are the same is not read again, so a reader that lives on pays for new rows alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.lake_table import LakeTable, date_of, is_in, timestamp_of
from include.tables import CONTROL_LOG
from models.control.case import SENDS

LOOK_BACK_DAYS = 14
"""A job without a decision for longer is not known from the log."""
KEYS = ("cluster", "job", "lease_number", "entry")
LIGHT = (
    *KEYS,
    *("at", "date", "verb", "reason", "detail", "answer", "origin", "is_dry_run", "step_id", "slots_from", "slots_to"),
)
WHOLE = (
    *KEYS,
    *("at", "verb", "reason", "detail", "answer", "origin", "step_id", "mode", "is_dry_run", "slots_from", "slots_to"),
    *("parallelism_from", "parallelism_to", "decided_at_s", "observed", "history", "request", "operators"),
    "wish_changed",
)
Row = dict[str, Any]
JobKey = tuple[str, str]


_MOST_NAMED = 200


class LastRows(NamedTuple):
    """Whole rows, by job: the newest one, and the answer to the last request that was sent."""

    newest: dict[JobKey, Row]
    sent: dict[JobKey, Row]


class NewestRows(NamedTuple):
    """Rows of :data:`LIGHT`, by job: the newest one, and the answer to the last request that was sent."""

    newest: pa.Table
    sent: pa.Table


@dataclass(eq=False)
class _DayRows:
    """The rows of a date, and what was worked out from them."""

    files: frozenset[str]
    rows: pa.Table

    @cached_property
    def newest(self) -> NewestRows:
        return NewestRows(newest_of_jobs(self.rows), newest_of_jobs(select_sent(self.rows)))

    @cached_property
    def last(self) -> pa.Scalar:
        return pc.max(self.rows["at"])

    def ends_until(self, now: pa.Scalar) -> bool:
        return not len(self.rows) or bool(pc.less_equal(self.last, now).as_py())

    def until(self, now: pa.Scalar) -> _DayRows:
        return _DayRows(self.files, self.rows.filter(pc.less_equal(self.rows["at"], now)))


class LogTables:
    """Reads the log of one lake."""

    def __init__(self, lake: str) -> None:
        self._table = LakeTable(lake, CONTROL_LOG)
        self._days: dict[date, _DayRows] = {}
        self._whole: dict[tuple[Any, ...], Row] = {}
        self._newest: tuple[list[_DayRows], NewestRows] | None = None
        self._last: tuple[pa.Table, pa.Table, LastRows] | None = None

    def read_light(self, now_s: float) -> pa.Table:
        """Return :data:`LIGHT` of all rows of the last days until now, in no order."""
        parts = [day.rows for day in self._read_days(now_s)]
        return pa.concat_tables(parts) if parts else self._table.read(LIGHT, date_of(now_s), date_of(now_s), "false")

    def read_newest(self, now_s: float) -> NewestRows:
        """Return of the rows of :meth:`read_light` the last one of each job, and the answer to its last request."""
        days = self._read_days(now_s)
        if not days:
            none = self.read_light(now_s)
            return NewestRows(none, none)
        if self._newest is not None and self._newest[0] == days:
            return self._newest[1]
        newest, sent = (pa.concat_tables(parts) for parts in zip(*(day.newest for day in days), strict=True))
        result = NewestRows(newest_of_jobs(newest), newest_of_jobs(sent))
        self._newest = days, result
        return result

    def _read_days(self, now_s: float) -> list[_DayRows]:
        """Return the days until now, each read again when its files have changed."""
        now = pa.scalar(timestamp_of(now_s), pa.timestamp("us", tz="UTC"))
        until = date_of(now_s)
        since = until - timedelta(days=LOOK_BACK_DAYS)
        files = {day: paths for day, paths in self._table.read_files().items() if since <= day <= until}
        self._days = {day: read for day, read in self._days.items() if files.get(day) == read.files}
        for day in sorted(files.keys() - self._days.keys()):
            self._days[day] = _DayRows(files[day], self._table.read(LIGHT, day, day))
        return [day if day.ends_until(now) else day.until(now) for day in self._days.values()]

    def read_whole_of(self, newest: pa.Table, sent: pa.Table, *, is_part: bool = False) -> LastRows:
        """Return whole rows of the rows of :meth:`read_light` that are given, at most one for each job.

        ``is_part``: whether they are some jobs' alone, so that rows of others stay in memory.
        """
        if self._last is not None and self._last[0] is newest and self._last[1] is sent:
            return self._last[2]
        keys = [_keys_of(rows) for rows in (newest, sent)]
        missing = {key: at for listed in keys for key, at in listed.items() if key not in self._whole}
        for day in sorted({at.date() for at in missing.values()}):
            self._read_day(day, {key: at for key, at in missing.items() if at.date() == day})
        if not is_part:
            self._whole = {key: self._whole[key] for listed in keys for key in listed if key in self._whole}
        result = LastRows(*({key[:2]: self._whole[key] for key in listed if key in self._whole} for listed in keys))
        if not is_part:
            self._last = newest, sent, result
        return result

    def read_last(self, cluster: str, job: str) -> Row | None:
        """Return the whole newest row of a job among those of the last :meth:`read_whole_of`; None without one."""
        mine = [row for key, row in self._whole.items() if key[:2] == (cluster, job)]
        return max(mine, key=lambda row: (row["lease_number"], row["entry"]), default=None)

    def _read_day(self, day: date, missing: Mapping[tuple[Any, ...], datetime]) -> None:
        where = f"at >= '{min(missing.values()).isoformat()}' AND at <= '{max(missing.values()).isoformat()}'"
        jobs = {key[1] for key in missing}
        if len(jobs) <= _MOST_NAMED:
            where += f" AND {is_in('job', jobs)}"
        for part in self._table.read_parts(WHOLE, day, day, where):
            for row in _pick(part, missing):
                self._whole[_key(row)] = row

    def read_lines(self, since: datetime, until: datetime, where: str, columns: Sequence[str] = WHOLE) -> list[Row]:
        """Return rows of a span of time, in the order in which they were made, with ``state`` as observed."""
        between = f"at >= '{since.isoformat()}' AND at <= '{until.isoformat()}'"
        rows = self._table.read(columns, since.date(), until.date(), f"{between} AND ({where})")
        ordered = rows.sort_by([(name, "ascending") for name in ("at", "lease_number", "entry")]).to_pylist()
        return [row | {"state": state_of(row)} for row in ordered]


def newest_of_jobs(rows: pa.Table) -> pa.Table:
    """Return the last row of each job: by the lease's number, then by the entry's."""
    if not len(rows):
        return rows
    names = rows.select([*KEYS, "at"]).append_column("place", pa.array(np.arange(len(rows))))
    ordered = names.sort_by([("lease_number", "descending"), ("entry", "descending"), ("at", "descending")])
    first = ordered.group_by(["cluster", "job"], use_threads=False).aggregate([("place", "first")])
    return rows.take(first["place_first"])


def select_sent(rows: pa.Table) -> pa.Table:
    """Return the rows (:data:`LIGHT`) that are the answer to a request that may have arrived."""
    sends = pc.is_in(rows["verb"], pa.array(sorted(SENDS)))
    answered = pc.fill_null(pc.starts_with(rows["answer"], "accepted"), False)
    unknown = pc.fill_null(pc.starts_with(rows["answer"], "no reply"), False)
    return rows.filter(pc.and_(sends, pc.or_(answered, unknown)))


def rows_of_job(rows: pa.Table, cluster: str, job: str) -> pa.Table:
    """Return the rows of one job."""
    return rows.filter(pc.and_(pc.equal(rows["cluster"], cluster), pc.equal(rows["job"], job)))


def state_of(row: Mapping[str, Any]) -> str:
    """Return the job's state as it was observed; empty where it cannot be read."""
    return str(read_json(row, "observed").get("state") or "")


def read_json(row: Mapping[str, Any], column: str) -> Mapping[str, Any]:
    """Return a column's JSON; what is no object is empty."""
    return _parse(row[column] or "{}")


@lru_cache(maxsize=4096)  # the last rows of all jobs are asked again and again
def _parse(text: str) -> Mapping[str, Any]:
    try:
        result = json.loads(text)
    except ValueError:
        return {}
    return MappingProxyType(result) if isinstance(result, dict) else {}


def _pick(part: pa.Table, missing: Mapping[tuple[Any, ...], datetime]) -> Iterable[Row]:
    keys = zip(*(part[name].to_pylist() for name in KEYS), strict=True)
    places = [place for place, key in enumerate(keys) if key in missing]
    return part.take(places).to_pylist() if places else ()


def _keys_of(rows: pa.Table) -> dict[tuple[Any, ...], datetime]:
    columns = [rows[name].to_pylist() for name in KEYS]
    return dict(zip(zip(*columns, strict=True), rows["at"].to_pylist(), strict=True))


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEYS)
