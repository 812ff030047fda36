"""Cleaning: what is a data error and what is load."""

from __future__ import annotations

import numpy as np
import pytest

from models.forecasting.calendar import Calendar
from models.forecasting.rate_history import prepare

HOURLY = Calendar(0, 3600)
DAY = 24


def daily_wave(days: int) -> np.ndarray:
    return 100 + 50 * np.sin(2 * np.pi * np.arange(days * DAY) / DAY)


def test_a_short_run_of_zeros_is_a_gap_and_filled_from_the_week_before() -> None:
    rates = daily_wave(10)
    rates[200:206] = 0.0
    history = prepare(rates[None], HOURLY)
    assert np.isnan(history.observed[0, 200:206]).all()
    assert np.isfinite(history.observed[0]).sum() == len(rates) - 6
    np.testing.assert_allclose(history.filled[0, 200:206], rates[200 - 7 * DAY : 206 - 7 * DAY])


def test_a_gap_is_filled_from_the_week_before_and_not_from_the_day_before() -> None:
    rates = daily_wave(15)
    rates[6 * DAY : 7 * DAY] += 30.0  # the day of the week on which more is done
    rates[13 * DAY + 5 : 13 * DAY + 9] = np.nan
    filled = prepare(rates[None], HOURLY).filled[0]
    np.testing.assert_allclose(filled[13 * DAY + 5 : 13 * DAY + 9], rates[6 * DAY + 5 : 6 * DAY + 9])


def test_a_gap_whose_week_before_is_one_too_is_filled_from_the_day_before() -> None:
    rates = daily_wave(15)
    rates[12 * DAY : 13 * DAY] += 30.0
    rates[[6 * DAY + 5, 13 * DAY + 5]] = np.nan
    filled = prepare(rates[None], HOURLY).filled[0]
    assert filled[13 * DAY + 5] == pytest.approx(rates[12 * DAY + 5])


def test_zeros_that_last_more_than_a_day_are_load() -> None:
    rates = daily_wave(10)
    rates[-30:] = 0.0
    assert (prepare(rates[None], HOURLY).observed[0, -30:] == 0).all()


def test_an_outage_with_unmeasured_bins_inside_is_one_outage() -> None:
    rates = daily_wave(10)
    rates[-30:] = 0.0
    rates[-20:-15] = np.nan
    observed = prepare(rates[None], HOURLY).observed[0, -30:]
    assert (np.nan_to_num(observed) == 0).all()
    assert np.isnan(observed).sum() == 5


def test_a_source_that_rests_every_night_keeps_its_zeros() -> None:
    rates = daily_wave(10)
    night = np.arange(len(rates)) % DAY < 6
    rates[night] = 0.0
    assert (prepare(rates[None], HOURLY).observed[0, night] == 0).all()


def test_a_counters_jump_is_forgotten_and_a_flash_crowd_is_not() -> None:
    rates = daily_wave(10)
    rates[50] = 1e6
    rates[100:106] = 2500.0  # ten times and more, but it lasts
    observed = prepare(rates[None], HOURLY).observed[0]
    assert np.isnan(observed[50])
    assert (observed[100:106] == 2500.0).all()


def test_what_is_no_rate_is_a_gap() -> None:
    rates = daily_wave(3)
    rates[[5, 6, 7]] = [-1.0, np.inf, np.nan]
    observed = prepare(rates[None], HOURLY).observed[0]
    assert np.isnan(observed[5:8]).all()
    assert np.isfinite(observed).sum() == len(rates) - 3


def test_filling_uses_earlier_bins_only() -> None:
    generator = np.random.default_rng(3)
    rates = 50 + generator.random((6, 20 * DAY))
    rates[generator.random(rates.shape) < 0.4] = np.nan
    cut = 11 * DAY + 5
    changed = rates.copy()
    changed[:, cut:] *= 1.7
    np.testing.assert_array_equal(prepare(rates, HOURLY).filled[:, :cut], prepare(changed, HOURLY).filled[:, :cut])


def test_a_series_begins_with_its_first_measured_bin() -> None:
    rates = np.full((2, 5 * DAY), np.nan)
    rates[0, 30:] = 7.0
    history = prepare(rates, HOURLY)
    assert history.begin.tolist() == [30, 5 * DAY]
    assert (history.filled[0, :30] == 0).all()
    assert (history.filled[0, 30:] == 7).all()


def test_the_callers_array_is_left_alone() -> None:
    rates = daily_wave(4)
    rates[10] = 0.0
    before = rates.copy()
    prepare(rates[None], HOURLY)
    np.testing.assert_array_equal(rates, before)


@pytest.mark.parametrize("bin_s", [10, 60, 300, 640, 675, 900, 1800, 3600, 7200, 43_200, 86_400])
def test_every_length_of_bin_that_divides_a_day_works(bin_s: int) -> None:
    calendar = Calendar(0, bin_s)
    rates = np.full((1, 2 * calendar.day), 5.0)
    assert (prepare(rates, calendar).observed == 5.0).all()


def test_bins_that_do_not_divide_a_day_are_refused() -> None:
    with pytest.raises(ValueError, match="do not divide a day"):
        Calendar(0, 1000)
