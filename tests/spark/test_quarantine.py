"""Corrupt input of every kind: quarantined or refused by name, and no good row is lost.

One lake for all kinds, each in a cluster of its own: the good files are ingested first, then once more with bad input
beside them.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include import raw_files
from include.flink.raw_format import Kind, hour_directory
from include.settings import Cluster, Settings
from include.stages import Stage, StageRequest
from include.tables import BRONZE_METRICS, JOB_GRAPHS, OBSERVATIONS, QUARANTINE, RESCALES
from include.utc import Interval, IntervalError
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from tests.spark.ingested_lake import IngestedLake
from tests.spark.raw_builders import SOURCE, VERTEX_IDS, WORK, PolledJob, metric, record, utc, write

pytestmark = pytest.mark.spark
START = utc("2026-11-20T10:00")
HOUR = timedelta(hours=1)
GOOD_TABLES = (BRONZE_METRICS, JOB_GRAPHS, OBSERVATIONS, RESCALES)
VALUES_AT = START + timedelta(minutes=14, seconds=50)  # a poll that is due then
GoodRows = dict[str, list[str]]
"""Per table of good rows, its rows without the name of the file that a row came from."""


def polled(cluster: str) -> PolledJob:
    return PolledJob(running_at=START - HOUR, cluster=cluster)


JOBS = {cluster: polled(cluster) for cluster in ("lines", "values", "torn", "large", "conflict")}


def run(spark: SparkSession, settings: Settings) -> dict[str, object]:
    return ingest.run(spark, settings, StageRequest(Stage.INGEST, START + HOUR, START, START + HOUR))


def good_rows(lake: Lake) -> dict[str, GoodRows]:
    """The good rows of every cluster."""
    result: dict[str, GoodRows] = defaultdict(lambda: {table.name: [] for table in GOOD_TABLES})
    for table in GOOD_TABLES:
        columns = [column for column in table.columns if column != "source_file"]
        for row in lake.read(table).select(*columns).collect():
            result[row["cluster"]][table.name].append(str(row))
    return {cluster: {name: sorted(rows) for name, rows in tables.items()} for cluster, tables in result.items()}


def bad_lines(job: PolledJob) -> dict[str, list[str]]:
    """Lines that must not be taken, by the reason they must get."""
    at = START + timedelta(minutes=31)
    good = job.vertex_line(WORK, at)
    envelope = json.loads(good)

    def reply(kind: Kind, body: object, vertex_id: str, status: int = 200) -> str:
        return record(at, kind, body, vertex_id=vertex_id, status=status, cluster=job.cluster)

    return {
        "malformed_json": [good[: len(good) // 2], "not json at all"],
        "missing_field": [json.dumps({key: value for key, value in envelope.items() if key != "vertex_id"})],
        "wrong_type": [json.dumps({**envelope, "observed_at_ms": "soon"})],
        "unknown_kind": [json.dumps({**envelope, "kind": "gossip"})],
        "bad_id": [
            json.dumps({**envelope, "job_id": "not-hex"}),
            reply(Kind.JOB_METRICS, job.metrics(WORK, at), VERTEX_IDS[WORK]),
        ],
        "http_error": [reply(Kind.VERTEX_METRICS, "{}", VERTEX_IDS[WORK], status=404)],
        "unknown_vertex": [reply(Kind.VERTEX_METRICS, job.metrics(WORK, at), "f" * 32)],
        "clock_jump": [job.vertex_line(WORK, START + timedelta(days=3))],
        "too_late": [job.vertex_line(WORK, START - timedelta(days=3))],
    }


def write_bad_lines(raw: Path) -> None:
    job = JOBS["lines"]
    bad = [line for lines in bad_lines(job).values() for line in lines]
    write(raw, START, bad, cluster="lines", name="bad.jsonl.gz")
    write(raw, START, job.hour(START)[:5], cluster="lines", name="twice.jsonl.gz")  # delivered a second time
    (hour_directory(raw, "lines", START) / "empty.jsonl.gz").write_bytes(b"")


def write_bad_values(raw: Path) -> None:
    job = JOBS["values"]
    lines = [line for line in job.hour(START) if json.loads(line)["observed_at_ms"] != VALUES_AT.timestamp() * 1000]
    broken = [
        metric("numRecordsIn", -5.0),
        metric("numRecordsOut", 1e30),
        metric("numRecordsInPerSecond", "NaN"),
        metric("numRecordsOutPerSecond", "many"),
        metric("busyTimeMsPerSecond", "NaN"),
        metric("idleTimeMsPerSecond", 500.0),
    ]
    again = [job.vertex_line(vertex, VALUES_AT, broken if vertex == WORK else None) for vertex in VERTEX_IDS]
    write(raw, START, [*lines, job.poll(VALUES_AT)[0], *again], cluster="values")


def write_torn_file(raw: Path) -> None:
    whole = gzip.compress("\n".join(JOBS["torn"].hour(START)).encode(), mtime=0)
    (hour_directory(raw, "torn", START) / "torn.jsonl.gz").write_bytes(whole[: len(whole) // 2])


def write_large_file(raw: Path) -> int:
    """Returns how large it is."""
    large = hour_directory(raw, "large", START) / "large.jsonl"
    large.write_text("\n".join(JOBS["large"].hour(START)) * 9)
    return large.stat().st_size


def write_conflict(raw: Path) -> None:
    at = START + timedelta(minutes=9, seconds=50)
    other = [metric("numRecordsOut", 1.0), metric("busyTimeMsPerSecond", 1.0)]
    line = JOBS["conflict"].vertex_line(SOURCE, at, other)
    write(raw, START, [line], cluster="conflict", name="b.jsonl.gz")


@dataclass(frozen=True)
class Ingested(IngestedLake):
    """After the second run, with each cluster's good rows after the first and after it."""

    before: dict[str, GoodRows]
    after: dict[str, GoodRows]


@pytest.fixture(scope="module")
def ingested(spark: SparkSession, shared_settings: Settings, shared_lake: Lake) -> Ingested:
    clusters = {cluster: Cluster(window_s=300) for cluster in JOBS}
    settings = shared_settings.model_copy(update={"clusters": clusters})
    raw, lake = Path(settings.paths.raw), shared_lake
    for cluster, job in JOBS.items():
        write(raw, START, job.hour(START), cluster=cluster)
    run(spark, settings)
    before = good_rows(lake)
    write_bad_lines(raw)
    write_bad_values(raw)
    write_torn_file(raw)
    write_conflict(raw)
    size = write_large_file(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_files, "LARGEST_BYTES", size - 1)
        summary = run(spark, settings)
    return Ingested(lake, summary, before, good_rows(lake))


def test_every_bad_line_is_named_and_no_good_row_is_lost(ingested: Ingested) -> None:
    assert ingested.after["lines"] == ingested.before["lines"]
    bad = bad_lines(JOBS["lines"])
    assert ingested.reasons("lines") == {**{reason: len(lines) for reason, lines in bad.items()}, "empty_file": 1}
    retained = {row["raw"] for row in ingested.rows(QUARANTINE, "lines")}
    assert {line for lines in bad.values() for line in lines} <= retained
    quality = ingested.quality("lines")
    assert quality["duplicate"] == 5
    assert quality["quarantined"] == sum(map(len, bad.values()))
    for count in ("duplicate", "quarantined"):
        assert sum(ingested.quality(cluster)[count] for cluster in JOBS) == ingested.summary[count]


def test_a_bad_value_is_taken_out_and_its_row_kept(ingested: Ingested) -> None:
    assert set(ingested.reasons("values")) == {"value_negative", "value_huge", "value_nan", "wrong_type"}
    assert ingested.summary["not_measured"] == 1  # Flink's own word for a busy time it did not measure
    rows = ingested.select(BRONZE_METRICS, "values").where(f"vertex_id = '{VERTEX_IDS[WORK]}'").collect()
    assert len(rows) == 12
    (row,) = [row for row in rows if row["observed_at"] == VALUES_AT.replace(tzinfo=None)]
    values = {entry["id"]: entry["sum"] for entry in row["metrics"]}
    assert values["numRecordsIn"] is None
    assert values["idleTimeMsPerSecond"] == 500.0
    assert ingested.select(OBSERVATIONS, "values").where("operator = 'Source: orders'").count() == 12
    assert ingested.lake.read(OBSERVATIONS).where("true_processing_rate_per_s = double('NaN')").isEmpty()


def test_a_damaged_file_gives_what_can_be_read_and_its_name(ingested: Ingested) -> None:
    assert ingested.after["torn"] == ingested.before["torn"]
    assert ingested.reasons("torn").get("corrupt_file") == 1


def test_a_file_too_large_to_be_read_is_named(ingested: Ingested) -> None:
    assert ingested.after["large"] == ingested.before["large"]
    assert ingested.reasons("large") == {"file_too_large": 1}


def test_conflicting_duplicates_keep_the_first(ingested: Ingested) -> None:
    assert ingested.reasons("conflict") == {"duplicate_conflict": 1}
    rows = ingested.select(BRONZE_METRICS, "conflict").where(f"vertex_id = '{VERTEX_IDS[SOURCE]}'").collect()
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
