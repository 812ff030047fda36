"""Training, forecast, plan and report one after the other: on an hour of data, with strange names, beside old days.

In `make test` the whole pipeline is that of ``tests/e2e/test_run.py``, and ``tests/unit`` has names and training need.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from delta_tables import write_rows
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from small_world import AS_OF, write_small_history
from strange_names import STRANGE_NAMES

from fleet.fleet_reader import FleetReader
from include import tables
from include.maintenance.lake_upkeep import keep_up_lake
from include.settings import Retention, Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.training_need import find_training_need
from page.results_view import ResultsReader
from spark_jobs.forecast import stage as forecast
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from spark_jobs.model_store import ModelStore, load_bundle
from spark_jobs.plan import stage as plan
from spark_jobs.report import stage as report
from spark_jobs.train import stage as train
from tests.spark import synthetic_observations as synthetic

pytestmark = [pytest.mark.spark, pytest.mark.long]
HOUR = timedelta(hours=1)


def run_all(spark: SparkSession, settings: Settings, as_of: Any) -> dict[str, dict[str, object]]:
    stages = {Stage.TRAIN: train, Stage.FORECAST: forecast, Stage.PLAN: plan, Stage.REPORT: report}
    return {str(name): stage.run(spark, settings, StageRequest(name, as_of)) for name, stage in stages.items()}


def plans(settings: Settings) -> list[dict[str, Any]]:
    return json.loads((Path(settings.paths.out) / "plans.json").read_text())


@pytest.mark.covers("apply_review 24")
def test_a_new_installation_has_a_plan_after_its_first_hour(spark: SparkSession, settings: Settings) -> None:
    write_small_history(Path(settings.paths.raw), hours=1)
    assert find_training_need(settings, AS_OF) is None
    ingest.run(spark, settings, StageRequest(Stage.INGEST, AS_OF, AS_OF - HOUR, AS_OF))
    assert find_training_need(settings, AS_OF) == "there is no model yet, and jobs with 3 windows or more: 3"
    counts = run_all(spark, settings, AS_OF)
    assert counts["train"]["gate"] == "first"
    assert counts["plan"]["jobs"] == 3
    refused = [row for row in plans(settings) if row["status"] == "refused"]
    assert refused == [], [row["reason"] for row in refused]
    assert all("(level held)" in row["reason"] for row in plans(settings))  # no usual day is known to follow
    bundle = load_bundle(settings)
    curves = [curve for job in bundle.jobs() for curve in bundle.for_job(*job).capacity.values()]
    assert len(curves) >= 9
    for curve in curves:  # nothing is known of twice the parallelism that ran, and the interval says so
        ran, twice = int(curve.observed[-1]), 2 * int(curve.observed[-1])
        if twice <= len(curve.parallelism):
            relative = curve.sd_per_s / curve.mean_per_s
            assert relative[twice - 1] > max(0.05, 3 * relative[ran - 1])
    assert find_training_need(settings, AS_OF) is None  # every job is in a model now
    assert "<h2>" in (Path(settings.paths.out) / "report.html").read_text()


def write_strange_fleet(lake: Lake) -> None:
    """Write a day of jobs whose name, and the name of one operator, are strange, and of one ordinary job."""
    names = [*STRANGE_NAMES, "ordinary"]
    observed, graphs = [], synthetic.graphs(names).assign(observed_at=synthetic.AS_OF - timedelta(minutes=5))
    for number, name in enumerate(names):
        rows = synthetic.observations(name, days=1, seed=number).assign(samples=5)
        is_source = rows["operator"] == "source"
        rows["target_data_rate_per_s"] = rows["observed_processing_rate_per_s"].where(is_source)
        observed.append(rows.replace({"operator": {"parse": name or "parse"}}))
        graphs.loc[(graphs["job"] == name) & (graphs["operator"] == "parse"), "operator"] = name or "parse"
        fed = (graphs["job"] == name) & (graphs["operator"] == "count")
        graphs.loc[fed, "upstream"] = graphs.loc[fed, "upstream"].map(lambda _, own=name: [own or "parse"])
    synthetic.write(lake, tables.OBSERVATIONS, synthetic.pd.concat(observed), "window_start")
    synthetic.write(lake, tables.JOB_GRAPHS, graphs, "observed_at")
    synthetic.write(lake, tables.RESCALES, synthetic.events(names), "started_at")


def lose_old_days(lake: Lake) -> None:
    """Add a day of a year ago to every table in days, and remove its files: whoever opens it fails."""
    old = synthetic.AS_OF - timedelta(days=365)
    times = ("as_of", "window_start", "observed_at", "started_at", "running_at", "apply_at", "bin_start")
    row = dict.fromkeys(times, old) | {"cluster": "c5m", "job": "of old", "operator": "source", "date": old.date()}
    valid = {"status": "hold", "stage": "plan", "kind": "rescale", "decision": "wait", "reason": "old", "hour": 0}
    quantiles = dict.fromkeys(("q10_per_s", "q50_per_s", "q90_per_s", "q95_per_s"), 1.0)
    for table in tables.TABLES:
        if "date" in table.partition_by and not table.name.startswith("bronze"):
            kind = {"kind": "step", "step": 0} if table is tables.PROFILES else {}
            rest = {"cost": 1.0, "scale_out": 1, "rate_per_s": 1.0}
            write_rows(lake, table, [row | valid | quantiles | rest | kind])
            files = [uri for uri in DeltaTable(lake.path(table)).file_uris() if f"date={old.date()}" in uri]
            assert files
            for file in files:
                Path(file).unlink()


@pytest.mark.covers("apply_review 7")
@pytest.mark.covers("apply_review 10")
@pytest.mark.covers("apply_review 13")
def test_strange_names_stop_no_stage_and_old_days_are_not_opened(
    spark: SparkSession, settings: Settings, lake: Lake
) -> None:
    write_strange_fleet(lake)
    lose_old_days(lake)
    counts = run_all(spark, settings, synthetic.AS_OF)
    assert counts["train"]["jobs"] == len(STRANGE_NAMES) + 1
    assert counts["plan"]["jobs"] == len(STRANGE_NAMES) + 1
    refused = {row["job"]: row["reason"] for row in plans(settings) if row["status"] == "refused"}
    assert refused == {}
    store = ModelStore(settings.mlflow)
    run = store.find_finished(load_bundle(settings).model_version)
    assert run is not None
    page = (Path(settings.paths.out) / "report.html").read_text()
    assert page.count('<main class="part" id="job-') == len(STRANGE_NAMES) + 1
    day = (synthetic.AS_OF - timedelta(days=1)).date()  # it ends at midnight
    days = lake.few(tables.JOB_DAYS).read(["job", "measured_s", "slot_hours"], day, day).to_pylist()
    assert {row["job"] for row in days} == {row["job"] for row in plans(settings)}
    assert all(row["measured_s"] > 0 and row["slot_hours"] > 0 for row in days)
    results = ResultsReader(FleetReader(settings, {})).read(synthetic.AS_OF.timestamp())
    assert {one.job for one in results.jobs} == {row["job"] for row in days}
    assert (results.rescales, results.saved) == (0, None)

    # Upkeep without Spark, then Spark again: what was lost is of no table any more, and the plan is the same.
    before, days = plans(settings), {"silver_days": 300, "gold_days": 300, "log_days": 300}
    retained = settings.model_copy(update={"retention": Retention(**days)})
    done = keep_up_lake(retained, synthetic.AS_OF + timedelta(days=3), applies=True)
    assert done.failures == {}
    assert sum(one.old_files for one in done.tables) >= 9
    assert all(lake.read(table).count() >= 0 for table in tables.TABLES if lake.exists(table))
    assert lake.read(tables.OBSERVATIONS).count() == 288 * 4 * (len(STRANGE_NAMES) + 1)
    plan.run(spark, settings, StageRequest(Stage.PLAN, synthetic.AS_OF))
    assert plans(settings) == before
