"""MLflow behind one narrow class: one run per model version, one registered version, two aliases.

A run is found by its tag ``tidewise.model_version``.  Only a run that MLflow has as FINISHED counts; a run that was
killed is closed and made again.  Registration and aliases come after, and each looks first what is already there.
"""

from __future__ import annotations

import logging
import pkgutil
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.entities import Run, RunStatus
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

from include.model_registry import BUNDLE_FILE, CHAMPION, PINNED, find_alias, list_versions, read_bundle
from include.settings import Mlflow, Settings
from models.bundle.fleet_bundle import BundleError, FleetBundle
from models.training.model_review import (
    PROMOTED_TAG,
    VERSION_TAG,
    ReviewedVersion,
    ReviewOrders,
    drop_impossible,
    rank_usable,
    read_review,
)
from spark_jobs.model_database import ensure_database

log = logging.getLogger(__name__)

NOTE_TAG = "mlflow.note.content"  # what MLflow shows as the description of a run or an experiment, in Markdown
FITTED = "fitted"  # folder of the bundle that was fitted, where it is not the one that is registered
JOB_TABLE = "jobs.json"  # a row for each job: whose models it has, and why
GATE_TAG = "tidewise.gate"  # the verdict
JOB_TAG = "job "  # before the names of the tags of the registered model, one for each job
TAG_NAME_LETTERS, TAG_LETTERS = 250, 5000  # as much as MLflow has of a tag
KIND_TAG = (
    "mlflow.experimentKind"  # without it MLflow takes an experiment for one of language models, and shows no runs
)
TRAINING_KIND = "custom_model_development"
MODEL_DESCRIPTION = """The models of all jobs in one bundle, a version for each training: capacity curve of every
operator, recovery time and latency of every job. The alias `champion` names the version that plans use, `challenger`
the newest one; the gate of the training decides whether a challenger becomes champion."""
REQUIREMENTS = ("mlflow", "numpy", "pandas")
_INPUTS = (("cluster", "string"), ("job", "string"), ("operator", "string"), ("parallelism", "long"))
_NUMBERS = (
    *("mean_per_s", "sd_per_s", "low_80_per_s", "high_80_per_s", "low_95_per_s", "high_95_per_s"),
    *("utilisation", "latency_ms"),
    *("downtime_rescale_s", "downtime_restart_s", "recovery_rescale_s", "recovery_restart_s"),
)
_TEXTS = ("place", "models_from")
SIGNATURE = ModelSignature(
    Schema([*(ColSpec(kind, name) for name, kind in _INPUTS), ColSpec("double", "load_per_s", required=False)]),
    Schema([*(ColSpec("double", name) for name in _NUMBERS), *(ColSpec("string", name) for name in _TEXTS)]),
    ParamSchema([ParamSpec("unknown", "string", "error")]),
)


class NoModelError(RuntimeError):
    """No trained model can be used; the message says what to run."""


class NoChampionError(NoModelError):
    """No registered version has the alias that was asked for."""


@dataclass(frozen=True, slots=True)
class Champion:
    """The version that plans use.

    Attributes:
        registered: which; None before the first.
        bundle: its models.
        problems: what of the aliases cannot be followed, a sentence each.
        lost: which versions that came first cannot be read, and why, a sentence each.
    """

    registered: ReviewedVersion | None
    bundle: FleetBundle | None
    problems: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


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
            experiment_id=self._experiment_id(), run_name=f"train {model_version}", tags=named
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
                input_example=_example_of(bundle),
            )
        mlflow.set_tag("tidewise.model_uri", logged.model_uri)

    def log_fitted(self, bundle: FleetBundle) -> None:
        """Log to the open run what was fitted, where the bundle has other models of some jobs."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / BUNDLE_FILE
            file.write_bytes(bundle.to_bytes())
            mlflow.log_artifact(str(file), FITTED)

    def register(self, run: Run) -> ReviewedVersion:
        """Return the registered version of a finished run, creating it once."""
        name = self.settings.registered_model
        try:
            self.client.create_registered_model(name, description=MODEL_DESCRIPTION)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        known = self.client.search_model_versions(f"name = '{name}' and run_id = '{run.info.run_id}'")
        return _reviewed(known[0] if known else self._create_version(run))

    def _create_version(self, run: Run) -> ModelVersion:
        source = run.data.tags["tidewise.model_uri"]
        return self.client.create_model_version(
            self.settings.registered_model,
            source=source,
            run_id=run.info.run_id,
            model_id=_logged_id(source),  # a server of MLflow refuses to look it up in the source
            tags={name: run.data.tags[name] for name in (VERSION_TAG, GATE_TAG) if name in run.data.tags},
            description=run.data.tags.get(NOTE_TAG),
        )

    def name_operators(self, bundle: FleetBundle) -> None:
        """Let the registered model have a tag for each job, with its operators, as a person looks for them."""
        name = self.settings.registered_model
        wanted = {_tag_of(cluster, job): ", ".join(operators)[:TAG_LETTERS] for cluster, job, operators in bundle.index}
        present = self.client.get_registered_model(name).tags
        for tag in present.keys() - wanted.keys():
            if tag.startswith(JOB_TAG):
                self.client.delete_registered_model_tag(name, tag)
        for tag, value in wanted.items():
            if present.get(tag) != value:
                self.client.set_registered_model_tag(name, tag, value)

    def find_aliased(self, alias: str) -> ReviewedVersion | None:
        """Return the version that an alias names, None when it names none, or one that is not of this project."""
        result = find_alias(self.client, self.settings.registered_model, alias)
        return None if result is None or VERSION_TAG not in result.tags else _reviewed(result)

    def list_reviewed(self) -> list[ReviewedVersion]:
        """Return every registered version with its tags."""
        return list(map(_reviewed, list_versions(self.client, self.settings.registered_model)))

    def find_number(self, alias: str) -> int | None:
        """Return the number of the version that an alias names, whatever that version is."""
        result = find_alias(self.client, self.settings.registered_model, alias)
        return None if result is None else int(result.version)

    def read_champion(self) -> Champion:
        """Return the version that plans use, with its models, and what of aliases cannot be followed."""
        versions, aliased, pinned = self.list_reviewed(), self.find_number(CHAMPION), self.find_number(PINNED)
        problems, lost = list[str](), list[str]()
        known = {one.number: one for one in versions}
        if aliased is not None and not (aliased in known and known[aliased].is_ours):
            problems.append(
                f"alias {CHAMPION} names version {aliased}, which is not of this project's trainings (it has no tag "
                f"{VERSION_TAG}): not followed"
            )
        for number in rank_usable(versions, aliased, pinned):
            try:
                bundle = self.read_number(number)
            except (BundleError, StopIteration) as error:
                reported = str(error) or "there is no bundle of models in it"
                lost.append(f"version {number} cannot be used: {reported}")
                continue
            return Champion(known[number], bundle, tuple(problems), tuple(lost))
        return Champion(None, None, tuple(problems), tuple(lost))

    def read_review(self, champion: ReviewedVersion | None) -> ReviewOrders:
        """Return what persons have said of the registered versions."""
        number = None if champion is None else champion.number
        return read_review(self.list_reviewed(), number, self.find_number(PINNED), self.is_usable)

    def read_orders(self, champion: ReviewedVersion | None) -> tuple[ReviewOrders, dict[int, FleetBundle]]:
        """Return what persons have said, and the bundles of the versions whose models single jobs shall have."""
        review = self.read_review(champion)
        numbers = sorted({number for number, _ in review.orders.values() if number is not None})
        bundles = {number: self.read_number(number) for number in numbers}
        return drop_impossible(review, {number: one.jobs() for number, one in bundles.items()}), bundles

    def make_champion(self, to: ReviewedVersion, at: str) -> None:
        """Let plans use a version from now on; ``at``: when, as text."""
        self.set_tag(to.number, PROMOTED_TAG, at)
        self.point(CHAMPION, to)

    def keep_champion(self, champion: ReviewedVersion, at: str) -> None:
        """Let the alias name the version that plans use, and remember that it was champion."""
        marked = {one.number: one.was_champion for one in self.list_reviewed()}
        if not marked.get(champion.number) or self.find_number(CHAMPION) != champion.number:
            self.make_champion(champion, at)

    def read_run(self, number: int) -> Run:
        """Return the run that made a version."""
        one = self.client.get_model_version(self.settings.registered_model, str(number))
        return self.client.get_run(one.run_id)

    def read_document(self, run: Run, path: str) -> Any:
        """Return what a run has logged as JSON; None where it has no such file, as one of an earlier release."""
        known = {item.path for item in self.client.list_artifacts(run.info.run_id)}
        return mlflow.artifacts.load_dict(f"{run.info.artifact_uri}/{path}") if path in known else None

    def read_judged(self, run: Run) -> list[dict[str, object]]:
        """Return the rows of JOB_TABLE of a run; none of a run of an earlier release."""
        table = self.read_document(run, JOB_TABLE) or {"columns": [], "data": []}
        return [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]

    def describe(self, run: Run, note: str) -> None:
        """Set the description of a run, and of its versions that still have the same."""
        before, name = run.data.tags.get(NOTE_TAG), self.settings.registered_model
        for version in self.client.search_model_versions(f"name = '{name}' and run_id = '{run.info.run_id}'"):
            if version.description == before:
                self.client.update_model_version(name, version.version, note)
        self.client.set_tag(run.info.run_id, NOTE_TAG, note)

    def drop_alias(self, alias: str) -> None:
        """Take an alias away."""
        self.client.delete_registered_model_alias(self.settings.registered_model, alias)

    def set_tag(self, number: int, tag: str, value: str) -> None:
        """Set a tag of a version; an empty value takes it away."""
        if value:
            self.client.set_model_version_tag(self.settings.registered_model, str(number), tag, value)
        else:
            self.client.delete_model_version_tag(self.settings.registered_model, str(number), tag)

    def point(self, alias: str, to: ReviewedVersion) -> None:
        """Let an alias name a version."""
        self.client.set_registered_model_alias(self.settings.registered_model, alias, str(to.number))

    def load(self, alias: str) -> FleetBundle | None:
        """Return the bundle that an alias names, None when it names none."""
        if alias == CHAMPION:
            champion = self.read_champion()
            for problem in (*champion.problems, *champion.lost):
                log.warning("%s", problem)
            return champion.bundle
        result = self.find_aliased(alias)
        return None if result is None else self.read_number(result.number)

    def load_version(self, model_version: str) -> FleetBundle | None:
        """Return the bundle of a model version, whether an alias names it or not; None when it is not registered."""
        numbers = [one.number for one in self.list_reviewed() if one.model_version == model_version]
        return self.read_number(max(numbers)) if numbers else None

    def is_usable(self, number: int) -> bool:
        """Whether the models of a version can be read: its files are there, and whole."""
        try:
            self.read_number(number)
        except (BundleError, StopIteration):
            return False
        return True

    def read_number(self, number: int) -> FleetBundle:
        """Return the bundle of a number of the registry."""
        return FleetBundle.from_bytes(read_bundle(self.settings.registered_model, number))


def _reviewed(version: ModelVersion) -> ReviewedVersion:
    return ReviewedVersion(int(version.version), dict(version.tags))


def _example_of(bundle: FleetBundle) -> pd.DataFrame | None:
    """Return a row that the model answers: its first operator with a curve, where it was observed, at half load."""
    arrays = bundle.arrays
    known = np.flatnonzero((arrays["grid_count"] > 0) & (arrays["observed_count"] > 0))
    if not len(known):
        return None
    row = int(known[0])
    at = int(arrays["observed_count"][:row].sum())
    asked = (*bundle.operators()[row], int(arrays["observed"][at]), float(arrays["observed_per_s"][at]) / 2.0)
    return pd.DataFrame([asked], columns=[*(name for name, _ in _INPUTS), "load_per_s"])


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


def _tag_of(cluster: str, job: str) -> str:
    """Return the name of a job's tag, in the letters that MLflow lets a tag have.

    >>> _tag_of("eu", "orders (v2)"), _tag_of("eu", "")
    ('job eu/orders _v2_', 'job eu/_')
    """
    names = (re.sub(r"[^\w.\- :]|^\.*$", "_", name) for name in (cluster, job))
    return f"{JOB_TAG}{'/'.join(names)}"[:TAG_NAME_LETTERS].rstrip("/")


def _logged_id(source: str) -> str | None:
    """Return the id of a logged model from its address; None of another one, as of a run of before MLflow 3.

    >>> _logged_id("models:/m-8b5e48b9dae0"), _logged_id("runs:/8b5e48b9dae0/model")
    ('m-8b5e48b9dae0', None)
    """
    name = source.removeprefix("models:/")
    return name if name != source and name.startswith("m-") else None
