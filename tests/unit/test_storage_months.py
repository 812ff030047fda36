"""What a month stores, extrapolated from a small lake whose bytes and units are known."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.storage.__main__ import main
from benchmarks.storage.measured_lake import BY_UNIT, HOUR, POLL, SMALL, measure_folder
from benchmarks.storage.month import HOURS, bytes_in_month, default_pace, files_in_month, requests_in_month
from include.lake_table import LakeTable
from include.tables import BRONZE_JOB_EVENTS, BY_PERSONS, CONTROLLED, JOBS, OBSERVATIONS, TABLES

START = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Two jobs in two hours, polled every half an hour, with three operators each."""
    lake = str(tmp_path / "lake")
    hours = [START + number * timedelta(hours=1) for number in range(2)]
    of_hour = [{"cluster": "live", "date": at.date(), "hour": at.hour} for at in hours]
    for job in ("a", "b"):
        LakeTable(lake, JOBS).append([{**one, "job": job} for one in of_hour])
        LakeTable(lake, OBSERVATIONS).append(
            [{**one, "job": job, "operator": name} for one in of_hour for name in "xyz"]
        )
        for kind in ("job", "plan"):
            polls = [
                (one, at + half * timedelta(minutes=30))
                for one, at in zip(of_hour, hours, strict=True)
                for half in (0, 1)
            ]
            rows = [{**one, "kind": kind, "job_id": job * 32, "observed_at": at, "body": "{}"} for one, at in polls]
            LakeTable(lake, BRONZE_JOB_EVENTS).append(rows)
    raw = tmp_path / "raw" / "cluster=live" / "date=2026-11-20" / "hour=12" / "x.jsonl.gz"
    raw.parent.mkdir(parents=True)
    raw.write_bytes(gzip.compress(b"x" * 1000))
    return tmp_path


def test_units_are_those_of_single_jobs(out: Path) -> None:
    measured = {one.name: one for one in measure_folder(out)}
    assert (measured["bronze.job_events"].units, measured["bronze.job_events"].rows) == (8, 16)
    windows = measured["silver.observations"]
    assert (windows.units, windows.rows, windows.files, windows.partitions) == (4, 12, 2, 1)
    assert windows.bytes_per_unit == pytest.approx(3 * windows.bytes_per_row)
    pace = default_pace(24.0)
    month = bytes_in_month(windows, 100, pace)
    assert month == pytest.approx(100 * HOURS * windows.size_bytes / 4)
    raw = measured["raw files"]
    assert bytes_in_month(raw, 1, pace) == pytest.approx(60 * HOURS * raw.size_bytes / 8)  # a poll a minute
    assert files_in_month(windows) == HOURS / 24
    assert files_in_month(raw) == HOURS
    assert requests_in_month(10, 20, pace) == HOURS * (48 * 10 + 12 * 20)


def test_every_table_is_extrapolated_or_named_as_small() -> None:
    names = [table.name for table in (*SMALL, *(table for tables in BY_UNIT.values() for table in tables))]
    assert sorted(names) == sorted(table.name for table in (*TABLES, *CONTROLLED, *BY_PERSONS))
    assert {table.name.split(".")[0] for unit in (POLL, HOUR) for table in BY_UNIT[unit]} == {"bronze", "silver"}


def test_the_command_prints_fleets_of_three_sizes(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(out), "--requests", "10", "20"]) == 0
    printed = capsys.readouterr().out
    assert "4 hours of single jobs, 8 polls of single jobs" in printed
    assert "100 jobs, GB | 1,000 jobs, GB | 10,000 jobs, GB" in printed
    assert "The controller's requests: 525,960 a month and cluster" in printed
