"""Forecasts of one series from many origins, as the forecast stage would have made them.

A replay needs the forecast of every hour of some weeks.  Running the stage for each would forecast every backtest
origin many times; here each origin is forecast once, and its errors are used for all later ones as they become known.

Notation: T bins of history, O origins, H bins of horizon, L levels of QUANTILES.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lab.replay.skill import find_unskilled
from models.arrays import Floats, Ints
from models.forecasting import fallback
from models.forecasting.base import Registry, registry
from models.forecasting.batch import ForecastSettings, default_registry
from models.forecasting.boosting import BoostingFit, GlobalBoosting, fit
from models.forecasting.calendar import Calendar
from models.forecasting.champion import choose_champions
from models.forecasting.contest import QUANTILES, Competition, hold_contest
from models.forecasting.past_forecasts import PastForecasts
from models.forecasting.rate_history import (
    MOST_PER_S,
    NOTHING_SHARE,
    SPIKE_FACTOR,
    RateHistory,
    fill_causally,
    first_observed_bin,
    prepare,
    usual_by_hour,
)

ORIGIN_S = 3600
"""Distance of the origins whose errors are kept: the stage runs hourly."""


DAILY_FITS = 14
"""In the first days the global model is fitted every day."""
DAYS_BETWEEN_FITS = 3
"""Later, when it changes little, it is fitted after so many days."""


@dataclass(frozen=True, slots=True)
class Rolling:
    """Forecasts of one series from many origins.

    Attributes:
        quantiles: records/s at the levels of QUANTILES, shape (O, L, H), ordered and >= 0; NaN before the first value.
        method: the method used from each origin.
        reason: why an origin's is no forecast to plan with: it fell back, or its champion errs too much; else None.
    """

    quantiles: Floats
    method: list[str]
    reason: list[str | None]


def roll(
    rates_per_s: Floats,
    calendar: Calendar,
    origins: Ints,
    settings: ForecastSettings,
    *,
    methods: Registry | None = None,
) -> Rolling:
    """Forecast one series from many origins; a forecast from bin ``o`` depends on bins before ``o`` alone.

    The champion is chosen, and judged, once a day, the offsets of the quantiles at every origin.

    Args:
        rates_per_s: shape (T,), NaN for gaps.
        calendar: of the T bins.
        origins: first bin to predict of each forecast, 0..T, in any order, shape (O,).
        settings: horizon, length of history and backtest.
        methods: those that compete beside their blend; None for the default ones and a global model that is fitted
            repeatedly, on this series alone.

    Raises:
        ValueError: the rates are no single series, or an origin lies outside 0..T.
    """
    rates = np.asarray(rates_per_s, np.float64)
    wanted = np.asarray(origins, np.int64)
    if rates.ndim != 1:
        raise ValueError(f"rates of one series have shape (T,), not {rates.shape}")
    if len(wanted) and not (wanted.min() >= 0 and wanted.max() <= len(rates)):
        raise ValueError(f"origins must lie in 0..{len(rates)}, given {wanted.min()}..{wanted.max()}")
    unknown = np.full((len(QUANTILES), settings.horizon), np.nan), fallback.NAME, fallback.NO_RATE
    if not (wanted > 0).any():
        return _collect([unknown] * len(wanted), settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a mean of nothing stays NaN, which is meant
        at = _select_origins(wanted, calendar, settings)
        forecaster = _ContestForecaster(rates, _hold_contest(rates, calendar, at, settings, methods), settings)
        made = [forecaster.forecast_from(origin) if origin > 0 else unknown for origin in wanted.tolist()]
    return _collect(made, settings)


def _collect(made: Sequence[tuple[Floats, str, str | None]], settings: ForecastSettings) -> Rolling:
    """Return the forecasts of O origins: quantiles (L, H), method and reason of each."""
    quantiles = np.array([one for one, _, _ in made]).reshape(len(made), len(QUANTILES), settings.horizon)
    return Rolling(quantiles, [method for _, method, _ in made], [reason for _, _, reason in made])


def _predict(
    rates: Floats, calendar: Calendar, at: Ints, settings: ForecastSettings, methods: Registry | None
) -> tuple[tuple[str, ...], Floats, Floats]:
    """Return names, forecasts of every method from each origin (M, P, 1, H), and the cleaned rates (1, T)."""
    day, horizon = calendar.day, settings.horizon
    window = settings.history_days * day
    clean = np.full((1, len(rates)), np.nan)
    parts: list[Floats] = []
    fits: tuple[BoostingFit, ...] = ()
    names: tuple[str, ...] = ()
    for begin in range(int(at[0]) // day * day, int(at[-1]) + 1, day):
        start = max(0, begin - window)
        observed = prepare(rates[None, start:begin], calendar.later(start))
        history = append_rates(observed, rates[None, begin : begin + day])
        clean[:, begin : begin + day] = history.observed[:, begin - start :]
        mine = at[(at >= begin) & (at < begin + day)]
        if not len(mine):
            continue
        if methods is None and (begin < DAILY_FITS * day or not fits or (begin // day) % DAYS_BETWEEN_FITS == 0):
            made = fit([observed], calendar.start_s + begin * calendar.bin_s, horizon)
            fits = (made,) if made else fits
        today = methods or registry([*default_registry().values(), GlobalBoosting(fits)])
        names = tuple(today)
        parts.append(np.stack([method.predict(history, mine - start, horizon) for method in today.values()]))
    return names, np.concatenate(parts, axis=1), clean


def append_rates(history: RateHistory, rates_per_s: Floats) -> RateHistory:
    """Append bins that came later, shape (n, t), without cleaning the earlier ones again.

    An error among them is found bin by bin by comparison with the usual rates before, so that an origin between them
    does not depend on later bins: whether a source has stopped for good is decided at the next ``prepare``.
    """
    rates = np.asarray(rates_per_s, dtype=np.float64)
    rates = np.where((rates >= 0) & (rates <= MOST_PER_S), rates, np.nan)
    if history.bins:
        usual = usual_by_hour(history.observed, history.calendar)
        day = history.calendar.day
        known = np.zeros((len(rates), day))
        known[:, : min(day, history.bins)] = usual[:, -day:] if history.bins >= day else usual
        if history.bins >= day:
            at = np.arange(rates.shape[1]) % day
            nothing = (rates <= NOTHING_SHARE * known[:, at]) & (known[:, at] > 0)
            busiest = usual.max(axis=1, keepdims=True, initial=0.0)
            spike = (rates > SPIKE_FACTOR * busiest) & (busiest > 0)
            rates = np.where(nothing | spike, np.nan, rates)
    observed = np.concatenate([history.observed, rates], axis=1)
    return RateHistory(
        history.calendar, observed, fill_causally(observed, history.calendar), first_observed_bin(observed)
    )


def _hold_contest(
    rates: Floats, calendar: Calendar, at: Ints, settings: ForecastSettings, methods: Registry | None
) -> Competition:
    """Return the record of all origins, calibrated day by day."""
    day, horizon = calendar.day, settings.horizon
    look_back = settings.backtest_origins * day
    names, predicted, clean = _predict(rates, calendar, at, settings, methods)
    later = np.concatenate([clean[0], np.full(horizon, np.nan)])
    observed = later[at[:, None] + np.arange(horizon)][:, None]
    return hold_contest(PastForecasts(calendar, names, predicted, observed, at, look_back))


def _select_origins(wanted: Ints, calendar: Calendar, settings: ForecastSettings) -> Ints:
    """Return the origins to forecast: those requested, and those before and between them that they learn from."""
    step = calendar.bins(ORIGIN_S)
    back = (settings.backtest_origins + 1) * calendar.day + settings.horizon
    first, last = int(wanted.min()), int(wanted.max())
    grid = np.arange(first - back // step * step, last + 1, step, dtype=np.int64)
    at = np.union1d(grid, wanted)
    return np.asarray(at[at > 0], np.int64)  # nothing is known at the very first bin


class _ContestForecaster:
    """Forecasts from the champion of each day."""

    def __init__(self, rates: Floats, contest: Competition, settings: ForecastSettings) -> None:
        self.rates, self.contest, self.settings = rates, contest, settings
        self.champions: dict[int, int] = {}
        self.unskilled: dict[int, str | None] = {}
        day, champion = contest.calendar.day, 0
        for begin in range(int(contest.at[0]) // day * day, int(contest.at[-1]) + 1, day):
            before, days = self._before(begin), settings.backtest_origins
            chosen = choose_champions(before.scores(begin, days)[0], np.array([champion]), settings.champion_margin)
            champion = int(chosen[0])
            self.champions[begin // day] = champion
            (self.unskilled[begin // day],) = self._judge(before, chosen, begin)

    def _before(self, now: int) -> Competition:
        """Return the part of the contest that a day's choice depends on."""
        back = self.settings.backtest_origins * self.contest.calendar.day + self.settings.horizon
        mine = slice(*np.searchsorted(self.contest.at, [now - back, now]))
        contest = self.contest
        return replace(
            contest,
            at=contest.at[mine],
            predicted=contest.predicted[:, mine],
            observed=contest.observed[mine],
            offsets=contest.offsets[:, mine],
            proportion=contest.proportion[:, mine],
        )

    def _judge(self, before: Competition, champion: Ints, now: int) -> list[str | None]:
        """Return why the champion of a day is no forecast to plan with, None where it is."""
        settings, calendar = self.settings, self.contest.calendar
        start = max(0, now - settings.history_days * calendar.day)
        known = prepare(self.rates[None, start:now], calendar.later(start))
        record = replace(before, at=before.at - start)
        return find_unskilled(record, champion, known, days=settings.backtest_origins)

    def forecast_from(self, origin: int) -> tuple[Floats, str, str | None]:
        """Return quantiles (L, H), method and reason of a fallback."""
        contest, horizon = self.contest, self.settings.horizon
        window = self.settings.history_days * contest.calendar.day
        start = max(0, origin - window)
        known = prepare(self.rates[None, start:origin], contest.calendar.later(start))
        reason = fallback.find_fallback_reasons(known)[0]
        champion = self.champions[origin // contest.calendar.day]
        place = int(np.searchsorted(contest.at, origin))
        made = contest.quantiles(place, np.array([champion]))[:, 0]
        if reason is None and np.isfinite(made).all():
            return made, contest.names[champion], self.unskilled[origin // contest.calendar.day]
        held, names = fallback.forecast_without_scores(known, np.array(QUANTILES), horizon)
        return held[:, 0], names[0], reason or fallback.UNSCORED
