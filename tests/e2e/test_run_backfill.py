"""``airflow backfill create`` on the ingest DAG, run by a real scheduler: hours come in, and no plan is made."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_world import World, delta_rows, write_small_history

from include.tables import OBSERVATIONS, PLANS

REPOSITORY = Path(__file__).resolve().parents[2]
HOURS = 3
WITHIN_S = 1000.0

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def world(tmp_path, monkeypatch) -> World:
    """A world with three hours of raw files and nothing ingested."""
    write_small_history(tmp_path / "raw", HOURS)
    world = World(tmp_path / "out", tmp_path / "raw")
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TIDEWISE__SPARK__MASTER", "local[2]")
    return world


@pytest.fixture
def scheduler(world):
    """``make ui`` in the world, stopped afterwards."""
    ports = ["--airflow-port", str(free_port()), "--mlflow-port", str(free_port())]
    command = [sys.executable, "-m", "cli.ui", *ports]
    child = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in child.stdout:
        if "Ctrl-C" in line:
            break
    yield
    child.send_signal(signal.SIGINT)
    child.wait(timeout=90)


def airflow(*arguments: str) -> str:
    command = [sys.executable, "-m", "cli.airflow_cli", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def finished_runs() -> list[dict[str, str]]:
    listing = airflow("dags", "list-runs", "tidewise_ingest", "--output", "json")
    runs = json.loads(next(line for line in listing.splitlines() if line.startswith(("[{", "[]"))))
    return [run for run in runs if run["state"] in ("success", "failed")]


def test_a_backfill_ingests_each_hour_and_plans_nothing(world, scheduler):
    dates = ["--from-date", "2026-11-20T16:00:00Z", "--to-date", "2026-11-20T18:30:00Z"]
    airflow("backfill", "create", "--dag-id", "tidewise_ingest", *dates, "--max-active-runs", "1")
    airflow("dags", "unpause", "tidewise_ingest", "--yes")
    deadline = time.monotonic() + WITHIN_S
    while len(runs := [run for run in finished_runs() if "backfill" in run["run_id"]]) < HOURS:
        assert time.monotonic() < deadline, runs
        time.sleep(15)  # each question starts an Airflow of its own
    assert {run["state"] for run in runs} == {"success"}
    rows = [json.loads(row) for row in delta_rows(world.out / "lake", OBSERVATIONS)]
    assert {row["hour"] for row in rows} == {"16", "17", "18"}
    assert delta_rows(world.out / "lake", PLANS) is None
