"""Windows of recent hours in memory: the same from files of an hour, of several and of an earlier release's lake."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from held_objects import count_held

from fleet import recent_tables
from fleet.recent_tables import RecentTables
from include.arrow_rows import arrow_rows
from include.lake_table import LakeTable
from include.table_creation import ensure_table
from include.tables import OBSERVATIONS

START = datetime(2026, 11, 19, 22, tzinfo=UTC)
HOURS = 30
MINUTES = (0, 29, 30, 59)


def window(hour: int, minute: int, load_per_s: float) -> dict[str, Any]:
    at = START + timedelta(hours=hour, minutes=minute)
    names = {"cluster": "c", "job": "orders", "operator": "source", "is_source": True, "parallelism": 2}
    return (
        names
        | {"window_start": at, "window_s": 60, "target_data_rate_per_s": load_per_s}
        | {
            "date": at.date(),
            "hour": at.hour,
        }
    )


def read(tables: RecentTables) -> list[tuple[float, float | None]]:
    end = START + timedelta(hours=HOURS)
    return [(one.at_s, one.load_per_s) for one in tables.read_loads("c", "orders", START, end)]


def test_every_layout_has_the_same_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_table(str(tmp_path / "before"), replace(OBSERVATIONS, partition_by=("date", "hour")))
    every: dict[str, list[tuple[float, float | None]]] = {}
    for name in ("before", "hours", "merged", "parts"):
        table = LakeTable(str(tmp_path / name), OBSERVATIONS)
        for hour in range(HOURS):
            table.append([window(hour, minute, 60.0 * hour + minute) for minute in MINUTES])
        if name == "merged":
            DeltaTable(tmp_path / name / OBSERVATIONS.relative_path).optimize.compact()
        if name == "parts":
            monkeypatch.setattr(recent_tables, "_DAY_BYTES", 1)
        every[name] = read(RecentTables(str(tmp_path / name)))
    assert every["before"] == every["hours"] == every["merged"] == every["parts"]
    old = 2 * (HOURS - recent_tables.HOURS + 2)
    assert len(every["hours"]) == old + len(MINUTES) * (recent_tables.HOURS - 2)
    assert every["hours"][:2] == [(START.timestamp(), 14.5), (START.timestamp() + 1800, 44.5)]


def test_the_last_windows_alone_hold_no_more_than_a_day_or_two(tmp_path: Path) -> None:
    """A page of the fleet that nobody leaves for a job's asks for nothing else."""
    most = 2 * recent_tables.HOURS + 4
    LakeTable(str(tmp_path), OBSERVATIONS).append([window(hour, 0, 1.0) for hour in range(most + 20)])
    tables, held = RecentTables(str(tmp_path)), list[int]()
    for hour in range(1, most + 20):
        assert tables.read_last_loads(START + timedelta(hours=hour, minutes=1))["c", "orders"].load_per_s == 1.0
        held.append(count_held(tables._hours))
    assert held[-1] <= held[most]


def test_a_day_is_read_once_and_only_what_changed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, reads, plain = str(tmp_path), list[str](), LakeTable.read

    def note(table: LakeTable, columns: Any, since: Any, until: Any, where: str = "") -> Any:
        reads.append(where)
        return plain(table, columns, since, until, where)

    monkeypatch.setattr(LakeTable, "read", note)
    table, tables = LakeTable(lake, OBSERVATIONS), RecentTables(lake)
    table.append([window(hour, 0, 1.0) for hour in range(HOURS)])
    first = read(tables)
    assert len(first) == HOURS
    days = 3  # one of them in hours that are old, and in others
    assert len(reads) == days + 1
    reads.clear()
    assert read(tables) == first
    assert reads == []
    where = f"date = DATE'{START.date() + timedelta(days=2)}' AND hour = 1"
    table.replace(arrow_rows(OBSERVATIONS, [window(27, 0, 5.0)]), where)
    changed = read(tables)
    assert reads == ["hour IN (0, 1, 2, 3)"]  # those that shared its file
    assert [after for before, after in zip(first, changed, strict=True) if before != after] == [
        ((START + timedelta(hours=27)).timestamp(), 5.0)
    ]
