"""The controller's command: what it controls, for how long, and what it prints."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from controller_process import read_log
from flink_server import FakeJob, FlinkServer, serving
from signal_handlers import restoring_handlers

from controller import command
from controller.command import run_ticks
from controller.health import ControllerHealth
from controller.tick import Ticker, TickSummary
from include.settings import Settings
from include.utc import format_utc
from lab.commands.history import HistoryRequest, write_history

END = datetime(2026, 11, 20, 19, tzinfo=UTC)


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Settings of an empty installation in a folder of its own; signals stay the test runner's."""
    settings = tmp_path / "tidewise.toml"
    settings.write_text(
        f'[paths]\nraw = "{tmp_path}/raw"\nlake = "{tmp_path}/lake"\nout = "{tmp_path}/out"\n'
        f'[mlflow]\ntracking_uri = "sqlite:///{tmp_path}/mlflow.db"\n'
        "[settings]\nloosen_after_s = 0\n"
    )
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(settings))
    with restoring_handlers():
        yield tmp_path


@pytest.fixture
def fleet(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for cluster in ("east", "west"):
        write_history(HistoryRequest(1, END, world / "raw", cluster, scale_jobs=1, operators=3, window_s=60), workers=1)
    capsys.readouterr()


def test_without_a_cluster_there_is_nothing_to_control(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seconds", "0"]) == 0
    assert "nothing to control" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--cluster", "gone"], ["--as-of", "yesterday"], ["--until", "soon"]])
def test_what_cannot_be_meant_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(arguments) == command.EXIT_USAGE
    assert capsys.readouterr().err.startswith("controller: ")


def test_an_unknown_cluster_is_refused_with_those_that_are_known(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--cluster", "gone"]) == command.EXIT_USAGE
    assert capsys.readouterr().err == "controller: no cluster is called gone; known are none\n"
    with (world / "tidewise.toml").open("a") as settings:
        settings.write('[clusters.live]\nrest_url = "http://127.0.0.1:9"\n')
    assert command.main(["--cluster", "live", "--cluster", "gone"]) == command.EXIT_USAGE
    assert capsys.readouterr().err == "controller: no cluster is called gone; known are live\n"


@pytest.mark.usefixtures("fleet")
def test_a_tick_in_the_past_is_one_of_the_clusters_asked_for(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = END + timedelta(seconds=60)
    assert command.main(["--as-of", format_utc(at), "--cluster", "east"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("controller: 1 clusters, ")
    assert not first.startswith("controller: 1 clusters, 0 replies")
    assert second.startswith(f"controller: {format_utc(at)} 1 job evaluated, 1 seen: ")
    assert {row["cluster"] for row in read_log(world / "lake")} == {"east"}


def test_once_polls_and_makes_one_tick(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(FlinkServer(FakeJob())) as server:
        text = (world / "tidewise.toml").read_text()
        (world / "tidewise.toml").write_text(f'{text}[clusters.live]\nrest_url = "{server.url}"\n')
        assert command.main(["--once"]) == 0
        assert server.requests
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "controller: 1 clusters, 0 replies of the last polls taken up"
    assert " 1 job evaluated, 1 seen: " in lines[1]
    assert len(lines) == 2


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("arguments", [["--until", "2020-01-01T00:00:00Z"], ["--seconds", "0"]])
def test_it_ends_when_its_time_is_over(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(arguments) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1  # no tick was made


@pytest.mark.usefixtures("fleet")
def test_changed_settings_begin_it_anew_until_it_ends(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    runs, later_s, clock = list[tuple[list[str], str, float]](), list[float](), time.time
    monkeypatch.setattr(time, "time", lambda: clock() + sum(later_s))

    def run(ticker: Ticker, settings: Settings, clusters: list[str], until_s: float, **given: Any) -> str:
        """Make two ticks, before the first of which somebody moves the lake."""
        runs.append((clusters, Path(settings.paths.lake).name, until_s))
        if len(runs) == 1:
            file = world / "tidewise.toml"
            file.write_text(file.read_text().replace("/lake", "/moved"))
        for _ in range(2):
            why = given["take"](ticker.tick())
            later_s.append(60.0)
        ticker.close()
        return str(why)

    monkeypatch.setattr(command, "run_ticks", run)
    assert command.main(["--cluster", "east"]) == 0
    assert runs == [(["east"], "lake", math.inf), (["east"], "moved", math.inf)]
    assert capsys.readouterr().out.count("replies of the last polls taken up") == 2
    assert "paths.lake changed" in caplog.text


def test_what_has_ended_is_removed_at_the_first_tick_and_every_hour(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where all begins anew meanwhile."""
    begun_s, removed, runs = END.timestamp(), list[tuple[str, float]](), list[int]()
    clock = [begun_s]
    monkeypatch.setattr(command, "delete_ended", lambda lake, now_s: removed.append((Path(lake).name, now_s - begun_s)))

    def run(ticker: Ticker, settings: Settings, clusters: list[str], until_s: float, **given: Any) -> str:
        runs.append(len(runs))
        for _ in range(3):
            given["take"](TickSummary())
            clock[0] += 1800.0
        return "the settings changed" if len(runs) == 1 else ""

    monkeypatch.setattr(command, "run_ticks", run)
    settings = command.load_anchored()
    ticker = command.start(settings, ["east"], lambda: clock[0])
    health = ControllerHealth(lambda: clock[0], 60.0)
    given: dict[str, Any] = {"asked": ["east"], "clock": lambda: clock[0], "stop": threading.Event(), "health": health}
    command.go_on(ticker, settings, ["east"], math.inf, **given)
    assert len(runs) == 2
    assert removed == [("lake", 0.0), ("lake", 3600.0), ("lake", 7200.0)]


@pytest.mark.parametrize(
    ("summary", "is_shown"),
    [
        (TickSummary(), False),
        (TickSummary(problems={"east": "held"}), False),
        (TickSummary(is_evaluation=True), True),
        (TickSummary(decisions={"leave dry_run": 1}), True),
        (TickSummary(faults=1), True),
    ],
)
def test_a_tick_without_news_is_not_printed(
    summary: TickSummary, is_shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    command.show(summary, END.timestamp())
    assert capsys.readouterr().out == (f"controller: 2026-11-20T19:00:00Z {summary}\n" if is_shown else "")


def test_a_tick_is_told_in_a_line() -> None:
    assert str(TickSummary(3, 2, seconds=0.5)) == "3 jobs followed, 2 seen: nothing to do (0.5 s)"
    assert str(TickSummary(3, 2, alarms=1, seconds=0.5)) == "3 jobs followed, 1 behind, 2 seen: nothing to do (0.5 s)"
    decisions, problems = {"rescale plan": 1, "leave held": 2}, {"b": "slow", "a": "gone"}
    full = TickSummary(3, 2, True, decisions=decisions, faults=4, problems=problems, seconds=1.0)
    assert str(full) == (
        "3 jobs evaluated, 2 seen: 2 leave held, 1 rescale plan; 4 replies not used"
        "; cluster a left alone: gone; cluster b left alone: slow (1.0 s)"
    )


class Impatient(threading.Event):
    """An event that nobody waits for."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


class CountedTicks:
    """Ticks that only are counted."""

    def __init__(self, fail: bool = False) -> None:
        self.count, self.is_closed, self._fail = 0, False, fail

    def tick(self, patience_s: float) -> TickSummary:
        assert patience_s == 5.0
        self.count += 1
        if self._fail and self.count == 1:
            raise OSError("the lake does not answer")
        return TickSummary(jobs=self.count)

    def close(self) -> None:
        self.is_closed = True


def run_counted(ticks: CountedTicks, stop: threading.Event, explain: Callable[[], str] = str) -> tuple[str, list[int]]:
    """Run ticks for 30 s of a clock that goes on by a second at each look; at most 200 of them."""
    at_s, shown = iter(range(1_000_000, 2_000_000)), list[int]()

    def take(summary: TickSummary) -> str:
        shown.append(summary.jobs)
        if len(shown) >= 200:
            stop.set()
        return explain()

    settings = Settings().model_copy(update={"apply": Settings().apply.model_copy(update={"tick_s": 10})})
    why = run_ticks(
        ticks,  # type: ignore[arg-type]
        settings,
        [],
        1_000_000 + 30,
        clock=lambda: next(at_s),
        stop=stop,
        take=take,
    )
    return why, shown


def test_ticks_go_on_until_their_time_is_over() -> None:
    ticks = CountedTicks()
    why, shown = run_counted(ticks, Impatient())
    assert why == ""
    assert 2 <= len(shown) < 30
    assert shown == list(range(1, len(shown) + 1))
    assert ticks.is_closed


def test_ticks_end_when_they_are_stopped() -> None:
    stop = Impatient()
    stop.set()
    ticks = CountedTicks()
    assert run_counted(ticks, stop) == ("", [])
    assert ticks.is_closed


def test_ticks_end_when_all_has_to_begin_anew() -> None:
    ticks = CountedTicks()
    assert run_counted(ticks, Impatient(), lambda: "the lake changed") == ("the lake changed", [1])
    assert ticks.is_closed


def test_a_tick_that_fails_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    ticks = CountedTicks(fail=True)
    why, shown = run_counted(ticks, Impatient())
    assert why == ""
    assert shown[0] == 2
    assert "does not answer" in caplog.text
    assert [one.levelno for one in caplog.records] == [logging.ERROR]
