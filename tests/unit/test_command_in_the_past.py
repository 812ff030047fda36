"""The controller's command: a tick in the past is one tick, and whatever else is asked for goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from signal_handlers import restoring_handlers

from controller import command
from controller.view.champion import ChampionReader
from include.settings import SETTINGS_FILE_VARIABLE


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Provide an installation with one cluster that nobody has polled; signals stay the test runner's."""
    file = tmp_path / "settings.toml"
    paths = "\n".join(f'{name} = "{tmp_path}/{name}"' for name in ("lake", "raw", "out"))
    file.write_text(f'[paths]\n{paths}\n[clusters.live]\nrest_url = "http://127.0.0.1:9"\n')
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(file))
    monkeypatch.setattr(ChampionReader, "refresh", lambda _: None)  # there are no models
    with restoring_handlers():
        yield


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("arguments", "runs"), [(["--as-of", "2026-11-20T19:00:00Z"], 0), (["--seconds", "0"], 1), ([], 1)]
)
def test_only_a_tick_in_the_past_is_the_last_one_at_once(
    arguments: list[str], runs: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[object] = []

    def run_ticks(*given: object, **_: object) -> str:
        begun.append(given)
        return ""

    monkeypatch.setattr(command, "run_ticks", run_ticks)
    assert command.main(arguments) == 0
    assert len(begun) == runs
    assert ("2026-11-20T19:00:00Z 0 jobs evaluated" in capsys.readouterr().out) is (not runs)
