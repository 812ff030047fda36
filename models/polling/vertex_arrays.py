"""The last metrics and changes of parallelism of all vertices, a row for each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.arrays import Floats, Ints
from models.observing.metric_table import COLUMNS
from models.observing.samples import is_still
from models.polling.ring_buffers import RingBuffers


class VertexArrays:
    """Rows of vertices.

    Args:
        polls: how many polls are kept of each.

    Attributes:
        samples: metrics by :data:`models.observing.metric_table.COLUMNS`, only those that are a measurement.
        parallelism: an entry per change.
    """

    def __init__(self, polls: int) -> None:
        self.samples = RingBuffers(len(COLUMNS), polls)
        self.parallelism = RingBuffers(1, polls)
        self._received_ms = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays, bytes."""
        return self.samples.nbytes + self.parallelism.nbytes + self._received_ms.nbytes

    def add_rows(self, number: int) -> range:
        """Add empty rows; returns their numbers."""
        self.parallelism.add_rows(number)
        self._received_ms = np.pad(self._received_ms, (0, number))
        return self.samples.add_rows(number)

    def keep_rows(self, kept: Ints) -> None:
        """Keep some rows, which are numbered again in their order."""
        self.samples.keep_rows(kept)
        self.parallelism.keep_rows(kept)
        self._received_ms = self._received_ms[kept]

    def push_parallelism(self, rows: Sequence[int], at_ms: int, parallelism: Sequence[int]) -> None:
        """Put a change of some rows at one time; 0 where it is not known any more."""
        values = np.array(parallelism, float).reshape(len(rows), 1)
        self.parallelism.push(np.array(rows, np.int64), np.full(len(rows), at_ms), values)

    def find_parallelism(self, rows: Ints, at_ms: Ints) -> Floats:
        """Return (n,) the parallelism of some rows at a time each, NaN where it is not known."""
        return self.parallelism.values_before(0, rows, at_ms + 1)

    def push_metrics(self, rows: Ints, times_ms: Ints, values: Floats) -> Ints:
        """Put metrics of one or more polls.

        Args:
            rows: (n,) in order of time where a row stands several times.
            times_ms: (n,)
            values: (n, columns)

        Returns:
            Which of the n were not later than what was received before of their row, and were left out.
        """
        refused = []
        for turn in _turns(rows):
            newer = times_ms[turn] > self._received_ms[rows[turn]]
            refused.append(turn[~newer])
            some = turn[newer]
            self._received_ms[rows[some]] = times_ms[some]
            moved = some[~is_still(values[some].T, self.samples.last_values(rows[some]).T)]
            self.samples.push(rows[moved], times_ms[moved], values[moved])
        return np.concatenate(refused) if refused else np.zeros(0, np.int64)


def _turns(rows: Ints) -> list[Ints]:
    """Return places of rows, in order, so that no row stands twice in one turn."""
    if not len(rows):
        return []
    order = np.argsort(rows, kind="stable")
    begins = np.flatnonzero(np.diff(rows[order], prepend=-1))
    turn = np.empty(len(rows), np.int64)
    turn[order] = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
    return [np.flatnonzero(turn == number) for number in range(turn.max() + 1)]
