"""From the errors of past forecasts to quantiles that keep their promise: conformal prediction that adapts.

Notation: P origins (oldest first), n series, H bins of horizon, G groups of leads, L levels.

    e (P, n, H)   error of the middle at each origin: seen - predicted, NaN where nothing was seen
    w (P, H)      weight of an error at a moment: 0 until its bin has come, then 1/2 per HALF_LIFE_S of its age
    theta (L, n)  how much a level is raised, because too much came above it lately

The offset of a quantile is the weighted quantile of e, most of it from the lead's own group and the rest from all leads
of the series: a week holds too few errors per group to stand alone.  Newer errors weigh more, since load drifts
(Barber et al. 2023, "Conformal prediction beyond exchangeability"); the level of an upper quantile is raised from q to
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

from models.forecasting.calendar import DAY_S, HOUR_S, WEEK_S, BoolArray, Calendar, FloatArray, IntArray

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
class Errors:
    """Errors of one method, sorted once for all moments and quantiles.

    Attributes:
        size: sorted errors, records/s, NaN last, shape (n, G, S).
        cell: which (origin, lead) each is, P H where there is none, shape (n, G, S).
    """

    size: FloatArray
    cell: IntArray

    @classmethod
    def of(cls, errors: FloatArray, group: int) -> Errors:
        """Sort errors of shape (P, n, H) in groups of ``group`` leads; group = H puts all leads together."""
        count, n, leads = errors.shape
        groups = -(-leads // group)
        padded = np.full((n, count, groups * group), np.nan)
        padded[:, :, :leads] = errors.transpose(1, 0, 2)
        cells = np.full((count, groups * group), count * leads)
        cells[:, :leads] = np.arange(count * leads).reshape(count, leads)

        def grouped(values: FloatArray | IntArray) -> FloatArray | IntArray:
            return values.reshape(-1, count, groups, group).transpose(0, 2, 1, 3).reshape(-1, groups, count * group)

        flat = grouped(padded)
        order = np.argsort(flat, axis=2)  # NaN goes last
        size = np.asarray(np.take_along_axis(flat, order, axis=2), np.float64)
        cell = np.broadcast_to(grouped(cells), flat.shape)
        sorted_cell = np.where(np.isnan(size), count * leads, np.take_along_axis(cell, order, axis=2))
        return cls(size, np.asarray(sorted_cell, np.int64))

    def quantiles(self, levels: FloatArray, weights: FloatArray) -> FloatArray:
        """Return weighted quantiles, shape (L, n, G); NaN where a group has no weight.

        ``levels`` has shape (L, n) and ``weights`` (P, H): an error of weight zero is left out.
        """
        below = np.cumsum(np.append(weights.ravel(), 0.0)[self.cell], axis=2)
        total = below[:, :, -1:]
        found = np.empty((len(levels), *self.size.shape[:2]))
        for place, level in enumerate(levels):
            reached = below >= level[:, None, None] * total * (1 - 1e-12)
            at = np.argmax(reached, axis=2)[:, :, None]
            found[place] = np.take_along_axis(self.size, at, axis=2)[:, :, 0]
        return np.where(total[None, :, :, 0] > 0, found, np.nan)


class Calibration:
    """Goes through the origins of one method in order and says at each which offsets make its quantiles.

    What is said at an origin depends on bins before it alone.

    Attributes:
        levels: shape (L,).
        raised: theta, shape (L, n).
    """

    def __init__(self, levels: FloatArray, series: int, calendar: Calendar, horizon: int) -> None:
        self.levels, self.calendar, self.horizon = levels, calendar, horizon
        self.raised = np.zeros((len(levels), series))
        self.step = min(calendar.bins(SAMPLE_S), horizon)
        self.leads: IntArray = np.arange(self.step // 2, horizon, self.step, dtype=np.int64)
        self.group = min(max(1, GROUP_S // (self.step * calendar.bin_s)), len(self.leads))

    def run(self, errors: FloatArray, at: IntArray, first: int, said: FloatArray | None = None) -> FloatArray:
        """Return the offsets at the origins from index ``first`` on, shape (P - first, L, n, G), NaN where not known.

        Args:
            errors: shape (P, n, H), NaN where unknown.
            at: the origins, in bins, shape (P,).
            first: origins before it only serve the later ones.
            said: offsets that were given at origins before ``first``, to be held against what came.
        """
        sampled = errors[:, :, self.leads]
        target = at[:, None] + self.leads
        own, pooled = Errors.of(sampled, self.group), Errors.of(sampled, len(self.leads))
        known = np.isfinite(sampled)
        begun = np.where(known, target[:, None], np.iinfo(np.int64).max // 2).min(axis=(0, 2))
        groups = own.size.shape[1]
        made = np.full((len(at), len(self.levels), errors.shape[1], groups), np.nan)
        if said is not None:
            made[first - len(said) : first] = said
        for place in range(first, len(at)):
            now = int(at[place])
            if place:
                self._steer(sampled, made, target, int(at[place - 1]), now)
            age_s = (now - target) * self.calendar.bin_s
            weights = np.where(target < now, 0.5 ** (age_s / HALF_LIFE_S), 0.0)
            weights[place:] = 0.0
            steady = (now - begun) * self.calendar.bin_s >= STEADY_S
            made[place] = self._offsets(own, pooled, weights, self._independent(known, weights, at), steady)
        return made[first:]

    def spread(self, offsets: FloatArray) -> FloatArray:
        """Return offsets of shape (..., G) over the leads, shape (..., H)."""
        group = np.minimum(np.arange(self.horizon) // (self.group * self.step), offsets.shape[-1] - 1)
        return np.asarray(offsets[..., group])

    def _offsets(
        self, own: Errors, pooled: Errors, weights: FloatArray, worth: FloatArray, steady: BoolArray
    ) -> FloatArray:
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

    def _independent(self, known: BoolArray, weights: FloatArray, at: IntArray) -> FloatArray:
        """Return m, shape (n,): a bin that several origins foretold has one error, not several."""
        spacing = float(np.median(np.diff(at))) if len(at) > 1 else float(self.horizon)
        overlap = max(1.0, self.horizon / spacing)
        share = self.step * self.calendar.bin_s / CORRELATED_S / overlap
        return np.asarray(np.einsum("pnh,ph->n", known, weights) * share)

    def _steer(self, sampled: FloatArray, made: FloatArray, target: IntArray, since: int, now: int) -> None:
        """Move theta by what the bins ``[since, now)`` brought."""
        seen = (target >= since) & (target < now)
        rows = np.flatnonzero(seen.any(axis=1))
        group = np.arange(len(self.leads)) // self.group
        keep = (now - since) * self.calendar.bin_s / MEMORY_S
        offsets = made[rows][:, :, :, group]  # (R, L, n, H')
        counts = seen[rows][:, None, None, :] & np.isfinite(offsets) & np.isfinite(sampled[rows])[:, None]
        below = counts & (sampled[rows][:, None] <= offsets)
        number = counts.sum(axis=(0, 3))
        covered = below.sum(axis=(0, 3)) / np.maximum(number, 1)
        pull = np.where(number > 0, self.levels[:, None] - covered, 0.0)
        self.raised = max(0.0, 1 - keep) * self.raised + GAIN * min(1.0, keep) * pull
