"""Blend: the weighted mean of all methods; those with the smallest recent errors weigh most.

    l (M, n, G)   mean absolute error of a method in a group of leads, over the errors known at an origin; newer
                  errors weigh more; half of it is the error over all leads
    v             weight of a method, l^-POWER, summing to one over the methods

A mean of methods has smaller errors than the choice of one of them, since a week of past forecasts is too short to
tell which will be the best tomorrow ("forecast combination puzzle"; Timmermann 2006, "Forecast combinations").
"""

from __future__ import annotations

import numpy as np

from include.utc import DAY_S, HOUR_S
from models.arrays import Floats, Ints
from models.forecasting.calendar import Calendar

NAME = "blend"
POWER = 4.0
GROUP_S = 3 * HOUR_S
HALF_LIFE_S = 3 * DAY_S
OWN_SHARE = 0.5


def blend_forecasts(predicted: Floats, observed: Floats, at: Ints, calendar: Calendar, look_back: int) -> Floats:
    """Return the blend at every origin, records/s, shape (P, n, H).

    The weights at an origin come from bins before it alone.

    Args:
        predicted: middles of each method, shape (M, P, n, H), NaN where it made no forecast.
        observed: shape (P, n, H), NaN where it is unknown.
        at: origins, ascending, in bins, shape (P,).
        calendar: for the length of a bin.
        look_back: errors of origins more bins back than this are not used.
    """
    horizon = predicted.shape[3]
    group = min(max(1, GROUP_S // calendar.bin_s), horizon)
    starts = np.arange(0, horizon, group)
    error = np.abs(observed - predicted)
    is_known = np.isfinite(error)
    total = np.add.reduceat(np.where(is_known, error, 0.0), starts, axis=3)
    count = np.add.reduceat(is_known.astype(np.float64), starts, axis=3)
    ends = at[:, None] + np.minimum(starts + group, horizon)  # a group counts once all of its bins have passed
    result: Floats = np.empty_like(predicted[0])
    for place in range(len(at)):
        now = int(at[place])
        past = (at < now) & (at >= now - look_back)
        age_s = (now - ends[past]) * calendar.bin_s
        weight = np.where(age_s >= 0, 0.5 ** (age_s / HALF_LIFE_S), 0.0)[None, :, None, :]
        loss = _loss((total[:, past] * weight).sum(axis=1), (count[:, past] * weight).sum(axis=1))
        share = np.repeat(_shares(loss), group, axis=2)[:, :, :horizon]
        has_forecast = np.isfinite(predicted[:, place])
        share = np.where(has_forecast, share, 0.0)
        whole = share.sum(axis=0)
        mean = (share * np.where(has_forecast, predicted[:, place], 0.0)).sum(axis=0)
        result[place] = np.where(whole > 0, mean / np.where(whole > 0, whole, 1.0), np.nan)
    return result


def _loss(total: Floats, count: Floats) -> Floats:
    """Return l, shape (M, n, G), NaN where no error of a method is known."""
    everywhere = total.sum(axis=2, keepdims=True) / np.where(count.any(axis=2, keepdims=True), 1.0, np.nan)
    everywhere = np.asarray(everywhere / count.sum(axis=2, keepdims=True))
    own = total / np.where(count > 0, count, np.nan)
    typical = np.nanmean(own, axis=0, keepdims=True) / np.nanmean(everywhere, axis=0, keepdims=True)
    own = np.where(np.isnan(own), everywhere, own / np.where(typical > 0, typical, 1.0))
    return np.asarray(OWN_SHARE * own + (1 - OWN_SHARE) * everywhere)


def _shares(loss: Floats) -> Floats:
    """Return v, shape (M, n, G); without known errors a method counts like the worst, and all methods count alike."""
    worst = np.nanmax(loss, axis=0, keepdims=True)
    loss = np.where(np.isnan(loss), np.where(np.isnan(worst), 1.0, worst), loss)
    best = np.maximum(loss.min(axis=0, keepdims=True), np.finfo(float).tiny)
    share = (np.maximum(loss, best) / best) ** -POWER
    return np.asarray(share / share.sum(axis=0, keepdims=True))
