"""Seasonal naive: the rate a week ago, a day ago, or now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.forecasting.rate_history import RateHistory

WEEKLY_AFTER_DAYS = 7
"""Last week is repeated as soon as there is one; the backtest decides whether it is used."""


@dataclass(frozen=True, slots=True)
class SeasonalNaive:
    """Repeats the last season: a week when there is one, else a day, else the last value."""

    weekly_after_days: float = WEEKLY_AFTER_DAYS
    name: str = "seasonal_naive"
    min_history_days: float = 0.0
    rounds_by_batch: bool = False

    def predict(self, history: RateHistory, origins: Ints, horizon: int) -> Floats:
        """See :class:`models.forecasting.base.Forecaster`."""
        return np.stack([_from_origin(history, int(origin), horizon, self.weekly_after_days) for origin in origins])


def _from_origin(history: RateHistory, origin: int, horizon: int, weekly_after_days: float) -> Floats:
    """Return the repetition from one origin, shape (n, horizon)."""
    calendar, values = history.calendar, history.filled
    length = origin - history.begin[:, None]
    path = np.broadcast_to(values[:, max(origin - 1, 0), None], (values.shape[0], horizon))
    if origin >= calendar.day:
        path = np.where(length >= calendar.day, _repeat(values, origin, calendar.day, horizon), path)
    if origin >= weekly_after_days * calendar.day:
        weekly = length >= weekly_after_days * calendar.day
        path = np.where(weekly, _repeat(values, origin, calendar.week, horizon), path)
    return np.where(length > 0, path, np.nan)


def _repeat(values: Floats, origin: int, season: int, horizon: int) -> Floats:
    """Return the last season before the origin, repeated over the horizon, shape (n, horizon)."""
    return values[:, origin - season + np.arange(horizon) % season]
