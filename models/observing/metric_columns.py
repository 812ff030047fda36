"""The metrics of replies to columns of samples: found by their names, those of a source's operators added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from include.flink.source_counters import PENDING_RECORDS, is_cut, is_source_counter
from models.arrays import Bools, Floats, Ints
from models.observing.metric_table import COLUMNS, PLACE, SOURCE_METRICS, SUBTASK_COUNTERS, TASK_METRICS, TELLING_MEAN

USED_AGGREGATIONS = ("min", "max", "avg", "sum")
_TASK_NAMES = frozenset(metric for metric, _ in TASK_METRICS.values())
_SOURCE_NAMES = frozenset(metric for metric, _ in SOURCE_METRICS.values())


@dataclass(frozen=True, slots=True)
class Metrics:
    """All m metrics of n replies.

    Attributes:
        reply: (m,) number of the reply, ascending; those of a reply in the order in which they were received.
        name: (m,) place of its name in ``names``.
        names: distinct names.
        values: aggregation over the subtasks, of ``USED_AGGREGATIONS`` -> (m,) numbers, NaN for what cannot be used.
    """

    reply: Ints
    name: Ints
    names: Sequence[str]
    values: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class MetricColumns:
    """What n replies hold.

    Attributes:
        values: (columns, n) by :data:`models.observing.metric_table.COLUMNS`, NaN for what is not known.
        subtasks: (n,) over how many subtasks the counters were added up, NaN where none tells.
    """

    values: Floats
    subtasks: Floats


def is_read(name: str) -> bool:
    """Whether a metric is of any use here."""
    return name in _TASK_NAMES or name.rpartition(".")[2] in _SOURCE_NAMES


def read_columns(metrics: Metrics, replies: int) -> MetricColumns:
    """Return the columns of ``replies`` replies: of two metrics with one id in a reply the first counts."""
    result = np.full((len(COLUMNS), replies), np.nan)
    for column, (metric, how) in TASK_METRICS.items():
        result[PLACE[column]] = _pick(metrics, metric, how, replies)
    for column, (metric, how) in SOURCE_METRICS.items():
        result[PLACE[column]] = _add_up(metrics, metric, how, replies)
    subtasks = np.full(replies, np.nan)
    for metric in SUBTASK_COUNTERS:
        total, mean = (_pick(metrics, metric, how, replies) for how in ("sum", "avg"))
        subtasks = np.fmin(subtasks, _count_subtasks(total, mean))
    return MetricColumns(result, subtasks)


def _pick(metrics: Metrics, metric: str, how: str, replies: int) -> Floats:
    """Return (replies,) an aggregation of the metric of a name, NaN without it."""
    result = np.full(replies, np.nan)
    if metric in metrics.names:
        place = np.flatnonzero(metrics.name == metrics.names.index(metric))[::-1]  # the last that is set stays
        result[metrics.reply[place]] = metrics.values[how][place]
    return result


def _add_up(metrics: Metrics, metric: str, how: str, replies: int) -> Floats:
    """Return (replies,) the sum over a source's operators, NaN where one of them is not known or cannot be told.

    A backlog counts whatever stands before its name; of counters, those of two operators of one name are mixed.
    """
    is_backlog = metric == PENDING_RECORDS
    is_part = np.array([_is_part(name, metric) for name in metrics.names], bool)
    place = np.flatnonzero(is_part[metrics.name]) if is_part.any() else np.zeros(0, np.int64)
    reply, name = metrics.reply[place], metrics.name[place]
    _, first = np.unique(reply * len(is_part) + name, return_index=True)
    first.sort()
    total = np.asarray(np.bincount(reply[first], metrics.values[how][place[first]], minlength=replies), np.float64)
    count = np.bincount(reply[first], minlength=replies)
    if is_backlog:
        return np.where(count > 0, total, np.nan)
    is_mixed = np.bincount(reply, minlength=replies) > count
    is_mixed[reply[_find_cut(metrics.names, is_part)[name]]] = True
    return np.where((count > 0) & ~is_mixed, total, np.nan)


def _is_part(name: str, metric: str) -> bool:
    return f".{name}".endswith(f".{metric}") if metric == PENDING_RECORDS else is_source_counter(name, metric)


def _find_cut(names: Sequence[str], is_part: Bools) -> Bools:
    """Return (names,) whether a source's operator may stand for another one, too."""
    return np.array([part and is_cut(name) for name, part in zip(names, is_part.tolist(), strict=True)], bool)


def _count_subtasks(total: Floats, mean: Floats) -> Floats:
    """Return (n,) over how many subtasks a counter was added up, NaN where it does not tell."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(mean >= TELLING_MEAN, np.floor(total / mean + 0.5), np.nan)
