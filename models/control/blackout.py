"""Blackout windows: a cron expression says when one begins, in a time zone, and a duration how long it lasts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter

from include.settings.cron import check_fields

_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)
_LARGEST_CHANGE = timedelta(hours=3)  # of clocks in one night


@dataclass(frozen=True, slots=True)
class BlackoutPeriod:
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
        try:
            check_fields(self.cron)
        except ValueError:
            raise ValueError(f"blackout: {self.cron!r} is no cron expression; write 0 8 * * 1-5, say") from None
        if not 0 < self.duration_s <= timedelta(days=7).total_seconds():
            raise ValueError(f"blackout: duration_s = {self.duration_s:g} must lie between 0 and a week")

        try:
            self.covers(_SOME_TIME)
        except (CroniterError, ZoneInfoNotFoundError, OSError) as error:
            raise ValueError(f"blackout: {self.cron!r} in {self.time_zone!r} has no times: {error}") from error

    def covers(self, at: datetime) -> bool:
        """Return whether a window is on; ``at`` has a time zone.

        When the clocks change, a window lasts for its duration by the clock on the wall or by the time that passes,
        whichever is longer. One that begins in an hour that comes twice begins twice; one that begins in an hour that
        is left out begins as soon as the clocks have been set.

        >>> working_hours = BlackoutPeriod("0 8 * * 1-5", duration_s=10 * 3600)
        >>> [working_hours.covers(datetime(2026, 11, day, 17, tzinfo=UTC)) for day in (20, 21)]
        [True, False]
        """
        zone, duration = ZoneInfo(self.time_zone), timedelta(seconds=self.duration_s)
        wall = at.astimezone(zone).replace(tzinfo=None)
        # In an hour that comes twice a window may have begun by the time that passes and not yet by the wall.
        times = croniter(self.cron, wall + _LARGEST_CHANGE)
        while (began := times.get_prev(datetime)) > wall - duration - _LARGEST_CHANGE:
            first, second = (began.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
            is_skipped = first.astimezone(zone).replace(tzinfo=None) != began
            if began <= wall and (wall - began < duration or at - first < duration):
                return True
            if not is_skipped and any(timedelta() <= at - instant < duration for instant in (first, second)):
                return True
        return False
