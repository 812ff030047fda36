"""Weekday profile: the mean of earlier days at the same time of day, those of the same weekday first.

A harmonic fit smooths what is sharp (a rush at eight); the mean of the same weekdays keeps it, and needs no
full week: until a weekday was observed, days of its kind replace it.

    w (k, t)   weight of the day k days before bin t: DECAY^k x (1 for the same weekday, SAME_KIND for another working
               day or another day of the weekend, OTHER_KIND for the rest)
    p (t)      profile: weighted mean of the rates k days before t, k = 1 .. DAYS

The weights were chosen by hand on the traces of data/traces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.forecasting import remainder
from models.forecasting.calendar import Calendar
from models.forecasting.rate_history import RateHistory

DAYS = 21
"""Days before a bin that are used; three of each weekday."""
DECAY = 0.9
"""Weight of a day against the one after it."""
SAME_KIND = 0.04
"""Weight of a day of the same kind (working day, weekend) against the same weekday."""
OTHER_KIND = 0.004
SATURDAY = 5


@dataclass(frozen=True, slots=True)
class WeekdayProfile:
    """Mean of earlier days, the same weekday first, and the forecast of the remainder."""

    name: str = "weekday_profile"
    min_history_days: float = 1.0
    rounds_by_batch: bool = False

    def predict(self, history: RateHistory, origins: Ints, horizon: int) -> Floats:
        """See :class:`models.forecasting.base.Forecaster`."""
        calendar = history.calendar
        look_back = int(remainder.DAYS * calendar.day)
        first = max(0, int(origins.min()) - look_back)
        profiles = compute_profiles(history, first, horizon)
        paths = np.empty((len(origins), len(history.begin), horizon))
        for place, origin in enumerate(origins):
            start = max(0, int(origin) - look_back)
            rest = history.observed[:, start:origin] - profiles[0][:, start - first : origin - first]
            season = season_after(profiles, int(origin) - first, calendar, horizon)
            if rest.shape[1]:
                season = season + remainder.forecast_remainder(rest, calendar, horizon)
            paths[place] = np.maximum(season, 0.0)
        enough = origins[:, None] - history.begin >= self.min_history_days * calendar.day
        return np.where(enough[:, :, None], paths, np.nan)


def compute_profiles(history: RateHistory, first: int, horizon: int) -> list[Floats]:
    """Return p of bins ``[first, T + horizon)``, shape (n, T + horizon - first), for each day of the horizon.

    The entry of index d leaves out the d days before a bin: it is known d days ahead.  NaN without an observed day.
    """
    day, values = history.calendar.day, history.observed
    stop = history.bins + horizon
    weekday = history.calendar.weekday(0, stop)
    total = np.zeros((len(values), stop - first))
    weight = np.zeros_like(total)
    made: list[Floats] = []
    known = np.isfinite(values)
    clean = np.where(known, values, 0.0)
    days_ahead = -(-horizon // day)
    for back in range(DAYS + days_ahead - 1, 0, -1):
        low, high = max(first, back * day), min(stop, history.bins + back * day)
        if low < high:
            then, mine = slice(low - back * day, high - back * day), slice(low - first, high - first)
            share = DECAY**back * _similarity(weekday[then], weekday[low:high])
            total[:, mine] += share * clean[:, then]
            weight[:, mine] += share * known[:, then]
        if back <= days_ahead:
            made.insert(0, np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), np.nan))
    return made


def _similarity(then: Ints, now: Ints) -> Floats:
    """Return the weight of one weekday for another, 0..1."""
    kind = np.where((then >= SATURDAY) == (now >= SATURDAY), SAME_KIND, OTHER_KIND)
    return np.where(then == now, 1.0, kind)


def season_after(profiles: list[Floats], origin: int, calendar: Calendar, horizon: int) -> Floats:
    """Return p of the bins after an origin, each from days before the origin alone, shape (n, horizon)."""
    parts = [
        each[:, origin + day * calendar.day : origin + min(horizon, (day + 1) * calendar.day)]
        for day, each in enumerate(profiles)
    ]
    return np.concatenate(parts, axis=1)
