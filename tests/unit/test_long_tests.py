"""Tests that are too long for `make test`: the parts of `make test-long` name every file that has one."""

from __future__ import annotations

import re
from pathlib import Path

from tools.promises import read_recipes

REPOSITORY = Path(__file__).resolve().parents[2]
TESTS = REPOSITORY / "tests"


def named() -> set[Path]:
    paths = {REPOSITORY / path for path in re.findall(r"tests/[\w/.]+", " ".join(read_recipes().values()))}
    assert [path for path in paths if not path.exists()] == []
    return paths


def test_every_file_with_a_long_test_is_named() -> None:
    marked = {path for path in TESTS.rglob("test_*.py") if re.search(r"mark\.long\b", path.read_text())}
    assert len(marked) > 15
    # These run longer by their number of examples.
    longer = ("controller_stateful", "operator_stateful", "log_codec", "settings_properties", "raw_lines")
    assert named() - marked == {TESTS / "unit" / f"test_{name}.py" for name in longer}
    assert marked - named() == set()


def test_test_long_is_all_of_its_parts() -> None:
    text = (REPOSITORY / "Makefile").read_text()
    (parts,) = re.findall(r"^test-long:([a-z -]*)##", text, re.MULTILINE)
    assert set(parts.split()) == read_recipes().keys()
    for part in read_recipes():  # within an hour each
        (minutes,) = re.findall(rf"^{part}:.*## .*\(at most (\d+) minutes\)$", text, re.MULTILINE)
        assert int(minutes) <= 60
