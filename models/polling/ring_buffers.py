"""The last values of many rows, each with a time: arrays of shape (rows, kept), the oldest overwritten first."""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats, Ints

_FIRST_ROWS = 64


class RingBuffers:
    """Rows of ``kept`` entries of ``columns`` values.

    Attributes:
        counts: (rows,) entries that were ever put into each row.
    """

    def __init__(self, columns: int, kept: int) -> None:
        if kept < 2:
            raise ValueError("a difference takes two entries")
        self._times_ms = np.zeros((_FIRST_ROWS, kept), np.int64)
        self._values = np.full((columns, _FIRST_ROWS, kept), np.nan)
        self.counts = np.zeros(_FIRST_ROWS, np.int64)
        self.rows = 0

    @property
    def kept(self) -> int:
        """Return how many entries a row keeps."""
        return self._times_ms.shape[1]

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays, bytes."""
        return self._times_ms.nbytes + self._values.nbytes + self.counts.nbytes

    def add_rows(self, number: int) -> range:
        """Add empty rows; returns their numbers."""
        first, self.rows = self.rows, self.rows + number
        if self.rows > len(self.counts):
            more = max(self.rows, 2 * len(self.counts)) - len(self.counts)
            self._times_ms = np.pad(self._times_ms, ((0, more), (0, 0)))
            self._values = np.pad(self._values, ((0, 0), (0, more), (0, 0)), constant_values=np.nan)
            self.counts = np.pad(self.counts, (0, more))
        return range(first, self.rows)

    def keep_rows(self, kept: Ints) -> None:
        """Keep some rows, which are numbered again in their order."""
        self._times_ms, self._values = self._times_ms[kept], self._values[:, kept]
        self.counts, self.rows = self.counts[kept], len(kept)

    def push(self, rows: Ints, times_ms: Ints, values: Floats) -> None:
        """Put one entry into each of some rows, (n,) each once: values (n, columns), later than the entries before."""
        place = self.counts[rows] % self.kept
        self._times_ms[rows, place] = times_ms
        self._values[:, rows, place] = values.T
        self.counts[rows] += 1

    def last_values(self, rows: Ints) -> Floats:
        """Return (n, columns) the last entries of some rows, NaN for rows without any."""
        return np.asarray(self._values[:, rows, (self.counts[rows] - 1) % self.kept].T)

    def all_entries(self) -> tuple[Ints, Ints, Floats]:
        """Return (n,) rows, (n,) times, (columns, n) values of all entries, by row, from the oldest to the newest."""
        order = (self.counts[: self.rows, None] + np.arange(self.kept)) % self.kept  # empty ones come first
        flat = (np.arange(self.rows)[:, None] * self.kept + order).ravel()
        held = np.minimum(self.counts[: self.rows], self.kept)
        row = np.repeat(np.arange(self.rows), held)
        flat = flat[self._times_ms.ravel()[flat] > 0]
        return row, self._times_ms.ravel()[flat], self._values.reshape(len(self._values), -1)[:, flat]

    def values_before(self, column: int, rows: Ints, before_ms: Ints) -> Floats:
        """Return (n,) of some rows the last value of a column before a time each, NaN without one."""
        order = (self.counts[rows, None] + np.arange(self.kept)) % self.kept
        times_ms = np.take_along_axis(self._times_ms[rows], order, axis=1)
        place = (times_ms < before_ms[:, None]).sum(axis=1) - 1  # empty entries have the time 0: before any
        entry = np.take_along_axis(order, np.maximum(place, 0)[:, None], axis=1)[:, 0]
        return np.where(place >= 0, self._values[column, rows, entry], np.nan)

    def is_overwritten(self) -> Bools:
        """Return (rows,) whether a row had more entries than it keeps."""
        return np.asarray(self.counts[: self.rows] > self.kept)
