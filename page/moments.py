"""Times in addresses."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import HTTPException

from include.utc import find_last, parse_utc


def read_moment(text: str, now_s: float) -> float | None:
    """Return a time of an address, epoch seconds: ``03:00``, or ISO 8601; None for an empty one.

    Raises:
        HTTPException: it is neither.
    """
    if not text:
        return None
    if (last := find_last(text, datetime.fromtimestamp(now_s, UTC))) is not None:
        return last.timestamp()
    try:
        return parse_utc(text if text[-1:] in "Zz" or "+" in text else f"{text}Z").timestamp()
    except ValueError as error:
        raise HTTPException(
            422, f"expected a time such as 03:00 or 2026-11-20T18:00:00Z (UTC), not {text[:80]!r}"
        ) from error
