"""Two ingestions of the same hours: steady and rescaled jobs, and good files that get bad input beside them.

Each case is a cluster of its own. What the second run is given new lies in the clusters of bad input alone, so all
others show what it changes where nothing has changed.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from benchmarks.pipeline.spark_jobs import count_jobs
from include import raw_files
from include.flink.raw_format import Endpoint, hour_directory
from include.settings import Cluster, Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.tables import (
    BRONZE_JOB_EVENTS,
    BRONZE_METRICS,
    JOB_GRAPHS,
    OBSERVATIONS,
    QUALITY,
    QUARANTINE,
    RESCALES,
)
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from tests.spark.ingested_lake import IngestedLake
from tests.spark.raw_builders import HOUR, SOURCE, START, VERTEX_IDS, WORK, PolledJob, job_body, metric, record, write

TABLES = (BRONZE_METRICS, BRONZE_JOB_EVENTS, QUARANTINE, QUALITY, JOB_GRAPHS, OBSERVATIONS, RESCALES)
GOOD_TABLES = (BRONZE_METRICS, JOB_GRAPHS, OBSERVATIONS, RESCALES)
HOURS = 2
UNCHANGED = ("steady", "rescaled")
VALUES_AT = START + timedelta(minutes=14, seconds=50)  # a poll that is due then
Rows = dict[str, dict[str, list[Row]]]
"""Per cluster and table, its rows."""


def polled(cluster: str) -> PolledJob:
    return PolledJob(running_at=START - HOUR, cluster=cluster)


JOBS = {cluster: polled(cluster) for cluster in ("lines", "values", "torn", "large", "conflict")}


def run(spark: SparkSession, settings: Settings, first: int = 0, hours: int = HOURS) -> dict[str, object]:
    """Ingest some hours, from the ``first`` on."""
    start, end = (START + count * HOUR for count in (first, first + hours))
    return ingest.run(spark, settings, StageRequest(Stage.INGEST, end, start, end))


def read_rows(lake: Lake) -> Rows:
    result: Rows = defaultdict(lambda: {table.name: [] for table in TABLES})
    for table in TABLES:
        for row in lake.read(table).collect():
            result[row["cluster"]][table.name].append(row)
    return result


def contents(rows: dict[str, list[Row]]) -> dict[str, list[str]]:
    """A cluster's rows of every table as sorted text: equal contents, whatever the order of rows and files."""
    return {name: sorted(map(str, of_it)) for name, of_it in rows.items()}


def good_rows(rows: dict[str, list[Row]]) -> dict[str, list[str]]:
    """Its good rows, without the name of the file that a row came from."""
    result = {}
    for table in GOOD_TABLES:
        columns = [column for column in table.columns if column != "source_file"]
        result[table.name] = sorted(str([row[column] for column in columns]) for row in rows[table.name])
    return result


def write_steady_job(raw: Path) -> None:
    job = PolledJob(running_at=START - HOUR, cluster="steady")
    for offset in range(2):
        write(raw, START + offset * HOUR, job.hour(START + offset * HOUR), cluster="steady")


def write_rescaled_job(raw: Path) -> None:
    """A rescale stops the job in the first hour and lets it run again in the second."""
    second = START + HOUR
    before = PolledJob(running_at=START - HOUR, cluster="rescaled")
    after = PolledJob(
        running_at=second + timedelta(seconds=70), cluster="rescaled", parallelism={**before.parallelism, WORK: 3}
    )
    write(raw, START, before.hour(START)[:-4], cluster="rescaled")  # its last poll found the job gone
    # One more reply was already cached when the job ran again: what it shows is as old as Flink keeps replies.
    at = after.running_at + timedelta(seconds=1)
    stale = record(at, Endpoint.JOB, job_body(before.parallelism, before.running_at), cluster="rescaled")
    write(raw, second, [*after.hour(second), stale], cluster="rescaled")


def bad_lines(job: PolledJob) -> dict[str, list[str]]:
    """Lines that must not be taken, by the reason they must get."""
    at = START + timedelta(minutes=31)
    good = job.vertex_line(WORK, at)
    envelope = json.loads(good)

    def reply(kind: Endpoint, body: object, vertex_id: str, status: int = 200) -> str:
        return record(at, kind, body, vertex_id=vertex_id, status=status, cluster=job.cluster)

    return {
        "malformed_json": [good[: len(good) // 2], "not json at all"],
        "missing_field": [json.dumps({key: value for key, value in envelope.items() if key != "vertex_id"})],
        "wrong_type": [json.dumps({**envelope, "observed_at_ms": "soon"})],
        "unknown_kind": [json.dumps({**envelope, "kind": "gossip"})],
        "bad_id": [
            json.dumps({**envelope, "job_id": "not-hex"}),
            reply(Endpoint.JOB_METRICS, job.metrics(WORK, at), VERTEX_IDS[WORK]),
        ],
        "http_error": [reply(Endpoint.VERTEX_METRICS, "{}", VERTEX_IDS[WORK], status=404)],
        "unknown_vertex": [reply(Endpoint.VERTEX_METRICS, job.metrics(WORK, at), "f" * 32)],
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
class IngestedTwice(IngestedLake):
    """After the second run.

    Attributes:
        settings: of both runs.
        first: what the first run counted over all clusters.
        first_spark_jobs: how many jobs of Spark it was.
        before, after: the rows after the first and after the second run.
    """

    settings: Settings
    first: dict[str, object]
    first_spark_jobs: int
    before: Rows
    after: Rows


def ingest_twice(spark: SparkSession, settings: Settings) -> IngestedTwice:
    """Write and ingest everything below the paths of ``settings``, the bad input before the second run."""
    clusters = {cluster: Cluster(window_s=300) for cluster in (*UNCHANGED, *JOBS)}
    settings = settings.model_copy(update={"clusters": clusters})
    raw, lake = Path(settings.paths.raw), Lake(spark, settings.paths.lake)
    write_steady_job(raw)
    write_rescaled_job(raw)
    for cluster, job in JOBS.items():
        write(raw, START, job.hour(START), cluster=cluster)
    begun = count_jobs(spark)
    first = run(spark, settings)
    first_spark_jobs = count_jobs(spark) - begun
    before = read_rows(lake)
    write_bad_lines(raw)
    write_bad_values(raw)
    write_torn_file(raw)
    write_conflict(raw)
    size = write_large_file(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_files, "LARGEST_BYTES", size - 1)
        summary = run(spark, settings)
    return IngestedTwice(lake, summary, settings, first, first_spark_jobs, before, read_rows(lake))
