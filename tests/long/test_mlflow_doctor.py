"""The doctor asks a real MLflow of every kind: its child process loads MLflow, which takes seconds."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from cli.doctor.findings import Level
from cli.doctor.storage import check_mlflow
from include.settings import Settings
from include.settings.storage import Mlflow
from spark_jobs.model_database import ensure_database

pytestmark = pytest.mark.long


@pytest.mark.covers("harm mlflow-unasked")
def test_files_and_an_old_schema_are_errors_with_their_migration(tmp_path: Path) -> None:
    (tmp_path / "mlruns").mkdir()
    for uri in (f"file://{tmp_path}/mlruns", f"{tmp_path}/mlruns"):
        (finding,) = check_mlflow(Settings(mlflow=Mlflow(tracking_uri=uri)))
        assert finding.level is Level.ERROR
        assert "mlflow migrate-filestore" in finding.remedy
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    ensure_database(uri)
    settings = Settings(mlflow=Mlflow(tracking_uri=uri))
    assert {one.level for one in check_mlflow(settings)} == {Level.OK}
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        database.execute("UPDATE alembic_version SET version_num = '0c779009ac13'")
    last = check_mlflow(settings)[-1]
    assert last.level is Level.ERROR
    assert last.remedy.endswith(f"`mlflow db upgrade {uri}`")
