"""Which forecasts are planned with: those that know more than the measured load does."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from lab.replay.rolling import Rolling, roll
from models.arrays import Floats
from models.forecasting import Calendar, ForecastSettings

CALENDAR = Calendar(0, 600)
DAY = CALENDAR.day
SETTINGS = ForecastSettings(horizon=DAY)


def season(days: int) -> Floats:
    """A load that is the same every day."""
    return np.asarray(1000 * (1.2 + np.sin(2 * np.pi * np.arange(days * DAY) / DAY)))


def wander(days: int) -> Floats:
    """A load that changes slowly from minute to minute and has no season: one wave in 31 hours, another in 43."""
    hours = np.arange(days * DAY) / 6
    waves = np.sin(2 * np.pi * hours / 31) + np.sin(2 * np.pi * hours / 43 + 1)
    return np.asarray(1000 * np.exp(1.2 * waves))


def jump(days: int) -> Floats:
    """A load that is another one every ten minutes: nobody knows it ahead, and ten minutes later it says nothing."""
    return np.asarray(1000 * np.random.default_rng(1).exponential(size=days * DAY))


@cache
def made(load: Callable[[int], Floats], days: int = 5) -> Rolling:
    """Return the forecast of a load at the end of some days; it takes a second, and several tests look at it."""
    return roll(load(days), CALENDAR, np.array([days * DAY]), SETTINGS)


def test_a_season_is_planned_with() -> None:
    assert made(season).reason == [None]


def test_a_load_that_is_followed_better_than_forecast_is_no_forecast_to_plan_with() -> None:
    result = made(wander)
    assert result.reason[0] is not None
    assert "following the measured load" in result.reason[0]
    assert np.isfinite(result.quantiles).all()  # they are those of the champion all the same


def test_a_load_that_nobody_can_follow_is_planned_with() -> None:
    assert made(jump).reason == [None]


@pytest.mark.long
def test_a_forecast_that_was_bad_long_ago_is_planned_with_again() -> None:
    rates = np.concatenate([wander(8), season(12)])
    origins = np.arange(8, 21, 4) * DAY
    reasons = roll(rates, CALENDAR, origins, SETTINGS).reason
    assert reasons[0] is not None
    assert reasons[-1] is None
