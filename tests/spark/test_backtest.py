"""The weekly backtest on Delta and MLflow: from silver to gold.backtests, once per moment."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from delta_tables import write_rows
from pyspark.sql import SparkSession

from benchmarks.pipeline.packed_models import pack_models
from include import tables
from include.settings import Backtest, Settings
from include.stage_request import StageRequest
from lab.stages.backtest import stage as backtest
from lab.stages.backtest.comparison_log import comparison_store
from models.bundle.job_models import JobModels
from spark_jobs.lake import Lake
from tests.spark import synthetic_fleet as fleet

pytestmark = [pytest.mark.spark, pytest.mark.long]
REQUEST = StageRequest("backtest", fleet.AS_OF)
POLICIES = {"planner", "reactive", "ds2"}
DAYS = 1.25  # of history: a third is learnt from, the rest scored
WINDOW = timedelta(minutes=5)
JOBS = ("orders", "clicks")


def history(job: str, days: float) -> list[dict[str, Any]]:
    """Source windows of a load with a day and a night, an hour of it missing."""
    rows = []
    for back in range(1, round(days * 288) + 1):
        start = fleet.AS_OF - back * WINDOW
        if 100 <= back < 112:
            continue
        load = 60_000.0 + 40_000.0 * math.sin((start.hour + start.minute / 60.0 - 8.0) * math.pi / 12.0)
        row = fleet.observation_rows(job, start + WINDOW, load, windows=1)[0] | {"age_s": 0.1, "parallelism": 32}
        rows.append(row)
    return rows


@pytest.fixture
def comparing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Short days, three policies, ``ds2`` in use; one job without a capacity model."""
    known = dict.fromkeys([(fleet.CLUSTER, job) for job in (*JOBS, "young")], fleet.job_models())
    unlearnt = fleet.job_models()
    known[fleet.CLUSTER, "idle"] = JobModels({}, unlearnt.selectivity, unlearnt.recovery, unlearnt.latency)
    bundle = pack_models("m0", known)
    monkeypatch.setattr(backtest, "champion", lambda _: bundle)
    options = Backtest(days=1, learning_days=1.0, history_days_min=1.0, policies=tuple(sorted(POLICIES - {"ds2"})))
    planner = settings.planner.model_copy(update={"policy": "ds2"})
    return settings.model_copy(update={"backtest": options, "planner": planner})


def write_histories(lake: Lake) -> None:
    lengths = dict.fromkeys((*JOBS, "idle", "stranger"), DAYS) | {"young": 0.2}
    write_rows(lake, tables.JOB_GRAPHS, [row for job in lengths for row in fleet.graph_rows(job)])
    write_rows(lake, tables.OBSERVATIONS, [row for job, days in lengths.items() for row in history(job, days)])


def rows(lake: Lake) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in lake.read(tables.BACKTESTS).collect()), key=str)


def test_every_job_is_compared_once_per_moment(spark: SparkSession, comparing: Settings, lake: Lake) -> None:
    write_histories(lake)
    counts = backtest.run(spark, comparing, REQUEST)
    assert {name: counts[name] for name in ("jobs", "compared", "skipped")} == {
        "jobs": 5,
        "compared": 3,
        "skipped": {"no_model": 1, "short_history": 1},
    }
    result = rows(lake)
    compared = [row for row in result if row["job"] in JOBS]
    assert {row["policy"] for row in compared} == POLICIES | {"static_max", "clairvoyant"}
    assert len(compared) == len(JOBS) * (len(POLICIES) + 2)
    for row in compared:
        assert row["error"] is None
        assert (row["days"], row["learning_days"]) == (
            pytest.approx(DAYS * 2 / 3, abs=0.01),
            pytest.approx(DAYS / 3, abs=0.01),
        )
        assert row["in_use"] == (row["policy"] == "ds2")
        assert row["cost_vs_clairvoyant"] == pytest.approx(1.0) or row["policy"] != "clairvoyant"
        assert "1.2 days of history" in row["note"]
    for job in JOBS:
        mine = {row["policy"]: row for row in compared if row["job"] == job}
        best = min(POLICIES, key=lambda name: mine[name]["cost"])
        assert [name for name, row in mine.items() if row["recommended"]] == [best]
    idle = [row for row in result if row["job"] == "idle"]
    assert len(idle) == len(POLICIES) + 2
    assert all("no operator has a capacity model" in row["error"] and row["cost"] is None for row in idle)
    assert counts["failed"] == len(idle)

    certified = {row["job"]: row for row in lake.read(tables.CERTIFICATES).collect()}
    assert set(certified) == {"orders", "clicks", "idle", "stranger", "young"}
    for job in JOBS:
        one = certified[job]
        assert one["skipped"] is None
        assert one["least_low"] <= one["least"] <= one["least_high"]
        assert one["cost"] > one["least"] > 0
        assert one["ratio"] == pytest.approx(one["cost"] / one["least"])
        assert "slot-hours a day than the load needed" in one["reason"]
    assert "no operator has a capacity model" in certified["idle"]["skipped"]
    assert "no whole day" in certified["young"]["skipped"]
    assert counts["certified"] == len(JOBS)

    store = comparison_store(comparing)
    [experiment] = store.client.search_experiments(filter_string="name = 'tidewise-backtest'")
    [run] = store.client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.metrics["cost_vs_clairvoyant.clairvoyant"] == pytest.approx(1.0)
    assert {f"{measure}.reactive" for measure in ("rescales_per_day", "late_minutes_per_day")} <= set(run.data.metrics)
    assert {file.path for file in store.client.list_artifacts(run.info.run_id)} == {"backtests.json", "comparison.png"}

    backtest.run(spark, comparing, REQUEST)
    assert rows(lake) == result
    assert len(store.client.search_runs([experiment.experiment_id])) == 1


def test_killed_before_its_write_it_leaves_nothing_behind(
    spark: SparkSession, comparing: Settings, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = Backtest(days=1, learning_days=1.0, history_days_min=0.1, policies=("reactive",))
    settings = comparing.model_copy(update={"backtest": quick})
    write_rows(lake, tables.JOB_GRAPHS, fleet.graph_rows("orders"))
    write_rows(lake, tables.OBSERVATIONS, history("orders", 0.5))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            backtest.run(spark, settings, REQUEST)
    assert rows(lake) == []
    assert comparison_store(settings).client.search_experiments(filter_string="name = 'tidewise-backtest'") == []


def test_without_a_champion_there_is_nothing_to_compare(
    spark: SparkSession, settings: Settings, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backtest, "champion", lambda _: None)
    assert backtest.run(spark, settings, REQUEST) == {"jobs": 0, "compared": 0, "skipped": {}}
    assert not lake.exists(tables.BACKTESTS)
