"""Catch-ups: dated by the first measurement that shows them, unknown where nothing was measured for long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from include.settings import Ingest
from include.tables import RESCALES
from spark_jobs.job_history.rescales import build_rescales
from spark_jobs.lake import empty

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
JOB_ID = "a" * 32
VECTOR = "ARRAY<STRUCT<vertex_id: STRING, parallelism: INT, operator: STRING>>"
EVENTS = f"""cluster STRING, job STRING, job_id STRING, job_id_before STRING, started_at TIMESTAMP,
    running_at TIMESTAMP, ended_at TIMESTAMP, is_open BOOLEAN, detected_at TIMESTAMP, kind STRING, cause STRING,
    cause_kind STRING, vector_before {VECTOR}, vector_after {VECTOR}, checkpoint_at TIMESTAMP, state_size_bytes DOUBLE,
    next_started_at TIMESTAMP, flink_trigger STRING"""
SOURCES = """cluster STRING, job STRING, job_id STRING, operator STRING, window_s INT, observed_at TIMESTAMP,
    since_last_s DOUBLE, lag_s DOUBLE, target_per_s DOUBLE, out_total DOUBLE, pending DOUBLE"""


def at(second):
    return START + timedelta(seconds=second)


def failure(job, started, running):
    vector = [("1", 2, "src")]
    return (
        *("c", job, JOB_ID, JOB_ID, at(started), at(running), at(running), False, at(running)),
        *("restart", "lost", "job_failure", vector, vector, None, None, None, None),
    )


def samples(job, seconds, lags):
    before = [None, *seconds[:-1]]
    return [
        (
            "c",
            job,
            JOB_ID,
            "src",
            60,
            at(second),
            None if last is None else float(second - last),
            lag,
            100.0,
            None,
            None,
        )
        for second, last, lag in zip(seconds, before, lags, strict=True)
    ]


def test_a_catch_up_that_nothing_measured_has_no_time(spark):
    """Down for 170 s, then ``polled`` is measured every 30 s; of ``unseen`` nothing is known for 10 minutes."""
    polled = samples("polled", [0, 30, 230, 260, 290], [0.0, 0.0, 90.0, 2.0, 1.0])
    unseen = samples("unseen", [0, 30, 830, 860, 890], [0.0, 0.0, 2.0, 1.0, 0.0])
    behind = samples("behind", [0, 30, 830, 860, 890], [0.0, 0.0, 90.0, 50.0, 1.0])
    jobs = ("polled", "unseen", "behind")
    found = build_rescales(
        spark.createDataFrame([failure(job, 35, 205) for job in jobs], EVENTS),
        spark.createDataFrame([*polled, *unseen, *behind], SOURCES),
        empty(spark, RESCALES.columns),
        Ingest(caught_up_lag_s=10),
    )
    rows = {row["job"]: row for row in found.collect()}
    assert {job: row["catch_up_s"] for job, row in rows.items()} == {"polled": 55.0, "unseen": None, "behind": 685.0}
    assert {row["downtime_s"] for row in rows.values()} == {170.0}
    assert rows["unseen"]["parallelism_after"] == {"src": 2}
