"""Moments with a time zone: without one nobody knows which moment is meant."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator


def _check_zone(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise ValueError(f"has no time zone; write {time.isoformat()}Z for UTC, say")
    return time


TimeWithZone = Annotated[datetime, AfterValidator(_check_zone)]
