"""Windows and forecasts of the last day of all jobs, in memory; what is older is read for one job at a time.

At 1,000 jobs a day has 288,000 windows and bins, some twenty megabytes. An hour whose files are the same is not read
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fleet.bands import BAND_COLUMNS, FORECAST_AGE, Band, band_of, sum_sources
from fleet.by_job import RowsByJob
from fleet.loads import LOAD_COLUMNS, LoadFact, load_of, sum_operators
from include.lake_table import LakeTable, is_between, is_in
from include.tables import FORECASTS, OBSERVATIONS
from include.utc import floor_hour

JobKey = tuple[str, str]
Files = frozenset[str]
HOURS = 26
"""So many hours are held."""
ANCHOR_H = 6
"""Past load is shown beside the forecast of at most so long before; these begin at full multiples of it (UTC)."""
_HOUR = timedelta(hours=1)


class RecentTables:
    """Reads the windows and forecasts of one lake.

    Args:
        lake: folder or URI.
    """

    def __init__(self, lake: str) -> None:
        self._windows, self._forecasts = LakeTable(lake, OBSERVATIONS), LakeTable(lake, FORECASTS)
        self._hours: dict[datetime, tuple[Files, RowsByJob]] = {}
        self._anchors: dict[tuple[datetime, bool], tuple[Files, RowsByJob]] = {}

    def read_last_loads(self, until: datetime) -> dict[JobKey, LoadFact]:
        """Return the last window of each job in the hour before a time."""
        files = self._windows.read_files_by_hour()
        result: dict[JobKey, LoadFact] = {}
        for hour in sorted({floor_hour(until - _HOUR), floor_hour(until)}):
            rows = self._read_hour(hour, files.get((hour.date(), hour.hour), frozenset()))
            result |= {key: load_of(row) for key, row in rows.read_last().items() if row["window_start"] < until}
        return result

    def read_loads(self, cluster: str, job: str, since: datetime, until: datetime) -> list[LoadFact]:
        """Return the windows of a job that began in a span of time."""
        held_since = max(floor_hour(since), floor_hour(until) - (HOURS - 2) * _HOUR)
        result = self._scan_loads(cluster, job, since, held_since) if since < held_since else []
        files = self._windows.read_files_by_hour()
        hour = held_since
        while hour <= until:
            rows = self._read_hour(hour, files.get((hour.date(), hour.hour), frozenset()))
            result += [load_of(row) for row in rows.read(cluster, job) if since <= row["window_start"] < until]
            hour += _HOUR
        for old in sorted(self._hours)[: -2 * HOURS]:
            del self._hours[old]
        return result

    def read_bands(self, cluster: str, job: str, since: datetime, now: datetime, until: datetime) -> list[Band]:
        """Return the load that was forecast: from each full multiple of six hours by the newest forecast of then."""
        anchors, files, result = list_anchors(since, now), self._forecasts.read_files(), list[Band]()
        spans = list(pairwise([*anchors, until]))
        old = [(first, end) for first, end in spans if now - first > (HOURS + ANCHOR_H) * _HOUR]
        scanned = self._scan_bands(cluster, job, old) if old else {}
        for first, end in spans:
            is_newest = first == anchors[-1]
            rows = scanned[first] if first in scanned else self._read_anchor(first, is_newest, files).read(cluster, job)
            result += [band_of(row) for row in rows if since - _HOUR <= row["bin_start"] < end]
        for key in sorted(self._anchors)[: -4 * HOURS // ANCHOR_H]:
            del self._anchors[key]
        return result

    def _read_hour(self, hour: datetime, files: Files) -> RowsByJob:
        held = self._hours.get(hour)
        if held is None or held[0] != files:
            where = f"hour = {hour.hour}"
            rows = self._windows.read(LOAD_COLUMNS, hour.date(), hour.date(), where if files else "false")
            held = self._hours[hour] = files, RowsByJob(sum_operators(rows), "window_start")
        return held[1]

    def _read_anchor(self, first: datetime, is_newest: bool, files: Mapping[date, Files]) -> RowsByJob:
        """Return the bins from an anchor to the next; of the newest one all that its forecasts have."""
        days = {(first - FORECAST_AGE).date(), first.date()}
        mine = frozenset[str]().union(*(files.get(day, frozenset()) for day in days))
        held = self._anchors.get((first, is_newest))
        if held is None or held[0] != mine:
            where = _where(first, first + (timedelta(days=2) if is_newest else ANCHOR_H * _HOUR)) if mine else "false"
            rows = self._forecasts.read(BAND_COLUMNS, min(days), max(days), where)
            held = self._anchors[first, is_newest] = mine, RowsByJob(sum_sources(rows), "bin_start")
        return held[1]

    def _scan_loads(self, cluster: str, job: str, since: datetime, until: datetime) -> list[LoadFact]:
        where = f"{_of_job(cluster, job)} AND {is_between('window_start', since, until - timedelta(microseconds=1))}"
        rows = sum_operators(self._windows.read(LOAD_COLUMNS, since.date(), until.date(), where))
        return [load_of(row) for row in rows.sort_by("window_start").to_pylist()]

    def _scan_bands(
        self, cluster: str, job: str, spans: Sequence[tuple[datetime, datetime]]
    ) -> dict[datetime, list[dict[str, Any]]]:
        """Return beginning -> bins of a job's newest forecast of then, of several spans of time in one scan."""
        first, last = (spans[0][0] - FORECAST_AGE).date(), spans[-1][0].date()
        where = f"{_of_job(cluster, job)} AND ({' OR '.join(f'({_where(*span)})' for span in spans)})"
        rows, result = self._forecasts.read(BAND_COLUMNS, first, last, where), {}
        for since, _ in spans:
            is_of_then = pc.and_(
                pc.greater_equal(rows["as_of"], pa.scalar(since - FORECAST_AGE)),
                pc.less_equal(rows["as_of"], pa.scalar(since)),
            )
            mine = rows.filter(pc.and_(is_of_then, pc.greater_equal(rows["bin_start"], pa.scalar(since))))
            result[since] = sum_sources(mine).sort_by("bin_start").to_pylist()
        return result


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


def _where(first: datetime, end: datetime) -> str:
    return f"{is_between('as_of', first - FORECAST_AGE, first)} AND {is_between('bin_start', first, end)}"


def _of_job(cluster: str, job: str) -> str:
    return f"{is_in('cluster', [cluster])} AND {is_in('job', [job])}"
