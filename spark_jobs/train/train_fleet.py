"""One training: fits and scores on the executors, then one MLflow run that holds everything about it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import mlflow
import numpy as np
import pandas as pd
from mlflow.data.delta_dataset_source import DeltaDatasetSource
from mlflow.data.meta_dataset import MetaDataset
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.settings import Cluster, Settings
from include.tables import OBSERVATIONS
from include.version import code_version
from models.bundle import FleetBundle
from spark_jobs.model_store import NOTE_TAG, ModelStore
from spark_jobs.train import training_data as data
from spark_jobs.train.build_bundle import Assembled, assemble
from spark_jobs.train.description import (
    CAPACITY_PLOT,
    FORECAST_PLOT,
    OPERATOR_TABLE,
    PRIOR_TABLE,
    RECOVERY_PLOT,
    describe_training,
)
from spark_jobs.train.fits import batches, fit_capacities, fit_latencies
from spark_jobs.train.forecast_scores import forecast_figure, forecast_measures
from spark_jobs.train.holdout_scores import judge, recovery_errors, score_capacities, score_latencies, score_recoveries
from spark_jobs.train.training_plots import capacity_figure, operator_table, prior_table, recovery_figure

RESULT_TAG = "tidewise.result"  # the training's row of gold.model_versions as JSON, without as_of


@dataclass(frozen=True, slots=True)
class Scores:
    """Held-back errors: per operator, per job and per event."""

    capacity: pd.DataFrame
    latency: pd.DataFrame
    recovery: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Trained:
    """Everything about one training, before it is logged.

    Attributes:
        assembled: the bundle and its parts.
        scores: held-back errors.
        measured: metrics by name.
        result: the row of gold.model_versions without as_of, and ``curves``.
    """

    assembled: Assembled
    scores: Scores
    measured: dict[str, float]
    result: dict[str, object]


def grid_tops(points: DataFrame, graphs: DataFrame, settings: Settings) -> DataFrame:
    """Add ``top``: a curve reaches as far as slots and key groups allow, at least to the observed parallelisms."""
    slots = F.lit(Cluster().slots_max)
    for name, cluster in settings.clusters.items():
        slots = F.when(F.col("cluster") == name, cluster.slots_max).otherwise(slots)
    allowed = F.least(slots, F.coalesce(F.col("max_parallelism"), slots))
    groups = graphs.select(*data.OPERATOR, "max_parallelism")
    joined = points.join(groups, on=list(data.OPERATOR), how="left")
    return joined.select(*points.columns, F.greatest("largest", allowed).alias("top"))


def fit_fleet(
    inputs: data.Inputs, settings: Settings, model_version: str, operators: int, champion: FleetBundle | None
) -> Assembled:
    """Fit every operator and job, started from the champion's hyperparameters, and put the bundle together."""
    parallel = inputs.observations.sparkSession.sparkContext.defaultParallelism
    count = batches(operators, parallel)
    start = dict(zip(champion.operators(), champion.arrays["scalars"][:, 1].tolist(), strict=True)) if champion else {}
    points = grid_tops(data.capacity_points(inputs.observations, settings.training), inputs.graphs, settings)
    bins = data.latency_bins(data.job_windows(inputs.observations))
    return assemble(
        model_version,
        known=data.operator_kinds(inputs.graphs).toPandas(),
        selectivities=data.selectivities(inputs.observations).toPandas(),
        capacities=fit_capacities(points, start, count).toPandas(),
        latencies=fit_latencies(bins, parallel).toPandas(),
        events=inputs.events.toPandas(),
    )


def score_fleet(inputs: data.Inputs, settings: Settings, assembled: Assembled, champion: FleetBundle | None) -> Scores:
    """Score the new models, and the champion beside them, on held-back rows."""
    spark = inputs.observations.sparkSession
    bundle = assembled.bundle
    held = data.held_capacities(inputs.observations, settings.training)
    windows = data.held_windows(data.job_windows(inputs.observations))
    kinds = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in inputs.events.schema)
    events = spark.createDataFrame(assembled.events, f"{kinds}, downtime_without_s DOUBLE")
    shares = data.source_shares(inputs.observations)
    return Scores(
        score_capacities(held, bundle, champion).toPandas(),
        score_latencies(windows, bundle).toPandas(),
        score_recoveries(events, inputs.graphs, shares, bundle).toPandas(),
    )


def measures(assembled: Assembled, scores: Scores) -> dict[str, float]:
    """Return everything measured, by name; a measure without data is NaN."""
    operators, capacity, recovery = assembled.operators, scores.capacity, scores.recovery
    seen, predicted = recovery["seen_s"].to_numpy(float), recovery["predicted_s"].to_numpy(float)
    comparable = np.isfinite(seen) & np.isfinite(predicted) & (seen > 0)
    downtime = assembled.events["downtime_s"].to_numpy(float)
    still = downtime > 0
    without = assembled.events["downtime_without_s"].to_numpy(float)[still]
    curves = operators["slope_per_s"].notna()
    return {
        "capacity_mape": _ratio(capacity["error"].sum(), capacity["held"].sum()),
        "capacity_coverage_80": _ratio(capacity["inside"].sum(), capacity["held"].sum()),
        "capacity_held": float(capacity["held"].sum()),
        "compared": float(capacity["compared"].sum()),
        "compared_mape": _ratio(capacity["compared_error"].sum(), capacity["compared"].sum()),
        "champion_capacity_mape": _ratio(capacity["champion_error"].sum(), capacity["compared"].sum()),
        "latency_mape": _ratio(scores.latency["error"].sum(), scores.latency["held"].sum()),
        "recovery_mape": _mean(recovery_errors(recovery)),
        "recovery_mape_without_resolution": _mean(np.abs(predicted - seen)[comparable] / seen[comparable]),
        "recovery_events": float(comparable.sum()),
        "recovery_predicted_unbounded": float(np.isinf(predicted).sum()),
        "downtime_mape": _mean(np.abs(without - downtime[still]) / downtime[still]),
        "events": float(len(downtime)),
        "operators": float(len(operators)),
        "curves": float(curves.sum()),
        "curves_line_only": float((curves & operators["length_scale"].isna()).sum()),
        "curves_at_bound": float((operators["at_bound"] == True).sum()),  # noqa: E712 - None where there is no curve
        "curves_of_idle_operators": float((operators["idle"] == True).sum()),  # noqa: E712
        "scaling_error": assembled.scaling_error,
    }


def _ratio(total: float, count: float) -> float:
    return float(total) / float(count) if count else float("nan")


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def train_fleet(
    inputs: data.Inputs,
    settings: Settings,
    model_version: str,
    content: dict[str, object],
    champion: FleetBundle | None,
) -> Trained:
    """Fit, score and judge; ``content`` is the row of data.observed_content."""
    assembled = fit_fleet(inputs, settings, model_version, int(str(content["operators"])), champion)
    scores = score_fleet(inputs, settings, assembled, champion)
    measured = measures(assembled, scores)
    champion_mape = None if champion is None else measured["champion_capacity_mape"]
    compared = int(measured["compared"])
    gate = judge(measured["compared_mape"], champion_mape, compared, settings.training.gate_tolerance)
    errors = ("capacity_mape", "recovery_mape", "latency_mape", "champion_capacity_mape")
    result = {
        "model_version": model_version,
        "trained_from": content["trained_from"],
        "jobs": len(assembled.bundle.index),
        "operators": len(assembled.operators),
        "observations": content["rows"],
        "observations_hash": content["hash"],
        **{name: measured[name] if np.isfinite(measured[name]) else None for name in errors},
        "champion_before": champion.model_version if champion else None,
        "gate": gate.verdict,
        "gate_detail": gate.detail,
        "code_version": code_version(),
        "curves": int(measured["curves"]),
    }
    return Trained(assembled, scores, measured, result)


def log_training(
    store: ModelStore, inputs: data.Inputs, settings: Settings, trained: Trained, forecasts: pd.DataFrame
) -> None:
    """Write one MLflow run; it becomes FINISHED only when all of it is there.

    ``forecasts`` is what forecast_scores.forecast_record returns.
    """
    bundle, result = trained.assembled.bundle, trained.result
    tags = {
        **{f"tidewise.version.{table}": str(number) for table, number in inputs.versions.items()},
        "tidewise.observations_hash": str(result["observations_hash"]),
        "tidewise.code_version": code_version(),
        "tidewise.gate": str(result["gate"]),
        RESULT_TAG: json.dumps(result),
    }
    number = inputs.versions[OBSERVATIONS.name]
    path = f"{settings.paths.lake}/{OBSERVATIONS.relative_path}"
    note = describe_training(inputs, settings.training, result, trained.measured, f"{path}, Delta version {number}")
    source = DeltaDatasetSource(path=path, delta_table_version=number)
    dataset = MetaDataset(source, name=OBSERVATIONS.name, digest=str(result["observations_hash"]))
    table = operator_table(bundle, trained.assembled.operators, trained.scores.capacity)
    with store.run(bundle.model_version, tags | {NOTE_TAG: note}):
        mlflow.log_params(settings.training.model_dump())
        mlflow.log_metrics({name: value for name, value in trained.measured.items() if np.isfinite(value)})
        if len(forecasts):
            mlflow.log_metrics(forecast_measures(forecasts))
            mlflow.log_figure(forecast_figure(forecasts), FORECAST_PLOT)
        mlflow.log_input(dataset, context="training")
        mlflow.log_table(table, OPERATOR_TABLE)
        mlflow.log_table(prior_table(bundle), PRIOR_TABLE)
        mlflow.log_figure(capacity_figure(bundle), CAPACITY_PLOT)
        mlflow.log_figure(recovery_figure(trained.scores.recovery), RECOVERY_PLOT)
        store.log_bundle(bundle)
