"""The metrics of vertices as numbers: one row of columns per reply, NaN for what cannot be used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from include.domain.quarantine_rules import Rule
from models.arrays import Bools, Floats
from models.observing.metric_columns import USED_AGGREGATIONS, MetricColumns, Metrics, is_read, read_columns
from models.observing.value_rules import (
    NO_RULE,
    SUBTASK_AGGREGATIONS,
    VALUE_RULES,
    MetricValues,
    find_broken_rules,
    is_time,
    is_time_share,
    is_watermark,
)
from models.polling.faults import ReplyError, shorten

_IS_OF_SUBTASK = np.isin(USED_AGGREGATIONS, SUBTASK_AGGREGATIONS)[:, np.newaxis]
MetricReply = list[tuple[str, dict[str, Any]]]
"""Names and metrics of a reply, of those that are read."""


@dataclass(frozen=True, slots=True)
class ValueFault:
    """A value that cannot be used; the rest of its reply can."""

    rule: Rule
    detail: str


def select_metrics(result: object) -> MetricReply | None:
    """Return the metrics of a reply; None when the vertex had none (it is deployed).

    Raises:
        ReplyError: this is no list of metrics with ids.
    """
    if not isinstance(result, list):
        raise ReplyError(Rule.WRONG_TYPE, f"no list of metrics: {shorten(str(result))}")
    named: MetricReply = []
    for metric in result:
        name = metric.get("id") if isinstance(metric, dict) else None
        if not isinstance(name, str):
            raise ReplyError(Rule.WRONG_TYPE, "a metric without an id")
        if is_read(name):
            named.append((name, metric))
    return named if result else None


def read_replies(
    replies: Sequence[MetricReply], max_value: float
) -> tuple[MetricColumns, list[tuple[int, ValueFault]]]:
    """Return the columns of n replies, and what cannot be used, with the numbers of the replies."""
    codes: dict[str, int] = {}
    name = np.array([codes.setdefault(name, len(codes)) for one in replies for name, _ in one], np.int64)
    reply = np.repeat(np.arange(len(replies)), [len(one) for one in replies])
    received = [metric.get(how) for how in USED_AGGREGATIONS for one in replies for _, metric in one]
    names, shape = list(codes), (len(USED_AGGREGATIONS), len(name))
    number, is_given, is_number = _parse_numbers(received)
    shares, times, watermarks = (
        np.array([*map(rule, names)], bool)[name] for rule in (is_time_share, is_time, is_watermark)
    )
    given = (is_given.reshape(shape), is_number.reshape(shape), number.reshape(shape))
    values = MetricValues(shares, times, watermarks, *given, _IS_OF_SUBTASK)
    broken = find_broken_rules(values, max_value)
    faults = [
        (int(reply[at]), ValueFault(VALUE_RULES[broken[how, at]].reason, f"{names[name[at]]}.{text}"))
        for at, how in np.argwhere(broken.T != NO_RULE).tolist()
        for text in (f"{USED_AGGREGATIONS[how]} = {shorten(str(received[how * len(name) + at]))}",)
    ]
    usable = np.where(broken == NO_RULE, values.number, np.nan)
    metrics = Metrics(reply, name, names, dict(zip(USED_AGGREGATIONS, usable, strict=True)))
    return read_columns(metrics, len(replies)), faults


def _parse_numbers(received: list[object]) -> tuple[Floats, Bools, Bools]:
    """Return values as numbers, NaN for what is none; whether each was given; whether it is a number ("NaN" is one)."""
    other = {place: value for place, value in enumerate(received) if type(value) is not float}
    parsed = {place: _parse_number(value) if _is_number(value) else None for place, value in other.items()}
    numbers = received
    if other:
        numbers = list(received)
        for place, one in parsed.items():
            numbers[place] = math.nan if one is None else one
    is_given, is_number = np.ones((2, len(received)), bool)
    is_given[list(other)] = [value is not None for value in other.values()]
    is_number[list(other)] = [one is not None for one in parsed.values()]
    return np.array(numbers, float), is_given, is_number


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
