"""Steps of the set-up: nobody waits a minute without a line, and a page of text needs neither Spark nor Flink."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from cli import setup
from cli.setup_steps import never_silent, step

REPOSITORY = Path(__file__).resolve().parents[2]


def test_what_takes_long_says_so_and_for_how_long(capsys: pytest.CaptureFixture[str]) -> None:
    with never_silent("site: Sphinx is at work", silent_s=0.01):
        time.sleep(0.1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 2
    assert set(lines) == {"site: Sphinx is at work, 0 s so far ..."}


def test_a_step_is_done_once_and_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[int] = []
    for _ in range(2):
        step("Flink into .cache/flink", lambda: bool(done), lambda: done.append(1))
    assert capsys.readouterr().out.splitlines() == [
        "setup: Flink into .cache/flink ...",
        "setup: Flink into .cache/flink done in 0 s",
    ]


def test_a_page_of_text_needs_python_packages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for name in ("prepare_packages", "prepare_spark", "prepare_flink"):
        monkeypatch.setattr(setup, name, lambda *_, name=name: done.append(name))
    assert setup.main(["--packages", "docs"]) == 0
    assert done == ["prepare_packages"]
    assert setup.main([]) == 0
    assert sorted(done[1:]) == ["prepare_flink", "prepare_packages", "prepare_spark"]


def test_the_site_is_such_a_page() -> None:
    words = ["make", "--dry-run", "--no-print-directory", "site"]
    planned = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    assert "-m cli.setup --packages docs" in planned
