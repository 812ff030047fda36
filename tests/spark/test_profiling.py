"""Profiling on Delta: what is measured, what the policies remember of it, and what the next plan makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from delta_tables import write_rows
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include import tables
from include.policy_catalogue import catalogue, names_where
from include.settings import Settings
from include.stage_names import PROFILING, Stage
from include.stage_request import StageRequest
from lab.profiling.profiling import ProfilingCluster
from lab.profiling.rows import Measurement
from lab.stages.profiling import stage as profile
from lab.stages.profiling.adapters import ProfiledSubject, adapter
from spark_jobs.lake import Lake
from spark_jobs.plan import stage as plan
from tests.spark import synthetic_fleet as fleet

PROFILED = names_where(catalogue(), needs_profile=True)
pytestmark = pytest.mark.spark
EARLIER, LATER = fleet.AS_OF - timedelta(hours=1), fleet.AS_OF + timedelta(hours=1)
PROFILE = StageRequest(PROFILING, fleet.AS_OF)
LOAD = 25_000.0
JOBS = [*sorted(PROFILED), "plain"]
PER_WORKER = 10_000.0  # records/s of one instance of `map`


def write_hours(lake: Lake) -> None:
    graphs = [row for job in JOBS for at in (EARLIER, fleet.AS_OF, LATER) for row in fleet.graph_rows(job, at)]
    observed = [row for job in JOBS for row in fleet.busy_rows(job, LOAD, at=LATER, windows=48)]
    forecasts = [row for job in JOBS for row in fleet.forecast_rows(job, [LOAD] * 27, EARLIER)]
    for table, rows in ((tables.JOB_GRAPHS, graphs), (tables.OBSERVATIONS, observed), (tables.FORECASTS, forecasts)):
        write_rows(lake, table, rows)
    write_rows(lake, tables.MODEL_VERSIONS, [fleet.model_row()])


def contents(lake: Lake) -> list[list[str]]:
    rows = lake.read(tables.PROFILES), lake.read(tables.POLICY_MEMORY).where("stage = 'profiling'")
    return [sorted(map(str, one.collect())) for one in rows]


@dataclass(frozen=True)
class Profiled:
    """A job of each policy that uses a profile and one of another, on at most eight slots, planned and profiled.

    Job ``idle`` is not observed, and ``gone`` does not run.
    """

    settings: Settings
    lake: Lake
    counts: dict[str, object]


@pytest.fixture(scope="module")
def profiled(spark: SparkSession, shared_settings: Settings, shared_lake: Lake) -> Iterator[Profiled]:
    settings, lake = shared_settings, shared_lake
    chosen = {f"{fleet.CLUSTER}/{name}": name for name in PROFILED}
    chosen |= {f"{fleet.CLUSTER}/idle": "phoebe", f"{fleet.CLUSTER}/gone": "twres"}
    options = settings.planner.model_copy(update={"policies": chosen, "policy": "need_vector"})
    quick = settings.profiling.model_copy(update={"settle_s": 30, "window_s": 30})
    clusters = {fleet.CLUSTER: settings.clusters[fleet.CLUSTER].model_copy(update={"slots_max": 8})}
    settings = settings.model_copy(update={"planner": options, "profiling": quick, "clusters": clusters})
    write_hours(lake)
    write_rows(lake, tables.JOB_GRAPHS, fleet.graph_rows("idle"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "champion", lambda _: fleet.fleet(*JOBS, "idle"))
        patch.setattr(profile, "load_bundle", lambda _: fleet.fleet(*JOBS, "idle"))
        plan.run(spark, settings, StageRequest(Stage.PLAN, EARLIER))
        counts = profile.run(spark, settings, PROFILE)
        plan.run(spark, settings, StageRequest(Stage.PLAN, LATER))
        yield Profiled(settings, lake, counts)


@pytest.mark.long
def test_jobs_are_profiled_and_the_next_plan_has_their_profiles(profiled: Profiled) -> None:
    lake = profiled.lake
    assert profiled.counts == {"jobs": 3, "profiled": 2, "refused": {"no_load": 1}}
    planned = lake.read(tables.POLICY_MEMORY).where("stage = 'plan'").collect()
    before, newest = (
        {row["job"]: json.loads(row["memory"]) for row in planned if row["as_of"].hour == at.hour}
        for at in (EARLIER, LATER)
    )

    rows = lake.read(tables.PROFILES).collect()
    assert {row["job"] for row in rows} == PROFILED
    capacity = {(row["job"], row["scale_out"]): row["throughput_per_s"] for row in rows if row["kind"] == "capacity"}
    assert {scale_out for _, scale_out in capacity} == set(range(2, 9))
    for (_, scale_out), throughput in capacity.items():
        assert throughput == pytest.approx(PER_WORKER * scale_out, rel=0.02)
    steps = [row for row in rows if row["kind"] == "step"]
    assert all(row["rate_per_s"] > 0 and row["latency_ms"] > 0 and row["adapter"] == "simulated" for row in steps)
    assert max(row["rate_per_s"] for row in steps) > PER_WORKER * 7  # until the largest could not follow

    remaining = {
        row["job"]: json.loads(row["memory"])
        for row in lake.read(tables.POLICY_MEMORY).where("stage = 'profiling'").collect()
    }
    assert set(remaining) == PROFILED
    for job, memory in remaining.items():
        result = memory.pop("profile")
        assert len(result["rows"]) == sum(row["job"] == job for row in steps)
        assert memory == {key: value for key, value in before[job].items() if key != "profile"}

    assert all(newest[job]["profile"]["capacity"] for job in PROFILED)
    plans = lake.read(tables.PLANS).where("job != 'idle'").collect()
    assert {row["job"] for row in plans} == set(JOBS)
    assert {row["status"] for row in plans} <= {"planned", "hold"}


@pytest.mark.long
def test_again_killed_between_its_writes_and_again_it_leaves_the_same(
    profiled: Profiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, settings, lake = profiled.lake.spark, profiled.settings, profiled.lake
    whole = contents(lake)
    assert all(whole)
    lake.replace(tables.POLICY_MEMORY, lake.read(tables.POLICY_MEMORY).limit(0), "stage = 'profiling'")
    write = Lake.replace

    def killed(self: Lake, table: tables.Table, *arguments: object) -> None:
        if table is tables.POLICY_MEMORY:
            raise KeyboardInterrupt
        write(self, table, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            profile.run(spark, settings, PROFILE)
    assert contents(lake) == [whole[0], []]
    profile.run(spark, settings, PROFILE)
    assert contents(lake) == whole


@pytest.mark.long
def test_one_job_alone_replaces_only_its_own_rows(profiled: Profiled) -> None:
    lake = profiled.lake
    whole = contents(lake)
    own = "job = 'phoebe'"
    for table, column, where in (
        (tables.PROFILES, "model_version", own),
        (tables.POLICY_MEMORY, "memory", f"stage = 'profiling' AND {own}"),
    ):
        lake.replace(table, lake.read(table).where(where).withColumn(column, F.lit("altered")), where)
    for left, right in zip(contents(lake), whole, strict=True):
        assert 0 < len(set(left) & set(right)) < len(right)  # the rows of the other job are as they were
    one = StageRequest(PROFILING, fleet.AS_OF, job=f"{fleet.CLUSTER}/phoebe")
    assert profile.run(lake.spark, profiled.settings, one) == {"jobs": 1, "profiled": 1, "refused": {}}
    assert contents(lake) == whole


@pytest.mark.long
@pytest.mark.parametrize(
    ("job", "why"),
    [
        ("c5m/plain", "need_vector, which uses no profile"),
        ("plain", "cluster/job"),
        ("c9/phoebe", "uses no profile"),
        ("c5m/gone", "not seen in the two days"),
    ],
)
def test_a_job_that_does_not_run_or_without_use_for_a_profile_is_refused(
    profiled: Profiled, job: str, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        profile.run(profiled.lake.spark, profiled.settings, StageRequest(PROFILING, fleet.AS_OF, job=job))


class Ideal:
    """A cluster on which every deployment keeps up to 1,000 records/s per worker, at 50 ms."""

    def __init__(self) -> None:
        self.running: set[int] = set()

    def deploy(self, scale_outs):
        self.running = set(scale_outs)

    def replay(self, rate_per_s, settle_s, window_s):
        return {
            s: Measurement(s, min(rate_per_s, 1e3 * s), 50.0 if rate_per_s <= 1e3 * s else 1e5) for s in self.running
        }

    def stop(self, scale_out):
        self.running.discard(scale_out)

    def catch_up(self, scale_outs, settle_s, window_s):
        return {s: 1e3 * s for s in scale_outs}

    def close(self):
        self.running.clear()


def ideal(subject: ProfiledSubject) -> ProfilingCluster:
    if subject.job == "twres":
        raise ConnectionError("no such cluster")
    return Ideal()


@pytest.mark.long
def test_another_adapter_takes_the_place_of_the_simulated(profiled: Profiled, settings: Settings, lake: Lake) -> None:
    write_hours(lake)
    name = "tests.spark.test_profiling:ideal"
    options = profiled.settings.profiling.model_copy(update={"adapter": name})
    real = profiled.settings.model_copy(update={"profiling": options, "paths": settings.paths})
    counts = profile.run(lake.spark, real, PROFILE)
    assert counts == {"jobs": 2, "profiled": 1, "refused": {"profiling_failed": 1}}
    rows = lake.read(tables.PROFILES).where("kind = 'capacity'").collect()
    assert {(row["job"], row["scale_out"], row["throughput_per_s"], row["adapter"]) for row in rows} == {
        ("phoebe", s, 1e3 * s, name) for s in range(2, 9)
    }


@pytest.mark.parametrize("name", ["no_adapter", "no.such.module:cluster", "json:no_such_function", ":x"])
def test_an_adapter_that_there_is_not_is_refused_with_what_there_is(name: str) -> None:
    with pytest.raises(ValueError, match="simulated"):
        adapter(name)
