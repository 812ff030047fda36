"""Cron expressions as Quartz writes them: second, minute, hour, day of month, month, day of week, and maybe year.

Own code, since croniter counts Sunday as 0 where Quartz counts it as 1, and has no ``L-n``, ``LW`` and ``nL``.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

_MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
# Quartz counts from Sunday = 1.
_WEEKDAYS = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), start=1)}

Matcher = Callable[[datetime], bool]


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: dict[str, int]

    def number(self, text: str) -> int:
        value = self.names.get(text.upper())
        if value is None:
            value = int(text)
        if not self.low <= value <= self.high:
            raise ValueError(f"{text!r} is no {self.name} ({self.low}..{self.high})")
        return value

    def span(self, first: int, last: int, step: int = 1) -> set[int]:
        """Return first, first + step, ..., last; over the end of the field when last is below first."""
        if step < 1:
            raise ValueError(f"a step of {step} in {self.name}")
        size = self.high - self.low + 1
        end = last if last >= first else last + size
        return {(value - self.low) % size + self.low for value in range(first, end + 1, step)}

    def values(self, text: str) -> set[int]:
        """Return what one part of a list allows: ``*``, ``a``, ``a-b``, or one of these followed by ``/step``."""
        base, _, step = text.partition("/")
        by = int(step) if step else 1
        if base in {"*", "?"}:
            return self.span(self.low, self.high, by)
        first, _, last = base.partition("-")
        if last:
            return self.span(self.number(first), self.number(last), by)
        return self.span(self.number(first), self.high if step else self.number(first), by)


_FIELDS = (
    (_Field("second", 0, 59, {}), lambda at: at.second),
    (_Field("minute", 0, 59, {}), lambda at: at.minute),
    (_Field("hour", 0, 23, {}), lambda at: at.hour),
    (_Field("day of month", 1, 31, {}), lambda at: at.day),
    (_Field("month", 1, 12, _MONTHS), lambda at: at.month),
    (_Field("day of week", 1, 7, _WEEKDAYS), lambda at: at.isoweekday() % 7 + 1),
    (_Field("year", 1970, 2199, {}), lambda at: at.year),
)


def parse(expression: str) -> Matcher:
    """Return a function that tests whether a time satisfies an expression.

    Understood are ``*``, ``?``, numbers, names, lists, ranges, steps, ``L``, ``L-n``, ``nW`` and ``LW`` in the day of
    month, ``nL`` and ``n#k`` in the day of week.

    Raises:
        ValueError: not such an expression.
    """
    parts = expression.upper().split()
    if len(parts) not in {6, 7} or "?" not in (parts[3], parts[5]):
        raise ValueError(f"{expression!r} is no cron expression: 6 or 7 fields, '?' in one of the two day fields")
    matchers = [_matcher(field, read, text) for (field, read), text in zip(_FIELDS, parts, strict=False) if text != "?"]
    return lambda at: all(matches(at) for matches in matchers)


def _matcher(field: _Field, read: Callable[[datetime], int], text: str) -> Matcher:
    plain: set[int] = set()
    special: list[Matcher] = []
    for part in text.split(","):
        result = _day_of_month(part) if field.name == "day of month" else None
        result = _day_of_week(field, part) if field.name == "day of week" else result
        if result is not None:
            special.append(result)
        else:
            plain |= field.values(part)
    return lambda at: read(at) in plain or any(matches(at) for matches in special)


def _last_day(at: datetime) -> int:
    return calendar.monthrange(at.year, at.month)[1]


def _weekday_near(at: datetime, day: int) -> int:
    """Return the day of the month, Monday to Friday, that is nearest to a day and in the same month."""
    last = _last_day(at)
    wanted = min(day, last)
    weekday = at.replace(day=wanted).isoweekday()
    if weekday == 6:
        return wanted - 1 if wanted > 1 else wanted + 2
    if weekday == 7:
        return wanted + 1 if wanted < last else wanted - 2
    return wanted


def _day_of_month(text: str) -> Matcher | None:
    if text == "L":
        return lambda at: at.day == _last_day(at)
    if text == "LW":
        return lambda at: at.day == _weekday_near(at, _last_day(at))
    if text.startswith("L-"):
        before = int(text[2:])
        return lambda at: at.day == _last_day(at) - before
    if text.endswith("W"):
        day = int(text[:-1])
        return lambda at: day <= _last_day(at) and at.day == _weekday_near(at, day)
    return None


def _day_of_week(field: _Field, text: str) -> Matcher | None:
    def on(at: datetime) -> int:
        return at.isoweekday() % 7 + 1

    if text == "L":
        return lambda at: on(at) == 7
    if text.endswith("L"):
        last = field.number(text[:-1])
        return lambda at: on(at) == last and at.day > _last_day(at) - 7
    if "#" in text:
        name, _, nth = text.partition("#")
        day, week = field.number(name), int(nth)
        return lambda at: on(at) == day and (at.day - 1) // 7 + 1 == week
    return None
