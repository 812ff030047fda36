"""From the errors of past forecasts to quantiles that keep their promise: conformal prediction that adapts.

Notation: P origins (oldest first), n series, H bins of horizon, G groups of leads, L levels.

    e (P, n, H)   error of the middle at each origin: seen - predicted, NaN where nothing was seen
    w (P, H)      weight of an error at a moment: 0 until its bin has come, then 1/2 per HALF_LIFE_S of its age
    s (P, n, H)   scale of an error: 1, or the larger the more load was foretold (models/forecasting/error_scale.py)
    theta (L, n)  how much a level is raised, because too much came above it lately

The offset of a quantile is s times the weighted quantile of e / s, most of it from the lead's own group and the rest
from all leads of the series: a week holds too few errors per group to stand alone.  Newer errors weigh more, since
load drifts (Barber et al. 2023, "Conformal prediction beyond exchangeability"); an upper level is raised from q to
q (1 + 1/m), Eq. 7 there, where m is the number of independent errors that the weights are worth.

On top of it every level is steered by what it covered: theta <- (1 - d/W) theta + GAIN d/W (q - covered), with d the
time between two origins; covered is the share of the bins in that time at or below what was said of them.  This is
adaptive conformal inference (Eq. 2 of Gibbs and Candès 2021, "Adaptive conformal inference under distribution shift").
Deviation: theta forgets with W and is bounded, so that one strange day does not widen the forecast for weeks, and it
only widens until a week of errors is known.
The constants below were chosen by hand on the six traces of data/traces, whose last thirds are also what
benchmarks/forecasting_traces.py reports.
Deviation: errors within CORRELATED_S count as a single one, since they are strongly correlated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.utc import DAY_S, HOUR_S, WEEK_S
from models.arrays import Bools, Floats, Ints
from models.forecasting.calendar import Calendar
from models.forecasting.error_scale import chosen, scale, shape
from models.forecasting.errors import Errors

GROUP_S = 3 * HOUR_S
"""Length of a group of leads."""
SAMPLE_S = 25 * 60
"""One error in so much time is kept: neighbours are alike.  It does not divide the hour, whose phases differ."""
CORRELATED_S = HOUR_S
"""About how long an error of the forecast lasts."""
HALF_LIFE_S = 3 * DAY_S
OWN_SHARE = 0.85
"""Share of the lead's own group in an offset; the rest comes from all leads."""
MEMORY_S = DAY_S
"""W: theta forgets over this time."""
GAIN = 2.0
"""Of the steering: a day that covered 5 points too little raises the level by 10 points, were it not for the bound."""
MOST_RAISED = 0.05
"""Bound of theta where it is used."""
STEADY_S = WEEK_S
"""Until errors of so much time are known theta only widens: not every weekday was seen yet."""
LEAST_LEVEL, MOST_LEVEL = 0.005, 0.995


@dataclass(frozen=True, slots=True)
class Offsets:
    """What makes quantiles at some origins.

    Attributes:
        size: of the levels, in units of s, shape (P, L, n, G).
        proportion: p, shape (P, n).
    """

    size: Floats
    proportion: Floats

    def between(self, first: int, stop: int) -> Offsets:
        """Return those of some of the origins."""
        return Offsets(self.size[first:stop], self.proportion[first:stop])

    def followed_by(self, later: Offsets) -> Offsets:
        """Return these and those of later origins."""
        return Offsets(np.concatenate([self.size, later.size]), np.concatenate([self.proportion, later.proportion]))


class Calibration:
    """Goes through the origins of one method in order and says at each which offsets make its quantiles.

    What is said at an origin depends on bins before it alone.

    Attributes:
        levels: shape (L,).
        raised: theta, shape (L, n).
    """

    def __init__(self, levels: Floats, series: int, calendar: Calendar, horizon: int) -> None:
        self.levels, self.calendar, self.horizon = levels, calendar, horizon
        self.raised = np.zeros((len(levels), series))
        self.step = min(calendar.bins(SAMPLE_S), horizon)
        self.leads: Ints = np.arange(self.step // 2, horizon, self.step, dtype=np.int64)
        self.group = min(max(1, GROUP_S // (self.step * calendar.bin_s)), len(self.leads))

    def nothing(self) -> Offsets:
        """Return the offsets of no origin."""
        groups, series = -(-len(self.leads) // self.group), self.raised.shape[1]
        return Offsets(np.empty((0, len(self.levels), series, groups)), np.empty((0, series)))

    def by_day(self, errors: Floats, predicted: Floats, at: Ints, look_back: int) -> Offsets:
        """Return the offsets of all origins, day by day: what came before a day decides on its proportions.

        Args:
            errors: seen - said, shape (P, n, H), NaN where unknown.
            predicted: the middles, records/s, shape (P, n, H).
            at: the origins, in bins, shape (P,).
            look_back: errors of origins so many bins before a day serve it.
        """
        day, shapes = self.calendar.day, shape(predicted)
        made = self.nothing()
        for begin in range(int(at[0]) // day * day, int(at[-1]) + 1, day):
            low, first, stop = np.searchsorted(at, [begin - look_back, begin, begin + day])
            if first < stop:
                mine = slice(int(low), int(stop))
                own = self.run(errors[mine], shapes[mine], at[mine], int(first - low), made.between(low, first))
                made = made.followed_by(own)
        return made

    def run(self, errors: Floats, shapes: Floats, at: Ints, first: int, predicted: Offsets | None = None) -> Offsets:
        """Return the offsets at the origins from index ``first`` on, NaN where not known.

        Args:
            errors: shape (P, n, H), NaN where unknown.
            shapes: of what was foretold, shape (P, n, H).
            at: the origins, in bins, shape (P,).
            first: origins before it only serve the later ones.
            predicted: offsets that were given at origins before ``first``, to be held against what came.
        """
        sampled, shapes = errors[:, :, self.leads], shapes[:, :, self.leads]
        target = at[:, None] + self.leads
        proportion = self._proportion(sampled, shapes, at, target, first)
        scaled = sampled / scale(shapes, proportion)
        own, pooled = Errors.of(scaled, self.group), Errors.of(scaled, len(self.leads))
        known = np.isfinite(sampled)
        begun = np.where(known, target[:, None], np.iinfo(np.int64).max // 2).min(axis=(0, 2))
        groups = own.size.shape[1]
        made = np.full((len(at), len(self.levels), errors.shape[1], groups), np.nan)
        used = np.broadcast_to(proportion, shapes.shape[:2]).copy()
        if predicted is not None:
            made[first - len(predicted.size) : first] = predicted.size
            used[first - len(predicted.size) : first] = predicted.proportion
        scales = scale(shapes, used)
        for place in range(first, len(at)):
            now = int(at[place])
            if place:
                self._steer(sampled, made, scales, target, (int(at[place - 1]), now))
            weights = self._weights(target, place, now)
            steady = (now - begun) * self.calendar.bin_s >= STEADY_S
            made[place] = self._offsets(own, pooled, weights, self._independent(known, weights, at), steady)
        return Offsets(made[first:], used[first:])

    def _proportion(self, sampled: Floats, shapes: Floats, at: Ints, target: Ints, first: int) -> Floats:
        """Return the proportion of each series, shape (n,), from what is known at the first origin to be said."""
        weights = self._weights(target, first, int(at[first]))
        rows = np.flatnonzero(weights.any(axis=1))
        upper = self.levels[self.levels > 0.5]
        return chosen(sampled[rows], shapes[rows], weights[rows], upper)

    def _weights(self, target: Ints, place: int, now: int) -> Floats:
        """Return w, shape (P, H), of the errors of origins before ``place`` at a moment."""
        age_s = (now - target) * self.calendar.bin_s
        weights = np.where(target < now, 0.5 ** (age_s / HALF_LIFE_S), 0.0)
        weights[place:] = 0.0
        return np.asarray(weights)

    def spread(self, offsets: Floats) -> Floats:
        """Return offsets of shape (..., G) over the leads, in units of s, shape (..., H)."""
        group = np.minimum(np.arange(self.horizon) // (self.group * self.step), offsets.shape[-1] - 1)
        return np.asarray(offsets[..., group])

    def _offsets(self, own: Errors, pooled: Errors, weights: Floats, worth: Floats, steady: Bools) -> Floats:
        """Return offsets at a moment, shape (L, n, G), not decreasing in the level.

        ``worth`` is m, and ``steady`` tells
        whether theta may narrow too, shape (n,) both.
        """
        upper = self.levels[:, None] > 0.5
        raised = np.clip(self.raised, -MOST_RAISED, MOST_RAISED)
        levels = self.levels[:, None] + np.where((raised > 0) == upper, raised, steady * raised)
        levels = np.where(upper, levels * (1 + 1 / np.maximum(worth, 1.0)), levels)
        levels = np.clip(levels, LEAST_LEVEL, MOST_LEVEL)
        everywhere = pooled.quantiles(levels, weights)
        mine = own.quantiles(levels, weights)
        mixed = OWN_SHARE * np.where(np.isnan(mine), everywhere, mine) + (1 - OWN_SHARE) * everywhere
        return np.maximum.accumulate(mixed, axis=0)

    def _independent(self, known: Bools, weights: Floats, at: Ints) -> Floats:
        """Return m, shape (n,): a bin that several origins foretold has one error, not several."""
        spacing = float(np.median(np.diff(at))) if len(at) > 1 else float(self.horizon)
        overlap = max(1.0, self.horizon / spacing)
        share = self.step * self.calendar.bin_s / CORRELATED_S / overlap
        return np.asarray(np.einsum("pnh,ph->n", known, weights) * share)

    def _steer(self, sampled: Floats, made: Floats, scales: Floats, target: Ints, bins: tuple[int, int]) -> None:
        """Move theta by what the bins ``[since, now)`` brought."""
        since, now = bins
        seen = (target >= since) & (target < now)
        rows = np.flatnonzero(seen.any(axis=1))
        group = np.arange(len(self.leads)) // self.group
        keep = (now - since) * self.calendar.bin_s / MEMORY_S
        offsets = made[rows][:, :, :, group] * scales[rows][:, None]  # (R, L, n, H')
        counts = seen[rows][:, None, None, :] & np.isfinite(offsets) & np.isfinite(sampled[rows])[:, None]
        below = counts & (sampled[rows][:, None] <= offsets)
        number = counts.sum(axis=(0, 3))
        covered = below.sum(axis=(0, 3)) / np.maximum(number, 1)
        pull = np.where(number > 0, self.levels[:, None] - covered, 0.0)
        self.raised = max(0.0, 1 - keep) * self.raised + GAIN * min(1.0, keep) * pull
