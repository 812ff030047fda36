"""Polls of vertices to samples: what was processed since the poll before.

Rates come from the differences of Flink's counters.  A counter that fell was restarted: what was counted across the
restart is unknown, so that difference is left out rather than guessed.  Old metrics given again are no measurement:
while a JobManager waits for a TaskManager that was lost, all metrics stand still, for ``web.timeout`` at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.observing.metric_table import BUSY_TIMES, COUNTERS, PLACE, RUN_TIMES, SOURCE_METRICS

LONGEST_GAP_WINDOWS = 2
"""A difference over more than this many windows would smear one rate over a gap in the data."""
_CLOCK_STEP_S = 30.0  # by so much less that tasks have run than has passed, the clock of the polls was set ahead
_US = 1_000_000
_COUNTED = [PLACE[column] for column in COUNTERS]
_SHOWN = [*_COUNTED, PLACE["pending"]]


@dataclass(frozen=True, slots=True)
class Vertices:
    """What V vertices are, all (V,).

    Attributes:
        window_s: length of a window, whole seconds.
        is_source: whether nothing feeds it.
        is_chained: whether several operators are chained in it.
    """

    window_s: Ints
    is_source: Bools
    is_chained: Bools

    def of(self, vertex: Ints) -> Vertices:
        """Return those of some numbers."""
        return Vertices(self.window_s[vertex], self.is_source[vertex], self.is_chained[vertex])


@dataclass(frozen=True, slots=True)
class Polls:
    """What n polls gave: those of a vertex follow each other, from the oldest to the newest.

    Attributes:
        vertex: (n,) number of the vertex.
        at_us: (n,) epoch microseconds.
        values: (columns, n) by :data:`models.observing.metric_table.COLUMNS`, NaN for what is not known.
    """

    vertex: Ints
    at_us: Ints
    values: Floats

    def of(self, poll: Ints | Bools) -> Polls:
        """Return some polls."""
        return Polls(self.vertex[poll], self.at_us[poll], self.values[:, poll])

    def value(self, column: str) -> Floats:
        """Return (n,) one column."""
        return np.asarray(self.values[PLACE[column]])


@dataclass(frozen=True, slots=True)
class Samples:
    """Polls that are a measurement, and what lies between each and the one before of its vertex.

    Attributes:
        polls: n of them.
        since_last_s: (n,) NaN for the first of a vertex; where the clock was set ahead, what the tasks have run.
        elapsed_s: (n,) the same where differences of counters can be used, else NaN.
    """

    polls: Polls
    since_last_s: Floats
    elapsed_s: Floats

    def difference(self, column: str) -> Floats:
        """Return (n,) by how much a column grew, NaN where it cannot be told."""
        return np.where(np.isnan(self.elapsed_s), np.nan, _since_last(self.polls.value(column)))

    def times_s(self, span: Ints) -> Floats:
        """Return (P,) the times of all polls of one vertex by the clock of its last, epoch seconds."""
        at_us, since_last_s = self.polls.at_us[span], self.since_last_s[span]
        set_ahead_s = np.where(np.isnan(since_last_s), 0.0, np.diff(at_us, prepend=at_us[:1]) / _US - since_last_s)
        return np.asarray(at_us / _US + set_ahead_s.sum() - np.cumsum(set_ahead_s))


def is_still(values: Floats, before: Floats) -> Bools:
    """Return (n,) whether nothing was counted since the poll before, nor have tasks aged; an age must be known.

    Both are (columns, n); without a poll before it is NaN.
    """
    now, then = values[_SHOWN], before[_SHOWN]
    is_same = ((now == then) | (np.isnan(now) & np.isnan(then))).all(axis=0)
    return np.asarray(is_same & (_run_ms(values) == _run_ms(before)))


def build_samples(polls: Polls, vertices: Vertices) -> Samples:
    """Return the polls of (V,) vertices that are a measurement as samples."""
    follows = np.diff(polls.vertex, prepend=-1) == 0
    moved = ~follows
    moved[1:] |= ~is_still(polls.values[:, 1:], polls.values[:, :-1])
    return count_differences(polls if moved.all() else polls.of(moved), vertices)


def count_differences(polls: Polls, vertices: Vertices) -> Samples:
    """Return measurements as samples; see :func:`build_samples`.  What sources count is of sources alone."""
    polls = _hide(polls, SOURCE_METRICS, ~vertices.is_source[polls.vertex])
    is_restoring = _find_restoring(polls)
    polls = _hide(polls, ("pending",), is_restoring)
    follows = np.diff(polls.vertex, prepend=-1) == 0
    since_last_s = np.where(follows, np.diff(polls.at_us, prepend=0) / _US, np.nan)
    ran_s = _since_last(_run_ms(polls.values)) / 1000.0
    with np.errstate(invalid="ignore"):
        since_last_s = np.where((ran_s >= 0) & (since_last_s - ran_s > _CLOCK_STEP_S), ran_s, since_last_s)
        usable = (since_last_s > 0) & (since_last_s <= LONGEST_GAP_WINDOWS * vertices.window_s[polls.vertex])
        usable &= ~is_restoring & ~np.roll(is_restoring, 1)
        for counter in COUNTERS:
            usable &= ~(_since_last(polls.value(counter)) < 0)
        for time in BUSY_TIMES:  # by less than its step it falls without a restart
            usable &= ~(_since_last(polls.value(time)) <= -1000.0 * since_last_s)
    return Samples(polls, since_last_s, np.where(usable, since_last_s, np.nan))


def _hide(polls: Polls, columns: Iterable[str], hidden: Bools) -> Polls:
    """Return polls without (n,) the values of some columns."""
    places = [PLACE[column] for column in columns]
    if np.isnan(polls.values[places][:, hidden]).all():
        return polls
    values = polls.values.copy()
    for place in places:
        values[place, hidden] = np.nan
    return Polls(polls.vertex, polls.at_us, values)


def _find_restoring(polls: Polls) -> Bools:
    """Return (n,) whether a vertex was restarted and has counted nothing since, not even idle time.

    Until a source has read its splits Flink gives the backlog that the run before showed last.
    """
    has_counted: Bools = np.asarray((polls.values[_COUNTED] > 0).any(axis=0))
    # Polls of a vertex follow each other, and no vertex has a greater sum than the next one.
    has_ever = np.maximum.accumulate(np.asarray(2 * polls.vertex + has_counted)) > 2 * polls.vertex
    return np.asarray(has_ever & ~has_counted)


def find_window_starts(polls: Polls, window_s: Ints) -> Ints:
    """Return (n,) the start of the window of each poll, epoch seconds; ``window_s`` is of (V,)."""
    at_s = polls.at_us // _US
    return at_s - at_s % window_s[polls.vertex]


def _run_ms(values: Floats) -> Floats:
    busy, idle, backpressured = (values[PLACE[name]] for name in RUN_TIMES)
    return np.asarray(busy + idle + backpressured)


def _since_last(values: Floats) -> Floats:
    return np.diff(values, prepend=np.nan)
