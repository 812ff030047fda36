"""Upkeep of real Delta tables: what goes, what stays, what can still be read as it was, and that it may be killed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.table import TableOptimizer
from pydantic import ValidationError

from cli import maintain
from include.lake_table import LakeTable
from include.maintenance import table_upkeep
from include.maintenance.lake_upkeep import keep_up_lake
from include.maintenance.retention_rules import days_of, old_rows
from include.maintenance.table_upkeep import keep_up
from include.settings import Retention, Settings, Training, check_settings
from include.settings.tree import SettingsError
from include.tables import (
    BRONZE_METRICS,
    CONTROLLER_MEMORY,
    FILES,
    MODEL_VERSIONS,
    OBSERVATIONS,
    PLANS,
    POLICY_MEMORY,
    QUARANTINE,
    TABLES,
    Table,
)

pytestmark = pytest.mark.covers("apply_review 13")
NOW = datetime.now(UTC).replace(microsecond=0)
TODAY = NOW.date()


def write(path: Path, table: Table, day: date, files: int = 1, **columns: Any) -> None:
    """Append some files of one row each to a table, as a stage's ticks do."""
    for number in range(files):
        at = datetime(day.year, day.month, day.day, number, tzinfo=UTC)
        row = {"as_of": at, "at": at, "cluster": "live", "job": f"job {number}", "date": day}
        rows = pa.Table.from_pylist([row | ({"hour": 3} if "hour" in table.partition_by else {}) | columns])
        write_deltalake(path, rows, mode="append", partition_by=list(table.partition_by) or None)


def days(path: Path) -> dict[date, int]:
    """Return day -> rows."""
    result = DeltaTable(path).to_pyarrow_table().column("date").to_pylist()
    return {day: result.count(day) for day in sorted(set(result))}


def age(path: Path, days_ago: int) -> None:
    """Let the files that no version needs any more, and the log, have been written some days ago."""
    for file in path.rglob("*.parquet"):
        then = (NOW - timedelta(days=days_ago)).timestamp()
        os.utime(file, (then, then))


OLD, PAST = TODAY - timedelta(days=200), TODAY - timedelta(days=5)


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    """A table of evaluations: an old day, a past one in many files, and today's."""
    path = tmp_path / "lake" / CONTROLLER_MEMORY.relative_path
    for day, files in ((OLD, 3), (PAST, 6), (TODAY, 4)):
        write(path, CONTROLLER_MEMORY, day, files)
    return path


def test_old_days_go_past_days_are_merged_and_today_is_left_alone(memories: Path) -> None:
    done = keep_up(str(memories), CONTROLLER_MEMORY, Retention(), NOW, applies=True)
    assert days(memories) == {PAST: 6, TODAY: 4}
    assert (done.files, done.old_files, done.merged_files) == (13, 3, 6)
    assert done.old_before == TODAY - timedelta(days=90)
    files = DeltaTable(memories).file_uris()
    assert sum(f"date={PAST}" in file for file in files) == 1
    assert sum(f"date={TODAY}" in file for file in files) == 4
    again = keep_up(str(memories), CONTROLLER_MEMORY, Retention(), NOW, applies=True)
    assert (again.old_files, again.merged_files, again.removed_files) == (0, 0, 0)


def test_a_dry_run_says_the_same_and_changes_nothing(memories: Path) -> None:
    before, version = sorted(memories.rglob("*")), DeltaTable(memories).version()
    planned = keep_up(str(memories), CONTROLLER_MEMORY, Retention(), NOW, applies=False)
    assert (sorted(memories.rglob("*")), DeltaTable(memories).version()) == (before, version)
    done = keep_up(str(memories), CONTROLLER_MEMORY, Retention(), NOW, applies=True)
    assert (planned.old_files, planned.merged_files) == (done.old_files, done.merged_files)


def test_a_table_can_be_read_as_it_was_within_the_time_travel(tmp_path: Path) -> None:
    plans = tmp_path / "lake" / PLANS.relative_path
    for day, files in ((PAST, 6), (TODAY, 4)):
        write(plans, PLANS, day, files)
    before = DeltaTable(plans).version()
    keep_up(str(plans), PLANS, Retention(), NOW, applies=True)
    assert DeltaTable(plans, version=before).to_pyarrow_table().num_rows == 10
    # What a killed writer has left is removed once no running one can need it.
    orphan = plans / f"date={PAST}" / "part-00000-killed.parquet"
    orphan.write_bytes(b"PAR1 half a file")
    age(plans, 29)
    keep_up(str(plans), PLANS, Retention(), NOW, applies=True)
    assert orphan.exists()
    age(plans, 31)
    keep_up(str(plans), PLANS, Retention(), NOW, applies=True)
    assert not orphan.exists()
    assert days(plans) == {PAST: 6, TODAY: 4}


def test_of_evaluations_of_days_that_are_over_one_an_hour_stays_and_their_files_go(tmp_path: Path) -> None:
    lake, path = tmp_path / "lake", tmp_path / "lake" / CONTROLLER_MEMORY.relative_path
    table = LakeTable(str(lake), CONTROLLER_MEMORY)
    # Two controllers, each with times of its own; of one of them a cluster is first seen later in the hour.
    minutes: dict[str, Sequence[int]] = {"a": range(0, 120, 20), "late": (20, 40, 60, 80, 100), "b": range(5, 120, 20)}
    for day in (PAST, TODAY):
        begin = datetime(day.year, day.month, day.day, 3, 0, 0, 500_000, tzinfo=UTC)
        for minute in sorted({one for each in minutes.values() for one in each}):
            of_all = {"at": begin + timedelta(minutes=minute), "job": "job", "memory": "{}", "date": day}
            table.append([of_all | {"cluster": name} for name, each in minutes.items() if minute in each])

    def read(day: date) -> dict[str, list[int]]:
        rows = table.read(["cluster", "at"], day, day).to_pylist()
        times = {one: sorted(row["at"] for row in rows if row["cluster"] == one) for one in minutes}
        return {one: [60 * (at.hour - 3) + at.minute for at in each] for one, each in times.items()}

    keep_up(str(path), CONTROLLER_MEMORY, Retention(), NOW, applies=True)
    assert read(PAST) == {"a": [0, 20, 60], "late": [20, 60], "b": [5, 65]}
    assert read(TODAY) == {one: list(each) for one, each in minutes.items()}
    version, orphan = DeltaTable(path).version(), path / f"date={PAST}" / "part-00000-killed.parquet"
    orphan.write_bytes(b"PAR1 half a file")
    age(path, 2)
    assert keep_up(str(path), CONTROLLER_MEMORY, Retention(), NOW, applies=True).removed_files == 1
    assert not orphan.exists()
    operations = [one["operation"] for one in DeltaTable(path).history()]
    assert operations[: DeltaTable(path).version() - version] == ["VACUUM END", "VACUUM START"]  # nothing is left to do


def test_files_that_are_too_large_together_stay_apart(memories: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [path.stat().st_size for path in memories.glob(f"date={PAST}/*.parquet")]
    assert len(sizes) > 1
    monkeypatch.setattr(table_upkeep, "MERGED_BYTES", max(sizes))
    done = keep_up(str(memories), CONTROLLER_MEMORY, Retention(), NOW, applies=True)
    assert (done.old_files, done.merged_files) == (3, 0)
    monkeypatch.setattr(table_upkeep, "MERGED_BYTES", 2 * max(sizes))
    assert keep_up(str(memories), CONTROLLER_MEMORY, Retention(), NOW, applies=True).merged_files == len(sizes)
    assert len(list(DeltaTable(memories).file_uris())) < len(sizes) + 4
    assert days(memories) == {PAST: 6, TODAY: 4}


@pytest.mark.parametrize("killed_at", ["delete", "compact", "vacuum"])
def test_killed_in_the_middle_it_is_run_again(memories: Path, killed_at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class KilledError(BaseException):
        pass

    owner: type = TableOptimizer if killed_at == "compact" else DeltaTable
    step: Callable[..., Any] = getattr(owner, killed_at)

    def killed(self: Any, *arguments: Any, **options: Any) -> None:
        step(self, *arguments, **options)
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(owner, killed_at, killed)
        with pytest.raises(KilledError):
            keep_up(str(memories), CONTROLLER_MEMORY, Retention(), NOW, applies=True)
    keep_up(str(memories), CONTROLLER_MEMORY, Retention(), NOW, applies=True)
    assert days(memories) == {PAST: 6, TODAY: 4}


def test_a_writer_that_is_faster_is_waited_for(memories: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compact = TableOptimizer.compact
    conflicts = []

    def loses_twice(self: TableOptimizer, *arguments: Any, **options: Any) -> Any:
        if len(conflicts) < table_upkeep.TRIES - 1:
            conflicts.append(1)
            write(memories, CONTROLLER_MEMORY, TODAY)
            raise CommitFailedError("a concurrent transaction removed a file")
        return compact(self, *arguments, **options)

    monkeypatch.setattr(TableOptimizer, "compact", loses_twice)
    keep_up(str(memories), CONTROLLER_MEMORY, Retention(), NOW, applies=True)
    assert days(memories) == {PAST: 6, TODAY: 6}


def test_appends_while_a_table_is_kept_up_are_kept(memories: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = DeltaTable.delete

    def delete_beside_a_writer(self: DeltaTable, *arguments: Any, **options: Any) -> Any:
        write(memories, CONTROLLER_MEMORY, TODAY)  # after the version was read, before this commit
        return delete(self, *arguments, **options)

    monkeypatch.setattr(DeltaTable, "delete", delete_beside_a_writer)
    keep_up(str(memories), CONTROLLER_MEMORY, Retention(), NOW, applies=True)
    assert days(memories) == {PAST: 6, TODAY: 5}


def test_profiles_are_kept_however_old_they_are(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    for stage in ("plan", "profiling"):
        write(path, POLICY_MEMORY, OLD, stage=stage)
    keep_up(str(path), POLICY_MEMORY, Retention(), NOW, applies=True)
    assert DeltaTable(path).to_pyarrow_table().column("stage").to_pylist() == ["profiling"]


def test_what_a_remake_needs_is_kept_by_default() -> None:
    assert old_rows(BRONZE_METRICS, Retention(), NOW) is None
    assert days_of(BRONZE_METRICS, Retention(bronze_days=50)) == 50
    assert Retention().raw_days is None
    for table in (OBSERVATIONS, PLANS):
        old = old_rows(table, Retention(), NOW)
        assert old is not None
        assert old.before <= TODAY - timedelta(days=700)
    assert days_of(QUARANTINE, Retention()) == 1095
    assert old_rows(MODEL_VERSIONS, Retention(), NOW) is None  # a row a day


def test_every_table_of_the_lake_has_a_rule_and_those_of_ticks_are_in_days() -> None:
    assert all(days_of(table, Retention()) is not None or table.name.startswith("bronze") for table in TABLES)
    assert [table.name for table in (CONTROLLER_MEMORY, POLICY_MEMORY) if "date" not in table.partition_by] == []


def test_settings_that_remove_what_is_read_are_refused() -> None:
    with pytest.raises((ValidationError, SettingsError), match=r"retention\.silver_days = 28 removes what training"):
        check_settings({"retention": {"silver_days": 28}})
    assert check_settings({"retention": {"silver_days": 29}}).retention.silver_days == 29
    assert Training().lookback_days == 28


def lake_settings(root: Path, **retention: Any) -> Settings:
    settings = Settings()
    paths = settings.paths.model_copy(update={"lake": str(root / "lake"), "raw": str(root / "raw")})
    return settings.model_copy(update={"paths": paths, "retention": Retention(**retention)})


def test_a_table_that_fails_does_not_keep_the_others_from_it(tmp_path: Path, memories: Path) -> None:
    broken = tmp_path / "lake" / PLANS.relative_path
    write(broken, PLANS, OLD)
    (broken / "_delta_log" / "00000000000000000000.json").write_text("{half a com")
    result = keep_up_lake(lake_settings(tmp_path), NOW, applies=True)
    assert list(result.failures) == ["gold.plans"]
    assert [one.table for one in result.tables] == [CONTROLLER_MEMORY.name]
    assert days(memories) == {PAST: 6, TODAY: 4}


def test_raw_days_go_only_when_asked_for_and_nothing_else_does(tmp_path: Path) -> None:
    raw = tmp_path / "raw" / "cluster=eu"
    for name in (f"date={OLD}", f"date={PAST}", "date=2020-13-45", "date=old", "notes"):
        (raw / name / "hour=00").mkdir(parents=True)
        (raw / name / "hour=00" / "a.jsonl.gz").write_bytes(b"x")
    (raw / "date=2001-01-01").symlink_to(raw / "notes")
    ingest(tmp_path, raw / f"date={OLD}" / "hour=00" / "a.jsonl.gz")
    keep_up_lake(lake_settings(tmp_path), NOW, applies=True)
    assert len(list(raw.iterdir())) == 6
    shown = keep_up_lake(lake_settings(tmp_path, raw_days=100), NOW, applies=False)
    assert [folder.name for folder in shown.raw_days] == [f"date={OLD}"]
    assert len(list(raw.iterdir())) == 6
    keep_up_lake(lake_settings(tmp_path, raw_days=100), NOW, applies=True)
    assert sorted(folder.name for folder in raw.iterdir()) == sorted(
        [f"date={PAST}", "date=2020-13-45", "date=old", "notes", "date=2001-01-01"]
    )
    assert (raw / "notes" / "hour=00" / "a.jsonl.gz").exists()


def ingest(root: Path, file: Path) -> None:
    """Write what ingestion writes of a raw file to ops.files."""
    day = date.fromisoformat(file.parts[-3].removeprefix("date="))
    at = datetime.fromtimestamp(int(file.stat().st_mtime * 1000) / 1000, UTC)
    row = {"source_file": str(file.relative_to(root / "raw")), "modified_at": at, "date": day, "hour": 0}
    write_deltalake(
        root / "lake" / FILES.relative_path,
        pa.Table.from_pylist([row]),
        mode="append",
        partition_by=list(FILES.partition_by),
    )


def put_raw(root: Path, cluster: str = "eu", hour: int = 0) -> Path:
    file = root / "raw" / f"cluster={cluster}" / f"date={OLD}" / f"hour={hour:02}" / "a.jsonl.gz"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    return file


@pytest.mark.covers("harm upkeep-unknown")
def test_raw_days_with_files_that_no_table_knows_stay_and_are_named(tmp_path: Path) -> None:
    settings = lake_settings(tmp_path, raw_days=100)
    known, late = put_raw(tmp_path), put_raw(tmp_path, hour=7)
    unknown = keep_up_lake(settings, NOW, applies=True).kept_days
    assert unknown == {
        known.parents[1]: f"2 files were not ingested as they are, {known.relative_to(tmp_path / 'raw')} for one"
    }
    ingest(tmp_path, known)
    ingest(tmp_path, late)
    was = late.stat().st_mtime
    os.utime(late, (was + 60, was + 60))  # it was written again
    assert keep_up_lake(settings, NOW, applies=True).raw_days == []
    assert known.exists()
    os.utime(late, (was, was))
    done = keep_up_lake(settings, NOW, applies=True)
    assert (done.raw_days, done.kept_days) == ([known.parents[1]], {})
    assert not known.exists()


@pytest.mark.covers("harm upkeep-link")
def test_no_raw_file_behind_a_link_is_removed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / f"date={OLD}" / "hour=00"
    elsewhere.mkdir(parents=True)
    (elsewhere / "a.jsonl.gz").write_bytes(b"x")
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "cluster=linked").symlink_to(tmp_path / "elsewhere")
    within = put_raw(tmp_path)
    (within.parents[1] / "hour=01").symlink_to(elsewhere)
    ingest(tmp_path, within)
    done = keep_up_lake(lake_settings(tmp_path, raw_days=100), NOW, applies=True)
    assert (done.raw_days, list(done.kept_days)) == ([], [within.parents[1]])
    assert (elsewhere / "a.jsonl.gz").exists()
    assert within.exists()


@pytest.mark.covers("harm upkeep-link")
def test_no_file_of_a_table_behind_a_link_is_removed(tmp_path: Path, memories: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "of somebody.parquet").write_bytes(b"x")
    (memories / "backup").symlink_to(elsewhere)
    age(elsewhere, 400)
    result = keep_up_lake(lake_settings(tmp_path), NOW, applies=True)
    assert list(result.failures) == [CONTROLLER_MEMORY.name]
    assert (elsewhere / "of somebody.parquet").exists()
    assert days(memories) == {PAST: 6, TODAY: 4}  # old rows went nevertheless


def test_what_tells_which_raw_files_were_ingested_is_kept_longer_than_they_are() -> None:
    assert days_of(FILES, Retention(raw_days=2000, log_days=100)) == 2030
    assert days_of(FILES, Retention(raw_days=None, log_days=100)) == 100
    assert days_of(FILES, Retention(raw_days=2000, log_days=None)) is None


def test_make_maintain_shows_and_changes_only_when_it_is_told_to(
    memories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert maintain.main(["--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "nothing is changed" in printed
    assert CONTROLLER_MEMORY.name in printed
    assert days(memories) == {OLD: 3, PAST: 6, TODAY: 4}
    assert maintain.main(["--out", str(tmp_path), "--apply"]) == 0
    assert days(memories) == {PAST: 6, TODAY: 4}
