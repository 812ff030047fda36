"""What really ran in the days that are appraised: a job's parallelism, lateness and events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.utc import DAY_S
from lab.backtest.subject import BIN_S, DAY_BINS
from models.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class MeasuredDay:
    """A day of what ran, by the bins whose slots and lateness are known; NaN where none is.

    Attributes:
        slot_hours, late_minutes, rescales, failures: of a day.
        share: of the bins that are known.
    """

    slot_hours: float
    late_minutes: float
    rescales: float
    failures: float
    share: float


@dataclass(frozen=True, slots=True)
class History:
    """What ran; B bins of :data:`lab.backtest.subject.BIN_S`, O operators.

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

    def schedule(self) -> tuple[Ints, Ints]:
        """Return (n,) epoch seconds and the (n, O) parallelism from each of them on, as it ran.

        A bin in which an operator was not seen has what it had before.
        """
        known = fill_forward(self.parallelism)
        changes = np.concatenate([[0], np.flatnonzero((np.diff(known, axis=0) != 0).any(axis=1)) + 1])
        return self.start_s + changes * BIN_S, known[changes]

    def find_bins(self, first_s: int, days: int) -> slice:
        """Return the bins of some days, the first of which begins at ``first_s``, epoch seconds."""
        first = round((first_s - self.start_s) / BIN_S)
        return slice(first, first + days * DAY_BINS)

    def measure_day(self, first_s: int, days: int) -> MeasuredDay:
        """Return a day in the mean of some days."""
        span = self.find_bins(first_s, days)
        known = self.measured[span]
        measured_days = float(known.sum()) / DAY_BINS or float("nan")
        return MeasuredDay(
            slot_hours=float(self.slots[span][known].sum()) * BIN_S / 3600.0 / measured_days,
            late_minutes=float(self.late_s[span][known].sum()) / 60.0 / measured_days,
            rescales=count_a_day(self.rescale_s, first_s, days),
            failures=count_a_day(self.failure_s, first_s, days),
            share=float(known.mean()) if len(known) else 0.0,
        )


def count_a_day(times_s: Floats, first_s: int, days: int) -> float:
    """Return how many of some times lie in a day, in the mean of some days."""
    return float(((times_s >= first_s) & (times_s < first_s + days * DAY_S)).sum()) / days


def fill_forward(parallelism: Ints) -> Ints:
    """Return (B, O) with zeros replaced by the last value before them, at the beginning by the first; at least 1."""
    bins = np.arange(len(parallelism))[:, None]
    last = np.maximum.accumulate(np.where(parallelism > 0, bins, -1), axis=0)
    first = np.argmax(parallelism > 0, axis=0)
    filled = np.take_along_axis(parallelism, np.where(last >= 0, last, first), axis=0)
    return np.maximum(filled, 1)
