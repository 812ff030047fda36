"""Times as people type them."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from types import ModuleType

import pytest

from cli import log, restore, status
from cli.arguments import CommandParser, moment

NOW_S = datetime(2026, 11, 28, 20, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "day", "clock"),
    [
        ("19:46", 28, "19:46:00"),
        ("19:46:30", 28, "19:46:30"),
        ("19:46:30Z", 28, "19:46:30"),
        ("19:46 utc", 28, "19:46:00"),
        (" 3:05 ", 28, "03:05:00"),
        ("20:00:01", 27, "20:00:01"),
        ("2026-11-28 19:46", 28, "19:46:00"),
        ("2026-11-27T19:46:30", 27, "19:46:30"),
    ],
)
def test_an_hour_of_the_day_is_the_last_one_with_its_seconds(
    text: str, day: int, clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW_S)
    meant = moment(text)
    assert (meant.day, meant.strftime("%H:%M:%S")) == (day, clock)


@pytest.mark.parametrize(("command", "option"), [(log, "--until"), (restore, "--at"), (status, "--at")])
def test_every_time_that_a_command_takes_may_be_of_the_clock(command: ModuleType, option: str) -> None:
    parser = CommandParser()
    command._add_arguments(parser)
    words = ["--from", "folder"] if command is restore else []
    meant = getattr(parser.parse_args([*words, option, "03:00"]), option.removeprefix("--"))
    assert (meant.hour, meant.minute, meant.tzinfo) == (3, 0, UTC)


@pytest.mark.parametrize("text", ["25:00", "3:60", "24:00"])
def test_a_time_that_no_clock_shows_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"or 03:00 .0:00 to 23:59. for the last one, not '{text}'"):
        moment(text)
