"""IANA time zones by name."""

from __future__ import annotations

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
