"""Tables that are lost are said to be, wherever a person looks, and never told as nothing that happened."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from fleet.fleet_reader import FleetReader
from fleet.health import Fault
from fleet.lost_tables import find_lost_tables
from include import tables
from include.arrow_rows import arrow_rows
from include.settings import check_settings
from include.stage_states import StageState
from include.tables import Table

INGESTED = (
    *(tables.BRONZE_METRICS, tables.BRONZE_JOB_EVENTS, tables.OBSERVATIONS, tables.JOBS, tables.JOB_GRAPHS),
    *(tables.OPERATOR_KEYS, tables.RESCALES, tables.FILES, tables.QUALITY),
)
PLANNED = (*INGESTED, tables.FORECASTS, tables.PLANS, tables.MODEL_VERSIONS, tables.MODEL_JOBS)


def make_lake(root: Path, *made: Table) -> str:
    """Create tables without a row."""
    for table in made:
        DeltaTable.create(str(root / table.relative_path), schema=arrow_rows(table, []).schema)
    return str(root)


def names_of(lake: str, *states: StageState) -> list[str]:
    return [one.name for one in find_lost_tables(lake, states)]


@pytest.mark.parametrize("made", [(), INGESTED, PLANNED])
def test_a_lake_that_is_new_or_whole_has_lost_none(tmp_path: Path, made: tuple[Table, ...]) -> None:
    assert names_of(make_lake(tmp_path, *made)) == []


@pytest.mark.parametrize("table", [tables.PLANS, tables.OBSERVATIONS, tables.QUARANTINE])
def test_files_without_a_log_are_a_lost_table(tmp_path: Path, table: Table) -> None:
    lake = make_lake(tmp_path, *PLANNED, *([table] if table.name not in [one.name for one in PLANNED] else []))
    (tmp_path / table.relative_path / "part-0.parquet").write_bytes(b"rows")
    shutil.rmtree(tmp_path / table.relative_path / "_delta_log")
    assert names_of(lake) == [table.name]
    (tmp_path / table.relative_path / "_delta_log").mkdir()  # emptied, not removed
    (lost,) = find_lost_tables(lake, ())
    assert str(lost) == f"the table {table.name} is lost: its files are there, its log (_delta_log) is not"


@pytest.mark.parametrize("table", [tables.OBSERVATIONS, tables.FORECASTS, tables.MODEL_JOBS, tables.BRONZE_METRICS])
def test_a_table_that_is_gone_is_known_by_those_that_were_written_with_it(tmp_path: Path, table: Table) -> None:
    lake = make_lake(tmp_path, *PLANNED)
    shutil.rmtree(tmp_path / table.relative_path)
    assert names_of(lake) == [table.name]


def test_a_plan_that_is_gone_is_known_by_the_task_that_wrote_it(tmp_path: Path) -> None:
    lake = make_lake(tmp_path, *INGESTED, tables.FORECASTS)
    task = StageState("tidewise_plan.forecast_plan_report", 0.0)
    assert names_of(lake, task) == ["gold.plans"]
    assert names_of(lake, StageState(task.task, 0.0, error="it failed")) == []
    assert names_of(lake, StageState(task.task, 0.0, empty=["plan", "forecast"])) == []


def test_a_control_log_that_is_gone_is_known_by_the_numbers_beside_the_leases(tmp_path: Path) -> None:
    lake = make_lake(tmp_path, *PLANNED)
    numbers = tmp_path / "ops" / "leases" / "log-prod.json"
    numbers.parent.mkdir(parents=True)
    numbers.write_text('{"prod/orders": 7}')
    assert names_of(lake) == ["ops.control_log"]


def test_a_table_that_only_further_stages_write_is_not_missed(tmp_path: Path) -> None:
    assert names_of(make_lake(tmp_path, *INGESTED, tables.JOB_DAYS, tables.POLICY_MEMORY)) == []


def cut_log(folder: Path) -> None:
    """A restore that lost the first commits, and has no checkpoint of them."""
    (first,) = (folder / "_delta_log").glob("*.json")
    first.rename(first.with_name("00000000000000000007.json"))


def empty_commit(folder: Path) -> None:
    """A disk that lost its power before the first commit was on it."""
    (folder / "_delta_log" / "00000000000000000000.json").write_bytes(b"")


def keep_checksums(folder: Path) -> None:
    """A copy that passed the JSON over."""
    cut_log(folder)
    (folder / "_delta_log" / "00000000000000000007.json").rename(folder / "_delta_log" / "00000000000000000000.crc")


def put_file(folder: Path) -> None:
    """An archive in the place of the folder that it was made of."""
    shutil.rmtree(folder)
    folder.write_bytes(b"tar")


def break_link(folder: Path) -> None:
    """A table on another disk that is not mounted."""
    shutil.rmtree(folder)
    folder.symlink_to(folder.parent / "not-mounted")


@pytest.mark.parametrize("damage", [cut_log, empty_commit, keep_checksums, put_file, break_link])
@pytest.mark.parametrize("table", [tables.PLANS, tables.MODEL_VERSIONS, tables.QUALITY])
def test_further_ways_in_which_a_table_is_lost(tmp_path: Path, table: Table, damage: Callable[[Path], None]) -> None:
    lake = make_lake(tmp_path, *PLANNED)
    damage(tmp_path / table.relative_path)
    assert names_of(lake) == [table.name]


@pytest.mark.parametrize("damage", [cut_log, empty_commit, keep_checksums, put_file, break_link])
@pytest.mark.parametrize("table", [tables.PLANS, tables.CONTROL_LOG])
def test_the_fleet_names_the_table_whether_it_can_be_read_without_or_not(
    tmp_path: Path, table: Table, damage: Callable[[Path], None]
) -> None:
    lake = make_lake(tmp_path, *PLANNED, tables.CONTROL_LOG)
    damage(tmp_path / table.relative_path)
    reader = FleetReader(check_settings({"paths": {"lake": lake, "raw": lake}}), {})
    try:
        reported = [one.detail for one in reader.read(1_795_000_000.0).health if one.name == Fault.TABLE_LOST]
    except DeltaError as error:
        reported = [str(error)]
    assert len(reported) == 1
    assert reported[0].startswith(f"the table {table.name} is lost: ")


def test_a_log_that_begins_with_a_checkpoint_is_whole(tmp_path: Path) -> None:
    lake = make_lake(tmp_path, *PLANNED)
    table = DeltaTable(str(tmp_path / tables.PLANS.relative_path))
    table.create_checkpoint()
    (tmp_path / tables.PLANS.relative_path / "_delta_log" / "00000000000000000000.json").unlink()
    assert names_of(lake) == []
