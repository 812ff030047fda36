"""The ingestion stage as a whole, on real Delta tables: two hours of a steady job and of one that is rescaled."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.settings import Settings
from include.tables import BRONZE_METRICS, OBSERVATIONS, QUALITY, QUARANTINE, RESCALES
from spark_jobs.lake import Lake
from tests.spark.ingested_twice import (
    HOURS,
    JOBS,
    TABLES,
    UNCHANGED,
    IngestedTwice,
    Rows,
    contents,
    read_rows,
    run,
)
from tests.spark.raw_builders import SINK, SOURCE, WORK, utc

pytestmark = pytest.mark.spark
MOST_SPARK_JOBS = 40
"""Of an ingestion into a new lake in which a job was rescaled; three of them are Delta's for each table."""


def ingest_hourly(spark: SparkSession, twice: IngestedTwice, lake: Path) -> Rows:
    """Ingest the same files hour by hour into another lake; returns its rows."""
    paths = twice.settings.paths.model_copy(update={"lake": str(lake)})
    settings = twice.settings.model_copy(update={"paths": paths})
    for hour in range(HOURS):
        run(spark, settings, hour, hours=1)
    return read_rows(Lake(spark, settings.paths.lake))


@pytest.fixture(scope="module")
def hourly(spark: SparkSession, twice: IngestedTwice, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of the same files, ingested hour by hour."""
    return ingest_hourly(spark, twice, tmp_path_factory.mktemp("hourly"))


def test_counts_and_rates(twice: IngestedTwice) -> None:
    qualities = {cluster: rows[QUALITY.name] for cluster, rows in twice.before.items()}
    assert {len(rows) for rows in qualities.values()} == {1}
    summary, steady = twice.first, qualities["steady"][0].asDict()
    assert steady["rows"] == 2 * (1 + 12 * 4)
    assert steady["files"] == 2
    assert steady["metric_values"] == 5 * 24 * (8 + 7 + 7)
    assert not any(steady[name] for name in ("quarantined", "late", "duplicate", "missing_windows", "not_measured"))
    counted = steady.keys() & summary.keys()
    assert "rows" in counted
    for name in counted:
        assert summary[name] == sum(row[name] for (row,) in qualities.values()), name
    assert summary["jobs"] == len(qualities) == len(UNCHANGED) + len(JOBS)
    observations = twice.before["steady"][OBSERVATIONS.name]
    assert len(observations) == 24 * 3
    assert summary["observations"] == sum(len(rows[OBSERVATIONS.name]) for rows in twice.before.values())
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


@pytest.mark.parametrize("cluster", UNCHANGED)
def test_a_second_run_changes_nothing_where_nothing_is_new(twice: IngestedTwice, cluster: str) -> None:
    before = contents(twice.before[cluster])
    assert before[BRONZE_METRICS.name]
    assert contents(twice.after[cluster]) == before


def test_an_hour_takes_few_spark_jobs(twice: IngestedTwice) -> None:
    assert 0 < twice.first_spark_jobs <= MOST_SPARK_JOBS


@pytest.mark.long
def test_nothing_to_read(spark: SparkSession, settings: Settings, lake: Lake) -> None:
    summary = run(spark, settings, hours=1)
    assert summary["rows"] == 0
    assert summary["jobs"] == 0
    assert lake.read(BRONZE_METRICS).isEmpty()


@pytest.mark.long  # what a second run changes is looked at above
@pytest.mark.parametrize("cluster", UNCHANGED)
def test_hour_by_hour_is_the_same_as_at_once(twice: IngestedTwice, hourly: Rows, cluster: str) -> None:
    """Also around a rescale that stopped the job in one hour and let it run again in the next."""
    rescales = twice.before[cluster][RESCALES.name]
    assert [(row["kind"], row["downtime_s"]) for row in rescales] == [("rescale", 3.0)] * (cluster == "rescaled")
    at_once, one_by_one = contents(twice.before[cluster]), contents(hourly[cluster])
    for table in TABLES:
        if table is not QUALITY:  # a row per interval
            assert at_once[table.name] or table in (QUARANTINE, RESCALES), table.name
            assert one_by_one[table.name] == at_once[table.name], table.name
