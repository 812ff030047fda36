"""Backups of real Delta tables: at one version, of what was set by persons, checked, and put back as they were."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from cli import backup as backup_command
from cli import restore as restore_command
from include.backup import table_copy
from include.backup.backup_folder import BackupFolder, DamagedBackupError
from include.backup.contents import MADE_AGAIN, NEVER, RECORDS
from include.backup.manifest import BackupError, read_manifest
from include.backup.registry_copy import put_registry_back
from include.backup.table_copy import check_table, copy_table, put_back
from include.backup.take_backup import take_backup
from include.control.holds import Hold, HoldStore
from include.control.interventions import Intervention, UserAction, record_intervention
from include.control.pins import PersonalPin, PinStore
from include.lake_table import LakeTable
from include.place import NameRefusedError
from include.settings import Mlflow, Paths, Settings
from include.tables import (
    BY_PERSONS,
    CONTROLLED,
    CONTROLLER_MEMORY,
    FILES,
    INTERVENTIONS,
    PLANS,
    POLICY_MEMORY,
    TABLES,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def settings_of(root: Path) -> Settings:
    return Settings(
        paths=Paths(lake=str(root / "lake"), raw=str(root / "raw"), out=str(root / "out")),
        mlflow=Mlflow(tracking_uri=f"sqlite:///{root}/out/mlflow.db", artifact_root=str(root / "out" / "mlartifacts")),
    )


def note(root: Path, count: int = 1) -> None:
    for number in range(count):
        record_intervention(str(root / "lake"), Intervention(NOW.timestamp() + number, UserAction.HOLD, "all", "anna"))


def remember(root: Path, **columns: Any) -> None:
    row = {"stage": "plan", "as_of": NOW, "cluster": "live", "job": "orders", "policy": "x", "memory": "{}"}
    LakeTable(str(root / "lake"), POLICY_MEMORY).append([{**row, "date": NOW.date(), **columns}])


def rows_of(root: Path) -> list[dict[str, Any]]:
    return DeltaTable(str(root / "lake" / "ops" / "interventions")).to_pyarrow_table().to_pylist()


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    note(tmp_path, 3)
    remember(tmp_path)
    return tmp_path


def test_every_table_is_backed_up_or_made_again_or_never_put_back() -> None:
    known = {table.name for table in (*TABLES, *CONTROLLED, *BY_PERSONS)}
    parts = [[table.name for table in part] for part in (RECORDS, MADE_AGAIN, NEVER)]
    assert sorted(known) == sorted(name for part in parts for name in part)
    assert {"ops.control_log", "ops.interventions", "gold.rescale_outcomes", "gold.plans"} <= set(parts[0])
    # Hours that ops.files has are not ingested again: it may only come back with what was made of them.
    assert "ops.files" in parts[1]


def test_a_table_is_the_version_at_which_the_backup_began(lake: Path) -> None:
    """Others commit while it is copied."""
    folder = BackupFolder(str(lake / "backups"))
    before = rows_of(lake)
    version = DeltaTable(str(lake / "lake" / "ops" / "interventions")).version()
    note(lake, 2)
    copy = copy_table(str(lake / "lake"), INTERVENTIONS, version, folder)
    assert (copy.version, copy.rows) == (version, 3)
    shutil.rmtree(lake / "lake" / "ops")
    put_back(str(lake / "lake"), INTERVENTIONS, copy, folder)
    assert sorted(map(str, rows_of(lake))) == sorted(map(str, before))
    note(lake)  # the next commit follows
    assert DeltaTable(str(lake / "lake" / "ops" / "interventions")).version() == version + 1
    assert len(rows_of(lake)) == 4


def test_a_log_is_copied_from_its_last_checkpoint_on(lake: Path) -> None:
    path = str(lake / "lake" / "ops" / "interventions")
    DeltaTable(path).create_checkpoint()
    checkpoint = DeltaTable(path).version()
    note(lake, 2)
    folder = BackupFolder(str(lake / "backups"))
    copy = copy_table(str(lake / "lake"), INTERVENTIONS, DeltaTable(path).version(), folder)
    log = sorted(name for name in copy.files if name.startswith("_delta_log"))
    commits = [f"_delta_log/{number:020}.json" for number in range(checkpoint, checkpoint + 3)]
    assert log == sorted([*commits, f"_delta_log/{checkpoint:020}.checkpoint.parquet"])
    before = rows_of(lake)
    shutil.rmtree(path)
    put_back(str(lake / "lake"), INTERVENTIONS, copy, folder)
    assert sorted(map(str, rows_of(lake))) == sorted(map(str, before))


def test_a_version_that_an_upkeep_removes_meanwhile_gives_way_to_the_newest(lake: Path) -> None:
    path = str(lake / "lake" / "ops" / "interventions")
    version = DeltaTable(path).version()
    DeltaTable(path).optimize.compact()
    DeltaTable(path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    copy = copy_table(str(lake / "lake"), INTERVENTIONS, version, BackupFolder(str(lake / "backups")))
    assert (copy.version > version, copy.rows) == (True, 3)


def test_a_second_backup_copies_only_what_is_new(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, holds = BackupFolder(str(lake / "backups")), HoldStore(str(lake / "lake"))
    holds.write(Hold("live", "a fair", "anna"), "fair.json")
    first = take_backup(settings_of(lake), folder, NOW, with_ingested=False)
    before = files_of(lake / "backups" / "contents")
    assert take_backup(settings_of(lake), folder, NOW, with_ingested=False) == first
    assert files_of(lake / "backups" / "contents") == before
    note(lake)
    holds.release("fair.json")
    read: list[str] = []
    table_of = table_copy.pq.read_metadata
    monkeypatch.setattr(table_copy.pq, "read_metadata", lambda file: read.append(file) or table_of(file))
    again = BackupFolder(str(lake / "backups"))
    second = take_backup(settings_of(lake), again, NOW + timedelta(days=1), with_ingested=False)
    assert len(read) == 1  # the new file of rows
    assert second.tables["ops.interventions"].rows == 4
    assert [one.at for one in again.read_all()] == [NOW, NOW + timedelta(days=1)]
    assert again.read_newest(NOW + timedelta(hours=1)) == first
    assert again.remove_older(1) == 1  # the hold
    assert set(files_of(lake / "backups" / "contents")) == {
        f"{one.sha256[:2]}/{one.sha256}" for one in second.list_files()
    }


@pytest.mark.parametrize("harm", [lambda path: path.unlink(), lambda path: path.write_bytes(b"other")])
def test_a_damaged_backup_changes_nothing(lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch, harm) -> None:
    set_paths(monkeypatch, lake)
    assert backup_command.main(["--to", str(lake / "backups")]) == 0
    harm(next(path for path in (lake / "backups" / "contents").rglob("*") if path.is_file()))
    before = files_of(lake / "lake")
    assert restore_command.main(["--from", str(lake / "backups"), "--replace"]) == 1
    assert "take another backup" in capsys.readouterr().err
    assert files_of(lake / "lake") == before


def set_paths(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    given = settings_of(root)
    for name in ("lake", "raw", "out"):
        monkeypatch.setenv(f"TIDEWISE__PATHS__{name.upper()}", getattr(given.paths, name))
    monkeypatch.setenv("TIDEWISE__MLFLOW__TRACKING_URI", given.mlflow.tracking_uri)
    monkeypatch.setenv("TIDEWISE__MLFLOW__ARTIFACT_ROOT", given.mlflow.artifact_root)


def test_the_commands_refuse_what_is_there_and_put_back_what_was(
    lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    set_paths(monkeypatch, lake)
    store, pins = HoldStore(str(lake / "lake")), PinStore(str(lake / "lake"))
    store.write(Hold("live", "a fair", "anna", NOW.timestamp()))
    pins.write(PersonalPin("live", "orders", 4, "anna"))
    LakeTable(str(lake / "lake"), CONTROLLER_MEMORY).append([{"at": NOW, "cluster": "live", "date": NOW.date()}])
    assert backup_command.main(["--to", str(lake / "backups")]) == 0
    assert "models are NOT in it: nothing was ever trained" in capsys.readouterr().out
    before = rows_of(lake)
    note(lake)
    pins.write(PersonalPin("live", "orders", 9, "berta"))  # set since: it stays
    changed = files_of(lake / "lake")
    assert restore_command.main(["--from", str(lake / "backups"), "--dry-run"]) == 0
    assert restore_command.main(["--from", str(lake / "backups")]) == 1
    printed = capsys.readouterr()
    assert "is there already: table ops.interventions" in printed.out
    assert "--replace" in printed.err
    assert files_of(lake / "lake") == changed
    assert restore_command.main(["--from", str(lake / "backups"), "--replace"]) == 0
    acts = [row["act"] for row in rows_of(lake)]
    assert sorted(acts) == sorted([*(row["act"] for row in before), "restore"])
    assert {one.scope for one in store.read(NOW.timestamp())} == {"live", "all"}
    assert [one.parallelism for one in pins.read(NOW.timestamp()).pins] == [9]
    assert not (lake / "lake" / CONTROLLER_MEMORY.relative_path).exists()
    shutil.rmtree(lake / "lake")
    assert restore_command.main(["--from", str(lake / "backups")]) == 0
    assert [one.parallelism for one in pins.read(NOW.timestamp()).pins] == [4]
    assert (lake / "lake" / POLICY_MEMORY.relative_path).is_dir()


def test_what_is_written_while_a_table_is_put_back_is_noticed(lake: Path) -> None:
    path = str(lake / "lake" / "ops" / "interventions")
    copy = copy_table(
        str(lake / "lake"), INTERVENTIONS, DeltaTable(path).version(), BackupFolder(str(lake / "backups"))
    )
    check_table(path, INTERVENTIONS, copy)
    note(lake)
    with pytest.raises(BackupError, match="is somebody writing there"):
        check_table(path, INTERVENTIONS, copy)


def test_ingested_tables_are_copied_where_they_are_asked_for(lake: Path) -> None:
    row = {"cluster": "live", "source_file": "x", "date": date(2026, 11, 20), "hour": 3}
    LakeTable(str(lake / "lake"), FILES).append([row])
    folder = BackupFolder(str(lake / "backups"))
    assert "ops.files" not in take_backup(settings_of(lake), folder, NOW, with_ingested=False).tables
    assert take_backup(settings_of(lake), folder, NOW, with_ingested=True).tables["ops.files"].rows == 1
    assert PLANS.name not in take_backup(settings_of(lake), folder, NOW, with_ingested=True).tables  # not there yet


def test_what_is_no_backup_is_refused_by_name(lake: Path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    set_paths(monkeypatch, lake)
    assert restore_command.main(["--from", str(lake / "nowhere")]) == 1
    assert "holds no backup" in capsys.readouterr().err
    for content in (b"", b"{}", b'{"format": 2}', b"[]"):
        with pytest.raises(BackupError):
            read_manifest(content)
    folder = BackupFolder(str(lake / "backups"))
    made = take_backup(settings_of(lake), folder, NOW, with_ingested=False)
    assert read_manifest(made.to_json()) == made
    with pytest.raises(BackupError, match="there is no lake"):
        take_backup(settings_of(lake / "elsewhere"), folder, NOW, with_ingested=False)
    one = next(made.list_files())
    (lake / "backups" / "contents" / one.sha256[:2] / one.sha256).write_bytes(b"x")
    with pytest.raises(DamagedBackupError, match="is damaged"):
        folder.load(one)


OUTSIDE = ["../../../escaped.sh", "/elsewhere/evil.py", "a/../../evil.py", "..", "a//b", "./a", "", "a\0b"]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("part", ["table", "objects", "artifacts", "content"])
def test_a_name_that_leads_out_of_its_folder_restores_nothing(
    lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, part: str
) -> None:
    set_paths(monkeypatch, lake)
    folder = BackupFolder(str(lake / "backups"))
    made = take_backup(settings_of(lake), folder, NOW, with_ingested=False)
    evil = folder.store(b"#!/bin/sh\n")
    table = made.tables["ops.interventions"]
    changes: dict[str, Any] = {
        "table": {"tables": {"ops.interventions": replace(table, files={**table.files, name: evil})}},
        "objects": {"objects": {name: evil}},
        "artifacts": {"registry": replace(made.registry, artifacts={name: evil})},
        "content": {"objects": {"_control/holds/a.json": replace(evil, sha256=name)}},
    }
    folder.write_manifest(replace(made, **changes[part]))
    before = files_of(lake)
    assert restore_command.main(["--from", str(lake / "backups"), "--replace"]) == 1
    assert "is no name of a file below" in capsys.readouterr().err
    assert {path: one for path, one in files_of(lake).items() if "lock" not in path} == before
    with pytest.raises(NameRefusedError):
        put_back(str(lake / "new"), INTERVENTIONS, replace(table, files={name: evil}), folder)
    with pytest.raises(NameRefusedError):
        put_registry_back(
            settings_of(lake).mlflow, replace(made.registry, database=evil, artifacts={name: evil}), "", folder
        )


@pytest.mark.parametrize(("old", "new"), [(b'"rows": 1', b'"rows": 4'), (b"anna", b"berta"), (b"0.", b"9.")])
def test_a_manifest_that_was_changed_is_damaged(lake: Path, old: bytes, new: bytes) -> None:
    folder = BackupFolder(str(lake / "backups"))
    HoldStore(str(lake / "lake")).write(Hold("live", "a fair", "anna"), "anna.json")
    content = take_backup(settings_of(lake), folder, NOW, with_ingested=False).to_json()
    assert old in content
    with pytest.raises(BackupError, match="is damaged: take another backup"):
        read_manifest(content.replace(old, new))


@pytest.mark.parametrize(("written_by", "code"), [("env:RIGHT", 0), ("env:WRONG", 1), (None, 1)])
def test_with_a_key_only_what_it_signed_is_restored(
    lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], written_by: str | None, code: int
) -> None:
    set_paths(monkeypatch, lake)
    for name in ("RIGHT", "WRONG"):
        monkeypatch.setenv(name, name.lower())
    if written_by is not None:
        monkeypatch.setenv("TIDEWISE__BACKUP__KEY", written_by)
    assert backup_command.main(["--to", str(lake / "backups")]) == 0
    arguments = ["--from", str(lake / "backups"), "--dry-run"]
    monkeypatch.setenv("TIDEWISE__BACKUP__KEY", "env:RIGHT")
    assert restore_command.main(arguments) == code
    assert ("is not signed by backup.key" in capsys.readouterr().err) == bool(code)
    monkeypatch.setenv("TIDEWISE__BACKUP__KEY", "env:NOWHERE")
    assert restore_command.main(arguments) == 1
    assert "env:NOWHERE holds nothing" in capsys.readouterr().err
    monkeypatch.delenv("TIDEWISE__BACKUP__KEY")
    assert restore_command.main(arguments) == 0


def test_a_backup_of_an_earlier_release_has_no_checksum(lake: Path) -> None:
    made = take_backup(settings_of(lake), BackupFolder(str(lake / "backups")), NOW, with_ingested=False)
    before = replace(made, format=1)
    content = json.loads(before.to_json())
    del content["seal"]
    assert read_manifest(json.dumps(content).encode()) == before
    with pytest.raises(BackupError, match="not signed"):
        read_manifest(json.dumps(content).encode(), b"key")
