"""The two methods against numbers worked out by hand or by another implementation."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.pipeline.forecasting import SklearnHarmonic
from models.forecasting import harmonic
from models.forecasting.calendar import Calendar
from models.forecasting.harmonic import HarmonicRidge
from models.forecasting.rate_history import prepare
from models.forecasting.remainder import forecast_remainder
from models.forecasting.seasonal_naive import SeasonalNaive

CALENDAR = Calendar(0, 3600)
DAY = 24


@pytest.mark.parametrize(("days", "season"), [(15, 168), (7, 168), (6, 24), (1, 24)])
def test_seasonal_naive_repeats_the_longest_season_it_may(days: int, season: int) -> None:
    rates = 1000 + np.arange(1.0, days * DAY + 1)[None]
    path = SeasonalNaive().predict(prepare(rates, CALENDAR), np.array([days * DAY]), 200)[0, 0]
    expected = [rates[0, days * DAY - season + step % season] for step in range(200)]
    assert path.tolist() == expected


def test_seasonal_naive_of_hours_holds_the_last_value() -> None:
    path = SeasonalNaive().predict(prepare(np.array([[3.0, 5.0, 4.0]]), CALENDAR), np.array([3]), 4)[0, 0]
    assert path.tolist() == [4.0] * 4


@pytest.mark.parametrize("days", [4, 21])
def test_harmonic_ridge_is_sklearns_ridge(days: int) -> None:
    generator = np.random.default_rng(2)
    rates = 100 + 30 * np.sin(2 * np.pi * np.arange(days * DAY) / DAY) + generator.normal(0, 5, (3, days * DAY))
    rates[1, 50:60] = np.nan
    rates[2, :30] = np.nan
    history, origins = prepare(rates, CALENDAR), np.array([days * DAY - 13, days * DAY])
    ours = HarmonicRidge().predict(history, origins, DAY)
    np.testing.assert_allclose(ours, SklearnHarmonic().predict(history, origins, DAY), rtol=1e-7)


def test_harmonic_ridge_learns_day_and_week() -> None:
    hours = np.arange(29 * DAY)
    truth = 1000 + 300 * np.sin(2 * np.pi * hours / DAY) + 200 * np.cos(2 * np.pi * hours / (7 * DAY))
    path = HarmonicRidge().predict(prepare(truth[None, : 28 * DAY], CALENDAR), np.array([28 * DAY]), DAY)[0, 0]
    assert np.abs(path - truth[28 * DAY :]).max() < 10


def autoregression(phi: float, count: int) -> np.ndarray:
    generator = np.random.default_rng(5)
    made = np.zeros(count)
    for step in range(1, count):
        made[step] = phi * made[step - 1] + generator.normal()
    return made


def test_a_disturbance_fades_at_the_rate_it_was_seen_to_fade() -> None:
    rest = autoregression(0.9, 5000)
    rest[-DAY:] -= rest[-DAY:].mean()  # no change of level
    path = forecast_remainder(rest[None], CALENDAR, 20, recent_s=3600)[0]
    assert path[0] == pytest.approx(0.9 * rest[-1], rel=0.1)
    np.testing.assert_allclose(path / path[0], 0.9 ** np.arange(20), atol=0.05)


def test_a_disturbance_counts_from_when_it_was_last_seen() -> None:
    rest = autoregression(0.9, 5000)
    rest[-DAY:] -= rest[-DAY:].mean()
    gap = np.append(rest, np.full(5, np.nan))[None]
    observed, unseen = (forecast_remainder(part, CALENDAR, 20, level_share=0.0)[0] for part in (rest[None], gap))
    np.testing.assert_allclose(unseen[:15], observed[5:], rtol=0.02, atol=0.02)


def test_white_noise_starts_no_disturbance() -> None:
    noise = np.random.default_rng(6).normal(0, 1, (1, 5000))
    noise[0, -1] = 10.0
    assert np.abs(forecast_remainder(noise, CALENDAR, 20, level_share=0.0)).max() < 1.0


def test_part_of_a_change_of_level_is_kept() -> None:
    rest = np.concatenate([np.zeros(3 * DAY), np.full(DAY, 8.0)])[None]
    path = forecast_remainder(rest, CALENDAR, 300)[0]
    assert path[-1] == pytest.approx(0.6 * 8.0, abs=0.5)


def test_harmonic_forecasts_do_not_depend_on_the_batch_before() -> None:
    whole = 100 + np.random.default_rng(5).random((3, 14 * DAY))
    late = whole.copy()
    late[:, :60] = np.nan
    cases = [(whole, CALENDAR), (late, CALENDAR), (whole, Calendar(86_400, 3600)), (whole[:, :-1], CALENDAR)]

    def predict(rates: np.ndarray, calendar: Calendar) -> bytes:
        origins = np.array([12 * DAY, rates.shape[1]])
        return HarmonicRidge().predict(prepare(rates, calendar), origins, DAY).tobytes()

    alone = []
    for case in cases:
        harmonic._keep_design.cache_clear()
        harmonic._keep_grams.cache_clear()
        alone.append(predict(*case))
    assert [predict(*case) for case in (*cases, *reversed(cases))] == [*alone, *reversed(alone)]
