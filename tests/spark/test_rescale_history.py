"""Rescales as Flink 2.3 keeps them, from the raw reply to silver.rescales: exact times, and why each began."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

from include.flink.raw_format import Endpoint
from include.tables import BRONZE_JOB_EVENTS, RESCALES
from tests.spark.raw_builders import JOB_ID, WORK
from tests.spark.situations import Situations
from tests.spark.told_rescales import FAILED, RUNNING, SEEN, SITUATIONS, STOPPED

pytestmark = pytest.mark.spark


def the_rescale(situations: Situations, cluster: str) -> Row:
    (row,) = situations.rows(RESCALES, cluster)
    assert (row["job"], row["job_id"], row["running_at"]) == ("orders", JOB_ID, RUNNING.replace(tzinfo=None))
    return row


@pytest.mark.parametrize(
    ("cluster", "trigger"),
    [
        ("requirement", "UPDATE_REQUIREMENT"),
        ("resource", "NEW_RESOURCE_AVAILABLE"),
        ("behind", "UPDATE_REQUIREMENT"),  # a JobManager whose clock is four minutes behind
        ("ahead", "UPDATE_REQUIREMENT"),
    ],
)
def test_a_rescale_that_flink_tells_has_its_own_time_and_cause(
    situations: Situations, cluster: str, trigger: str
) -> None:
    row = the_rescale(situations, cluster)
    assert (row["kind"], row["cause_kind"], row["cause"]) == ("rescale", "rescale", None)
    assert row["flink_trigger"] == trigger
    assert row["started_at"] == STOPPED.replace(tzinfo=None)
    assert row["downtime_s"] == pytest.approx(12.345)
    assert (row["parallelism_before"][WORK], row["parallelism_after"][WORK]) == (2, 3)


def test_a_failure_keeps_the_time_of_its_exception(situations: Situations) -> None:
    row = the_rescale(situations, "failover")
    assert (row["kind"], row["cause_kind"]) == ("restart", "taskmanager_lost")
    assert row["flink_trigger"] == "RECOVERABLE_FAILOVER"
    assert row["started_at"] == FAILED.replace(tzinfo=None)
    assert row["downtime_s"] == pytest.approx(17.345)


@pytest.mark.parametrize("cluster", ["ignored", "another", "silent", "silent-behind"])
def test_where_flink_tells_no_completed_rescale_the_last_reply_dates_it(situations: Situations, cluster: str) -> None:
    row = the_rescale(situations, cluster)
    assert (row["kind"], row["flink_trigger"]) == ("rescale", None)
    assert row["started_at"] == SEEN.replace(tzinfo=None)
    assert row["downtime_s"] == pytest.approx(80.0)


def test_replies_are_kept_whole(situations: Situations) -> None:
    for cluster, replies in SITUATIONS.items():
        retained = (
            situations.select(BRONZE_JOB_EVENTS, cluster)
            .where(F.col("kind") == Endpoint.RESCALE)
            .orderBy("observed_at")
        )
        assert [json.loads(row["body"]) for row in retained.collect()] == replies
        assert situations.reasons(cluster) == {}
