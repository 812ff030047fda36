"""DAG runs that the command line asks for, in Airflow's own tables."""

from __future__ import annotations

import os
import sqlite3
import time
from datetime import UTC, datetime

import pytest

from cli.dag_client import DagClient
from cli.embedded import airflow_environment, below
from include.settings import SETTINGS_FILE_VARIABLE, load_settings

# In `make test` the whole of `make run` stands for it: tests/e2e/test_run.py looks at its DAG runs.
pytestmark = [pytest.mark.airflow, pytest.mark.long]


def test_runs_show_their_real_duration_and_what_they_looked_at(tmp_path, monkeypatch):
    (tmp_path / "empty.toml").touch()  # no cluster: the controller ends at once
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "empty.toml"))
    for name, value in below(tmp_path).items():
        monkeypatch.setenv(name, value)
    environment = airflow_environment(load_settings(), os.environ)
    with DagClient(environment, tmp_path / "run.log", lambda stage: None) as client:
        began_s = time.time()
        for _ in range(2):
            # Long ago: it must not be taken for the start of the run.
            client.run("tidewise_control", {"as_of": "2024-11-20T20:00:00Z"})
        took_s = time.time() - began_s
    with sqlite3.connect(tmp_path / "airflow" / "airflow.db") as tables:
        runs = tables.execute("select start_date, end_date, state, conf from dag_run order by id").fetchall()
    assert [state for _, _, state, _ in runs] == ["success", "success"]  # a second run is a run of its own
    for start, end, _, conf in runs:
        started, ended = (datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() for text in (start, end))
        assert began_s - 60 <= started < ended
        assert ended - started <= took_s
        assert "2024-11-20T20:00:00Z" in conf
