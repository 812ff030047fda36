"""Hours that share the files of a day, written by Spark: exactly replaced, in both layouts, by several at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from delta.exceptions import ConcurrentAppendException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.pipeline.spark_jobs import count_jobs
from include.arrow_rows import arrow_rows
from include.lake_table import LakeTable
from include.maintenance.table_upkeep import keep_up
from include.settings import Retention
from include.table_creation import ensure_table
from include.tables import BRONZE_JOB_EVENTS
from include.utc import HOUR, Interval
from spark_jobs.ingest.hours import hours_where
from spark_jobs.lake import Lake
from spark_jobs.new_rows import commit_rows

pytestmark = pytest.mark.spark

TABLE = BRONZE_JOB_EVENTS
START = datetime(2026, 11, 20, tzinfo=UTC)
LATER = START + timedelta(days=9)


def rows_of(lake: Lake, hours: range, body: str) -> DataFrame:
    """Return five rows of each hour since the start."""
    at = F.timestamp_seconds(F.lit(int(START.timestamp())) + F.floor(F.col("id") / 5) * 3600)
    made = lake.spark.range(hours.start * 5, hours.stop * 5, numPartitions=1).select(
        F.lit("job").alias("kind"),
        F.lit(body).alias("body"),
        F.to_date(at).alias("date"),
        F.hour(at).alias("hour"),
    )
    missing = {name: F.lit(None).cast(kind) for name, kind in TABLE.columns.items() if name not in made.columns}
    return made.withColumns(missing)


def where(hours: range) -> str:
    return hours_where(Interval(START + hours.start * HOUR, START + hours.stop * HOUR))


def write(lake: Lake, hours: range, body: str) -> None:
    lake.replace(TABLE, rows_of(lake, hours, body), where(hours))


def write_few(root: str, hours: range, body: str) -> None:
    """Do the same through delta-rs."""
    at = [START + hour * HOUR for hour in hours for _ in range(5)]
    rows = arrow_rows(TABLE, [{"kind": "job", "body": body, "date": one.date(), "hour": one.hour} for one in at])
    LakeTable(root, TABLE).replace(rows, where(hours))


def merge(root: str) -> None:
    keep_up(f"{root}/{TABLE.relative_path}", TABLE, Retention(), LATER, applies=True)


def content(root: str) -> dict[int, list[str]]:
    """Return what the rows of each hour since the start say."""
    result: dict[int, list[str]] = {}
    for row in LakeTable(root, TABLE).read(["date", "hour", "body"], START.date(), LATER.date()).to_pylist():
        hour = (row["date"] - START.date()).days * 24 + row["hour"]
        result.setdefault(hour, []).append(row["body"])
    return dict(sorted(result.items()))


@pytest.mark.long
@pytest.mark.parametrize("partitions", [("date",), ("date", "hour")], ids=["by day", "by hour, as before"])
def test_spark_replaces_hours_exactly(lake: Lake, partitions: tuple[str, ...]) -> None:
    ensure_table(lake.root, replace(TABLE, partition_by=partitions))
    write(lake, range(20, 21), "a")
    begun = count_jobs(lake.spark)
    write(lake, range(21, 22), "b")
    assert count_jobs(lake.spark) - begun == 1  # in both: nothing of the day's other hours is read, nor the whole log
    write_few(lake.root, range(22, 23), "c")
    write(lake, range(21, 22), "b again")
    write(lake, range(23, 26), "d")
    merge(lake.root)
    write(lake, range(20, 21), "a again")
    write_few(lake.root, range(22, 23), "c again")
    write(lake, range(25, 28), "e")
    expected = {20: "a again", 21: "b again", 22: "c again", 23: "d", 24: "d", 25: "e", 26: "e", 27: "e"}
    assert content(lake.root) == {hour: [body] * 5 for hour, body in expected.items()}
    files = LakeTable(lake.root, TABLE).read_files_by_hour()
    assert {hour for _, hour in files} == {20, 21, 22, 23, 0, 1, 2, 3}  # the statistics of Spark and of delta-rs


def test_rows_of_the_driver_take_one_spark_job(lake: Lake) -> None:
    """Also where others of the date stay, which are written again, and where none of it do."""
    written = [(range(20, 21), "a"), (range(21, 22), "b"), (range(23, 25), "c"), (range(20, 21), "a again")]
    for hours, body in written:
        begun = count_jobs(lake.spark)
        lake.replace(TABLE, rows_of(lake, hours, body).select(*TABLE.columns).toArrow(), where(hours))
        assert body == "a" or count_jobs(lake.spark) - begun == 2  # one of them is of the rows themselves
    expected = {20: "a again", 21: "b", 23: "c", 24: "c"}
    assert content(lake.root) == {hour: [body] * 5 for hour, body in expected.items()}
    assert len(LakeTable(lake.root, TABLE).read_files()[START.date()]) == 1
    rows = rows_of(lake, range(22, 23), "d").select(*TABLE.columns).toArrow()
    lake.replace(TABLE, rows, f"date IN ('{START.date()}')")
    assert content(lake.root) == {22: ["d"] * 5, 24: ["c"] * 5}
    assert sorted(row["body"] for row in lake.read(TABLE).collect()) == ["c"] * 5 + ["d"] * 5
    lake.replace(TABLE, rows.slice(0, 0), where(range(22, 23)))
    assert content(lake.root) == {24: ["c"] * 5}


def test_an_hour_is_added_once_by_all_who_find_it_empty(lake: Lake) -> None:
    """Whoever adds rows to it after another has looked is noticed: before a transaction begins, and within it."""
    write(lake, range(20, 21), "a")
    version, path, root = lake.version(TABLE), lake.path(TABLE), lake.root
    assert version is not None
    frame = rows_of(lake, range(21, 22), "b").select(*TABLE.columns)

    def race(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = list(batches)
        LakeTable(root, TABLE).replace(pa.Table.from_batches(rows), where(range(21, 22)))
        yield from rows

    with pytest.raises(ConcurrentAppendException):
        commit_rows(frame.mapInArrow(race, frame.schema), path, version, where(range(21, 22)))  # type: ignore[arg-type]
    assert not commit_rows(frame, path, version, where(range(21, 22)))
    assert content(root) == {20: ["a"] * 5, 21: ["b"] * 5}
    together = threading.Barrier(3)

    def add(body: str, hours: range) -> None:
        together.wait()
        write(lake, hours, body)

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(add, "c", hours) for hours in (range(22, 24), range(23, 24), range(22, 23))]
        for one in asked:
            one.result()
    assert content(root) == {20: ["a"] * 5, 21: ["b"] * 5, 22: ["c"] * 5, 23: ["c"] * 5}


@pytest.mark.long
def test_hours_of_one_day_are_ingested_at_once(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    """By Spark, by delta-rs, and while an upkeep merges the day: every commit that was reported as done is there."""
    write(lake, range(0, 24), "before")
    together = threading.Barrier(5)

    def of_spark(first: int) -> None:
        together.wait()
        for hour in range(first, first + 3):
            write(lake, range(hour, hour + 1), "spark")

    def of_delta() -> None:
        together.wait()
        for hour in range(9, 15):
            write_few(lake.root, range(hour, hour + 1), "delta-rs")

    def of_upkeep() -> None:
        together.wait()
        for _ in range(4):
            merge(lake.root)

    with caplog.at_level(logging.WARNING, logger="spark_jobs.lake"), ThreadPoolExecutor(5) as pool:
        running = [pool.submit(of_spark, first) for first in (0, 3, 6)] + [pool.submit(of_delta)]
        running.append(pool.submit(of_upkeep))
        for one in running:
            one.result()
    assert "ConcurrentAppend" in caplog.text or "ConcurrentDelete" in caplog.text
    expected = dict.fromkeys(range(9), "spark") | dict.fromkeys(range(9, 15), "delta-rs")
    expected |= dict.fromkeys(range(15, 24), "before")
    assert content(lake.root) == {hour: [body] * 5 for hour, body in expected.items()}


@pytest.mark.long
def test_a_table_of_an_earlier_release_is_ingested_as_before(lake: Lake) -> None:
    ensure_table(lake.root, replace(TABLE, partition_by=("date", "hour")))
    write(lake, range(22, 26), "a")
    folder = Path(lake.path(TABLE))
    assert {str(path.parent.relative_to(folder)) for path in folder.rglob("*.parquet")} == {
        f"date=2026-11-{day}/hour={hour}" for day, hour in ((20, 22), (20, 23), (21, 0), (21, 1))
    }
