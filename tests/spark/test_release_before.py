"""What the release before this one left behind opens: its settings, lake, champion, plans, memories and control log."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from controller_process import read_log
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from release_before import AS_OF, JOBS, unpack

from cli import log as log_command
from controller.command import warm_up
from controller.memory.stored_memories import StoredMemories
from controller.view.plan_tables import PlanTables
from controller.wiring import build_ticker
from include import tables
from include.maintenance.lake_upkeep import keep_up_lake
from include.settings import Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from models.bundle.fleet_bundle import FleetBundle
from spark_jobs.forecast import stage as forecast
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from spark_jobs.model_store import ModelStore, load_bundle
from spark_jobs.plan import stage as plan
from spark_jobs.report import stage as report
from spark_jobs.train import stage as train

pytestmark = pytest.mark.spark
CLUSTER = "simulated"
NAMES = [(CLUSTER, job) for job in JOBS]
HOUR = timedelta(hours=1)
NEXT = AS_OF + HOUR


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of an installation that the release before left."""
    return unpack(tmp_path_factory.mktemp("before"))


def columns_of(settings: Settings, table: tables.Table) -> set[str]:
    return {field.name for field in DeltaTable(f"{settings.paths.lake}/{table.relative_path}").schema().fields}


def tick(settings: Settings, at: Any) -> None:
    ticker = build_ticker(lambda: settings, [CLUSTER], "here:1", at.timestamp, is_rehearsal=True)
    assert warm_up(ticker, settings, [CLUSTER], at.timestamp()) > 0
    ticker.tick()
    ticker.release()


def plans(settings: Settings) -> list[dict[str, Any]]:
    return json.loads((Path(settings.paths.out) / "plans.json").read_text())


def test_it_is_of_the_release_before(old: Settings) -> None:
    assert not (Path(old.paths.lake) / tables.JOBS.relative_path).exists()
    assert not columns_of(old, tables.JOB_GRAPHS) & {"status", "partitions"}
    assert "operators" not in columns_of(old, tables.CONTROLLER_MEMORY)
    bundle = load_bundle(old)
    assert "edge_count" not in bundle.arrays
    assert not bundle.placed


def test_a_controller_goes_on_from_its_memories_log_plans_and_champion(
    old: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    at = AS_OF + timedelta(minutes=5)
    store, logged = StoredMemories(old.paths.lake), read_log(Path(old.paths.lake))
    retained = store.read(NAMES, at.timestamp())
    assert set(retained) == set(NAMES)
    assert all(one.plan_as_of_s for one in retained.values())
    assert not any(one.remembered for one in retained.values())  # of planner, which is the laboratory's: begun anew
    assert logged
    assert set(PlanTables(old.paths.lake).read_plans(at.timestamp())) == set(NAMES)
    with caplog.at_level(logging.WARNING):
        tick(old, at)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []
    after = store.read(NAMES, at.timestamp())
    assert all(one.operators for one in after.values())  # of this release, in the same table
    now = read_log(Path(old.paths.lake))
    assert all(row in now for row in logged)


@dataclass(frozen=True)
class Continued:
    """The same installation after this release took the next hour through its stages.

    Attributes:
        champion: of the release before.
        rows: of the plan that was made with it and with the forecasts of the release before.
    """

    settings: Settings
    lake: Lake
    champion: FleetBundle
    rows: list[dict[str, Any]]


@pytest.fixture(scope="module")
def continued(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Continued:
    settings = unpack(tmp_path_factory.mktemp("continued"))
    champion = load_bundle(settings)
    ingest.run(spark, settings, StageRequest(Stage.INGEST, NEXT, AS_OF, NEXT))
    plan.run(spark, settings, StageRequest(Stage.PLAN, NEXT))
    rows = plans(settings)
    tick(settings, NEXT + timedelta(minutes=1))
    return Continued(settings, Lake(spark, settings.paths.lake), champion, rows)


def test_the_next_hour_continues_the_tables(continued: Continued) -> None:
    rows = continued.lake.read(tables.OBSERVATIONS).select("job", "operator", "hour").distinct().collect()
    before, after = (
        {(row["job"], row["operator"]) for row in rows if row["hour"] in hours} for hours in ((17, 18), (19,))
    )
    assert before == after
    assert {row["state"] for row in continued.lake.read(tables.JOBS).collect()} == {"RUNNING"}
    graphs = continued.lake.read(tables.JOB_GRAPHS).select("hour", "status").distinct().collect()
    assert {row["status"] for row in graphs if row["hour"] < AS_OF.hour} == {None}
    assert {row["status"] for row in graphs if row["hour"] == AS_OF.hour} == {"RUNNING"}


def test_the_old_champion_plans(continued: Continued) -> None:
    assert {row["job"] for row in continued.rows} == set(JOBS)
    assert {row["model_version"] for row in continued.rows} == {continued.champion.model_version}
    assert [row["reason"] for row in continued.rows if row["status"] == "refused"] == []


@pytest.mark.long
def test_the_sources_are_forecast_from_windows_of_both_releases(spark: SparkSession, continued: Continued) -> None:
    counts = forecast.run(spark, continued.settings, StageRequest(Stage.FORECAST, NEXT))
    assert counts["forecasts"] >= len(JOBS)
    assert counts["stale"] == counts["unusable"] == 0


@pytest.mark.long
def test_a_training_makes_a_model_beside_the_old_champion(spark: SparkSession, continued: Continued) -> None:
    trained = train.run(spark, continued.settings, StageRequest(Stage.TRAIN, NEXT))
    assert trained["gate"] in {"passed", "failed"}
    store = ModelStore(continued.settings.mlflow)
    new = store.load("challenger")
    assert new is not None
    assert new.model_version != continued.champion.model_version
    assert "edge_count" in new.arrays
    again = store.load_version(continued.champion.model_version)
    assert again is not None
    assert again.to_bytes() == continued.champion.to_bytes()


@pytest.mark.long
def test_report_log_and_upkeep_read_the_rows_of_both_releases(
    spark: SparkSession, continued: Continued, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report.run(spark, continued.settings, StageRequest(Stage.REPORT, NEXT))
    page = (Path(continued.settings.paths.out) / "report.html").read_text(encoding="utf-8")
    assert page.count('<main class="part" id="job-') == len(JOBS)
    assert "Not drawn" not in page
    monkeypatch.setenv("TIDEWISE__PATHS__LAKE", continued.settings.paths.lake)
    logged = {row["job"] for row in read_log(Path(continued.settings.paths.lake))}
    assert logged
    for job in logged:
        assert log_command.main([f"{CLUSTER}/{job}", "--until", (NEXT + HOUR).isoformat()]) == 0
        assert "2026-11-20 18:50:00" in capsys.readouterr().out
    assert keep_up_lake(continued.settings, NEXT, applies=True).failures == {}


@pytest.mark.long
def test_an_hour_that_is_ingested_again_gets_its_ages(spark: SparkSession, tmp_path: Path) -> None:
    settings = unpack(tmp_path)
    assert "age_s" not in columns_of(settings, tables.OBSERVATIONS)
    ingest.run(spark, settings, StageRequest(Stage.INGEST, AS_OF, AS_OF - HOUR, AS_OF))
    rows = Lake(spark, settings.paths.lake).read(tables.OBSERVATIONS).where("is_source").collect()
    ages = {hour: {row["age_s"] for row in rows if row["hour"] == hour} for hour in (AS_OF.hour - 2, AS_OF.hour - 1)}
    assert ages.pop(AS_OF.hour - 2) == {None}
    assert None not in ages[AS_OF.hour - 1]
    assert len(ages[AS_OF.hour - 1]) > 1
