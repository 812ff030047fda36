"""What really ran in the days that are appraised: a job's parallelism, lateness and events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class History:
    """What ran; B bins of :data:`lab.backtest.comparison.BIN_S`, O operators.

    Attributes:
        start_s: epoch seconds of the first bin.
        parallelism: (B, O) that was seen, 0 where nothing was.
        slots: (B,) largest of a bin's parallelisms, NaN where nothing was seen.
        late_s: (B,) seconds late, NaN where the age of the backlog was not known.
        rescale_s, failure_s: (n,) epoch seconds of rescales and failures, ascending.
        downtimes_s: (m,) of the rescales, as measured.
    """

    start_s: int
    parallelism: Ints
    slots: Floats
    late_s: Floats
    rescale_s: Floats
    failure_s: Floats
    downtimes_s: Floats

    @property
    def measured(self) -> Bools:
        """(B,) bins whose slots and lateness are known."""
        return np.isfinite(self.slots) & np.isfinite(self.late_s)

    def schedule(self, bin_s: int) -> tuple[Ints, Ints]:
        """Return (n,) epoch seconds and the (n, O) parallelism from each of them on, as it ran.

        A bin in which an operator was not seen has what it had before.

        Args:
            bin_s: length of a bin.
        """
        known = fill_forward(self.parallelism)
        changes = np.concatenate([[0], np.flatnonzero((np.diff(known, axis=0) != 0).any(axis=1)) + 1])
        return self.start_s + changes * bin_s, known[changes]

    def count_by_day(self, times_s: Floats, first_s: int, days: int, day_s: int = 86_400) -> Floats:
        """Return (D,) how many of some times lie in each day from ``first_s`` on."""
        place = (times_s - first_s) // day_s
        inside = place[(place >= 0) & (place < days)].astype(int)
        return np.bincount(inside, minlength=days).astype(float)


def fill_forward(parallelism: Ints) -> Ints:
    """Return (B, O) with zeros replaced by the last value before them, at the beginning by the first; at least 1."""
    bins = np.arange(len(parallelism))[:, None]
    last = np.maximum.accumulate(np.where(parallelism > 0, bins, -1), axis=0)
    first = np.argmax(parallelism > 0, axis=0)
    filled = np.take_along_axis(parallelism, np.where(last >= 0, last, first), axis=0)
    return np.maximum(filled, 1)
