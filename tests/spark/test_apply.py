"""The apply stage: dry run, refusals, and mode auto against a test double of Flink's REST API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from delta_tables import write_rows
from pyspark.sql import Row, SparkSession

from include import tables
from include.control.agenda import due, write_agenda
from include.settings import Apply, Cluster, ClusterLimits, FleetLimits, Settings
from include.stages import Stage, StageRequest
from spark_jobs.apply import stage as apply
from spark_jobs.apply.auto import LEASE_MARGIN
from spark_jobs.apply.claims import Ledger
from spark_jobs.lake import Lake
from tests.spark import synthetic_fleet as fleet
from tests.spark.flink_double import JobManagerDouble, serving

pytestmark = pytest.mark.spark
JOB = "clicks"
TARGET = {"src": 1, "map": 5}
NOW = fleet.AS_OF + timedelta(minutes=10)


def plan_row(step: str = "s1", job: str = JOB, **changes: Any) -> dict[str, Any]:
    return {
        "as_of": fleet.AS_OF,
        "step_id": step,
        "cluster": fleet.CLUSTER,
        "job": job,
        "job_id": fleet.job_id(job),
        "step_index": 0,
        "status": "planned",
        "apply_at": fleet.AS_OF + timedelta(minutes=8),
        "effective_at": fleet.AS_OF + timedelta(minutes=10),
        "valid_until": fleet.AS_OF + timedelta(hours=2),
        "parallelism_from": fleet.RUNNING,
        "parallelism_to": TARGET,
        "expected_recovery_s": 90.0,
        "forecast_version": "f0",
        "date": fleet.AS_OF.date(),
        **changes,
    }


def run_at(spark: SparkSession, settings: Settings, at: datetime = NOW) -> dict[str, object]:
    return apply.run(spark, settings, StageRequest(Stage.APPLY, at))


def applied(lake: Lake) -> dict[str, Row]:
    return {row["step_id"]: row for row in lake.read(tables.APPLIED_STEPS).collect()}


@pytest.fixture
def planned(lake: Lake) -> Callable[..., None]:
    """Write a healthy job (or several) and rows of its plan."""

    def write(*rows: dict[str, Any], **loads: float) -> None:
        jobs = dict.fromkeys(row["job"] for row in rows)
        write_rows(lake, tables.JOB_GRAPHS, [row for job in jobs for row in fleet.graph_rows(job)])
        seen = {job: fleet.observation_rows(job, load=loads.get(job, 20_000.0)) for job in jobs}
        write_rows(lake, tables.OBSERVATIONS, [row for job in jobs for row in seen[job] if job != "stale_metrics"])
        rates = [20_000.0] * 24
        write_rows(lake, tables.FORECASTS, [row for job in jobs for row in fleet.forecast_rows(job, rates)])
        write_rows(lake, tables.PLANS, rows)

    return write


@pytest.fixture
def flink() -> Iterator[JobManagerDouble]:
    vertices = {fleet.vertex_id(name): name for name in fleet.RUNNING}
    running = {fleet.vertex_id(name): parallelism for name, parallelism in fleet.RUNNING.items()}
    with serving(JobManagerDouble(fleet.job_id(JOB), vertices, running)) as double:
        yield double


@pytest.fixture
def live(settings: Settings, flink: JobManagerDouble) -> Settings:
    cluster = Cluster(rest_url=flink.url, limits=ClusterLimits(mode="auto"))
    options = Apply(confirm_timeout_s=3.0, poll_every_s=0.05)
    return settings.model_copy(update={"clusters": {fleet.CLUSTER: cluster}, "apply": options})


def test_without_a_plan_the_stage_says_what_to_run(spark: SparkSession, settings: Settings) -> None:
    with pytest.raises(apply.NoPlanError, match="run the plan stage first"):
        run_at(spark, settings)


def test_a_dry_run_records_each_step_once(
    spark: SparkSession, settings: Settings, lake: Lake, planned: Callable[..., None]
) -> None:
    planned(plan_row(), plan_row("later", apply_at=NOW + timedelta(seconds=1), step_index=1))
    write_agenda(settings, fleet.AS_OF, [fleet.AS_OF + timedelta(minutes=8), NOW + timedelta(seconds=1)])
    assert run_at(spark, settings, fleet.AS_OF + timedelta(minutes=7))["due"] == 0
    assert due(settings, NOW)
    counts = run_at(spark, settings)
    assert counts == {"due": 1, "dry_run": 1, "confirmed": 0, "refused": 0, "failed": 0, "waiting": 0}
    assert not due(settings, NOW)
    assert due(settings, NOW + timedelta(seconds=1))
    (row,) = applied(lake).values()
    assert (row["step_id"], row["mode"], row["status"], row["requested_at"]) == ("s1", "dry-run", "dry_run", None)
    assert row["parallelism_to"] == TARGET
    first = applied(lake)
    assert run_at(spark, settings)["due"] == 0
    assert applied(lake) == first


def test_only_the_latest_due_step_of_the_newest_plan_counts(
    spark: SparkSession, settings: Settings, lake: Lake, planned: Callable[..., None]
) -> None:
    newer = fleet.AS_OF + timedelta(minutes=5)
    planned(
        plan_row("of_the_older_plan"),
        plan_row("first", as_of=newer),
        plan_row("second", as_of=newer, step_index=1, apply_at=NOW - timedelta(minutes=1)),
    )
    assert run_at(spark, settings)["due"] == 2
    assert {step: (row["status"], row["refusal"]) for step, row in applied(lake).items()} == {
        "first": ("refused", "superseded"),
        "second": ("dry_run", None),
    }


def test_a_newer_plan_that_holds_voids_the_older_steps(
    spark: SparkSession, settings: Settings, lake: Lake, planned: Callable[..., None]
) -> None:
    planned(plan_row(), plan_row("hold", as_of=fleet.AS_OF + timedelta(minutes=5), status="hold", apply_at=None))
    assert run_at(spark, settings)["due"] == 0


def test_refusals_are_kept_with_their_names(
    spark: SparkSession, settings: Settings, lake: Lake, planned: Callable[..., None]
) -> None:
    jobs = ["expired", "parallelism_changed", "exceeds_slots", "cooldown", "load_outside_band", "stale_metrics", "ok"]
    changes: dict[str, dict[str, Any]] = {
        "expired": {"valid_until": NOW - timedelta(minutes=1)},
        "parallelism_changed": {"parallelism_from": {"src": 1, "map": 2}},
        "exceeds_slots": {"parallelism_to": {"src": 1, "map": 65}},
    }
    planned(*(plan_row(job, job, **changes.get(job, {})) for job in jobs), load_outside_band=40_000.0)
    at = NOW - timedelta(minutes=2)
    rescale = {"cluster": fleet.CLUSTER, "job": "cooldown", "started_at": at, "running_at": at, "kind": "rescale"}
    write_rows(lake, tables.RESCALES, [rescale | {"downtime_s": 1.0, "date": at.date(), "hour": at.hour}])
    assert run_at(spark, settings)["refused"] == 6
    assert {step: row["refusal"] for step, row in applied(lake).items()} == {
        job: None if job == "ok" else job for job in jobs
    }


def test_a_plan_too_old_is_refused(
    spark: SparkSession, settings: Settings, lake: Lake, planned: Callable[..., None]
) -> None:
    planned(plan_row(valid_until=fleet.AS_OF + timedelta(hours=9)))
    run_at(spark, settings, fleet.AS_OF + timedelta(hours=2, minutes=1))
    assert applied(lake)["s1"]["refusal"] == "stale_plan"


def test_auto_sends_once_confirms_and_measures(
    spark: SparkSession, live: Settings, lake: Lake, planned: Callable[..., None], flink: JobManagerDouble
) -> None:
    planned(plan_row())
    assert run_at(spark, live)["confirmed"] == 1
    assert flink.puts == [TARGET]
    row = applied(lake)["s1"]
    assert (row["status"], row["mode"], row["parallelism_confirmed"]) == ("confirmed", "auto", TARGET)
    assert row["realised_downtime_s"] == pytest.approx(flink.delay_s, abs=0.2)
    assert row["requested_at"] < row["confirmed_at"]
    assert run_at(spark, live, NOW + timedelta(minutes=5))["due"] == 0
    assert flink.puts == [TARGET]


def test_auto_judges_by_what_the_cluster_says(
    spark: SparkSession, live: Settings, lake: Lake, planned: Callable[..., None], flink: JobManagerDouble
) -> None:
    flink.slots = 4  # 3 are used: two more do not fit
    planned(plan_row(), plan_row("gone", "no_such_job"))
    assert run_at(spark, live)["refused"] == 2
    assert {step: row["refusal"] for step, row in applied(lake).items()} == {
        "s1": "exceeds_slots",
        "gone": "unknown_job",
    }
    assert flink.puts == []


def test_auto_without_an_address_is_refused(
    spark: SparkSession, settings: Settings, lake: Lake, planned: Callable[..., None]
) -> None:
    planned(plan_row())
    run_at(spark, settings.model_copy(update={"limits": FleetLimits(mode="auto")}))
    assert applied(lake)["s1"]["refusal"] == "no_rest_url"


def test_a_cluster_that_does_not_reply_is_asked_again_by_the_next_run(
    spark: SparkSession, live: Settings, lake: Lake, planned: Callable[..., None]
) -> None:
    planned(plan_row())
    write_agenda(live, fleet.AS_OF, [fleet.AS_OF + timedelta(minutes=8)])
    nowhere = {fleet.CLUSTER: Cluster(rest_url="http://127.0.0.1:9", limits=ClusterLimits(mode="auto"))}
    assert run_at(spark, live.model_copy(update={"clusters": nowhere}))["waiting"] == 1
    assert applied(lake) == {}
    assert due(live, NOW)
    assert run_at(spark, live)["confirmed"] == 1


def test_what_does_not_come_to_run_has_failed(
    spark: SparkSession, live: Settings, lake: Lake, planned: Callable[..., None], flink: JobManagerDouble
) -> None:
    flink.delay_s = 60.0
    planned(plan_row())
    assert run_at(spark, live)["failed"] == 1
    assert "are there enough slots?" in applied(lake)["s1"]["detail"]


def test_two_appliers_never_both_send(
    spark: SparkSession, live: Settings, lake: Lake, planned: Callable[..., None], flink: JobManagerDouble
) -> None:
    planned(plan_row())
    lake.ensure(tables.APPLIED_STEPS)
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda _: run_at(spark, live), range(2)))
    assert flink.puts == [TARGET]
    assert sum(int(str(found["confirmed"])) for found in counts) == 1
    assert applied(lake)["s1"]["status"] == "confirmed"


def test_of_many_claims_at_once_one_wins(spark: SparkSession, lake: Lake) -> None:
    Ledger(lake)
    row = {"step_id": "s1", "status": "claimed", "decided_at": NOW, "cluster": fleet.CLUSTER, "job": JOB}
    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(lambda _: Ledger(lake).claim(row), range(4)))
        renewed = row | {"decided_at": NOW + timedelta(minutes=10)}
        taken = list(pool.map(lambda _: Ledger(lake).take_over(renewed, NOW), range(4)))
    assert sorted(won) == sorted(taken) == [False, False, False, True]
    assert lake.read(tables.APPLIED_STEPS).count() == 1


LATER = NOW + timedelta(minutes=10)


@pytest.fixture
def claimed(lake: Lake, planned: Callable[..., None]) -> Callable[..., None]:
    """Leave a claim as a run that was killed after claiming does."""

    def leave(**changes: Any) -> None:
        planned(plan_row(**changes))
        step = plan_row(**changes) | {"mode": "auto", "status": "claimed", "decided_at": NOW}
        Ledger(lake).record([step])

    return leave


def test_a_claim_that_was_never_sent_is_sent_by_the_next_run(
    spark: SparkSession, live: Settings, lake: Lake, claimed: Callable[..., None], flink: JobManagerDouble
) -> None:
    claimed()
    assert run_at(spark, live, LATER)["confirmed"] == 1
    assert flink.puts == [TARGET]


def test_a_claim_that_was_sent_is_only_confirmed(
    spark: SparkSession, live: Settings, lake: Lake, claimed: Callable[..., None], flink: JobManagerDouble
) -> None:
    claimed()
    bounds = {vertex: TARGET[name] for vertex, name in flink.vertices.items()}
    flink.put({vertex: {"parallelism": {"lowerBound": 1, "upperBound": bound}} for vertex, bound in bounds.items()})
    assert run_at(spark, live, LATER)["confirmed"] == 1
    assert len(flink.puts) == 1
    row = applied(lake)["s1"]
    assert (row["status"], row["requested_at"]) == ("confirmed", None)


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"valid_until": LATER - timedelta(minutes=1)}, "expired"), ({}, "a newer plan has taken over")],
)
def test_a_claim_that_may_no_longer_be_sent_has_failed(
    spark: SparkSession,
    live: Settings,
    lake: Lake,
    claimed: Callable[..., None],
    flink: JobManagerDouble,
    changes: dict[str, Any],
    why: str,
) -> None:
    claimed(**changes)
    if not changes:
        newer = {"as_of": NOW + timedelta(minutes=1), "status": "hold", "apply_at": None}
        write_rows(lake, tables.PLANS, [plan_row("newer", **newer)])
    assert run_at(spark, live, LATER)["failed"] == 1
    assert why in applied(lake)["s1"]["detail"]
    assert flink.puts == []


def test_a_claim_whose_owner_may_still_be_at_work_is_left_alone(
    spark: SparkSession, live: Settings, lake: Lake, claimed: Callable[..., None], flink: JobManagerDouble
) -> None:
    claimed()
    at_work = NOW + timedelta(seconds=live.apply.confirm_timeout_s) + LEASE_MARGIN - timedelta(seconds=5)
    assert run_at(spark, live, at_work)["waiting"] == 1
    assert flink.puts == []
    assert applied(lake)["s1"]["status"] == "claimed"


def test_a_lost_reply_is_looked_into_before_anything_is_sent_again(
    spark: SparkSession, live: Settings, lake: Lake, planned: Callable[..., None], flink: JobManagerDouble
) -> None:
    planned(plan_row())
    flink.drop_reply_of_put = True
    assert run_at(spark, live)["waiting"] == 1
    assert applied(lake)["s1"]["status"] == "claimed"
    flink.drop_reply_of_put = False
    assert run_at(spark, live, LATER)["confirmed"] == 1
    assert flink.puts == [TARGET]


def net_row(target: dict[str, int] = TARGET) -> dict[str, Any]:
    """Return a step of the reactive controller's own, of the look of this moment."""
    return {
        "as_of": NOW,
        "cluster": fleet.CLUSTER,
        "job": JOB,
        "job_id": fleet.job_id(JOB),
        "decision": "net",
        "step_id": "n1",
        "apply_at": NOW,
        "valid_until": NOW + timedelta(minutes=5),
        "parallelism_from": fleet.RUNNING,
        "parallelism_to": target,
        "reason": "the job restarts after a failure",
        "seen": True,
        "observations_until": NOW - timedelta(minutes=2),
        "plan_as_of": fleet.AS_OF,
        "date": NOW.date(),
    }


@pytest.mark.parametrize("of_net", [True, False])
def test_a_job_that_restarts_takes_only_what_the_net_enlarges(
    spark: SparkSession,
    live: Settings,
    lake: Lake,
    planned: Callable[..., None],
    flink: JobManagerDouble,
    of_net: bool,
) -> None:
    planned(plan_row(status="hold", apply_at=None) if of_net else plan_row())
    if of_net:
        write_rows(lake, tables.LOOKS, [net_row()])
    flink.fail()
    found = run_at(spark, live)
    if of_net:
        assert found["confirmed"] == 1
        assert flink.puts == [TARGET]
        row = applied(lake)["n1"]
        assert (row["status"], row["parallelism_confirmed"]) == ("confirmed", TARGET)
        assert row["realised_downtime_s"] is None  # the failure's, not the step's
    else:
        assert applied(lake)["s1"]["refusal"] == "not_running"
        assert flink.puts == []


def test_without_the_adaptive_scheduler_a_job_that_restarts_is_left_alone(
    spark: SparkSession, live: Settings, lake: Lake, planned: Callable[..., None], flink: JobManagerDouble
) -> None:
    planned(plan_row(status="hold", apply_at=None))
    write_rows(lake, tables.LOOKS, [net_row()])
    flink.adaptive = False
    flink.fail()
    assert run_at(spark, live)["refused"] == 1
    assert applied(lake)["n1"]["refusal"] == "not_running"


def test_what_a_job_that_restarts_comes_back_with_has_to_fit(
    spark: SparkSession, live: Settings, lake: Lake, planned: Callable[..., None], flink: JobManagerDouble
) -> None:
    planned(plan_row(status="hold", apply_at=None))
    write_rows(lake, tables.LOOKS, [net_row()])
    flink.slots = 4  # its own three are among the free ones while it waits for slots
    flink.fail()
    assert run_at(spark, live)["refused"] == 1
    assert applied(lake)["n1"]["refusal"] == "exceeds_slots"
