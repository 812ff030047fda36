"""Stages on a master with executors of their own: the code reaches them only through the zip."""

from __future__ import annotations

import json
import os
from datetime import timedelta

import pytest
from small_world import AS_OF, World, write_small_history

from cli.dag_client import DagClient, DagFailedError
from cli.embedded import airflow_environment
from include.settings import load_settings
from include.utc import format_utc

HOURS = 3
MASTER = "local-cluster[1,1,1024]"

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture
def world(tmp_path, monkeypatch) -> World:
    """A world on a cluster's master, reached through the Airflow connection and without PYTHONPATH."""
    write_small_history(tmp_path / "raw", HOURS)
    world = World(tmp_path / "out", tmp_path / "raw")
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": MASTER}))
    return world


def client(world: World) -> DagClient:
    environment = airflow_environment(load_settings(), os.environ)
    del environment["PYTHONPATH"]  # Airflow finds the project in its working directory; Spark must not need it
    return DagClient(environment, world.out / "airflow.log", lambda task: None)


def test_ingest_and_training_run_on_executors(world):
    with client(world) as dags:
        dags.run("tidewise_ingest", {"start": format_utc(AS_OF - timedelta(hours=HOURS)), "end": format_utc(AS_OF)})
        # Training runs the project's own Python in the executors' workers (applyInPandas).
        dags.run("tidewise_train", {"as_of": format_utc(AS_OF)})
    counts = {stage: json.loads((world.out / "stages" / f"{stage}.json").read_text()) for stage in ("ingest", "train")}
    assert counts["ingest"]["rows"] > 0
    assert counts["ingest"]["jobs"] == 3
    assert counts["train"]["models"] >= 3
    assert len(world.rows()["silver.observations"]) == counts["ingest"]["observations"] > 0
    log = (world.out / "airflow.log").read_text()
    assert f"--master {MASTER}" in log
    assert "--py-files" in log


def test_a_failing_stage_says_what_failed_and_what_to_do(world):
    with client(world) as dags, pytest.raises(DagFailedError) as error:
        dags.run("tidewise_train", {"as_of": format_utc(AS_OF)})  # nothing was ingested
    message = str(error.value)
    assert "tidewise_train: train failed: tidewise: stage train failed: NothingToLearnError" in message
    assert "docs/runbook.md#when-a-stage-fails" in message
    assert str(world.out / "airflow.log") in message
