"""The planner through the real stage: ahead of a rise, following where there is no season, within a budget."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pytest
from delta_tables import write_rows
from planned_models import plan_with
from pyspark.sql import Row, SparkSession

from benchmarks.pipeline.packed_models import pack_models
from include import tables
from include.settings import Cluster, Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from spark_jobs.lake import Lake
from spark_jobs.plan import stage as plan
from tests.spark import synthetic_fleet as fleet

pytestmark = [pytest.mark.spark, pytest.mark.long]
REQUEST = StageRequest(Stage.PLAN, fleet.AS_OF)
WAVE = [float(30_000.0 + 20_000.0 * np.sin(2 * np.pi * hour / 24)) for hour in range(24)]
JOBS = tuple(f"wave-{number}" for number in range(6))


TOTAL = 28  # of 36 slots, as many as all jobs want at the peak of their load
OWN_TOTAL = 21  # the programme trusts this forecast less: its jobs want 24
BUDGETS = {"free": None, "kept": TOTAL, "short": 3, "own_free": None, "own_kept": OWN_TOTAL}
"""Slots of clusters that run the same jobs; those of ``own_`` under the programme, the others under the planner."""
NO_SEASON = fleet.CLUSTER


@dataclass(frozen=True)
class Planned:
    """One plan of all clusters: what the stage counted, and its rows."""

    counts: dict[str, object]
    rows: list[Row]

    def of(self, cluster: str) -> list[Row]:
        return [row for row in self.rows if row["cluster"] == cluster]

    def slots_over_time(self, cluster: str) -> np.ndarray:
        """Return a cluster's slots in every ten minutes of the plan, a rescale counting for both sides."""
        steps: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
        for row in self.of(cluster):
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


@pytest.fixture(scope="module")
def planned(spark: SparkSession, shared_settings: Settings, shared_lake: Lake) -> Planned:
    budgets = {name: Cluster(window_s=300, slots_total=slots) for name, slots in BUDGETS.items()}
    own = {f"{cluster}/{job}": "programme" for cluster in BUDGETS if cluster.startswith("own_") for job in JOBS}
    chosen = shared_settings.planner.model_copy(update={"policy": "planner", "policies": own})
    changed = {"clusters": shared_settings.clusters | budgets, "planner": chosen}
    settings, lake = shared_settings.model_copy(update=changed), shared_lake
    for cluster in BUDGETS:
        fleet.write_fleet(lake, dict.fromkeys(JOBS, WAVE), cluster)
    held = [
        row | {"fallback_reason": "only 3 hours of history"} for row in fleet.forecast_rows("young", [35_000.0] * 24)
    ]
    write_rows(lake, tables.JOB_GRAPHS, fleet.graph_rows("young"))
    write_rows(lake, tables.OBSERVATIONS, fleet.busy_rows("young", 35_000.0))
    write_rows(lake, tables.FORECASTS, held)
    known = [*((cluster, job) for cluster in BUDGETS for job in JOBS), (NO_SEASON, "young")]
    bundle = pack_models("m0", {key: fleet.job_models() for key in known})
    with pytest.MonkeyPatch.context() as patch:
        plan_with(patch, plan, bundle)
        counts = plan.run(spark, settings, REQUEST)
    return Planned(counts, lake.read(tables.PLANS).orderBy("cluster", "job", "step_index").collect())


def test_a_budget_is_kept_by_all_jobs_together(planned: Planned) -> None:
    assert planned.counts["refused"] == 0
    assert planned.counts["over_budget"] == ["short"]
    wanted, retained = planned.slots_over_time("free"), planned.slots_over_time("kept")
    assert int(0.8 * wanted.max()) == TOTAL
    assert retained.max() <= TOTAL < wanted.max()
    assert retained.mean() > 0.8 * np.minimum(wanted, TOTAL).mean()  # it is used where there is need
    assert any("slots are short" in row["reason"] for row in planned.of("kept"))
    assert not any("slots are short" in row["reason"] for row in planned.of("free"))


def test_the_programme_keeps_a_budget_as_well(planned: Planned) -> None:
    wanted, retained = planned.slots_over_time("own_free"), planned.slots_over_time("own_kept")
    assert retained.max() <= OWN_TOTAL < wanted.max()
    assert retained.mean() > 0.8 * np.minimum(wanted, OWN_TOTAL).mean()
    assert {row["policy"] for row in planned.of("own_kept")} == {"programme"}
    assert any("slots are short" in row["reason"] for row in planned.of("own_kept"))
    assert not any("slots are short" in row["reason"] for row in planned.of("own_free"))


def test_without_a_season_the_job_is_steered_by_what_is_seen(planned: Planned) -> None:
    (row,) = planned.of(NO_SEASON)
    assert row["status"] == "planned"
    assert row["parallelism_to"]["map"] == 5  # 35,000 / 0.8 of 10,000 an instance
    assert "only 3 hours of history" in row["reason"]
    assert "117%" in row["reason"]
