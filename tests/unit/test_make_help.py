"""``make`` for somebody who comes first, and for one who mistypes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.arguments import moment

REPOSITORY = Path(__file__).resolve().parents[2]


def make(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", *words]  # which a make around the tests would switch on
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_help_is_fifteen_lines_at_most_and_help_all_has_the_rest() -> None:
    first, all_of_them = make("help").stdout, make("help-all").stdout
    assert 10 <= len(first.splitlines()) <= 15
    for target in ("run", "status", "undo"):
        assert f"  make {target} " in first
    assert "  make clean " in all_of_them
    assert "  make clean " not in first


def test_a_misspelt_target_is_answered_with_near_names() -> None:
    done = make("stauts")
    assert done.returncode != 0
    assert "there is no target 'stauts'; did you mean status" in done.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-11-31", "November 2026 has 30 days"),
        ("2026-02-29T10:00:00Z", "February 2026 has 28 days"),
        ("2026-13-01", "there is no month 13"),
        ("soon", "expected a time such as"),
        ("2026-11-20T25:00:00Z", "expected a time such as"),
    ],
)
def test_a_date_that_does_not_exist_is_told_from_one_that_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(Exception, match=why):
        moment(text)
