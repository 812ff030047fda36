"""What the embedded Airflow's database says, read without importing Airflow, which takes ten seconds."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from include.utc import Interval, floor_hour

_ALIVE_S = 60.0
"""A scheduler writes its heartbeat every five seconds; Airflow itself takes one of half a minute ago for late."""


@dataclass(frozen=True, slots=True)
class BackfillRun:
    """A run of a backfill.

    Attributes:
        run_id: its name, which bears the time after the hours.
        state: queued, running, success or failed.
        hours: what it ingests.
    """

    run_id: str
    state: str
    hours: Interval


class AirflowDatabase:
    """Reads one SQLite file; a file that is not there, or not migrated, holds nothing.

    Args:
        file: ``airflow.db``.
    """

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

    def read_backfills(self, dag_id: str, known: Collection[str] = ()) -> list[BackfillRun]:
        """Return the runs of backfills of a DAG in the order of their hours, without those that are known."""
        query = (
            "select run_id, state, data_interval_start, data_interval_end from dag_run "
            "where dag_id = ? and run_type = 'backfill' order by data_interval_start"
        )
        return [
            BackfillRun(run_id, state, Interval(floor_hour(_parse(start)), floor_hour(_parse(end))))
            for run_id, state, start, end in self._select(query, (dag_id,))
            if run_id not in known and start and end
        ]

    def _select(self, query: str, values: tuple[str, ...]) -> list[tuple[str, ...]]:
        try:
            with self._open() as connection:
                return connection.execute(query, values).fetchall()
        except sqlite3.Error:  # not there, or of another version
            return []

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True, timeout=10)) as connection:
            yield connection


def _parse(text: str) -> datetime:
    """Return a time of the database, where times are in UTC."""
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
