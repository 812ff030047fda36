"""Units of time, times in UTC and half-open intervals of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S
HOUR = timedelta(hours=1)
_CLOCK_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?(?: ?(?:Z|UTC))?", re.IGNORECASE)


class IntervalError(ValueError):
    """A time or an interval that cannot be processed; the message says what to pass instead."""


def parse_utc(text: str) -> datetime:
    """Read an ISO 8601 time; a time without an offset is taken as UTC.

    Raises:
        IntervalError: the text is not an ISO 8601 time.
    """
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError as error:
        raise IntervalError(f"{text!r} is not an ISO 8601 time such as 2026-11-20T18:00:00Z") from error
    return timestamp.replace(tzinfo=UTC) if timestamp.tzinfo is None else timestamp.astimezone(UTC)


def find_last(clock_time: str, now: datetime) -> datetime | None:
    """Return when a clock last showed a time such as ``03:00`` or ``03:00:15 UTC``; None for any other text."""
    if (parts := _CLOCK_TIME.fullmatch(clock_time.strip())) is None:
        return None
    hour, minute, second = (int(part or 0) for part in parts.groups())
    result = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    return result if result <= now else result - timedelta(days=1)


def format_utc(timestamp: datetime) -> str:
    """Write a time as ISO 8601 in UTC with a trailing Z."""
    return timestamp.astimezone(UTC).isoformat().replace("+00:00", "Z")


def floor_hour(timestamp: datetime) -> datetime:
    """Return the full hour at or before a time."""
    return timestamp.replace(minute=0, second=0, microsecond=0)


def floor_day(timestamp: datetime) -> datetime:
    """Return the midnight at or before a time."""
    return timestamp.replace(hour=0, minute=0, second=0, microsecond=0)


def ceil_hour(timestamp: datetime) -> datetime:
    """Return the full hour at or after a time."""
    floor = floor_hour(timestamp)
    return floor if floor == timestamp else floor + HOUR


@dataclass(frozen=True, slots=True)
class Interval:
    """``[start, end)`` in UTC on full hours, the unit that ingestion replaces."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for timestamp in (self.start, self.end):
            if timestamp.tzinfo is None:
                raise IntervalError(f"{timestamp} has no time zone; pass UTC")
            if floor_hour(timestamp) != timestamp:
                raise IntervalError(f"{format_utc(timestamp)} is not on a full hour; ingestion replaces whole hours")
        if self.start >= self.end:
            raise IntervalError(f"start {format_utc(self.start)} is not before end {format_utc(self.end)}")

    @classmethod
    def parse(cls, start: str, end: str) -> Interval:
        """Build an interval from two ISO 8601 texts."""
        return cls(parse_utc(start), parse_utc(end))

    def hours(self) -> Iterator[datetime]:
        """Yield the start of every hour in the interval."""
        timestamp = self.start
        while timestamp < self.end:
            yield timestamp
            timestamp += HOUR
