"""The models that a training has fitted, also of jobs that keep those of an earlier version."""

from __future__ import annotations

import tempfile
from pathlib import Path

import mlflow
from mlflow.entities import Run

from include.model_registry import BUNDLE_FILE
from models.bundle.fleet_bundle import FleetBundle
from models.training.model_review import VERSION_TAG
from spark_jobs.model_store import FITTED, ModelStore, NoModelError


def read_fitted(store: ModelStore, run: Run) -> FleetBundle:
    """Return what the run of a training has fitted.

    Raises:
        NoModelError: the run is not registered.
    """
    if store.client.list_artifacts(run.info.run_id, FITTED):
        with tempfile.TemporaryDirectory() as folder:
            uri = f"{run.info.artifact_uri}/{FITTED}/{BUNDLE_FILE}"
            local = mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=folder)
            return FleetBundle.from_bytes(Path(local).read_bytes())
    bundle = store.load_version(run.data.tags[VERSION_TAG])
    if bundle is None:
        raise NoModelError(f"model {run.data.tags[VERSION_TAG]} is not registered: run the train stage again")
    return bundle
