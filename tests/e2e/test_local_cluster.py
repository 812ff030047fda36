"""Stages on a master with executors of their own: the code reaches them only through the zip."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from small_world import AS_OF, World, write_small_history

from cli.dag_client import DagClient, DagFailedError
from cli.embedded import airflow_environment
from include.settings import load_settings
from include.utc import format_utc

HOURS = 3
MASTER = "local-cluster[1,1,1024]"

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Cluster:
    """A world whose stages run on a cluster's master, and the Airflow that runs them."""

    world: World
    dags: DagClient


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The master is reached through the Airflow connection, and without PYTHONPATH."""
    root = tmp_path_factory.mktemp("cluster")
    write_small_history(root / "raw", HOURS)
    world = World(root / "out", root / "raw")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in world.environment.items():
            patch.setenv(name, value)
        patch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": MASTER}))
        environment = airflow_environment(load_settings(), os.environ)
        del environment["PYTHONPATH"]  # Airflow finds the project in its working directory; Spark must not need it
        with DagClient(environment, world.out / "airflow.log", lambda task: None) as dags:
            yield Cluster(world, dags)


def test_a_failing_stage_says_what_failed_and_what_to_do(cluster: Cluster) -> None:
    with pytest.raises(DagFailedError) as error:
        cluster.dags.run("tidewise_train", {"as_of": format_utc(AS_OF)})  # nothing was ingested
    message = str(error.value)
    assert "tidewise_train: train failed: tidewise: stage train failed: NothingToLearnError" in message
    assert "docs/runbook.md#when-a-stage-fails" in message
    assert str(cluster.world.out / "airflow.log") in message


def test_ingest_and_training_run_on_executors(cluster: Cluster) -> None:
    out = cluster.world.out
    start = AS_OF - timedelta(hours=HOURS)
    cluster.dags.run("tidewise_ingest", {"start": format_utc(start), "end": format_utc(AS_OF)})
    # Training runs the project's own Python in the executors' workers (applyInPandas).
    cluster.dags.run("tidewise_train", {"as_of": format_utc(AS_OF)})
    counts = {stage: json.loads((out / "stages" / f"{stage}.json").read_text()) for stage in ("ingest", "train")}
    assert counts["ingest"]["rows"] > 0
    assert counts["ingest"]["jobs"] == 3
    assert counts["train"]["models"] >= 3
    assert len(cluster.world.rows()["silver.observations"]) == counts["ingest"]["observations"] > 0
    log = (out / "airflow.log").read_text()
    assert f"--master {MASTER}" in log
    assert "--py-files" in log
