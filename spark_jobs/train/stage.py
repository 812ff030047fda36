"""Stage train: silver -> one bundle of models in MLflow, judged against the champion -> gold.model_versions.

The version of a model is a hash of what it is made from.  A finished run of that version is used again, so the stage
may be killed anywhere and run again: there is never a second registered model of one version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime

from mlflow.entities import Run
from pyspark.sql import SparkSession

from include.arrow_rows import arrow_rows
from include.lake_table import is_in
from include.model_registry import CHALLENGER, CHAMPION
from include.settings import Settings
from include.stage_request import StageRequest
from include.tables import MODEL_JOBS, MODEL_VERSIONS, OBSERVATIONS
from include.utc import format_utc, parse_utc
from models.bundle.fleet_bundle import FleetBundle
from models.training.model_review import ReviewedVersion, ReviewOrders, decide_promotion
from spark_jobs.lake import Lake
from spark_jobs.model_store import Champion, ModelStore
from spark_jobs.timestamps import as_of_slice, timestamp_literal
from spark_jobs.train import training_data as data
from spark_jobs.train.forecast_scores import forecast_record
from spark_jobs.train.train_fleet import ModelPins, train_fleet
from spark_jobs.train.training_log import RESULT_TAG, log_training

MODEL_FORMAT = 7  # increased when the same rows and settings shall give different models


class NothingToLearnError(RuntimeError):
    """There are no usable observations; the message says what to do."""


def model_version(settings: Settings, hashes: list[str]) -> str:
    """Return the hash of everything that a model is made from, the code apart."""
    made_from = {
        "format": MODEL_FORMAT,
        "training": settings.training.model_dump(exclude={"promotion", "plan_cost_jobs"}),
        "slots_max": {name: cluster.slots_max for name, cluster in sorted(settings.clusters.items())},
        "content": hashes,
    }
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class RegistryState:
    """What was registered before a training.

    Attributes:
        champion: the version that plans use.
        review: what persons have said.
        bundles: of the versions whose models single jobs shall have.
    """

    champion: Champion
    review: ReviewOrders
    bundles: Mapping[int, FleetBundle]

    @property
    def hashes(self) -> list[str]:
        """What of it changes the models that come of the same rows."""
        return [f"{'/'.join(job)}: {number}" for job, (number, _) in sorted(self.review.orders.items())]


def read_registry(store: ModelStore, as_of: datetime) -> RegistryState:
    """Return what was registered, and let the alias of the champion name what plans use.

    What persons set in MLflow is followed where it can be, and said where it cannot.
    """
    champion = store.read_champion()
    if champion.registered is not None:
        store.keep_champion(champion.registered, format_utc(as_of))
    return RegistryState(champion, *store.read_orders(champion.registered))


def train(
    store: ModelStore,
    lake: Lake,
    settings: Settings,
    inputs: data.TrainingInputs,
    known: RegistryState,
    *,
    jobs: str | None = None,
) -> Run:
    """Return the finished run for the inputs: the one that is there, or a new one.

    Raises:
        NothingToLearnError: there are no observations.
    """
    content = data.hash_observations(inputs.observations, inputs.as_of)
    if not content.rows:
        chosen = "" if jobs is None else f" of a job that {jobs!r} matches"
        raise NothingToLearnError(
            f"no undisturbed observation in the {settings.training.lookback_days} days before "
            f"{format_utc(inputs.as_of)} in {lake.path(OBSERVATIONS)}{chosen}; ingest that time first (DAG "
            "tidewise_ingest)"
        )
    version = model_version(settings, [content.hash, *inputs.hashes, *known.hashes])
    if (done := store.find_finished(version)) is not None:
        return done
    forecasts = forecast_record(lake, inputs.as_of)
    champion = known.champion.bundle
    present = data.placed_operators(inputs.graphs)  # the windows on which it is scored bear the present names
    bundles = {number: one.with_names_of(present) for number, one in known.bundles.items()}
    with store.run(version, {}):  # open while it is fitted; FINISHED only when all of it is there
        trained = train_fleet(
            inputs,
            settings,
            version,
            content,
            champion=None if champion is None else champion.with_names_of(present),
            forecasts=forecasts,
            trained_at=find_trained_at(champion, lake),
            orders=ModelPins(known.review.orders, bundles),
        )
        log_training(store, inputs, settings, trained, forecasts)
    done = store.find_finished(version)
    if done is None:
        raise RuntimeError(f"MLflow does not show the run of model {version} as finished; run the stage again")
    return done


def find_trained_at(champion: FleetBundle | None, lake: Lake) -> datetime | None:
    """Return as of when a model was trained; None where that is not recorded."""
    if champion is None:
        return None
    where = is_in("model_version", [champion.model_version])
    trained = lake.few(MODEL_VERSIONS).read(["as_of"], date.min, date.max, where)["as_of"].to_pylist()
    return min(trained, default=None)


def promote(
    store: ModelStore, made: ReviewedVersion, result: Mapping[str, object], promotion: str, as_of: datetime
) -> str:
    """Move the aliases, unless a later training or a person has; returns why the model is not in use, or nothing."""
    challenger = store.find_aliased(CHALLENGER)
    if challenger is None or challenger.number < made.number:
        store.point(CHALLENGER, made)
    champion = store.read_champion().registered
    is_unmoved = (champion.model_version if champion else None) == result["champion_before"]
    number = None if champion is None else champion.number
    review = store.read_review(champion)
    is_wanted, why = decide_promotion(
        str(result["gate"]), made.number, review, number, is_unmoved=is_unmoved, promotion=promotion
    )
    if is_wanted:
        store.make_champion(made, format_utc(as_of))
    return "" if is_wanted or number == made.number else why


def list_job_rows(
    request: StageRequest, model_version: str, bundle: FleetBundle, judged: Sequence[Mapping[str, object]]
) -> list[dict[str, object]]:
    """Return the rows of gold.model_jobs: of every job of the bundle, and of those that were left out of it."""
    details = {(row["cluster"], row["job"]): row["detail"] for row in judged}
    made = {"as_of": request.as_of, "model_version": model_version, "date": request.as_of.date()}
    result = [
        made | one | {"detail": details.get((one["cluster"], one["job"])) or None} for one in bundle.describe_jobs()
    ]
    versions = bundle.versions_of_jobs()
    nothing = {"operators": 0, "curves": 0, "models_from": None}
    excluded = [key for key in details if key not in versions]
    return result + [
        made | nothing | {"cluster": key[0], "job": key[1], "detail": details[key] or None} for key in excluded
    ]


def write_rows(
    lake: Lake,
    request: StageRequest,
    result: Mapping[str, object],
    bundle: FleetBundle,
    judged: Sequence[Mapping[str, object]],
) -> None:
    """Write the training's row for ``as_of``, and before it those of its jobs."""
    trained_from = parse_utc(str(result["trained_from"]))
    row = {**result, "as_of": request.as_of, "trained_from": trained_from}
    jobs = arrow_rows(MODEL_JOBS, list_job_rows(request, str(result["model_version"]), bundle, judged))
    lake.replace(MODEL_JOBS, jobs, as_of_slice(request.as_of))
    rows = arrow_rows(MODEL_VERSIONS, [row])
    lake.few(MODEL_VERSIONS).replace(rows, f"as_of = {timestamp_literal(request.as_of)}")


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Train, judge, register; returns the counts of the stage.

    Raises:
        NothingToLearnError: no undisturbed observation lies in the look-back.
    """
    lake = Lake(spark, settings.paths.lake)
    with ThreadPoolExecutor() as pool:  # MLflow's first database takes seconds of Python, the inputs those of Java
        opening = pool.submit(ModelStore, settings.mlflow)
        inputs = data.read_inputs(lake, request.as_of, settings.training, request.jobs)
        store = opening.result()
    known = read_registry(store, request.as_of)
    done = train(store, lake, settings, inputs, known, jobs=request.jobs)
    result = json.loads(done.data.tags[RESULT_TAG])
    registered = store.register(done)
    not_in_use = promote(store, registered, result, settings.training.promotion, request.as_of)
    bundle = store.read_number(registered.number)
    store.name_operators(bundle)
    write_rows(lake, request, result, bundle, store.read_judged(done))
    champion = store.find_aliased(CHAMPION)
    return {
        "models": result["curves"],
        "champion": champion.model_version if champion else None,
        "not_in_use": not_in_use,
        "models_lost": "; ".join(known.champion.lost),
        "refused_by_review": "; ".join((*known.champion.problems, *known.review.problems)),
        **result,
    }
