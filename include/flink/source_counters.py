"""Counters of source operators among a vertex's metrics: `Source__orders.numRecordsIn`, which Flink names after it.

A task counts what enters it from other tasks, and what leaves the end of its chain.  What a source takes in is counted
by the task where its reader does so (FLIP-27), else by the source operator alone, which stands first in the chain.
"""

from __future__ import annotations

from collections.abc import Iterable

SOURCE_PREFIX = "Source__"
"""Flink puts `Source: ` before a source's name; characters that a metric's name may not have become `_`."""
CUT_AT = 80
"""Flink cuts an operator's name in its metrics to so many characters: two that are alike until there are one."""
SOURCE_COUNTERS = ("numRecordsIn", "numRecordsOut")
PENDING_RECORDS = "pendingRecords"


def is_source_counter(metric_id: str, counter: str) -> bool:
    """Whether a metric is a counter of a source operator itself, and not of a group below it."""
    operator, _, name = metric_id.partition(".")
    return name == counter and operator.startswith(SOURCE_PREFIX)


def is_cut(metric_id: str) -> bool:
    """Whether the operator's name may have been cut, so that it may stand for another operator, too."""
    return len(metric_id.partition(".")[0]) >= CUT_AT


def list_source_counters(metric_ids: Iterable[str]) -> list[str]:
    """Return the counters of source operators among a vertex's metrics, sorted."""
    return sorted(
        metric_id for metric_id in set(metric_ids) if any(is_source_counter(metric_id, one) for one in SOURCE_COUNTERS)
    )
