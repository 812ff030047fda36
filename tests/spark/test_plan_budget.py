"""The planner through the real stage: ahead of a rise, following where there is no season, within a budget."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta

import numpy as np
import pytest
from delta_tables import write_rows
from pyspark.sql import SparkSession

from include import tables
from include.settings import Settings
from include.stages import Stage, StageRequest
from spark_jobs.lake import Lake
from spark_jobs.plan import stage as plan
from tests.spark import synthetic_fleet as fleet

pytestmark = pytest.mark.spark
REQUEST = StageRequest(Stage.PLAN, fleet.AS_OF)
WAVE = [float(30_000.0 + 20_000.0 * np.sin(2 * np.pi * hour / 24)) for hour in range(24)]
JOBS = tuple(f"wave-{number}" for number in range(6))


def with_budget(settings: Settings, total: int | None) -> Settings:
    cluster = settings.clusters[fleet.CLUSTER].model_copy(update={"slots_total": total})
    return settings.model_copy(update={"clusters": {**settings.clusters, fleet.CLUSTER: cluster}})


def slots_over_time(lake: Lake) -> np.ndarray:
    """Return the slots of the fleet in every ten minutes of the plan, a rescale counting for both sides."""
    steps: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for row in lake.read(tables.PLANS).orderBy("job", "step_index").collect():
        assert row["status"] != "refused", row["reason"]
        steps[row["job"]].append((row["effective_at"], row["slots"] if row["status"] == "planned" else 0))
    total = np.zeros(144)
    for job in JOBS:
        at = np.full(144, max(fleet.RUNNING.values()))
        for effective_at, slots in steps[job]:
            begin = int((effective_at.replace(tzinfo=fleet.AS_OF.tzinfo) - fleet.AS_OF) / timedelta(minutes=10))
            if slots:
                at[begin:] = slots
        total += at
    return total


def test_a_budget_is_kept_by_all_jobs_together(
    spark: SparkSession, settings: Settings, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "champion", lambda _: fleet.fleet(*JOBS))
    fleet.write_fleet(lake, dict.fromkeys(JOBS, WAVE))
    free = plan.run(spark, settings, REQUEST)
    assert free["refused"] == 0
    assert free["over_budget"] == []
    wanted = slots_over_time(lake)
    total = int(0.8 * wanted.max())
    counts = plan.run(spark, with_budget(settings, total), REQUEST)
    assert counts["over_budget"] == []
    kept = slots_over_time(lake)
    assert kept.max() <= total < wanted.max()
    assert kept.mean() > 0.8 * np.minimum(wanted, total).mean()  # it is used where there is need
    reasons = [row["reason"] for row in lake.read(tables.PLANS).collect()]
    assert any("slots are short" in reason for reason in reasons)
    assert plan.run(spark, with_budget(settings, 3), REQUEST)["over_budget"] == [fleet.CLUSTER]


def test_without_a_season_the_job_is_steered_by_what_is_seen(
    spark: SparkSession, settings: Settings, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "champion", lambda _: fleet.fleet("young"))
    held = [
        row | {"fallback_reason": "only 3 hours of history"} for row in fleet.forecast_rows("young", [35_000.0] * 24)
    ]
    write_rows(lake, tables.JOB_GRAPHS, fleet.graph_rows("young"))
    write_rows(lake, tables.OBSERVATIONS, fleet.busy_rows("young", 35_000.0))
    write_rows(lake, tables.FORECASTS, held)
    write_rows(lake, tables.MODEL_VERSIONS, [fleet.model_row()])
    assert plan.run(spark, settings, REQUEST)["steps"] == 1
    (row,) = lake.read(tables.PLANS).collect()
    assert row["parallelism_to"]["map"] == 5  # 35,000 / 0.8 of 10,000 an instance
    assert "only 3 hours of history" in row["reason"]
    assert "117%" in row["reason"]
