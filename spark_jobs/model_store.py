"""MLflow behind one narrow class: one run per model version, one registered version, two aliases.

A run is found by its tag ``tidewise.model_version``.  Only a run that MLflow has as FINISHED counts; a run that was
killed is closed and made again.  Registration and aliases come after, and each looks first what is already there.
"""

from __future__ import annotations

import pkgutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import mlflow
from mlflow.entities import Run, RunStatus
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, Schema

from include.model_registry import BUNDLE_FILE, CHAMPION, find_alias, read_bundle
from include.settings import Mlflow, Settings
from models.bundle import FleetBundle
from spark_jobs.model_database import ensure_database

VERSION_TAG = "tidewise.model_version"
NOTE_TAG = "mlflow.note.content"  # what MLflow shows as the description of a run or an experiment, in Markdown
KIND_TAG = (
    "mlflow.experimentKind"  # without it MLflow takes an experiment for one of language models, and shows no runs
)
TRAINING_KIND = "custom_model_development"
MODEL_DESCRIPTION = """The models of all jobs in one bundle, a version for each training: capacity curve of every
operator, recovery time and latency of every job. The alias `champion` names the version that plans use, `challenger`
the newest one; the gate of the training decides whether a challenger becomes champion."""
REQUIREMENTS = ("mlflow", "numpy", "pandas")
_INPUTS = (("cluster", "string"), ("job", "string"), ("operator", "string"), ("parallelism", "long"))
_OUTPUTS = (("mean_per_s", "double"), ("sd_per_s", "double"))
SIGNATURE = ModelSignature(
    Schema([ColSpec(kind, name) for name, kind in _INPUTS]), Schema([ColSpec(kind, name) for name, kind in _OUTPUTS])
)


class NoModelError(RuntimeError):
    """No trained model can be used; the message says what to run."""


class NoChampionError(NoModelError):
    """No registered version has the alias that was asked for."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A registered version of the fleet's model."""

    number: int
    model_version: str


class ModelStore:
    """Runs and registered versions of one deployment."""

    def __init__(self, mlflow_settings: Mlflow) -> None:
        self.settings = mlflow_settings
        ensure_database(mlflow_settings.tracking_uri)
        mlflow.set_tracking_uri(mlflow_settings.tracking_uri)
        self.client = mlflow.MlflowClient(mlflow_settings.tracking_uri)

    def _experiment_id(self) -> str:
        name, kind = self.settings.experiment, {KIND_TAG: TRAINING_KIND}
        result = self.client.get_experiment_by_name(name)
        if result is None:
            root = self.settings.artifact_root
            location = root if "://" in root else Path(root).resolve().as_uri()
            return str(self.client.create_experiment(name, artifact_location=location, tags=kind))
        if KIND_TAG not in result.tags:  # made by an earlier release
            self.client.set_experiment_tag(result.experiment_id, KIND_TAG, TRAINING_KIND)
        return str(result.experiment_id)

    def _runs(self, model_version: str) -> list[Run]:
        condition = f"tags.`{VERSION_TAG}` = '{model_version}'"
        return list(self.client.search_runs([self._experiment_id()], condition, order_by=["attributes.start_time ASC"]))

    def find_finished(self, model_version: str) -> Run | None:
        """Return the finished run of a version, None when there is none."""
        done = [run for run in self._runs(model_version) if run.info.status == RunStatus.to_string(RunStatus.FINISHED)]
        return done[0] if done else None

    @contextmanager
    def run(self, model_version: str, tags: Mapping[str, str]) -> Iterator[str]:
        """Open the run of a version; leaving without an error finishes it.  What a killed run left is closed first."""
        for stale in self._runs(model_version):
            if stale.info.status == RunStatus.to_string(RunStatus.RUNNING):
                self.client.set_terminated(stale.info.run_id, RunStatus.to_string(RunStatus.KILLED))
        named = {VERSION_TAG: model_version, **tags}
        with mlflow.start_run(
            experiment_id=self._experiment_id(), run_name=f"train-{model_version}", tags=named
        ) as run:
            yield run.info.run_id

    def log_bundle(self, bundle: FleetBundle) -> None:
        """Log the bundle to the open run as a model from code with its arrays beside it."""
        source = pkgutil.get_data("spark_jobs.train", "pyfunc.py")  # also when the project runs from a zip
        if source is None:
            raise NoModelError("spark_jobs/train/pyfunc.py is not in the package; run `make setup` to build it again")
        with tempfile.TemporaryDirectory() as folder:
            code, arrays = Path(folder) / "fleet_model.py", Path(folder) / BUNDLE_FILE
            code.write_bytes(source)
            arrays.write_bytes(bundle.to_bytes())
            logged = mlflow.pyfunc.log_model(
                name="fleet",
                python_model=str(code),
                artifacts={"bundle": str(arrays)},
                pip_requirements=list(REQUIREMENTS),
                signature=SIGNATURE,
            )
        mlflow.set_tag("tidewise.model_uri", logged.model_uri)

    def register(self, run: Run) -> Registered:
        """Return the registered version of a finished run, creating it once."""
        model_version = run.data.tags[VERSION_TAG]
        name = self.settings.registered_model
        try:
            self.client.create_registered_model(name, description=MODEL_DESCRIPTION)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        known = self.client.search_model_versions(f"name = '{name}' and run_id = '{run.info.run_id}'")
        version = known[0] if known else self._create_version(run, model_version)
        return Registered(int(version.version), model_version)

    def _create_version(self, run: Run, model_version: str) -> ModelVersion:
        return self.client.create_model_version(
            self.settings.registered_model,
            source=run.data.tags["tidewise.model_uri"],
            run_id=run.info.run_id,
            tags={VERSION_TAG: model_version},
            description=run.data.tags.get(NOTE_TAG),
        )

    def find_aliased(self, alias: str) -> Registered | None:
        """Return the version that an alias names, None when it names none."""
        result = find_alias(self.client, self.settings.registered_model, alias)
        return None if result is None else Registered(int(result.version), result.tags[VERSION_TAG])

    def point(self, alias: str, to: Registered) -> None:
        """Let an alias name a version."""
        self.client.set_registered_model_alias(self.settings.registered_model, alias, str(to.number))

    def load(self, alias: str) -> FleetBundle | None:
        """Return the bundle that an alias names, None when it names none."""
        result = self.find_aliased(alias)
        if result is None:
            return None
        return self._read(result.number)

    def load_version(self, model_version: str) -> FleetBundle | None:
        """Return the bundle of a model version, whether an alias names it or not; None when it is not registered."""
        known = self.client.search_model_versions(f"name = '{self.settings.registered_model}'")
        numbers = [int(one.version) for one in known if one.tags.get(VERSION_TAG) == model_version]
        return self._read(max(numbers)) if numbers else None

    def read(self, registered: Registered) -> FleetBundle:
        """Return the bundle of a registered version."""
        return self._read(registered.number)

    def _read(self, number: int) -> FleetBundle:
        return FleetBundle.from_bytes(read_bundle(self.settings.registered_model, number))


def load_bundle(settings: Settings, alias: str = CHAMPION) -> FleetBundle:
    """Return the models that planning uses.

    Raises:
        NoChampionError: no version has the alias.
    """
    bundle = ModelStore(settings.mlflow).load(alias)
    if bundle is None:
        raise NoChampionError(
            f"no {alias} of model {settings.mlflow.registered_model!r} in {settings.mlflow.tracking_uri}: run the "
            f"train stage (DAG tidewise_train), or give a registered version the alias {alias}"
        )
    return bundle


def champion(settings: Settings) -> FleetBundle | None:
    """Return the models that planning uses; None before the first training."""
    try:
        return load_bundle(settings)
    except NoModelError:
        return None
