"""MLflow's file is whole or not there, wherever its making was broken off."""

from __future__ import annotations

import subprocess
import sys

import mlflow
import pytest
from waiting import wait_until

from include.settings import PROJECT, Mlflow
from spark_jobs.model_database import ensure_database
from spark_jobs.model_store import ModelStore

MAKE = "import sys; from spark_jobs.model_database import ensure_database; ensure_database(sys.argv[1])"


@pytest.fixture
def uri(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'store' / 'mlflow.db'}"


@pytest.mark.long
def test_a_killed_first_start_leaves_a_store_that_works(uri, tmp_path):
    folder = tmp_path / "store"
    process = subprocess.Popen([sys.executable, "-c", MAKE, uri], cwd=PROJECT)
    # Amid the migrations: the file grows with each.
    temporary = folder / ".mlflow.db.tmp"
    assert wait_until(lambda: temporary.exists() and temporary.stat().st_size > 50_000, 60, every_s=0.002)
    process.kill()
    process.wait()
    assert not (folder / "mlflow.db").exists()
    store = ModelStore(Mlflow(tracking_uri=uri, artifact_root=str(tmp_path / "artifacts")))
    assert store.find_finished("none") is None
    assert [path.name for path in folder.iterdir()] == ["mlflow.db"]


def test_a_store_that_is_there_is_left_alone(uri):
    ensure_database(uri)
    client = mlflow.MlflowClient(uri)
    client.create_experiment("kept")
    ensure_database(uri)
    assert client.get_experiment_by_name("kept") is not None
