"""What the embedded Airflow's database says, read without importing Airflow, which takes ten seconds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from include.utc import Interval, floor_hour

_ALIVE_S = 60.0
"""A scheduler writes its heartbeat every five seconds; Airflow itself takes one of half a minute ago for late."""


class AirflowDatabase:
    """Reads ``airflow.db``; a file that is not there, or not migrated, holds nothing."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read_paused(self) -> dict[str, bool]:
        """Return DAG -> whether it is paused; a DAG that no processor has read yet is not there."""
        rows = self._select("select dag_id, is_paused from dag where is_stale = 0", ())
        return {str(dag_id): bool(is_paused) for dag_id, is_paused in rows}

    def has_scheduler(self, now: datetime) -> bool:
        """Whether a scheduler is at work."""
        rows = self._select("select max(latest_heartbeat) from job where job_type = 'SchedulerJob' and state = ?",
                            ("running",))  # fmt: skip
        beats = [_parse(beat) for (beat,) in rows if beat]
        return any(now - beat < timedelta(seconds=_ALIVE_S) for beat in beats)

    def read_backfills(self, dag_id: str) -> dict[str, Interval]:
        """Return the hours of the runs of backfills of a DAG, in their order; an id bears the time after them."""
        query = (
            "select run_id, data_interval_start, data_interval_end from dag_run "
            "where dag_id = ? and run_type = 'backfill' order by data_interval_start"
        )
        return {
            run_id: Interval(floor_hour(_parse(start)), floor_hour(_parse(end)))
            for run_id, start, end in self._select(query, (dag_id,))
            if start and end
        }

    def _select(self, query: str, values: tuple[str, ...]) -> list[tuple[str, ...]]:
        try:
            with closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True, timeout=10)) as connection:
                return connection.execute(query, values).fetchall()
        except sqlite3.Error:  # not there, or of another version
            return []


def _parse(text: str) -> datetime:
    """Return a time of the database, where times are in UTC."""
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
