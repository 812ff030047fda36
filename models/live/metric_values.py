"""The metrics of a vertex as numbers: one row of :data:`COLUMNS` per reply, NaN for what cannot be used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from include.domain.quarantine_rules import Rule
from include.flink.source_counters import PENDING_RECORDS, is_cut, is_source_counter
from models.arrays import Bools, Floats
from models.live.faults import ReplyError, shorten
from models.observing.metric_table import COLUMNS, PLACE, SOURCE_METRICS, SUBTASK_COUNTERS, TASK_METRICS, TELLING_MEAN
from models.observing.value_rules import (
    NO_RULE,
    SUBTASK_AGGREGATIONS,
    TIME_SHARES,
    VALUE_RULES,
    Values,
    find_broken_rules,
)

_METRICS = TASK_METRICS | {column: (f"<source>.{name}", how) for column, (name, how) in SOURCE_METRICS.items()}
_BY_METRIC = {
    metric: tuple((PLACE[column], how) for column, (other, how) in TASK_METRICS.items() if other == metric)
    for metric, _ in TASK_METRICS.values()
}
_OF_SOURCE = {counter: PLACE[column] for column, (counter, _) in SOURCE_METRICS.items()}
_IS_SHARE = np.array([_METRICS[column][0] in TIME_SHARES for column in COLUMNS])
_IS_OF_SUBTASK = np.array([_METRICS[column][1] in SUBTASK_AGGREGATIONS for column in COLUMNS])
_COUNTED_BY_SUBTASKS = frozenset(SUBTASK_COUNTERS)
_NOTHING = [math.nan] * len(COLUMNS)


@dataclass(frozen=True, slots=True)
class ValueFault:
    """A value that cannot be used; the rest of its reply can."""

    rule: Rule
    detail: str


@dataclass(frozen=True, slots=True)
class MetricReply:
    """The metrics of one reply as received.

    Attributes:
        values: in the order of :data:`COLUMNS`, NaN for what is missing, and of a source's operators.
        of_sources: (place, value) of each of a source's operators: their sum counts.
        mixed: places where such operators cannot be told apart.
        subtasks: over how many subtasks the counters were added up; None where no counter tells.
    """

    values: list[object]
    of_sources: list[tuple[int, object]]
    mixed: list[int]
    subtasks: int | None


def read_metrics(result: object) -> MetricReply | None:
    """Return the metrics of a reply; None when the vertex had none (it is deployed).

    What can be used of them is told by :func:`check_replies`.

    Raises:
        ReplyError: this is no list of metrics with ids.
    """
    if not isinstance(result, list):
        raise ReplyError(Rule.WRONG_TYPE, f"no list of metrics: {shorten(str(result))}")
    if not result:
        return None
    row: list[object] = list(_NOTHING)
    of_sources, subtasks = list[tuple[str, object]](), list[int | None]()
    for metric in reversed(result):  # of two metrics with one id the first counts
        name = metric.get("id") if isinstance(metric, dict) else None
        if not isinstance(name, str):
            raise ReplyError(Rule.WRONG_TYPE, "a metric without an id")
        for place, how in _BY_METRIC.get(name, ()):
            row[place] = metric.get(how)
        if name == PENDING_RECORDS or ("." in name and name.rpartition(".")[2] in _OF_SOURCE):
            of_sources.append((name, metric.get("sum")))
        elif name in _COUNTED_BY_SUBTASKS:
            subtasks.append(_count_subtasks(metric.get("sum"), metric.get("avg")))
    parts, mixed = _find_parts(of_sources)
    return MetricReply(row, parts, mixed, min((count for count in subtasks if count is not None), default=None))


def _count_subtasks(total: object, mean: object) -> int | None:
    """Return over how many subtasks a counter was added up, None where it does not tell."""
    added, average = (_parse_number(value) if _is_number(value) else None for value in (total, mean))
    if added is None or average is None or not TELLING_MEAN <= average <= added < math.inf:
        return None
    return round(added / average)


def _find_parts(result: list[tuple[str, object]]) -> tuple[list[tuple[int, object]], list[int]]:
    """Return (place, value) of each of a source's operators, and the places where one of them cannot be told.

    Args:
        result: metrics with an operator's name in front, the first of a reply last.
    """
    parts, mixed = list[tuple[int, object]](), list[int]()
    for counter, place in _OF_SOURCE.items() if result else ():
        is_backlog = counter == PENDING_RECORDS
        meant = [
            (name, value)
            for name, value in result
            if (f".{name}".endswith(f".{counter}") if is_backlog else is_source_counter(name, counter))
        ]
        values = dict(meant)
        parts += [(place, value) for value in values.values()]
        if not is_backlog and (len(values) < len(meant) or any(map(is_cut, values))):
            mixed.append(place)
    return parts, mixed


def check_replies(replies: Sequence[MetricReply], max_value: float) -> tuple[Floats, list[tuple[int, ValueFault]]]:
    """Return (n, columns) the numbers of n replies, and what cannot be used, with the numbers of the replies.

    Args:
        replies: n of them.
        max_value: the largest value of any metric.
    """
    parts = [(row, place, value) for row, one in enumerate(replies) for place, value in one.of_sources]
    received = [value for one in replies for value in one.values] + [value for _, _, value in parts]
    count, width = len(replies), len(COLUMNS)
    row = np.concatenate((np.repeat(np.arange(count), width), np.array([row for row, _, _ in parts], np.int64)))
    place = np.concatenate((np.tile(np.arange(width), count), np.array([place for _, place, _ in parts], np.int64)))
    number, is_given, is_number = _parse_numbers(received)
    values = Values(_IS_SHARE[place], is_given, is_number, number, _IS_OF_SUBTASK[place])
    broken = find_broken_rules(values, max_value)
    faults = [
        (int(row[one]), ValueFault(VALUE_RULES[broken[one]].reason, _locate(int(place[one]), received[one])))
        for one in np.flatnonzero(broken != NO_RULE).tolist()
    ]
    number = np.where(broken == NO_RULE, number, np.nan)
    result = number[: count * width]
    if parts:
        cell = (row * width + place)[count * width :]
        total = np.bincount(cell, weights=number[count * width :], minlength=len(result))
        result = np.where(np.bincount(cell, minlength=len(result)) > 0, total, result)
    result[[number * width + one for number, reply in enumerate(replies) for one in reply.mixed]] = np.nan
    return result.reshape(count, width), faults


def _parse_numbers(received: list[object]) -> tuple[Floats, Bools, Bools]:
    """Return values as numbers, NaN for what is none; whether each was given; whether it is a number ("NaN" is one)."""
    if set(map(type, received)) <= {float}:
        number = np.array(received, float)
        is_given = ~np.isnan(number)
        return number, is_given, is_given
    other = {place: value for place, value in enumerate(received) if type(value) is not float}
    parsed = {place: _parse_number(value) if _is_number(value) else None for place, value in other.items()}
    numbers = list(received)
    for place, one in parsed.items():
        numbers[place] = math.nan if one is None else one
    number = np.array(numbers, float)
    is_given, is_number = ~np.isnan(number), ~np.isnan(number)
    is_given[list(other)] = [value is not None for value in other.values()]
    is_number[list(other)] = [one is not None for one in parsed.values()]
    return number, is_given, is_number


def _is_number(value: object) -> TypeGuard[float | str]:
    """Whether a value may be a number: Flink gives decimals, other writers integers or texts."""
    return isinstance(value, float | int | str) and not isinstance(value, bool)


def _parse_number(value: float | str) -> float | None:
    """Return a number, None where this is none."""
    try:
        return None if isinstance(value, str) and "_" in value else float(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return None


def _locate(place: int, value: object) -> str:
    metric, how = _METRICS[COLUMNS[place]]
    return f"{metric}.{how} = {shorten(str(value))}"
