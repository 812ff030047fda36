"""Which forecasts are planned with: those that know more than the measured load does."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from lab.replay.rolling import roll
from models.arrays import Floats
from models.forecasting import Calendar, ForecastBatch, ForecastSettings, forecast_batch

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


def judge(rates: Floats, **changed: float) -> str | None:
    settings = ForecastSettings(horizon=DAY, **changed)
    return forecast_batch(rates[None], CALENDAR, settings).reason[0]


@cache
def made(load: Callable[[int], Floats], days: int) -> ForecastBatch:
    """Return the forecast of a load with the defaults; it takes a second, and several tests look at it."""
    return forecast_batch(load(days)[None], CALENDAR, SETTINGS)


def test_a_season_is_planned_with() -> None:
    assert made(season, 6).reason[0] is None


def test_a_load_that_is_followed_better_than_forecast_is_no_forecast_to_plan_with() -> None:
    result = made(wander, 6)
    assert result.reason[0] is not None
    assert "following the measured load" in result.reason[0]
    assert result.champion[0] >= 0  # its quantiles are those of the champion all the same
    assert np.isfinite(result.quantiles).all()


def test_a_load_that_nobody_can_follow_is_planned_with() -> None:
    assert made(jump, 6).reason[0] is None


def test_the_share_is_a_setting() -> None:
    assert judge(wander(6), plan_error_max=10.0) is None
    assert judge(season(6) + 0.02 * wander(6), plan_error_max=0.15) is None


def test_each_series_is_judged_by_its_own_errors() -> None:
    result = forecast_batch(np.stack([season(6), wander(6), jump(6)]), CALENDAR, SETTINGS)
    assert [reason is None for reason in result.reason] == [True, False, True]


@pytest.mark.parametrize("days", [5, pytest.param(9, marks=pytest.mark.long)])
def test_a_replay_judges_as_the_stage_does(days: int) -> None:
    for load in (season, wander, jump):
        rolled = roll(load(days), CALENDAR, np.array([days * DAY]), SETTINGS)
        assert (rolled.reason[0] is None) == (made(load, days).reason[0] is None)


@pytest.mark.long
def test_a_forecast_that_was_bad_long_ago_is_planned_with_again() -> None:
    rates = np.concatenate([wander(8), season(12)])
    origins = np.arange(8, 21, 4) * DAY
    reasons = roll(rates, CALENDAR, origins, SETTINGS).reason
    assert reasons[0] is not None
    assert reasons[-1] is None
