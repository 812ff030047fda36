"""The global model: fits that know nothing of the future, and series that learn from each other."""

from __future__ import annotations

import subprocess
import sys
from datetime import date

import numpy as np

from models.forecasting.blend import blend_forecasts
from models.forecasting.boosting import GlobalBoosting, fit
from models.forecasting.calendar import Calendar
from models.forecasting.rate_history import prepare
from models.forecasting.weekday_profile import WeekdayProfile

CALENDAR = Calendar(1_772_409_600, 3600)  # Monday 2026-03-02, UTC
DAY = 24


def fleet(count: int, days: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    hours = np.arange(days * DAY)
    wave = 2 + np.sin(2 * np.pi * hours / DAY) - 0.5 * ((hours // DAY) % 7 >= 5)
    drift = np.cumsum(generator.normal(0, 0.01, (count, len(hours))), axis=1)
    return np.asarray(generator.uniform(10, 1e4, (count, 1)) * np.maximum(wave + drift, 0.1))


def test_a_fit_sees_nothing_from_its_end_on_and_is_repeatable() -> None:
    rates = fleet(6, 12)
    until_s = CALENDAR.start_s + 9 * DAY * 3600.0
    changed = rates.copy()
    changed[:, 9 * DAY :] *= 5
    origins = np.array([9 * DAY])
    paths = []
    for values in (rates, changed, rates):
        made = fit([prepare(values, CALENDAR)], until_s, DAY)
        assert made is not None
        paths.append(GlobalBoosting((made,)).predict(prepare(rates, CALENDAR), origins, DAY))
    np.testing.assert_array_equal(paths[0], paths[1])
    np.testing.assert_array_equal(paths[0], paths[2])
    assert np.isfinite(paths[0]).all()


def test_before_its_fit_a_model_is_silent() -> None:
    history = prepare(fleet(6, 12), CALENDAR)
    made = fit([history], CALENDAR.start_s + 9 * DAY * 3600.0, DAY)
    assert made is not None
    paths = GlobalBoosting((made,)).predict(history, np.array([8 * DAY, 10 * DAY]), DAY)
    assert np.isnan(paths[0]).all()
    assert np.isfinite(paths[1]).all()
    assert np.isnan(GlobalBoosting().predict(history, np.array([8 * DAY]), DAY)).all()


def test_one_short_series_is_not_enough() -> None:
    assert fit([prepare(fleet(1, 4), CALENDAR)], CALENDAR.start_s + 4 * DAY * 3600.0, DAY) is None


def test_a_young_series_learns_from_the_others() -> None:
    rates = fleet(30, 16)
    rates[0, : 12 * DAY] = np.nan
    history = prepare(rates[:, : 15 * DAY], CALENDAR)
    made = fit([history], CALENDAR.start_s + 15 * DAY * 3600.0, DAY)
    assert made is not None
    path = GlobalBoosting((made,)).predict(history, np.array([15 * DAY]), DAY)[0, 0]
    truth = rates[0, 15 * DAY :]
    assert np.abs(path - truth).mean() < 0.15 * truth.mean()


def test_the_profile_follows_the_clock_of_its_time_zone() -> None:
    zone = Calendar(CALENDAR.start_s, 3600, "America/New_York")
    assert zone.day_share(0, 1)[0] * 24 == 19.5  # Sunday evening there
    assert zone.weekday(0, 6).tolist() == [6, 6, 6, 6, 6, 0]
    spring = Calendar(int(np.datetime64("2026-03-08T06:00", "s").astype(int)), 3600, "America/New_York")
    assert (spring.day_share(0, 3) * 24).tolist() == [1.5, 3.5, 4.5]  # an hour is left out


def test_a_holiday_is_a_sunday() -> None:
    calendar = Calendar(CALENDAR.start_s, 3600, holidays=frozenset({date(2026, 3, 18)}))
    assert calendar.weekday(16 * DAY, 16 * DAY + 2).tolist() == [6, 6]
    hours = np.arange(16 * DAY)
    rates = np.where((hours // DAY) % 7 == 6, 100.0, 1000.0)[None]
    path = WeekdayProfile().predict(prepare(rates, calendar), np.array([16 * DAY]), DAY)
    assert path.mean() < 300
    assert WeekdayProfile().predict(prepare(rates, CALENDAR), np.array([16 * DAY]), DAY).mean() > 800


def test_the_blend_listens_to_those_who_were_right() -> None:
    at = np.arange(1, 15) * DAY
    observed = np.full((14, 1, DAY), 100.0)
    predicted = np.stack([observed + 1, observed + 20, np.full_like(observed, np.nan)])
    mixed = blend_forecasts(predicted, observed, at, CALENDAR, 7 * DAY)
    np.testing.assert_allclose(mixed[0], 110.5)  # nothing is known yet: the mean
    np.testing.assert_allclose(mixed[3:], 101, atol=0.01)


def test_lightgbm_is_loaded_without_scikit_learn_and_hides_none_that_is_there() -> None:
    code = """
import sys
from models.forecasting.boosting import load_lightgbm
load_lightgbm().Booster
print("sklearn" in sys.modules)
from sklearn.isotonic import IsotonicRegression
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
