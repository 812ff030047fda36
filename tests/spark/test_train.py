"""Training from synthetic silver tables: what is learnt, how it is judged, and that it may be killed and repeated."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.entities import Run
from pyspark.sql import DataFrame, Row, SparkSession

from include.model_registry import BUNDLE_FILE
from include.settings import Settings
from include.stage_names import PLAN_COSTS, Stage
from include.stage_request import StageRequest
from include.tables import JOB_GRAPHS, MODEL_JOBS, MODEL_VERSIONS, OBSERVATIONS, RESCALES
from lab.stages.plan_costs import stage as plan_costs
from lab.stages.plan_costs.fitted_models import read_fitted
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import JobModels
from models.capacity.fleet_prior import FleetPrior
from models.training.operator_fits import Fits
from spark_jobs.comparison_page import COMPARISON_PAGE
from spark_jobs.lake import Lake
from spark_jobs.model_store import VERSION_TAG, ModelStore, NoModelError, load_bundle
from spark_jobs.train import stage as train
from spark_jobs.train import train_fleet as training_run
from spark_jobs.train import training_data as data
from spark_jobs.train import training_log
from tests.spark.synthetic_observations import (
    AS_OF,
    CHAIN,
    DAY,
    OPERATORS,
    capacity,
    events,
    fill,
    graphs,
    observations,
    write,
)

pytestmark = pytest.mark.spark

LATER = AS_OF + timedelta(minutes=5)
LAST = LATER + timedelta(minutes=5)
BUNDLE = (ModelStore, "log_bundle")
MOMENTS = ((training_log, "recovery_figure"), BUNDLE, (train, "promote"))


class KilledError(BaseException):
    """Ends a training as a signal would: nothing handles it."""


@dataclass(frozen=True)
class Trained:
    """What a training returned, and what there was when it had ended."""

    summary: dict[str, object]
    champion: FleetBundle
    challenger: str
    rows: list[Row]
    registered: list[str]


@dataclass(frozen=True)
class Trainings:
    """The first training in a lake, after which a test may make others.

    Attributes:
        settings: of all of them.
        usable: windows that the first one may learn from.
        first: the first one.
    """

    settings: Settings
    usable: int
    first: Trained

    @property
    def store(self) -> ModelStore:
        return ModelStore(self.settings.mlflow)


def request(as_of: datetime = AS_OF) -> StageRequest:
    return StageRequest(Stage.TRAIN, as_of)


def registered(store: ModelStore) -> list[str]:
    result = store.client.search_model_versions(f"name = '{store.settings.registered_model}'")
    return [version.tags[VERSION_TAG] for version in result]


def observations_beyond() -> pd.DataFrame:
    """Windows of job ``beyond``, a third of them after ``AS_OF``; those and disturbed ones say ten times the truth."""
    observed = observations("beyond", seed=2)
    observed["window_start"] += DAY
    observed["disturbed"] = ~is_later(observed) & (np.arange(len(observed)) % 7 == 0)
    observed.loc[is_later(observed) | observed["disturbed"], "true_processing_rate_per_s"] *= 10
    return observed


def is_later(seen: pd.DataFrame) -> pd.Series:
    return seen["window_start"] >= pd.Timestamp(AS_OF)


def fill_first(lake: Lake) -> int:
    """Write what the first training sees: three jobs; returns how many of their windows it may learn from."""
    observed = pd.concat([observations("rides"), observations("orders", seed=1), observations_beyond()])
    write(lake, OBSERVATIONS, observed, "window_start")
    write(lake, RESCALES, events(["rides", "orders"]), "started_at")
    write(lake, JOB_GRAPHS, graphs(["rides", "orders"]), "observed_at")
    return int((~is_later(observed) & ~observed["disturbed"]).sum())


def run(lake: Lake, settings: Settings, as_of: datetime = AS_OF) -> Trained:
    summary = train.run(lake.spark, settings, request(as_of))
    rows, names = lake.read(MODEL_VERSIONS).collect(), registered(ModelStore(settings.mlflow))
    return Trained(summary, load_bundle(settings), load_bundle(settings, "challenger").model_version, rows, names)


def run_until(target: object, name: str, lake: Lake, settings: Settings) -> int:
    """Run the first training and kill it when it calls ``name``; returns how many rows say what was trained."""

    def killed(*_: object) -> None:
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, name, killed)
        if target is not train:
            # A killed process runs no clean-up: MLflow is left with a run that is still RUNNING.
            patch.setattr(mlflow.ActiveRun, "__exit__", lambda *_: mlflow.end_run("RUNNING"))
        with pytest.raises(KilledError):
            train.run(lake.spark, settings, request())
    return lake.read(MODEL_VERSIONS).count()


def run_worse(lake: Lake, settings: Settings) -> Trained:
    """Train a model whose curves say twice the truth."""
    fitted = training_run.fit_capacities

    def worse(*arguments: Any, **options: Any) -> list[Fits]:
        return [
            {name: replace(one, mean_per_s=2.0 * one.mean_per_s) for name, one in own.items()}
            for own in fitted(*arguments, **options)
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_run, "fit_capacities", worse)
        return run(lake, settings, LATER)


@pytest.fixture(scope="module")
def trainings(shared_settings: Settings, shared_lake: Lake) -> Trainings:
    settings, lake = shared_settings, shared_lake
    usable = fill_first(lake)
    return Trainings(settings, usable, run(lake, settings))


@pytest.fixture
def finished(trainings: Trainings) -> Run:
    """The MLflow run of the first training."""
    run = trainings.store.find_finished(trainings.first.champion.model_version)
    assert run is not None
    return run


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
    assert models.edges == pytest.approx({(up, down): OPERATORS[up][2] for up, down in pairwise(OPERATORS)})
    assert models.recovery.downtime_rescale_s == pytest.approx(30, rel=0.2)
    assert models.recovery.downtime_restart_s == pytest.approx(70, rel=0.2)
    assert models.recovery.checkpoint_interval_s == pytest.approx(10, rel=0.5)
    assert models.recovery.events == 6
    assert (np.diff(models.latency.latency_at_knots_ms) >= 0).all()
    np.testing.assert_allclose(models.latency.latency_ms([0.4, 0.8]), [50 / 0.6, 50 / 0.2], rtol=0.15)


def list_jobs(rows: Any) -> pd.Series:
    """Return the job of each row, of a frame of Spark or of rows in the driver."""
    return rows.select("job").toPandas()["job"] if isinstance(rows, DataFrame) else pd.DataFrame(rows)["job"]


def test_a_training_of_some_jobs_reads_only_theirs(trainings: Trainings, shared_lake: Lake) -> None:
    settings = trainings.settings
    whole = data.read_inputs(shared_lake, AS_OF, settings.training)
    of_one = data.read_inputs(shared_lake, AS_OF, settings.training, "c5m/rid")
    for name in ("observations", "events", "graphs"):
        rows, expected = (list_jobs(getattr(one, name)) for one in (of_one, whole))
        assert set(rows) == {"rides"} < set(expected)
        assert len(rows) == (expected == "rides").sum() > 0
    nobody = replace(request(), jobs="5m/rides")  # a pattern matches from the beginning
    with pytest.raises(train.NothingToLearnError, match="of a job that '5m/rides' matches"):
        train.run(shared_lake.spark, settings, nobody)


def test_the_first_training_becomes_champion(trainings: Trainings) -> None:
    bundle, rows = trainings.first.champion, trainings.first.rows
    assert bundle.jobs() == (("c5m", "beyond"), ("c5m", "orders"), ("c5m", "rides"))
    assert_learnt(bundle.for_job("c5m", "rides"))
    prior = FleetPrior.from_arrays(bundle.arrays)
    assert prior is not None
    taught = dict(zip(prior.kinds, prior.operators.tolist(), strict=True))
    # Of both jobs that have a graph parse; count is never more than 36% busy, which tells too little for others.
    assert (taught["map"], taught["keyed"]) == (2, 0)
    assert len(rows) == 1
    assert (rows[0]["gate"], rows[0]["jobs"], rows[0]["operators"]) == ("first", 3, 12)
    assert rows[0]["as_of"].replace(tzinfo=UTC) == AS_OF
    assert rows[0]["capacity_mape"] < 0.06
    assert rows[0]["recovery_mape"] < 0.2
    assert rows[0]["observations"] == trainings.usable


@pytest.mark.long
def test_the_same_training_again_changes_nothing(trainings: Trainings, shared_lake: Lake) -> None:
    first, again = trainings.first, run(shared_lake, trainings.settings)
    assert again.summary == first.summary
    assert again.rows == first.rows
    assert again.registered == [first.champion.model_version]
    assert again.champion.to_bytes() == first.champion.to_bytes()


def test_run_holds_what_a_reviewer_needs(trainings: Trainings, finished: Run) -> None:
    client, measured = trainings.store.client, finished.data.metrics
    files = {item.path for item in client.list_artifacts(finished.info.run_id)}
    assert {"operators.json", "capacity_curves.png", "recovery.png", "gate.png", "gate.json"} <= files
    assert measured["fleet/curves"] == 12
    assert measured["curves/of_idle_operators"] == 6
    assert 0.6 < measured["capacity/coverage_80"] < 0.95
    assert finished.data.tags["tidewise.version.silver.observations"] == "1"
    assert finished.inputs.dataset_inputs[0].dataset.name == "silver.observations"
    assert measured["gate/capacity_seen_rows"] > 20  # hours x operators that were ahead of the trial
    assert measured["gate/capacity_seen"] < measured["gate/capacity_seen_reference"]
    note = finished.data.tags["mlflow.note.content"]
    reason = "**Reason**: no champion yet; no worse than the linear model: capacity_held"
    assert note.startswith("**Verdict: first.** ")
    assert note.split("\n\n")[1].startswith(reason)
    assert len(note) <= 5000  # as much as a database has of a version's description
    assert set(re.findall(r"get-artifact\?path=(\S+)&run_uuid=" + finished.info.run_id, note)) <= files
    model = client.get_registered_model(trainings.settings.mlflow.registered_model)
    assert model.tags["job c5m/rides"] == ", ".join(sorted(CHAIN))
    assert finished.info.run_name == f"{AS_OF:%Y-%m-%d %H:%M} first"
    table = client.load_table(finished.info.experiment_id, "operators.json", run_ids=[finished.info.run_id])
    rides = table[table["job"] == "rides"]
    assert rides["operator"].tolist() == sorted(CHAIN)
    assert rides.loc[rides["operator"] == "parse", "capacity_at_observed"].iloc[0].startswith("2: ")


def test_the_pyfunc_predicts(trainings: Trainings) -> None:
    settings = trainings.settings
    model = mlflow.pyfunc.load_model(f"models:/{settings.mlflow.registered_model}@champion")
    asked = pd.DataFrame({"cluster": "c5m", "job": "rides", "operator": ["parse", "nobody"], "parallelism": [4, 4]})
    result = model.predict(asked, params={"unknown": "null"})
    expected = load_bundle(settings).for_job("c5m", "rides").capacity["parse"]
    assert result["mean_per_s"].iloc[0] == expected.mean_per_s[3]
    assert result["sd_per_s"].iloc[0] == expected.sd_per_s[3]  # as calibrated as in plans
    assert np.isnan(result["mean_per_s"].iloc[1])


def test_a_training_is_registered_once(trainings: Trainings) -> None:
    assert_trained_once(trainings.store, trainings.first, killed=0)


def assert_trained_once(store: ModelStore, trained: Trained, killed: int) -> None:
    version = trained.champion.model_version
    assert sorted(run.info.status for run in store._runs(version)) == ["FINISHED", *["KILLED"] * killed]
    assert trained.registered == [version]
    assert len(trained.rows) == 1


@pytest.mark.long
def test_killed_at_three_moments_in_a_row_it_is_made_once(lake: Lake, settings: Settings) -> None:
    fill(lake, ["rides"])
    assert [run_until(target, name, lake, settings) for target, name in MOMENTS] == [0, 0, 0]
    assert_trained_once(ModelStore(settings.mlflow), run(lake, settings), killed=2)


@pytest.mark.long  # the rules of the gate: tests/unit/test_gate.py
def test_worse_fails_the_gate_better_passes_it_and_a_backfill_moves_no_alias(
    trainings: Trainings, shared_lake: Lake
) -> None:
    first, settings = trainings.first, trainings.settings
    worse = run_worse(shared_lake, settings)
    assert worse.summary["gate"] == "failed"
    assert "beyond the tolerance" in str(worse.summary["gate_detail"])
    assert worse.champion.model_version == first.summary["model_version"]
    assert worse.challenger == worse.summary["model_version"]
    fill(shared_lake, ["rides"], error=1.3)  # the job became faster: the champion is wrong now
    better = run(shared_lake, settings, LAST)
    assert (better.summary["gate"], better.summary["champion_before"]) == ("passed", first.summary["model_version"])
    assert better.summary["champion_capacity_mape"] > 0.15 > better.summary["capacity_mape"]
    assert better.champion.model_version == better.summary["model_version"]
    fill_first(shared_lake)
    backfill = run(shared_lake, settings)
    assert backfill.summary["model_version"] == first.summary["model_version"]
    assert backfill.champion.model_version == better.summary["model_version"]
    assert backfill.challenger == better.challenger
    assert len(backfill.rows) == 3


@pytest.mark.long  # the rules: tests/unit/test_job_gate.py, tests/spark/test_model_review.py
def test_one_bad_job_keeps_its_models_and_a_foreign_alias_harms_nothing(lake: Lake, settings: Settings) -> None:
    jobs = ["clicks", "orders", "rides", "views"]
    fill(lake, jobs)
    first = run(lake, settings)
    fitted = training_run.fit_capacities

    def worse(*arguments: Any, **options: Any) -> list[Fits]:
        *good, bad = fitted(*arguments, **options)  # in the order of their names: views
        return [*good, {name: replace(one, mean_per_s=1.5 * one.mean_per_s) for name, one in bad.items()}]

    store = ModelStore(settings.mlflow)
    foreign = store.client.create_model_version(settings.mlflow.registered_model, "file:///nowhere")
    store.client.set_registered_model_alias(settings.mlflow.registered_model, "champion", foreign.version)
    assert load_bundle(settings).model_version == first.champion.model_version
    fill(lake, jobs, error=1.001)  # other rows: else it is the same training
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_run, "fit_capacities", worse)
        second = train.run(lake.spark, settings, request(LATER))
    assert (second["gate"], second["jobs_kept"], second["not_in_use"]) == ("passed", 1, "")
    assert f"alias champion names version {foreign.version}, which is not of" in str(second["refused_by_review"])
    assert "models of an earlier version are kept by c5m/views (capacity error" in str(second["gate_detail"])
    champion = load_bundle(settings)
    made_by = {job: version for (_, job), version in champion.versions_of_jobs().items()}
    own = second["model_version"]
    old = first.champion.model_version
    assert made_by == {"clicks": own, "orders": own, "rides": own, "views": old}
    kept, before = (one.for_job("c5m", "views").capacity["parse"] for one in (champion, first.champion))
    np.testing.assert_array_equal(kept.mean_per_s, before.mean_per_s)
    np.testing.assert_array_equal(kept.sd_per_s, before.sd_per_s)
    judged, first_run = (store.find_finished(version) for version in (own, old))
    assert judged is not None
    assert first_run is not None
    refused = read_fitted(store, judged).for_job("c5m", "views").capacity["parse"]
    assert (refused.mean_per_s > 1.3 * kept.mean_per_s).all()
    assert read_fitted(store, first_run).to_bytes() == first.champion.to_bytes()
    costs = plan_costs.run(lake.spark, settings, replace(request(LATER), stage=PLAN_COSTS))
    assert (costs["asked"], costs["compared"]) == (4, 0)  # of less than five days
    page = mlflow.artifacts.load_text(f"{judged.info.artifact_uri}/{COMPARISON_PAGE}")
    assert "none of 4 jobs could be compared" in page
    rows = {row["job"]: row for row in lake.read(MODEL_JOBS).where(f"model_version = '{own}'").collect()}
    assert rows["views"]["models_from"] == old
    assert "capacity error" in rows["views"]["detail"]
    assert rows["rides"]["detail"] is None


def test_nothing_to_learn_and_no_champion_say_what_to_do(spark: SparkSession, lake: Lake, settings: Settings) -> None:
    with pytest.raises(NoModelError, match="train stage"):
        load_bundle(settings)
    with pytest.raises(train.NothingToLearnError, match="ingest that time first"):
        train.run(spark, settings, request())
    fill(lake, ["rides"])
    with pytest.raises(train.NothingToLearnError):
        train.run(spark, settings, request(AS_OF - 30 * DAY))


def test_nothing_at_or_after_as_of_and_nothing_disturbed_is_used(trainings: Trainings) -> None:
    curve = trainings.first.champion.for_job("c5m", "beyond").capacity["parse"]
    np.testing.assert_allclose(curve.observed_per_s, capacity("parse", curve.observed), rtol=0.1)


def test_artifacts_lie_where_the_settings_say(trainings: Trainings) -> None:
    root = Path(trainings.settings.mlflow.artifact_root)
    assert list(root.rglob(BUNDLE_FILE))
    pickled = {".pkl", ".pickle", ".joblib"}  # the model is logged as code beside arrays
    assert [file for file in root.rglob("*") if file.suffix in pickled] == []
