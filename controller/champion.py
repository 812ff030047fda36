"""The champion's recovery models, read again only when another version has become champion."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from include.settings import Mlflow
from models.bundle import BundleError, FleetBundle
from models.job_models import RecoveryModel
from models.recovery import UNTRAINED

CHAMPION = "champion"
BUNDLE_FILE = "bundle.npz"
_SQLITE = "sqlite:///"
_NOT_YET = frozenset({"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"})  # no model, or none with the alias
log = logging.getLogger(__name__)


class ChampionReader:
    """Reads the fleet's models from MLflow.

    What cannot be read is no reason to leave jobs alone: the controller goes on with the models that it has.
    """

    def __init__(self, settings: Mlflow) -> None:
        self._settings = settings
        self._version: str | None = None
        self.bundle: FleetBundle | None = None

    def refresh(self) -> None:
        """Read the champion if it is another one than the one in use."""
        if not _has_database(self._settings.tracking_uri):
            return  # nothing was ever trained
        import mlflow  # takes seconds, which a controller without work need not spend
        from mlflow.exceptions import MlflowException

        client = mlflow.MlflowClient(self._settings.tracking_uri)
        try:
            found = client.get_model_version_by_alias(self._settings.registered_model, CHAMPION)
            if found.version == self._version:
                return
            mlflow.set_tracking_uri(self._settings.tracking_uri)
            with tempfile.TemporaryDirectory() as folder:
                uri = f"models:/{self._settings.registered_model}/{found.version}"
                local = Path(mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=folder))
                self.bundle = FleetBundle.from_bytes(next(local.rglob(BUNDLE_FILE)).read_bytes())
            self._version = found.version
        except (MlflowException, BundleError, OSError, StopIteration) as error:
            if getattr(error, "error_code", "") in _NOT_YET:
                return
            log.warning("the champion was not read: %s", str(error).partition("\n")[0])

    def recovery_of(self, cluster: str, job: str) -> RecoveryModel:
        """Return how long a job's rescales are expected to take."""
        if self.bundle is None:
            return UNTRAINED
        try:
            return self.bundle.for_job(cluster, job).recovery
        except BundleError:  # a job that no training saw
            return UNTRAINED

    @property
    def model_version(self) -> str | None:
        """Version of the models in use."""
        return None if self.bundle is None else self.bundle.model_version


def _has_database(tracking_uri: str) -> bool:
    """Whether there is something to ask: MLflow would make a database that is not there, which takes long."""
    return not tracking_uri.startswith(_SQLITE) or Path(tracking_uri.removeprefix(_SQLITE).partition("?")[0]).exists()
