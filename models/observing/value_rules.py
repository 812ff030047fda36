"""The rules that values of metrics have to meet, and the one evaluator that applies them.

Pure NumPy: it is given typed values and does not know whether Arrow or Spark read them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from include.domain.quarantine_rules import Rule
from include.flink.endpoints import INPUT_WATERMARK

Flags = npt.NDArray[np.bool_]

AGGREGATIONS = ("min", "max", "avg", "sum", "skew")
SUBTASK_AGGREGATIONS = ("min", "max", "avg")  # in the metric's own unit; of a time share they are ms per s
TIME_SHARES = ("busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond")
TIMES = (*TIME_SHARES, "accumulateBusyTimeMs", "accumulateIdleTimeMs", "accumulateBackPressuredTimeMs")
_IS_OF_SUBTASK = np.isin(AGGREGATIONS, SUBTASK_AGGREGATIONS)[:, np.newaxis]
_IS_MEAN = np.isin(AGGREGATIONS, "avg")[:, np.newaxis]
SHARE_LIMIT_MS = 1050.0  # ms per s of one subtask: Flink overshoots 1000 a little, more cannot be
NO_RULE = -1
"""Stands for a value that breaks no rule."""


class MetricScope(StrEnum):
    """For which values a rule holds."""

    ALL = "every value"
    OTHER_METRICS = "metrics other than times"
    NO_WATERMARKS = "metrics other than watermarks, of which Flink has the least and the largest long"
    SUBTASK_SHARES = "least, largest and mean time share of a subtask"


@dataclass(frozen=True, slots=True)
class MetricValues:
    """Values of many metrics: a row for each of ``AGGREGATIONS``, a column for each metric, or of any one shape.

    Attributes:
        is_share, is_time, is_watermark: whether the metric is a time share, any time of a task, or a watermark; one
            flag per column.
        is_given: whether anything was received.
        is_number: whether a number was read; NaN counts as one.
        number: the number, NaN where there is none.
        is_of_subtask: whether the value is of one subtask; by the rows when they are not given.
    """

    is_share: Flags
    is_time: Flags
    is_watermark: Flags
    is_given: Flags
    is_number: Flags
    number: npt.NDArray[np.float64]
    is_of_subtask: Flags = field(default_factory=lambda: _IS_OF_SUBTASK)

    def are_in(self, scope: MetricScope) -> Flags:
        """Whether each value is among those of a scope."""
        match scope:
            case MetricScope.ALL:
                return np.ones(1, dtype=np.bool_)
            case MetricScope.OTHER_METRICS:
                return ~self.is_time
            case MetricScope.NO_WATERMARKS:
                return ~self.is_watermark
            case MetricScope.SUBTASK_SHARES:
                return self.is_share & self.is_of_subtask

    @property
    def are_not_measured(self) -> Flags:
        """Whether each value is a time that Flink did not measure: one for its five aggregations."""
        return self.is_time & _IS_MEAN & self.is_number & np.isnan(self.number)


@dataclass(frozen=True, slots=True)
class ValueRule:
    """One rule.

    Attributes:
        reason: its name in ops.quarantine.
        scope: for which values it holds.
        condition: whether each value breaks it, given the largest value of any metric (setting ``max_value``).
    """

    reason: Rule
    scope: MetricScope
    condition: Callable[[MetricValues, float], Flags]


VALUE_RULES = (
    ValueRule(Rule.WRONG_TYPE, MetricScope.ALL, lambda values, _: values.is_given & ~values.is_number),
    # A NaN time is none that Flink measured, as of a task that initialises: no fault.
    ValueRule(Rule.VALUE_NAN, MetricScope.OTHER_METRICS, lambda values, _: values.is_number & np.isnan(values.number)),
    ValueRule(Rule.VALUE_NEGATIVE, MetricScope.NO_WATERMARKS, lambda values, _: values.number < 0.0),
    ValueRule(Rule.VALUE_HUGE, MetricScope.NO_WATERMARKS, lambda values, max_value: values.number > max_value),
    ValueRule(Rule.VALUE_HUGE, MetricScope.SUBTASK_SHARES, lambda values, _: values.number > SHARE_LIMIT_MS),
)
"""In order: the first rule that a value breaks gives the reason."""


def is_time_share(metric: str | None) -> bool:
    """Whether a metric is a time share; an operator may stand before its name (``Source__x.busyTimeMsPerSecond``)."""
    return metric is not None and metric.rpartition(".")[2] in TIME_SHARES


def is_time(metric: str | None) -> bool:
    """Whether a metric is a time share, or the time of a task so far."""
    return metric is not None and metric.rpartition(".")[2] in TIMES


def is_watermark(metric: str | None) -> bool:
    """Whether a metric is the watermark of a task's input."""
    return metric == INPUT_WATERMARK


def find_broken_rules(values: MetricValues, max_value: float) -> npt.NDArray[np.int8]:
    """Return for each value the place in ``VALUE_RULES`` of the first rule that it breaks, ``NO_RULE`` without one."""
    result = np.full(values.number.shape, NO_RULE, dtype=np.int8)
    for place, rule in reversed(list(enumerate(VALUE_RULES))):
        is_broken = rule.condition(values, max_value)
        if is_broken.any():  # seldom
            result[is_broken & values.are_in(rule.scope)] = place
    return result
