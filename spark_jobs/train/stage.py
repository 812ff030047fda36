"""Stage train: silver -> one bundle of models in MLflow, judged against the champion -> gold.model_versions.

The version of a model is a hash of what it is made from.  A finished run of that version is used again, so the stage
may be killed anywhere and run again: there is never a second registered model of one version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import numpy as np
from mlflow.entities import Run
from pyspark.sql import SparkSession

from include.arrow_rows import arrow_rows
from include.lake_table import is_in
from include.model_registry import CHALLENGER, CHAMPION
from include.settings import Settings
from include.stages import StageRequest
from include.tables import MODEL_JOBS, MODEL_VERSIONS, OBSERVATIONS
from include.utc import format_utc, parse_utc
from models.bundle import FleetBundle
from models.training.gate import Verdict
from spark_jobs.lake import Lake
from spark_jobs.model_store import ModelStore, Registered
from spark_jobs.timestamps import as_of_slice, timestamp_literal
from spark_jobs.train import training_data as data
from spark_jobs.train.forecast_scores import forecast_record
from spark_jobs.train.train_fleet import Champion, train_fleet
from spark_jobs.train.training_log import RESULT_TAG, log_training

MODEL_FORMAT = 6  # increased when the same rows and settings shall give different models


class NothingToLearnError(RuntimeError):
    """There are no usable observations; the message says what to do."""


def model_version(settings: Settings, hashes: list[str]) -> str:
    """Return the hash of everything that a model is made from, the code apart."""
    made_from = {
        "format": MODEL_FORMAT,
        "training": settings.training.model_dump(exclude={"promotion"}),
        "slots_max": {name: cluster.slots_max for name, cluster in sorted(settings.clusters.items())},
        "content": hashes,
    }
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:16]


def content_of(inputs: data.Inputs, settings: Settings, where: str) -> data.Content:
    """Return what the observations are.

    Raises:
        NothingToLearnError: there are none.
    """
    result = data.hash_observations(inputs.observations, inputs.as_of)
    if not result.rows:
        raise NothingToLearnError(
            f"no undisturbed observation in the {settings.training.lookback_days} days before "
            f"{format_utc(inputs.as_of)} in {where}; ingest that time first (DAG tidewise_ingest)"
        )
    return result


def train(store: ModelStore, lake: Lake, settings: Settings, inputs: data.Inputs) -> Run:
    """Return the finished run for the inputs: the one that is there, or a new one."""
    content = content_of(inputs, settings, lake.path(OBSERVATIONS))
    hashes = [
        content.hash,
        data.content_hash(inputs.events),
        data.content_hash(inputs.graphs),
    ]
    version = model_version(settings, hashes)
    if (done := store.find_finished(version)) is not None:
        return done
    forecasts = forecast_record(lake, inputs.as_of)
    champion = champion_of(store, lake)
    if champion is not None:  # the windows on which it is scored bear the present names
        present = data.placed_operators(inputs.graphs)
        champion = replace(champion, bundle=champion.bundle.with_names_of(present))
    trained = train_fleet(inputs, settings, version, content, champion=champion, forecasts=forecasts)
    log_training(store, inputs, settings, trained, forecasts)
    done = store.find_finished(version)
    if done is None:
        raise RuntimeError(f"MLflow does not show the run of model {version} as finished; run the stage again")
    return done


def champion_of(store: ModelStore, lake: Lake) -> Champion | None:
    """Return the model in use, and as of when it was trained."""
    bundle = store.load(CHAMPION)
    if bundle is None:
        return None
    where = is_in("model_version", [bundle.model_version])
    trained = lake.few(MODEL_VERSIONS).read(["as_of"], date.min, date.max, where)["as_of"].to_pylist()
    return Champion(bundle, min(trained, default=None))


def promote(store: ModelStore, made: Registered, result: Mapping[str, object], promotion: str) -> None:
    """Move the aliases, unless a later training has already moved them on."""
    challenger = store.find_aliased(CHALLENGER)
    if challenger is None or challenger.number < made.number:
        store.point(CHALLENGER, made)
    champion = store.find_aliased(CHAMPION)
    unmoved = (champion.model_version if champion else None) == result["champion_before"]
    if promotion == "gate" and result["gate"] in {Verdict.FIRST, Verdict.PASSED} and unmoved:
        store.point(CHAMPION, made)


def job_rows(request: StageRequest, model_version: str, bundle: FleetBundle) -> list[dict[str, object]]:
    """Return the rows of gold.model_jobs."""
    has_curve = bundle.arrays["grid_count"] > 0
    ends = np.cumsum(bundle.arrays["operator_count"])
    curves = [int(part.sum()) for part in np.split(has_curve, ends[:-1])] if len(ends) else []
    made = {"as_of": request.as_of, "model_version": model_version, "date": request.as_of.date()}
    return [
        made | {"cluster": cluster, "job": job, "operators": len(names), "curves": count}
        for (cluster, job, names), count in zip(bundle.index, curves, strict=True)
    ]


def write_rows(lake: Lake, request: StageRequest, result: Mapping[str, object], bundle: FleetBundle) -> None:
    """Write the training's row for ``as_of``, and before it those of its jobs."""
    trained_from = parse_utc(str(result["trained_from"]))
    row = {**result, "as_of": request.as_of, "trained_from": trained_from}
    jobs = arrow_rows(MODEL_JOBS, job_rows(request, str(result["model_version"]), bundle))
    lake.few(MODEL_JOBS).replace(jobs, as_of_slice(request.as_of))
    rows = arrow_rows(MODEL_VERSIONS, [row])
    lake.few(MODEL_VERSIONS).replace(rows, f"as_of = {timestamp_literal(request.as_of)}")


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Train, judge, register; returns the counts of the stage.

    Raises:
        NothingToLearnError: no undisturbed observation lies in the look-back.
    """
    lake, store = Lake(spark, settings.paths.lake), ModelStore(settings.mlflow)
    inputs = data.read_inputs(lake, request.as_of, settings.training)
    try:
        done = train(store, lake, settings, inputs)
    finally:
        inputs.unpersist()
    result = json.loads(done.data.tags[RESULT_TAG])
    registered = store.register(done)
    promote(store, registered, result, settings.training.promotion)
    bundle = store.read(registered)
    write_rows(lake, request, result, bundle)
    champion = store.find_aliased(CHAMPION)
    return {"models": result["curves"], "champion": champion.model_version if champion else None, **result}
