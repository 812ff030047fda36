"""Windows and forecasts of all jobs, in memory: those of the last day as they are, older ones in half hours.

At 1,000 jobs a day has 288,000 windows and bins, some twenty megabytes; a week in half hours is as much again. An hour
whose files are the same is not read again. The older ones are read when somebody asks for more than a day.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fleet.bands import BAND_COLUMNS, FORECAST_AGE, Band, band_of, coarsen_bins, sum_sources
from fleet.by_job import JobKey, RowsByJob
from fleet.loads import LOAD_COLUMNS, LoadFact, coarsen_windows, load_of, sum_operators
from include.control.small_objects import StoreUnreadableError
from include.lake_table import LakeTable, is_between
from include.live_windows import SCHEMA, LiveCluster, LiveWindows
from include.tables import FORECASTS, OBSERVATIONS
from include.utc import floor_hour

Files = frozenset[str]
FilesByHour = Mapping[tuple[date, int], Files]
Held = dict[datetime, tuple[Files, RowsByJob]]
"""Hour -> the files that its windows were read from, and these."""
HOURS, OLD_HOURS = 26, 168
"""So many hours are held as they are, and in half hours."""
ANCHOR_H = 6
"""Past load is shown beside the forecast of at most so long before; these begin at full multiples of it (UTC)."""
_HOUR = timedelta(hours=1)
_DAY_BYTES = 64 * 2**20
"""Files of a day's windows with so many bytes are read at once, of larger ones a part: rows are ten times as many."""


class RecentTables:
    """Reads the windows and forecasts of one lake."""

    def __init__(self, lake: str) -> None:
        self._windows, self._forecasts = LakeTable(lake, OBSERVATIONS), LakeTable(lake, FORECASTS)
        self._hours: Held = {}
        self._old_hours: Held = {}
        self._anchors: dict[tuple[datetime, bool, bool], tuple[Files, RowsByJob]] = {}
        self._live = LiveWindows(lake)
        self._polled: tuple[list[LiveCluster], pa.Table, pa.Table] = [], SCHEMA.empty_table(), SCHEMA.empty_table()

    def read_live(self) -> Mapping[str, LiveCluster]:
        """Return what the controller has polled lately, by cluster; nothing where that cannot be read."""
        try:
            return self._live.read()
        except StoreUnreadableError:
            return {}

    def read_live_windows(self, cluster: str, job: str, since: datetime, until: datetime) -> list[dict[str, Any]]:
        """Return the windows of a job's operators that the controller has polled and that began in a span of time."""
        rows = _within(self._read_polled(self.read_live())[1], since, until)
        result: list[dict[str, Any]] = rows.filter(
            (pc.field("cluster") == cluster) & (pc.field("job") == job)
        ).to_pylist()
        return result

    def select_live_loads(self, polled: Mapping[str, LiveCluster], since: datetime, until: datetime) -> RowsByJob:
        """Return of what :meth:`read_live` gave the windows of all jobs that began in a span of time."""
        return RowsByJob(_within(self._read_polled(polled)[2], since, until), "window_start")

    def _read_polled(self, polled: Mapping[str, LiveCluster]) -> tuple[list[LiveCluster], pa.Table, pa.Table]:
        """Return the clusters, their windows, and these summed by job."""
        live = list(polled.values())
        if len(live) != len(self._polled[0]) or any(map(op.is_not, live, self._polled[0])):
            windows = pa.concat_tables([SCHEMA.empty_table(), *(one.windows for one in live)])
            self._polled = live, windows, sum_operators(windows)
        return self._polled

    def read_last_loads(self, until: datetime) -> dict[JobKey, LoadFact]:
        """Return the last window of each job in the hour before a time."""
        files, hours = self._windows.read_files_by_hour(), sorted({floor_hour(until - _HOUR), floor_hour(until)})
        result: dict[JobKey, LoadFact] = {}
        for rows in self._read_hours(hours, files, self._hours, _as_they_are).values():
            result |= {key: load_of(row) for key, row in rows.read_last().items() if row["window_start"] < until}
        return result

    def read_loads(self, cluster: str, job: str, since: datetime, until: datetime) -> list[LoadFact]:
        """Return the windows of a job that began in a span of time; those of before the last day in half hours."""
        fine_since = floor_hour(until) - (HOURS - 2) * _HOUR
        files, first = self._windows.read_files_by_hour(), floor_hour(since)
        hours = [first + number * _HOUR for number in range(int((until - first) / _HOUR) + 1)]
        old = [hour for hour in hours if hour < fine_since]
        rows = self._read_hours(old, files, self._old_hours, coarsen_windows)
        rows |= self._read_hours([hour for hour in hours if hour >= fine_since], files, self._hours, _as_they_are)
        result = [
            load_of(row)
            for one in rows.values()
            for row in one.read(cluster, job)
            if since <= row["window_start"] < until
        ]
        ingested = {one.at_s for one in result}
        polled = map(
            load_of, self.select_live_loads(self.read_live(), max(since, fine_since), until).read(cluster, job)
        )
        return sorted([*result, *(one for one in polled if one.at_s not in ingested)], key=lambda one: one.at_s)

    def read_bands(self, cluster: str, job: str, since: datetime, now: datetime, until: datetime) -> list[Band]:
        """Return the load that was forecast: from each full multiple of six hours by the newest forecast of then."""
        anchors, files, result = list_anchors(since, now), self._forecasts.read_files(), list[Band]()
        for first, end in pairwise([*anchors, until]):
            is_old = now - first > (HOURS + ANCHOR_H) * _HOUR
            rows = self._read_anchor(first, files, is_newest=first == anchors[-1], is_old=is_old).read(cluster, job)
            result += [band_of(row) for row in rows if since - _HOUR <= row["bin_start"] < end]
        for key in sorted(self._anchors)[: -4 * OLD_HOURS // ANCHOR_H]:
            del self._anchors[key]
        return result

    def _read_hours(
        self, hours: Iterable[datetime], files: FilesByHour, held: Held, change: Callable[[pa.Table], pa.Table]
    ) -> dict[datetime, RowsByJob]:
        """Return the windows of hours; those whose files are the same as before are held, of others a day is read once.

        Hours are in order; ``change`` is done to the rows of an hour before they are held.
        """
        for past in sorted(held)[: -2 * (OLD_HOURS if held is self._old_hours else HOURS)]:
            del held[past]
        present = {hour: files.get((hour.date(), hour.hour), frozenset()) for hour in hours}
        stale = [hour for hour, own in present.items() if hour not in held or held[hour][0] != own]
        for day, own in groupby(stale, key=datetime.date):
            for part in self._windows.split_day(day, list(own), _DAY_BYTES):
                rows = self._read_part(day, [hour.hour for hour in part if present[hour]])
                for hour in part:
                    mine = rows.filter(pc.equal(rows["hour"], hour.hour)).select(LOAD_COLUMNS)
                    held[hour] = present[hour], RowsByJob(change(sum_operators(mine)), "window_start")
        return {hour: held[hour][1] for hour in present}

    def _read_part(self, day: date, hours: Sequence[int]) -> pa.Table:
        where = f"hour IN ({', '.join(map(str, hours))})" if hours else "false"
        return self._windows.read([*LOAD_COLUMNS, "hour"], day, day, where)

    def _read_anchor(self, first: datetime, files: Mapping[date, Files], *, is_newest: bool, is_old: bool) -> RowsByJob:
        """Return the bins from an anchor to the next; of the newest one all that its forecasts have."""
        days = {(first - FORECAST_AGE).date(), first.date()}
        mine = frozenset[str]().union(*(files.get(day, frozenset()) for day in days))
        key = (first, is_newest, is_old)
        held = self._anchors.get(key)
        if held is None or held[0] != mine:
            where = _where(first, first + (timedelta(days=2) if is_newest else ANCHOR_H * _HOUR)) if mine else "false"
            rows = sum_sources(self._forecasts.read(BAND_COLUMNS, min(days), max(days), where))
            held = self._anchors[key] = mine, RowsByJob(coarsen_bins(rows) if is_old else rows, "bin_start")
        return held[1]


def list_anchors(since: datetime, now: datetime) -> Sequence[datetime]:
    """Return the times from which a newer forecast is shown: full multiples of six hours, and the last full hour."""
    first = floor_hour(since)
    first -= (first.hour % ANCHOR_H) * _HOUR
    anchors = []
    while first < now:
        anchors.append(first)
        first += ANCHOR_H * _HOUR
    newest = floor_hour(now)
    return anchors if anchors and newest == anchors[-1] else [*anchors, newest]


def _within(windows: pa.Table, since: datetime, until: datetime) -> pa.Table:
    """Return the windows that began in a span of time."""
    start = windows["window_start"]
    return windows.filter(pc.and_(pc.greater_equal(start, since), pc.less(start, until)))


def _as_they_are(windows: pa.Table) -> pa.Table:
    return windows


def _where(first: datetime, end: datetime) -> str:
    return f"{is_between('as_of', first - FORECAST_AGE, first)} AND {is_between('bin_start', first, end)}"
