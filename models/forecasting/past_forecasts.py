"""What the methods forecast from past origins, and what came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from include.utc import HOUR_S
from models.arrays import Bools, Floats, Ints
from models.forecasting import blend
from models.forecasting.base import Registry
from models.forecasting.calendar import Calendar
from models.forecasting.rate_history import RateHistory, select_series

ORIGIN_SPACING_S = 6 * HOUR_S
"""Distance of the past origins of a backtest."""


@dataclass(frozen=True, slots=True)
class PastForecasts:
    """Middles of M methods for n series from P origins, H bins ahead.

    Attributes:
        calendar: of the bins.
        names: of the methods, in the order of their registry.
        predicted: records/s, shape (M, P, n, H), NaN where a method made no forecast.
        observed: shape (P, n, H), NaN where it is unknown.
        at: origins, ascending, shape (P,).
        look_back: bins before a day whose origins are used for it.
    """

    calendar: Calendar
    names: tuple[str, ...]
    predicted: Floats
    observed: Floats
    at: Ints
    look_back: int

    def select(self, rows: Bools) -> PastForecasts:
        """Return those of some series, rows (n,)."""
        if rows.all():
            return self
        predicted, observed = np.compress(rows, self.predicted, axis=2), np.compress(rows, self.observed, axis=1)
        return replace(self, predicted=predicted, observed=observed)

    def blend(self) -> Floats:
        """Return the blend of the methods at every origin, records/s, shape (P, n, H)."""
        return blend.blend_forecasts(self.predicted, self.observed, self.at, self.calendar, self.look_back)


def find_needed(names: Sequence[str], champions: Sequence[str | None]) -> Bools:
    """Return which methods the forecast of each series needs, shape (M, n): its champion, all for a blend or None."""
    needs_all = np.array([name is None or name == blend.NAME for name in champions], bool)
    return np.stack([needs_all | np.array([name == one for one in champions], bool) for name in names])


def forecast_past(methods: Registry, history: RateHistory, *, days: int, horizon: int, needed: Bools) -> PastForecasts:
    """Forecast from past origins and from the end of the history, which is the last origin.

    The bits are those that all methods have for all series: a method that rounds by what else is in the batch is asked
    for all of them as soon as one needs it.  There is an origin every ORIGIN_SPACING_S of so many days; a method
    forecasts of the n series those that need it, ``needed``, shape (M, n).
    """
    calendar, now = history.calendar, history.bins
    spacing, look_back = calendar.bins(ORIGIN_SPACING_S), days * calendar.day
    at = np.arange(now, max(0, now - look_back - 1), -spacing, dtype=np.int64)[::-1]
    predicted = np.full((len(methods), len(at), len(history.begin), horizon), np.nan)
    for made, method, rows in zip(predicted, methods.values(), needed, strict=True):
        if rows.all() or (rows.any() and method.rounds_by_batch):
            made[:] = method.predict(history, at, horizon)
        elif rows.any():
            made[:, rows] = method.predict(select_series(history, rows), at, horizon)
    unknown = np.full((len(history.begin), horizon), np.nan)
    later = np.concatenate([history.observed, unknown], axis=1)
    observed = np.stack([later[:, origin : origin + horizon] for origin in at])
    return PastForecasts(calendar, tuple(methods), predicted, observed, at, look_back)
