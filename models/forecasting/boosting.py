"""Global model: one gradient boosting over all series of a fleet, for the middle of the forecast.

It predicts the difference of a series from its weekday profile, as a share of its level, from the present difference,
the differences at the same time yesterday and a week ago, and the calendar.  So a series can use what was learned from
others, and scale does not matter.  Quantiles come from the errors of a backtest, like those of every method
(`models/forecasting/calibration.py`), which is why the loss is the absolute error: its best answer is the median.

A fit knows the end of its training data, and only forecasts from origins at or after it; so a backtest needs an early
fit beside the newest one, and nothing leaks.

    P origins, n series, J leads (one per hour), F features
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from include.utc import DAY_S, HOUR_S
from models.arrays import Floats, Ints
from models.forecasting.calendar import Calendar
from models.forecasting.rate_history import History
from models.forecasting.weekday_profile import compute_profiles, season_after

ITERATIONS = 60
LEARNING_RATE = 0.08
LEAVES = 12
LEAF_ROWS = 100
SEED = 0
LEAD_STEP_S = HOUR_S
TRAINING_SPACING_S = 3 * HOUR_S
"""Distance of the origins that a series is learnt from."""
MOST_ROWS = 40_000
"""Rows of a fit: with more, origins are thinned out.  Fits in about a second on one core."""
LEAST_SERIES_DAYS = 7.0
"""No fit from less: from three days of one series only its accidents could be learned."""
LEAST_DAYS = 2.0
"""An origin is learnt from when the series has this much history before it."""
SMOOTHING_S = 1800
NEAR_S = (900, HOUR_S, 3 * HOUR_S, DAY_S)
"""Spans before the origin over which the series is compared with its profile."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model.

    Attributes:
        until_s: end of its training data, seconds since 1970.
        model: the boosting.
    """

    until_s: float
    model: HistGradientBoostingRegressor


@dataclass(frozen=True, slots=True)
class GlobalBoosting:
    """Forecasts any series by the newest fit whose training data ended at or before the origin.

    Attributes:
        fits: in order of ``until_s``.
    """

    fits: tuple[Fit, ...] = ()
    name: str = "global_boosting"
    min_history_days: float = LEAST_DAYS

    def predict(self, history: History, origins: Ints, horizon: int) -> Floats:
        """See :class:`models.forecasting.base.Forecaster`."""
        calendar, n = history.calendar, len(history.begin)
        paths = np.full((len(origins), n, horizon), np.nan)
        until_s = np.array([fit.until_s for fit in self.fits])
        at_s = calendar.start_s + origins * calendar.bin_s
        newest = np.searchsorted(until_s, at_s, side="right") - 1
        for index in np.unique(newest[newest >= 0]):
            mine = np.flatnonzero(newest == index)
            at_origins = _OriginInputs.of(history, origins[mine], horizon)
            features = at_origins.features()
            known = self.fits[index].model.predict(features.reshape(-1, features.shape[-1]))
            paths[mine] = at_origins.paths(known.reshape(features.shape[:-1]))
        enough = origins[:, None] - history.begin >= self.min_history_days * calendar.day
        return np.where(enough[:, :, None], np.maximum(paths, 0.0), np.nan)


def fit(histories: Sequence[History], until_s: float, horizon: int) -> Fit | None:
    """Fit on the rates of some series before ``until_s``; None when there are too few.

    Args:
        histories: series, one or more histories of any calendars (for example one per time zone).
        until_s: end of the training data, seconds since 1970.
        horizon: leads to learn, in bins.
    """
    inputs, targets = [], []
    series_days = 0.0
    for history in histories:
        calendar = history.calendar
        stop = min(history.bins, int((until_s - calendar.start_s) // calendar.bin_s))
        spacing = calendar.bins(TRAINING_SPACING_S)
        leads = len(_leads(calendar, horizon))
        most = max(1, MOST_ROWS // max(1, sum(len(each.begin) for each in histories) * leads))
        origins = np.arange(stop - spacing, int(LEAST_DAYS * calendar.day) - 1, -spacing, dtype=np.int64)[::-1]
        origins = origins[:: -(-len(origins) // most)] if len(origins) else origins
        if not len(origins):
            continue
        at_origins = _OriginInputs.of(history, origins, horizon)
        target = at_origins.targets(stop)
        old = origins[:, None] - history.begin >= LEAST_DAYS * calendar.day
        useful = np.isfinite(target) & old[:, :, None]
        series_days += (
            float(useful.any(axis=2).sum())
            * float(origins[-1] - origins[-2] if len(origins) > 1 else spacing)
            / calendar.day
        )
        inputs.append(at_origins.features()[useful])
        targets.append(target[useful])
    if series_days < LEAST_SERIES_DAYS:
        return None
    features = np.concatenate(inputs)
    # The binning needs at least two values: a column that is missing everywhere becomes constant.
    features[:, ~np.isfinite(features).any(axis=0)] = 0.0
    model = HistGradientBoostingRegressor(
        loss="absolute_error",
        max_iter=ITERATIONS,
        learning_rate=LEARNING_RATE,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=LEAF_ROWS,
        early_stopping=False,
        random_state=SEED,
    )
    with threadpool_limits(limits=1):  # the same bits however many cores there are
        return Fit(until_s, model.fit(features, np.concatenate(targets)))


def _leads(calendar: Calendar, horizon: int) -> Ints:
    """Return the leads that the model predicts, in bins; between them the path is a line."""
    step = min(calendar.bins(LEAD_STEP_S), horizon)
    return np.arange(step // 2, horizon, step, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _OriginInputs:
    """Inputs and targets of n series at P origins.

    Attributes:
        history: the series.
        origins: shape (P,).
        leads: shape (J,).
        season: weekday profile after each origin, shape (P, n, horizon).
        sums: cumulative rates, shape (n, T + 1).
        above: cumulative difference from the profile, shape (n, T + 1 - first).
        first: bin where ``above`` begins.
    """

    history: History
    origins: Ints
    leads: Ints
    season: Floats
    sums: Floats
    above: Floats
    first: int

    @classmethod
    def of(cls, history: History, origins: Ints, horizon: int) -> _OriginInputs:
        calendar = history.calendar
        first = max(0, int(origins.min()) - calendar.day)
        profiles = compute_profiles(history, first, horizon)
        season = np.stack([season_after(profiles, int(at) - first, calendar, horizon) for at in origins])
        difference = history.filled[:, first:] - profiles[0][:, : history.bins - first]
        return cls(
            history,
            origins,
            _leads(calendar, horizon),
            season,
            _cumulative_sums(history.filled),
            _cumulative_sums(np.nan_to_num(difference)),
            first,
        )

    def level(self) -> Floats:
        """Return the mean of the day before each origin, > 0, shape (P, n)."""
        day = self.history.calendar.day
        level = _mean(self.sums, self.origins - day, self.origins)
        return np.maximum(level.T, np.finfo(float).tiny)

    def features(self) -> Floats:
        """Return the inputs of the model, shape (P, n, J, F)."""
        calendar = self.history.calendar
        count, n, leads = len(self.origins), len(self.history.begin), len(self.leads)
        level = self.level()
        columns: list[Floats] = []

        def add(values: Floats) -> None:
            columns.append(np.broadcast_to(values, (count, n, leads)))

        add((self.leads * calendar.bin_s / HOUR_S)[None, None, :])
        ends = self.origins - self.first
        for stretch_s in NEAR_S:
            start = np.maximum(ends - calendar.bins(stretch_s), 0)
            add((_mean(self.above, start, ends).T / level)[:, :, None])
        hour = calendar.bins(HOUR_S)
        rise = _mean(self.sums, self.origins - hour, self.origins)
        rise = rise - _mean(self.sums, self.origins - 2 * hour, self.origins - hour)
        add((rise.T / level)[:, :, None])
        target = self.origins[:, None] + self.leads
        season = self.season[:, :, self.leads] / level[:, :, None]
        add(season)
        for days in (1, 2, 7, 14):
            add(self._rates_before(target, days) / level[:, :, None] - season)
        span = int(target.max()) + 1
        add((24 * calendar.day_share(0, span))[target][:, None, :])
        add(calendar.weekday(0, span).astype(np.float64)[target][:, None, :])
        add(calendar.weekday(0, span).astype(np.float64)[self.origins][:, None, None])
        return np.stack(columns, axis=-1)

    def _rates_before(self, target: Ints, days: int) -> Floats:
        """Return the rate some days before the target, smoothed, shape (P, n, J), NaN where it is not known yet."""
        calendar = self.history.calendar
        half = calendar.bins(SMOOTHING_S) // 2
        at = target - days * calendar.day
        stop = np.minimum(at + half + 1, self.origins[:, None])
        mean = _mean(self.sums, at - half, stop).transpose(1, 0, 2)
        begun = at[:, None, :] - half >= self.history.begin[None, :, None]
        return np.where(begun & (at < self.origins[:, None])[:, None, :], mean, np.nan)

    def targets(self, stop: int) -> Floats:
        """Return (observed rate - profile) / level, shape (P, n, J); NaN from bin ``stop`` on."""
        calendar = self.history.calendar
        half = calendar.bins(SMOOTHING_S) // 2
        at = self.origins[:, None] + self.leads
        known = at + half < stop
        seen = np.isfinite(self.history.observed)
        value = _mean(self.sums, at - half, np.where(known, at + half + 1, at)).transpose(1, 0, 2)
        measured = seen[:, np.where(known, at, 0)].transpose(1, 0, 2)
        above = (value - self.season[:, :, self.leads]) / self.level()[:, :, None]
        return np.where(known[:, None, :] & measured, above, np.nan)

    def paths(self, predicted: Floats) -> Floats:
        """Return rates from predictions of shape (P, n, J): profile plus a line through them, (P, n, horizon)."""
        horizon = self.season.shape[2]
        place = np.clip(np.interp(np.arange(horizon), self.leads, np.arange(len(self.leads))), 0, None)
        left = np.minimum(place.astype(np.int64), len(self.leads) - 1)
        right = np.minimum(left + 1, len(self.leads) - 1)
        share = place - left
        line = predicted[:, :, left] * (1 - share) + predicted[:, :, right] * share
        return np.asarray(self.season + line * self.level()[:, :, None])


def _cumulative_sums(values: Floats) -> Floats:
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


def _mean(sums: Floats, start: Ints, stop: Ints) -> Floats:
    """Return means over bins ``[start, stop)`` from cumulative sums (n, T + 1), shape (n, *start.shape)."""
    last = sums.shape[1] - 1
    low, high = np.clip(start, 0, last), np.clip(stop, 0, last)
    return np.asarray((sums[:, high] - sums[:, low]) / np.maximum(high - low, 1))
