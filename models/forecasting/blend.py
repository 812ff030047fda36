"""Blend: the mean of all methods, those that erred least lately first.

    l (M, n, G)   mean absolute error of a method in a group of leads, over the past origins that are known at a moment;
                  newer errors weigh more; half of it is that of all leads
    v             weight of a method, l^-POWER, summing to one over the methods

A mean of methods errs less than the choice of one among them, since a week of past forecasts tells little of who will
be the best tomorrow ("forecast combination puzzle"; Timmermann 2006, "Forecast combinations").
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


def blended(predicted: Floats, seen: Floats, at: Ints, calendar: Calendar, look_back: int) -> Floats:
    """Return the blend at every origin, records/s, shape (P, n, H).

    The weights at an origin come from bins before it alone.

    Args:
        predicted: what each method said, shape (M, P, n, H), NaN where it had nothing to say.
        seen: what came, shape (P, n, H), NaN where it is unknown.
        at: origins, ascending, in bins, shape (P,).
        calendar: for the length of a bin.
        look_back: errors of origins more bins back than this are forgotten.
    """
    horizon = predicted.shape[3]
    group = min(max(1, GROUP_S // calendar.bin_s), horizon)
    starts = np.arange(0, horizon, group)
    error = np.abs(seen - predicted)
    known = np.isfinite(error)
    total = np.add.reduceat(np.where(known, error, 0.0), starts, axis=3)
    number = np.add.reduceat(known.astype(np.float64), starts, axis=3)
    ends = at[:, None] + np.minimum(starts + group, horizon)  # a group counts once all of it has come
    made: Floats = np.empty_like(predicted[0])
    for place in range(len(at)):
        now = int(at[place])
        past = (at < now) & (at >= now - look_back)
        age_s = (now - ends[past]) * calendar.bin_s
        weight = np.where(age_s >= 0, 0.5 ** (age_s / HALF_LIFE_S), 0.0)[None, :, None, :]
        loss = _loss((total[:, past] * weight).sum(axis=1), (number[:, past] * weight).sum(axis=1))
        share = np.repeat(_shares(loss), group, axis=2)[:, :, :horizon]
        speaks = np.isfinite(predicted[:, place])
        share = np.where(speaks, share, 0.0)
        whole = share.sum(axis=0)
        mean = (share * np.where(speaks, predicted[:, place], 0.0)).sum(axis=0)
        made[place] = np.where(whole > 0, mean / np.where(whole > 0, whole, 1.0), np.nan)
    return made


def _loss(total: Floats, number: Floats) -> Floats:
    """Return l, shape (M, n, G), NaN where a method has no error that is known."""
    everywhere = total.sum(axis=2, keepdims=True) / np.where(number.any(axis=2, keepdims=True), 1.0, np.nan)
    everywhere = np.asarray(everywhere / number.sum(axis=2, keepdims=True))
    own = total / np.where(number > 0, number, np.nan)
    typical = np.nanmean(own, axis=0, keepdims=True) / np.nanmean(everywhere, axis=0, keepdims=True)
    own = np.where(np.isnan(own), everywhere, own / np.where(typical > 0, typical, 1.0))
    return np.asarray(OWN_SHARE * own + (1 - OWN_SHARE) * everywhere)


def _shares(loss: Floats) -> Floats:
    """Return v, shape (M, n, G); a method without a record counts like the worst, and all alike when none has one."""
    worst = np.nanmax(loss, axis=0, keepdims=True)
    loss = np.where(np.isnan(loss), np.where(np.isnan(worst), 1.0, worst), loss)
    best = np.maximum(loss.min(axis=0, keepdims=True), np.finfo(float).tiny)
    share = (np.maximum(loss, best) / best) ** -POWER
    return np.asarray(share / share.sum(axis=0, keepdims=True))
