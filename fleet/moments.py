"""Times that people ask about: an hour of the day, and when anything of the fleet was last written down."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from fleet.facts import FleetStatus

_HOUR_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?(?: ?(?:Z|UTC))?", re.IGNORECASE)


def is_hour_of_day(text: str) -> bool:
    """Whether a text is an hour of the day, such as ``03:00`` or ``03:00:15 UTC``."""
    return _HOUR_OF_DAY.fullmatch(text.strip()) is not None


def resolve_time(given: datetime | str | None, now_s: float) -> datetime:
    """Return the time that was meant: of an hour of the day (UTC), see :func:`is_hour_of_day`, the last one."""
    now = datetime.fromtimestamp(now_s, UTC)
    if given is None:
        return now
    if isinstance(given, datetime):
        return given
    hour, minute, second = (int(part or 0) for part in _HOUR_OF_DAY.fullmatch(given.strip()).groups())  # type: ignore[union-attr]
    result = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    return result if result <= now else result - timedelta(days=1)


def find_newest(facts: FleetStatus) -> float | None:
    """Return when anything of the fleet was last written down, epoch seconds; None for an empty lake."""
    times = [one.plan_as_of_s for one in facts.clusters]
    times += [one.last_decision.at_s for one in facts.jobs if one.last_decision is not None]
    return max((at_s for at_s in times if at_s is not None), default=None)
