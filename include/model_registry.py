"""Reading from MLflow's registry: which version an alias names, and a file of that version."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import mlflow
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException

CHAMPION, CHALLENGER, PINNED = "champion", "challenger", "pinned"
BUNDLE_FILE = "bundle.npz"
# MLflow's bar for a handful of small files would stand in the middle of a log.
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
_PAGE = 1000
_NOT_THERE = frozenset({"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"})  # no such model, or not with the alias


def find_alias(client: mlflow.MlflowClient, model: str, alias: str) -> ModelVersion | None:
    """Return the version of a registered model that an alias names, None when it names none."""
    try:
        return client.get_model_version_by_alias(model, alias)
    except MlflowException as error:
        if error.error_code in _NOT_THERE:
            return None
        raise


def list_versions(client: mlflow.MlflowClient, model: str) -> list[ModelVersion]:
    """Return every version of a registered model, by number; none of a model that is not registered."""
    result, token = list[ModelVersion](), None
    while True:
        page = client.search_model_versions(f"name = '{model}'", max_results=_PAGE, page_token=token)
        result += page
        token = page.token
        if not token:
            return sorted(result, key=lambda one: int(one.version))


def read_bundle(model: str, number: int) -> bytes:
    """Return the bundle of a version, from the registry that ``mlflow.set_tracking_uri`` has named."""
    with tempfile.TemporaryDirectory() as folder:
        uri = f"models:/{model}/{number}"
        local = Path(mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=folder))
        return next(local.rglob(BUNDLE_FILE)).read_bytes()
