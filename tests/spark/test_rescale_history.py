"""Rescales as Flink 2.3 keeps them, from the raw reply to silver.rescales: exact times, and why each began."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from include.flink.raw_format import Kind
from include.settings import Cluster, Settings
from include.stages import Stage, StageRequest
from include.tables import BRONZE_JOB_EVENTS, RESCALES
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from tests.spark.ingested_lake import IngestedLake
from tests.spark.raw_builders import JOB_ID, VERTEX_IDS, WORK, PolledJob, exceptions_body, ms, record, utc, write

pytestmark = pytest.mark.spark
START = utc("2026-11-20T10:00")
SEEN = START + timedelta(minutes=29, seconds=50)  # the last poll before the stop
STOPPED = START + timedelta(minutes=30, seconds=57, milliseconds=655)
RUNNING = START + timedelta(minutes=31, seconds=10)
FAILED = STOPPED - timedelta(seconds=5)
GROUP_ID = "8" * 32
STATES = ("WaitingForResources", "CreatingExecutionGraph", "Executing")
PROFILE = {
    **{"cpuCores": 1.0, "taskHeapMemory": 384, "taskOffHeapMemory": 0, "managedMemory": 64, "networkMemory": 64},
    "extendedResources": {},
}


def span(state: str, entered: datetime, left: datetime) -> dict[str, object]:
    return {
        "state": state,
        "enterTimestampInMillis": ms(entered),
        "leaveTimestampInMillis": ms(left),
        "durationInMillis": ms(left) - ms(entered),
        "stringifiedException": None,
    }


def told(
    trigger: str, stopped: datetime, ran: datetime, state: str = "COMPLETED", reason: str = "SUCCEEDED"
) -> dict[str, object]:
    """A reply of ``/jobs/:jobid/rescales/details/:rescaleuuid``, with the fields that Flink 2.3 gives it.

    Before the job stops for it, a rescale waits in state Executing; "Restarting" is the stop.
    """
    asked = stopped - timedelta(seconds=3)
    step = (ran - stopped) / 4
    states = [span("Executing", asked, stopped), span("Restarting", stopped, stopped + step)]
    states += [span(name, stopped + place * step, stopped + (place + 1) * step) for place, name in enumerate(STATES, 1)]
    group = {"slotSharingGroupId": GROUP_ID, "slotSharingGroupName": "default"}
    vertices = {
        vertex_id: {
            **{"jobVertexId": vertex_id, "jobVertexName": name, **group},
            **{"desiredParallelism": 3, "sufficientParallelism": 1},
            **{"preRescaleParallelism": 2, "postRescaleParallelism": 3},
        }
        for name, vertex_id in VERTEX_IDS.items()
    }
    slots = {
        **group,
        **{"requestResourceProfile": PROFILE, "acquiredResourceProfile": PROFILE},
        **{"desiredSlots": 3, "minimalRequiredSlots": 1, "preRescaleSlots": 2, "postRescaleSlots": 3},
    }
    return {
        "rescaleUuid": "0f6d4f0a8b5c4d8fa3c1d3a1b2c4e5f6",
        "resourceRequirementsUuid": "1f6d4f0a8b5c4d8fa3c1d3a1b2c4e5f6",
        "rescaleAttemptId": 1,
        "vertices": vertices,
        "slots": {GROUP_ID: slots},
        "schedulerStates": states,
        "startTimestampInMillis": ms(asked),
        "endTimestampInMillis": ms(ran),
        "terminalState": state,
        "triggerCause": trigger,
        "terminatedReason": reason,
    }


RAN = RUNNING + timedelta(milliseconds=400)  # a rescale ends a little after the job's own time of RUNNING
INITIAL = told("INITIAL_SCHEDULE", START - timedelta(hours=1, seconds=9), START - timedelta(hours=1))
SITUATIONS = {
    "requirement": [INITIAL, told("UPDATE_REQUIREMENT", STOPPED, RAN)],
    "resource": [INITIAL, told("NEW_RESOURCE_AVAILABLE", STOPPED, RAN)],
    "failover": [INITIAL, told("RECOVERABLE_FAILOVER", STOPPED, RAN)],
    "ignored": [told("UPDATE_REQUIREMENT", STOPPED, RAN, "IGNORED", "NO_RESOURCES_OR_PARALLELISMS_CHANGE")],
    "another": [told("UPDATE_REQUIREMENT", STOPPED, RUNNING + timedelta(seconds=2.1))],  # not the one that ended then
    "untold": [],
}


@pytest.fixture(scope="module")
def ingested(spark: SparkSession, shared_settings: Settings, shared_lake: Lake) -> IngestedLake:
    """Jobs that stop once in an hour: of each of them Flink says something else."""
    settings = shared_settings.model_copy(update={"clusters": {name: Cluster(window_s=300) for name in SITUATIONS}})
    for cluster, replies in SITUATIONS.items():
        before = PolledJob(START - timedelta(hours=1), cluster)
        is_failure = cluster == "failover"
        after = PolledJob(RUNNING, cluster, parallelism={**before.parallelism, WORK: 2 if is_failure else 3})
        asked = RUNNING + timedelta(seconds=30)
        lines = [
            record(asked + timedelta(milliseconds=place), Kind.RESCALE, reply, cluster=cluster)
            for place, reply in enumerate(replies)
        ]
        if is_failure:
            lost = exceptions_body((FAILED, "TaskManager with id tm-1 is no longer reachable"))
            lines.append(record(asked, Kind.EXCEPTIONS, lost, cluster=cluster))
        lines += [*before.hour(START)[:25], *after.hour(START)[25:]]  # six polls before the stop, six after it
        write(Path(settings.paths.raw), START, lines, cluster=cluster)
    end = START + timedelta(hours=1)
    return IngestedLake(shared_lake, ingest.run(spark, settings, StageRequest(Stage.INGEST, end, START, end)))


def the_rescale(ingested: IngestedLake, cluster: str) -> Row:
    (row,) = ingested.rows(RESCALES, cluster)
    assert (row["job"], row["job_id"], row["running_at"]) == ("orders", JOB_ID, RUNNING.replace(tzinfo=None))
    return row


@pytest.mark.parametrize(
    ("cluster", "trigger"), [("requirement", "UPDATE_REQUIREMENT"), ("resource", "NEW_RESOURCE_AVAILABLE")]
)
def test_a_rescale_that_flink_tells_has_its_own_time_and_cause(
    ingested: IngestedLake, cluster: str, trigger: str
) -> None:
    row = the_rescale(ingested, cluster)
    assert (row["kind"], row["cause_kind"], row["cause"]) == ("rescale", "rescale", None)
    assert row["flink_trigger"] == trigger
    assert row["started_at"] == STOPPED.replace(tzinfo=None)
    assert row["downtime_s"] == pytest.approx(12.345)
    assert (row["parallelism_before"][WORK], row["parallelism_after"][WORK]) == (2, 3)


def test_a_failure_keeps_the_time_of_its_exception(ingested: IngestedLake) -> None:
    row = the_rescale(ingested, "failover")
    assert (row["kind"], row["cause_kind"]) == ("restart", "taskmanager_lost")
    assert row["flink_trigger"] == "RECOVERABLE_FAILOVER"
    assert row["started_at"] == FAILED.replace(tzinfo=None)
    assert row["downtime_s"] == pytest.approx(17.345)


@pytest.mark.parametrize("cluster", ["ignored", "another", "untold"])
def test_where_flink_tells_no_completed_rescale_the_last_reply_dates_it(ingested: IngestedLake, cluster: str) -> None:
    row = the_rescale(ingested, cluster)
    assert (row["kind"], row["flink_trigger"]) == ("rescale", None)
    assert row["started_at"] == SEEN.replace(tzinfo=None)
    assert row["downtime_s"] == pytest.approx(80.0)


def test_replies_are_kept_whole(ingested: IngestedLake) -> None:
    for cluster, replies in SITUATIONS.items():
        retained = (
            ingested.select(BRONZE_JOB_EVENTS, cluster).where(F.col("kind") == Kind.RESCALE).orderBy("observed_at")
        )
        assert [json.loads(row["body"]) for row in retained.collect()] == replies
    assert ingested.summary["quarantined"] == 0
