"""Whether a forecast is worth planning with, or a job is better led by its measured load.

A plan rests on a forecast that is up to an hour and a quarter old; the reactive controller knows the rate of some ten
minutes ago and keeps part of the capacity free.  Where forecasts err by more than that part, and by more than
``FOLLOWED_FACTOR`` times what the rate changes in ten minutes, plans hold slots for load that does not come.

    e   sum of |observed - predicted| / sum of observed, over the leads that a plan is followed for
    c   sum of |change of the rate in REACTION_S| / sum of the rate, over the last days

Newer errors weigh more, as in the blend; until a day of errors is known a forecast is planned with.
"""

from __future__ import annotations

import numpy as np

from include.utc import DAY_S, HOUR_S
from models.arrays import Floats, Ints
from models.forecasting.blend import HALF_LIFE_S
from models.forecasting.contest import Competition
from models.forecasting.fallback import MIN_HISTORY_DAYS
from models.forecasting.rate_history import RateHistory

FOLLOWED_S = HOUR_S + 900
"""A plan is made a quarter of an hour after its forecast's origin, and followed for an hour."""
REACTION_S = 600
"""The controller needs two observation windows."""
ERROR_MAX = 0.15
"""Share of the rate by which forecasts may err in any case."""
FOLLOWED_FACTOR = 2.0
"""Chosen on the tuning traces of benchmarks/replay/split.toml."""


def find_unskilled(
    contest: Competition, champion: Ints, history: RateHistory, *, days: int, error_max: float = ERROR_MAX
) -> list[str | None]:
    """Return why each series is no forecast to plan with, None where it is.

    Args:
        contest: the record of past origins, in bins of ``history``.
        champion: index of each series' method, shape (n,).
        history: up to now.
        days: so many last days count.
        error_max: see :data:`ERROR_MAX`.
    """
    error = _compute_errors(contest, champion, history, days)
    change = _compute_changes(history, days)
    unskilled = (error > error_max) & (error > FOLLOWED_FACTOR * change)
    return [
        f"forecasts of the next hour were wrong by {own:.0%} of the rate, which changes by {other:.0%} in ten minutes: "
        "following the measured load"
        if bad
        else None
        for bad, own, other in zip(unskilled.tolist(), error.tolist(), change.tolist(), strict=True)
    ]


def _compute_errors(contest: Competition, champion: Ints, history: RateHistory, days: int) -> Floats:
    """Return e, shape (n,), NaN until forecasts that could be planned with have been followed for a day."""
    calendar, now = contest.calendar, history.bins
    leads = np.arange(min(calendar.bins(FOLLOWED_S), contest.predicted.shape[3]))
    target = contest.at[:, None] + leads
    age_s = (now - target) * calendar.bin_s
    weight = np.where((age_s > 0) & (age_s <= days * DAY_S), 0.5 ** (age_s / HALF_LIFE_S), 0.0)  # (P, H')
    series = np.arange(len(champion))
    observed = contest.observed[:, :, leads]
    predicted = contest.predicted[champion, :, series].transpose(1, 0, 2)[:, :, leads]
    usable_from = history.begin + MIN_HISTORY_DAYS * calendar.day
    is_usable = (contest.at[:, None] >= usable_from) & (now >= usable_from + calendar.day)  # (P, n)
    counted = weight[:, None] * (is_usable[:, :, None] & np.isfinite(observed) & np.isfinite(predicted))
    error = np.einsum("pnh,pnh->n", counted, np.nan_to_num(np.abs(observed - predicted)))
    rate = np.einsum("pnh,pnh->n", counted, np.nan_to_num(observed))
    return np.asarray(error / np.where(rate > 0, rate, np.nan))


def _compute_changes(history: RateHistory, days: int) -> Floats:
    """Return c, shape (n,), NaN for a series without rates."""
    calendar = history.calendar
    reaction = max(1, REACTION_S // calendar.bin_s)
    rates = history.observed[:, -(days * calendar.day + reaction) :]
    if rates.shape[1] <= reaction:
        return np.full(len(rates), np.nan)
    later, change = rates[:, reaction:], np.abs(rates[:, reaction:] - rates[:, :-reaction])
    age_s = np.arange(later.shape[1])[::-1] * calendar.bin_s
    counted = np.isfinite(change) * 0.5 ** (age_s / HALF_LIFE_S)
    rate = (counted * np.nan_to_num(later)).sum(axis=1)
    return np.asarray((counted * np.nan_to_num(change)).sum(axis=1) / np.where(rate > 0, rate, np.nan))
