"""The rules for quantities of sources over Spark columns: what a source takes in, and what it could take in.

They are those of ``models/observing/source_rates.py``, which says why.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.domain.operator_matching import CHAINED
from include.flink.source_counters import CUT_AT, PENDING_RECORDS, SOURCE_PREFIX
from models.observing.source_rates import (
    BATCH_FACTOR,
    CATCH_UP_LAG_S,
    GROWTH_ABOVE,
    IDLE_BELOW,
    SATURATED_ABOVE,
    SWITCH_ABOVE,
)


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


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """Records, or records per second, of a vertex, null where nothing is counted.

    Attributes:
        task_in, task_out: that the task counts.
        operator_in, operator_out: that the source operators of its chain count.
        stands_still: whether a task that counts nothing in takes nothing in.
    """

    task_in: Column
    task_out: Column
    operator_in: Column
    operator_out: Column
    stands_still: Column


def choose_taken(counts: SourceCounts) -> Column:
    """Return what a source takes in; null where none of the counters tells."""
    is_chained = F.col("operator").contains(CHAINED)
    out = F.coalesce(counts.operator_out, F.when(~is_chained, counts.task_out))
    into = F.when(counts.task_in > 0, counts.task_in).otherwise(counts.operator_in)
    counts_batches = out > BATCH_FACTOR * into
    nothing = counts.operator_in.isNotNull() | out.isNotNull() | (counts.task_in.isNotNull() & counts.stands_still)
    return (
        F.when((into > 0) & ~F.coalesce(counts_batches, F.lit(False)), into)
        .when(out > 0, out)
        .when(F.coalesce(nothing, F.lit(False)), F.lit(0.0))
    )


def stands_still(total_in: Column, busy: Column) -> Column:
    """Whether a task whose counter does not grow takes nothing in: it has counted before, or it does nothing."""
    return F.coalesce(total_in > 0, F.lit(False)) | F.coalesce(busy < IDLE_BELOW, F.lit(False))


def choose_capacity(taken: Column, growth: Column) -> Column:
    """Return records/s that a source could take in; null where nothing tells.

    Args:
        taken: records/s that it takes in.
        growth: records/s by which its backlog, ``pending``, grew.
    """
    busy, backpressured = F.col("busy_share"), F.col("backpressured_share")
    pending = F.col("pending")
    by_busy = F.when((busy > 0) & (taken > 0), taken / busy)
    held_up = F.coalesce(backpressured, F.lit(0.0))
    observed = F.when((taken > 0) & (held_up < 1.0), taken / (1.0 - held_up))
    is_behind = F.coalesce(pending >= CATCH_UP_LAG_S * taken, F.lit(False)) & (taken > 0)
    was_behind = F.coalesce(pending - growth * F.col("window_s") >= CATCH_UP_LAG_S * taken, F.lit(False))
    plausible = F.coalesce(by_busy <= (1.0 + SWITCH_ABOVE) * observed, F.lit(False))
    falls = F.coalesce(growth < -GROWTH_ABOVE * taken, F.lit(False))
    replaced = is_behind & was_behind & falls & observed.isNotNull() & ~plausible
    moves = F.coalesce(F.abs(growth) > GROWTH_ABOVE * taken, F.lit(False))
    unexplained = F.coalesce(busy > SATURATED_ABOVE, F.lit(False)) & ~is_behind & ~moves
    return F.when(~unexplained, F.when(replaced, observed).otherwise(by_busy))
