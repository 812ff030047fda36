"""The champion's models, read again only when another version has become champion."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from include.domain.operator_matching import PlacedOperator
from include.settings import Mlflow
from models.bundle.fleet_bundle import BundleError, FleetBundle
from models.bundle.job_models import JobModels
from models.training.model_review import ReviewedVersion, rank_usable

_SQLITE = "sqlite:///"
# A tick waits for the answer, and its leases end: by default MLflow's client tries for minutes.
_LIMITS = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "5"}
log = logging.getLogger(__name__)


class ChampionReader:
    """Reads the fleet's models from MLflow.

    What cannot be read is no reason to leave jobs alone: the controller goes on with the models that it has.
    """

    def __init__(self, settings: Mlflow) -> None:
        self._settings = settings
        self._version: int | None = None
        self.bundle: FleetBundle | None = None

    def refresh(self) -> None:
        """Read the champion if it is another one than the one in use."""
        if not _has_database(self._settings.tracking_uri):
            return  # nothing was ever trained
        for name, value in _LIMITS.items():
            os.environ.setdefault(name, value)
        import mlflow  # takes seconds, which a controller without work need not spend
        from mlflow.exceptions import MlflowException

        from include.model_registry import CHAMPION, PINNED, find_alias, list_versions, read_bundle

        model, client = self._settings.registered_model, mlflow.MlflowClient(self._settings.tracking_uri)
        try:
            named = [find_alias(client, model, alias) for alias in (CHAMPION, PINNED)]
            if all(one is None for one in named):
                return
            versions = [ReviewedVersion(int(one.version), dict(one.tags)) for one in list_versions(client, model)]
            usable = rank_usable(versions, *(None if one is None else int(one.version) for one in named))
            mlflow.set_tracking_uri(self._settings.tracking_uri)
            for number in usable:
                if number == self._version:
                    return
                try:
                    self.bundle, self._version = FleetBundle.from_bytes(read_bundle(model, number)), number
                except (BundleError, StopIteration) as error:
                    log.warning("version %d of the models cannot be used: %s", number, str(error) or "no bundle in it")
                else:
                    return
            log.warning("the champion was not read: no version that is named can be used")
        except (MlflowException, BundleError, OSError, StopIteration) as error:
            log.warning("the champion was not read: %s", str(error).partition("\n")[0])
        except Exception:  # whatever is in its file
            log.exception("the champion was not read")

    def models_of(self, cluster: str, job: str, present: Sequence[PlacedOperator] = ()) -> JobModels | None:
        """Return a job's models under the names of its present operators; None without a champion, and for a job that
        no training saw.
        """
        if self.bundle is None:
            return None
        try:
            return self.bundle.for_job(cluster, job, present)
        except BundleError:
            return None

    @property
    def model_version(self) -> str | None:
        """Version of the models in use."""
        return None if self.bundle is None else self.bundle.model_version


def _has_database(tracking_uri: str) -> bool:
    """Whether there is something to ask: MLflow would make a database that is not there, which takes long."""
    return not tracking_uri.startswith(_SQLITE) or Path(tracking_uri.removeprefix(_SQLITE).partition("?")[0]).exists()
