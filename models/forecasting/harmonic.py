"""Harmonic ridge with an autoregressive remainder: one design matrix and one solve for all series of a batch.

Notation, for n series, T bins of history, K columns:

    X (T + H, K)   1, then sine and cosine of the harmonics of the day and of the week, on the calendar's absolute time
    y (n, T)       rates of a series over its mean, 0 before the series begins
    beta (n, K)    (X'X + D)^-1 X'y, D = penalty that grows with the frequency; X'X over the bins that the series has
    r (n, L)       remainder y - X beta over the last days before the origin
    r-hat(h)       level + phi^h (recent - level) gain: AR(1) seen through white noise
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from models.arrays import Floats, Ints
from models.forecasting import remainder
from models.forecasting.calendar import Calendar
from models.forecasting.rate_history import RateHistory

RIDGE_FLOOR = 1e-6
"""Keeps the solve regular where a short history cannot distinguish two columns."""


@dataclass(frozen=True, slots=True)
class HarmonicRidge:
    """Daily and weekly harmonics by ridge regression in closed form, then AR(1) on the remainder.

    Attributes:
        daily: number of harmonics of the day.
        weekly: number of harmonics of the week (those that are harmonics of the day too are left out).
        penalty: ridge penalty of the slowest harmonic, in bins of evidence per day of history.
        weekly_after_days: with less history the weekly columns are shut: one day is too little for a weekday.
    """

    daily: int = 16
    weekly: int = 60
    penalty: float = 0.03
    weekly_after_days: float = 10.0
    name: str = "harmonic_ridge"
    min_history_days: float = 2.0
    rounds_by_batch: bool = True

    def predict(self, history: RateHistory, origins: Ints, horizon: int) -> Floats:
        """See :class:`models.forecasting.base.Forecaster`."""
        design = _keep_design(self, history.calendar, history.bins + horizon)
        scale = np.maximum(_mean_since_begin(history), np.finfo(float).tiny)[:, None]
        values = history.filled / scale
        stops = np.unique(np.concatenate([history.begin, origins]))
        grams = _keep_grams(self, history.calendar, history.bins + horizon, tuple(stops.tolist()))
        forecasts = np.empty((len(origins), values.shape[0], horizon))
        timestamps = np.zeros((values.shape[0], design.shape[1]))
        reached = 0
        for place in np.argsort(origins, kind="stable"):
            origin = int(origins[place])
            timestamps += values[:, reached:origin] @ design[reached:origin]
            reached = origin
            beta = self._solve(grams, history.begin, timestamps, origin, history.calendar)
            season = beta @ design[origin : origin + horizon].T
            start = max(0, origin - int(remainder.DAYS * history.calendar.day))
            rest = values[:, start:origin] - beta @ design[start:origin].T
            rest[~np.isfinite(history.observed[:, start:origin])] = np.nan
            expected = season + remainder.forecast_remainder(rest, history.calendar, horizon)
            forecasts[place] = np.maximum(expected, 0.0) * scale
        enough = origins[:, None] - history.begin >= self.min_history_days * history.calendar.day
        return np.where(enough[:, :, None], forecasts, np.nan)

    def frequencies(self) -> Ints:
        """Return cycles per week of each harmonic, those of the day first, shape (m,)."""
        weekly = np.arange(1, self.weekly + 1)
        return np.concatenate([7 * np.arange(1, self.daily + 1), weekly[weekly % 7 != 0]]).astype(np.int64)

    def design(self, calendar: Calendar, bins: int) -> Floats:
        """Return X, shape (bins, 1 + 2 m)."""
        angle = 2 * np.pi * calendar.week_share(0, bins)[:, None] * self.frequencies()
        return np.concatenate([np.ones((bins, 1)), np.sin(angle), np.cos(angle)], axis=1)

    def column_penalty(self, calendar: Calendar) -> Floats:
        """Return the diagonal of D, shape (K,): the square of the frequency, the mean goes free."""
        squares = np.tile((self.frequencies() / 7.0) ** 2, 2)
        return np.concatenate([[0.0], self.penalty * calendar.day * squares]) + RIDGE_FLOOR

    def columns(self, length: int, calendar: Calendar) -> Ints:
        """Return the columns of X that a history of ``length`` bins may use."""
        is_weekly = np.concatenate([[False], np.tile(self.frequencies() % 7 != 0, 2)])
        if length >= self.weekly_after_days * calendar.day:
            return np.arange(len(is_weekly))
        return np.flatnonzero(~is_weekly)

    def _solve(
        self, grams: dict[int, Floats], begin: Ints, timestamps: Floats, origin: int, calendar: Calendar
    ) -> Floats:
        """Return beta, shape (n, K): one solve per distinct beginning, usually one for the batch."""
        beta = np.zeros_like(timestamps)
        penalty = self.column_penalty(calendar)
        for first in np.unique(begin[begin < origin]):
            used = self.columns(origin - int(first), calendar)
            gram = (grams[origin] - grams[int(first)])[np.ix_(used, used)]
            gram[np.diag_indices_from(gram)] += penalty[used]
            mine = np.flatnonzero(begin == first)
            beta[np.ix_(mine, used)] = np.linalg.solve(gram, timestamps[np.ix_(mine, used)].T).T
        return beta


@lru_cache(maxsize=1)  # a worker goes through batches of the same bins: 20 ms each
def _keep_design(method: HarmonicRidge, calendar: Calendar, bins: int) -> Floats:
    design = method.design(calendar, bins)
    design.flags.writeable = False
    return design


@lru_cache(maxsize=1)
def _keep_grams(method: HarmonicRidge, calendar: Calendar, bins: int, stops: tuple[int, ...]) -> dict[int, Floats]:
    return _prefix_grams(_keep_design(method, calendar, bins), np.array(stops))


def _prefix_grams(design: Floats, stops: Ints) -> dict[int, Floats]:
    """Return X'X over the bins before each stop, (K, K) by stop: any stretch is the difference of two."""
    gram = np.zeros((design.shape[1], design.shape[1]))
    grams, reached = {0: gram}, 0
    for stop in np.unique(stops):
        rows = design[reached:stop]
        gram = gram + rows.T @ rows
        grams[int(stop)], reached = gram, int(stop)
    return grams


def _mean_since_begin(history: RateHistory) -> Floats:
    """Return the mean of each series since it began, shape (n,)."""
    return np.asarray(history.filled.sum(axis=1) / np.maximum(history.bins - history.begin, 1))
