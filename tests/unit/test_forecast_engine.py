"""A batch from rates to quantiles: good series, short ones, broken ones, and rubbish."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.arrays import Floats, Ints
from models.forecasting import Calendar, ForecastSettings, default_registry, forecast_batch
from models.forecasting.base import registry
from models.forecasting.rate_history import RateHistory

CALENDAR = Calendar(0, 1800)
DAY = CALENDAR.day
ONE_DAY = ForecastSettings(horizon=DAY)


def load(count: int, days: int, seed: int = 0) -> np.ndarray:
    """Rates with a day, a weekend, slow drift and noise, shape (count, days x DAY)."""
    generator = np.random.default_rng(seed)
    bins = np.arange(days * DAY)
    phase = generator.uniform(0, DAY, (count, 1))
    wave = 1 + 0.5 * np.sin(2 * np.pi * (bins + phase) / DAY)
    weekend = np.where((bins // DAY) % 7 >= 5, 0.7, 1.0)
    drift = np.cumsum(generator.normal(0, 0.004, (count, len(bins))), axis=1)
    noise = generator.normal(0, 0.05, (count, len(bins)))
    return np.asarray(1000 * generator.uniform(0.1, 10, (count, 1)) * np.maximum(wave * weekend + drift + noise, 0.01))


def pinball_q90(truth: np.ndarray, quantile: np.ndarray) -> float:
    above = (truth - quantile) / truth.mean(axis=1, keepdims=True)
    return float(np.maximum(0.9 * above, -0.1 * above).mean())


@pytest.mark.long
def test_q90_covers_nine_tenths_and_beats_seasonal_naive() -> None:
    rates = load(25, 35)
    covered, ours, naives = [], [], []
    naive_alone = registry([default_registry()["seasonal_naive"]])
    for weekday in range(7):
        part = rates[:, weekday * DAY : (weekday + 29) * DAY]
        calendar = Calendar(weekday * DAY * CALENDAR.bin_s, CALENDAR.bin_s)
        made = forecast_batch(part[:, :-DAY], calendar, ONE_DAY)
        naive = forecast_batch(part[:, :-DAY], calendar, ONE_DAY, methods=naive_alone)
        covered.append((part[:, -DAY:] <= made.quantiles[2]).mean())
        ours.append(pinball_q90(part[:, -DAY:], made.quantiles[2]))
        naives.append(pinball_q90(part[:, -DAY:], naive.quantiles[2]))
    assert 0.88 <= np.mean(covered) <= 0.93
    assert np.mean(ours) < 0.9 * np.mean(naives)


def test_the_record_of_the_methods() -> None:
    made = forecast_batch(load(60, 28), CALENDAR, ONE_DAY)
    assert made.reason == [None] * 60
    assert (made.origins == 7).all()
    harmonic = made.methods.index("harmonic_ridge")
    assert made.methods[0] == "blend"
    naive = made.methods.index("seasonal_naive")
    assert np.nanmedian(made.mase[harmonic]) < np.nanmedian(made.mase[naive])
    assert np.nanmedian(made.mase[0]) < np.nanmedian(made.mase[naive])
    assert 0.85 <= np.nanmean(made.coverage_q90[harmonic]) <= 0.95
    best = np.take_along_axis(made.mase, made.champion[None], axis=0)[0]
    assert (best < made.mase[naive]).mean() > 0.9


def test_gaps_zeros_and_resets_do_not_bend_the_forecast() -> None:
    clean = load(20, 21, seed=4)
    dirty = clean.copy()
    dirty[:, 300:310] = 0.0
    dirty[:, 500] *= 1e4
    dirty[:, 700:720] = np.nan
    dirty[:, -3:] = 0.0
    expected = forecast_batch(clean, CALENDAR, ONE_DAY).quantiles[1]
    result = forecast_batch(dirty, CALENDAR, ONE_DAY).quantiles[1]
    assert np.median(np.abs(result - expected) / expected) < 0.05


@pytest.mark.parametrize(
    ("bins", "reason"),
    [
        (0, "no usable rate in the history"),
        (1, "only 30 minutes of history; holding the recent level"),
        (3, "only 90 minutes of history; holding the recent level"),
        (DAY - 1, "only 23 hours of history; holding the recent level"),
        (DAY, "only 24 hours of history; holding the day before"),
        (2 * DAY - 1, "only 47 hours of history; holding the day before"),
        (2 * DAY, None),
    ],
)
def test_a_short_history_falls_back_and_says_so(bins: int, reason: str | None) -> None:
    rates = np.full((1, 20 * DAY), np.nan)
    if bins:
        rates[0, -bins:] = load(1, 20)[0, -bins:]
    made = forecast_batch(rates, CALENDAR, ONE_DAY)
    assert made.reason == [reason]
    if reason is None:
        assert made.method == ["blend"]
    else:
        assert made.method == ["day_before" if bins >= DAY else "recent_level"]
        assert made.champion.tolist() == [-1]
        assert (made.origins == 0).all()
    assert np.isfinite(made.quantiles).all() == bool(bins)


def test_after_one_season_the_day_before_is_repeated() -> None:
    rates = np.full((1, 10 * DAY), np.nan)
    rates[0, -DAY:] = 1000.0 + 500.0 * np.sin(2 * np.pi * np.arange(DAY) / DAY)
    q10, q50, q90, q95 = forecast_batch(rates, CALENDAR, ONE_DAY).quantiles[:, 0]
    np.testing.assert_allclose(q50, rates[0, -DAY:])
    assert (q10 < q50).all()
    assert (q95 > q90).all()
    assert np.ptp(q90 - q50) == pytest.approx(0.0, abs=1e-9)  # as wide at night as by day
    assert q90[0] - q50[0] == pytest.approx(0.154 * 1000.0, rel=0.01)


def test_a_season_of_which_little_was_measured_is_not_repeated() -> None:
    rates = np.full((1, 10 * DAY), np.nan)
    rates[0, -DAY::8] = 1000.0
    made = forecast_batch(rates, CALENDAR, ONE_DAY)
    assert made.method == ["recent_level"]


def test_a_held_level_is_wide_and_widens() -> None:
    rates = np.full((1, 10 * DAY), np.nan)
    rates[0, -2:] = [990.0, 1010.0]
    q10, q50, q90, q95 = forecast_batch(rates, CALENDAR, ONE_DAY).quantiles[:, 0]
    assert (q50 == 1000.0).all()
    assert q90[0] > 1100
    assert q90[-1] > 1.4 * q50[-1]
    assert q90[-1] < 3 * q50[-1]
    assert (np.diff(q90) >= 0).all()
    assert (np.diff(q10) <= 0).all()
    assert (q95 > q90).all()


def test_a_series_that_was_hardly_measured_falls_back() -> None:
    rates = load(1, 20)
    rates[0, -6 * DAY :] = np.nan
    made = forecast_batch(rates, CALENDAR, ONE_DAY)
    assert made.reason == ["only 14% of the last 7 days was measured; holding the recent level"]
    assert np.isfinite(made.quantiles).all()


def test_a_horizon_longer_than_the_history_is_judged_by_the_part_that_has_come() -> None:
    made = forecast_batch(load(2, 5), CALENDAR, ForecastSettings(horizon=6 * DAY))
    assert made.reason == [None, None]
    assert np.isfinite(made.quantiles).all()


def test_a_series_does_not_depend_on_its_neighbours() -> None:
    rates = load(12, 20)
    rates[3, : 15 * DAY] = np.nan
    rates[5, : 20 * DAY - 7] = np.nan
    whole = forecast_batch(rates, CALENDAR, ONE_DAY)
    for row in (0, 3, 5, 11):
        alone = forecast_batch(rates[row : row + 1], CALENDAR, ONE_DAY)
        np.testing.assert_allclose(whole.quantiles[:, row], alone.quantiles[:, 0], rtol=1e-6)
        assert whole.method[row] == alone.method[0]


def test_the_same_input_gives_the_same_bits() -> None:
    rates = load(10, 16)
    first, second = (forecast_batch(rates, CALENDAR, ONE_DAY) for _ in range(2))
    np.testing.assert_array_equal(first.quantiles, second.quantiles)
    np.testing.assert_array_equal(first.pinball_q90, second.pinball_q90)


def test_the_champion_in_office_stays_within_the_margin() -> None:
    rates = load(3, 21)
    stubborn = ForecastSettings(horizon=DAY, champion_margin=0.99)
    made = forecast_batch(
        rates, CALENDAR, stubborn, previous_champions=["harmonic_ridge", None, "a method of the past"]
    )
    assert made.method[1:] == ["blend", "blend"]


@dataclass(frozen=True, slots=True)
class Oracle:
    """Knows what will come: stands for a model fitted elsewhere."""

    rates: Floats
    name: str = "oracle"
    min_history_days: float = 14.0
    rounds_by_batch: bool = False

    def predict(self, history: RateHistory, origins: Ints, horizon: int) -> Floats:
        paths = np.stack([self.rates[:, origin : origin + horizon] for origin in origins])
        young = origins[:, None] - history.begin < self.min_history_days * history.calendar.day
        paths[young] = np.nan
        return paths


def test_another_method_slots_in_and_the_blend_follows_it_when_it_is_better() -> None:
    rates = load(4, 22)
    methods = registry([*default_registry().values(), Oracle(rates)])
    made = forecast_batch(rates[:, : 21 * DAY], CALENDAR, ONE_DAY, methods=methods)
    assert "oracle" in made.methods
    np.testing.assert_allclose(made.quantiles[1], rates[:, 21 * DAY :])


junk = st.one_of(st.floats(width=32), st.sampled_from([0.0, -1.0, np.nan, np.inf, -np.inf, 1e300, 5.0]))


@given(st.lists(junk, min_size=1, max_size=60), st.integers(1, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_whatever_comes_in_quantiles_are_ordered_and_not_negative(values: list[float], days: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    rates = generator.choice(np.array(values), size=(3, days * 24))
    rates[0, : days * 12] = np.nan
    made = forecast_batch(rates, Calendar(0, 3600), ForecastSettings(horizon=24, backtest_origins=3))
    for series in range(3):
        paths = made.quantiles[:, series]
        if np.isnan(paths).all():
            assert made.reason[series] is not None
            continue
        assert np.isfinite(paths).all()
        assert (paths >= 0).all()
        assert (np.diff(paths, axis=0) >= 0).all()
