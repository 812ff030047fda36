"""A backfill of each hour alone, of a lake that has the later hours too: no table changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.settings import Cluster
from spark_jobs.lake import Lake
from tests.spark.ingested_twice import contents, read_rows, run
from tests.spark.lake_settings import prepared_settings
from tests.spark.raw_builders import HOUR, START, WORK, PolledJob, write

HOURS = 3
SECOND = START + HOUR
# Cluster -> when the job stopped, when it ran again, and until when it had a backlog, in seconds of the first hour.
STOPS = {
    "caught_up_later": (2400, 2600, 4900),
    "ran_later": (3400, 3670, 5300),
    "seen_later": (3500, 3597, 4100),
    "within": (1300, 1400, 1700),
}


def write_job(raw: Path, cluster: str) -> None:
    stopped, ran, caught_up = (START + timedelta(seconds=one) for one in STOPS[cluster])
    before = PolledJob(running_at=START - HOUR, cluster=cluster)
    after = replace(before, running_at=ran, parallelism={**before.parallelism, WORK: 3})
    for number in range(HOURS):
        hour, lines = START + number * HOUR, list[str]()
        for step in range(60):
            at = hour + timedelta(seconds=60 * step + 50)
            if stopped <= at < ran:
                continue
            job = before if at < stopped else replace(after, lag=90_000.0 if at < caught_up else 200.0)
            lines += [*(job.hour(hour)[:1] if not lines else []), *job.poll(at)]
        write(raw, hour, lines, cluster=cluster)


@pytest.mark.long
def test_a_backfill_of_an_hour_changes_nothing_that_later_hours_had_found(
    spark: SparkSession, tmp_path: Path, empty_model_store: Path
) -> None:
    settings = prepared_settings(tmp_path, empty_model_store)
    settings = settings.model_copy(update={"clusters": {name: Cluster(window_s=300) for name in STOPS}})
    for cluster in STOPS:
        write_job(Path(settings.paths.raw), cluster)
    lake = Lake(spark, settings.paths.lake)
    for number in range(HOURS):
        run(spark, settings, number, 1)
    before = {name: contents(rows) for name, rows in read_rows(lake).items()}
    rescales = {name: rows["silver.rescales"] for name, rows in read_rows(lake).items()}
    assert {name: len(rows) for name, rows in rescales.items()} == dict.fromkeys(STOPS, 1)
    assert all(row["caught_up_at"] is not None for rows in rescales.values() for row in rows)
    for number in range(HOURS):
        run(spark, settings, number, 1)
        after = {name: contents(rows) for name, rows in read_rows(lake).items()}
        for cluster, tables in before.items():
            for table, rows in tables.items():
                assert after[cluster][table] == rows, (number, cluster, table)
