"""Every registered policy drives a job through the real plan stage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from delta_tables import write_rows
from planned_models import plan_with
from pyspark.sql import SparkSession

from include import tables
from include.policy_catalogue import catalogue
from include.settings import Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from spark_jobs.lake import Lake
from spark_jobs.plan import stage as plan
from tests.spark import synthetic_fleet as fleet

pytestmark = [pytest.mark.spark, pytest.mark.long]
LATER = fleet.AS_OF + timedelta(hours=1)
OVERLOADED = 35_000.0  # `map` does 30,000 records/s with 3 instances


def job_of(policy: str) -> str:
    return f"job-{policy}"


def write_hours(lake: Lake) -> None:
    names = list(map(job_of, catalogue()))
    graphs = [row for job in names for row in fleet.graph_rows(job) + fleet.graph_rows(job, LATER)]
    observed = [row for job in names for row in fleet.busy_rows(job, OVERLOADED, at=LATER, windows=36)]
    forecasts = [row for job in names for row in fleet.forecast_rows(job, [OVERLOADED] * 26)]
    for table, rows in ((tables.JOB_GRAPHS, graphs), (tables.OBSERVATIONS, observed), (tables.FORECASTS, forecasts)):
        write_rows(lake, table, rows)
    write_rows(lake, tables.MODEL_VERSIONS, [fleet.model_row()])


def contents(lake: Lake, table: tables.Table) -> list[str]:
    return sorted(map(str, lake.read(table).collect()))


@dataclass(frozen=True)
class Planned:
    """One overloaded job for every policy, in one fleet, planned at two moments."""

    settings: Settings
    lake: Lake


@pytest.fixture(scope="module")
def planned(spark: SparkSession, shared_settings: Settings, shared_lake: Lake) -> Iterator[Planned]:
    settings, lake = shared_settings, shared_lake
    chosen = {f"{fleet.CLUSTER}/{job_of(name)}": name for name in catalogue()}
    settings = settings.model_copy(update={"planner": settings.planner.model_copy(update={"policies": chosen})})
    write_hours(lake)
    with pytest.MonkeyPatch.context() as patch:
        plan_with(patch, plan, fleet.fleet(*map(job_of, catalogue())))
        for as_of in (fleet.AS_OF, LATER):
            counts = plan.run(spark, settings, StageRequest(Stage.PLAN, as_of))
            assert counts["jobs"] == len(catalogue())
            refused = lake.read(tables.PLANS).where("status = 'refused'").select("reason")
            assert counts["refused"] == 0, refused.collect()
        yield Planned(settings, lake)


def test_every_policy_decides_and_remembers(planned: Planned) -> None:
    lake = planned.lake
    rows = lake.read(tables.PLANS).collect()
    assert {(row["job"], row["policy"]) for row in rows} == {(job_of(name), name) for name in catalogue()}
    for row in rows:
        assert all(1 <= p <= 64 for p in row["parallelism_to"].values())
        assert row["reason"]
    grown = {row["policy"] for row in rows if row["parallelism_to"]["map"] > 3}
    # A job at 117% of what it can do: all others ask for more within the two hours. ``rl`` learns what a configuration
    # does by trying each (optimistic exploration), and two decisions are two tries; ``controller_alone`` plans no step.
    assert {row["policy"] for row in rows} - grown <= {"static", "big_ds2", "rl", "controller_alone"}
    assert {"static", "big_ds2"}.isdisjoint(grown)
    memories = lake.read(tables.POLICY_MEMORY).collect()
    assert {row["policy"] for row in memories} >= {"ds2", "conttune_a3", "dhalion", "phoebe", "rl"}
    assert {row["as_of"].hour for row in memories} == {18, 19}
    for row in memories:
        assert row["job"] == job_of(row["policy"])
        json.loads(row["memory"])


def test_the_same_moment_again_gives_the_same_plans_and_memories(planned: Planned) -> None:
    before = [contents(planned.lake, table) for table in (tables.PLANS, tables.POLICY_MEMORY)]
    plan.run(planned.lake.spark, planned.settings, StageRequest(Stage.PLAN, LATER))
    assert [contents(planned.lake, table) for table in (tables.PLANS, tables.POLICY_MEMORY)] == before
