"""From the errors of past forecasts to quantiles with the promised coverage: adaptive conformal prediction.

Notation: P origins (oldest first), n series, H bins of horizon, H' sampled leads in G groups, L levels.

    e (P, n, H')   error of the middle at each origin: observed - predicted, NaN where nothing was observed
    w (P, H')      weight of an error at an origin: 0 until its bin has passed, then 1/2 per HALF_LIFE_S of its age
    s (P, n, H')   scale of an error: 1, or the larger the more load was predicted (models/forecasting/error_scale.py)
    theta (L, n)   level shift: how much a level is increased, because too few observations stayed below its quantile

The offset of a quantile is s times the weighted quantile of e / s, most of it from the lead's own group and the rest
from all leads of the series: a week has too few errors per group to use them alone.  Newer errors weigh more, since
load drifts (Barber et al. 2023, "Conformal prediction beyond exchangeability"); an upper level is increased from q to
q (1 + 1/m), Eq. 7 there, where m is the number of independent errors that the weights are worth.

In addition every level is corrected by its coverage: theta <- (1 - d/W) theta + GAIN d/W (q - covered), with d the time
between two origins; covered is the share of the observations in that time that were at or below their quantile.  This
is adaptive conformal inference (Eq. 2 of Gibbs and Candès 2021, "Adaptive conformal inference under distribution
shift").

Deviation: theta decays with W and is bounded, so that one strange day does not widen the forecast for weeks, and it
only widens until a week of errors is known.
Deviation: errors within CORRELATED_S count as a single one, since they are strongly correlated.
The constants were chosen by hand on the six traces of data/traces, whose last thirds are also what
benchmarks/forecasting/traces.py reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from include.utc import DAY_S, HOUR_S, WEEK_S
from models.arrays import Bools, Floats, Ints
from models.forecasting.calendar import Calendar
from models.forecasting.error_scale import PROPORTIONS, choose_proportion, scale, shape
from models.forecasting.errors import Errors, SortedErrors, choose_series
from models.forecasting.leads import LeadGrid

CORRELATED_S = HOUR_S
"""About how long an error of the forecast lasts."""
HALF_LIFE_S = 3 * DAY_S
"""Age at which an error has half the weight of a new one."""
OWN_SHARE = 0.85
"""Share of the lead's own group in an offset; the rest comes from all leads."""
MEMORY_S = DAY_S
"""W: theta decays over this time."""
GAIN = 2.0
"""Of the correction: a day whose coverage was 5 points too low increases the level by 10 points, before the bound."""
MAX_SHIFT = 0.05
"""Bound of theta where it is used."""
WIDEN_ONLY_S = WEEK_S
"""Until errors of so much time are known theta only widens: not every weekday was observed yet."""
MIN_LEVEL, MAX_LEVEL = 0.005, 0.995
_MEDIAN = 0.5


@dataclass(frozen=True, slots=True)
class Offsets:
    """Offsets of the quantiles at P origins.

    Attributes:
        size: in units of s, shape (P, L, n, G).
        proportion: of the error scale, shape (P, n).
    """

    size: Floats
    proportion: Floats


@dataclass(frozen=True, slots=True)
class CalibrationState:
    """State of a calibration after some origins.

    Attributes:
        level_shift: theta, shape (L, n).
        sizes: offsets of each origin so far, shape (L, n, G) each.
        proportions: of the error scale at each origin so far, shape (n,) each.
    """

    level_shift: Floats
    sizes: tuple[Floats, ...] = ()
    proportions: tuple[Floats, ...] = ()

    @property
    def offsets(self) -> Offsets:
        """The offsets of all origins so far, at least one."""
        return Offsets(np.stack(self.sizes), np.stack(self.proportions))


@dataclass(frozen=True, slots=True)
class ErrorWindow:
    """The errors that the offsets of some origins are made from, sorted once for all of them.

    Attributes:
        at: origins, in bins, shape (P,).
        target: bin of each error, shape (P, H').
        errors: NaN where unknown, shape (P, n, H').
        shapes: of the predicted load, shape (P, n, H').
        proportion: of the error scale, shape (n,).
        grouped: errors over their scale, by group of leads.
        pooled: errors over their scale, all leads together.
        first_known: bin of the first known error of each series, shape (n,).
    """

    at: Ints
    target: Ints
    errors: Floats
    shapes: Floats
    proportion: Floats
    grouped: Errors
    pooled: Errors
    first_known: Ints


@dataclass(frozen=True, slots=True)
class _ErrorHistory:
    """The errors of the windows of some days.

    Attributes:
        at, target, errors, shapes: as of an :class:`ErrorWindow`.
        ordered: the errors over their scale at each of the PROPORTIONS.
    """

    at: Ints
    target: Ints
    errors: Floats
    shapes: Floats
    ordered: list[SortedErrors]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Offsets of the quantiles of one method, one origin after the other.

    The offsets at an origin depend on bins before it alone.

    Attributes:
        levels: shape (L,).
        calendar: for the length of a bin.
        grid: the leads whose errors are kept.
    """

    levels: Floats
    calendar: Calendar
    grid: LeadGrid

    def calibrate(self, errors: Floats, predicted: Floats, at: Ints, look_back: int) -> Offsets:
        """Return the offsets of all origins; the proportions of a day depend on what came before the day.

        Args:
            errors: observed - predicted, shape (P, n, H), NaN where unknown.
            predicted: the middles, records/s, shape (P, n, H).
            at: the origins, in bins, shape (P,), at least one.
            look_back: errors of origins so many bins before a day are used for it.
        """
        errors, shapes = errors[:, :, self.grid.leads], shape(predicted, self.grid.leads)
        state = self.initial_state(errors.shape[1])
        for days in _group_days(_days(at, self.calendar.day, look_back)):
            begin, end = days[0][0], days[-1][2]
            history = self._sort(errors[begin:end], shapes[begin:end], at[begin:end])
            for low, first, stop in days:
                window = self._window(history, low - begin, stop - begin, first - low)
                for place in range(first - low, stop - low):
                    state = self.step(state, window, place)
        return state.offsets

    def initial_state(self, series: int) -> CalibrationState:
        """Return the state before the first origin."""
        return CalibrationState(np.zeros((len(self.levels), series)))

    def _sort(self, errors: Floats, shapes: Floats, at: Ints) -> _ErrorHistory:
        """Sort the errors of some origins, (P, n, H') as the shapes."""
        ordered = [SortedErrors.of(errors / scale(shapes, np.array(proportion))) for proportion in PROPORTIONS]
        return _ErrorHistory(at, at[:, None] + self.grid.leads, errors, shapes, ordered)

    def _window(self, history: _ErrorHistory, low: int, stop: int, first: int) -> ErrorWindow:
        """Return the window of the origins ``[low, stop)``; ``first`` is counted from ``low``."""
        at, target = history.at[low:stop], history.target[low:stop]
        errors, shapes = history.errors[low:stop], history.shapes[low:stop]
        ordered = [one.select(low, stop) for one in history.ordered]
        pooled, weights = [one.pool() for one in ordered], self._weights(target, first, int(at[first]))
        choice = choose_proportion(errors, shapes, pooled, weights, self.levels[self.levels > _MEDIAN])
        scaled = choose_series(ordered, choice)
        never = np.iinfo(np.int64).max // 2
        return ErrorWindow(
            at=at,
            target=target,
            errors=errors,
            shapes=shapes,
            proportion=np.array(PROPORTIONS)[choice],
            grouped=scaled.group(self.grid.group_of_lead),
            pooled=scaled.pool(),
            first_known=np.where(np.isfinite(errors), target[:, None], never).min(axis=(0, 2)),
        )

    def step(self, state: CalibrationState, window: ErrorWindow, place: int) -> CalibrationState:
        """Return the state after the origin at index ``place`` of the window.

        The origins of the window just before ``place`` are the last ones of the state.
        """
        shift = self._correct_shift(state, window, place) if place else state.level_shift
        weights = self._weights(window.target, place, int(window.at[place]))
        size = self._offsets(window, weights, self._levels_to_use(shift, window, weights, int(window.at[place])))
        return replace(
            state,
            level_shift=shift,
            sizes=(*state.sizes, size),
            proportions=(*state.proportions, window.proportion),
        )

    def _weights(self, target: Ints, place: int, now: int) -> Floats:
        """Return w, shape (P, H'), at bin ``now``, of the errors of origins before index ``place``."""
        age_s = (now - target) * self.calendar.bin_s
        weights = np.where(target < now, 0.5 ** (age_s / HALF_LIFE_S), 0.0)
        weights[place:] = 0.0
        return np.asarray(weights)

    def _correct_shift(self, state: CalibrationState, window: ErrorWindow, place: int) -> Floats:
        """Return theta, shape (L, n), after the bins between the previous origin and this one."""
        since, now = int(window.at[place - 1]), int(window.at[place])
        new = (window.target >= since) & (window.target < now)
        rows = np.flatnonzero(new.any(axis=1))
        rows = rows[rows >= place - len(state.sizes)]  # origins that have offsets
        covered, count = self._coverage(state, window, place, rows, new[rows])
        miss = np.where(count > 0, self.levels[:, None] - covered, 0.0)
        elapsed = (now - since) * self.calendar.bin_s / MEMORY_S
        return np.asarray(max(0.0, 1 - elapsed) * state.level_shift + GAIN * min(1.0, elapsed) * miss)

    def _coverage(
        self, state: CalibrationState, window: ErrorWindow, place: int, rows: Ints, new: Bools
    ) -> tuple[Floats, Ints]:
        """Return the share of new errors at or below their offset, and their number, (L, n) both."""
        if not len(rows):
            return np.zeros_like(state.level_shift), np.zeros(state.level_shift.shape, np.int64)
        positions = (rows + len(state.sizes) - place).tolist()
        size = np.stack([state.sizes[position] for position in positions])[:, :, :, self.grid.group_of_lead]
        proportion = np.stack([state.proportions[position] for position in positions])
        offsets = size * scale(window.shapes[rows], proportion)[:, None]  # (R, L, n, H')
        errors = window.errors[rows][:, None]
        counted = new[:, None, None, :] & np.isfinite(offsets) & np.isfinite(errors)
        count = counted.sum(axis=(0, 3))
        below = (counted & (errors <= offsets)).sum(axis=(0, 3))
        return np.asarray(below / np.maximum(count, 1)), count

    def _levels_to_use(self, shift: Floats, window: ErrorWindow, weights: Floats, now: int) -> Floats:
        """Return the levels, (L, n), with the level shift and the correction for few errors."""
        upper = self.levels[:, None] > _MEDIAN
        shift = np.clip(shift, -MAX_SHIFT, MAX_SHIFT)
        may_narrow = (now - window.first_known) * self.calendar.bin_s >= WIDEN_ONLY_S
        levels = self.levels[:, None] + np.where((shift > 0) == upper, shift, may_narrow * shift)
        independent = self._independent_errors(window, weights)
        levels = np.where(upper, levels * (1 + 1 / np.maximum(independent, 1.0)), levels)
        return np.clip(levels, MIN_LEVEL, MAX_LEVEL)

    def _independent_errors(self, window: ErrorWindow, weights: Floats) -> Floats:
        """Return m, shape (n,): a bin that was predicted from several origins has one error, not several."""
        horizon = self.grid.horizon
        spacing = float(np.median(np.diff(window.at))) if len(window.at) > 1 else float(horizon)
        overlap = max(1.0, horizon / spacing)
        share = self.grid.step * self.calendar.bin_s / CORRELATED_S / overlap
        return np.asarray(np.einsum("pnh,ph->n", np.isfinite(window.errors), weights) * share)

    @staticmethod
    def _offsets(window: ErrorWindow, weights: Floats, levels: Floats) -> Floats:
        """Return offsets, shape (L, n, G), not decreasing in the level."""
        pooled = window.pooled.quantiles(levels, weights)
        grouped = window.grouped.quantiles(levels, weights)
        mixed = OWN_SHARE * np.where(np.isnan(grouped), pooled, grouped) + (1 - OWN_SHARE) * pooled
        return np.maximum.accumulate(mixed, axis=0)


def _days(at: Ints, day: int, look_back: int) -> Iterator[tuple[int, int, int]]:
    """Yield for each day with origins the indices of the first origin used, the day's first, and one past its last."""
    for begin in range(int(at[0]) // day * day, int(at[-1]) + 1, day):
        low, first, stop = map(int, np.searchsorted(at, [begin - look_back, begin, begin + day]))
        if first < stop:
            yield low, first, stop


def _group_days(days: Iterator[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the days whose windows are sorted together: each has at least half of the origins from first to last."""
    group: list[tuple[int, int, int]] = []
    largest = 0
    for low, first, stop in days:
        largest = max(largest, stop - low)
        if group and stop - group[0][0] > 2 * largest:
            yield group
            group, largest = [], stop - low
        group.append((low, first, stop))
    if group:
        yield group
