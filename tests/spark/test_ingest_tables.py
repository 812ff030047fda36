"""The ingestion stage as a whole, on real Delta tables: two hours of a steady job and of one that is rescaled."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.flink.raw_format import Kind
from include.settings import Cluster, Settings
from include.stages import Stage, StageRequest
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
from tests.spark.raw_builders import SINK, SOURCE, WORK, PolledJob, job_body, record, utc, write

pytestmark = pytest.mark.spark
TABLES = (BRONZE_METRICS, BRONZE_JOB_EVENTS, QUARANTINE, QUALITY, JOB_GRAPHS, OBSERVATIONS, RESCALES)
START = utc("2026-11-20T10:00")
HOUR = timedelta(hours=1)


def run(spark: SparkSession, settings: Settings, start=START, hours: int = 1) -> dict[str, object]:
    return ingest.run(spark, settings, StageRequest(Stage.INGEST, start + hours * HOUR, start, start + hours * HOUR))


def contents(lake: Lake) -> dict[str, list[str]]:
    """Every table as sorted text: equal contents, whatever the order of rows and files."""
    return {table.name: sorted(map(str, lake.read(table).collect())) for table in TABLES}


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
    stale = record(at, Kind.JOB, job_body(before.parallelism, before.running_at), cluster="rescaled")
    write(raw, second, [*after.hour(second), stale], cluster="rescaled")


@dataclass(frozen=True)
class Ingested(IngestedLake):
    """After one run over both hours, with what the tables held then."""

    settings: Settings
    contents: dict[str, list[str]]


@pytest.fixture(scope="module")
def at_once(spark: SparkSession, shared_settings: Settings, shared_lake: Lake) -> Ingested:
    clusters = {cluster: Cluster(window_s=300) for cluster in ("steady", "rescaled")}
    settings = shared_settings.model_copy(update={"clusters": clusters})
    raw, lake = Path(settings.paths.raw), shared_lake
    write_steady_job(raw)
    write_rescaled_job(raw)
    summary = run(spark, settings, hours=2)
    return Ingested(lake, summary, settings, contents(lake))


def test_counts_rates_and_rerun(spark: SparkSession, at_once: Ingested) -> None:
    summary, steady = at_once.summary, at_once.quality("steady")
    assert steady["rows"] == 2 * (1 + 12 * 4)
    assert steady["files"] == 2
    assert steady["metric_values"] == 5 * 24 * (8 + 7 + 7)
    assert not any(steady[name] for name in ("quarantined", "late", "duplicate", "missing_windows", "not_measured"))
    rescaled = at_once.quality("rescaled")
    for name in steady.keys() & summary.keys():
        assert summary[name] == steady[name] + rescaled[name], name
    assert summary["jobs"] == 2
    observations = at_once.rows(OBSERVATIONS, "steady")
    assert len(observations) == 24 * 3
    assert summary["observations"] == len(observations) + at_once.select(OBSERVATIONS, "rescaled").count()
    rows = {(row["operator"], row["window_start"]): row for row in observations}
    at = utc("2026-11-20T10:30").replace(tzinfo=None)
    source, work, sink = (rows[operator, at] for operator in (SOURCE, WORK, SINK))
    # 100 records/s at half a busy share: the operator could do 200 (Eq. 1 of ContTune), whatever its parallelism.
    assert (work["parallelism"], work["busy_share"], work["samples"], work["disturbed"]) == (2, 0.5, 1, False)
    assert work["observed_processing_rate_per_s"] == pytest.approx(100.0)
    assert work["true_processing_rate_per_s"] == pytest.approx(200.0)
    assert work["true_output_rate_per_s"] == pytest.approx(100.0)
    assert work["selectivity"] == pytest.approx(0.5)
    assert source["is_source"]
    assert source["observed_processing_rate_per_s"] == pytest.approx(100.0)
    assert source["target_data_rate_per_s"] == pytest.approx(100.0)
    assert source["pending_records"] == 200.0
    assert source["latency_ms"] == pytest.approx(2000.0)
    assert source["selectivity"] == 1.0
    assert sink["observed_processing_rate_per_s"] == pytest.approx(50.0)
    assert sink["target_data_rate_per_s"] is None
    run(spark, at_once.settings, hours=2)
    assert contents(at_once.lake) == at_once.contents


@pytest.mark.long
def test_nothing_to_read(spark: SparkSession, settings: Settings, lake: Lake) -> None:
    summary = run(spark, settings)
    assert summary["rows"] == 0
    assert summary["jobs"] == 0
    assert lake.read(BRONZE_METRICS).isEmpty()


@pytest.mark.long  # what a second run changes is looked at above
def test_hour_by_hour_is_the_same_as_at_once(spark: SparkSession, at_once: Ingested, tmp_path: Path) -> None:
    """Also around a rescale that stopped the job in one hour and let it run again in the next."""
    (rescale,) = at_once.lake.read(RESCALES).collect()
    assert (rescale["kind"], rescale["downtime_s"]) == ("rescale", 3.0)
    paths = at_once.settings.paths.model_copy(update={"lake": str(tmp_path / "hourly")})
    hourly = at_once.settings.model_copy(update={"paths": paths})
    for offset in range(2):
        run(spark, hourly, START + offset * HOUR)
    one_by_one = contents(Lake(spark, hourly.paths.lake))
    for table in TABLES:
        if table is not QUALITY:  # a row per interval
            assert at_once.contents[table.name] or table is QUARANTINE, table.name
            assert one_by_one[table.name] == at_once.contents[table.name], table.name
