"""Corrupt input of every kind: quarantined or refused by name, and no good row is lost."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from pathlib import Path

import pytest

from include import raw_files
from include.flink.raw_format import Kind, hour_directory
from include.stages import Stage, StageRequest
from include.tables import BRONZE_METRICS, JOB_GRAPHS, OBSERVATIONS, QUALITY, QUARANTINE, RESCALES
from include.utc import Interval, IntervalError
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from tests.spark.raw_builders import SOURCE, VERTEX_IDS, WORK, PolledJob, metric, record, utc, write

pytestmark = pytest.mark.spark
START = utc("2026-11-20T10:00")
HOUR = timedelta(hours=1)
GOOD_TABLES = (BRONZE_METRICS, JOB_GRAPHS, OBSERVATIONS, RESCALES)


@pytest.fixture(scope="module")
def job() -> PolledJob:
    return PolledJob(running_at=START - HOUR)


def run(spark, settings) -> dict[str, object]:
    return ingest.run(spark, settings, StageRequest(Stage.INGEST, START + HOUR, START, START + HOUR))


def good_rows(lake: Lake) -> dict[str, list[str]]:
    """The tables of good rows without the name of the file that a row came from."""
    found = {}
    for table in GOOD_TABLES:
        columns = [column for column in table.columns if column != "source_file"]
        found[table.name] = sorted(map(str, lake.read(table).select(*columns).collect()))
    return found


def reasons(lake: Lake) -> dict[str, int]:
    return {
        row["reason"]: row["n"] for row in lake.read(QUARANTINE).groupBy("reason").count().toDF("reason", "n").collect()
    }


def bad_lines(job: PolledJob) -> dict[str, list[str]]:
    """Lines that must not be taken, by the reason they must get."""
    at = START + timedelta(minutes=31)
    good = job.vertex_line(WORK, at)
    envelope = json.loads(good)
    return {
        "malformed_json": [good[: len(good) // 2], "not json at all"],
        "missing_field": [json.dumps({key: value for key, value in envelope.items() if key != "vertex_id"})],
        "wrong_type": [json.dumps({**envelope, "observed_at_ms": "soon"})],
        "unknown_kind": [json.dumps({**envelope, "kind": "gossip"})],
        "bad_id": [
            json.dumps({**envelope, "job_id": "not-hex"}),
            record(at, Kind.JOB_METRICS, job.metrics(WORK, at), vertex_id=VERTEX_IDS[WORK]),
        ],
        "http_error": [record(at, Kind.VERTEX_METRICS, "{}", vertex_id=VERTEX_IDS[WORK], status=404)],
        "unknown_vertex": [record(at, Kind.VERTEX_METRICS, job.metrics(WORK, at), vertex_id="f" * 32)],
        "clock_jump": [job.vertex_line(WORK, START + timedelta(days=3))],
        "too_late": [job.vertex_line(WORK, START - timedelta(days=3))],
    }


def test_every_bad_line_is_named_and_no_good_row_is_lost(spark, settings, lake, job, tmp_path):
    raw = Path(settings.paths.raw)
    write(raw, START, job.hour(START))
    run(spark, settings)
    clean = good_rows(lake)
    bad = bad_lines(job)
    write(raw, START, [line for lines in bad.values() for line in lines], name="bad.jsonl.gz")
    write(raw, START, job.hour(START)[:5], name="twice.jsonl.gz")  # delivered a second time
    (hour_directory(raw, "c5m", START) / "empty.jsonl.gz").write_bytes(b"")
    summary = run(spark, settings)
    assert good_rows(lake) == clean
    assert reasons(lake) == {**{reason: len(lines) for reason, lines in bad.items()}, "empty_file": 1}
    assert summary["duplicate"] == 5
    kept = {row["raw"] for row in lake.read(QUARANTINE).collect()}
    assert {line for lines in bad.values() for line in lines} <= kept
    quality = lake.read(QUALITY).where("cluster = 'c5m'").collect()
    assert [row["quarantined"] for row in quality] == [summary["quarantined"]]


def test_a_bad_value_is_taken_out_and_its_row_kept(spark, settings, lake, job):
    at = START + timedelta(minutes=14, seconds=50)  # instead of the poll that is due then
    lines = [line for line in job.hour(START) if json.loads(line)["observed_at_ms"] != at.timestamp() * 1000]
    broken = [
        metric("numRecordsIn", -5.0),
        metric("numRecordsOut", 1e30),
        metric("numRecordsInPerSecond", "NaN"),
        metric("numRecordsOutPerSecond", "many"),
        metric("busyTimeMsPerSecond", "NaN"),
        metric("idleTimeMsPerSecond", 500.0),
    ]
    polled = [job.vertex_line(vertex, at, broken if vertex == WORK else None) for vertex in VERTEX_IDS]
    write(Path(settings.paths.raw), START, [*lines, job.poll(at)[0], *polled])
    summary = run(spark, settings)
    found = reasons(lake)
    assert set(found) == {"value_negative", "value_huge", "value_nan", "wrong_type"}
    assert summary["not_measured"] == 1  # Flink's own word for a busy time it did not measure
    rows = lake.read(BRONZE_METRICS).where(f"vertex_id = '{VERTEX_IDS[WORK]}'").collect()
    assert len(rows) == 12
    (row,) = [row for row in rows if row["observed_at"] == at.replace(tzinfo=None)]
    values = {entry["id"]: entry["sum"] for entry in row["metrics"]}
    assert values["numRecordsIn"] is None
    assert values["idleTimeMsPerSecond"] == 500.0
    assert lake.read(OBSERVATIONS).where("operator = 'Source: orders'").count() == 12
    assert lake.read(OBSERVATIONS).where("true_processing_rate_per_s = double('NaN')").isEmpty()


def test_a_damaged_file_gives_what_can_be_read_and_its_name(spark, settings, lake, job):
    raw = Path(settings.paths.raw)
    write(raw, START, job.hour(START))
    run(spark, settings)
    clean = good_rows(lake)
    other = PolledJob(running_at=START - HOUR, cluster="c5m")
    whole = gzip.compress("\n".join(other.hour(START)).encode(), mtime=0)
    (hour_directory(raw, "c5m", START) / "torn.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    run(spark, settings)
    assert good_rows(lake) == clean
    assert reasons(lake).get("corrupt_file") == 1


def test_a_file_too_large_to_be_read_is_named(spark, settings, lake, job, monkeypatch):
    raw = Path(settings.paths.raw)
    write(raw, START, job.hour(START))
    run(spark, settings)
    clean = good_rows(lake)
    large = hour_directory(raw, "c5m", START) / "large.jsonl"
    large.write_text("\n".join(job.hour(START)) * 9)
    monkeypatch.setattr(raw_files, "LARGEST_BYTES", large.stat().st_size - 1)
    run(spark, settings)
    assert good_rows(lake) == clean
    assert reasons(lake) == {"file_too_large": 1}


def test_conflicting_duplicates_keep_the_first(spark, settings, lake, job):
    raw = Path(settings.paths.raw)
    write(raw, START, job.hour(START))
    at = START + timedelta(minutes=9, seconds=50)
    other = [metric("numRecordsOut", 1.0), metric("busyTimeMsPerSecond", 1.0)]
    write(raw, START, [job.vertex_line(SOURCE, at, other)], name="b.jsonl.gz")
    run(spark, settings)
    assert reasons(lake) == {"duplicate_conflict": 1}
    rows = lake.read(BRONZE_METRICS).where(f"vertex_id = '{VERTEX_IDS[SOURCE]}'").collect()
    assert len(rows) == 12
    assert all(len(row["metrics"]) > 2 for row in rows)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-11-20T11:00", "2026-11-20T10:00"),
        ("2026-11-20T10:00", "2026-11-20T10:00"),
        ("2026-11-20T10:30", "2026-11-20T12:00"),
    ],
)
def test_an_interval_that_cannot_be_is_refused(start, end):
    with pytest.raises(IntervalError):
        Interval.parse(start, end)
