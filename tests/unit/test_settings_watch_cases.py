"""The settings file that changes often, is written to and fro, was never there, or goes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.limits.settings_watch import SettingsState, SettingsWatch
from include.settings import SETTINGS_FILE_VARIABLE, load_settings

NOW_S = 1_795_000_000.0
VERSIONS = 20
Look = Callable[..., SettingsState]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that settings are read from where none is named; there is none yet, nor in the project."""
    monkeypatch.delenv(SETTINGS_FILE_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("include.settings.loading.PROJECT", tmp_path / "project")
    return tmp_path / "tidewise.toml"


@pytest.fixture
def look(file: Path) -> Look:
    """Return what writes the file, lets time pass, and reads the settings."""
    clock = [NOW_S]
    watch = SettingsWatch(load_settings, lambda: clock[0])

    def read(slots: int | None = None, after_s: float = 3.0) -> SettingsState:
        if slots is not None:
            file.write_text(f"[limits]\nslots_max = {slots}\n[clusters.live]\n")
            os.utime(file, (clock[0], clock[0]))
            watch.read()
        clock[0] += after_s
        return watch.read()

    return read


def test_without_a_file_the_defaults_are_in_force_at_once(look: Look) -> None:
    for _ in range(3):
        state = look()
        assert (state.why_unusable, state.just_changed) == ("", False)
        assert state.settings is not None


def test_a_file_that_comes_later_is_read_and_may_not_go_again(look: Look, file: Path) -> None:
    look()
    assert look(8).settings is not None
    file.unlink()
    for seconds in (3.0, 1000.0):
        state = look(after_s=seconds)
        assert state.settings is None
        assert state.why_unusable.endswith(
            "tidewise.toml, which was read before, does not exist any more; write it again"
        )


def test_a_file_in_another_place_is_not_the_one_that_was_read(look: Look, file: Path) -> None:
    look(8)
    (file.parent / "project").mkdir()
    file.rename(file.parent / "project" / file.name)
    assert "does not exist any more" in look().why_unusable


def test_a_file_that_changes_too_often_sends_nothing_until_it_stands(look: Look) -> None:
    """So many versions are compared: of more nobody could say what the strictest of all is."""
    look(8, after_s=100.0)
    states = [look(100 + number) for number in range(VERSIONS + 5)]
    assert [one.just_changed for one in states] == [False] * (VERSIONS - 1) + [True] * 6
    assert max(len(one.before) for one in states) == VERSIONS
    last = look(after_s=100.0)
    assert (last.just_changed, last.before) == (False, ())


def test_a_file_that_is_written_to_and_fro_has_two_versions(look: Look) -> None:
    look(8, after_s=100.0)
    for number in range(2 * VERSIONS):
        state = look(16 if number % 2 else 32)
        assert not state.just_changed
    assert sorted(one.limits.slots_max or 0 for one in state.versions) == [8, 16, 16, 32]
