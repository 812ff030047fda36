"""Tables whose hours share the files of a day, beside those of an earlier release with a partition an hour."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from include.arrow_rows import arrow_rows
from include.lake_table import LakeTable
from include.maintenance.table_upkeep import keep_up
from include.settings import Retention
from include.table_creation import ensure_table
from include.tables import BRONZE_JOB_EVENTS, INGESTED, SOURCE_LOADS
from include.tables.schema import is_by_day
from include.utc import HOUR, Interval
from spark_jobs.ingest.hours import hours_where

TABLE = BRONZE_JOB_EVENTS
START = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAYS = START.date() - timedelta(days=2), START.date() + timedelta(days=5)
LAYOUTS = {"by day": ("date",), "by hour, as before": ("date", "hour"), "without statistics": ("date",)}


@pytest.fixture(params=LAYOUTS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LakeTable:
    """An empty table of each layout."""
    by_hour = replace(TABLE, partition_by=("date", "hour"))
    ensure_table(str(tmp_path), TABLE if request.param == "by day" else by_hour)
    if request.param == "without statistics":  # a table in hours has none; the hour is made a column like others
        log = tmp_path / TABLE.relative_path / "_delta_log" / f"{0:020}.json"
        log.write_text(log.read_text().replace('"partitionColumns": ["date", "hour"]', '"partitionColumns": ["date"]'))
    made = LakeTable(str(tmp_path), TABLE)
    partitions = DeltaTable(tmp_path / TABLE.relative_path).metadata().partition_columns
    assert tuple(partitions) == LAYOUTS[request.param]
    return made


def rows_of(*hours: int, body: str = "") -> pa.Table:
    """Return a row for each hour, counted from the start."""
    at = [START + hour * HOUR for hour in hours]
    return arrow_rows(TABLE, [{"kind": "job", "body": body, "date": one.date(), "hour": one.hour} for one in at])


def ingest(table: LakeTable, first: int, end: int, body: str = "") -> None:
    table.replace(rows_of(*range(first, end), body=body), where(first, end))


def where(first: int, end: int) -> str:
    return hours_where(Interval(START + first * HOUR, START + end * HOUR))


def hours_in(table: LakeTable, condition: str = "") -> list[tuple[int, str]]:
    rows = table.read(["date", "hour", "body"], *DAYS, condition).to_pylist()
    at = ((datetime.combine(row["date"], datetime.min.time(), UTC) + row["hour"] * HOUR, row["body"]) for row in rows)
    return sorted((int((one - START) / HOUR), body) for one, body in at)


def merge(table: LakeTable, path: Path) -> None:
    now = START + timedelta(days=8)
    keep_up(str(path / TABLE.relative_path), TABLE, Retention(log_days=None), now, applies=True)


def test_hours_are_replaced_exactly_whatever_files_they_share(table: LakeTable, tmp_path: Path) -> None:
    expected: dict[int, str] = {}
    choose = random.Random(7)
    for number in range(12):
        first = choose.randrange(-30, 30)
        end = first + choose.choice([1, 1, 2, 9, 24, 30])
        ingest(table, first, end, str(number))
        expected |= dict.fromkeys(range(first, end), str(number))
        if number % 4 == 3:
            merge(table, tmp_path)
        assert hours_in(table) == sorted(expected.items())
        files = table.read_files_by_hour()
        for hour in expected:
            at = START + hour * HOUR
            assert files[at.date(), at.hour]
            assert table.count_bytes(at, at + HOUR) > 0


def test_a_slice_of_hours_is_those_hours(table: LakeTable) -> None:
    ingest(table, -30, 70)
    for first in range(-30, 30, 7):
        for length in (1, 2, 11, 12, 13, 23, 24, 25, 36, 40):
            found = [hour for hour, _ in hours_in(table, where(first, first + length))]
            assert found == list(range(first, first + length)), where(first, first + length)


def test_a_later_hour_adds_a_file_and_a_day_has_one_after_its_upkeep(tmp_path: Path) -> None:
    table = LakeTable(str(tmp_path), TABLE)
    for hour in range(4):
        before = table.read_files().get(START.date(), frozenset())
        ingest(table, hour, hour + 1)
        after = table.read_files()[START.date()]
        assert len(after) == len(before) + 1
        assert before < after
    files = table.read_files_by_hour()
    assert len(set().union(*files.values())) == len(files) == 4
    merge(table, tmp_path)
    (merged,) = table.read_files()[START.date()]
    assert table.read_files_by_hour() == {(START.date(), hour): {merged} for hour in (12, 13, 14, 15)}
    ingest(table, 1, 2, "again")
    assert hours_in(table) == [(0, ""), (1, "again"), (2, ""), (3, "")]
    ingest(table, 12, 36)  # many hours at once
    assert len(table.read_files()[START.date() + timedelta(days=1)]) == 1


def test_a_file_without_statistics_is_one_of_every_hour(tmp_path: Path) -> None:
    table = LakeTable(str(tmp_path), TABLE)
    ingest(table, 0, 1)
    root = tmp_path / TABLE.relative_path
    for log in root.glob("_delta_log/*1.json"):
        lines = [line for line in log.read_text().splitlines() if '"add"' in line]
        assert all('\\"hour\\":12' in line for line in lines)
        log.write_text(log.read_text().replace('\\"hour\\":12', ""))
    table = LakeTable(str(tmp_path), TABLE)
    assert sorted(table.read_files_by_hour()) == [(START.date(), hour) for hour in range(24)]
    day = datetime.combine(START.date(), datetime.min.time(), UTC)
    size = sum(path.stat().st_size for path in root.rglob("*.parquet"))
    assert table.count_bytes(day, day + timedelta(days=1)) == size
    assert 24 * table.count_bytes(day, day + HOUR) >= size


def test_every_table_of_ingestion_is_in_days_and_knows_its_hours(tmp_path: Path) -> None:
    in_days = [one for one in INGESTED if "hour" in one.columns]
    assert len(in_days) == 9
    for one in in_days:
        assert is_by_day(one)
        ensure_table(str(tmp_path), one)
        configuration = DeltaTable(tmp_path / one.relative_path).metadata().configuration
        assert configuration["delta.dataSkippingStatsColumns"] == "hour"
    assert not is_by_day(SOURCE_LOADS)


def test_dates_are_removed_from_both_layouts(table: LakeTable, tmp_path: Path) -> None:
    ingest(table, -30, 30)
    path = str(tmp_path / TABLE.relative_path)
    keep_up(path, TABLE, Retention(bronze_days=30), START + timedelta(days=30), applies=True)
    assert {START + hour * HOUR for hour, _ in hours_in(table)} == {START + hour * HOUR for hour in range(-12, 30)}
    assert date(2026, 11, 19) not in table.read_files()
