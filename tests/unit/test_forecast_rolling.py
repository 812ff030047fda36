"""Rolling forecasts of one series: nothing of the future, the stage's ways, speed."""

from __future__ import annotations

import numpy as np
import pytest

from lab.replay.rolling import roll
from models.forecasting import QUANTILES, Calendar, ForecastSettings

CALENDAR = Calendar(1_772_000_000 // 86_400 * 86_400, 1800)
DAY = CALENDAR.day
SETTINGS = ForecastSettings(horizon=DAY)


def load(days: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    bins = np.arange(days * DAY)
    wave = 1 + 0.5 * np.sin(2 * np.pi * bins / DAY) - 0.3 * ((bins // DAY) % 7 >= 5)
    return np.asarray(1000 * (wave + np.repeat(generator.normal(0, 0.03, days * 4), DAY // 4)))


def hourly(first_day: float, last_day: float) -> np.ndarray:
    return np.arange(int(first_day * DAY), int(last_day * DAY), 2)


@pytest.mark.parametrize(("cut_day", "days"), [(1.3, 5), (7.6, 9)])
def test_the_future_does_not_matter(cut_day: float, days: int) -> None:
    cut = int(cut_day * DAY)
    rates = load(days)
    rates[3 * DAY : 3 * DAY + 5] = np.nan
    rates[6 * DAY + 3 : 6 * DAY + 9] = 0.0
    other = rates.copy()
    other[cut:] = 7 * other[cut:][::-1] + 3
    other[cut + DAY : cut + 3 * DAY] = 0.0
    origins = np.union1d(hourly(0, days)[::12], [cut - 1, cut])  # those at the cut would be the first to see beyond it
    before = origins <= cut
    first, second = (roll(values, CALENDAR, origins, SETTINGS).quantiles for values in (rates, other))
    np.testing.assert_allclose(first[before], second[before], rtol=1e-9)
    assert not np.allclose(first[~before], second[~before])


def test_shape_order_and_the_first_hours() -> None:
    origins = hourly(0, 4)
    made = roll(load(4), CALENDAR, origins, SETTINGS)
    assert made.quantiles.shape == (len(origins), len(QUANTILES), DAY)
    assert np.isnan(made.quantiles[0]).all()  # nothing was measured yet
    known = made.quantiles[1:]
    assert np.isfinite(known).all()
    assert (known >= 0).all()
    assert (np.diff(known, axis=1) >= 0).all()
    assert made.method[1] == "recent_level"
    assert made.reason[1] == "only 60 minutes of history; holding the recent level"
    assert made.reason[-1] is None


def test_origins_in_any_order_and_off_the_hour() -> None:
    origins = np.array([9 * DAY + 5, 3 * DAY, 9 * DAY + 5, 10 * DAY])
    made = roll(load(10), CALENDAR, origins, SETTINGS).quantiles
    assert np.isfinite(made).all()
    np.testing.assert_array_equal(made[0], made[2])
    assert roll(load(3), CALENDAR, origins[:0], SETTINGS).quantiles.shape == (0, len(QUANTILES), DAY)


def test_what_cannot_be_forecast_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        roll(np.ones((2, 5)), CALENDAR, np.array([1]), SETTINGS)
    with pytest.raises(ValueError, match="origins"):
        roll(np.ones(5), CALENDAR, np.array([6]), SETTINGS)


@pytest.mark.parametrize("horizon", [1, 3, 7])
def test_any_horizon(horizon: int) -> None:
    made = roll(load(6), CALENDAR, np.array([5 * DAY]), ForecastSettings(horizon=horizon)).quantiles
    assert made.shape == (1, len(QUANTILES), horizon)
    assert np.isfinite(made).all()
