"""Time zones: by their IANA name, and of moments, of which without one nobody knows which are meant."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator


def check_time_zone(name: str) -> str:
    """Refuse what names no time zone.

    Raises:
        ValueError: with what to write.
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is no IANA time zone; write Europe/Berlin, say") from error
    return name


TimeZone = Annotated[str, AfterValidator(check_time_zone)]


def _check_zone(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise ValueError(f"has no time zone; write {time.isoformat()}Z for UTC, say")
    return time


TimeWithZone = Annotated[datetime, AfterValidator(_check_zone)]
