"""Delta tables without Spark: made once whoever comes first, read by date, whole after kills."""

from __future__ import annotations

import multiprocessing
import shutil
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from include import tables
from include.arrow_rows import arrow_schema, valid_text
from include.lake_table import LakeTable, is_between, is_in
from include.tables import BY_PERSONS, CONTROL_LOG, CONTROLLED, CONTROLLER_MEMORY

TODAY = date(2026, 11, 20)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def memory(job: str, **changes: Any) -> dict[str, Any]:
    return {"at": NOON, "cluster": "live", "job": job, "memory": "{}", "date": TODAY} | changes


def jobs_in(table: LakeTable, where: str = "", since: date = TODAY, until: date = TODAY) -> list[str]:
    return sorted(table.read(["job"], since, until, where).column("job").to_pylist())


def test_bytes_are_counted_of_the_hours_asked_for(tmp_path) -> None:
    events = LakeTable(str(tmp_path), tables.BRONZE_JOB_EVENTS)
    assert events.count_bytes(NOON, NOON.replace(hour=23)) == 0
    sizes: dict[int, int] = {}
    folder = tmp_path / tables.BRONZE_JOB_EVENTS.relative_path / f"date={TODAY}"
    for hour in (10, 11, 12):
        events.append([{"kind": "job", "body": "x" * hour, "date": TODAY, "hour": hour}])
        sizes[hour] = sum(path.stat().st_size for path in folder.glob("*.parquet")) - sum(sizes.values())
    assert events.count_bytes(NOON.replace(hour=11), NOON) == sizes[11] > 0
    assert events.count_bytes(NOON.replace(hour=10), NOON) == sizes[10] + sizes[11]
    assert events.count_bytes(NOON.replace(day=19), NOON.replace(day=21)) == sum(sizes.values())


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    return LakeTable(str(tmp_path), CONTROLLER_MEMORY)


def test_every_table_can_be_made_and_read_without_spark(tmp_path) -> None:
    for one in (*CONTROLLED, *BY_PERSONS):
        made = LakeTable(str(tmp_path), one)
        assert made.read_version() is None
        assert made.read(list(one.columns), TODAY, TODAY).num_rows == 0
        row = dict.fromkeys(one.columns) | {"date": TODAY, "verb": "wait", "reason": "held"}
        made.append([{name: row[name] for name in one.columns}])
        assert made.read(list(one.columns), TODAY, TODAY).schema == arrow_schema(one)
        assert DeltaTable(str(tmp_path / one.relative_path)).metadata().partition_columns == ["date"]
    for one in (tables.PLANS, tables.POLICY_MEMORY, tables.JOB_GRAPHS, tables.FORECASTS):
        assert arrow_schema(one).names == list(one.columns)


def test_rows_are_read_by_date_and_condition(table) -> None:
    table.append([memory("a"), memory("it's"), memory("late", at=NOON.replace(hour=13))])
    table.append([memory("yesterday", date=date(2026, 11, 19))])
    assert jobs_in(table) == ["a", "it's", "late"]
    assert jobs_in(table, since=date(2026, 11, 1)) == ["a", "it's", "late", "yesterday"]
    assert jobs_in(table, is_in("job", ["it's", "none"])) == ["it's"]
    assert jobs_in(table, is_in("job", [])) == []
    assert jobs_in(table, is_in("job", ["x' OR 'a' = 'a"])) == []
    assert jobs_in(table, is_between("at", NOON, NOON)) == ["a", "it's"]
    assert table.read(["at"], TODAY, TODAY, is_in("job", ["late"])).column("at").to_pylist() == [NOON.replace(hour=13)]


def test_nothing_to_append_makes_no_version(table) -> None:
    table.append([])
    assert table.read_version() is None
    table.append([memory("a")])
    before = table.read_version()
    table.append([])
    assert table.read_version() == before


def test_a_check_of_the_table_is_kept(tmp_path) -> None:
    log = LakeTable(str(tmp_path), CONTROL_LOG)
    log.append([{"verb": "wait", "reason": "held", "date": TODAY}])
    with pytest.raises(Exception, match="validation check"):
        log.append([{"verb": "dance", "reason": "held", "date": TODAY}])
    assert log.read(["verb"], TODAY, TODAY).column("verb").to_pylist() == ["wait"]


def test_a_table_whose_checks_were_not_added_gets_them(tmp_path) -> None:
    """A process that was killed between making a table and adding its checks leaves one without."""
    bare = tables.Table(CONTROL_LOG.name, CONTROL_LOG.columns, CONTROL_LOG.keys, CONTROL_LOG.partition_by)
    LakeTable(str(tmp_path), bare).append([{"verb": "wait", "reason": "held", "date": TODAY}])
    LakeTable(str(tmp_path), CONTROL_LOG).append([{"verb": "wait", "reason": "held", "date": TODAY}])
    known = DeltaTable(str(tmp_path / CONTROL_LOG.relative_path)).metadata().configuration
    assert {name for name in known if "constraints" in name} == {
        "delta.constraints.verb_known",
        "delta.constraints.a_reason_is_named",
    }


@pytest.mark.parametrize("left", [[], [".00000000000000000000.json.tmp"], ["_staged_commits/"]])
def test_a_creation_that_was_killed_is_begun_again(tmp_path, table, left: list[str]) -> None:
    log = tmp_path / CONTROLLER_MEMORY.relative_path / "_delta_log"
    log.mkdir(parents=True)
    for name in left:
        (log / name).mkdir() if name.endswith("/") else (log / name).write_text('{"commitInfo":')
    assert jobs_in(table) == []
    table.append([memory("a")])
    assert jobs_in(table) == ["a"]


def test_data_of_a_commit_that_was_killed_is_not_seen(tmp_path, table) -> None:
    table.append([memory("a")])
    root = tmp_path / CONTROLLER_MEMORY.relative_path
    (commit,) = sorted((root / "_delta_log").glob("*.json"))[-1:]
    before = commit.read_text()
    table.append([memory("b")])
    sorted((root / "_delta_log").glob("*.json"))[-1].unlink()
    again = LakeTable(str(tmp_path), CONTROLLER_MEMORY)
    assert jobs_in(again) == ["a"]
    again.append([memory("c")])
    assert jobs_in(again) == ["a", "c"]
    assert commit.read_text() == before


def test_a_table_that_is_made_again_is_read_anew(tmp_path, table) -> None:
    table.append([memory("a")])
    assert jobs_in(table) == ["a"]
    shutil.rmtree(tmp_path / CONTROLLER_MEMORY.relative_path)
    LakeTable(str(tmp_path), CONTROLLER_MEMORY).append([memory("b")])
    assert jobs_in(LakeTable(str(tmp_path), CONTROLLER_MEMORY)) == ["b"]


def test_what_another_writes_and_compacts_is_seen(tmp_path, table) -> None:
    other = LakeTable(str(tmp_path), CONTROLLER_MEMORY)
    for name in "abc":
        other.append([memory(name)])
        assert name in jobs_in(table)
    retained = DeltaTable(str(tmp_path / CONTROLLER_MEMORY.relative_path))
    retained.optimize.compact()
    retained.create_checkpoint()
    retained.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert jobs_in(table) == ["a", "b", "c"]
    table.append([memory("d")])
    assert jobs_in(other) == ["a", "b", "c", "d"]


def test_a_text_that_is_no_unicode_is_marked(table) -> None:
    table.append([memory("half \ud83d")])
    assert jobs_in(table) == ["half ?"]
    assert valid_text("ü😀") == "ü😀"


def _append(lake: str, name: str, count: int, barrier: Any) -> None:
    mine = LakeTable(lake, CONTROL_LOG)
    barrier.wait()
    for number in range(count):
        row = {"job": f"{name}-{number}", "verb": "wait", "reason": "held", "date": TODAY}
        mine.append([row])


def test_processes_that_make_a_table_and_append_at_once_lose_nothing(tmp_path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    writers = [context.Process(target=_append, args=(str(tmp_path), name, 8, barrier)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    result = LakeTable(str(tmp_path), CONTROL_LOG)
    assert jobs_in(result) == sorted(f"{name}-{number}" for name in "abc" for number in range(8))
