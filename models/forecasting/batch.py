"""Forecast a batch of series: backtest every method, choose a champion per series, give calibrated quantiles."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from include.utc import HOUR_S
from models.arrays import Bools, Floats, Ints
from models.forecasting import blend, fallback
from models.forecasting.base import Forecaster, Registry, registry
from models.forecasting.boosting import Fit, GlobalBoosting
from models.forecasting.calendar import Calendar
from models.forecasting.champion import choose_champions
from models.forecasting.contest import QUANTILES, Contest, hold_contest
from models.forecasting.harmonic import HarmonicRidge
from models.forecasting.rate_history import History, prepare
from models.forecasting.seasonal_naive import SeasonalNaive
from models.forecasting.skill import find_unskilled
from models.forecasting.weekday_profile import WeekdayProfile

T = TypeVar("T")
ORIGIN_SPACING_S = 6 * HOUR_S
"""Distance of the past origins of the backtest."""


@dataclass(frozen=True, slots=True)
class ForecastSettings:
    """Settings of a batch forecast.

    Attributes:
        horizon: bins to predict.
        backtest_origins: past days of the backtest, with origins every ORIGIN_SPACING_S.
        champion_margin: a method replaces the incumbent only when its loss is lower by this share.
        history_days: days before an origin that a rolling forecast uses; a batch brings its own history.
        plan_error_max: see models.forecasting.skill; share of the rate.
    """

    horizon: int
    backtest_origins: int = 7
    champion_margin: float = 0.02
    history_days: int = 28
    plan_error_max: float = 0.15


@dataclass(frozen=True, slots=True)
class ForecastBatch:
    """Forecasts of n series over H bins, and the record of the M methods that competed.

    Attributes:
        quantiles: records/s at the levels of QUANTILES, shape (4, n, H), ordered and >= 0; NaN without any history.
        methods: names of the methods that competed.
        method: the method used for each series.
        reason: why a series is no forecast to plan with: it fell back, or its champion errs too much; else None.
        champion: index of the champion in ``methods``, -1 for a fallback, shape (n,).
        origins: days that a method was scored on, shape (M, n).
        mase: mean absolute error over that of repeating the day before, shape (M, n), NaN when unknown.
        pinball_q90: over the mean rate, shape (M, n), NaN when unknown.
        coverage_q90: share of bins at or below q90, shape (M, n), NaN when unknown.
    """

    quantiles: Floats
    methods: tuple[str, ...]
    method: list[str]
    reason: list[str | None]
    champion: Ints
    origins: Ints
    mase: Floats
    pinball_q90: Floats
    coverage_q90: Floats


def default_registry(fits: Sequence[Fit] = ()) -> Registry:
    """Return the methods that compete, with the global model when it was fitted."""
    methods: list[Forecaster] = [SeasonalNaive(), HarmonicRidge(), WeekdayProfile()]
    return registry([*methods, GlobalBoosting(tuple(fits))] if fits else methods)


def forecast_batch(
    rates_per_s: Floats,
    calendar: Calendar,
    settings: ForecastSettings,
    *,
    methods: Registry | None = None,
    previous_champions: Sequence[str | None] | None = None,
) -> ForecastBatch:
    """Forecast the bins after the history.

    Args:
        rates_per_s: shape (n, T), NaN for gaps; negative and infinite values count as gaps.
        calendar: of the T bins.
        settings: horizon and backtest.
        methods: those that compete, beside their blend; None for those that need no fit.
        previous_champions: name of each series' champion so far, None for a new one.
    """
    methods_by_name = default_registry() if methods is None else methods
    history = prepare(rates_per_s, calendar)
    reasons = fallback.find_fallback_reasons(history)
    learns = np.array([reason is None for reason in reasons], bool)
    n = len(reasons)
    previous: Sequence[str | None] = [None] * n if previous_champions is None else previous_champions
    names = ((blend.NAME,) if len(methods_by_name) > 1 else ()) + tuple(methods_by_name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a mean of nothing stays NaN, which is meant
        batch = _unscored_batch(n, settings.horizon, names, reasons)
        if learns.any():
            scored = _forecast_by_champion(
                _select_rows(history, learns),
                methods_by_name,
                settings=settings,
                previous=[one for one, is_learnt in zip(previous, learns, strict=True) if is_learnt],
            )
            batch = _join(batch, scored, learns)
        return _add_fallback(batch, history, settings.horizon)


def _unscored_batch(n: int, horizon: int, methods: tuple[str, ...], reasons: list[str | None]) -> ForecastBatch:
    """Return the record of n series of which no method is known to forecast them, without forecasts."""
    unknown = np.full((len(methods), n), np.nan)
    return ForecastBatch(
        quantiles=np.full((len(QUANTILES), n, horizon), np.nan),
        methods=methods,
        method=[fallback.NAME] * n,
        reason=reasons,
        champion=np.full(n, -1, np.int64),
        origins=np.zeros((len(methods), n), np.int64),
        mase=unknown,
        pinball_q90=unknown,
        coverage_q90=unknown,
    )


def _join(batch: ForecastBatch, part: ForecastBatch, rows: Bools) -> ForecastBatch:
    """Return a batch with the forecasts and the record of some of its series, (n,), from another one."""
    places = {int(at): place for place, at in enumerate(np.flatnonzero(rows))}

    def put(whole: Any, ours: Any) -> Any:
        result = whole.copy()
        result[..., rows] = ours
        return result

    def pick(whole: list[T], ours: list[T]) -> list[T]:
        return [ours[places[at]] if at in places else one for at, one in enumerate(whole)]

    quantiles = batch.quantiles.copy()
    quantiles[:, rows] = part.quantiles
    return replace(
        batch,
        quantiles=quantiles,
        method=pick(batch.method, part.method),
        reason=pick(batch.reason, part.reason),
        champion=put(batch.champion, part.champion),
        origins=put(batch.origins, part.origins),
        mase=put(batch.mase, part.mase),
        pinball_q90=put(batch.pinball_q90, part.pinball_q90),
        coverage_q90=put(batch.coverage_q90, part.coverage_q90),
    )


def _select_rows(history: History, rows: Bools) -> History:
    return replace(history, observed=history.observed[rows], filled=history.filled[rows], begin=history.begin[rows])


def _forecast_by_champion(
    history: History, methods: Registry, *, settings: ForecastSettings, previous: Sequence[str | None]
) -> ForecastBatch:
    """Return the forecasts of series that can be learnt from."""
    days, now = settings.backtest_origins, history.bins
    held = backtest(methods, history, settings)
    rank = {name: index for index, name in enumerate(held.names)}
    incumbent = np.array([rank.get(name or "", 0) for name in previous], np.int64)
    losses, absolute, pinball, covered = held.scores(now, days)
    champion = choose_champions(losses, incumbent, settings.champion_margin)
    mean = np.maximum(_row_mean(history.observed), np.finfo(float).tiny)
    return ForecastBatch(
        quantiles=held.quantiles(len(held.at) - 1, champion),
        methods=tuple(held.names),
        method=[held.names[chosen] for chosen in champion.tolist()],
        reason=find_unskilled(held, champion, history, days=days, error_max=settings.plan_error_max),
        champion=champion,
        origins=np.isfinite(absolute).sum(axis=1),
        mase=np.nanmean(absolute, axis=1) / _naive_error(history),
        pinball_q90=np.nanmean(pinball, axis=1) / mean,
        coverage_q90=np.nanmean(covered, axis=1),
    )


def backtest(methods: Registry, history: History, settings: ForecastSettings) -> Contest:
    """Forecast by every method from past origins and from the end of the history, which is the last origin."""
    calendar, horizon, now = history.calendar, settings.horizon, history.bins
    spacing, look_back = calendar.bins(ORIGIN_SPACING_S), settings.backtest_origins * calendar.day
    at = np.arange(now, max(0, now - look_back - 1), -spacing, dtype=np.int64)[::-1]
    predicted = np.stack([method.predict(history, at, horizon) for method in methods.values()])
    unknown = np.full((len(history.begin), horizon), np.nan)
    later = np.concatenate([history.observed, unknown], axis=1)
    observed = np.stack([later[:, origin : origin + horizon] for origin in at])
    return hold_contest(calendar, list(methods), predicted, observed=observed, at=at, look_back=look_back)


def _add_fallback(batch: ForecastBatch, history: History, horizon: int) -> ForecastBatch:
    """Return a batch whose series without a complete forecast have the fallback, with a reason where they had none."""
    rest = np.asarray(~np.isfinite(batch.quantiles).all(axis=(0, 2)), bool)
    if not rest.any():
        return batch
    made, names = fallback.forecast_without_scores(_select_rows(history, rest), np.array(QUANTILES), horizon)
    quantiles, chosen = batch.quantiles.copy(), dict(zip(np.flatnonzero(rest).tolist(), names, strict=True))
    quantiles[:, rest] = made
    return replace(
        batch,
        quantiles=quantiles,
        champion=np.where(rest, -1, batch.champion),
        method=[chosen.get(at, method) for at, method in enumerate(batch.method)],
        reason=[(reason or fallback.UNSCORED) if at in chosen else reason for at, reason in enumerate(batch.reason)],
    )


def _row_mean(values: Floats) -> Floats:
    counted = np.isfinite(values).sum(axis=1)
    return np.asarray(np.nansum(values, axis=1) / np.where(counted > 0, counted, np.nan))


def _naive_error(history: History) -> Floats:
    """Return the mean absolute error of repeating the day before, in sample: the scale of MASE, shape (n,)."""
    day = history.calendar.day
    scale = _row_mean(np.abs(history.observed[:, day:] - history.observed[:, :-day]))
    return np.where(scale > 0, scale, np.nan)
