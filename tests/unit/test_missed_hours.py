"""Hours whose raw files were not ingested are found, from the files and the table of files alone."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from include.flink.raw_format import hour_directory
from include.missed_hours import find_missed_hours, join_hours, local_path
from include.settings import SETTINGS_FILE_VARIABLE, Ingest, Paths, Settings
from include.utc import HOUR, Interval

UNTIL = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "none.toml"))
    return Settings(paths=Paths(lake=str(tmp_path / "lake"), raw=str(tmp_path / "raw"), out=str(tmp_path)))


def put(settings: Settings, hours_before: int, name: str = "a.jsonl.gz", cluster: str = "c") -> Path:
    path = hour_directory(Path(settings.paths.raw), cluster, UNTIL - hours_before * HOUR) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    os.utime(path, (1_700_000_000.123_9, 1_700_000_000.123_9))
    return path


def ingest(settings: Settings, *paths: Path, reason: str | None = None) -> None:
    """Write what ingestion writes of files to ops.files."""
    names = [str(path.relative_to(settings.paths.raw)) for path in paths]
    times = [datetime.fromtimestamp(int(path.stat().st_mtime * 1000) / 1000, UTC) for path in paths]
    dates = [datetime.fromisoformat(path.parts[-3].removeprefix("date=")).date() for path in paths]
    columns = {"source_file": names, "modified_at": pa.array(times, pa.timestamp("us", "UTC")), "date": dates}
    table = pa.table(columns | {"reason": pa.array([reason] * len(names), pa.string())})
    write_deltalake(f"{settings.paths.lake}/ops/files", table, mode="append", partition_by=["date"])


def interval(first: int, end: int) -> Interval:
    return Interval(UNTIL - first * HOUR, UNTIL - end * HOUR)


@pytest.mark.covers("apply_review 18")
def test_hours_with_files_that_no_table_knows_are_missed(settings: Settings) -> None:
    known = [put(settings, hours) for hours in (1, 2, 20)]
    ingest(settings, *known)
    assert find_missed_hours(settings, UNTIL) == []
    for hours in (4, 5, 30):
        put(settings, hours)
    put(settings, 0)  # the run's own hour
    put(settings, 72)  # further back than is looked
    put(settings, 8, "notes.txt")
    assert find_missed_hours(settings, UNTIL) == [interval(30, 29), interval(5, 3)]
    put(settings, 2, "late.jsonl.gz", cluster="d")
    assert find_missed_hours(settings, UNTIL) == [interval(30, 29), interval(5, 3), interval(2, 1)]


@pytest.mark.covers("apply_review 18")
def test_a_file_that_was_written_again_is_missed(settings: Settings) -> None:
    path = put(settings, 3)
    ingest(settings, path)
    assert find_missed_hours(settings, UNTIL) == []
    os.utime(path, (1_700_000_001, 1_700_000_001))
    assert find_missed_hours(settings, UNTIL) == [interval(3, 2)]


def test_a_file_that_could_not_be_read_is_missed_until_it_can(settings: Settings) -> None:
    """Its permissions were put right since, or a worker has the folder now: it was not written again."""
    read, unread = put(settings, 3), put(settings, 6)
    ingest(settings, read)
    ingest(settings, unread, reason="unreadable_file")
    assert find_missed_hours(settings, UNTIL) == [interval(6, 5)]


def test_before_the_first_ingestion_all_hours_within_the_bound_are_missed(settings: Settings) -> None:
    put(settings, 47)
    put(settings, 49)
    assert find_missed_hours(settings, UNTIL) == [interval(47, 46)]
    without = settings.model_copy(update={"ingest": Ingest(missed_hours_days=0)})
    assert find_missed_hours(without, UNTIL) == []


def test_files_elsewhere_are_not_looked_for(settings: Settings) -> None:
    put(settings, 3)
    elsewhere = settings.model_copy(update={"paths": settings.paths.model_copy(update={"raw": "s3a://bucket/raw"})})
    assert find_missed_hours(elsewhere, UNTIL) == []
    assert [local_path(root) for root in ("raw", "/raw", "file:///ra%20w", "hdfs://x/raw")] == [
        "raw",
        "/raw",
        "/ra w",
        None,
    ]


def test_hours_that_follow_each_other_are_one_interval() -> None:
    hours = [UNTIL, UNTIL + 2 * HOUR, UNTIL + HOUR, UNTIL + 5 * HOUR]
    assert join_hours(hours) == [
        Interval(UNTIL, UNTIL + 3 * HOUR),
        Interval(UNTIL + 5 * HOUR, UNTIL + 6 * HOUR),
    ]
