"""The nightly learning on Delta: from silver to the memory that the next plan starts from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from delta_tables import write_rows
from planned_models import plan_with
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from include import tables
from include.domain.graph import JobGraph, Operator
from include.policy_catalogue import catalogue, names_where
from include.settings import Settings
from include.stage_names import LEARN, PROFILING, Stage
from include.stage_request import StageRequest
from lab.stages.inputs.windows import windows_between
from lab.stages.learn import stage as learn
from spark_jobs.by_job import split_columns
from spark_jobs.lake import Lake
from spark_jobs.plan import stage as plan
from spark_jobs.plan_inputs.newest_of_jobs import read_newest_memories
from spark_jobs.plan_inputs.windows import WINDOW, observations_of
from spark_jobs.plan_inputs.windows_of_jobs import read_recent_windows
from spark_jobs.timestamps import as_of_slice
from tests.spark import synthetic_fleet as fleet

NIGHTLY = names_where(catalogue(), learns_nightly=True)
pytestmark = pytest.mark.spark
LATER = fleet.AS_OF + timedelta(hours=1)
DAYS_WINDOWS = 12 * 30  # 30 hours of 5 minutes
REQUEST = StageRequest(LEARN, fleet.AS_OF)
LOAD = 25_000.0


def job_of(policy: str) -> str:
    return f"job-{policy}"


LEARNERS = [*map(job_of, sorted(NIGHTLY))]
JOBS = [*LEARNERS, "plain"]


def write_history(lake: Lake, jobs: list[str] = JOBS) -> None:
    observed = [row for job in jobs for row in fleet.busy_rows(job, LOAD, at=LATER, windows=DAYS_WINDOWS)]
    graphs = [row for job in jobs for row in fleet.graph_rows(job) + fleet.graph_rows(job, LATER)]
    forecasts = [row for job in jobs for row in fleet.forecast_rows(job, [LOAD] * 26)]
    for table, rows in ((tables.JOB_GRAPHS, graphs), (tables.OBSERVATIONS, observed), (tables.FORECASTS, forecasts)):
        write_rows(lake, table, rows)
    write_rows(lake, tables.MODEL_VERSIONS, [fleet.model_row()])


def memories(lake: Lake) -> list[str]:
    return sorted(map(str, lake.read(tables.POLICY_MEMORY).collect()))


def slots(memory: str) -> set[int]:
    return {sum(times for *_, times in agent["transitions"]) for agent in json.loads(memory)["agents"].values()}


@dataclass(frozen=True)
class Learnt:
    """What was learnt by AS_OF from the history of a job of each policy that learns, and of one of another.

    Job ``unknown`` has no models, and ``unobserved`` no windows; the policies of both learn.

    Attributes:
        earlier: memories from before.
        left: memories after a first run that was killed before it wrote.
        counts: of the run after it.
        whole: memories after that.
    """

    settings: Settings
    lake: Lake
    earlier: list[str]
    left: list[str]
    counts: dict[str, object]
    whole: list[str]


@pytest.fixture(scope="module")
def learnt(spark: SparkSession, shared_settings: Settings, shared_lake: Lake) -> Iterator[Learnt]:
    settings, lake = shared_settings, shared_lake
    chosen = {f"{fleet.CLUSTER}/{job_of(name)}": name for name in NIGHTLY}
    chosen |= {f"{fleet.CLUSTER}/{job}": min(NIGHTLY) for job in ("unknown", "unobserved")}
    options = settings.planner.model_copy(update={"policies": chosen, "policy": "need_vector"})
    settings = settings.model_copy(update={"planner": options})
    write_history(lake, [*JOBS, "unknown"])
    write_rows(lake, tables.JOB_GRAPHS, fleet.graph_rows("unobserved"))
    yesterday = fleet.AS_OF - timedelta(days=1)
    remembered = {"cluster": fleet.CLUSTER, "memory": "{}", "stage": "learn", "as_of": yesterday}
    rows = [remembered | {"job": job_of(name), "policy": name, "date": yesterday.date()} for name in NIGHTLY]
    write_rows(lake, tables.POLICY_MEMORY, rows)
    earlier = memories(lake)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        bundle = fleet.fleet(*JOBS, "unobserved")
        patch.setattr(learn, "champion", lambda _: bundle)
        plan_with(patch, plan, bundle)
        with patch.context() as killing:
            killing.setattr(Lake, "replace", killed)
            with pytest.raises(KeyboardInterrupt):
                learn.run(spark, settings, REQUEST)
        remaining = memories(lake)
        counts = learn.run(spark, settings, REQUEST)
        yield Learnt(settings, lake, earlier, remaining, counts, memories(lake))


def memories_of(lake: Lake, stage: Stage, at: datetime) -> list[Row]:
    rows = lake.read(tables.POLICY_MEMORY).where(F.col("stage") == str(stage)).where(as_of_slice(at))
    return rows.collect()


def test_every_policy_that_learns_does_and_the_next_plan_goes_on_from_there(learnt: Learnt) -> None:
    lake = learnt.lake
    assert learnt.counts["learned"] == len(NIGHTLY)
    rows = memories_of(lake, LEARN, fleet.AS_OF)
    assert {(row["job"], row["policy"]) for row in rows} == {(job_of(name), name) for name in NIGHTLY}
    known = DAYS_WINDOWS - 12 - 1  # nothing after AS_OF, which is an hour before the end; one less transition
    assert all(slots(row["memory"]) == {known} for row in rows)

    plan.run(lake.spark, learnt.settings, StageRequest(Stage.PLAN, LATER))  # sees two hours, of which one is new
    after = memories_of(lake, Stage.PLAN, LATER)
    assert {row["job"] for row in after} == set(LEARNERS)
    assert all(slots(row["memory"]) == {known + 12} for row in after)
    reasons = {row["job"]: row["reason"] for row in lake.read(tables.PLANS).where(as_of_slice(LATER)).collect()}
    for job in LEARNERS:
        assert "are needed before an agent acts" not in reasons[job]


@pytest.mark.long
def test_a_plan_of_the_same_moment_takes_what_was_learnt_for_it(learnt: Learnt) -> None:
    lake, request = learnt.lake, StageRequest(Stage.PLAN, fleet.AS_OF)
    plan.run(lake.spark, learnt.settings, request)
    before = memories(lake)
    assert set(learnt.whole) < set(before)  # the plan did not replace what was learnt
    known = DAYS_WINDOWS - 12 - 1
    planned = memories_of(lake, Stage.PLAN, fleet.AS_OF)
    assert {row["job"] for row in planned} == set(LEARNERS)
    assert all(slots(row["memory"]) == {known} for row in planned)
    plan.run(lake.spark, learnt.settings, request)
    assert learn.run(lake.spark, learnt.settings, REQUEST) == learnt.counts
    assert memories(lake) == before  # nor did learning what was planned; and again it learns the same


def test_killed_before_its_only_write_it_leaves_what_was_there(learnt: Learnt) -> None:
    assert learnt.earlier
    assert learnt.left == learnt.earlier
    assert set(learnt.earlier) < set(learnt.whole)


def test_a_job_that_teaches_nothing_keeps_its_memory_and_is_counted(learnt: Learnt) -> None:
    assert learnt.counts == {
        "jobs": len(NIGHTLY) + 2,
        "learned": len(NIGHTLY),
        "refused": {"no_model": 1, "nothing_learnt": 1},
    }
    assert {row["job"] for row in memories_of(learnt.lake, LEARN, fleet.AS_OF)} == set(LEARNERS)


def test_without_a_policy_that_learns_nothing_is_read_or_written(
    spark: SparkSession, settings: Settings, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learn, "champion", lambda _: pytest.fail("the models are not needed"))
    assert learn.run(spark, settings, REQUEST) == {"jobs": 0, "learned": 0, "refused": {}}
    assert not lake.exists(tables.POLICY_MEMORY)


def test_windows_as_rows_and_in_one_row_are_the_same(settings: Settings, lake: Lake) -> None:
    job = job_of("rl")
    write_history(lake, [job])
    gaps = fleet.observation_rows(job, at=LATER + timedelta(minutes=10), windows=1)  # most of it not measured
    gaps[0]["parallelism"], gaps[1]["disturbed"] = None, None
    write_rows(lake, tables.OBSERVATIONS, gaps)
    at, graph = LATER + timedelta(minutes=10), JobGraph((Operator("src"), Operator("map", ("src",))))
    observations, hours = lake.read(tables.OBSERVATIONS), timedelta(hours=settings.planner.observed_h)
    name = (fleet.CLUSTER, job)
    recent = read_recent_windows(lake.few(tables.OBSERVATIONS), hours, at, {name}, {})
    (known,) = split_columns(recent, WINDOW, [name])
    rows: pd.DataFrame = windows_between(observations, at - hours, at).toPandas()
    by_row, by_rows = observations_of(graph, known), observations_of(graph, rows)
    assert len(by_row) == 23  # one window is missing before the last
    for field in fields(by_row):
        np.testing.assert_array_equal(getattr(by_row, field.name), getattr(by_rows, field.name), field.name)
    assert by_row.parallelism[-1].tolist() == [0, 3]


def test_of_one_moment_the_plan_counts_and_a_profile_is_not_forgotten(spark: SparkSession, lake: Lake) -> None:
    def row(stage: Stage, days: int, memory: str, job: str = "orders") -> dict[str, object]:
        at = fleet.AS_OF - timedelta(days=days)
        known = {"cluster": fleet.CLUSTER, "job": job, "policy": "p", "memory": memory}
        return known | {"stage": str(stage), "as_of": at, "date": at.date()}

    rows = [
        row(LEARN, 1, "night"),
        row(Stage.PLAN, 1, "plan"),
        row(PROFILING, 40, "profile", "old"),
        row(Stage.PLAN, 3, "too old", "old"),
        row(LEARN, 0, "now", "new"),
        row(Stage.PLAN, 0, "self", "new"),
    ]
    write_rows(lake, tables.POLICY_MEMORY, rows)

    def remembered(also: tuple[Stage, ...]) -> dict[str, str | None]:
        newest = read_newest_memories(lake.few(tables.POLICY_MEMORY), fleet.AS_OF, also)
        return {job: row["memory"] for (_, job), row in newest.items()}

    assert remembered(()) == {"orders": "plan", "old": "profile"}
    assert remembered((LEARN, PROFILING)) == {"orders": "plan", "old": "profile", "new": "now"}
