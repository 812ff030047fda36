"""Plans by a challenger beside those by the champion: from silver and a finished training to the training's run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import mlflow
import pandas as pd
import pytest
from delta_tables import write_rows
from mlflow.entities import Run

from benchmarks.pipeline.packed_models import pack_models
from include import tables
from include.domain.operator_matching import PlacedOperator
from include.model_registry import CHAMPION
from include.settings import Settings
from include.stage_names import PLAN_COSTS
from include.stage_request import StageRequest
from lab.stages.plan_costs import costs_log, stage
from lab.stages.plan_costs.fleet_costs import PlanComparison, compare_on_sample
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.merging import merge_jobs
from spark_jobs.comparison_page import COMPARISON_PAGE, COMPARISON_ROWS
from spark_jobs.lake import Lake
from spark_jobs.model_store import NOTE_TAG, ModelStore
from tests.spark import synthetic_fleet as fleet

pytestmark = [pytest.mark.spark, pytest.mark.long]
WINDOW = timedelta(minutes=5)
DAYS = {"orders": 5.5, "clicks": 5.5, "young": 0.5}
JOBS = [(fleet.CLUSTER, job) for job in DAYS]
REQUEST = StageRequest(PLAN_COSTS, fleet.AS_OF)
NOTE = "**Gate**: passed.\n\nModels of 3 jobs."
TEXTS = ("name", "models", "inside", "champion_inside", "windows", "detail")


def load_at(hour: float) -> float:
    return 60_000.0 + 40_000.0 * math.sin((hour - 8.0) * math.pi / 12.0)


def placed(name: str) -> dict[tuple[str, str], tuple[PlacedOperator, ...]]:
    """Both operators of each job, the second one under a name."""
    source = PlacedOperator("src", fleet.vertex_id("src"), 0, ())
    return {job: (source, PlacedOperator(name, fleet.vertex_id("map"), 1, ("src",))) for job in JOBS}


@dataclass(frozen=True)
class Compared:
    """A lake, models of two trainings, and the difference between them as they are in memory."""

    lake: Lake
    settings: Settings
    champion: FleetBundle
    fitted: FleetBundle
    plans: PlanComparison


@pytest.fixture(scope="module")
def compared(shared_lake: Lake, shared_settings: Settings) -> Compared:
    lake, settings = shared_lake, shared_settings
    write_rows(lake, tables.JOB_GRAPHS, [row for job in DAYS for row in fleet.graph_rows(job)])
    ends = ((job, fleet.AS_OF - back * WINDOW) for job, days in DAYS.items() for back in range(round(days * 288)))
    rows = [fleet.observation_rows(job, end, load_at(end.hour + end.minute / 60), windows=1)[0] for job, end in ends]
    write_rows(lake, tables.OBSERVATIONS, rows)
    models = fleet.job_models()
    slower = {
        name: replace(curve, mean_per_s=0.6 * curve.mean_per_s, observed_per_s=0.6 * curve.observed_per_s)
        for name, curve in models.capacity.items()
    }
    known = dict.fromkeys([*JOBS, (fleet.CLUSTER, "new")], replace(models, capacity=slower))
    champion = pack_models("m0", dict.fromkeys(JOBS, models))
    fitted = replace(pack_models("m1", known), placed=placed("map"))
    return Compared(lake, settings, champion, fitted, compare_on_sample(lake, settings, fleet.AS_OF, champion, fitted))


@pytest.fixture
def training(compared: Compared, settings: Settings) -> Settings:
    """A registry with the training whose models a job did not take, in the lake of all tests of this file.

    Since the champion was trained an operator has got another name.
    """
    settings = compared.settings.model_copy(update={"mlflow": settings.mlflow})
    store = ModelStore(settings.mlflow)
    before = compared.champion.with_names_of(placed("map")).with_names_of(placed("mapper"))
    with store.run("m0", {}):
        store.log_bundle(before)
    store.make_champion(store.register(find_run(store, "m0")), "2026-11-19T18:00:00Z")
    job = dict.fromkeys(TEXTS, "-")
    rows = dict.fromkeys(("title", "version", "champion", "verdict", "detail"), "-") | {"criteria": [], "operators": []}
    with store.run("m1", {NOTE_TAG: NOTE}):
        store.log_bundle(merge_jobs(compared.fitted, {JOBS[1]: before}))
        store.log_fitted(compared.fitted)
        mlflow.log_dict(rows | {"jobs": [job | {"cluster": JOBS[1][0], "job": JOBS[1][1]}]}, COMPARISON_ROWS)
    store.register(find_run(store, "m1"))
    row = {"as_of": fleet.AS_OF, "model_version": "m1", "champion_before": "m0"}
    write_rows(compared.lake, tables.MODEL_VERSIONS, [row])
    return settings


def find_run(store: ModelStore, version: str) -> Run:
    found = store.find_finished(version)
    assert found is not None
    return found


def read_table(store: ModelStore, name: str) -> pd.DataFrame:
    table = store.read_document(find_run(store, "m1"), name)
    return pd.DataFrame(table["data"], columns=table["columns"])


def read_state(compared: Compared, store: ModelStore) -> tuple[Any, ...]:
    """What plans depend on: aliases, versions, tables."""
    versions = [(version.number, version.tags) for version in store.list_reviewed()]
    rows = compared.lake.read(tables.MODEL_VERSIONS).collect()
    return store.find_number(CHAMPION), versions, rows, find_run(store, "m1").info.status


def test_jobs_that_both_know_are_compared_and_listed(compared: Compared) -> None:
    lake, settings, champion = compared.lake, compared.settings, compared.champion
    two = settings.model_copy(update={"training": settings.training.model_copy(update={"plan_cost_jobs": 2})})
    same = compare_on_sample(lake, two, fleet.AS_OF, champion, champion)
    assert (same.asked, same.difference.mean) == (2, 0.0)
    assert same.sentence.startswith("no difference")

    other = compared.plans
    assert list(other.costs["job"]) == ["clicks", "orders"]
    assert (other.costs["difference"] != 0.0).all()
    assert set(other.other_steps["job"]) == {"clicks", "orders"}
    assert "on 2 of 3 jobs" in other.sentence  # one is too young


def test_the_run_of_a_training_gets_what_its_models_in_memory_give(compared: Compared, training: Settings) -> None:
    store, spark = ModelStore(training.mlflow), compared.lake.spark
    before = read_state(compared, store)
    counts = stage.run(spark, training, REQUEST)
    assert counts == {"asked": 3, "compared": 2, "plans": compared.plans.sentence}
    pd.testing.assert_frame_equal(read_table(store, costs_log.COST_TABLE), compared.plans.costs)
    pd.testing.assert_frame_equal(read_table(store, costs_log.OTHER_STEP_TABLE), compared.plans.other_steps)
    run = find_run(store, "m1")
    assert {name: value for name, value in run.data.metrics.items() if name.startswith("plans/")} == pytest.approx(
        compared.plans.measures, rel=1e-12
    )
    noted = costs_log.add_plan_costs(NOTE, compared.plans.sentence)
    assert run.data.tags[NOTE_TAG] == noted
    assert store.client.get_model_version(training.mlflow.registered_model, "2").description == noted
    page = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/{COMPARISON_PAGE}")
    assert f"{compared.plans.differences[JOBS[1]]:+.1%}" in page
    assert read_state(compared, store) == before
    assert stage.run(spark, training, REQUEST) == {"asked": 0, "compared": 0}  # it is there


def test_a_comparison_that_fails_leaves_models_and_tables_as_they_were(
    compared: Compared, training: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, spark = ModelStore(training.mlflow), compared.lake.spark
    before = read_state(compared, store)

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(stage, "compare_on_sample", lambda *_: compared.plans)
    for target, name in ((stage, "log_costs"), (mlflow.MlflowClient, "log_metric")):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, fail)
            with pytest.raises(MemoryError):
                stage.run(spark, training, REQUEST)
        assert read_state(compared, store) == before
    assert stage.run(spark, training, REQUEST)["compared"] == 2
    assert len(read_table(store, costs_log.COST_TABLE)) == 2  # what a try has left is not doubled
    assert find_run(store, "m1").data.tags[NOTE_TAG].count("**What plans") == 1


def test_a_moment_without_a_training_is_said(compared: Compared, training: Settings) -> None:
    other = replace(REQUEST, as_of=fleet.AS_OF + timedelta(hours=1))
    with pytest.raises(stage.NoTrainingError, match="no training as of 2026-11-20T19:00:00Z"):
        stage.run(compared.lake.spark, training, other)
