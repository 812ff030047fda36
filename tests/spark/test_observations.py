"""Windows of jobs that ran under several ids: what one window says, and that no other is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from include.settings import Cluster
from include.tables import AGGREGATES
from spark_jobs.job_history.job_shapes import JobShape
from spark_jobs.job_history.observations import build_observations, measure_windows, select_source_samples
from spark_jobs.job_history.samples import build_samples, read_metrics
from spark_jobs.lake import empty

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
FORMER, LATER = "a" * 32, "b" * 32
POLLED = f"cluster STRING, job_id STRING, vertex_id STRING, observed_at TIMESTAMP, metrics {AGGREGATES}"
NAMED = """cluster STRING, job_id STRING, vertex_id STRING, job STRING, operator STRING, is_source BOOLEAN,
    named_from TIMESTAMP, named_until TIMESTAMP"""
CHANGES = {
    "cluster": "STRING",
    "job_id": "STRING",
    "vertex_id": "STRING",
    "parallelism": "INT",
    "valid_from": "TIMESTAMP",
    "valid_to": "TIMESTAMP",
}
MINUTES = {"c": Cluster(window_s=60)}
DISTURBED = {"cluster": "STRING", "job_id": "STRING", "window_start": "TIMESTAMP"}


def measure(spark, samples):
    shapes = {("c", FORMER): JobShape(has_stopped=True)}
    return measure_windows(samples, spark.sparkContext.broadcast(shapes))


def polled(job_id, vertex, second, records):
    metrics = [("numRecordsIn", 0.0, records, records, float(records), 0.0)]
    return ("c", job_id, vertex * 32, START + timedelta(seconds=second), metrics)


def named(job_id, vertex, job):
    return ("c", job_id, vertex * 32, job, "map", False, None, None)


def began(row):
    """Seconds from START to a window's start."""
    return int((row["window_start"].replace(tzinfo=UTC) - START).total_seconds())


def test_of_two_ids_in_one_window_the_later_stands(spark):
    polls = spark.createDataFrame(
        [
            *[polled(FORMER, "1", second, 10.0 * second) for second in (0, 30, 60, 90, 130)],
            *[polled(LATER, "1", second, 7.0 * (second - 140)) for second in (140, 160, 190)],
            *[polled("c" * 32, "2", second, 5.0 * second) for second in (0, 30, 60, 90, 130)],
        ],
        POLLED,
    )
    names = [named(FORMER, "1", "rides"), named(LATER, "1", "rides"), named("c" * 32, "2", "fares")]
    samples = build_samples(
        read_metrics(polls), spark.createDataFrame(names, NAMED), empty(spark, CHANGES), {"c": Cluster(window_s=60)}
    )
    result = build_observations(measure(spark, samples), empty(spark, CHANGES), empty(spark, DISTURBED)).orderBy(
        "job", "window_start"
    )
    observed = {(row["job"], began(row)): row for row in result.collect()}
    assert {key: row["job_id"] for key, row in observed.items()} == {
        ("fares", 0): "c" * 32,
        ("fares", 60): "c" * 32,
        ("fares", 120): "c" * 32,
        ("rides", 0): FORMER,
        ("rides", 60): FORMER,
        ("rides", 120): LATER,
        ("rides", 180): LATER,
    }
    rates = {key: row["observed_processing_rate_per_s"] for key, row in observed.items()}
    assert rates["fares", 60] == 5.0
    assert rates["rides", 60] == 10.0
    assert rates["rides", 120] == 7.0
    assert observed["rides", 120]["samples"] == 2


def test_a_source_shows_its_backlog_whatever_its_operator_is_called(spark):
    def shown(*ids):
        return [(name, 0.0, 1.0, 1.0, float(place), 0.0) for place, name in enumerate(ids, 1)]

    replies = [
        shown("numRecordsOut", "xpendingRecords", "Source__a.b.pendingRecords"),
        shown("pendingRecords", "numRecordsOut"),
        shown("numRecordsOut", "Source__pendingRecords.numLate"),
        shown("Source__a.pendingRecords"),  # of no source
    ]
    polls = [("c", FORMER, str(place) * 32, START, metrics) for place, metrics in enumerate(replies)]
    names = [
        ("c", FORMER, str(place) * 32, "rides", f"v{place}", place < 3, None, None) for place in range(len(replies))
    ]
    frames = read_metrics(spark.createDataFrame(polls, POLLED)), spark.createDataFrame(names, NAMED)
    samples = build_samples(*frames, empty(spark, CHANGES), MINUTES)
    assert {row["operator"]: row["pending"] for row in select_source_samples(measure(spark, samples)).collect()} == {
        "v0": 3.0,
        "v1": 1.0,
    }


def timed(second, emitted, pending, ran_s):
    """A source's reply after ``ran_s`` seconds of running, half of them busy."""
    spent = [("accumulateBusyTimeMs", 500.0), ("accumulateIdleTimeMs", 500.0), ("accumulateBackPressuredTimeMs", 0.0)]
    values = {"numRecordsOut": emitted, "pendingRecords": pending} | {name: share * ran_s for name, share in spent}
    metrics = [(name, 0.0, value, value, value, 0.0) for name, value in values.items()]
    return ("c", FORMER, "1" * 32, START + timedelta(seconds=second), metrics)


def test_metrics_that_stand_still_are_no_measurement_and_an_idle_job_is_one(spark):
    """A lost TaskManager holds up all metrics: without a look at their age the load would be zero until they move."""
    moving = [timed(second, 100.0 * second, 50.0, second) for second in (0, 30, 60, 90)]
    still = [timed(second, 9000.0, 50.0, 90) for second in range(120, 360, 30)]
    idle = [timed(second, 9000.0, 0.0, second) for second in range(360, 480, 30)]
    names = spark.createDataFrame([("c", FORMER, "1" * 32, "rides", "Source: rides", True, None, None)], NAMED)
    samples = build_samples(
        read_metrics(spark.createDataFrame([*moving, *still, *idle], POLLED)),
        names,
        empty(spark, CHANGES),
        {"c": Cluster(window_s=60)},
    )
    rows = (
        build_observations(measure(spark, samples), empty(spark, CHANGES), empty(spark, DISTURBED))
        .orderBy("window_start")
        .collect()
    )
    observed = {began(row): row["target_data_rate_per_s"] for row in rows}
    assert observed == {0: 100.0, 60: 100.0, 360: 0.0, 420: 0.0}
    polls = select_source_samples(measure(spark, samples)).orderBy("observed_at").collect()
    assert [row["since_last_s"] for row in polls] == [None, 30.0, 30.0, 30.0, 270.0, 30.0, 30.0, 30.0]
