"""What a source takes in, and what it could take in: the rules for quantities of sources.

A source's rate is counted where records enter it, so that backlog, topic offsets, forecast and rate are of the same
records; what leaves its chain is another quantity wherever a filter or a sink is chained to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints

BATCH_FACTOR = 10.0
"""A source operator that sends so many records for each it counts as taken in counts batches."""
IDLE_BELOW = 0.01
"""A task with a smaller busy share does nothing."""
SATURATED_ABOVE = 0.95
"""A source that is busy for a larger share of its time is at its limit, if busy time tells it."""
GROWTH_ABOVE = 0.01
"""A backlog grows, or falls, when it gains or loses a larger share of what is taken in."""
CATCH_UP_LAG_S = 30.0
"""A source works a backlog off while it is so many seconds of input behind: Flink's autoscaler, rule 5."""
SWITCH_ABOVE = 0.15
"""How much more than observed busy time may claim while a backlog is worked off, by the same rule."""


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """Records, or records per second, of G vertices, all (G,), NaN where nothing is counted.

    Attributes:
        task_in, task_out: that the task counts.
        operator_in, operator_out: that the source operators of its chain count, summed.
        stands_still: whether a task that counts nothing in takes nothing in.
        is_chained: whether operators are chained to the source.
    """

    task_in: Floats
    task_out: Floats
    operator_in: Floats
    operator_out: Floats
    stands_still: Bools
    is_chained: Bools

    @classmethod
    def read(cls, column: Callable[[str], Floats], stands_still: Bools, is_chained: Bools) -> SourceCounts:
        """Return what the columns of counters hold."""
        task_in, task_out = column("in_total"), column("out_total")
        return cls(task_in, task_out, column("source_in_total"), column("source_out_total"), stands_still, is_chained)


def choose_taken(counts: SourceCounts) -> Floats:
    """Return (G,) records, or records/s, that sources take in; NaN where none of the counters tells.

    In this order: what the task counts in; the source operator in; the source operator out, which is also taken where
    in counts batches.  A task's own output is the source operator's where nothing is chained to it.  Counters that
    stand still tell 0, but not that of a task which never counts while it is busy.
    """
    out = np.where(np.isnan(counts.operator_out) & ~counts.is_chained, counts.task_out, counts.operator_out)
    with np.errstate(invalid="ignore"):
        into = np.where(counts.task_in > 0, counts.task_in, counts.operator_in)
        counts_batches = out > BATCH_FACTOR * into
        is_known = ~np.isnan(counts.operator_in) | ~np.isnan(out)
        nothing = is_known | (~np.isnan(counts.task_in) & counts.stands_still)
        taken = np.where((into > 0) & ~counts_batches, into, np.where(out > 0, out, np.nan))
    return np.where(np.isnan(taken) & nothing, 0.0, taken)


def stands_still(in_total: Floats, busy: Floats) -> Bools:
    """Return (G,) whether a task whose counter does not grow takes nothing in: it has counted, or it does nothing."""
    with np.errstate(invalid="ignore"):
        return np.asarray((in_total > 0) | (busy < IDLE_BELOW))


def choose_capacity(
    *, taken: Floats, busy: Floats, backpressured: Floats, pending: Floats, growth: Floats, window_s: Floats | Ints
) -> Floats:
    """Return (G,) records/s that sources could take in, NaN where nothing tells.

    While a backlog is worked off, what is taken in shows the capacity, and replaces a larger one from busy time.  A
    source that waits inside its reader is busy at any rate: without a backlog that grows, falls or lasts, that is no
    measurement.

    Args:
        taken: (G,) records/s.
        busy: (G,) busy share.
        backpressured: (G,) share of its time in which it waits for what comes after it.
        pending: (G,) records that wait at the end of the window.
        growth: (G,) records/s by which they grew.
        window_s: (G,) length of the window.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        by_busy = np.where((busy > 0) & (taken > 0), taken / busy, np.nan)
        held_up = np.where(np.isnan(backpressured), 0.0, backpressured)
        observed = np.where((taken > 0) & (held_up < 1.0), taken / (1.0 - held_up), np.nan)
        is_behind = (pending >= CATCH_UP_LAG_S * taken) & (taken > 0)
        was_behind = pending - growth * window_s >= CATCH_UP_LAG_S * taken
        falls = growth < -GROWTH_ABOVE * taken  # a backlog that stays may be records that nobody can read yet
        is_plausible = by_busy <= (1.0 + SWITCH_ABOVE) * observed
        replaced = is_behind & was_behind & falls & ~np.isnan(observed) & ~is_plausible
        moves = np.abs(growth) > GROWTH_ABOVE * taken
        unexplained = (busy > SATURATED_ABOVE) & ~is_behind & ~moves
    return np.where(unexplained, np.nan, np.where(replaced, observed, by_busy))
