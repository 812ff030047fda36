"""Stage plan_costs: a training -> what plans by its models would have cost, in the training's run of MLflow.

It reads models and moves none: it may fail or be left out, and be run again; a run that has the figures keeps them.
"""

from __future__ import annotations

from datetime import date, datetime

from mlflow.entities import Run
from pyspark.sql import SparkSession

from include.lake_table import is_in
from include.settings import Settings
from include.stage_request import StageRequest
from include.tables import MODEL_VERSIONS
from include.utc import format_utc
from lab.stages.plan_costs.costs_log import JOBS_METRIC, log_costs
from lab.stages.plan_costs.fitted_models import read_fitted
from lab.stages.plan_costs.fleet_costs import compare_on_sample
from spark_jobs.lake import Lake
from spark_jobs.model_store import ModelStore


class NoTrainingError(RuntimeError):
    """No training of that moment has ended; the message says what to run."""


def find_training(lake: Lake, store: ModelStore, as_of: datetime) -> tuple[Run, str | None]:
    """Return the finished run of a training, and the model version that was champion before it.

    Raises:
        NoTrainingError: there is none as of that time.
    """
    where = is_in("as_of", [as_of])
    rows = lake.few(MODEL_VERSIONS).read(["model_version", "champion_before"], date.min, date.max, where).to_pylist()
    run = store.find_finished(rows[0]["model_version"]) if rows else None
    if run is None:
        raise NoTrainingError(
            f"no training as of {format_utc(as_of)} in {lake.path(MODEL_VERSIONS)} and MLflow: run the train stage for "
            f"that time first (DAG tidewise_train)"
        )
    return run, rows[0]["champion_before"]


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Compare plans by a training's models with those by the champion before it; returns the counts of the stage.

    Raises:
        NoTrainingError: no training as of ``request.as_of`` has ended.
        NoModelError: its models are not registered.
    """
    lake, store = Lake(spark, settings.paths.lake), ModelStore(settings.mlflow)
    training, before = find_training(lake, store, request.as_of)
    is_compared = JOBS_METRIC in training.data.metrics
    champion = store.load_version(before) if before and settings.training.plan_cost_jobs and not is_compared else None
    if champion is None:
        return {"asked": 0, "compared": 0}
    fitted = read_fitted(store, training)
    # A training scores the champion under the present names of operators, with which its own models were fitted.
    plans = compare_on_sample(lake, settings, request.as_of, champion.with_names_of(fitted.placed), fitted)
    log_costs(store, training, plans)
    return {"asked": plans.asked, "compared": plans.difference.jobs, "plans": plans.sentence}
