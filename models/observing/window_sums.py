"""Sums over the samples of each window."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints
from models.observing.samples import Samples


class WindowSums:
    """Sums over the samples of G windows: with several polls the differences telescope to last minus first.

    They are added up in the order of time, one after the other, so that a window's sums do not depend on what else is
    looked at with it.

    Args:
        samples: n of them.
        first: (G,) where the windows begin.
    """

    def __init__(self, samples: Samples, first: Ints) -> None:
        self._samples, self._first = samples, first
        sizes = np.diff(np.append(first, len(samples.since_last_s)))
        self._window = np.repeat(np.arange(len(first)), sizes)

    def rate(self, column: str, units: float = 1.0) -> Floats:
        """Return (G,) the growth of a column per second, in ``units``; NaN where it is not known."""
        difference = self._samples.difference(column)
        total, count = self._sum(difference)
        elapsed_s = self._samples.elapsed_s
        duration_s, _ = self._sum(np.where(np.isnan(difference), np.nan, elapsed_s))
        return _divide(total / units, duration_s, count)

    def mean(self, column: str) -> Floats:
        """Return (G,) the mean of what is known of a column."""
        return self.mean_of(self._samples.polls.value(column))

    def mean_of(self, values: Floats) -> Floats:
        """Return (G,) the mean of what is known of (n,) values of the samples."""
        total, count = self._sum(values)
        return _divide(total, count.astype(float), count)

    def last(self, column: str) -> Floats:
        """Return (G,) the last known value of a column."""
        return last_of_parts(self._samples.polls.value(column), self._first)

    def largest(self, column: str) -> Floats:
        """Return (G,) the largest known value of a column."""
        if not len(self._first):
            return np.zeros(0)
        return np.asarray(np.fmax.reduceat(self._samples.polls.value(column), self._first))

    def _sum(self, values: Floats) -> tuple[Floats, Ints]:
        """Return (G,) the sum over what is known in each window, and how many that is."""
        known = ~np.isnan(values)
        windows = len(self._first)
        total = np.bincount(self._window, weights=np.where(known, values, 0.0), minlength=windows)
        count = np.bincount(self._window[known], minlength=windows)
        return np.asarray(total, np.float64), np.asarray(count, np.int64)


def last_of_parts(values: Floats, first: Ints) -> Floats:
    """Return (G,) the last known of values in parts that begin at ``first``, NaN where none is."""
    if not len(first):
        return np.zeros(0)
    place = np.maximum.reduceat(np.where(np.isnan(values), -1, np.arange(len(values))), first)
    return np.where(place >= 0, values[place], np.nan)


def _divide(total: Floats, parts: Floats, count: Ints) -> Floats:
    return np.asarray(np.divide(total, parts, out=np.full(len(total), np.nan), where=count > 0))
