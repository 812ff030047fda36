"""Times as people type them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cli.questions import moment_or_hour
from fleet.moments import resolve_time

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
def test_an_hour_of_the_day_is_the_last_one_with_its_seconds(text: str, day: int, clock: str) -> None:
    meant = resolve_time(moment_or_hour(text), NOW_S)
    assert (meant.day, meant.strftime("%H:%M:%S")) == (day, clock)
