"""The metrics of a vertex as numbers: one row of :data:`COLUMNS` per reply, NaN for what cannot be used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.live.faults import ReplyError, Rule, shorten

# column -> (metric, aggregation over the subtasks)
_METRICS = {
    "in_total": ("numRecordsIn", "sum"),
    "out_total": ("numRecordsOut", "sum"),
    "busy_total_ms": ("accumulateBusyTimeMs", "avg"),
    "busy_max_total_ms": ("accumulateBusyTimeMs", "max"),
    "idle_total_ms": ("accumulateIdleTimeMs", "avg"),
    "backpressured_total_ms": ("accumulateBackPressuredTimeMs", "avg"),
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
COUNTERS = COLUMNS[:6]
GAUGES = COLUMNS[7:]
OPERATOR_METRIC = "pendingRecords"  # of the source operator, so Flink puts the operator's name in front
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


def read_metrics(found: object) -> tuple[list[float], list[ValueFault]] | None:
    """Return the numbers of a reply in the order of :data:`COLUMNS`; None when the vertex had none (it is deployed).

    Limits are not looked at here: see :func:`drop_outside`.

    Raises:
        ReplyError: this is no list of metrics with ids.
    """
    if not isinstance(found, list):
        raise ReplyError(Rule.WRONG_TYPE, f"no list of metrics: {shorten(str(found))}")
    if not found:
        return None
    row: list[object] = list(_NOTHING)
    for metric in reversed(found):  # of two metrics with one id the first counts
        name = metric.get("id") if isinstance(metric, dict) else None
        if not isinstance(name, str):
            raise ReplyError(Rule.WRONG_TYPE, "a metric without an id")
        places = _BY_METRIC.get(name)
        if places is None and name.endswith(f".{OPERATOR_METRIC}"):
            places = _BY_METRIC[OPERATOR_METRIC]
        for place, how in places or ():
            row[place] = metric.get(how)
    faults: list[ValueFault] = []
    if {type(value) for value in row} != {float}:
        row = [value if type(value) is float else _number(place, value, faults) for place, value in enumerate(row)]
    return row, faults  # type: ignore[return-value]


def drop_outside(rows: Floats, max_value: float) -> list[tuple[int, ValueFault]]:
    """Make NaN of every value that is negative or larger than it can be; returns these with the numbers of their rows.

    Args:
        rows: (n, columns) changed in place.
        max_value: the largest value of any metric.
    """
    limits = np.where(_IS_SHARE, min(SHARE_LIMIT_MS, max_value), max_value)
    with np.errstate(invalid="ignore"):
        negative, huge = rows < 0.0, rows > limits
    found = []
    for row, place in zip(*(index.tolist() for index in np.nonzero(negative | huge)), strict=True):
        rule = Rule.VALUE_NEGATIVE if negative[row, place] else Rule.VALUE_HUGE
        found.append((row, ValueFault(rule, _locate(place, f"{rows[row, place]:g}"))))
    rows[negative | huge] = np.nan
    return found


def _number(place: int, value: object, faults: list[ValueFault]) -> float:
    """Return a value that is no float as one; NaN and a fault for no number, but Flink's own "NaN" of a share."""
    if value is None:
        return math.nan
    rule = Rule.WRONG_TYPE
    if isinstance(value, int | str) and not isinstance(value, bool):
        number = _parse_number(value)
        if number is not None and not math.isnan(number):
            return number
        if number is not None:
            rule = Rule.VALUE_NAN
    if rule is not Rule.VALUE_NAN or not _IS_SHARE[place]:
        faults.append(ValueFault(rule, _locate(place, shorten(str(value)))))
    return math.nan


def _parse_number(value: int | str) -> float | None:
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
