"""The metrics of a vertex as numbers: one row of :data:`COLUMNS` per reply, NaN for what cannot be used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from include.domain.quarantine_rules import Rule
from include.flink.source_counters import PENDING_RECORDS, SOURCE_COUNTERS, is_cut, is_source_counter
from models.arrays import Floats
from models.live.faults import ReplyError, shorten


def _of_source(counter: str) -> str:
    return f"<source>.{counter}"


# column -> (metric, aggregation over the subtasks)
_METRICS = {
    "in_total": ("numRecordsIn", "sum"),
    "out_total": ("numRecordsOut", "sum"),
    "busy_total_ms": ("accumulateBusyTimeMs", "avg"),
    "busy_max_total_ms": ("accumulateBusyTimeMs", "max"),
    "idle_total_ms": ("accumulateIdleTimeMs", "avg"),
    "backpressured_total_ms": ("accumulateBackPressuredTimeMs", "avg"),
    "source_in_total": (_of_source("numRecordsIn"), "sum"),
    "source_out_total": (_of_source("numRecordsOut"), "sum"),
    "pending": ("pendingRecords", "sum"),
    "in_gauge_per_s": ("numRecordsInPerSecond", "sum"),
    "out_gauge_per_s": ("numRecordsOutPerSecond", "sum"),
    "busy_gauge_ms": ("busyTimeMsPerSecond", "avg"),
    "busy_gauge_max_ms": ("busyTimeMsPerSecond", "max"),
    "idle_gauge_ms": ("idleTimeMsPerSecond", "avg"),
    "backpressured_gauge_ms": ("backPressuredTimeMsPerSecond", "avg"),
}
COLUMNS = tuple(_METRICS)
PLACE = {column: place for place, column in enumerate(COLUMNS)}
COUNTERS = COLUMNS[:8]
GAUGES = COLUMNS[9:]
_OF_SOURCE = {
    counter: PLACE[column] for counter, column in zip((*SOURCE_COUNTERS, PENDING_RECORDS), COLUMNS[6:9], strict=True)
}
"""Metrics of source operators, so Flink puts the operator's name in front."""
_OF_SUBTASKS = frozenset(metric for metric, _ in list(_METRICS.values())[:6])
_TELLING_MEAN = 100.0  # of a counter over its subtasks: below, rounding may hide how many they are
TIME_SHARES = frozenset({"busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond"})
SHARE_LIMIT_MS = 1050.0  # ms per s of one subtask: Flink overshoots 1000 a little, more cannot be
_BY_METRIC = {
    metric: tuple((place, how) for place, (other, how) in enumerate(_METRICS.values()) if other == metric)
    for metric, _ in _METRICS.values()
}
_IS_SHARE = np.array([metric in TIME_SHARES for metric, _ in _METRICS.values()])
_NOTHING = [math.nan] * len(COLUMNS)


@dataclass(frozen=True, slots=True)
class ValueFault:
    """A value that cannot be used; the rest of its reply can."""

    rule: Rule
    detail: str


def read_metrics(result: object) -> tuple[list[float], list[ValueFault], int | None] | None:
    """Return the numbers of a reply in the order of :data:`COLUMNS`; None when the vertex had none (it is deployed).

    Limits are not looked at here: see :func:`drop_outside`.

    Returns:
        The numbers, what cannot be used, and over how many subtasks the counters were added up; None where no counter
        tells.  Several backlogs of one source, and the counters of several sources of one chain, add up.

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
        if "." in name and name.rpartition(".")[2] in _OF_SOURCE:
            of_sources.append((name, metric.get("sum")))
        elif name in _OF_SUBTASKS:
            subtasks.append(_count_subtasks(metric.get("sum"), metric.get("avg")))
    faults: list[ValueFault] = []
    for place, value in _sum_of_sources(of_sources, faults).items():
        row[place] = value
    if {type(value) for value in row} != {float}:
        row = [value if type(value) is float else _number(place, value, faults) for place, value in enumerate(row)]
    reported = [count for count in subtasks if count is not None]
    return row, faults, min(reported, default=None)  # type: ignore[return-value]


def _count_subtasks(total: object, mean: object) -> int | None:
    """Return over how many subtasks a counter was added up, None where it does not tell."""
    added, average = (_parse_number(value) if _is_number(value) else None for value in (total, mean))
    if added is None or average is None or not _TELLING_MEAN <= average <= added < math.inf:
        return None
    return round(added / average)


def _sum_of_sources(result: list[tuple[str, object]], faults: list[ValueFault]) -> dict[int, float]:
    """Return place -> sum over the source operators; NaN where one of them cannot be told or read.

    Args:
        result: metrics with an operator's name in front, the first of a reply last.
        faults: those that cannot be read are added.
    """
    sums = dict[int, float]()
    for counter, place in _OF_SOURCE.items():
        is_backlog = counter == PENDING_RECORDS
        meant = [
            (name, value)
            for name, value in result
            if (name.endswith(f".{counter}") if is_backlog else is_source_counter(name, counter))
        ]
        values = {name: value if type(value) is float else _number(place, value, faults) for name, value in meant}
        if not values:
            continue
        is_mixed = not is_backlog and (len(values) < len(meant) or any(map(is_cut, values)))
        sums[place] = math.nan if is_mixed else sum(values.values())
    return sums


def drop_outside(rows: Floats, max_value: float) -> list[tuple[int, ValueFault]]:
    """Make NaN of every value that is negative or larger than it can be; returns these with the numbers of their rows.

    Args:
        rows: (n, columns) changed in place.
        max_value: the largest value of any metric.
    """
    limits = np.where(_IS_SHARE, min(SHARE_LIMIT_MS, max_value), max_value)
    with np.errstate(invalid="ignore"):
        negative, huge = rows < 0.0, rows > limits
    result = []
    for row, place in zip(*(index.tolist() for index in np.nonzero(negative | huge)), strict=True):
        rule = Rule.VALUE_NEGATIVE if negative[row, place] else Rule.VALUE_HUGE
        result.append((row, ValueFault(rule, _locate(place, f"{rows[row, place]:g}"))))
    rows[negative | huge] = np.nan
    return result


def _number(place: int, value: object, faults: list[ValueFault]) -> float:
    """Return a value that is no float as one; NaN and a fault for no number, but Flink's own "NaN" of a share."""
    if value is None:
        return math.nan
    rule = Rule.WRONG_TYPE
    if _is_number(value):
        number = _parse_number(value)
        if number is not None and not math.isnan(number):
            return number
        if number is not None:
            rule = Rule.VALUE_NAN
    if rule is not Rule.VALUE_NAN or not _IS_SHARE[place]:
        faults.append(ValueFault(rule, _locate(place, shorten(str(value)))))
    return math.nan


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


def _locate(place: int, text: str) -> str:
    metric, how = _METRICS[COLUMNS[place]]
    return f"{metric}.{how} = {text}"


def values_of(rows: Sequence[Sequence[float]]) -> Floats:
    """Return (n, columns) of rows of :func:`read_metrics`."""
    return np.array(rows, float).reshape(len(rows), len(COLUMNS))
