"""The metrics of a source's operators among those of its vertex, added up over Spark columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.flink.source_counters import CUT_AT, PENDING_RECORDS, SOURCE_PREFIX


def sum_of_sources(counter: str) -> Column:
    """Return the sum of a counter of the source operators in a vertex's metrics; null where one cannot be told."""
    result = F.filter("metrics", lambda metric: _is_of_source(metric["id"], counter))
    ids = F.transform(result, lambda metric: metric["id"])
    is_mixed = F.exists(ids, lambda one: F.length(one) >= CUT_AT + 1 + len(counter)) | (
        F.size(F.array_distinct(ids)) < F.size(ids)
    )
    return F.when(~is_mixed, _add_up(result))


def sum_of_backlogs() -> Column:
    """Return the records that wait before a vertex's sources: the sum of all that are told; null without any."""
    end = f".{PENDING_RECORDS}"
    result = F.filter("metrics", lambda metric: F.concat(F.lit("."), metric["id"]).endswith(end))
    # Of two metrics with one id the first counts.
    ids = F.transform(result, lambda metric: metric["id"])
    firsts = F.filter(result, lambda metric, place: F.array_position(ids, metric["id"]) == place + 1)
    return _add_up(firsts)


def _is_of_source(metric_id: Column, counter: str) -> Column:
    end = f".{counter}"
    is_own = F.instr(metric_id, ".") == F.length(metric_id) - len(counter)  # of the operator, not of a group below it
    return metric_id.startswith(SOURCE_PREFIX) & metric_id.endswith(end) & is_own


def _add_up(result: Column) -> Column:
    added = F.aggregate(result, F.lit(0.0), lambda total, metric: total + metric["sum"])
    return F.when(F.size(result) > 0, added)
