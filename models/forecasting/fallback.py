"""The fallback for a series that is too short or has too many gaps: wide quantiles and a reason.

After one season the day before is repeated, until there are errors to learn from; before, the recent level is held.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from include.utc import DAY_S
from models.arrays import Floats
from models.forecasting.calendar import Calendar
from models.forecasting.rate_history import RateHistory

NAME = "recent_level"
SEASON_NAME = "day_before"
UNSCORED = "no past day could be scored, too much is missing; holding the recent level"
NO_RATE = "no usable rate in the history"
MIN_HISTORY_DAYS = 2.0
LOOK_BACK_DAYS = 7.0
MIN_MEASURED_SHARE = 0.5
LEVEL_S = 3600
SEASON_DAYS = 1.0
SEASON_WIDTH_SHARE = 0.12
"""sd of a day's differences from the day before, as a share of the mean rate; chosen on the traces of data/traces."""
MIN_WIDTH_SHARE = 0.1
MAX_WIDTH_SHARE = 1.0


def find_fallback_reasons(history: RateHistory) -> list[str | None]:
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
        held = "the recent level" if length < SEASON_DAYS * calendar.day else "the day before"
        return f"only {_duration(length * calendar.bin_s)} of history; holding {held}"
    if share < MIN_MEASURED_SHARE:
        return f"only {share:.0%} of the last {LOOK_BACK_DAYS:.0f} days was measured; holding the recent level"
    return None


def _duration(seconds: int) -> str:
    """Write a length of time as a person would: minutes, hours or days."""
    if seconds < 2 * 3600:
        return f"{max(1, seconds // 60)} minutes"
    return f"{seconds // 3600} hours" if seconds < 2 * DAY_S else f"{seconds / DAY_S:.0f} days"


def forecast_without_scores(history: RateHistory, levels: Floats, horizon: int) -> tuple[Floats, list[str]]:
    """Return quantiles, shape (len(levels), n, horizon), and the name of the method of each series."""
    day = history.calendar.day
    quantiles = hold_level(history, levels, horizon)
    names = [NAME] * quantiles.shape[1]
    if history.bins < SEASON_DAYS * day:
        return quantiles, names
    last = history.observed[:, -day:]
    has_season = (history.bins - history.begin >= SEASON_DAYS * day) & (
        np.isfinite(last).sum(axis=1) >= MIN_MEASURED_SHARE * day
    )
    repeated = history.filled[:, history.bins - day + np.arange(horizon) % day]
    width = SEASON_WIDTH_SHARE * np.nanmean(np.where(has_season[:, None], last, 0.0), axis=1)
    season = np.maximum(repeated[None] + ndtri(levels)[:, None, None] * width[None, :, None], 0.0)
    has_season &= np.isfinite(season).all(axis=(0, 2))
    result = np.where(has_season[None, :, None], season, quantiles)
    return result, [SEASON_NAME if chosen else NAME for chosen in has_season]


def hold_level(history: RateHistory, levels: Floats, horizon: int) -> Floats:
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
    observed = np.nanquantile(values, levels, axis=1)[:, :, None]
    quantiles = level[None, :, None] + ndtri(levels)[:, None, None] * width[None]
    upper = (levels > 0.5)[:, None, None]
    held = np.where(upper, np.maximum(quantiles, observed), quantiles)
    return np.asarray(np.maximum.accumulate(np.maximum(held, 0.0), axis=0))


def _recent(history: RateHistory, count: int) -> Floats:
    """Return the last ``count`` measured rates of each series, however long ago, shape (n, <= count), NaN-padded."""
    missing = ~np.isfinite(history.observed)
    order = np.argsort(missing, axis=1, kind="stable")  # measured bins first, in time order
    measured = (~missing).sum(axis=1)[:, None]
    place = measured - 1 - np.arange(min(count, history.bins))
    column = np.take_along_axis(order, np.maximum(place, 0), axis=1)
    return np.where(place >= 0, np.take_along_axis(history.observed, column, axis=1), np.nan)
