"""One MLflow run that holds everything about a training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import mlflow
import numpy as np
import pandas as pd
from mlflow.data.delta_dataset_source import DeltaDatasetSource
from mlflow.data.meta_dataset import MetaDataset

from include.settings import Settings
from include.stage_names import Stage
from include.tables import OBSERVATIONS
from include.version import stage_version
from models.training.job_gate import JobVerdict, ModelChoice
from spark_jobs.comparison_page import COMPARISON_PAGE, COMPARISON_ROWS, render_comparison
from spark_jobs.model_store import GATE_TAG, JOB_TABLE, NOTE_TAG, ModelStore
from spark_jobs.train import training_data as data
from spark_jobs.train.changes import describe_changes
from spark_jobs.train.comparison_rows import list_comparison
from spark_jobs.train.day_windows import OPERATOR
from spark_jobs.train.description import (
    CAPACITY_PLOT,
    COVERAGE_PLOT,
    FORECAST_PLOT,
    GATE_PLOT,
    GATE_TABLE,
    LATENCY_PLOT,
    OPERATOR_TABLE,
    PRIOR_TABLE,
    RECOVERY_PLOT,
    describe_training,
)
from spark_jobs.train.forecast_scores import forecast_figure, forecast_measures
from spark_jobs.train.gate_plot import gate_figure, gate_table
from spark_jobs.train.interval_scores import coverage_figure
from spark_jobs.train.train_fleet import TrainingResult
from spark_jobs.train.training_plots import (
    capacity_figure,
    latency_figure,
    operator_table,
    prior_table,
    recovery_figure,
)

RUN_NAME_TAG = "mlflow.runName"
GROUPS = ("gate", "coverage", "capacity", "recovery", "latency", "forecast", "curves")  # as MLflow folds metrics
RESULT_TAG = "tidewise.result"  # the training's row of gold.model_versions as JSON, without as_of


def log_training(
    store: ModelStore,
    inputs: data.TrainingInputs,
    settings: Settings,
    trained: TrainingResult,
    forecasts: pd.DataFrame,
) -> None:
    """Write the open run of a training."""
    run_id = mlflow.active_run().info.run_id
    fitted, bundle, result = trained.assembled.bundle, trained.bundle, trained.result
    tags = {
        **{f"tidewise.version.{table}": str(number) for table, number in inputs.versions.items()},
        "tidewise.observations_hash": str(result["observations_hash"]),
        "tidewise.code_version": stage_version(Stage.TRAIN),
        GATE_TAG: str(result["gate"]),
        RESULT_TAG: json.dumps(result),
    }
    number = inputs.versions[OBSERVATIONS.name]
    path = f"{settings.paths.lake}/{OBSERVATIONS.relative_path}"
    changes = describe_changes(bundle, trained.champion, trained.gate)
    note = describe_training(
        inputs,
        settings.training,
        result,
        trained.measured,
        gate=trained.gate,
        source=f"{OBSERVATIONS.name}, Delta version {number}",
        run_id=run_id,
        changes=changes,
    )
    source = DeltaDatasetSource(path=path, delta_table_version=number)
    dataset = MetaDataset(source, name=OBSERVATIONS.name, digest=str(result["observations_hash"]))
    scored = trained.scores.capacity.dropna(subset=["error"]).groupby(list(OPERATOR))["error"]
    errors = scored.agg(error="sum", held="count").reset_index()
    table = operator_table(fitted, trained.assembled.operators, errors)
    name = f"{inputs.as_of:%Y-%m-%d %H:%M} {trained.gate.verdict}"
    mlflow.set_tags({**tags, NOTE_TAG: note, RUN_NAME_TAG: name})
    mlflow.log_params(settings.training.model_dump())
    known = {name: value for name, value in trained.measured.items() if np.isfinite(value)}
    mlflow.log_metrics(group_metrics(known))
    if len(forecasts):
        mlflow.log_metrics(group_metrics(forecast_measures(forecasts)))
        mlflow.log_figure(forecast_figure(forecasts), FORECAST_PLOT)
    mlflow.log_input(dataset, context="training")
    mlflow.log_table(table, OPERATOR_TABLE)
    mlflow.log_table(prior_table(bundle), PRIOR_TABLE)
    mlflow.log_table(judged_table(trained.judged), JOB_TABLE)
    mlflow.log_figure(capacity_figure(bundle), CAPACITY_PLOT)
    mlflow.log_figure(coverage_figure(trained.coverage), COVERAGE_PLOT)
    mlflow.log_figure(recovery_figure(trained.scores.recovery), RECOVERY_PLOT)
    mlflow.log_figure(latency_figure(bundle, trained.scores.latency), LATENCY_PLOT)
    mlflow.log_table(gate_table(trained.gate), GATE_TABLE)
    mlflow.log_figure(gate_figure(trained.gate, trained.scores.forward.capacity), GATE_PLOT)
    compared = list_comparison(trained, inputs.as_of)
    mlflow.log_dict(compared, COMPARISON_ROWS)
    mlflow.log_text(render_comparison(compared), COMPARISON_PAGE)
    if bundle is not fitted:
        store.log_fitted(fitted)
    store.log_bundle(bundle)


def judged_table(judged: Sequence[JobVerdict]) -> pd.DataFrame:
    """Return one row per job, those without new models first: whose models it has, and why."""
    columns = ("cluster", "job", "models", "detail", "rows")
    ordered = sorted(judged, key=lambda one: (one.choice is ModelChoice.NEW, one.job))
    rows = [(*one.job, str(one.choice), one.detail, one.compared) for one in ordered]
    return pd.DataFrame(rows, columns=list(columns))


def group_metrics(measured: Mapping[str, float]) -> dict[str, float]:
    """Return metrics by the names under which MLflow folds them: ``gate/latency`` of ``gate_latency``.

    >>> group_metrics({"coverage_80_all": 0.8, "operators": 72.0})
    {'coverage/80_all': 0.8, 'fleet/operators': 72.0}
    """
    result = {}
    for name, value in measured.items():
        group, _, rest = name.partition("_")
        result[f"{group}/{rest}" if rest and group in GROUPS else f"fleet/{name}"] = value
    return result
