"""The contest of the methods for a series: their past forecasts, what was observed, and their calibrated quantiles.

One implementation for the forecast stage, which forecasts many series from one origin, and for replays, which forecast
one series from many origins (`lab/replay/rolling.py`).

    P origins (ascending), M methods (the blend first, when there are two or more), n series, H bins of horizon,
    L levels, G groups of leads
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.forecasting import blend
from models.forecasting.calendar import Calendar
from models.forecasting.calibration import Calibration
from models.forecasting.error_scale import scale, shape
from models.forecasting.leads import LeadGrid
from models.forecasting.past_forecasts import PastForecasts

QUANTILES = (0.1, 0.5, 0.9, 0.95)
MIDDLE = QUANTILES.index(0.5)
OFFSET_LEVELS = np.array([level for level in QUANTILES if level != 0.5])
CHAMPION = "champion"
"""The one method of a record without a contest: each series' own."""
MIN_OBSERVED_SHARE = 0.5
"""A day counts for a series when at least this share of the bins that were predicted in it was measured."""
_Q90 = int(np.flatnonzero(OFFSET_LEVELS == 0.9)[0])


@dataclass(frozen=True, slots=True)
class Competition:
    """The record of the methods at P origins.

    Attributes:
        calendar: of the bins.
        names: of the methods.
        at: origins, shape (P,).
        predicted: middles, records/s, shape (M, P, n, H), NaN where a method made no forecast.
        observed: shape (P, n, H), NaN where it is unknown.
        offsets: of OFFSET_LEVELS, in units of an error's scale, shape (M, P, L - 1, n, G), NaN where not known.
        proportion: how much errors grow with the predicted load, shape (M, P, n).
        grid: the leads of the offsets.
    """

    calendar: Calendar
    names: tuple[str, ...]
    at: Ints
    predicted: Floats
    observed: Floats
    offsets: Floats
    proportion: Floats
    grid: LeadGrid

    def quantiles(self, place: int, champion: Ints) -> Floats:
        """Return the champions' quantiles from one origin, records/s, ordered and >= 0, shape (L, n, H)."""
        series = np.arange(len(champion))
        middle = self.predicted[champion, place, series]
        sizes = self.grid.expand(self.offsets[champion, place, :, series].transpose(1, 0, 2))
        return order_quantiles(middle, sizes * scale(shape(middle), self.proportion[champion, place, series]))

    def scores(self, now: int, days: int) -> Floats:
        """Return loss, absolute error, pinball loss of q90 and share covered by it, per day, shape (4, M, days, n)."""
        day, horizon = self.calendar.day, self.predicted.shape[3]
        target = self.at[:, None] + np.arange(horizon)
        days_ago = np.where(target < now, (now - 1 - target) // day, days)
        rows = np.flatnonzero((days_ago < days).any(axis=1))
        scores = np.empty((4, len(self.names), days, self.observed.shape[1]))
        for method in range(len(self.names)):
            measures, is_scored = self._measures(method, rows)
            for ago in range(days):
                in_day = days_ago[rows] == ago
                mine = _span_of(in_day.any(axis=1))
                scores[:, method, ago] = _mean_of_day([one[mine] for one in measures], is_scored[mine], in_day[mine])
        return scores

    def _measures(self, method: int, rows: Ints) -> tuple[list[Floats], Floats]:
        """Return the four measures of each predicted bin, (R, n, H) each, 0 where it cannot be scored, and 1 where."""
        predicted = self.predicted[method, rows]
        error = self.observed[rows] - predicted
        above_q90 = scale(shape(predicted), self.proportion[method, rows])
        above_q90 *= self.grid.expand(self.offsets[method, rows, _Q90])
        np.subtract(error, above_q90, out=above_q90)
        is_scored = np.isfinite(above_q90)
        error[~is_scored] = above_q90[~is_scored] = 0.0
        pinball = np.maximum(0.9 * above_q90, -0.1 * above_q90)
        error = np.abs(error, out=error)
        covered = ((above_q90 <= 0) & is_scored).astype(np.float64)
        return [0.5 * error + pinball, error, pinball, covered], is_scored.astype(np.float64)


def _span_of(chosen: Bools) -> slice:
    """Return the span from the first to the last chosen row, empty without one."""
    rows = np.flatnonzero(chosen)
    return slice(int(rows[0]), int(rows[-1]) + 1) if len(rows) else slice(0)


def _mean_of_day(measures: Sequence[Floats], is_scored: Floats, in_day: Bools) -> Floats:
    """Return means over the bins of a day, shape (4, n), NaN where too few of them were measured.

    Measures are 0 where not scored, shape (R, n, H) each as ``is_scored``, 0 or 1; ``in_day`` has shape (R, H).
    """
    weights = in_day.astype(np.float64)
    count = np.einsum("pnh,ph->n", is_scored, weights)
    total = np.stack([np.einsum("pnh,ph->n", one, weights) for one in measures])
    is_enough = count >= max(1.0, MIN_OBSERVED_SHARE * weights.sum())
    return np.where(is_enough, total / np.maximum(count, 1), np.nan)


def hold_contest(past: PastForecasts) -> Competition:
    """Blend and calibrate the forecasts of all methods."""
    return _calibrate(_add_blend(past))


def record_champions(past: PastForecasts, champions: Sequence[str]) -> Competition:
    """Return the record of one method: of each series its champion of before, with the bits of a contest of all."""
    middle = np.empty_like(past.observed)
    for name in dict.fromkeys(champions):
        rows = np.array([name == one for one in champions], bool)
        is_blend = name == blend.NAME
        middle[:, rows] = past.select(rows).blend() if is_blend else past.predicted[past.names.index(name)][:, rows]
    return _calibrate(replace(past, names=(CHAMPION,), predicted=middle[None]))


def _calibrate(past: PastForecasts) -> Competition:
    calendar = past.calendar
    grid = LeadGrid.of(calendar, past.predicted.shape[3])
    calibration = Calibration(OFFSET_LEVELS, calendar, grid)
    offsets = [
        calibration.calibrate(past.observed - middle, middle, past.at, past.look_back) for middle in past.predicted
    ]
    return Competition(
        calendar=calendar,
        names=past.names,
        at=past.at,
        predicted=past.predicted,
        observed=past.observed,
        offsets=np.stack([each.size for each in offsets]),
        proportion=np.stack([each.proportion for each in offsets]),
        grid=grid,
    )


def order_quantiles(middle: Floats, offsets: Floats) -> Floats:
    """Return quantiles >= 0 from a middle (n, H) and the offsets of the others (L - 1, n, H), shape (L, n, H)."""
    others = middle + offsets
    lower, upper = np.minimum(others[:MIDDLE], middle), np.maximum(others[MIDDLE:], middle)
    paths = np.concatenate([lower, middle[None], upper])
    return np.asarray(np.maximum.accumulate(np.maximum(paths, 0.0), axis=0))


def _add_blend(past: PastForecasts) -> PastForecasts:
    """Put the blend of two or more methods before them."""
    if len(past.names) == 1:
        return past
    return replace(
        past, names=(blend.NAME, *past.names), predicted=np.concatenate([past.blend()[None], past.predicted])
    )
