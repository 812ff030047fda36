"""The fallback for a series that is too short or has too many gaps: its recent level, wide quantiles, a reason."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from include.utc import DAY_S
from models.arrays import Floats
from models.forecasting.calendar import Calendar
from models.forecasting.rate_history import History

NAME = "recent_level"
UNSCORED = "no past day could be scored, too much is missing; holding the recent level"
NO_RATE = "no usable rate in the history"
MIN_HISTORY_DAYS = 2.0
LOOK_BACK_DAYS = 7.0
MIN_MEASURED_SHARE = 0.5
LEVEL_S = 3600
MIN_WIDTH_SHARE = 0.1
MAX_WIDTH_SHARE = 1.0


def find_fallback_reasons(history: History) -> list[str | None]:
    """Return why each series cannot be learnt from, None when it can."""
    calendar, bins = history.calendar, history.bins
    look_back = min(bins, int(LOOK_BACK_DAYS * calendar.day))
    measured = np.isfinite(history.observed[:, bins - look_back :]).sum(axis=1)
    length = np.maximum(bins - history.begin, 0)
    share = measured / np.maximum(np.minimum(length, look_back), 1)
    return [
        _reason(int(own_length), float(own_share), calendar)
        for own_length, own_share in zip(length, share, strict=True)
    ]


def _reason(length: int, share: float, calendar: Calendar) -> str | None:
    if length == 0:
        return NO_RATE
    if length < MIN_HISTORY_DAYS * calendar.day:
        return f"only {_duration(length * calendar.bin_s)} of history; holding the recent level"
    if share < MIN_MEASURED_SHARE:
        return f"only {share:.0%} of the last {LOOK_BACK_DAYS:.0f} days was measured; holding the recent level"
    return None


def _duration(seconds: int) -> str:
    """Write a length of time as a person would: minutes, hours or days."""
    if seconds < 2 * 3600:
        return f"{max(1, seconds // 60)} minutes"
    return f"{seconds // 3600} hours" if seconds < 2 * DAY_S else f"{seconds / DAY_S:.0f} days"


def hold_level(history: History, levels: Floats, horizon: int) -> Floats:
    """Return quantiles around the recent level, shape (len(levels), n, horizon); NaN for a series without any value.

    The width starts at the variation of the last measured day, at least LEAST_SPREAD of the level, and grows with the
    square root of the lead as that of a random walk does, up to MOST_SPREAD of the level: a source with minutes of
    history may double within the day.  The upper quantiles are never below those of the recent rates.
    """
    values = _recent(history, history.calendar.day)
    level = np.nanmedian(_recent(history, history.calendar.bins(LEVEL_S)), axis=1)
    variation = np.nanstd(values, axis=1)
    lead_h = (np.arange(horizon) + 0.5) * history.calendar.bin_s / 3600
    width = np.maximum(variation, MIN_WIDTH_SHARE * level)[:, None] * np.sqrt(1 + lead_h)
    width = np.minimum(width, np.maximum(MAX_WIDTH_SHARE * level, variation)[:, None])
    seen = np.nanquantile(values, levels, axis=1)[:, :, None]
    quantiles = level[None, :, None] + ndtri(levels)[:, None, None] * width[None]
    upper = (levels > 0.5)[:, None, None]
    held = np.where(upper, np.maximum(quantiles, seen), quantiles)
    return np.asarray(np.maximum.accumulate(np.maximum(held, 0.0), axis=0))


def _recent(history: History, count: int) -> Floats:
    """Return the last ``count`` measured rates of each series, however long ago, shape (n, <= count), NaN-padded."""
    missing = ~np.isfinite(history.observed)
    order = np.argsort(missing, axis=1, kind="stable")  # measured bins first, in time order
    measured = (~missing).sum(axis=1)[:, None]
    place = measured - 1 - np.arange(min(count, history.bins))
    column = np.take_along_axis(order, np.maximum(place, 0), axis=1)
    return np.where(place >= 0, np.take_along_axis(history.observed, column, axis=1), np.nan)
