"""Tests that are too long for `make test`: the parts of `make test-long` name every file that has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import long_parts
from tools.long_parts import list_calls, read_parts

REPOSITORY = Path(__file__).resolve().parents[2]
TESTS = REPOSITORY / "tests"


def named() -> set[Path]:
    paths = {REPOSITORY / path for part in read_parts().values() for path in part.tests}
    assert [path for path in paths if not path.exists()] == []
    return paths


def test_every_file_with_a_long_test_is_named() -> None:
    marked = {path for path in TESTS.rglob("test_*.py") if re.search(r"mark\.long\b", path.read_text())}
    assert len(marked) > 15
    # These run longer by their number of examples.
    longer = ("controller_stateful", "operator_stateful", "log_codec", "settings_properties", "raw_lines")
    assert named() - marked == {TESTS / "unit" / f"test_{name}.py" for name in longer}
    assert marked - named() == set()


def test_a_part_ends_within_an_hour() -> None:
    assert all(0 < part.minutes <= 60 for part in read_parts().values())


def test_a_part_is_run_with_its_options_and_what_it_needs() -> None:
    parts = read_parts()
    target = "test-long PART=buckets"
    (setup, _), (tests, _), (record, _) = list_calls(target, parts[target], ["-k", "one"])
    assert setup[-1] == "EXTRA=s3"
    assert tests[-6:] == ["-m", "long", "--durations=20", "-s", "-k", "one"]
    assert record[-2:] == ["tools.record_run", target]
    ((_, variables), *_) = list_calls("", parts["test-long PART=prometheus"], [])
    assert variables == {"PROMETHEUS_MINUTES": "40"}


def test_a_part_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert long_parts.main(["kill"]) == 2
    assert "PART is one of rules, kills, " in capsys.readouterr().err
