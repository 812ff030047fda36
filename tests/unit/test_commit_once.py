"""A commit whose answer is lost: it is recognised in the log, and never made twice."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import deltalake
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from obstore.store import LocalStore

from include import commit_once as module
from include.commit_once import CommitUnknownError, commit_path
from include.lake_table import LakeTable
from include.tables import CONTROLLER_MEMORY

TODAY = date(2026, 11, 20)
write = deltalake.write_deltalake


def memory(job: str) -> dict[str, Any]:
    return {"at": datetime(2026, 11, 20, tzinfo=UTC), "cluster": "live", "job": job, "memory": "{}", "date": TODAY}


def jobs(table: LakeTable) -> list[str]:
    return sorted(table.read(["job"], TODAY, TODAY).column("job").to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    made = LakeTable(str(tmp_path), CONTROLLER_MEMORY)
    made.append([memory("a")])
    return made


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch, table: LakeTable, tmp_path: Path) -> list[Exception]:
    """Errors that come in the place of the answers to the next commits; the files are merged before each."""
    errors: list[Exception] = []

    def write_and_lose(*args: Any, **options: Any) -> None:
        write(*args, **options)
        if errors:
            DeltaTable(tmp_path / CONTROLLER_MEMORY.relative_path).optimize.compact()
            raise errors.pop(0)

    monkeypatch.setattr(module.deltalake, "write_deltalake", write_and_lose)
    return errors


@pytest.mark.parametrize("error", [CommitFailedError("version 2 exists"), DeltaError("500"), OSError("cut")])
def test_a_commit_that_is_there_is_done(table: LakeTable, lost: list[Exception], error: Exception) -> None:
    lost.append(error)
    table.append([memory("b")])
    table.append([memory("c")])
    assert jobs(table) == ["a", "b", "c"]
    assert table.read_version() == 4  # the merge is one of them


def test_where_the_log_cannot_be_read_it_is_not_made_again(
    table: LakeTable, lost: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(LocalStore):
        def get(self, *args: Any, **options: Any) -> Any:
            raise module.BaseError("no answer")

    monkeypatch.setattr(table, "_open", Silent)
    lost.append(CommitFailedError("version 2 exists"))
    with pytest.raises(CommitUnknownError, match=r"whether a commit was made \(version 2 exists\) is not known"):
        table.append([memory("b")])
    assert jobs(table) == ["a", "b"]


def test_a_commit_that_is_not_there_fails_as_it_did(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise DeltaError("403")

    monkeypatch.setattr(module.deltalake, "write_deltalake", refuse)
    with pytest.raises(DeltaError, match="403"):
        table.append([memory("b")])
    assert jobs(table) == ["a"]


def test_each_of_two_tables_objects_sees_the_others_commits(tmp_path: Path) -> None:
    both = [LakeTable(str(tmp_path), CONTROLLER_MEMORY) for _ in range(2)]
    for number in range(6):
        both[number % 2].append([memory(str(number))])
    assert jobs(both[0]) == [str(number) for number in range(6)]
    log = tmp_path / CONTROLLER_MEMORY.relative_path
    texts = [(log / commit_path(number)).read_text() for number in range(1, 7)]
    assert len({re.findall(r'"tidewise.commit":"(\w{32})"', text)[0] for text in texts}) == 6
