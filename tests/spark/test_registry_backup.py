"""MLflow's registry backed up while it is in use, and put back elsewhere: its models can be read there."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import mlflow
import numpy as np
import pytest

from benchmarks.pipeline.packed_models import pack_models
from include.backup.backup_folder import BackupFolder
from include.backup.manifest import BackupError
from include.backup.registry_copy import copy_registry, is_registry_there, put_registry_back
from include.model_registry import CHAMPION, read_bundle
from include.settings import Mlflow
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from spark_jobs.model_store import ModelStore


def registry_at(root) -> Mlflow:
    return Mlflow(tracking_uri=f"sqlite:///{root}/mlflow.db", artifact_root=str(root / "artifacts"))


def log_version(store: ModelStore, name: str) -> int:
    grid = np.arange(1, 4)
    curve = CapacityCurve(grid, 10.0 * grid, 0.1 * grid, grid[:1], 10.0 * grid[:1], 10.0, 2.5, 10.0, 0.03)
    models = JobModels({"map": curve}, {"map": 1.0}, RecoveryModel(30.0, 4.0, 60.0, 9.0, 10.0, 3), LatencyModel(
        np.zeros(0), np.zeros(0)
    ))  # fmt: skip
    with store.run(name, {}):
        store.log_bundle(pack_models(name, {("c", "orders"): models}))
    return store.register(store.find_finished(name)).number


def test_a_registry_is_put_back_elsewhere_and_its_champion_read(tmp_path) -> None:
    """The folder of before is gone: every location in the database names the new one."""
    old, new = tmp_path / "old", tmp_path / "new"
    store = ModelStore(registry_at(old))
    number = log_version(store, "v1")
    store.client.set_registered_model_alias(store.settings.registered_model, CHAMPION, str(number))
    folder = BackupFolder(str(tmp_path / "backups"))
    with closing(sqlite3.connect(old / "mlflow.db")) as writer:  # which is in the midst of a change
        writer.execute("UPDATE registered_models SET description = 'half'")
        copy = copy_registry(store.settings, folder)
        writer.rollback()
    expected = read_bundle(store.settings.registered_model, number)
    assert (copy.model_versions, copy.missing) == (1, "")
    old.rename(tmp_path / "gone")

    settings = registry_at(new)
    assert not is_registry_there(settings)
    put_registry_back(settings, copy, str(old / "artifacts"), folder)
    assert is_registry_there(settings)
    there = ModelStore(settings)
    assert there.find_aliased(CHAMPION).model_version == "v1"
    assert "half" not in there.client.get_registered_model(settings.registered_model).description
    mlflow.set_tracking_uri(settings.tracking_uri)
    assert read_bundle(settings.registered_model, number) == expected
    assert there.find_finished("v1").info.artifact_uri.startswith((new / "artifacts").as_uri())
    assert log_version(there, "v2") == number + 1  # it goes on from there

    with pytest.raises(BackupError, match=r"let mlflow\.tracking_uri name one"):
        put_registry_back(Mlflow(tracking_uri="http://mlflow:5000"), copy, str(old / "artifacts"), folder)


def test_a_server_has_a_backup_of_its_own(tmp_path) -> None:
    folder = BackupFolder(str(tmp_path / "backups"))
    copy = copy_registry(Mlflow(tracking_uri="http://mlflow:5000"), folder)
    assert (copy.database, copy.artifacts) == (None, {})
    assert copy.missing == "mlflow.tracking_uri is http:, which has a backup of its own"
