"""Forecast a batch of series: backtest every method, choose a champion per series, give calibrated quantiles.

A series whose champion was chosen before takes part in no contest: only what its champion needs is forecast, and only
its champion is calibrated.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats
from models.forecasting import blend, fallback
from models.forecasting.base import Forecaster, Registry, registry
from models.forecasting.batch_record import ForecastBatch, form_unscored_batch, join_batches
from models.forecasting.boosting import BoostingFit, GlobalBoosting
from models.forecasting.calendar import Calendar
from models.forecasting.champion import choose_champions
from models.forecasting.contest import QUANTILES, hold_contest, record_champions
from models.forecasting.harmonic import HarmonicRidge
from models.forecasting.past_forecasts import PastForecasts, find_needed, forecast_past
from models.forecasting.rate_history import RateHistory, prepare, select_series
from models.forecasting.seasonal_naive import SeasonalNaive
from models.forecasting.weekday_profile import WeekdayProfile


@dataclass(frozen=True, slots=True)
class ForecastSettings:
    """Settings of a batch forecast.

    Attributes:
        horizon: bins to predict.
        backtest_origins: past days of the backtest, with origins every past_forecasts.ORIGIN_SPACING_S.
        champion_margin: a method replaces the incumbent only when its loss is lower by this share.
        history_days: days before an origin that a rolling forecast uses; a batch brings its own history.
    """

    horizon: int
    backtest_origins: int = 7
    champion_margin: float = 0.02
    history_days: int = 28


def default_registry(fits: Sequence[BoostingFit] = ()) -> Registry:
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
    are_chosen: Sequence[bool] | None = None,
) -> ForecastBatch:
    """Forecast the bins after the history.

    Args:
        rates_per_s: shape (n, T), NaN for gaps; negative and infinite values count as gaps.
        calendar: of the T bins.
        settings: horizon and backtest.
        methods: those that compete, beside their blend; None for those that need no fit.
        previous_champions: name of each series' champion so far, None for a new one.
        are_chosen: whether that is a series' champion of now, too: without a contest, and without scores. One that is
            no longer among the methods is not; None for a contest of all series.
    """
    methods_by_name = default_registry() if methods is None else methods
    history = prepare(rates_per_s, calendar)
    reasons = fallback.find_fallback_reasons(history)
    learns = np.array([reason is None for reason in reasons], bool)
    n = len(reasons)
    previous: Sequence[str | None] = [None] * n if previous_champions is None else previous_champions
    names = ((blend.NAME,) if len(methods_by_name) > 1 else ()) + tuple(methods_by_name)
    chosen = [None] * n if are_chosen is None else _list_chosen(previous, are_chosen, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a mean of nothing stays NaN, which is meant
        batch = form_unscored_batch(n, settings.horizon, names, reasons)
        if learns.any():
            made = _forecast_by_champion(
                select_series(history, learns),
                methods_by_name,
                settings=settings,
                names=names,
                previous=_pick(previous, learns),
                chosen=_pick(chosen, learns),
            )
            batch = join_batches(batch, made, learns)
        return _add_fallback(batch, history, settings.horizon)


def _list_chosen(
    previous: Sequence[str | None], are_chosen: Sequence[bool], names: tuple[str, ...]
) -> list[str | None]:
    """Return of each series the champion that needs no contest, None without one."""
    return [name if is_chosen and name in names else None for name, is_chosen in zip(previous, are_chosen, strict=True)]


def _pick(values: Sequence[str | None], rows: Bools) -> list[str | None]:
    return [one for one, is_picked in zip(values, rows, strict=True) if is_picked]


def _forecast_by_champion(
    history: RateHistory,
    methods: Registry,
    *,
    settings: ForecastSettings,
    names: tuple[str, ...],
    previous: Sequence[str | None],
    chosen: Sequence[str | None],
) -> ForecastBatch:
    """Return the forecasts of series that can be learnt from: by the champion that was chosen, else by a contest."""
    days, horizon = settings.backtest_origins, settings.horizon
    past = forecast_past(methods, history, days=days, horizon=horizon, needed=find_needed(tuple(methods), chosen))
    competes = np.array([name is None for name in chosen], bool)
    batch = form_unscored_batch(len(chosen), horizon, names, [None] * len(chosen))
    if competes.any():
        made = _choose(past.select(competes), select_series(history, competes), settings, _pick(previous, competes))
        batch = join_batches(batch, made, competes)
    if not competes.all():
        own = [name for name in chosen if name is not None]
        made = _take_chosen(past.select(~competes), settings, names, own)
        batch = join_batches(batch, made, ~competes)
    return batch


def _choose(
    past: PastForecasts, history: RateHistory, settings: ForecastSettings, previous: Sequence[str | None]
) -> ForecastBatch:
    """Return the forecasts of series by the champions of a contest of all methods, with its scores."""
    held, days = hold_contest(past), settings.backtest_origins
    rank = {name: index for index, name in enumerate(held.names)}
    incumbent = np.array([rank.get(name or "", 0) for name in previous], np.int64)
    losses, absolute, pinball, covered = held.scores(history.bins, days)
    champion = choose_champions(losses, incumbent, settings.champion_margin)
    mean = np.maximum(_row_mean(history.observed), np.finfo(float).tiny)
    return ForecastBatch(
        quantiles=held.quantiles(len(held.at) - 1, champion),
        methods=held.names,
        method=[held.names[chosen] for chosen in champion.tolist()],
        reason=[None] * len(champion),
        champion=champion,
        origins=np.isfinite(absolute).sum(axis=1),
        mase=np.nanmean(absolute, axis=1) / _naive_error(history),
        pinball_q90=np.nanmean(pinball, axis=1) / mean,
        coverage_q90=np.nanmean(covered, axis=1),
    )


def _take_chosen(
    past: PastForecasts,
    settings: ForecastSettings,
    names: tuple[str, ...],
    champions: Sequence[str],
) -> ForecastBatch:
    """Return the forecasts of series by champions that were chosen before, without scores."""
    record, own = record_champions(past, champions), np.zeros(len(champions), np.int64)
    return replace(
        form_unscored_batch(len(champions), settings.horizon, names, [None] * len(champions)),
        quantiles=record.quantiles(len(record.at) - 1, own),
        method=list(champions),
        champion=np.array([names.index(name) for name in champions], np.int64),
    )


def _add_fallback(batch: ForecastBatch, history: RateHistory, horizon: int) -> ForecastBatch:
    """Return a batch whose series without a complete forecast have the fallback, with a reason where they had none."""
    rest = np.asarray(~np.isfinite(batch.quantiles).all(axis=(0, 2)), bool)
    if not rest.any():
        return batch
    made, names = fallback.forecast_without_scores(select_series(history, rest), np.array(QUANTILES), horizon)
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


def _naive_error(history: RateHistory) -> Floats:
    """Return the mean absolute error of repeating the day before, in sample: the scale of MASE, shape (n,)."""
    day = history.calendar.day
    scale = _row_mean(np.abs(history.observed[:, day:] - history.observed[:, :-day]))
    return np.where(scale > 0, scale, np.nan)
