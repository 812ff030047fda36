"""Catch-ups: dated by the first measurement that shows them, unknown where nothing was measured for long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from include.settings import Ingest
from include.tables import RESCALES
from include.utc import Interval
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
    since_last_s DOUBLE, age_s DOUBLE, target_per_s DOUBLE, taken_total DOUBLE, pending DOUBLE"""


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
    result = build_rescales(
        spark.createDataFrame([failure(job, 35, 205) for job in jobs], EVENTS),
        spark.createDataFrame([*polled, *unseen, *behind], SOURCES),
        empty(spark, RESCALES.columns),
        Ingest(caught_up_lag_s=10),
        Interval(START, START + timedelta(hours=1)),
    )
    rows = {row["job"]: row for row in result.collect()}
    assert {job: row["catch_up_s"] for job, row in rows.items()} == {"polled": 55.0, "unseen": None, "behind": 685.0}
    assert {row["downtime_s"] for row in rows.values()} == {170.0}
    assert rows["unseen"]["parallelism_after"] == {"src": 2}


def source_sample(operator, second, since, target, totals):
    """A sample of one source; ``totals``: taken_total, pending and age_s."""
    taken_total, pending, age_s = totals
    return ("c", "two", JOB_ID, operator, 300, at(second), since, age_s, target, taken_total, pending)


def test_what_several_sources_did_until_one_poll_is_added_up(spark):
    """The replies of a poll come one after the other; the second source has caught up a poll after the first."""
    rows = [
        source_sample("big", 0, 300.0, 90.0, (9e9, 30.0, 0.3)),
        source_sample("small", 0.02, 300.0, 10.0, (1e9, 4.0, 0.4)),
        source_sample("big", 230, None, None, (4000.0, 50.0, 0.3)),
        source_sample("small", 230.02, None, None, (400.0, 900.0, 56.0)),
        source_sample("big", 290, 60.0, 100.0, (10_000.0, 60.0, 0.6)),
        source_sample("small", 290.02, 60.0, 20.0, (1500.0, 8.0, 0.4)),
        source_sample("big", 590, 300.0, 110.0, (40_000.0, 60.0, 0.6)),
        source_sample("small", 590.02, 300.0, 30.0, (4500.0, 8.0, 0.4)),
    ]
    late = [row for row in rows if row[3:6:2] != ("big", at(290))]
    result = {}
    for name, samples_of in (("whole", rows), ("late", late)):
        result[name] = build_rescales(
            spark.createDataFrame([failure("two", 35, 205)], EVENTS),
            spark.createDataFrame(samples_of, SOURCES),
            empty(spark, RESCALES.columns),
            Ingest(caught_up_lag_s=5),
            Interval(START, START + timedelta(hours=1)),
        ).collect()[0]
    whole = result["whole"]
    assert (whole["emitted_records"], whole["pending_records"]) == (11_500.0, 68.0)
    assert whole["pending_before_records"] == 34.0
    assert (whole["catch_up_s"], whole["unseen_s"]) == (85.02, 60.0)
    assert whole["source_load_per_s"] == {"big": (90.0 + 105.0) / 2, "small": (10.0 + 25.0) / 2}
    assert result["late"]["catch_up_s"] == 85.02
    assert result["late"]["emitted_records"] is None  # what one of them did until then is not known
