"""Values of replies that may be anything: what is not of the type that is expected, is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.domain.quarantine_rules import Rule
from include.domain.reply_limits import is_time_ms
from models.polling.faults import ReplyError, shorten


def require_object(result: object) -> Mapping[str, Any]:
    """Return an object.

    Raises:
        ReplyError: it is none.
    """
    if not isinstance(result, dict):
        raise ReplyError(Rule.WRONG_TYPE, f"no object: {shorten(str(result))}")
    return result


def object_or_empty(result: object) -> Mapping[str, Any]:
    """Return an object; an empty one for what is none."""
    return result if isinstance(result, dict) else {}


def read_count(value: object) -> int:
    """Return a positive number of something; 0 for what is none."""
    return value if type(value) is int and 1 <= value < 2**31 else 0


def read_time_ms(value: object) -> int | None:
    """Return a time in epoch milliseconds; None for 0 and below, Flink's "never", and for what is no time."""
    return value if is_time_ms(value) else None


def encodable(text: str) -> str:
    """Return a text that can be written as UTF-8: JSON may hold half of a surrogate pair."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
