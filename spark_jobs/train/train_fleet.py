"""One training: fits and scores on the executors, a trial beside them, and the verdict of the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.settings import Cluster, Settings
from include.stages import Stage
from include.utc import parse_utc
from include.version import stage_version
from models.bundle import FleetBundle
from spark_jobs.session import threads
from spark_jobs.timestamps import timestamp_column
from spark_jobs.train import training_data as data
from spark_jobs.train.build_bundle import Assembled, assemble
from spark_jobs.train.build_recovery import with_intervals
from spark_jobs.train.edge_ratios import fit_edge_ratios
from spark_jobs.train.fits import batches, fit_capacities, fit_latencies
from spark_jobs.train.forward_scores import (
    ForwardScores,
    forward_capacities,
    forward_since,
    inputs_before,
    score_capacities_forward,
    score_recoveries_forward,
)
from spark_jobs.train.gate import Gate, judge
from spark_jobs.train.gate_criteria import list_criteria
from spark_jobs.train.holdout_scores import score_capacities, score_latencies
from spark_jobs.train.interval_scores import (
    calibrate_bundle,
    coverage_measures,
    forward_residuals,
    measure_coverage,
)
from spark_jobs.train.recovery_scores import predict_recoveries
from spark_jobs.train.training_measures import Scores, gate_measures, measures


@dataclass(frozen=True, slots=True)
class Trained:
    """Everything about one training, before it is logged.

    Attributes:
        assembled: the bundle and its parts.
        scores: held-back errors.
        measured: metrics by name.
        gate: the verdict with its criteria.
        result: the row of gold.model_versions without as_of, and ``curves``.
        coverage: rows of interval_scores.measure_coverage.
        champion: the model in use before; None before the first.
    """

    assembled: Assembled
    scores: Scores
    measured: dict[str, float]
    gate: Gate
    result: dict[str, object]
    coverage: pd.DataFrame
    champion: FleetBundle | None


@dataclass(frozen=True, slots=True)
class Champion:
    """The model in use.

    Attributes:
        bundle: its models.
        trained_at: as of when it was trained; None when that is not recorded.
    """

    bundle: FleetBundle
    trained_at: datetime | None


def grid_tops(points: DataFrame, graphs: DataFrame, settings: Settings) -> DataFrame:
    """Add ``key_groups`` and ``top``: a curve reaches as far as slots and key groups allow, and what was observed."""
    slots = F.lit(Cluster().slots_max)
    for name, cluster in settings.clusters.items():
        slots = F.when(F.col("cluster") == name, cluster.slots_max).otherwise(slots)
    allowed = F.least(slots, F.coalesce(F.col("max_parallelism"), slots))
    groups = graphs.select(*data.OPERATOR, "max_parallelism")
    joined = points.join(groups, on=list(data.OPERATOR), how="left")
    top, key_groups = F.greatest("largest", allowed).alias("top"), F.col("max_parallelism").cast("double")
    return joined.select(*points.columns, top, key_groups.alias("key_groups"))


def fit_fleet(
    inputs: data.Inputs, settings: Settings, model_version: str, operators: int, *, leaves_out: bool = True
) -> Assembled:
    """Fit every operator and job and put the bundle together; its intervals are not calibrated yet.

    With ``leaves_out`` curves are also tried on points that were hidden from them.
    """
    parallel = inputs.observations.sparkSession.sparkContext.defaultParallelism
    count = batches(operators, parallel)
    points = grid_tops(data.capacity_points(inputs.observations, settings.training), inputs.graphs, settings)
    bins = data.latency_bins(data.job_windows(inputs.observations))
    assembled = assemble(
        model_version,
        known=data.operator_kinds(inputs.graphs).toPandas(),
        selectivities=data.selectivities(inputs.observations).toPandas(),
        edges=fit_edge_ratios(inputs.observations, inputs.graphs, inputs.as_of).toPandas(),
        capacities=fit_capacities(points, count, leaves_out=leaves_out).toPandas(),
        latencies=fit_latencies(bins, parallel).toPandas(),
        events=inputs.events.toPandas(),
    )
    expected = predict_expected(inputs, settings, assembled)
    bundle = with_intervals(assembled.bundle, expected.sort_values("started_at")["standardised"].to_numpy(float))
    bundle = replace(bundle, placed=data.placed_operators(inputs.graphs))
    return replace(assembled, bundle=bundle, recoveries=expected)


def predict_expected(inputs: data.Inputs, settings: Settings, assembled: Assembled) -> pd.DataFrame:
    """Return what was to be expected of each event before it, by rows of recovery_scores.predict_recoveries."""
    kinds = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in inputs.events.schema)
    spark = inputs.observations.sparkSession
    events = spark.createDataFrame(assembled.events, f"{kinds}, downtime_before_s DOUBLE, downtimes_before DOUBLE")
    shares = data.source_shares(inputs.observations)
    lag_s = settings.ingest.caught_up_lag_s
    return predict_recoveries(events, inputs.graphs, shares, assembled.bundle, lag_s).toPandas()


def score_fleet(
    inputs: data.Inputs, settings: Settings, assembled: Assembled, champion: FleetBundle | None, forward: ForwardScores
) -> Scores:
    """Score the new models, and the champion beside them, on held-back rows."""
    bundle = assembled.bundle
    held = data.held_capacities(inputs.observations, settings.training)
    windows = data.held_windows(data.job_windows(inputs.observations))
    return Scores(
        score_capacities(held, bundle, champion).toPandas(),
        score_latencies(windows, bundle, champion).toPandas(),
        assembled.recoveries,
        forward,
    )


def score_forward(
    inputs: data.Inputs, settings: Settings, content: Mapping[str, object], champion: Champion | None
) -> ForwardScores:
    """Train a trial on what came before the last hours and score it, and the champion, on those."""
    first, trained_at = parse_utc(str(content["trained_from"])), champion.trained_at if champion else None
    since = forward_since(first, inputs.as_of, trained_at, settings.training)
    if since is None:
        return ForwardScores.none()
    before = inputs_before(inputs, since)
    bundle = champion.bundle if champion else None
    trial = fit_fleet(before, settings, "trial", int(str(content["operators"])), leaves_out=False).bundle
    hours = forward_capacities(inputs.observations, since, settings.training)
    events = inputs.events.where(F.col("started_at") >= timestamp_column(since))
    shares, lag_s = data.source_shares(before.observations), settings.ingest.caught_up_lag_s

    def predict(model: FleetBundle) -> pd.DataFrame:
        return predict_recoveries(events, inputs.graphs, shares, model, lag_s).toPandas()

    return ForwardScores(
        since,
        score_capacities_forward(hours, trial, bundle).toPandas(),
        score_recoveries_forward(predict(trial), predict(bundle) if bundle else None),
        forward_residuals(inputs.observations, since, settings.training, trial).toPandas(),
    )


def train_fleet(
    inputs: data.Inputs,
    settings: Settings,
    model_version: str,
    content: dict[str, object],
    *,
    champion: Champion | None,
    forecasts: pd.DataFrame,
) -> Trained:
    """Fit, score and judge.

    Args:
        inputs: what was read.
        settings: of the run.
        model_version: of this training.
        content: the row of training_data.hash_observations.
        champion: the model in use; None before the first.
        forecasts: of forecast_scores.forecast_record.
    """
    bundle, operators = champion.bundle if champion else None, int(str(content["operators"]))
    with threads(inputs.observations.sparkSession) as pool:
        ahead = pool.submit(score_forward, inputs, settings, content, champion)
        fitted = fit_fleet(inputs, settings, model_version, operators)
        forward = ahead.result()
        assembled = replace(fitted, bundle=calibrate_bundle(fitted, forward.residuals))
        scores = score_fleet(inputs, settings, assembled, bundle, forward)
    gate = judge_fleet(inputs, settings, scores, forecasts, bundle)
    coverage = measure_coverage(assembled, forward.residuals)
    measured = {**measures(assembled, scores), **coverage_measures(coverage), **gate_measures(gate)}
    errors = ("capacity_mape", "recovery_mape", "latency_mape", "champion_capacity_mape")
    result = {
        "model_version": model_version,
        "trained_from": content["trained_from"],
        "jobs": len(assembled.bundle.index),
        "operators": len(assembled.operators),
        "observations": content["rows"],
        "observations_hash": content["hash"],
        **{name: measured[name] if np.isfinite(measured[name]) else None for name in errors},
        "champion_before": bundle.model_version if bundle else None,
        "gate": str(gate.verdict),
        "gate_detail": gate.detail,
        "compared": gate.compared,
        "code_version": stage_version(Stage.TRAIN),
        "curves": int(measured["curves"]),
    }
    return Trained(assembled, scores, measured, gate, result, coverage, bundle)


def judge_fleet(
    inputs: data.Inputs, settings: Settings, scores: Scores, forecasts: pd.DataFrame, champion: FleetBundle | None
) -> Gate:
    """Judge the challenger by everything that plans use."""
    known = set(champion.jobs()) if champion else set()
    knows = len(known & data.running_jobs(inputs))
    criteria = list_criteria(
        scores.capacity,
        scores.latency,
        scores.forward,
        forecasts,
        has_champion=knows > 0,
        tolerance=settings.training.gate_tolerance,
    )
    return judge(criteria, has_champion=champion is not None, champion_knows=knows)
