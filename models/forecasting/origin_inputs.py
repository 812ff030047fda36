"""What a global model knows of a series at an origin, and what came: inputs and targets of n series at P origins.

P origins, n series, J leads (one per hour), F features
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.utc import DAY_S, HOUR_S
from models.arrays import Floats, Ints
from models.forecasting.calendar import Calendar
from models.forecasting.rate_history import RateHistory
from models.forecasting.weekday_profile import compute_profiles, season_after

LEAD_STEP_S = HOUR_S
SMOOTHING_S = 1800
NEAR_S = (900, HOUR_S, 3 * HOUR_S, DAY_S)
"""Spans before the origin over which the series is compared with its profile."""


def sample_leads(calendar: Calendar, horizon: int) -> Ints:
    """Return the leads that the model predicts, in bins; between them the path is a line."""
    step = min(calendar.bins(LEAD_STEP_S), horizon)
    return np.arange(step // 2, horizon, step, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class OriginInputs:
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

    history: RateHistory
    origins: Ints
    leads: Ints
    season: Floats
    sums: Floats
    above: Floats
    first: int

    @classmethod
    def of(cls, history: RateHistory, origins: Ints, horizon: int) -> OriginInputs:
        """Return the inputs of a history from some origins."""
        calendar = history.calendar
        first = max(0, int(origins.min()) - calendar.day)
        profiles = compute_profiles(history, first, horizon)
        season = np.stack([season_after(profiles, int(at) - first, calendar, horizon) for at in origins])
        difference = history.filled[:, first:] - profiles[0][:, : history.bins - first]
        return cls(
            history,
            origins,
            sample_leads(calendar, horizon),
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
        observed = np.isfinite(self.history.observed)
        value = _mean(self.sums, at - half, np.where(known, at + half + 1, at)).transpose(1, 0, 2)
        measured = observed[:, np.where(known, at, 0)].transpose(1, 0, 2)
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
