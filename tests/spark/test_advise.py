"""The advice on Delta: from silver to one page, each job by itself."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from delta_tables import write_rows
from pyspark.sql import SparkSession

from include import tables
from include.settings import Advise, Backtest, Settings
from include.stage_request import StageRequest
from lab.stages.advise import stage as advise
from spark_jobs.lake import Lake
from tests.spark import synthetic_fleet as fleet

pytestmark = pytest.mark.spark
DAYS = 2.5
REQUEST = StageRequest("advise", fleet.AS_OF - timedelta(days=1), fleet.AS_OF - timedelta(days=1), fleet.AS_OF)
FAILED_AT = fleet.AS_OF - timedelta(hours=5)
RAN = 14  # of the operator ``map``, which needs ten at the peak


def history(job: str, days: float) -> list[dict[str, Any]]:
    """Windows of a load with a day and a night, at one parallelism; an hour of it missing."""
    rows = []
    for back in range(round(days * 288)):
        end = fleet.AS_OF - timedelta(minutes=5 * back)
        if 100 <= back < 112:
            continue
        start = end - timedelta(minutes=5)
        load = 60_000.0 + 30_000.0 * math.sin((start.hour + start.minute / 60.0 - 8.0) * math.pi / 12.0)
        for row in fleet.observation_rows(job, end, load, windows=1):
            own = {"age_s": 90.0 if back == 3 else 0.1} if row["is_source"] else {"parallelism": RAN}
            capacity = 1e6 if row["is_source"] else 10_000.0 * RAN
            rows.append(row | own | {"true_processing_rate_per_s": capacity, "busy_share": load / capacity})
    return rows


def event(kind: str, at: Any, downtime_s: float) -> dict[str, Any]:
    at_day = {"date": at.date(), "hour": at.hour}
    named = {"cluster": fleet.CLUSTER, "job": "orders", "job_id": fleet.job_id("orders")}
    return named | at_day | {"started_at": at, "kind": kind, "downtime_s": downtime_s}


@pytest.fixture
def advising(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(advise, "load_bundle", lambda _: fleet.fleet("orders", "clicks", "young"))
    options = Advise(days=1, seeds=1, policies=("planner", "flink_autoscaler_tuned"), jobs="c5m/(orders|young|strange)")
    backtest = Backtest(learning_days=0.5, history_days_min=1.0)
    return settings.model_copy(update={"advise": options, "backtest": backtest})


@pytest.mark.long  # tests/unit/test_advice.py has its parts
def test_history_in_and_a_page_out(spark: SparkSession, advising: Settings, lake: Lake) -> None:
    lengths = {"orders": DAYS, "clicks": DAYS, "young": 0.2, "stranger": DAYS}
    write_rows(lake, tables.JOB_GRAPHS, [row for job in lengths for row in fleet.graph_rows(job)])
    write_rows(lake, tables.OBSERVATIONS, [row for job, days in lengths.items() for row in history(job, days)])
    happened = [event("restart", FAILED_AT, 41.0), event("rescale", FAILED_AT - timedelta(hours=3), 22.0)]
    write_rows(lake, tables.RESCALES, happened)

    counts = advise.run(spark, advising, REQUEST)
    assert {name: counts[name] for name in ("jobs", "appraised", "skipped")} == {
        "jobs": 3,  # `clicks` is not asked for
        "appraised": 1,
        "skipped": {"no_model": 1, "short_history": 1},
    }
    out = Path(advising.paths.out)
    advice = json.loads((out / "advice.json").read_text())
    (job,) = advice["jobs"]
    assert (job["cluster"], job["job"], job["days"]) == (fleet.CLUSTER, "orders", 1)
    assert job["ran"]["slots"] == pytest.approx(RAN)
    assert job["ran"]["failures"] == job["ran"]["rescales"] == 1.0
    assert job["ran"]["late_minutes"] == pytest.approx(5.0 * 288 / 276)  # one window late of those that were measured
    by_name = {option["name"]: option for option in job["options"]}
    assert list(by_name) == ["ran", "planner", "flink_autoscaler_tuned", "constant"]
    assert by_name["ran"]["slots"] == pytest.approx(RAN)
    assert by_name["ran"]["late_minutes"]["mean"] > 0  # after the failure
    assert by_name["planner"]["slots"] < RAN
    assert by_name["constant"]["slots"] < RAN
    assert job["calibration"]["capacity_error"] == pytest.approx(0.0, abs=1e-6)
    assert job["calibration"]["downtime_came_s"] == 22.0
    assert advice["days"] == 1
    assert {row["name"] for row in advice["totals"]} == set(by_name)
    (own, *others) = json.loads((out / "goals.json").read_text())["jobs"][f"{fleet.CLUSTER}/orders"]
    assert [one["label"] for one in own["points"]] == ["cheap", "balanced", "on_time"]
    assert [one["policy"] for one in others] == ["flink_autoscaler_tuned"]
    page = (out / "advice.html").read_text()
    assert "orders" in page
    assert "young" in page
    assert "clicks" not in page

    advise.run(spark, advising, REQUEST)
    assert json.loads((out / "advice.json").read_text()) == advice
    assert (out / "advice.html").read_text() == page
