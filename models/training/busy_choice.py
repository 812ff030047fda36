"""The windows of a job from which the capacity of its operators is learnt, and those on which models are judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.settings import Training
from models.arrays import Bools, Floats, Ints
from models.capacity.busy_windows import OF_BUSIEST, TRUSTED, find_slow, find_telling
from models.capacity.held_up import SATURATED
from models.capacity.robust_means import number_points, select_recent
from models.training.job_windows import TrainingWindows


@dataclass(frozen=True, slots=True)
class BusyWindows:
    """Windows in which an operator was busy enough to show its capacity, (n,) each.

    Attributes:
        window, operator: places among the job's windows and operators.
        start_s: epoch seconds.
        parallelism, busy, capacity_per_s: as measured.
        idle: whether the operator is never busy: its own busiest windows are the best there is.
        busiest: highest busy share at that parallelism: how far it can be trusted.
    """

    window: Ints
    operator: Ints
    start_s: Ints
    parallelism: Ints
    busy: Floats
    capacity_per_s: Floats
    idle: Bools
    busiest: Floats

    def take(self, rows: Bools | Ints) -> BusyWindows:
        """Return some of the windows."""
        return BusyWindows(
            self.window[rows],
            self.operator[rows],
            self.start_s[rows],
            self.parallelism[rows],
            self.busy[rows],
            self.capacity_per_s[rows],
            self.idle[rows],
            self.busiest[rows],
        )

    def take_recent(self, keep: int) -> BusyWindows:
        """Return the latest windows of each operator and parallelism."""
        return self.take(select_recent(self.operator, self.parallelism, self.start_s.astype(float), keep))


def choose_busy(windows: TrainingWindows, used: Bools, options: Training) -> BusyWindows:
    """Return the windows, of those that may be used, (W,), that tell a capacity.

    They are those above ``min_busy_share``, unless the operator is never busier, and of them the busiest of each
    parallelism, or the usual ones where it is lightly used (models.capacity.busy_windows).  An operator that holds up
    what feeds it is as busy as it can be, and where it was seen so, windows of a lighter load at that parallelism tell
    less.
    """
    capacity, is_limit = windows.capacity_per_s, windows.is_limit
    busy = np.where(is_limit, windows.held_up, windows.busy_share)
    with np.errstate(invalid="ignore"):
        usable = used[:, None] & windows.is_measured & (capacity > 0) & np.isfinite(capacity) & (busy > 0)
    most = np.where(usable, busy, 0.0).max(axis=0, initial=0.0)
    idle = most < options.min_busy_share
    window, operator = np.nonzero(usable & (idle | (busy >= options.min_busy_share)))
    at = (window, operator)
    parallelism, shares, per_s = windows.parallelism[at].astype(np.int64), busy[at], capacity[at]
    start_s = windows.start_s[window]
    point = number_points(operator, parallelism)
    rows = (point, start_s.astype(float), shares, per_s)
    has_limit = np.zeros(int(point.max(initial=-1)) + 1, bool)
    np.logical_or.at(has_limit, point, is_limit[at] & (shares >= SATURATED))
    tells, busiest = find_telling(*rows, has_limit)
    chosen = BusyWindows(window, operator, start_s, parallelism, shares, per_s, idle[operator], busiest[point])
    return chosen.take(tells & ~_are_all_slow(window, find_slow(*rows)))


def _are_all_slow(window: Ints, is_slow: Bools) -> Bools:
    """Return (n,) of which windows several operators tell, and all of them are slow."""
    measured, slow = np.bincount(window), np.bincount(window, is_slow)
    return np.asarray((measured > 1) & (slow == measured))[window]


def keep_trusted(chosen: BusyWindows) -> BusyWindows:
    """Return the windows in which the operator was about as busy as it ever shows its capacity.

    A parallelism that was used less than another one tells of its load more than of its capacity: no model is judged
    on it.  Of an operator that is lightly used everywhere nothing better is known.
    """
    most = np.zeros(int(chosen.operator.max(initial=-1)) + 1)
    np.maximum.at(most, chosen.operator, chosen.busiest)
    shares = np.where(chosen.busiest < TRUSTED, chosen.busiest, chosen.busy)
    return chosen.take(shares >= np.minimum(TRUSTED, OF_BUSIEST * most)[chosen.operator])
