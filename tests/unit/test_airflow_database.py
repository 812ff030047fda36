"""What `tidewise airflow` and `make ui` read from Airflow's tables, on tables of Airflow's own columns."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli.airflow_cli import list_obstacles
from cli.airflow_database import AirflowDatabase

NOW = datetime(2026, 11, 20, 18, 30, tzinfo=UTC)
TABLES = """
create table dag (dag_id text, is_paused boolean, is_stale boolean);
create table job (job_type text, state text, latest_heartbeat timestamp);
create table dag_run (dag_id text, run_id text, run_type text, state text, data_interval_start timestamp,
                      data_interval_end timestamp);
insert into dag values ('tidewise_ingest', 1, 0), ('tidewise_plan', 0, 0), ('tidewise_gone', 0, 1);
insert into dag_run values
  ('tidewise_ingest', 'backfill__b', 'backfill', 'queued', '2026-11-20 17:05:00.000000', '2026-11-20 18:05:00.000000'),
  ('tidewise_ingest', 'backfill__a', 'backfill', 'queued', '2026-11-20 16:05:00.000000', '2026-11-20 17:05:00.000000'),
  ('tidewise_ingest', 'manual__c', 'manual', 'queued', null, null);
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "airflow.db") as connection:
        connection.executescript(TABLES)
    return tmp_path / "airflow.db"


def beat(file: Path, at: datetime) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("insert into job values ('SchedulerJob', 'running', ?)", (f"{at:%Y-%m-%d %H:%M:%S.%f}",))


def test_a_run_covers_the_hour_before_the_time_of_its_name(file: Path) -> None:
    runs = AirflowDatabase(file).read_backfills("tidewise_ingest")
    assert [(name, hours.start.hour, hours.end.hour) for name, hours in runs.items()] == [
        ("backfill__a", 16, 17),
        ("backfill__b", 17, 18),
    ]


def test_what_keeps_runs_queued_is_said_with_what_to_do(file: Path) -> None:
    database = AirflowDatabase(file)
    paused, unscheduled = list_obstacles(database, "tidewise_ingest", NOW)
    assert "dags unpause tidewise_ingest" in paused
    assert "make ui" in unscheduled
    beat(file, NOW - timedelta(seconds=70))
    assert len(list_obstacles(database, "tidewise_plan", NOW)) == 1
    beat(file, NOW - timedelta(seconds=10))
    assert list_obstacles(database, "tidewise_plan", NOW) == []


def test_no_database_is_a_paused_dag_and_no_scheduler(tmp_path: Path) -> None:
    database = AirflowDatabase(tmp_path / "airflow.db")
    assert database.read_backfills("tidewise_ingest") == {}
    assert len(list_obstacles(database, "tidewise_ingest", NOW)) == 2
    assert not (tmp_path / "airflow.db").exists()
