"""Times, rates and holds as a person reads them, in commands and on the page."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from fleet.facts import HoldFact

_CHANGE = re.compile(r"^\d+ -> \d+ slots?:? ")


def show_time(at_s: float | None, now_s: float) -> str:
    """Return a time as a person reads it: today's without its date."""
    if at_s is None:
        return "-"
    at, now = datetime.fromtimestamp(at_s, UTC), datetime.fromtimestamp(now_s, UTC)
    return f"{at:%H:%M}Z" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}Z"


def show_moment(at_s: float) -> str:
    """Return a time as ``--at`` takes it."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:00Z}"


def show_due(at_s: float | None, now_s: float) -> str:
    """Return when something is due: since when, where its time has passed."""
    return ("due since " if at_s is not None and at_s < now_s else "") + show_time(at_s, now_s)


def show_rate(value: float | None) -> str:
    """Return records per second.

    >>> show_rate(102_400.0), show_rate(12.34), show_rate(None)
    ('102k/s', '12.3/s', '-')
    """
    if value is None:
        return "-"
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}/s"
    return f"{value:.3g}/s"


def split_reason(reason: str) -> tuple[str, str]:
    """Return the short sentence of a reason, without the change of slots that stands beside it, and its details.

    >>> split_reason("23 -> 13 slots: load up to 12k/s, saves 5.0 slot-hours; 3 late minutes expected in 3 h")
    ('load up to 12k/s, saves 5.0 slot-hours', '3 late minutes expected in 3 h')
    """
    head, _, details = reason.partition("; ")
    return _CHANGE.sub("", head), details


def describe_hold(one: HoldFact, now_s: float) -> str:
    """Return a hold with its end."""
    who = {"person": "held", "undo": "undone", "change": "left alone"}.get(one.kind, f"held by the {one.kind}")
    by = f" by {one.by}" if one.by else ""
    until = "until it is released" if one.until_s is None else f"until {show_time(one.until_s, now_s)}"
    reason = f": {one.reason}" if one.reason else ""
    return f"{one.scope} is {who}{by} {until}{reason}"
