"""Blackout windows: a cron expression says when one begins, in a time zone, and a duration how long it lasts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter

_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Blackout:
    """Times in which nothing is sent.

    Attributes:
        cron: five fields, when a window begins.
        duration_s: how long it lasts.
        time_zone: IANA name, whose wall clock the cron expression follows.

    Raises:
        ValueError: the cron expression, the duration or the time zone cannot be used.
    """

    cron: str
    duration_s: float
    time_zone: str = "UTC"

    def __post_init__(self) -> None:
        if not croniter.is_valid(self.cron):
            raise ValueError(f"blackout: {self.cron!r} is no cron expression; write 0 8 * * 1-5, say")
        if not 0 < self.duration_s <= timedelta(days=7).total_seconds():
            raise ValueError(f"blackout: duration_s = {self.duration_s:g} must lie between 0 and a week")

        try:
            self.covers(_SOME_TIME)
        except (CroniterError, ZoneInfoNotFoundError, OSError) as error:
            raise ValueError(f"blackout: {self.cron!r} in {self.time_zone!r} has no times: {error}") from error

    def covers(self, at: datetime) -> bool:
        """Return whether a window is on; ``at`` has a time zone.

        When the clocks change, a window lasts for its duration by the clock on the wall or by the time that passes,
        whichever is longer.
        """
        local = at.astimezone(ZoneInfo(self.time_zone))
        began: datetime = croniter(self.cron, local + timedelta(seconds=1)).get_prev(datetime)
        by_the_wall = local.replace(tzinfo=None) - began.replace(tzinfo=None)
        passed = at.astimezone(UTC) - began.astimezone(UTC)
        return min(by_the_wall, passed).total_seconds() < self.duration_s
