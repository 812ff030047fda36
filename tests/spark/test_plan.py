"""The plan stage on small tables: rows, refusals by name, reruns."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from delta_tables import write_rows
from pyspark.sql import Row, SparkSession

from include import tables
from include.model_registry import CHAMPION
from include.settings import Settings
from include.stages import Stage, StageRequest
from models.bundle import FleetBundle
from spark_jobs.lake import Lake
from spark_jobs.model_store import ModelStore
from spark_jobs.plan import stage as plan
from spark_jobs.plan.remake_plan import NotRecordedError, make_again
from tests.spark import synthetic_fleet as fleet

pytestmark = pytest.mark.spark
REQUEST = StageRequest(Stage.PLAN, fleet.AS_OF)
RISING = [20_000.0] * 4 + [80_000.0] * 20
STEADY = [20_000.0] * 24


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Plain needs, whose steps can be worked out by hand."""
    planner = settings.planner.model_copy(update={"policy": "need_vector"})
    return settings.model_copy(update={"planner": planner})


def champion(settings: Settings, bundle: FleetBundle) -> None:
    """Log and register a bundle as training does, and make it the champion."""
    store = ModelStore(settings.mlflow)
    with store.run(bundle.model_version, {}):
        store.log_bundle(bundle)
    run = store.finished(bundle.model_version)
    assert run is not None
    store.point(CHAMPION, store.register(run))


@pytest.fixture
def with_models(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the stage plan with a bundle that did not come through MLflow (a test of its own has it come that way)."""

    def use(*jobs: str) -> None:
        monkeypatch.setattr(plan, "champion", lambda _: fleet.fleet(*jobs))

    return use


def plans(lake: Lake) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for row in lake.read(tables.PLANS).orderBy("cluster", "job", "step_index").collect():
        rows.setdefault(row["job"], []).append(row)
    return rows


def test_steps_ahead_of_a_rise_through_the_real_model_store(
    spark: SparkSession, settings: Settings, lake: Lake
) -> None:
    champion(settings, fleet.fleet("rising", "steady"))
    fleet.write_fleet(lake, {"rising": RISING, "steady": STEADY})
    counts = plan.run(spark, settings, REQUEST)
    assert counts == {"jobs": 2, "steps": 1, "held": 1, "refused": 0, "over_budget": []}
    (step,), (hold,) = plans(lake)["rising"], plans(lake)["steady"]
    assert step["status"] == "planned"
    assert step["parallelism_from"] == {"src": 1, "map": 3}
    assert step["parallelism_to"] == {"src": 1, "map": 11}  # 88,000 / 0.85 = 103,529
    assert (step["slots_from"], step["slots"]) == (3, 11)
    assert step["effective_at"] - step["apply_at"] == timedelta(seconds=step["lead_time_s"])
    assert step["lead_time_s"] == 60 + 20 + 80  # 88,000 x 20 / 22,000 = 80 s of catch-up
    assert step["expected_capacity_per_s"] == pytest.approx(110_000)
    assert step["model_version"] == "m0"
    assert step["forecast_version"] == "f0"
    assert "map needs 11 instead of 3" in step["reason"]
    assert (hold["status"], hold["apply_at"], hold["parallelism_to"]) == ("hold", None, {"src": 1, "map": 3})
    # What comes later, of the same moments even, does not change what is made again from the recorded versions.
    write_rows(lake, tables.OBSERVATIONS, fleet.observation_rows("rising", load=90_000.0))
    write_rows(lake, tables.FORECASTS, fleet.forecast_rows("steady", [90_000.0] * 24))
    champion(settings, replace(fleet.fleet("rising"), model_version="m1"))
    changed = settings.model_copy(update={"planner": settings.planner.model_copy(update={"load_quantile": 0.6})})
    again = make_again(lake, changed, fleet.AS_OF)
    assert (again.rows, again.same) == (2, 2)
    counts = plan.run(spark, settings, REQUEST)
    assert (counts["steps"], counts["refused"]) == (1, 1)  # as things are now, m1 does not know the steady job
    assert "no training of model m1 is recorded" in plans(lake)["rising"][0]["warning"]
    with pytest.raises(NotRecordedError, match="no plan as of"):
        make_again(lake, settings, fleet.AS_OF + timedelta(days=1))


def test_running_twice_gives_the_same_rows_and_files(
    spark: SparkSession, settings: Settings, lake: Lake, with_models: Callable[..., None]
) -> None:
    with_models("rising", "steady")
    fleet.write_fleet(lake, {"rising": RISING, "steady": STEADY})
    first = plan.run(spark, settings, REQUEST), sorted(map(str, plans(lake).items()))
    files = {path.name: path.read_text() for path in Path(settings.paths.out).glob("*.json")}
    assert (plan.run(spark, settings, REQUEST), sorted(map(str, plans(lake).items()))) == first
    assert {path.name: path.read_text() for path in Path(settings.paths.out).glob("*.json")} == files
    written = json.loads(files["plans.json"])
    assert [(row["job"], row["status"]) for row in written] == [("rising", "planned"), ("steady", "hold")]
    assert written[0]["effective_at"] == "2026-11-20T22:00:00Z"
    assert written[0]["apply_at"] == "2026-11-20T21:57:20Z"


def test_another_as_of_is_another_slice(
    spark: SparkSession, settings: Settings, lake: Lake, with_models: Callable[..., None]
) -> None:
    with_models("steady")
    fleet.write_fleet(lake, {"steady": STEADY})
    plan.run(spark, settings, REQUEST)
    plan.run(spark, settings, StageRequest(Stage.PLAN, fleet.AS_OF + timedelta(minutes=30)))
    assert len(plans(lake)["steady"]) == 2


def test_every_refusal_is_named(
    spark: SparkSession, settings: Settings, lake: Lake, with_models: Callable[..., None]
) -> None:
    healthy = ["steady", "no_model", "unknown_operator", "no_forecast", "stale_forecast", "gap"]
    with_models(*(job for job in [*healthy, "stale_metrics", "never_measured"] if job != "no_model"))
    old = fleet.AS_OF - timedelta(hours=5)
    graphs = [row for job in [*healthy, "never_measured"] for row in fleet.graph_rows(job)]
    write_rows(lake, tables.JOB_GRAPHS, graphs + fleet.graph_rows("stale_metrics", old))
    seen = [row for job in healthy for row in fleet.observation_rows(job)]
    write_rows(lake, tables.OBSERVATIONS, seen + fleet.observation_rows("stale_metrics", old))
    forecasts = [row for job in ("steady", "no_model", "stale_metrics") for row in fleet.forecast_rows(job, STEADY)]
    forecasts += fleet.forecast_rows("unknown_operator", STEADY, source="renamed")
    forecasts += fleet.forecast_rows("stale_forecast", STEADY, at=old)
    forecasts += fleet.forecast_rows("gap", STEADY)[:3] + fleet.forecast_rows("gap", STEADY)[4:]
    forecasts += fleet.forecast_rows("left_long_ago", STEADY)
    write_rows(lake, tables.FORECASTS, forecasts)
    write_rows(lake, tables.MODEL_VERSIONS, [fleet.model_row()])
    assert plan.run(spark, settings, REQUEST)["refused"] == 7
    refusals = {job: [row["refusal"] for row in rows] for job, rows in plans(lake).items()}
    assert refusals == {
        "steady": [None],
        "gap": ["no_forecast"],
        "never_measured": ["stale_metrics"],
        "no_forecast": ["no_forecast"],
        "no_model": ["no_model"],
        "stale_forecast": ["stale_forecast"],
        "stale_metrics": ["stale_metrics"],
        "unknown_operator": ["no_forecast"],  # there is one, of a source that it no longer has
    }
    (refused,) = plans(lake)["stale_metrics"]
    assert "5.0 h old, more than planner.max_input_age_h = 3" in refused["reason"]
    assert refused["parallelism_from"] == fleet.RUNNING


def warned(row: Row) -> tuple[str, str]:
    return row["status"], str(row["warning"])


@pytest.mark.covers("apply_review 2")
def test_an_old_or_unrecorded_model_plans_on_with_wider_intervals_and_a_warning(
    spark: SparkSession, settings: Settings, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    uncertain = fleet.fleet("rising")
    uncertain.arrays["sd_per_s"][:] = 100.0
    monkeypatch.setattr(plan, "champion", lambda _: uncertain)
    fleet.write_fleet(lake, {"rising": RISING})
    plan.run(spark, settings, REQUEST)
    (proven,) = plans(lake)["rising"]
    assert warned(proven) == ("planned", "None")
    far = StageRequest(Stage.PLAN, fleet.AS_OF + timedelta(minutes=30))
    kept = {"as_of": fleet.AS_OF, "model_version": "m1", "champion_before": "m0", "gate": "kept", "compared": 0}
    write_rows(lake, tables.MODEL_VERSIONS, [kept])
    plan.run(spark, settings, far)
    unproven = max(plans(lake)["rising"], key=lambda row: row["as_of"])
    assert warned(unproven) == (
        "planned",
        "the last training could not compare the champion; its intervals are widened",
    )
    width = [row["expected_capacity_per_s"] - row["expected_capacity_lower_per_s"] for row in (proven, unproven)]
    assert width[1] == pytest.approx(2 * width[0])
    assert unproven["parallelism_to"] == proven["parallelism_to"]
    assert json.loads((Path(settings.paths.out) / "plans.json").read_text())[0]["warning"] == unproven["warning"]


@pytest.mark.covers("apply_review 3")
def test_a_source_that_was_renamed_does_not_refuse_its_job(
    spark: SparkSession, settings: Settings, lake: Lake, with_models: Callable[..., None]
) -> None:
    with_models("rising")
    fleet.write_fleet(lake, {"rising": RISING})
    old = fleet.forecast_rows("rising", [500_000.0] * 24, source="src of last week")
    write_rows(lake, tables.FORECASTS, [row | {"fallback_reason": "only an hour of history"} for row in old])
    plan.run(spark, settings, REQUEST)
    (step,) = plans(lake)["rising"]
    assert (step["status"], step["parallelism_to"]) == ("planned", {"src": 1, "map": 11})
    assert step["expected_load_q90_per_s"] == pytest.approx(88_000)


def test_a_backfill_is_never_planned_for(
    spark: SparkSession, settings: Settings, lake: Lake, with_models: Callable[..., None]
) -> None:
    with_models("steady")
    fleet.write_fleet(lake, {"steady": STEADY})
    write_rows(lake, tables.OBSERVATIONS, fleet.observation_rows("other", fleet.AS_OF + timedelta(hours=25)))
    assert plan.run(spark, settings, REQUEST) == {"jobs": 1, "steps": 0, "held": 0, "refused": 1, "over_budget": []}
    assert [row["refusal"] for row in plans(lake)["steady"]] == ["past_horizon"]


def test_nothing_later_than_the_as_of_is_used(
    spark: SparkSession, settings: Settings, lake: Lake, with_models: Callable[..., None]
) -> None:
    with_models("steady")
    fleet.write_fleet(lake, {"steady": STEADY})
    later = fleet.AS_OF + timedelta(hours=2)
    write_rows(lake, tables.JOB_GRAPHS, fleet.graph_rows("steady", later, {"src": 1, "map": 9}))
    write_rows(lake, tables.OBSERVATIONS, fleet.observation_rows("steady", later))
    write_rows(lake, tables.FORECASTS, fleet.forecast_rows("steady", [90_000.0] * 24, later))
    plan.run(spark, settings, REQUEST)
    (row,) = plans(lake)["steady"]
    assert (row["status"], row["parallelism_from"]) == ("hold", fleet.RUNNING)


def test_a_resubmitted_job_loses_the_operators_of_the_old_one(
    spark: SparkSession, settings: Settings, lake: Lake, with_models: Callable[..., None]
) -> None:
    with_models("steady")
    fleet.write_fleet(lake, {"steady": STEADY})
    before = [
        row | {"job_id": "a" * 32, "operator": name}
        for row, name in zip(fleet.graph_rows("steady"), ("old_source", "old_map"), strict=True)
    ]
    early = [row | {"observed_at": row["observed_at"] - timedelta(minutes=20)} for row in before]
    write_rows(lake, tables.JOB_GRAPHS, early)
    plan.run(spark, settings, REQUEST)
    (row,) = plans(lake)["steady"]
    assert (row["job_id"], row["parallelism_from"]) == (fleet.job_id("steady"), fleet.RUNNING)


def test_before_the_first_training_every_job_is_refused(spark: SparkSession, settings: Settings, lake: Lake) -> None:
    fleet.write_fleet(lake, {"steady": STEADY})
    assert plan.run(spark, settings, REQUEST)["refused"] == 1
    assert [row["refusal"] for row in plans(lake)["steady"]] == ["no_model"]
