"""The plan stage on small tables: rows, refusals by name, reruns. Each situation is a job of one fleet."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta
from pathlib import Path

import numpy as np
import pytest
from delta_tables import write_rows
from pyspark.sql import Row

from benchmarks.pipeline.packed_models import pack_models
from benchmarks.pipeline.spark_jobs import count_jobs
from include import tables
from include.model_registry import CHAMPION
from include.settings import Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from models.bundle.fleet_bundle import FleetBundle
from spark_jobs.lake import Lake
from spark_jobs.model_store import ModelStore
from spark_jobs.plan import job_inputs
from spark_jobs.plan import stage as plan
from spark_jobs.plan.remake_plan import NotRecordedError, make_again
from tests.spark import synthetic_fleet as fleet

pytestmark = pytest.mark.spark
REQUEST = StageRequest(Stage.PLAN, fleet.AS_OF)
FAR = StageRequest(Stage.PLAN, fleet.AS_OF + timedelta(minutes=30))
OLD = fleet.AS_OF - timedelta(hours=5)
NEXT = fleet.AS_OF + timedelta(hours=2)
RISING = [20_000.0] * 4 + [80_000.0] * 20
STEADY = [20_000.0] * 24
OTHER_CLUSTER = "c15s"  # to plan for a past horizon refuses a whole cluster
HEALTHY = {
    "rising": RISING,
    "uncertain": RISING,
    "renamed": RISING,
    "steady": STEADY,
    "seen_later": STEADY,
    "resubmitted": STEADY,
}
REFUSED = {
    "backfilled": "past_horizon",
    "gap": "no_forecast",
    "load_unseen": "load_unseen",
    "never_measured": "stale_metrics",
    "no_forecast": "no_forecast",
    "no_model": "no_model",
    "stale_forecast": "stale_forecast",
    "stale_metrics": "stale_metrics",
    "unknown_operator": "no_forecast",  # there is one, of a source that it no longer has
}
Plans = dict[str, list[Row]]


def models() -> FleetBundle:
    """Return models of every job but one; the capacity of ``uncertain`` is known to 100 records/s."""
    known = {(fleet.CLUSTER, job): fleet.job_models() for job in [*HEALTHY, *REFUSED] if job != "no_model"}
    known[OTHER_CLUSTER, "backfilled"] = known.pop((fleet.CLUSTER, "backfilled"))
    certain = known[fleet.CLUSTER, "uncertain"]
    curves = {
        name: replace(curve, sd_per_s=np.full(len(curve.parallelism), 100.0))
        for name, curve in certain.capacity.items()
    }
    known[fleet.CLUSTER, "uncertain"] = replace(certain, capacity=curves)
    return pack_models("m0", known)


def champion(settings: Settings, bundle: FleetBundle) -> None:
    """Log and register a bundle as training does, and make it the champion."""
    store = ModelStore(settings.mlflow)
    with store.run(bundle.model_version, {}):
        store.log_bundle(bundle)
    run = store.find_finished(bundle.model_version)
    assert run is not None
    store.point(CHAMPION, store.register(run))


def write_refused(lake: Lake) -> None:
    """Write jobs that each lack something."""
    healthy = ["no_model", "unknown_operator", "no_forecast", "stale_forecast", "gap"]
    graphs = [row for job in [*healthy, "never_measured"] for row in fleet.graph_rows(job)]
    write_rows(lake, tables.JOB_GRAPHS, graphs + fleet.graph_rows("stale_metrics", OLD))
    observed = [row for job in healthy for row in fleet.observation_rows(job)]
    write_rows(lake, tables.OBSERVATIONS, observed + fleet.observation_rows("stale_metrics", OLD))
    untold = [row | {"target_data_rate_per_s": None} for row in fleet.observation_rows("load_unseen")]
    write_rows(lake, tables.JOB_GRAPHS, fleet.graph_rows("load_unseen"))
    write_rows(lake, tables.OBSERVATIONS, untold)
    forecasts = [row for job in ("no_model", "stale_metrics") for row in fleet.forecast_rows(job, STEADY)]
    forecasts += fleet.forecast_rows("unknown_operator", STEADY, source="renamed")
    forecasts += fleet.forecast_rows("stale_forecast", STEADY, at=OLD)
    forecasts += fleet.forecast_rows("gap", STEADY)[:3] + fleet.forecast_rows("gap", STEADY)[4:]
    forecasts += fleet.forecast_rows("left_long_ago", STEADY)
    forecasts += fleet.forecast_rows("backfilled", STEADY, cluster=OTHER_CLUSTER)
    write_rows(lake, tables.FORECASTS, forecasts)
    after = fleet.observation_rows("other", fleet.AS_OF + timedelta(hours=25), cluster=OTHER_CLUSTER)
    write_rows(lake, tables.JOB_GRAPHS, fleet.graph_rows("backfilled", cluster=OTHER_CLUSTER))
    write_rows(lake, tables.OBSERVATIONS, fleet.observation_rows("backfilled", cluster=OTHER_CLUSTER) + after)


def write_histories(lake: Lake) -> None:
    """Write what else is known of healthy jobs, and must not count."""
    old = fleet.forecast_rows("renamed", [500_000.0] * 24, source="src of last week")
    write_rows(lake, tables.FORECASTS, [row | {"fallback_reason": "only an hour of history"} for row in old])
    write_rows(lake, tables.JOB_GRAPHS, fleet.graph_rows("seen_later", NEXT, {"src": 1, "map": 9}))
    write_rows(lake, tables.OBSERVATIONS, fleet.observation_rows("seen_later", NEXT))
    write_rows(lake, tables.FORECASTS, fleet.forecast_rows("seen_later", [90_000.0] * 24, NEXT))
    before = [
        row | {"job_id": "a" * 32, "operator": name}
        for row, name in zip(fleet.graph_rows("resubmitted"), ("old_source", "old_map"), strict=True)
    ]
    early = [row | {"observed_at": row["observed_at"] - timedelta(minutes=20)} for row in before]
    write_rows(lake, tables.JOB_GRAPHS, early)


def plans(lake: Lake) -> Plans:
    rows: Plans = {}
    for row in lake.read(tables.PLANS).orderBy("as_of", "cluster", "job", "step_index").collect():
        rows.setdefault(row["job"], []).append(row)
    return rows


@dataclass(frozen=True)
class Made:
    """What the stage took and counted, all plans in the lake after it, and the files that it wrote."""

    spark_jobs: int = field(compare=False)
    counts: dict[str, object]
    plans: Plans
    files: dict[str, str]


def make(lake: Lake, settings: Settings, request: StageRequest) -> Made:
    begun = count_jobs(lake.spark)
    counts = plan.run(lake.spark, settings, request)
    spark_jobs = count_jobs(lake.spark) - begun
    files = {path.name: path.read_text() for path in Path(settings.paths.out).glob("*.json")}
    return Made(spark_jobs, counts, plans(lake), files)


@dataclass(frozen=True)
class Runs:
    """Runs of the stage on one lake, in this order."""

    settings: Settings
    lake: Lake
    untrained: Made
    first: Made
    second: Made
    far: Made


@pytest.fixture(scope="module")
def runs(shared_settings: Settings, shared_lake: Lake) -> Runs:
    """Plain needs, whose steps can be worked out by hand: before any training, twice, and half an hour later.

    Before the last, a training could not compare the champion.
    """
    settings, lake = shared_settings, shared_lake
    planner = settings.planner.model_copy(update={"policy": "need_vector"})
    settings = settings.model_copy(update={"planner": planner})
    fleet.write_fleet(lake, HEALTHY)
    write_refused(lake)
    write_histories(lake)
    untrained = make(lake, settings, REQUEST)
    champion(settings, models())
    first, second = make(lake, settings, REQUEST), make(lake, settings, REQUEST)
    retained = {"as_of": fleet.AS_OF, "model_version": "m1", "champion_before": "m0", "gate": "kept", "compared": 0}
    write_rows(lake, tables.MODEL_VERSIONS, [retained])
    return Runs(settings, lake, untrained, first, second, make(lake, settings, FAR))


def test_steps_ahead_of_a_rise_through_the_real_model_store(runs: Runs) -> None:
    assert runs.first.counts == {
        "jobs": len(HEALTHY) + len(REFUSED),
        "steps": 3,
        "held": 3,
        "refused": len(REFUSED),
        "over_budget": [],
        "models_lost": "",
    }
    (step,), (hold,) = runs.first.plans["rising"], runs.first.plans["steady"]
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


def test_running_twice_gives_the_same_rows_and_files(runs: Runs) -> None:
    first, second = runs.first, runs.second
    assert second.counts == first.counts
    assert sorted(map(str, second.plans.items())) == sorted(map(str, first.plans.items()))
    assert second.files == first.files
    written = json.loads(first.files["plans.json"])
    assert len(written) == len(HEALTHY) + len(REFUSED)
    rising, steady = ([row for row in written if row["job"] == job] for job in ("rising", "steady"))
    assert [row["status"] for row in rising + steady] == ["planned", "hold"]
    assert rising[0]["effective_at"] == "2026-11-20T22:00:00Z"
    assert rising[0]["apply_at"] == "2026-11-20T21:57:20Z"


def test_jobs_in_several_parts_have_the_same_rows(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = runs.far
    monkeypatch.setattr(job_inputs, "_HELD_BYTES", 1000)
    in_parts = make(runs.lake, runs.settings, FAR)
    assert sorted(map(str, in_parts.plans.items())) == sorted(map(str, whole.plans.items()))
    assert (in_parts.counts, in_parts.files) == (whole.counts, whole.files)


def test_another_as_of_is_another_slice(runs: Runs) -> None:
    before, after = runs.far.plans["steady"]
    assert [before] == runs.second.plans["steady"]
    assert after["as_of"] - before["as_of"] == timedelta(minutes=30)
    assert runs.far.spark_jobs <= 4  # the states are sent, the plan is made, both tables are written


def test_every_refusal_is_named(runs: Runs) -> None:
    refusals = {job: [row["refusal"] for row in rows] for job, rows in runs.first.plans.items()}
    assert refusals == {job: [None] for job in HEALTHY} | {job: [why] for job, why in REFUSED.items()}
    (refused,) = runs.first.plans["stale_metrics"]
    assert "5.0 h old, more than planner.max_input_age_h = 3" in refused["reason"]
    assert refused["parallelism_from"] == fleet.RUNNING


def warned(row: Row) -> tuple[str, str]:
    return row["status"], str(row["warning"])


@pytest.mark.covers("apply_review 2")
def test_an_old_or_unrecorded_model_plans_on_with_wider_intervals_and_a_warning(runs: Runs) -> None:
    proven, unproven = runs.far.plans["uncertain"]
    assert [proven] == runs.first.plans["uncertain"]
    assert warned(proven) == ("planned", "None")
    assert warned(unproven) == (
        "planned",
        "the last training could not compare the champion; its intervals are widened",
    )
    width = [row["expected_capacity_per_s"] - row["expected_capacity_lower_per_s"] for row in (proven, unproven)]
    assert width[0] > 0
    assert width[1] == pytest.approx(2 * width[0])
    assert unproven["parallelism_to"] == proven["parallelism_to"]
    (written,) = [row for row in json.loads(runs.far.files["plans.json"]) if row["job"] == "uncertain"]
    assert written["warning"] == unproven["warning"]


@pytest.mark.covers("apply_review 3")
def test_a_source_that_was_renamed_does_not_refuse_its_job(runs: Runs) -> None:
    (step,) = runs.first.plans["renamed"]
    assert (step["status"], step["parallelism_to"]) == ("planned", {"src": 1, "map": 11})
    assert step["expected_load_q90_per_s"] == pytest.approx(88_000)


def test_a_backfill_is_never_planned_for(runs: Runs) -> None:
    of_cluster = [row for rows in runs.first.plans.values() for row in rows if row["cluster"] == OTHER_CLUSTER]
    assert [(row["job"], row["refusal"]) for row in of_cluster] == [("backfilled", "past_horizon")]


def test_nothing_later_than_the_as_of_is_used(runs: Runs) -> None:
    (row,) = runs.first.plans["seen_later"]
    assert (row["status"], row["parallelism_from"]) == ("hold", fleet.RUNNING)


def test_a_resubmitted_job_loses_the_operators_of_the_old_one(runs: Runs) -> None:
    (row,) = runs.first.plans["resubmitted"]
    assert (row["job_id"], row["parallelism_from"]) == (fleet.job_id("resubmitted"), fleet.RUNNING)


def test_before_the_first_training_every_job_is_refused(runs: Runs) -> None:
    assert runs.untrained.counts["refused"] == runs.untrained.counts["jobs"] == len(HEALTHY) + len(REFUSED)
    refusals = {job: [row["refusal"] for row in runs.untrained.plans[job]] for job in HEALTHY}
    assert refusals == {job: ["no_model"] for job in HEALTHY}


def test_a_plan_is_made_again_from_the_versions_that_it_recorded(runs: Runs) -> None:
    lake, settings = runs.lake, runs.settings
    # What comes later, of the same moments even, does not change what is made again from the recorded versions.
    write_rows(lake, tables.OBSERVATIONS, fleet.observation_rows("rising", load=90_000.0))
    write_rows(lake, tables.FORECASTS, fleet.forecast_rows("steady", [90_000.0] * 24))
    champion(settings, replace(fleet.fleet("rising"), model_version="m2"))
    changed = settings.model_copy(update={"planner": settings.planner.model_copy(update={"horizon_h": 12})})
    again = make_again(lake, changed, fleet.AS_OF)
    everything = len(HEALTHY) + len(REFUSED)
    assert (again.rows, again.same) == (everything, everything)
    now = make(lake, settings, REQUEST)
    # As things are now: m2 does not know the other jobs.
    assert (now.counts["steps"], now.counts["refused"]) == (1, everything - 1)
    assert "no training of model m2 is recorded" in now.plans["rising"][0]["warning"]
    with pytest.raises(NotRecordedError, match="no plan as of"):
        make_again(lake, settings, fleet.AS_OF + timedelta(days=1))


def memories_of(lake: Lake) -> list[Row]:
    return lake.read(tables.POLICY_MEMORY).orderBy("as_of", "cluster", "job").collect()


def test_the_programme_plans_a_day_with_bands_and_is_made_again(lake: Lake, settings: Settings) -> None:
    """Its law knows two hours of a constant load; ``map`` does 10,000 records/s an instance."""
    chosen = settings.planner.model_copy(update={"policy": "programme"})
    settings = settings.model_copy(update={"planner": chosen})
    early = fleet.AS_OF - timedelta(hours=2)
    write_rows(lake, tables.JOB_GRAPHS, fleet.graph_rows("rising"))
    write_rows(lake, tables.OBSERVATIONS, fleet.busy_rows("rising", 20_000.0))
    bins = fleet.forecast_rows("rising", [20_000.0] * 6 + [80_000.0] * 20, at=early)
    write_rows(lake, tables.FORECASTS, [row | {"as_of": fleet.AS_OF, "date": fleet.AS_OF.date()} for row in bins])
    write_rows(lake, tables.MODEL_VERSIONS, [fleet.model_row()])
    champion(settings, fleet.fleet("rising"))
    made = make(lake, settings, REQUEST)
    rise = made.plans["rising"][0]
    assert (rise["status"], rise["policy"], rise["slots_from"]) == ("planned", "programme", 3)
    assert 5 <= rise["slots"] <= 12
    due = rise["apply_at"].replace(tzinfo=UTC)
    assert timedelta(hours=3) <= due - fleet.AS_OF <= timedelta(hours=4)
    assert rise["band_load_high_per_s"] > rise["band_load_low_per_s"]
    assert rise["reason"].startswith(f"3 -> {rise['slots']} slots: load up to ")
    assert "as planned while the load is " in rise["reason"]
    assert json.loads(made.files["plans.json"])[0]["band_load_high_per_s"] == rise["band_load_high_per_s"]
    again = make_again(lake, settings, fleet.AS_OF)
    assert (again.rows, again.same) == (len(made.plans["rising"]), len(made.plans["rising"]))
    memories = memories_of(lake)
    assert [row["as_of"].replace(tzinfo=UTC) for row in memories] == [fleet.AS_OF]
    # An hour later it is no new job: what it remembers is read.
    later = StageRequest(Stage.PLAN, fleet.AS_OF + timedelta(hours=1))
    make(lake, settings, later)
    remembered = memories_of(lake)
    assert len(remembered) == 2
    assert make(lake, settings, REQUEST).files == made.files
    assert memories_of(lake) == remembered
