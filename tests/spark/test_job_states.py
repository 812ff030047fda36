"""Jobs that initialise, end, come again or are deployed under other names: what ingestion and the plan make of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from include.domain.operator_matching import PlacedOperator
from include.flink.raw_format import Kind
from include.settings import Cluster, Settings
from include.stages import Stage, StageRequest
from include.tables import FORECASTS, JOB_GRAPHS, JOBS, OBSERVATIONS, OPERATOR_KEYS, PLANS, QUARANTINE, RESCALES
from models.bundle import FleetBundle
from models.job_models import CapacityCurve, JobModels, LatencyModel
from models.recovery import UNTRAINED
from spark_jobs.forecast import stage as forecast
from spark_jobs.ingest import stage as ingest
from spark_jobs.job_inputs.renames import follow_renames, read_renames
from spark_jobs.lake import Lake
from spark_jobs.plan.build_plan import current_versions, make
from tests.spark.ingested_lake import IngestedLake
from tests.spark.raw_builders import metric, ms, record, utc, write

pytestmark = pytest.mark.spark

START = utc("2026-11-20T10:00")
HOURS = 3
END = START + timedelta(hours=HOURS)
IDS = {letter: letter * 32 for letter in "123456"}
NAMES = {"1": "Source: orders", "2": "enrich", "3": "Sink: out"}
UPSTREAM = {"1": (), "2": ("1",), "3": ("2",)}


@dataclass
class Run:
    """A run of a job, polled every minute; vertices by the first letter of their ids.

    Attributes:
        finished: vertex -> minute from which it is FINISHED.
        end: state in which it ends at its last minute; None where no reply shows an end.
        restored, savepoint: what its checkpoints tell; None for no such reply.
    """

    cluster: str
    job_id: str
    first: int
    last: int
    names: dict[str, str]
    upstream: dict[str, tuple[str, ...]]
    finished: dict[str, int]
    end: str | None = None
    restored: bool | None = None
    savepoint: bool = False
    job_type: str = "STREAMING"
    plan_replies: bool = True
    job: str = "orders"
    initialising: int = 0
    restoring: range = range(0)

    def lines(self) -> list[tuple[int, str]]:
        result: list[tuple[int, str]] = []
        began = START + timedelta(minutes=self.first)
        for minute in range(self.first, self.last + 1):
            at = START + timedelta(minutes=minute, seconds=5)
            result += [(minute, line) for line in self._poll(minute, at, began)]
        return result

    def _poll(self, minute, at, began):
        ended = self.end if minute == self.last else None
        vertices = [
            {"id": IDS[one], "name": name, "parallelism": 1, "maxParallelism": 128, "status": self._status(one, minute)}
            for one, name in self.names.items()
        ]
        nodes = [
            {"id": IDS[one], "inputs": [{"id": IDS[f], "ship_strategy": "HASH"} for f in feeders]}
            for one, feeders in self.upstream.items()
        ]
        plan = {"jid": self.job_id, "name": self.job, "type": self.job_type, "nodes": nodes}
        body = {
            "jid": self.job_id,
            "name": self.job,
            "state": ended or "RUNNING",
            "job-type": self.job_type,
            "timestamps": {"RUNNING": ms(began), **({ended: ms(at) - 2000} if ended else {})},
            "vertices": vertices,
            "plan": plan,
        }
        if minute - self.first < self.initialising:
            body |= {"state": "INITIALIZING", "vertices": [], "plan": {"jid": "", "nodes": []}}
        yield self._line(at, Kind.JOB, body)
        empty = {"plan": {"jid": "", "name": "", "type": "", "nodes": []}}
        if minute == self.first:
            yield self._line(at, Kind.PLAN, {"plan": plan} if self.plan_replies else empty)
        if self.restored is not None:
            restored = {"id": 1, "restore_timestamp": ms(began)} if self.restored else None
            saved = {
                "id": 9,
                "status": "COMPLETED",
                "trigger_timestamp": ms(at) - 4000,
                "latest_ack_timestamp": ms(at) - 3000,
            }
            latest = {"completed": None, "savepoint": saved if self.savepoint and ended else None, "restored": restored}
            yield self._line(at, Kind.CHECKPOINTS, {"counts": {}, "latest": latest, "history": []})
        if ended or minute - self.first < self.initialising:
            return
        ran_s = (at - began).total_seconds()
        for one in self.names:
            if self._status(one, minute) == "RUNNING":
                yield record(
                    at, Kind.VERTEX_METRICS, self._metrics(one, ran_s), cluster=self.cluster, job_id=self.job_id,
                    vertex_id=IDS[one],
                )  # fmt: skip

    def _status(self, one, minute):
        if minute in self.restoring and one == "2":
            return "INITIALIZING"
        return "FINISHED" if minute >= self.finished.get(one, 10**9) else "RUNNING"

    def _metrics(self, one, ran_s):
        is_source = not self.upstream[one]
        result = [metric("numRecordsIn", 0.0 if is_source else 100.0 * ran_s), metric("numRecordsOut", 100.0 * ran_s)]
        result += [metric("busyTimeMsPerSecond", 500.0), metric("idleTimeMsPerSecond", 500.0)]
        return [*result, metric("Source__orders.pendingRecords", 20.0)] if is_source else result

    def _line(self, at, kind, body):
        return record(at, kind, body, cluster=self.cluster, job_id=self.job_id)


def run(cluster, job_id, first, last, *, names=NAMES, upstream=UPSTREAM, finished=None, **more) -> Run:
    return Run(cluster, job_id * 32, first, last, names, upstream, finished or {}, **more)


BEFORE = {"1": "Source: bids[1]", "2": "Calc[2]", "3": "Calc[3]"}
AFTER = {"1": "Source: bids[2]", "2": "Calc[3]", "3": "Calc[4]"}
LAST = 60 * HOURS - 1
RUNS = [
    # the numbers of a session cluster, within an hour and by chance over another operator's former name
    run("numbered", "a", 0, 129, names=BEFORE),
    run("numbered", "b", 131, LAST, names=AFTER),
    run("initialises", "a", 150, LAST, plan_replies=False, initialising=2),
    run("no_graph", "a", 175, LAST, plan_replies=False, initialising=60),
    run("batch", "a", 0, 12, end="FINISHED"),
    run("batch", "b", 60, 72, end="FINISHED"),
    run("batch", "c", 120, 132, end="FINISHED"),
    run("quick_batch", "a", 0, 30, end="FINISHED", restored=False),
    run("quick_batch", "b", 31, 60, end="FINISHED", restored=False),
    run("savepoint", "a", 0, 60, end="FINISHED", restored=False, savepoint=True),
    run("savepoint", "b", 62, LAST, restored=True),
    run("untold", "a", 0, 60, end="FINISHED"),
    run("untold", "b", 62, LAST),
    run("cancelled", "a", 0, 60, end="CANCELED"),
    run("cancelled", "b", 62, LAST),
    run("given_up", "a", 0, 60, end="CANCELED"),
    run("given_up", "b", 110, LAST),
    run("vanished", "a", 0, 60),
    run("vanished", "b", 110, LAST),
    run("typed", "a", 0, LAST, job_type="BATCH"),
    run(
        "snapshot", "a", 0, LAST, names={**NAMES, "4": "Source: snapshot"}, finished={"4": 60},
        upstream={"1": (), "4": (), "2": ("1", "4"), "3": ("2",)},
    ),
    run("plain", "a", 0, LAST),
    run("restoring", "a", 0, LAST, restoring=range(120, 125)),
]  # fmt: skip


@pytest.fixture(scope="module")
def told(spark: SparkSession, shared_settings: Settings, shared_lake: Lake) -> IngestedLake:
    clusters = {cluster: Cluster(window_s=60) for cluster in {one.cluster for one in RUNS}}
    settings = shared_settings.model_copy(update={"clusters": clusters})
    for hour in range(HOURS):
        for cluster in clusters:
            lines = [line for one in RUNS if one.cluster == cluster for at, line in one.lines() if at // 60 == hour]
            if lines:
                write(Path(settings.paths.raw), START + timedelta(hours=hour), lines, cluster=cluster)
    summary = ingest.run(spark, settings, StageRequest(Stage.INGEST, END, START, END))
    forecast.run(spark, settings, StageRequest(Stage.FORECAST, END))
    made = make(shared_lake, settings, END, bundle(), current_versions(shared_lake))
    shared_lake.replace(PLANS, made.plans, "true")
    return IngestedLake(shared_lake, summary)


def bundle() -> FleetBundle:
    """Models of ``plain``, ``snapshot`` and, under its former names, ``numbered``."""
    grid = np.arange(1.0, 129.0)
    models = {}
    for cluster, names in (("plain", NAMES), ("snapshot", NAMES), ("numbered", BEFORE)):
        curves = {name: curve(grid, 300.0 if key == "2" else 900.0) for key, name in names.items()}
        models[cluster, "orders"] = JobModels(
            curves, dict.fromkeys(curves, 1.0), UNTRAINED, LatencyModel(grid[:0], grid[:0])
        )
    made = FleetBundle.from_models("v1", models)
    placed = tuple(
        PlacedOperator(name, IDS[key], at, tuple(BEFORE[one] for one in UPSTREAM[key]))
        for at, (key, name) in enumerate(BEFORE.items())
    )
    return FleetBundle(made.model_version, made.index, made.arrays, {("numbered", "orders"): placed})


def curve(grid, per_slot: float) -> CapacityCurve:
    return CapacityCurve(
        grid.astype(int), grid * per_slot, grid * 5.0, grid[:1].astype(int), grid[:1] * per_slot, per_slot
    )


def plan_of(told: IngestedLake, cluster: str):
    rows = told.rows(PLANS, cluster)
    assert rows, f"{cluster} has no row"
    return min(rows, key=lambda row: row["step_index"])


def test_every_deployment_of_an_hour_is_kept_with_its_names(told: IngestedLake) -> None:
    result = {(row["operator"], row["vertex_id"][0]) for row in told.rows(OPERATOR_KEYS, "numbered")}
    assert result == {(name, one) for names in (BEFORE, AFTER) for one, name in names.items()}


def test_history_follows_the_vertex_id_where_a_name_passed_to_another_operator(told: IngestedLake) -> None:
    renames = read_renames(told.lake, START, END)
    history = follow_renames(told.lake.read(OBSERVATIONS).where("cluster = 'numbered'"), renames)
    result = {(row["operator"], row["vertex_id"][0]) for row in history.collect()}
    assert result == {(name, one) for one, name in AFTER.items()}


def test_a_job_that_was_deployed_again_keeps_its_models_and_its_forecast(told: IngestedLake) -> None:
    row = plan_of(told, "numbered")
    assert row["refusal"] is None, row["reason"]
    assert set(row["parallelism_to"]) == set(AFTER.values())
    assert 150 < row["expected_capacity_per_s"] < 1000  # Calc[3] is what Calc[2] was: 300/s


def test_the_graph_of_a_job_that_was_first_polled_while_it_initialised_is_read(told: IngestedLake) -> None:
    assert {row["operator"] for row in told.rows(JOB_GRAPHS, "initialises")} == set(NAMES.values())
    assert told.rows(QUARANTINE, "initialises") == []


def test_a_job_without_a_graph_has_a_row_that_says_so(told: IngestedLake) -> None:
    assert plan_of(told, "no_graph")["refusal"] == "no_graph"


@pytest.mark.parametrize(
    ("cluster", "kinds"),
    [
        ("batch", []),
        ("quick_batch", []),
        ("savepoint", ["upgrade"]),
        ("untold", ["upgrade"]),
        ("cancelled", ["upgrade"]),
        ("given_up", []),
        ("vanished", ["upgrade"]),
    ],
)
def test_an_end_is_no_stop_and_a_deployment_is_one(told: IngestedLake, cluster: str, kinds: list[str]) -> None:
    assert [row["cause_kind"] for row in told.rows(RESCALES, cluster)] == kinds


@pytest.mark.parametrize("cluster", ["batch", "quick_batch"])
def test_a_job_that_has_ended_is_not_planned(told: IngestedLake, cluster: str) -> None:
    (row,) = [row for row in told.rows(JOBS, cluster) if row["hour"] == (12 if cluster == "batch" else 11)]
    assert (row["state"], row["ended_at"] is not None) == ("FINISHED", True)
    assert plan_of(told, cluster)["refusal"] == "job_ended"
    assert told.rows(FORECASTS, cluster) == []


def test_a_batch_job_is_named_and_left_alone(told: IngestedLake) -> None:
    assert plan_of(told, "typed")["refusal"] == "batch_job"
    assert told.rows(FORECASTS, "typed") == []


def test_a_finished_source_is_no_part_of_the_load(told: IngestedLake) -> None:
    row, twin = plan_of(told, "snapshot"), plan_of(told, "plain")
    assert {one["operator"] for one in told.rows(FORECASTS, "snapshot")} == {"Source: orders"}
    assert row["refusal"] is None, row["reason"]
    assert row["expected_load_q90_per_s"] == pytest.approx(twin["expected_load_q90_per_s"])
    assert set(row["parallelism_to"]) == set(NAMES.values())


def test_a_job_that_no_training_saw_is_refused_for_that(told: IngestedLake) -> None:
    row = plan_of(told, "cancelled")
    assert row["refusal"] == "no_model"
    assert "busy time was never measured" not in row["reason"]


def test_windows_in_which_tasks_were_restored_are_disturbed(told: IngestedLake) -> None:
    rows = told.rows(OBSERVATIONS, "restoring")
    disturbed = {row["window_start"].minute for row in rows if row["disturbed"] and row["hour"] == 12}
    assert disturbed == {0, 1, 2, 3, 4, 5}
