"""The cost of running a job: rescales, slots and lateness, per row and segment of the run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.utc import DAY_S
from lab.replay.conditions import Prices
from lab.replay.window_metrics import WindowMetrics
from models.arrays import Floats, Ints

SEGMENTS = ("all", "first_day", "after_first_day", "last_third")


@dataclass(frozen=True, slots=True)
class WindowCosts:
    """What each window of each row took, (W, J).

    Attributes:
        slots: that were paid, a mean: as many as the highest parallelism of the job's operators, which share slots.
        rescales: that were asked for with the window.
        late_s: seconds late.
        lag_record_s: integral of the backlog, record seconds.
    """

    slots: Floats
    rescales: Ints
    late_s: Floats
    lag_record_s: Floats

    @classmethod
    def empty(cls, windows: int, rows: int) -> WindowCosts:
        """Return a ledger to be filled."""
        shape = (windows, rows)
        return cls(np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape))

    def enter(self, window: int, metrics: WindowMetrics) -> None:
        """Enter what a window took, besides its rescales."""
        self.slots[window] = metrics.paid
        self.late_s[window] = metrics.late_s
        self.lag_record_s[window] = metrics.lag_record_s


@dataclass(frozen=True, slots=True)
class Score:
    """Figures of one row in one segment.

    Attributes:
        rescales_per_day, late_minutes_per_day: rates.
        lag_record_seconds, slot_hours, cost: totals of the segment.
    """

    rescales_per_day: float
    late_minutes_per_day: float
    lag_record_seconds: float
    slot_hours: float
    cost: float


def find_span(segment: str, windows: int, window_s: int) -> slice:
    """Return the windows of a segment; none after the first day of a run that is no longer.

    Raises:
        ValueError: no segment of that name.
    """
    if segment not in SEGMENTS:
        raise ValueError(f"no segment {segment!r}; there are {SEGMENTS}")
    spans = {
        "all": slice(0, windows),
        "first_day": slice(0, min(windows, DAY_S // window_s)),
        "after_first_day": slice(min(windows, DAY_S // window_s), windows),
        "last_third": slice(windows - windows // 3, windows),
    }
    return spans[segment]


def compute_score(
    ledger: WindowCosts, row: int, span: slice, *, window_s: int, slots_max: int, prices: Prices
) -> Score:
    """Return the figures of one row in some windows.

    Cost per minute = w_slots x slots / slots_max + w_late if late, + w_rescale per rescale (the weights of the MDP
    paper, there per slot of time and for one operator).
    """
    slots, late_s = ledger.slots[span, row], ledger.late_s[span, row]
    duration_s = len(slots) * window_s
    rescales = float(ledger.rescales[span, row].sum())
    slot_s, late_minutes = float(slots.sum()) * window_s, float(late_s.sum()) / 60.0
    cost = prices.slots * slot_s / slots_max / 60.0 + prices.late * late_minutes + prices.rescale * rescales
    days = duration_s / DAY_S
    return Score(
        rescales_per_day=rescales / days,
        late_minutes_per_day=late_minutes / days,
        lag_record_seconds=float(ledger.lag_record_s[span, row].sum()),
        slot_hours=slot_s / 3600.0,
        cost=cost,
    )
