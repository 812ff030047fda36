"""Cron expressions as Airflow's timetables read them, and the intervals between their times."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice, pairwise

from croniter import CroniterBadDateError, CroniterError, croniter

_FROM = datetime(2024, 1, 1, tzinfo=UTC)
_TIMES = 65  # more than an hour of minutes
_FIELDS = 5
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WORDS = frozenset({*_MONTHS, "mon", "tue", "wed", "thu", "fri", "sat", "sun", "l"})


def check_fields(cron: str) -> None:
    """Refuse what has not five fields of fixed times.

    Raises:
        ValueError: why.
    """
    fields = cron.split()
    if len(fields) != _FIELDS:
        raise ValueError(f"has {len(fields)} fields, not five: minute, hour, day, month, weekday")
    made_up = sorted({word for word in re.findall("[a-z]+", cron.lower()) if word not in _WORDS})
    if made_up:
        # croniter takes H and R for times of its own choice, R for others at each look.
        raise ValueError(f"{made_up[0].upper()!r} is no fixed time")
    if not croniter.is_valid(cron):
        raise ValueError("is no cron expression")


@lru_cache(maxsize=64)
def _intervals_s(cron: str) -> Counter[int]:
    check_fields(cron)
    try:
        times = croniter(cron, _FROM, ret_type=float)
        return Counter(round(after - before) for before, after in pairwise(islice(times, _TIMES)))
    except CroniterBadDateError as error:
        raise ValueError("names a time that never comes") from error
    except (CroniterError, ValueError, KeyError, IndexError) as error:
        raise ValueError("is no cron expression") from error


def interval_s(cron: str) -> int:
    """Return the most frequent interval between a cron expression's times, s.

    Raises:
        ValueError: it is none with five fields, or its time never comes.
    """
    return _intervals_s(cron).most_common(1)[0][0]


def shortest_interval_s(cron: str) -> int:
    """Return the shortest interval between a cron expression's times, s; raises as :func:`interval_s`."""
    return min(_intervals_s(cron))


def longest_interval_s(cron: str) -> int:
    """Return the longest interval between a cron expression's times, s; raises as :func:`interval_s`."""
    return max(_intervals_s(cron))


def check_cron(cron: str) -> str:
    """Refuse what no timetable of Airflow can follow.

    Raises:
        ValueError: with what to write.
    """
    try:
        interval_s(cron)
    except ValueError as error:
        raise ValueError(f'{error}; write "*/5 * * * *" for every five minutes, say') from error
    return cron
