"""The reactive controller's look in the DAGs: raw files of the last minutes -> what goes out now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from delta_tables import write_rows
from pyspark.sql import Row, SparkSession

from include import tables
from include.control import watching
from include.flink.raw_format import Kind
from include.settings import Settings
from include.stages import Stage, StageRequest
from models.policies.memory import dump, load
from models.policies.tidewise.pending_steps import PendingStep
from models.policies.tidewise.tidewise_memory import ControllerMemory
from spark_jobs.apply import stage as apply
from spark_jobs.lake import Lake
from spark_jobs.watch import stage as watch
from tests.spark import synthetic_fleet as fleet
from tests.spark.lake_settings import prepared_settings
from tests.spark.raw_builders import (
    JOB_ID,
    SINK,
    SOURCE,
    UPSTREAM,
    VERTEX_IDS,
    WORK,
    PolledJob,
    job_body,
    record,
    utc,
    write,
)

pytestmark = pytest.mark.spark
PLANNED = utc("2026-11-20T18:15:00")
NOW = PLANNED + timedelta(minutes=15)
RUNNING = {SOURCE: 1, WORK: 2, SINK: 1}
LESS, MORE = dict.fromkeys(RUNNING, 1), {SOURCE: 1, WORK: 3, SINK: 1}
RATE_PER_S = 100.0
WATCH = StageRequest(Stage.WATCH, NOW)


@dataclass
class Overloaded(PolledJob):
    """Half as many records again arrive as ``enrich`` can process; the rest waits at the source."""

    busy_ms: float = 1000.0

    def metrics(self, vertex: str, at: datetime) -> list[dict[str, object]]:
        self.lag = 0.5 * self.rate_per_s * (at - self.running_at).total_seconds()
        return super().metrics(vertex, at)


def poll(settings: Settings, job: PolledJob, since: datetime = PLANNED - timedelta(minutes=10)) -> None:
    """Write what is polled of a job every minute until now, in the files of the hour."""
    minutes = int((NOW - since) / timedelta(minutes=1))
    lines = [line for turn in range(minutes) for line in job.poll(since + timedelta(minutes=turn, seconds=50))]
    path = write(Path(settings.paths.raw), NOW, lines, cluster=job.cluster)
    os.utime(path, (NOW.timestamp() - 10, NOW.timestamp() - 10))


def graph_rows(cluster: str) -> list[dict[str, Any]]:
    seen = PLANNED - timedelta(minutes=16)
    return [
        {
            "cluster": cluster,
            "job": "orders",
            "job_id": JOB_ID,
            "operator": name,
            "vertex_id": VERTEX_IDS[name],
            "position": position,
            "upstream": UPSTREAM[name],
            "parallelism": RUNNING[name],
            "max_parallelism": 128,
            "observed_at": seen,
            "date": seen.date(),
            "hour": seen.hour,
        }
        for position, name in enumerate(RUNNING)
    ]


def plan(cluster: str, target: Mapping[str, int] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a plan with one step that is due, or one that holds, and the memory that it leaves for the net."""
    at, until = PLANNED + timedelta(minutes=10), PLANNED + timedelta(hours=3)
    made = PLANNED + timedelta(milliseconds=400)  # between two seconds
    row = {
        "as_of": made,
        "step_id": f"plan-{cluster}",
        "cluster": cluster,
        "job": "orders",
        "job_id": JOB_ID,
        "step_index": 0,
        "status": "planned" if target else "hold",
        "apply_at": at if target else None,
        "valid_until": until,
        # What runs is known from the last hour: the net may have changed it since, where it looks.
        "parallelism_from": RUNNING if cluster == "unseen" else LESS,
        "parallelism_to": target or RUNNING,
        "date": PLANNED.date(),
    }
    due = PendingStep(int(at.timestamp()), int(until.timestamp()), target or RUNNING, 0.5 * RATE_PER_S, "as forecast")
    memory = dump(ControllerMemory(due=(due,) if target else (), planned=True))
    key = {"stage": "plan", "as_of": made, "cluster": cluster, "job": "orders", "date": made.date()}
    return row, key | {"policy": "planner", "memory": memory}


@dataclass
class Failing(PolledJob):
    """Has hardly any headroom, and fails shortly before the moment of looking; Flink then shows other parallelism."""

    busy_ms: float = 950.0
    failed_at: datetime = NOW - timedelta(seconds=80)

    def poll(self, at: datetime) -> list[str]:
        if at < self.failed_at:
            return super().poll(at)
        waiting = job_body(dict.fromkeys(self.parallelism, 1), self.running_at, state="CREATED", RUNNING=0)
        return [record(at, Kind.JOB, waiting, cluster=self.cluster)]


def looks(lake: Lake, as_of: datetime = NOW) -> dict[str, Row]:
    rows = lake.read(tables.LOOKS).collect()
    return {row["cluster"]: row for row in rows if row["as_of"].timestamp() == as_of.timestamp()}


PLANS = {
    "overloaded": None,
    "quiet": None,
    "rises": MORE,
    "falls_above_forecast": LESS,
    "unseen": LESS,
    "as_wanted": RUNNING,
}


@dataclass
class Watched:
    """A lake after one watch: a job of each kind in a cluster of that name."""

    settings: Settings
    lake: Lake
    counts: dict[str, object]
    looks: dict[str, Row]


@pytest.fixture(scope="module")
def watched(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, empty_model_store: Path) -> Watched:
    root = tmp_path_factory.mktemp("watch")
    settings = prepared_settings(root, empty_model_store)
    lake = Lake(spark, settings.paths.lake)
    began = PLANNED - timedelta(days=1)
    steps, memories = zip(*[plan(cluster, target) for cluster, target in PLANS.items()], strict=True)
    write_rows(lake, tables.PLANS, steps)
    write_rows(lake, tables.POLICY_MEMORY, memories)
    write_rows(lake, tables.JOB_GRAPHS, [row for cluster in PLANS for row in graph_rows(cluster)])
    for cluster in PLANS:
        job = Overloaded(began, cluster) if cluster == "overloaded" else PolledJob(began, cluster)
        if cluster != "unseen":
            poll(settings, job)
    seen = fleet.observation_rows("orders", PLANNED, cluster="unseen")  # ingested an hour ago: apply knows the job
    write_rows(lake, tables.OBSERVATIONS, seen)
    assert watching.something_to_watch(settings, NOW)
    counts = watch.run(spark, settings, WATCH)
    return Watched(settings, lake, counts, looks(lake))


def test_jobs_are_counted_by_decision(watched: Watched) -> None:
    assert watched.counts == {"jobs": 6, "seen": 5, "net": 1, "due": 2, "wait": 3}
    assert watching.released(watched.settings, NOW)
    assert {name: row["decision"] for name, row in watched.looks.items()} == {
        "overloaded": "net",
        "quiet": "wait",
        "rises": "due",
        "falls_above_forecast": "wait",
        "unseen": "due",
        "as_wanted": "wait",
    }


def test_an_overloaded_job_is_enlarged(watched: Watched) -> None:
    own = watched.looks["overloaded"]
    assert own["parallelism_from"] == RUNNING
    assert own["slots"] > own["slots_from"] == 2
    memory = load(ControllerMemory, own["memory"])
    assert memory.held_until_s == NOW.timestamp() + watched.settings.planner.reactive.hold_s


def test_a_due_rise_goes_out_and_is_done_with(watched: Watched) -> None:
    rises = watched.looks["rises"]
    assert rises["step_id"] == "plan-rises"
    assert load(ControllerMemory, rises["memory"]).due == ()


def test_a_due_fall_is_held_while_more_arrives_than_was_forecast(watched: Watched) -> None:
    held = watched.looks["falls_above_forecast"]
    assert held["held_step_id"] == "plan-falls_above_forecast"
    assert [dict(step.parallelism) for step in load(ControllerMemory, held["memory"]).due] == [LESS]


def test_rows_say_until_when_the_job_was_seen(watched: Watched) -> None:
    assert "nothing was seen" in watched.looks["unseen"]["reason"]
    assert watched.looks["quiet"]["observations_until"].timestamp() == NOW.timestamp()


def test_the_same_moment_again_decides_the_same(spark: SparkSession, watched: Watched) -> None:
    watch.run(spark, watched.settings, WATCH)
    assert looks(watched.lake) == watched.looks


def test_apply_deals_with_what_was_released(spark: SparkSession, watched: Watched) -> None:
    counts = apply.run(spark, watched.settings, StageRequest(Stage.APPLY, NOW))
    assert counts == {"due": 5, "dry_run": 3, "refused": 1, "waiting": 1, "confirmed": 0, "failed": 0}
    sent = {row["cluster"]: row for row in watched.lake.read(tables.APPLIED_STEPS).collect()}
    assert set(sent) == {"overloaded", "rises", "unseen", "as_wanted"}  # the fall is decided on by a later look
    assert sent["as_wanted"]["refusal"] == "superseded"
    own = watched.looks["overloaded"]
    assert sent["overloaded"]["step_id"] == own["step_id"]
    assert sent["overloaded"]["parallelism_to"] == own["parallelism_to"]


def test_a_job_that_failed_is_enlarged_while_it_restarts(spark: SparkSession, settings: Settings, lake: Lake) -> None:
    step, memory = plan("failed", None)
    write_rows(lake, tables.PLANS, [step])
    write_rows(lake, tables.POLICY_MEMORY, [memory])
    write_rows(lake, tables.JOB_GRAPHS, graph_rows("failed"))
    poll(settings, Failing(PLANNED - timedelta(days=1), "failed"))

    before = NOW - timedelta(minutes=5)
    watch.run(spark, settings, StageRequest(Stage.WATCH, before))
    assert looks(lake, before)["failed"]["decision"] == "wait"
    assert watch.run(spark, settings, StageRequest(Stage.WATCH, NOW))["net"] == 1
    own = looks(lake)["failed"]
    assert own["decision"] == "net"
    assert own["parallelism_from"] == RUNNING  # what it ran with, not what Flink shows while it waits for slots
    assert (own["slots_from"], own["slots"]) == (2, 10)  # of 64: more would cost more than they shorten the backlog
    assert "restarts after a failure" in own["reason"]
    assert load(ControllerMemory, own["memory"]).back_to == RUNNING
