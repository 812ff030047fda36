"""Training from synthetic silver tables: what is learnt, how it is judged, and that it may be killed and repeated."""

from datetime import UTC, datetime, timedelta
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include.model_registry import BUNDLE_FILE
from include.settings import Settings
from include.stages import Stage, StageRequest
from include.tables import MODEL_VERSIONS, OBSERVATIONS
from models.capacity.fleet_prior import FleetPrior
from models.job_models import JobModels
from spark_jobs.lake import Lake
from spark_jobs.model_store import VERSION_TAG, ModelStore, NoModelError, load_bundle
from spark_jobs.train import stage as train
from spark_jobs.train import train_fleet as training_run
from spark_jobs.train import training_log
from tests.spark.synthetic_observations import AS_OF, CHAIN, DAY, OPERATORS, capacity, fill, observations, write

pytestmark = pytest.mark.spark


def request(as_of: datetime = AS_OF) -> StageRequest:
    return StageRequest(Stage.TRAIN, as_of)


def registered(store: ModelStore) -> list[str]:
    found = store.client.search_model_versions(f"name = '{store.settings.registered_model}'")
    return [version.tags[VERSION_TAG] for version in found]


def assert_learnt(models: JobModels) -> None:
    grid = np.arange(1, 13)
    for operator in ("parse", "count"):
        curve = models.capacity[operator]
        assert len(curve.parallelism) == 40  # key groups bound it below the cluster's slots
        assert curve.observed.tolist() == [2, 3, 4, 5, 6, 8]
        np.testing.assert_allclose(curve.mean_per_s[1:8], capacity(operator, grid)[1:8], rtol=0.06)
        assert curve.sd_per_s[39] / curve.mean_per_s[39] > curve.sd_per_s[3] / curve.mean_per_s[3]
    assert len(models.capacity["sink"].observed) >= 1  # idle all the time, yet better known than not
    for operator, (_, _, selectivity) in OPERATORS.items():
        assert models.selectivity[operator] == pytest.approx(selectivity)
    assert models.recovery.downtime_rescale_s == pytest.approx(30, rel=0.2)
    assert models.recovery.downtime_restart_s == pytest.approx(70, rel=0.2)
    assert models.recovery.checkpoint_interval_s == pytest.approx(10, rel=0.5)
    assert models.recovery.events == 6
    assert (np.diff(models.latency.latency_at_knots_ms) >= 0).all()
    np.testing.assert_allclose(models.latency.latency_ms([0.4, 0.8]), [50 / 0.6, 50 / 0.2], rtol=0.15)


def test_first_training_becomes_champion_and_a_rerun_changes_nothing(lake: Lake, settings: Settings) -> None:
    fill(lake, ["rides", "orders"])
    summary = train.run(lake.spark, settings, request())
    bundle = load_bundle(settings)
    assert bundle.jobs() == (("c5m", "orders"), ("c5m", "rides"))
    assert_learnt(bundle.for_job("c5m", "rides"))
    prior = FleetPrior.from_arrays(bundle.arrays)
    assert prior is not None
    taught = dict(zip(prior.kinds, prior.operators.tolist(), strict=True))
    assert (taught["map"], taught["keyed"]) == (2, 2)  # parse and count of both jobs
    rows = lake.read(MODEL_VERSIONS).collect()
    assert len(rows) == 1
    assert (rows[0]["gate"], rows[0]["jobs"], rows[0]["operators"]) == ("first", 2, 8)
    assert rows[0]["as_of"].replace(tzinfo=UTC) == AS_OF
    assert rows[0]["capacity_mape"] < 0.06
    assert rows[0]["recovery_mape"] < 0.2
    assert rows[0]["observations"] == 2 * 4 * 3 * 288

    again = train.run(lake.spark, settings, request())
    assert again == summary
    assert lake.read(MODEL_VERSIONS).collect() == rows
    assert registered(ModelStore(settings.mlflow)) == [bundle.model_version]
    assert load_bundle(settings).to_bytes() == bundle.to_bytes()


def test_run_holds_what_a_reviewer_needs_and_the_pyfunc_predicts(lake: Lake, settings: Settings) -> None:
    fill(lake, ["rides"])
    train.run(lake.spark, settings, request())
    store = ModelStore(settings.mlflow)
    bundle = load_bundle(settings)
    run = store.finished(bundle.model_version)
    assert run is not None
    files = {item.path for item in store.client.list_artifacts(run.info.run_id)}
    assert {"operators.json", "capacity_curves.png", "recovery.png", "gate.png", "gate.json"} <= files
    assert run.data.metrics["curves"] == 4
    assert run.data.metrics["curves_of_idle_operators"] == 2
    assert 0.6 < run.data.metrics["capacity_coverage_80"] < 0.95
    assert run.data.tags["tidewise.version.silver.observations"] == "1"
    assert run.inputs.dataset_inputs[0].dataset.name == "silver.observations"
    assert run.data.metrics["gate_capacity_seen_rows"] > 20  # hours x operators that were ahead of the trial
    assert run.data.metrics["gate_capacity_seen"] < run.data.metrics["gate_capacity_seen_reference"]
    assert (
        "**Gate**: first; no champion yet; capacity error of held-back windows" in run.data.tags["mlflow.note.content"]
    )
    table = store.client.load_table(run.info.experiment_id, "operators.json", run_ids=[run.info.run_id])
    assert table["operator"].tolist() == sorted(CHAIN)
    assert table.loc[table["operator"] == "parse", "capacity_at_observed"].iloc[0].startswith("2: ")

    model = mlflow.pyfunc.load_model(f"models:/{settings.mlflow.registered_model}@champion")
    asked = pd.DataFrame({"cluster": "c5m", "job": "rides", "operator": ["parse", "nobody"], "parallelism": [4, 4]})
    found = model.predict(asked)
    expected = bundle.for_job("c5m", "rides").capacity["parse"].mean_per_s[3]
    assert found["mean_per_s"].iloc[0] == expected
    assert np.isnan(found["mean_per_s"].iloc[1])


def test_a_run_killed_half_way_is_closed_and_made_again(
    lake: Lake, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake, ["rides"])
    store = ModelStore(settings.mlflow)

    class KilledError(BaseException):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    for target, name in ((training_log, "recovery_figure"), (ModelStore, "log_bundle"), (train, "promote")):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, killed)
            # A killed process runs no clean-up: MLflow is left with a run that is still RUNNING.
            patch.setattr(mlflow.ActiveRun, "__exit__", lambda *_: mlflow.end_run("RUNNING"))
            if target is train:
                patch.undo()
                patch.setattr(target, name, killed)
            with pytest.raises(KilledError):
                train.run(lake.spark, settings, request())
        assert lake.read(MODEL_VERSIONS).count() == 0
    train.run(lake.spark, settings, request())
    version = load_bundle(settings).model_version
    statuses = sorted(run.info.status for run in store._runs(version))
    assert statuses == ["FINISHED", "KILLED", "KILLED"]
    assert registered(store) == [version]
    assert lake.read(MODEL_VERSIONS).count() == 1


def test_better_or_equal_passes_and_worse_fails_the_gate(
    lake: Lake, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lake, ["rides"])
    first = train.run(lake.spark, settings, request())
    fill(lake, ["rides"], error=1.3)  # the job became faster: the champion is wrong now
    later = AS_OF + timedelta(minutes=5)
    second = train.run(lake.spark, settings, request(later))
    assert (second["gate"], second["champion_before"]) == ("passed", first["model_version"])
    assert second["champion_capacity_mape"] > 0.15 > second["capacity_mape"]
    assert load_bundle(settings).model_version == second["model_version"]

    fitted = training_run.fit_capacities

    def worse(*arguments: Any, **options: Any) -> Any:
        return fitted(*arguments, **options).withColumn("mean_per_s", F.expr("transform(mean_per_s, m -> m * 2)"))

    monkeypatch.setattr(training_run, "fit_capacities", worse)
    fill(lake, ["rides"], error=1.31)
    third = train.run(lake.spark, settings, request(later + timedelta(minutes=5)))
    assert third["gate"] == "failed"
    assert "beyond the tolerance" in str(third["gate_detail"])
    assert load_bundle(settings).model_version == second["model_version"]
    assert load_bundle(settings, "challenger").model_version == third["model_version"]

    # The first training again (a backfill): neither alias moves back.
    fill(lake, ["rides"])
    assert train.run(lake.spark, settings, request())["model_version"] == first["model_version"]
    assert load_bundle(settings).model_version == second["model_version"]
    assert load_bundle(settings, "challenger").model_version == third["model_version"]
    assert lake.read(MODEL_VERSIONS).count() == 3


def test_nothing_to_learn_and_no_champion_say_what_to_do(spark: SparkSession, lake: Lake, settings: Settings) -> None:
    with pytest.raises(NoModelError, match="train stage"):
        load_bundle(settings)
    with pytest.raises(train.NothingToLearnError, match="ingest that time first"):
        train.run(spark, settings, request())
    fill(lake, ["rides"])
    with pytest.raises(train.NothingToLearnError):
        train.run(spark, settings, request(AS_OF - 30 * DAY))


def test_nothing_at_or_after_as_of_and_nothing_disturbed_is_used(lake: Lake, settings: Settings) -> None:
    seen = observations("rides")
    early = AS_OF - DAY
    wrong = seen["window_start"] >= pd.Timestamp(early)
    seen.loc[wrong, "true_processing_rate_per_s"] *= 10
    disturbed = (~wrong) & (np.arange(len(seen)) % 7 == 0)
    seen.loc[disturbed, "true_processing_rate_per_s"] *= 10
    seen["disturbed"] = disturbed
    write(lake, OBSERVATIONS, seen, "window_start")
    train.run(lake.spark, settings, request(early))
    curve = load_bundle(settings).for_job("c5m", "rides").capacity["parse"]
    np.testing.assert_allclose(curve.observed_per_s, capacity("parse", curve.observed), rtol=0.1)


def test_artifacts_lie_where_the_settings_say(lake: Lake, settings: Settings) -> None:
    from pathlib import Path

    fill(lake, ["rides"])
    train.run(lake.spark, settings, request())
    assert list(Path(settings.mlflow.artifact_root).rglob(BUNDLE_FILE))
    pickled = {".pkl", ".pickle", ".joblib"}  # the model is logged as code beside arrays
    assert [file for file in Path(settings.mlflow.artifact_root).rglob("*") if file.suffix in pickled] == []
