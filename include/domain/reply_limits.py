"""What ids, times and statuses of replies may be, for ingestion, the controller and whoever asks a cluster."""

from __future__ import annotations

import re
from typing import TypeGuard

HEX_ID = "^[0-9a-f]{32}$"
"""Flink's id of a job or vertex, as a pattern for Spark and Arrow."""
HTTP_OK = 200
EARLIEST_MS = 946_684_800_000
"""The year 2000: no job has run for longer, and a time in seconds that is taken for milliseconds lies before it."""
LAST_MS = 253_402_300_799_999
"""The end of the year 9999, epoch milliseconds: beyond it no timestamp can be built."""
_HEX_DIGITS = re.compile(HEX_ID.strip("^$"))


def is_hex_id(value: object) -> TypeGuard[str]:
    """Whether a value can be Flink's id of a job or vertex.

    >>> is_hex_id("0a" * 16), is_hex_id("0A" * 16), is_hex_id("0a" * 16 + chr(10)), is_hex_id(None)
    (True, False, False, False)
    """
    return isinstance(value, str) and _HEX_DIGITS.fullmatch(value) is not None


def is_time_ms(value: object) -> TypeGuard[int]:
    """Whether a value of a reply can be a time, epoch milliseconds; 0 and below are Flink's "never".

    >>> is_time_ms(EARLIEST_MS), is_time_ms(0), is_time_ms(True), is_time_ms(1.5), is_time_ms(LAST_MS + 1)
    (True, False, False, False, False)
    """
    return type(value) is int and 0 < value <= LAST_MS
