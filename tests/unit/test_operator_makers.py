"""What makes the operator of a service is found by an entry point, by the rules of all entry points."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from include.entry_points import EntryPointError
from include.orchestration.submitted_stage import find_maker


def declare(folder: Path, name: str, value: str) -> None:
    package = folder / f"{name}-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (package / "entry_points.txt").write_text(f"[tidewise.operators]\naws = {value}\n")


def test_a_function_is_taken_and_spark_submit_needs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(tmp_path, "team", "shutil:copy")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_maker("aws") is shutil.copy
    assert find_maker("k8s") is None
    with pytest.raises(EntryPointError, match="one of type 'databricks'"):
        find_maker("databricks")
    with pytest.raises(EntryPointError, match="one of type None"):
        find_maker(None)


def test_two_for_one_type_and_what_is_no_function_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(tmp_path, "team", "shutil:nothing_of_this_name")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EntryPointError, match="'aws' of team cannot be loaded"):
        find_maker("aws")
    declare(tmp_path, "other", "shutil:Error")
    with pytest.raises(EntryPointError, match="'aws' is of team and of other; rename"):
        find_maker("aws")
