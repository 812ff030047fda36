"""Times in addresses."""

from __future__ import annotations

from fastapi import HTTPException

from fleet.moments import is_hour_of_day, resolve_time
from include.utc import parse_utc


def read_moment(text: str, now_s: float) -> float | None:
    """Return a time of an address, epoch seconds: ``03:00``, or ISO 8601; None for an empty one.

    Raises:
        HTTPException: it is neither.
    """
    if not text:
        return None
    if is_hour_of_day(text):
        return resolve_time(text, now_s).timestamp()
    try:
        return parse_utc(text if text[-1:] in "Zz" or "+" in text else f"{text}Z").timestamp()
    except ValueError as error:
        raise HTTPException(
            422, f"expected a time such as 03:00 or 2026-11-20T18:00:00Z (UTC), not {text[:80]!r}"
        ) from error
