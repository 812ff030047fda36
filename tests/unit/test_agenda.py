"""The agenda: whether the apply stage is worth starting, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include.control.agenda import AGENDA, DONE, due, read_agenda, remove_agenda, write_agenda, write_done
from include.settings import Paths, Settings

PLANNED = datetime(2026, 11, 20, 18, tzinfo=UTC)
STEP = PLANNED + timedelta(minutes=20)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(tmp_path / "none.toml"))
    return Settings(paths=Paths(out=str(tmp_path / "out")))


def test_without_an_agenda_something_may_be_due(settings: Settings) -> None:
    assert due(settings, PLANNED)


@pytest.mark.parametrize(
    "broken", ["", "{", "[]", "null", '{"as_of": 3}', '{"as_of": "2026-11-20", "apply_at": ["x"]}']
)
def test_a_corrupt_agenda_counts_as_due(settings: Settings, broken: str) -> None:
    write_agenda(settings, PLANNED, [])
    (Path(settings.paths.out) / AGENDA).write_text(broken)
    assert read_agenda(settings) is None
    assert due(settings, PLANNED)


def test_due_from_the_moment_of_a_step_until_it_was_dealt_with(settings: Settings) -> None:
    write_agenda(settings, PLANNED, [STEP, STEP + timedelta(hours=2)])
    assert not due(settings, STEP - timedelta(seconds=1))
    assert due(settings, STEP)
    write_done(settings, PLANNED, STEP)
    assert not due(settings, STEP + timedelta(minutes=5))
    assert due(settings, STEP + timedelta(hours=2))


def test_an_empty_agenda_is_never_due(settings: Settings) -> None:
    write_agenda(settings, PLANNED, [])
    assert not due(settings, PLANNED + timedelta(days=1))


def test_what_was_done_of_an_older_plan_hides_nothing_of_a_new_one(settings: Settings) -> None:
    write_done(settings, PLANNED - timedelta(hours=1), STEP + timedelta(minutes=5))
    write_agenda(settings, PLANNED, [STEP])
    assert due(settings, STEP)
    (Path(settings.paths.out) / DONE).write_text("{")
    assert due(settings, STEP)


def test_a_removed_agenda_counts_as_due(settings: Settings) -> None:
    write_agenda(settings, PLANNED, [])
    remove_agenda(settings)
    remove_agenda(settings)
    assert due(settings, PLANNED)
