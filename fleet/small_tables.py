"""What plans, trainings, ingestion and judged rescales leave in the lake: a table is read when it has changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from include.lake_table import LakeTable, date_of, is_between, is_in, timestamp_of
from include.tables import (
    BACKTESTS,
    CERTIFICATES,
    EVENT_RESULTS,
    FORECAST_SCORES,
    INTERVENTIONS,
    JOB_DAYS,
    MODEL_VERSIONS,
    OBSERVATIONS,
    OPERATOR_KEYS,
    PLANS,
    QUALITY,
    QUARANTINE,
    RESCALE_OUTCOMES,
    STEP_RESULTS,
    Table,
)
from include.tables.plan_row import READ_COLUMNS, PlanRow
from include.utc import DAY_S, HOUR_S

PLANS_OF_DAYS = 2
"""So many of the last dates that have plans are read: a job without a plan there has none."""
SCORES_OF_DAYS = 2
"""So many of the last dates that have scores are read: those of the last may be from after the time asked for."""
SINCE_DAYS = 31
"""Plans and scores from before are as good as none."""
LAST_DAYS = {
    **{JOB_DAYS.name: 92, STEP_RESULTS.name: 92, BACKTESTS.name: 35, CERTIFICATES.name: 35},
    **{EVENT_RESULTS.name: 2, FORECAST_SCORES.name: 7},
}
"""Table -> so many of its last dates are shown."""
JobKey = tuple[str, str]
RowsOfJobs = Mapping[JobKey, Sequence[Mapping[str, Any]]]
T = TypeVar("T")
ORIGINS_MIN = 20
"""Below so many scored forecasts of a cluster nobody knows how well its bands hold."""
_SCORES = ("as_of", "cluster", "job", "operator", "origins", "coverage_q90", "champion")
_QUALITY = (
    *("interval_start", "interval_end", "cluster", "rows", "metric_values", "late", "duplicate", "missing_windows"),
    *("not_measured", "quarantined", "quarantined_files"),
)
_MODELS = (
    *("as_of", "model_version", "gate", "gate_detail", "jobs", "operators", "observations"),
    *("capacity_mape", "recovery_mape", "latency_mape", "champion_before"),
)
_OUTCOMES = tuple(name for name in RESCALE_OUTCOMES.columns if name != "date")
_QUARANTINE = ("cluster", "reason", "detail", "raw", "line_number", "observed_at", "source_file", "date", "hour")
_OBSERVED = (
    *("operator", "window_start", "window_s", "parallelism", "is_source", "observed_processing_rate_per_s"),
    *("true_processing_rate_per_s", "target_data_rate_per_s", "busy_share", "backpressured_share"),
    *("pending_records", "age_s"),
)


class SmallTables:
    """Reads the tables of one lake besides the control log."""

    def __init__(self, lake: str) -> None:
        self._lake = lake
        self._tables: dict[str, LakeTable] = {}
        self._read: dict[tuple[str, str], tuple[Any, Any]] = {}

    def read_plans(self, now_s: float) -> dict[JobKey, tuple[PlanRow, ...]]:
        """Return the rows of the newest plan of every job that was made until now, in the order of its steps."""
        table, today = self._table(PLANS), date_of(now_s)

        def read() -> dict[JobKey, tuple[PlanRow, ...]]:
            days = _list_days(table, today)[:PLANS_OF_DAYS]
            return _read_newest_plans(table, days, now_s) if days else {}

        return self._once(PLANS, (today, now_s // HOUR_S), read)

    def read_plan_of(self, cluster: str, job: str, step_id: str, at: datetime) -> PlanRow | None:
        """Return the row of a step in the newest plan that was made until a time; None when it is gone."""
        where = " AND ".join([is_in("cluster", [cluster]), is_in("job", [job]), is_in("step_id", [step_id])])
        since = at.date() - timedelta(days=PLANS_OF_DAYS)
        listed = self._table(PLANS).read(list(READ_COLUMNS), since, at.date(), where).to_pylist()
        known = [row for row in listed if row["as_of"] <= at]
        return PlanRow.of(max(known, key=lambda row: row["as_of"])) if known else None

    def read_vertices(self, cluster: str, job: str, at: datetime) -> dict[str, str]:
        """Return operator -> vertex id as a job had them when they were noted last before a time; empty without any."""
        where = f"{is_in('cluster', [cluster])} AND {is_in('job', [job])}"
        since = at.date() - timedelta(days=PLANS_OF_DAYS)  # they are noted each day
        rows = self._table(OPERATOR_KEYS).read(["operator", "vertex_id", "observed_at"], since, at.date(), where)
        noted = [row for row in rows.to_pylist() if row["observed_at"] <= at]
        newest = max((row["observed_at"] for row in noted), default=None)
        return {row["operator"]: row["vertex_id"] for row in noted if row["observed_at"] == newest}

    def read_models(self) -> list[dict[str, Any]]:
        """Return the trainings in their order."""
        return self._read_whole(MODEL_VERSIONS, _MODELS, "as_of")

    def read_quality(self) -> list[dict[str, Any]]:
        """Return the intervals that were ingested, of each cluster, in their order."""
        return self._read_whole(QUALITY, _QUALITY, "interval_end")

    def _read_whole(self, table: Table, columns: Sequence[str], order: str) -> list[dict[str, Any]]:
        rows = self._once(table, None, lambda: self._table(table).read(columns, date.min, date.max).to_pylist())
        return sorted(rows, key=lambda row: row[order])

    def read_coverage(self, now_s: float) -> dict[str, float]:
        """Return cluster -> share of past bins at or below q90, from the newest scores until now of methods in use."""
        table, today = self._table(FORECAST_SCORES), date_of(now_s)

        def read() -> dict[str, float]:
            days = _list_days(table, today)[:SCORES_OF_DAYS]
            rows = table.read(_SCORES, min(days), max(days)).to_pylist() if days else []
            return _cover_by_cluster(rows, now_s)

        return self._once(FORECAST_SCORES, now_s // HOUR_S, read)

    def read_quarantine(self, since: datetime, until: datetime, most: int) -> tuple[list[dict[str, Any]], int]:
        """Return the last quarantined lines of the hours of a span of time, and how many there are."""
        rows = self._table(QUARANTINE).read(_QUARANTINE, since.date(), until.date())
        hours = pc.add(pc.multiply(pc.cast(pc.cast(rows["date"], pa.int32()), pa.int64()), 24), rows["hour"])
        first, last = (at.timestamp() // HOUR_S for at in (since, until))
        rows = rows.filter(pc.and_(pc.greater_equal(hours, int(first)), pc.less_equal(hours, int(last))))
        order = [(name, "ascending") for name in ("date", "hour", "source_file", "line_number")]
        return rows.sort_by(order)[-most:].to_pylist(), len(rows)

    def read_outcomes(self, now_s: float) -> list[dict[str, Any]]:
        """Return the rescales that were judged within the last week."""
        today, table = date_of(now_s), self._table(RESCALE_OUTCOMES)
        since = date_of(now_s - 7 * DAY_S)
        return list(self._once(RESCALE_OUTCOMES, today, lambda: table.read(_OUTCOMES, since, today).to_pylist()))

    def read_outcomes_of(self, cluster: str, job: str, since: datetime, until: datetime) -> list[dict[str, Any]]:
        """Return the rescales of a job that were judged within a span of days."""
        where = f"{is_in('cluster', [cluster])} AND {is_in('job', [job])}"
        rows = self._table(RESCALE_OUTCOMES).read(_OUTCOMES, since.date(), until.date(), where)
        return list(rows.to_pylist())

    def read_last(self, table: Table, now_s: float) -> RowsOfJobs:
        """Return the rows of the last dates of a table by job: of so many as :data:`LAST_DAYS` has."""
        today, columns = date_of(now_s), list(table.columns)

        def read() -> RowsOfJobs:
            since, result = today - timedelta(days=LAST_DAYS[table.name]), dict[JobKey, list[dict[str, Any]]]()
            for row in self._table(table).read(columns, since, today).to_pylist():
                result.setdefault((row["cluster"], row["job"]), []).append(row)
            return result

        return self._once(table, today, read, kind="last rows")

    def read_interventions(self, since: datetime, until: datetime) -> list[dict[str, Any]]:
        """Return what persons did within a span of time, in its order."""
        columns = [name for name in INTERVENTIONS.columns if name != "date"]
        rows = self._table(INTERVENTIONS).read(columns, since.date(), until.date(), is_between("at", since, until))
        return sorted(rows.to_pylist(), key=lambda row: row["at"])

    def read_windows(self, cluster: str, job: str, since: datetime, until: datetime) -> list[dict[str, Any]]:
        """Return the windows of a job that began within a span of a few hours."""
        hours = {(since + timedelta(hours=one)).hour for one in range(int((until - since).total_seconds() // 3600) + 2)}
        of_job = f"{is_in('cluster', [cluster])} AND {is_in('job', [job])}"
        of_hours = f"hour IN ({', '.join(map(str, sorted(hours)))})"
        where = f"{of_job} AND {of_hours} AND {is_between('window_start', since, until)}"
        rows = self._table(OBSERVATIONS).read(_OBSERVED, since.date(), until.date(), where)
        return sorted(rows.to_pylist(), key=lambda row: (row["window_start"], row["operator"]))

    def _table(self, table: Table) -> LakeTable:
        return self._tables.setdefault(table.name, LakeTable(self._lake, table))

    def _once(self, table: Table, inputs: Any, read: Callable[[], T], kind: str = "") -> T:
        """Return what is read; again only after the table or what else it depends on has changed.

        ``kind``: of what is read, where several are of one table.
        """
        name, key = (table.name, kind), (self._table(table).read_version(), inputs)
        if self._read.get(name, (None,))[0] != key:
            self._read[name] = key, read()
        result: T = self._read[name][1]
        return result


def _cover_by_cluster(rows: list[dict[str, Any]], now_s: float) -> dict[str, float]:
    sums: dict[str, tuple[float, int]] = {}
    for row in select_newest_scores(rows, now_s):
        share, origins = row["coverage_q90"], row["origins"]
        if row["champion"] and origins and share is not None and not math.isnan(share):
            covered, count = sums.get(row["cluster"], (0.0, 0))
            sums[row["cluster"]] = covered + share * origins, count + origins
    return {cluster: covered / count for cluster, (covered, count) in sums.items() if count >= ORIGINS_MIN}


def _list_days(table: LakeTable, today: date) -> list[date]:
    """Return the dates of which a table has files, the newest first: none after today, none that is too old."""
    since = today - timedelta(days=SINCE_DAYS)
    return sorted((day for day in table.read_files() if since <= day <= today), reverse=True)


def _read_newest_plans(table: LakeTable, days: list[date], now_s: float) -> dict[JobKey, tuple[PlanRow, ...]]:
    since, until, keys = min(days), max(days), ["cluster", "job", "as_of"]
    times = table.read(keys, since, until)
    times = times.filter(pc.less_equal(times["as_of"], pa.scalar(timestamp_of(now_s), pa.timestamp("us", tz="UTC"))))
    newest = times.group_by(["cluster", "job"]).aggregate([("as_of", "max")]).to_pylist()
    wanted = {(row["cluster"], row["job"]): row["as_of_max"] for row in newest}
    if not wanted:
        return {}
    made = sorted(set(wanted.values()))
    where = f"{is_between('as_of', made[0], made[-1])} AND {is_in('as_of', made)}"
    rows = table.read(list(READ_COLUMNS), made[0].date(), until, where)
    result: dict[JobKey, list[PlanRow]] = {}
    for row in rows.sort_by([("step_index", "ascending")]).to_pylist():
        key = (row["cluster"], row["job"])
        if wanted[key] == row["as_of"]:
            result.setdefault(key, []).append(PlanRow.of(row))
    return {key: tuple(steps) for key, steps in result.items()}


def select_newest(rows: Iterable[Mapping[str, Any]], now_s: float) -> list[Mapping[str, Any]]:
    """Return of rows with ``as_of`` those that were made last until a time."""
    made = [row for row in rows if row["as_of"].timestamp() <= now_s]
    newest = max((row["as_of"] for row in made), default=None)
    return [row for row in made if row["as_of"] == newest]


def select_newest_scores(rows: Iterable[Mapping[str, Any]], now_s: float) -> list[Mapping[str, Any]]:
    """Return the scores of methods in the newest contest of each source, of the last date with one until a time.

    A contest is held once a day, and later for a source that came later.
    """
    made = [row for row in rows if row["as_of"].timestamp() <= now_s]
    last = max((row["as_of"].date() for row in made), default=None)
    newest: dict[tuple[str, str, str], datetime] = {}
    for row in made:
        source = (row["cluster"], row["job"], row["operator"])
        newest[source] = max(newest.get(source, row["as_of"]), row["as_of"])
    return [
        row
        for row in made
        if row["as_of"].date() == last and row["as_of"] == newest[row["cluster"], row["job"], row["operator"]]
    ]
