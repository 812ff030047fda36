"""Times of a day or week in which nothing is scaled: spans of hours and cron expressions."""

from __future__ import annotations

import re
from datetime import datetime, time

from lab.policies.flink_autoscaler.cron import Matcher, parse
from lab.policies.flink_autoscaler.options import ConfigError

_DAILY = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?::(\d{3}))?)?")


def in_period(period: str, at: datetime) -> bool:
    """Return whether a time (UTC) is in a period such as ``09:00-17:00 && * * * ? * MON-FRI``.

    Raises:
        ConfigError: neither a span of hours, nor a cron expression, nor one of each joined by ``&&``.
    """
    return all(matches(at) for matches in _matchers(period))


def _matchers(period: str) -> list[Matcher]:
    parts = [part.strip() for part in period.split("&&")]
    daily = [_daily(part) for part in parts]
    result = [hours or _cron(part, period) for hours, part in zip(daily, parts, strict=True)]
    if len(parts) > 2 or (len(parts) == 2 and sum(hours is not None for hours in daily) != 1):
        raise ConfigError(
            f"excluded period {period!r} must be a span of hours, a cron expression, or one '&&' the other"
        )
    return result


def _cron(part: str, period: str) -> Matcher:
    try:
        return parse(part)
    except ValueError as error:
        raise ConfigError(f"excluded period {period!r} is neither 'HH:MM-HH:MM' nor cron: {error}") from None


def _daily(text: str) -> Matcher | None:
    ends = [_DAILY.fullmatch(part.strip()) for part in text.split("-")]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    first, last = _time(ends[0], text), _time(ends[1], text)
    if last <= first:
        raise ConfigError(f"excluded period {text!r} must end after it begins, on the same day")
    return lambda at: first <= at.time() <= last


def _time(result: re.Match[str], text: str) -> time:
    hour, minute, second, milli = (int(part or 0) for part in result.groups())
    try:
        return time(hour, minute, second, milli * 1000)
    except ValueError as error:
        raise ConfigError(f"excluded period {text!r}: {error}") from None
