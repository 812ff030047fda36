"""Forecasting: 1,000 series of 28 days at 5 minutes on one core, against a plain loop over series with Ridge.

And 128 of them by all methods, with the contest that the first pass of a day holds, and as a later pass without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.measurement import Measurement
from include.utc import DAY_S
from models.arrays import Floats, Ints
from models.forecasting import Calendar, ForecastSettings, default_registry, forecast_batch, remainder
from models.forecasting.base import Registry, registry
from models.forecasting.blend import NAME as BLEND
from models.forecasting.boosting import fit
from models.forecasting.harmonic import HarmonicRidge
from models.forecasting.rate_history import RateHistory, prepare
from models.forecasting.seasonal_naive import SeasonalNaive

SERIES = 1000
DAYS = 28
BIN_S = 300
HORIZON = 288
CHUNK = 250
REFERENCE_SERIES = 20
PASS_SERIES = 128
PASSES = 3
AGREEMENT = 1e-6


@dataclass(frozen=True, slots=True)
class SklearnHarmonic:
    """The maths of HarmonicRidge as one writes it first: for each series and origin, fit sklearn's Ridge."""

    maths: HarmonicRidge = field(default_factory=HarmonicRidge)
    name: str = "harmonic_ridge"
    min_history_days: float = 2.0
    rounds_by_batch: bool = False

    def predict(self, history: RateHistory, origins: Ints, horizon: int) -> Floats:
        """See :class:`models.forecasting.base.Forecaster`."""
        paths = np.full((len(origins), len(history.begin), horizon), np.nan)
        for place, origin in enumerate(origins):
            for series, first in enumerate(history.begin):
                if origin - first >= self.min_history_days * history.calendar.day:
                    paths[place, series] = self._one(history, series, int(first), int(origin), horizon)
        return paths

    def _one(self, history: RateHistory, series: int, first: int, origin: int, horizon: int) -> Floats:
        calendar = history.calendar
        columns = self.maths.columns(origin - first, calendar)
        # Ridge has one penalty for all columns: scale the columns instead.
        scale = np.sqrt(self.maths.column_penalty(calendar)[columns])
        design = self.maths.design(calendar, origin + horizon)[:, columns] / scale
        fitted = Ridge(alpha=1.0, fit_intercept=False).fit(design[first:origin], history.filled[series, first:origin])
        start = max(0, origin - int(remainder.DAYS * calendar.day))
        rest = history.filled[series, start:origin] - fitted.predict(design[start:origin])
        rest[np.isnan(history.observed[series, start:origin])] = np.nan
        season = fitted.predict(design[origin:])
        return np.asarray(np.maximum(season + remainder.forecast_remainder(rest[None], calendar, horizon)[0], 0.0))


def waves(count: int, seed: int = 7) -> Floats:
    """Return rates with a day, a week, noise and one gap each, shape (count, DAYS of bins)."""
    generator = np.random.default_rng(seed)
    hours = np.arange(DAYS * 86_400 // BIN_S) * BIN_S / 3600
    phase, level = generator.uniform(0, 24, (2, count, 1))
    daily = np.sin(2 * np.pi * (hours + phase) / 24)
    weekly = np.sin(2 * np.pi * (hours + phase) / 168)
    noise = generator.normal(0, 0.05, (count, len(hours)))
    rates = 1000 * (1 + level) * (2 + daily + 0.4 * weekly + noise)
    for row, start in enumerate(generator.integers(0, len(hours) - 12, count)):
        rates[row, start : start + 12] = np.nan
    return np.asarray(np.maximum(rates, 0.0))


def fit_only(method: HarmonicRidge | SklearnHarmonic, rates: Floats) -> Floats:
    """Forecast once from the end of the history, without backtest or quantiles; shape (n, HORIZON)."""
    history = prepare(rates, Calendar(0, BIN_S))
    return np.asarray(method.predict(history, np.array([history.bins]), HORIZON)[0])


def whole(methods: Registry, rates: Floats) -> Floats:
    """Backtest, choose and calibrate; q90, shape (n, HORIZON)."""
    batch = forecast_batch(rates, Calendar(0, BIN_S), ForecastSettings(HORIZON), methods=methods)
    return np.asarray(batch.quantiles[2])


def time_forecasts(work: Callable[[Floats], Floats], rates: Floats, chunk: int) -> tuple[float, Floats]:
    """Return series per second and the forecasts, taken ``chunk`` series at a time."""
    started = time.perf_counter()
    made = [work(rates[start : start + chunk]) for start in range(0, len(rates), chunk)]
    return len(rates) / (time.perf_counter() - started), np.concatenate(made)


def compare_ways(name: str, batched: Callable[[Floats], Floats], plain: Callable[[Floats], Floats]) -> Measurement:
    """Time the batched way on all series and the plain loop on some of them, and see that they agree.

    Raises:
        AssertionError: the two give different forecasts, so that comparing their speed means nothing.
    """
    rates = waves(SERIES)
    speed, forecasts = time_forecasts(batched, rates, CHUNK)
    reference, expected = time_forecasts(plain, rates[:REFERENCE_SERIES], 1)
    np.testing.assert_allclose(forecasts[:REFERENCE_SERIES], expected, rtol=AGREEMENT)
    return Measurement(name, speed, "series/s", reference, speed / reference)


def compare_passes() -> list[Measurement]:
    """Time a pass with the contest of all methods, and later ones of the day: by the blend, and by its champions."""
    rates, calendar, settings = waves(PASS_SERIES), Calendar(0, BIN_S), ForecastSettings(HORIZON)
    history = prepare(rates[: PASS_SERIES // 2], calendar)
    fits = [fit([history], float(day * DAY_S), HORIZON) for day in (DAYS - settings.backtest_origins, DAYS)]
    methods = default_registry([one for one in fits if one is not None])

    def forecast(champions: Sequence[str] | None) -> tuple[float, list[str]]:
        started = time.process_time()
        are_chosen = None if champions is None else [True] * PASS_SERIES
        made = forecast_batch(
            rates, calendar, settings, methods=methods, previous_champions=champions, are_chosen=are_chosen
        )
        return 1000 * (time.process_time() - started) / PASS_SERIES, made.method

    won = forecast(None)[1]
    contest, blends, single = (
        min(forecast(one)[0] for _ in range(PASSES)) for one in (None, [BLEND] * PASS_SERIES, won)
    )
    return [
        Measurement("forecast by all methods, with their contest", contest, "CPU ms/series"),
        Measurement("forecast later in the day, all by the blend", blends, "CPU ms/series", contest, contest / blends),
        Measurement("forecast later in the day, by its champions", single, "CPU ms/series", contest, contest / single),
    ]


def run(work: Path) -> list[Measurement]:  # noqa: ARG001 - every benchmark is given a directory; this one needs none
    """Measure on one core: the method alone, with the backtest of seven days, champion and calibration, and passes."""
    batched, plain = HarmonicRidge(), SklearnHarmonic()
    both = registry([SeasonalNaive(), batched])
    both_plain = registry([SeasonalNaive(), plain])
    with threadpool_limits(limits=1):
        return [
            compare_ways("forecast, method alone", lambda y: fit_only(batched, y), lambda y: fit_only(plain, y)),
            compare_ways("forecast, with backtest", lambda y: whole(both, y), lambda y: whole(both_plain, y)),
            *compare_passes(),
        ]
